"""Everything that decides what the offline answerer's ranker becomes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SEED, SHARE, Range, check_ranges

__all__ = ["AGAIN", "Config", "SETS", "second_shares"]

SETS = (
    *(("hotpot", "ras"), ("hotpot", "single-shot"), ("musique", "ras"), ("musique", "single-shot")),
    *(("steps", "single-shot"), ("nq", "ras"), ("squad", "ras")),
)
"""The questions of the first round, and the loop that searches for them, with BM25 and no ranker."""
AGAIN = ("hotpot", "musique")
"""Those of its sets whose "ras" makes way, in the second round, for the loop with the first round's rankers."""


_COUNTS = ("questions", "hidden", "steps", "batch", "spans", "members", "type_size", "type_batch", "longest_answer")
_RANGES = {
    **dict.fromkeys(_COUNTS, COUNT),
    **dict.fromkeys(("dropout", "type_dropout"), SHARE),
    **dict.fromkeys(("rate", "decay", "share", "type_rate", "type_decay"), AMOUNT),
    "folds": Range(2),
    "type_epochs": NATURAL,
    "seed": SEED,
}


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that decides what comes out. Raises SettingsError for a number out of its range.

    questions: at most so many of each set. share: how often a question of each set is drawn, in the order of `SETS`.
    retrievers: what the second round searches with. members: networks whose mean is taken. kept: weights whose word
    rarity and type model are taken over, if any. work: where indexes are kept for a later run, if anywhere.
    """

    data: Path
    out: Path
    kept: Path | None = None
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
    share: tuple[float, ...] = (4.0, 2.0, 1.0, 0.5, 0.2, 1.0, 1.0)
    retrievers: tuple[str, ...] = ("bm25", "hybrid", "ppr+dense")
    folds: int = 4
    members: int = 6
    type_size: int = 16
    type_epochs: int = 12
    type_rate: float = 0.02
    type_batch: int = 256
    type_dropout: float = 0.4
    type_decay: float = 1.0
    longest_answer: int = 80

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)


def second_shares(config: Config) -> dict[tuple[str, str], float]:
    """How often a question of each set is drawn in the second round: what makes way leaves its share to retrievers."""
    shares: dict[tuple[str, str], float] = {}
    for (name, loop), share in zip(SETS, config.share, strict=True):
        if loop == "ras" and name in AGAIN:
            shares |= {(name, retriever): share / len(config.retrievers) for retriever in config.retrievers}
        else:
            shares[name, loop] = share
    return shares
