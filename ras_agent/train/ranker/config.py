"""Everything that decides what the offline answerer's ranker becomes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SEED, SHARE, Range, check_ranges

SETS: dict[tuple[str, str], float] = {
    **{("hotpot", retriever): 4 / 3 for retriever in ("bm25", "hybrid", "ppr+dense")},
    ("hotpot", "single-shot"): 2.0,
    **{("musique", retriever): 1 / 3 for retriever in ("bm25", "hybrid", "ppr+dense")},
    ("musique", "single-shot"): 0.5,
    ("steps", "single-shot"): 0.2,
    ("nq", "bm25"): 1.0,
    ("squad", "bm25"): 1.0,
}
"""The sets of questions, each with the retriever of its loop (or "single-shot"), and how often one of its questions is
drawn."""

_COUNTS = ("questions", "hidden", "steps", "batch", "spans", "members", "type_size", "type_batch", "longest_answer")
_RANGES = {
    **dict.fromkeys(_COUNTS, COUNT),
    **dict.fromkeys(("dropout", "type_dropout"), SHARE),
    **dict.fromkeys(("rate", "decay", "type_rate", "type_decay"), AMOUNT),
    "folds": Range(2),
    "type_epochs": NATURAL,
    "seed": SEED,
}


@dataclass(frozen=True, slots=True)
class RankerConfig:
    """Settings that decide the result. Raises SettingsError for a number out of its range.

    questions: at most so many of each set. members: networks whose mean is taken. earlier: weights whose word rarity
    and type model are taken over, if any. work: where indexes are stored for a later run, if anywhere. embedder: of
    these indexes.
    """

    data: Path
    out: Path
    earlier: Path | None = None
    work: Path | None = None
    seed: int = 0
    questions: int = 450
    hidden: int = 16
    dropout: float = 0.1
    steps: int = 400
    batch: int = 24
    rate: float = 5e-3
    decay: float = 0.1
    spans: int = 150
    folds: int = 4
    members: int = 6
    type_size: int = 16
    type_epochs: int = 12
    type_rate: float = 0.02
    type_batch: int = 256
    type_dropout: float = 0.4
    type_decay: float = 1.0
    longest_answer: int = 80
    embedder: object = "minilm"

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
