"""Does the evidence hold the answer? By words, without a judge model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ras_agent.eval.metrics.answers import holds, normalise_answer

__all__ = ["answer_support", "checkable", "citation_precision"]

_UNSTATED = frozenset({"", "yes", "no", "true", "false", "noanswer", "unknown"})


def checkable(answer: str) -> bool:
    """Whether a text could hold the answer in so many words; it cannot hold a yes or a no."""
    return normalise_answer(answer) not in _UNSTATED


def answer_support(answers: Iterable[str], texts: Iterable[str]) -> float:
    """1.0 if at least one text holds one of the answers as whole words, else 0.0."""
    wanted = tuple(answers)
    return float(any(holds(text, wanted) for text in texts))


def citation_precision(answers: Iterable[str], cited: Sequence[str]) -> float:
    """Share of the cited texts that hold one of the answers as whole words, in 0..1; 0.0 if nothing is cited.

    In a chain of hops only the last passage need hold the answer, so beside `answer_support` this says how much was
    cited that does not bear on the answer itself.
    """
    wanted = tuple(answers)
    return sum(holds(text, wanted) for text in cited) / len(cited) if cited else 0.0
