"""Measures whether an answer is shown with a proof ("How the answer follows"), and whether the proof is
complete.
"""

from __future__ import annotations

from ras_agent.contracts.records import Citation
from ras_agent.eval.metrics.grounding import checkable
from ras_agent.eval.metrics.registry import Outcome, metric
from ras_agent.eval.question import Question
from ras_agent.question_graph.proof import proof_of
from ras_agent.text.canonical import canonical_key


def proof_citations(question: str, outcome: Outcome) -> list[Citation] | None:
    """Return the citations of the proof, in its order; [] if the proof is missing, None if no proof is
    expected.

    No proof is expected for an abstention, nor for an answer to which no chain of facts leads: yes, no, or one
    of the things that the question names.
    """
    named = f" {canonical_key(outcome.answer)} " in f" {canonical_key(question)} "
    if outcome.abstained or not checkable(outcome.answer) or named:
        return None
    by_number = {citation.number: citation for citation in outcome.citations}
    steps = proof_of(question, outcome.answer, outcome.citations, outcome.facts)
    return [by_number[step.citation] for step in steps]


@metric("proof_shown")
def _proof_shown(question: Question, outcome: Outcome) -> float | None:
    proof = proof_citations(question.question, outcome)
    if proof is None:
        return None
    return float(bool(proof))


@metric("proof_complete")
def _proof_complete(question: Question, outcome: Outcome) -> float | None:
    """Return 1.0 if the proof cites every gold passage, else 0.0; None without a proof or without known gold
    passages.
    """
    proof = proof_citations(question.question, outcome)
    if not proof or not question.supporting:
        return None
    ids = {citation.passage_id for citation in proof}
    cited = [passage for passage in outcome.passages if passage.id in ids]
    names = set(question.names(cited))
    for citation in proof:
        if question.by_title:
            names.add(citation.title)
        else:
            names.add(citation.passage_id)
    return float(names.issuperset(question.supporting))
