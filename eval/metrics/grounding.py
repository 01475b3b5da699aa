"""Decides by words, without a judge model, whether the evidence contains the answer."""

from __future__ import annotations

from collections.abc import Iterable

from ras_agent.contracts.records import Answer, Passage
from ras_agent.eval.metrics.answers import holds, normalise_answer
from ras_agent.eval.metrics.registry import Outcome, metric
from ras_agent.eval.question import Question
from ras_agent.question_graph.support import with_support

_UNSTATED = frozenset({"", "yes", "no", "true", "false", "noanswer", "unknown"})


def checkable(answer: str) -> bool:
    """Tell whether the answer can be looked up word for word in a text. A yes or a no cannot."""
    return normalise_answer(answer) not in _UNSTATED


def answer_support(answers: Iterable[str], texts: Iterable[str]) -> float:
    """Return 1.0 if at least one text contains one of the answers as whole words, else 0.0."""
    golds = tuple(answers)
    for text in texts:
        if holds(text, golds):
            return 1.0
    return 0.0


@metric("citation_support")
def _citation_support(question: Question, outcome: Outcome) -> float | None:
    """Return 1.0 if a citation supports the answer, else 0.0; None if that cannot be judged."""
    if outcome.abstained or not (outcome.citations or checkable(outcome.answer)):
        return None
    support = _support(question, outcome)
    if True in support:
        return 1.0
    if None in support:
        return None
    return 0.0


@metric("supporting_citations")
def _citation_precision(question: Question, outcome: Outcome) -> float | None:
    """Return the share of citations that support the answer, among those that can be judged."""
    judged = []
    for support in _support(question, outcome):
        if support is not None:
            judged.append(support)
    if judged and not outcome.abstained:
        return sum(judged) / len(judged)
    return None


@metric("answer_in_passages", of_passages=True)
def _answer_in_passages(question: Question, outcome: Outcome) -> float | None:
    golds = list(filter(checkable, question.answers))
    texts = (f"{passage.title}. {passage.text}" for passage in outcome.passages)
    if golds:
        return answer_support(golds, texts)
    return None


@metric("answer_in_facts")
def _answer_in_facts(question: Question, outcome: Outcome) -> float | None:
    golds = list(filter(checkable, question.answers))
    texts = map(" ".join, outcome.triples())
    if golds:
        return answer_support(golds, texts)
    return None


def _support(question: Question, outcome: Outcome) -> list[bool | None]:
    """Return for each citation whether it supports the answer: as the run recorded, or else by its words. None
    means unknown.
    """
    recorded = [one.supported for one in outcome.citations]
    if set(recorded) - {None}:
        return recorded
    passages = {}
    for one in outcome.citations:
        passages[one.passage_id] = Passage(one.passage_id, one.quote, one.title)
    for passage in outcome.passages:
        passages[passage.id] = passage
    answer = Answer(outcome.answer, outcome.citations)
    marked = with_support(question.question, answer, passages, outcome.facts)
    return [one.supported for one in marked.citations]
