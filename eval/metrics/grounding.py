"""Metrics of grounding: does the evidence hold the answer? Words decide, without a judge model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ras_agent.eval.metrics.answers import holds, normalise_answer
from ras_agent.eval.metrics.registry import Outcome, metric
from ras_agent.eval.question import Question

_UNSTATED = frozenset({"", "yes", "no", "true", "false", "noanswer", "unknown"})


def checkable(answer: str) -> bool:
    """Tell whether a text could state the answer word for word; it cannot state a yes or a no."""
    return normalise_answer(answer) not in _UNSTATED


def answer_support(answers: Iterable[str], texts: Iterable[str]) -> float:
    """Return 1.0 if at least one text holds one of the answers as whole words, else 0.0."""
    golds = tuple(answers)
    return float(any(holds(text, golds) for text in texts))


def citation_precision(answers: Iterable[str], cited: Sequence[str]) -> float:
    """Return the share of the cited texts that hold one of the answers as whole words; 0.0 if nothing is cited.

    In a chain of hops only the last passage need hold the answer. Read together with `answer_support`, this shows how
    much was cited that does not bear on the answer itself.
    """
    golds = tuple(answers)
    return sum(holds(text, golds) for text in cited) / len(cited) if cited else 0.0


@metric("citation_support")
def _citation_support(question: Question, outcome: Outcome) -> float | None:
    if outcome.abstained or not checkable(outcome.answer):
        return None
    return answer_support([outcome.answer], _cited(outcome))


@metric("citation_precision")
def _citation_precision(question: Question, outcome: Outcome) -> float | None:
    if outcome.abstained or not checkable(outcome.answer) or not outcome.citations:
        return None
    return citation_precision([outcome.answer], _cited(outcome))


@metric("answer_in_passages", of_passages=True)
def _answer_in_passages(question: Question, outcome: Outcome) -> float | None:
    golds = [gold for gold in question.answers if checkable(gold)]
    texts = (f"{passage.title}. {passage.text}" for passage in outcome.passages)
    return answer_support(golds, texts) if golds else None


@metric("answer_in_facts")
def _answer_in_facts(question: Question, outcome: Outcome) -> float | None:
    golds = [gold for gold in question.answers if checkable(gold)]
    return answer_support(golds, map(" ".join, outcome.triples())) if golds else None


def _cited(outcome: Outcome) -> list[str]:
    texts = {passage.id: f"{passage.title}. {passage.text}" for passage in outcome.passages}
    return [texts.get(citation.passage_id, citation.quote) for citation in outcome.citations]
