"""Compares an answer's citations with the gold evidence, by the metrics of multi-hop sets.

MuSiQue scores paragraphs (support F1). HotpotQA and 2WikiMultihopQA score sentences (supporting-fact EM and
F1), and sentences together with the answer (joint EM and F1). The citations of an answer are its supporting
evidence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable

from ras_agent.eval.metrics.answer_sets import set_score
from ras_agent.eval.metrics.answers import (
    common_words,
    exact_match,
    f1_of,
    normalise_answer,
    token_f1,
)
from ras_agent.eval.metrics.registry import Outcome, metric
from ras_agent.eval.question import Question

_Pair = tuple[float, float]


@metric("support_f1")
def _support_f1(question: Question, outcome: Outcome) -> float | None:
    """Return the F1 of the cited passages against the gold ones: MuSiQue's support F1."""
    if question.supporting:
        cited = _cited_passages(question, outcome)
        return set_score(cited, question.supporting).f1
    return None


@metric("support_em")
def _support_em(question: Question, outcome: Outcome) -> float | None:
    """Return 1.0 if the cited passages are exactly the gold passages, else 0.0."""
    if question.supporting:
        cited = _cited_passages(question, outcome)
        return float(cited == set(question.supporting))
    return None


@metric("sp_f1")
def _sp_f1(question: Question, outcome: Outcome) -> float | None:
    """Return HotpotQA's supporting-fact F1: the F1 of the cited sentences against the supporting facts."""
    facts = _supporting_facts(question)
    if facts:
        cited = _cited_sentences(question, outcome)
        return set_score(cited, facts).f1
    return None


@metric("sp_em")
def _sp_em(question: Question, outcome: Outcome) -> float | None:
    """Return HotpotQA's supporting-fact EM: 1.0 if the cited sentences are exactly the supporting facts, else 0.0."""
    facts = _supporting_facts(question)
    if facts:
        cited = _cited_sentences(question, outcome)
        return float(cited == facts)
    return None


@metric("joint_f1")
def _joint_f1(question: Question, outcome: Outcome) -> float | None:
    """Return HotpotQA's joint F1: precisions of answer and supporting facts are multiplied, recalls too, and F1
    is taken of the products.
    """
    facts = _supporting_facts(question)
    if not facts or not question.answers:
        return None
    precision, recall = _of_answer(question, outcome)
    cited = _cited_sentences(question, outcome)
    of_facts = set_score(cited, facts)
    return f1_of(precision * of_facts.precision, recall * of_facts.recall)


@metric("joint_em")
def _joint_em(question: Question, outcome: Outcome) -> float | None:
    """Return HotpotQA's joint EM: 1.0 if both the answer and the supporting facts are exactly right, else 0.0."""
    facts = _supporting_facts(question)
    if not facts or not question.answers:
        return None
    if outcome.abstained or _cited_sentences(question, outcome) != facts:
        return 0.0
    return exact_match(outcome.answer, question.answers)


def _cited_passages(question: Question, outcome: Outcome) -> set[str]:
    ids = {citation.passage_id for citation in outcome.citations}
    cited = [passage for passage in outcome.passages if passage.id in ids]
    return set(question.names(cited))


def _supporting_facts(question: Question) -> set[Hashable]:
    """Return the gold (title, sentence number) pairs; an empty set if the question does not say where sentences end."""
    if not question.metadata.get("sentence_ends"):
        return set()
    facts: set[Hashable] = set()
    for title, number in question.metadata.get("supporting_facts") or ():
        facts.add((str(title), int(number)))
    return facts


def _cited_sentences(question: Question, outcome: Outcome) -> set[Hashable]:
    """Return the (title, sentence number) pairs of the sentences that citations overlap, counted from 0 as in
    the benchmarks.
    """
    ends_of = question.metadata.get("sentence_ends") or {}
    titles = {passage.id: passage.title for passage in outcome.passages}
    cited: set[Hashable] = set()
    for citation in outcome.citations:
        title = titles.get(citation.passage_id, "")
        ends = ends_of.get(title)
        if not ends or citation.end <= citation.start:
            continue
        first = bisect_right(ends, citation.start)
        last = bisect_right(ends, citation.end - 1)
        for number in range(first, min(last + 1, len(ends))):
            cited.add((title, number))
    return cited


def _of_answer(question: Question, outcome: Outcome) -> _Pair:
    """Return precision and recall of the answer's words against the gold answer that gives the best F1."""
    if outcome.abstained:
        return 0.0, 0.0
    best = max(question.answers, key=lambda gold: token_f1(outcome.answer, [gold]))
    if not token_f1(outcome.answer, [best]):
        return 0.0, 0.0
    predicted = normalise_answer(outcome.answer).split()
    gold = normalise_answer(best).split()
    common = common_words(predicted, gold)
    return common / len(predicted), common / len(gold)
