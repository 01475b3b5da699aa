"""Average the readers of several trainings from the same start into one; write it and its JSON card.

    python -m lab.weights.reader.average first.safetensors second.safetensors --out reader.safetensors

The mean of the weights of trainings that began with the same network often reads better than each of them, and costs no
more to use (Wortsman et al. 2022, arXiv:2203.05482, "uniform soup"). The card holds the values
that those of the trainings, which lie next to their weights, have in common, and the values of each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ras_agent.contracts.errors import WeightsError
from ras_agent.running.program import run_program
from ras_agent.tools.embed.stored_bert import load_weights, save_weights


def average(files: Sequence[Path], out: Path) -> None:
    """Write the mean of the readers `files` to `out`, with a card that holds theirs.

    Raises WeightsError for a file that is damaged, has no card, or holds other weights than the first.
    """
    readers, cards = (
        [load_weights(file) for file in files],
        [_card(file) for file in files],
    )
    shapes = [
        {name: weight.shape for name, weight in reader.items()} for reader in readers
    ]
    for file, held in zip(files, shapes, strict=True):
        if held != shapes[0]:
            raise WeightsError(
                f"{file}: other weights than {files[0]} has; average readers of one architecture"
            )
    save_weights(
        {
            name: np.mean([reader[name] for reader in readers], axis=0)
            for name in readers[0]
        },
        out,
    )
    own = {"what", "made_by"}
    shared = {
        key: one
        for key, one in cards[0].items()
        if key not in own and all(card.get(key) == one for card in cards)
    }
    card = {
        **shared,
        "what": "all-MiniLM-L6-v2 as a reader: the mean of the weights of several trainings",
        "made_by": "python -m lab.weights.reader.average",
        "trainings": [
            {key: value for key, value in card.items() if key not in shared}
            for card in cards
        ],
    }
    out.with_suffix(".json").write_text(
        json.dumps(card, indent=2) + "\n", encoding="utf-8"
    )


def _card(file: Path) -> dict[str, Any]:
    card = file.with_suffix(".json")
    try:
        return dict(json.loads(card.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise WeightsError(
            f"{card}: the card of {file.name} cannot be read ({error}); train writes both"
        ) from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and average."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", type=Path, nargs="+", help="the .safetensors files of trained readers"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="the .safetensors file of their mean"
    )
    options = parser.parse_args(arguments)
    average(options.files, options.out)


if __name__ == "__main__":
    run_program(main)
