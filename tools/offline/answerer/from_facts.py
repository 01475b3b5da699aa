"""Answers from a part of the evidence: from the facts alone, or from the passages alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ras_agent.protocols import Answerer
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Passage, Source, Step, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.offline.reviewed import sentence_of


class FromFacts:
    """Lets an answerer read the graph's facts, as sentences about their subjects, in place of the passages.

    Its citations are of the places where the facts were read.
    """

    name = "offline"

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        """Return the answer as the facts write it; it cites `passages`, which are not read."""
        pages, there = _pages(graph.facts)
        answer = self._answerer.answer(question, QuestionGraph(there), pages, steps)
        given = {passage.id: passage for passage in passages}
        return replace(answer, citations=_where_read(answer.citations, graph, given))


class FromPassages:
    """Lets an answerer read the passages without the graph's facts."""

    name = "offline"

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        """Return the answer as the passages write it."""
        return self._answerer.answer(question, QuestionGraph(), passages, steps)


def _pages(facts: Sequence[Triple]) -> tuple[list[Passage], tuple[Triple, ...]]:
    """Return a page for each subject with a paragraph for each of its facts, and the facts as read there."""
    subjects: dict[str, str] = {}
    texts: dict[str, str] = {}
    there = []
    for fact in facts:
        key = canonical_key(fact.subject)
        subjects.setdefault(key, fact.subject)
        before = f"{texts[key]}\n\n" if key in texts else ""
        texts[key] = f"{before}{sentence_of(fact)}"
        there.append(replace(fact, sources=(Source(key, len(before), len(texts[key])),)))
    return [Passage(key, text, subjects[key]) for key, text in texts.items()], tuple(there)


def _where_read(
    citations: Sequence[Citation], graph: QuestionGraph, passages: Mapping[str, Passage]
) -> tuple[Citation, ...]:
    """Return a citation for each place in `passages` where a fact was first read that `citations` name."""
    found: dict[tuple[str, int, int], dict[str, None]] = {}
    for citation in citations:
        for fact in (graph.by_id[name] for name in citation.triple_ids if name in graph.by_id):
            source = next((one for one in fact.sources if one.passage_id in passages), None)
            if source is not None:
                place = source.passage_id, source.start, min(source.end, len(passages[source.passage_id].text))
                found.setdefault(place, {})[fact.id] = None
    return tuple(
        Citation(number, name, passages[name].title, start, end, passages[name].text[start:end], tuple(ids))
        for number, ((name, start, end), ids) in enumerate(found.items(), start=1)
    )
