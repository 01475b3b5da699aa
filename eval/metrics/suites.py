"""Computes the metrics of FanOutQA, MultiHop-RAG and GraphRAG-Bench, as the benchmarks' programs do without a judge
model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ras_agent.eval.metrics.answers import rouge_scorer
from ras_agent.eval.metrics.registry import Outcome, answer_metric, metric
from ras_agent.eval.question import Question
from ras_agent.text.words import stem

_MARKS = re.compile(r"[,.?!:;]")
_WORD = re.compile(r"\w+")
_INSUFFICIENT = "insufficient information"

# ---- FanOutQA: every text of a list or a mapping of answers


def reference_texts(reference: Any) -> list[str]:
    """Return the texts in a reference answer: keys and values of a mapping, items of a list, "yes" for True."""
    if isinstance(reference, dict):
        return reference_texts([*reference, *reference.values()])
    if isinstance(reference, list | tuple):
        texts: list[str] = []
        for item in reference:
            texts += reference_texts(item)
        return texts
    if isinstance(reference, bool):
        return ["yes" if reference else "no"]
    return [str(reference)]


def reference_text(reference: Any) -> str:
    """Return a reference answer as one text: a line for each item, "key - value" for a mapping."""
    if isinstance(reference, dict):
        lines = [f"{key} - {reference_text(reference[key])}" for key in reference]
        return "\n".join(lines)
    if isinstance(reference, list | tuple):
        return "\n".join(map(reference_text, reference))
    if reference is None:
        return ""
    return reference_texts(reference)[0]


def fanout_share(answer: str, reference: Any) -> float:
    """Return the share of the reference's texts that the answer holds as whole words, in 0..1 (FanOutQA's "loose").

    Case, punctuation and the commas of numbers are ignored. Words are compared by their stems; FanOutQA uses spaCy's
    lemmas, so its share may differ. Each item of a list in a mapping counts.
    """
    texts = reference_texts(reference)
    held = f" {_normal(answer)} "
    if not texts:
        return 0.0
    count = 0
    for text in texts:
        count += f" {_normal(text)} " in held
    return count / len(texts)


def _normal(text: str) -> str:
    plain = _MARKS.sub("", text.lower())
    stemmed = _WORD.sub(lambda match: stem(match[0]), plain)
    words = _WORD.findall(stemmed)
    return " ".join(words)


@metric("fanout_loose", decides=50)
def _fanout_loose(question: Question, outcome: Outcome) -> float | None:
    """Return the share of the answer's parts, as names and numbers, that the reply holds."""
    if "reference" not in question.metadata:
        return None
    if outcome.abstained:
        return 0.0
    return fanout_share(outcome.answer, question.metadata["reference"])


@metric("fanout_strict")
def _fanout_strict(question: Question, outcome: Outcome) -> float | None:
    """Return the share of questions with no part of the answer missing in the reply."""
    share = _fanout_loose(question, outcome)
    if share is None:
        return None
    return float(share == 1.0)


# ---- MultiHop-RAG: facts in the texts that were retrieved, and one word of the answer


@metric("fact_hit", of_passages=True, cutoff="required")
def _fact_hit(question: Question, outcome: Outcome, k: int) -> float | None:
    """Return the share of questions with a passage among the first k that holds a gold fact, letter for letter."""
    rank = _fact_mrr(question, outcome, k)
    if rank is None:
        return None
    return float(rank > 0)


@metric("fact_mrr", of_passages=True, cutoff="required")
def _fact_mrr(question: Question, outcome: Outcome, k: int) -> float | None:
    """Return how early the first passage comes that holds a gold fact: 1 / its rank, 0 behind rank k."""
    facts = _facts(question)
    if not facts:
        return None
    for rank, passage in enumerate(outcome.passages[:k], 1):
        if _held(facts, passage.text):
            return 1 / rank
    return 0.0


@metric("fact_map", of_passages=True, cutoff="required")
def _fact_map(question: Question, outcome: Outcome, k: int) -> float | None:
    """Return MultiHop-RAG's MAP@k: for each rank, new facts in its passage / rank, over the number of gold facts.

    A passage that holds several facts counts several times, so the best value is above 1 where facts share passages;
    it is cut to 1 here.
    """
    facts = _facts(question)
    if not facts:
        return None
    seen: set[str] = set()
    total = 0.0
    for rank, passage in enumerate(outcome.passages[:k], 1):
        new = set(_held(facts, passage.text)) - seen
        seen |= new
        total += len(new) / rank
    most = min(len(facts), k)
    return min(1.0, total / most)


def _facts(question: Question) -> list[str]:
    facts = question.metadata.get("facts", ())
    return list(map(_letters, facts))


def _held(facts: Sequence[str], text: str) -> list[str]:
    letters = _letters(text)
    return [fact for fact in facts if fact in letters]


def _letters(text: str) -> str:
    line = text.replace("\n", "")
    return line.replace(" ", "")


@metric("multihop_accuracy", decides=45)
def _multihop_accuracy(question: Question, outcome: Outcome) -> float | None:
    """Return the share of answers that have a word in common with the gold answer, as MultiHop-RAG's program counts.

    An abstention is the answer "insufficient information", which is gold for its questions without an answer.
    """
    if not question.answers:
        return None
    if outcome.abstained:
        answer = _INSUFFICIENT
    else:
        answer = outcome.answer.lower()
    words = set(answer.split())
    for gold in question.answers:
        text = gold.lower()
        of_gold = text.split() + text.removesuffix(".").split()
        if not words.isdisjoint(of_gold):
            return 1.0
    return 0.0


# ---- GraphRAG-Bench


@answer_metric("rouge_l", decides=70)
def rouge_l(prediction: str, references: Sequence[str]) -> float:
    """Return ROUGE-L's F-measure of the rouge-score package, stemmed, best over the references, in 0..1.

    Raises MissingExtra without the package.
    """
    if not prediction.strip():
        return 0.0
    scorer = rouge_scorer("rougeL")
    best = 0.0
    for gold in references:
        if gold.strip():
            scored = scorer.score(gold, prediction)["rougeL"]
            best = max(best, float(scored.fmeasure))
    return best
