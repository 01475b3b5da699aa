"""Computes the metrics of FanOutQA, MultiHop-RAG and GraphRAG-Bench that need no judge model, as the
benchmarks' programs do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ras_agent.eval.metrics.answers import best_rouge
from ras_agent.eval.metrics.registry import Outcome, answer_metric, metric
from ras_agent.eval.question import Question
from ras_agent.text.words import stem

_MARKS = re.compile(r"[,.?!:;]")
_WORD = re.compile(r"\w+")
_INSUFFICIENT = "insufficient information"

# ---- FanOutQA: every text of a list or a mapping of answers


def reference_texts(reference: Any) -> list[str]:
    """Return the texts in a reference answer: a mapping's keys and values, a list's items, "yes" for True."""
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
    """Return a reference answer as one text, with a line for each item, or "key - value" for each entry of a
    mapping.
    """
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
    """Return the share of the reference answer's texts that the reply contains."""
    if "reference" not in question.metadata:
        return None
    if outcome.abstained:
        return 0.0
    return fanout_share(outcome.answer, question.metadata["reference"])


@metric("fanout_strict")
def _fanout_strict(question: Question, outcome: Outcome) -> float | None:
    """Return 1.0 if the reply contains all texts of the reference answer, else 0.0."""
    share = _fanout_loose(question, outcome)
    if share is None:
        return None
    return float(share == 1.0)


# ---- MultiHop-RAG: facts in the texts that were retrieved, and one word of the answer


@metric("fact_hit", of_passages=True, cutoff="required")
def _fact_hit(question: Question, outcome: Outcome, k: int) -> float | None:
    """Return 1.0 if one of the first k passages contains a gold fact, letter for letter, else 0.0."""
    rank = _fact_mrr(question, outcome, k)
    if rank is None:
        return None
    return float(rank > 0)


@metric("fact_mrr", of_passages=True, cutoff="required")
def _fact_mrr(question: Question, outcome: Outcome, k: int) -> float | None:
    """Return 1 / the rank of the first passage that contains a gold fact; 0 if there is none among the first k."""
    facts = _facts(question)
    if not facts:
        return None
    for rank, passage in enumerate(outcome.passages[:k], 1):
        if _held(facts, passage.text):
            return 1 / rank
    return 0.0


@metric("fact_map", of_passages=True, cutoff="required")
def _fact_map(question: Question, outcome: Outcome, k: int) -> float | None:
    """Return MultiHop-RAG's MAP@k: the sum over the ranks of (new facts in the passage / rank), divided by the
    gold facts.

    A passage with several facts counts several times, so the sum can exceed 1; the score is limited to 1 here.
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
    """Return 1.0 if the answer has a word in common with the gold answer, as MultiHop-RAG's program counts,
    else 0.0.

    An abstention is read as the answer "insufficient information", which is the gold answer of its unanswerable
    questions.
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
    """Return ROUGE-L's F-measure against the best of the references, in 0..1, stemmed, by the rouge-score
    package.

    Raises:
        MissingExtra: without the package.
    """
    if not prediction.strip():
        return 0.0
    return best_rouge("rougeL", prediction, filter(str.strip, references))
