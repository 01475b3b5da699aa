"""Tests whether an answer depends on its displayed proof: it removes one sentence of the proof at a time, and
asks again.

If the answer stays the same without a sentence of its proof, it did not depend on it: another passage says the
same, or the answerer never needed the sentence. As a control, a sentence that is not cited is removed, after
which the answer should stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ras_agent.contracts.records import Citation, Passage, Source, Step
from ras_agent.eval.metrics.proofs import proof_citations
from ras_agent.eval.metrics.registry import Outcome
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.protocols import Answerer
from ras_agent.running.trace import Trace
from ras_agent.text.canonical import canonical_key
from ras_agent.text.sentences import sentence_spans


@dataclass(frozen=True, slots=True)
class Removal:
    """Holds the answer after the characters `start` to `end` of a passage were removed."""

    passage_id: str
    start: int
    end: int
    in_proof: bool
    """Whether they are a sentence of the proof; otherwise they are the control."""
    falls: bool
    """Whether the answer changed or was withheld without these characters."""
    answer: str
    """The answer without these characters; "" for an abstention."""


def removals(trace: Trace, answerer: Answerer) -> list[Removal]:
    """Ask again without each sentence of a run's proof, then without an uncited sentence as a control. Return
    the results.

    `answerer` is the run's answerer or another. It first answers from the whole evidence, and its later answers
    are compared with that answer. Return [] if the run shows no proof.
    """
    outcome = Outcome(
        trace.answer, trace.abstained, trace.citations, facts=trace.graph.by_id
    )
    proof = proof_citations(trace.question, outcome)
    if not proof:
        return []
    before = _answer(trace, answerer)
    found = []
    for number, one in enumerate([*proof, *_control(trace)]):
        after = _answer(without(trace, one), answerer)
        falls = canonical_key(after) != canonical_key(before)
        found.append(
            Removal(
                one.passage_id, one.start, one.end, number < len(proof), falls, after
            )
        )
    return found


def without(trace: Trace, citation: Citation) -> Trace:
    """Return a trace without a citation's characters in its passage, and without the facts that were read only
    there.

    The characters are replaced by blanks, so that other positions stay valid. A passage that becomes blank is
    dropped.
    """
    passage = trace.passages[citation.passage_id]
    blank = " " * (citation.end - citation.start)
    left = replace(
        passage,
        text=passage.text[: citation.start] + blank + passage.text[citation.end :],
    )
    changed = {**trace.passages, passage.id: left}
    passages = {}
    for name, one in changed.items():
        if one is not left or left.text.strip():
            passages[name] = one
    steps = tuple(_step(step, passages) for step in trace.steps)
    facts = []
    for fact in trace.graph.facts:
        sources = tuple(
            source for source in fact.sources if not _inside(source, citation)
        )
        if sources or not fact.sources:
            facts.append(replace(fact, sources=sources))
    return replace(
        trace, passages=passages, steps=steps, graph=QuestionGraph(tuple(facts))
    )


def _step(step: Step, passages: dict[str, Passage]) -> Step:
    hits = []
    for hit in step.hits:
        if passage := passages.get(hit.passage.id):
            hits.append(replace(hit, passage=passage))
    return replace(step, hits=tuple(hits))


def _inside(source: Source, citation: Citation) -> bool:
    overlaps = source.start < citation.end and citation.start < source.end
    return source.passage_id == citation.passage_id and overlaps


def _control(trace: Trace) -> Iterator[Citation]:
    """Yield the first sentence that is not cited, in the order of the run's passages."""
    for passage in trace.passages.values():
        for start, end in sentence_spans(passage.text):
            if not any(
                _inside(Source(passage.id, start, end), one) for one in trace.citations
            ):
                yield Citation(
                    0, passage.id, passage.title, start, end, passage.text[start:end]
                )
                return


def _answer(trace: Trace, answerer: Answerer) -> str:
    """Return the answerer's answer to the evidence of a run; "" if it abstains."""
    answer = answerer.answer(
        trace.question, trace.graph, tuple(trace.passages.values()), trace.steps
    )
    if answer.abstained:
        return ""
    return answer.text
