"""Measures passages and tokens a second of a local text-to-triples model: one by one, in batches, by like length.

    python -m lab.triples --width 256 --layers 4 --passages 96 --rounds 3
    python -m lab.triples --model /path-or-hub-name --corpus PASSAGES.jsonl

Without --model, the model has random weights and its facts are as long as they may be, which hardly any of a trained
model are: the figures compare ways of batching, and say nothing of any model's own speed. Without --corpus, the
passages are words drawn at random, 10 to 200 of them. Each round measures every way; `ratio` is to "one by one" of the
same round. "as the extractor" are the extractor's own batches, up to 64 texts of like length. On a processor, seconds
are those of this process, so other programs do not count; one thread computes.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from ras_agent.eval.formats import load_passages
from ras_agent.program import run_program
from ras_agent.records import Passage
from ras_agent.tools.structure.new_model import KINDS, new_model
from ras_agent.tools.structure.triple_model import Decoding, ModelReply, TransformersWriter, batches_of_like_length
from ras_agent.tools.structure.triple_text import Piece

_ROWS = 16  # of the batches that are compared


@dataclass(frozen=True, slots=True)
class TripleSpeed:
    """Holds one measurement. padding: of the tokens that the model read, the share that was padding."""

    round: int
    way: str
    passages: int
    seconds: float
    passages_a_second: float
    read_a_second: float
    written_a_second: float
    padding: float
    ratio: float


def measure(writer: Any, pieces: Sequence[Piece], decoding: Decoding, rounds: int) -> Iterator[TripleSpeed]:
    """Measure each way of batching the pieces, round by round."""
    order = list(range(len(pieces)))
    chunks = [order[start : start + _ROWS] for start in range(0, len(order), _ROWS)]
    sizes = [len(piece.tokens) for piece in pieces]
    ranked = sorted(order, key=lambda place: -sizes[place])
    by_length = [ranked[start : start + _ROWS] for start in range(0, len(order), _ROWS)]
    chosen = batches_of_like_length(sizes, decoding)
    ways: dict[str, tuple[list[list[int]], Decoding]] = {
        "one by one": ([[place] for place in order], decoding),
        "16 in the order given": (chunks, decoding),
        "16 of like length": (by_length, decoding),
        "as the extractor": (chosen, decoding),
        "as the extractor, copying": (chosen, replace(decoding, copy=True)),
    }
    writer.write(pieces[:2], decoding)
    for number in range(rounds):
        base = 0.0
        for way, (batches, how) in ways.items():
            began = _clock(writer)
            written: list[ModelReply] = []
            for batch in batches:
                written += writer.write_batch([pieces[place] for place in batch], how)
            seconds = _clock(writer) - began
            base = base or seconds
            read = sum(len(piece.tokens) for piece in pieces)
            padded = sum(len(batch) * max(len(pieces[place].tokens) for place in batch) for batch in batches)
            tokens = sum(one.tokens for one in written)
            yield TripleSpeed(
                number,
                way,
                len(pieces),
                round(seconds, 3),
                passages_a_second=round(len(pieces) / seconds, 2),
                read_a_second=round(read / seconds, 2),
                written_a_second=round(tokens / seconds, 2),
                padding=round(1 - read / padded, 3),
                ratio=round(base / seconds, 2),
            )


def _clock(writer: Any) -> float:
    """Return seconds: of this process where a processor computes, else of the clock."""
    if writer.model.device.type == "cpu":
        return time.process_time()
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def random_passages(count: int, seed: int = 0) -> list[Passage]:
    """Return passages of 10 to 200 words, most of them short."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(2000)]
    lengths = [int(10 + 190 * rng.random() ** 2) for _ in range(count)]
    return [Passage(str(number), f"{' '.join(rng.choices(words, k=length))}.") for number, length in enumerate(lengths)]


def _writer(model: str, kind: str, width: int, layers: int, texts: Sequence[str]) -> Any:
    if model:
        return TransformersWriter.load(model)
    import torch

    torch.manual_seed(0)
    return TransformersWriter(*new_model(kind, texts, width=width, layers=layers))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print each measurement as a line of JSON, then each way's median round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="")
    parser.add_argument("--kind", choices=KINDS, default="t5", help="of the model with random weights")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--passages", type=int, default=96)
    parser.add_argument("--target-tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)
    passages = load_passages(given.corpus)[: given.passages] if given.corpus else random_passages(given.passages)
    writer = _writer(given.model, given.kind, given.width, given.layers, [passage.text for passage in passages])
    pieces = [piece for passage in passages for piece in writer.text.pieces(passage)]
    found = list[TripleSpeed]()
    for one in measure(writer, pieces, Decoding(target_tokens=given.target_tokens), given.rounds):
        found.append(one)
        print(json.dumps(asdict(one)), flush=True)
    for way in dict.fromkeys(one.way for one in found):
        rounds = [one for one in found if one.way == way]
        middle = median(one.passages_a_second for one in rounds)
        ratio = median(one.ratio for one in rounds)
        print(f"{way}: {middle:.2f} passages a second, {ratio:.1f} times as many as one by one")


if __name__ == "__main__":
    run_program(main)
