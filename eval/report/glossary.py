"""Explains the figures of a report to readers who do not know them."""

from __future__ import annotations

from collections.abc import Iterable

from ras_agent.contracts.errors import UnknownName
from ras_agent.eval.metrics import find_metric

_METRICS = {
    "em": "Exact match: the share of questions whose answer equals a gold answer, apart from capitals, punctuation "
    "and articles. A gold answer is one that the question set gives.",
    "f1": "How many words the answer and the gold answer have in common: 100 for the same words, 0 for none. It is the "
    "harmonic mean of precision (how much of the answer is gold) and recall (how much of the gold is in the answer).",
    "golden_match": "The share of questions whose answer contains a gold answer.",
    "accuracy": "The share of questions whose chosen option, verdict or class is the right one.",
    "em_text": "Exact match for questions of your own, in any script: decimals, signs and marks of names count; "
    "capitals, accents of Latin letters, articles and punctuation at the ends of words do not.",
    "f1_text": "How many words the answer and the gold answer have in common, by the words that em_text compares; of "
    "Chinese and Japanese, how many characters.",
    "support_f1": "How well the cited passages match the gold passages: the harmonic mean of the share of cited "
    "passages that are gold and the share of gold passages that are cited (MuSiQue's support F1).",
    "support_em": "The share of questions whose cited passages are the gold ones, all of them and no other.",
    "sp_f1": "How well the cited sentences match the supporting facts of the question set (HotpotQA).",
    "sp_em": "The share of questions whose cited sentences are the supporting facts, all and no other (HotpotQA).",
    "joint_f1": "Answer and supporting facts together: F1 of the products of their precision and recall (HotpotQA).",
    "joint_em": "The share of questions whose answer and supporting facts are both exactly right (HotpotQA).",
    "recall": "The share of the gold passages, which hold the evidence, that are among the first k.",
    "all_recall": "The share of questions with all their gold passages among the first k: a chain of facts needs all of "
    "them.",
    "hit": "The share of questions with at least one gold passage among the first k.",
    "mrr": "Mean reciprocal rank: how early the first gold passage comes. 100: always first; 50: second on average.",
    "sufficiency_precision": "Of the questions that the planner ended by itself, the share that it ended after as many "
    "searches as the question has gold hops, neither earlier nor later.",
    "stopped_early": "Of the questions that the planner ended by itself, the share that it ended too early.",
    "stopped_late": "Of the questions that the planner ended by itself, the share that it ended too late.",
    "citation_support": "The share of answers that a cited sentence supports, among those for which this can be decided.",
    "supporting_citations": "The share of citations that support their answer, among those for which this can be decided. "
    "ALCE's citation precision is another figure: there a model judges whether a passage is needed for a "
    "statement.",
    "proof_shown": "The share of answers to which cited sentences lead from a name in the question; yes, no and a "
    "choice between two named things do not count.",
    "proof_complete": "The share of the proofs that are shown with a sentence of every gold passage.",
    "answer_in_passages": "The share of questions with a gold answer somewhere in the retrieved passages.",
    "answer_in_facts": "The share of questions with a gold answer somewhere in the facts of the graph.",
}
_FIGURES = {
    "95 % interval": "Other questions of the same kind would give another mean; an interval made in this way contains the "
    "true mean in 95 of 100 cases. Two runs with overlapping intervals may still differ; the section on "
    "differences compares them question by question.",
    "n": "The number of questions that have the figure; some figures need a gold answer or gold passages.",
    "difference, p": "How much better a run is on the same questions. An interval without 0 is coloured. p is the "
    "probability of a difference that large if the runs did not differ; below 0.05 it is commonly taken "
    "as real. Among many differences some are that large by chance: Holm's p is corrected for the number "
    "of differences in the table.",
    "hop": "One search of a run. Gold hops are the number of searches that a question needs according to its "
    "question set.",
    "ECE, AURC": "ECE, the expected calibration error, is the mean distance between the confidence of answers and the "
    "share of them that is right. AURC, the area under the risk-coverage curve, is the mean share of "
    "wrong answers among the surest 1, 2, 3 ... answers: the lower it is, the better confidences sort "
    "right from wrong answers.",
    "p50, p95": "Half of the questions took at most p50, 95 of 100 at most p95.",
}


_RANKED = frozenset({"recall", "all_recall", "hit"})
_OF_FIRST_SEARCH = "Passages come in the order of the searches, so that it is mostly a figure of the first search."


def explained(metrics: Iterable[str]) -> dict[str, str]:
    """Return the meaning of each metric and of each other figure of a report, in plain words.

    A metric of another package is explained by the first paragraph of its docstring, and left out if it has no
    docstring.
    """
    words = {name: about for name in metrics if (about := _about(name))}
    return words | _FIGURES


def _about(name: str) -> str:
    base, _, cutoff = name.partition("@")
    if about := _METRICS.get(base):
        if cutoff:
            cut = about.replace("first k", f"first {cutoff}")
            if base in _RANKED:
                return f"{cut} {_OF_FIRST_SEARCH}"
            return cut
        return about.replace("among the first k", "found in all searches")
    try:
        score = find_metric(name).score
    except UnknownName:
        return ""
    doc = getattr(getattr(score, "func", score), "__doc__", None) or ""
    first = " ".join(doc.split("\n\n")[0].split()).removeprefix("Return ")
    return first[:1].upper() + first[1:]
