"""ROUGE-Lsum as ALCE reports it for long answers: the rouge-score package, stemmed, the best reference counts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from ras_agent.errors import MissingExtra
from ras_agent.text.sentences import sentence_spans

__all__ = ["rouge_lsum"]


def rouge_lsum(prediction: str, references: Iterable[str]) -> float:
    """F-measure of the summary-level longest common subsequence, best over the references, in 0..1.

    Texts are lower-cased and parted into sentences, a line each, as ALCE does it; sentence ends are found by our own
    rules where ALCE uses NLTK's, which can part a text differently.
    Raises MissingExtra without the rouge-score package.
    """
    predicted = _lines(prediction)
    return max(
        (float(_scorer().score(_lines(gold), predicted)["rougeLsum"].fmeasure) for gold in references), default=0
    )


def _lines(text: str) -> str:
    # sentences first: an abbreviation's capital is lost in lower case
    return "\n".join(text[start:end] for start, end in sentence_spans(text)).lower()


@cache
def _scorer() -> Any:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise MissingExtra("ROUGE", "eval") from error
    return RougeScorer(["rougeLsum"], use_stemmer=True)
