"""Prepares a trained GFM network for the package: half-precision weights and a card.

    python -m lab.weights.gfm_export --run RUN --out ras_agent/data/gfm --scores scores.json

RUN is a folder that ras_agent.train.gfm.train wrote. scores.json is copied into the card as its scores.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ras_agent.running.program import run_program
from ras_agent.tools.gfm.weights import load_gfm, save_gfm
from ras_agent.tools.retrieve.document_ranker import PACKAGED
from ras_agent.tools.store.card import write_card
from ras_agent.train.options import config_from

_ENCODERS = {"minilm": "all-MiniLM-L6-v2, as packaged"}

_SOURCES = {
    "hotpotqa": "HotpotQA training set, 100 questions and their corpus (CC BY-SA 4.0)",
    "musique": "MuSiQue training set, 199 questions and their paragraphs (CC BY 4.0)",
    "2wiki": "2WikiMultihopQA's corpus, without its questions (Apache-2.0)",
}


def export(run: Path, out: Path, scores: Any) -> dict[str, Any]:
    """Write config.json, model.safetensors (float16) and card.json into `out`, and return the card."""
    config, weights = load_gfm(run)
    save_gfm(out, config, weights, half=True)
    training = json.loads((run / "training.json").read_text(encoding="utf-8"))
    card = {
        "made_by": "ras_agent.train.gfm.train",
        "method": "GFM-RAG (arXiv:2502.01113)",
        "licence": "Apache-2.0",
        "parameters": config.parameters(),
        "encoder": _ENCODERS.get(config.text_model, config.text_model or "unknown"),
        "graphs": "read by the offline extractor, equivalences above 0.8",
        "data": [_SOURCES.get(name, name) for name in training["sets"]],
        "questions": "labelled ones, and pseudo questions made from the passages",
        "ranker": asdict(PACKAGED),
        "training": training,
        "scores": scores,
    }
    write_card(out / "card.json", card)
    return card


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportConfig:
    """Holds the options of an export."""

    run: Path
    """The folder of a training."""
    out: Path
    """The folder of the weights to write."""
    scores: Path
    """A JSON file of scores, for the card."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Export with the options of the command line."""
    config = config_from(ExportConfig, __doc__, arguments)
    scores = json.loads(config.scores.read_text(encoding="utf-8"))
    card = export(config.run, config.out, scores)
    print(json.dumps(card, indent=2))


if __name__ == "__main__":
    run_program(main)
