"""Gives an answerer the evidence in another form: only the facts, only the passages, or passages corrected by a
person.

Facts are written as sentences in passages; a fact that an answer cites is cited where it was first read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ras_agent.contracts.records import (
    Answer,
    Citation,
    EvidenceLayout,
    Passage,
    Source,
    Step,
    Triple,
    passages_found,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.protocols import Answerer
from ras_agent.running.review import overruled
from ras_agent.text.canonical import canonical_key
from ras_agent.text.overlap import holds
from ras_agent.text.sentences import sentence_spans
from ras_agent.tools.index.stated_facts import sentence_of
from ras_agent.tools.offline.reading import blanked


class WithLayout:
    """Wraps an answerer, which reads the evidence in another form, and cites the original passages.

    Sentences with a fact that a person removed or corrected are left out; their other facts are kept.
    """

    name = "offline"

    def __init__(self, answerer: Answerer, layout: EvidenceLayout | None) -> None:
        """Wrap an answerer.

        Args:
            layout: "chain" shows only the graph's facts, as sentences about their subjects, "chain-of-text" only
                the passages, any other layout both.
        """
        self._answerer = answerer
        self._layout = layout

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return the wrapped answerer's answer, with citations of the original passages."""
        if self._layout == "chain":
            pages, rewritten = _pages(graph)
        else:
            now, rewritten = _corrected(graph, passages)
            pages = [now.get(one.id, one) for one in passages]
            steps = _with(steps, now)
        read = QuestionGraph() if self._layout == "chain-of-text" else rewritten
        answer = self._answerer.answer(question, read, pages, steps)
        return replace(
            answer, citations=_where_read(answer.citations, rewritten.facts, passages)
        )


def _pages(graph: QuestionGraph) -> tuple[list[Passage], QuestionGraph]:
    """Return the facts as passages, one for each subject, and the facts with their places there as sources."""
    pages: dict[str, Passage] = {}
    rewritten: list[Triple] = []
    for fact in graph.facts:
        key = f"facts about {canonical_key(fact.subject)}"
        page = pages.get(key, Passage(key, "", fact.subject))
        pages[key], source = _telling(fact, page)
        sources = (*fact.sources, source)
        rewritten.append(replace(fact, sources=sources))
    return list(pages.values()), QuestionGraph(tuple(rewritten))


def steps_as_reviewed(graph: QuestionGraph, steps: Sequence[Step]) -> Sequence[Step]:
    """Return the steps, with the passages of their hits as corrected by a person."""
    now, _ = _corrected(graph, passages_found(steps))
    return _with(steps, now)


def _corrected(
    graph: QuestionGraph, passages: Sequence[Passage]
) -> tuple[dict[str, Passage], QuestionGraph]:
    """Return, by id, the passages that a person's decisions change, and the facts with their places there."""
    gone = overruled()
    now: dict[str, Passage] = {}
    facts = {fact.id: fact for fact in graph.facts}
    for passage in passages if gone else ():
        text = passage.text
        places = list(_sentences(passage, gone))
        for start, end in places:
            text = blanked(text, start, end)
        changed = replace(passage, text=text)
        for fact in graph.facts:
            if any(fact.was_read_in(Source(passage.id, *place)) for place in places):
                changed, source = _telling(fact, changed)
                facts[fact.id] = replace(
                    facts[fact.id], sources=(*facts[fact.id].sources, source)
                )
        if places:
            now[passage.id] = changed
    return now, QuestionGraph(tuple(facts.values()))


def _telling(fact: Triple, passage: Passage) -> tuple[Passage, Source]:
    """Return a passage with a fact added as a paragraph, and the fact's place in it."""
    before = f"{passage.text}\n\n" if passage.text else ""
    stated = sentence_of(fact.subject, fact.predicate, fact.object)
    text = before + stated
    place = Source(passage.id, len(before), len(text))
    return replace(passage, text=text), place


def _sentences(passage: Passage, gone: Sequence[Triple]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences that state one of the facts `gone`, in order.

    These are the sentences in which the fact was read, or only those of them that name both subject and object, if
    there are any. If it is unknown where a fact was read, all sentences with subject and object are taken.
    """
    spans = sentence_spans(passage.text)
    found: set[tuple[int, int]] = set()
    for fact in gone:
        read = [span for span in spans if fact.was_read_in(Source(passage.id, *span))]
        among = read if fact.sources else spans
        both: list[tuple[int, int]] = []
        for start, end in among:
            text = passage.text[start:end]
            if holds(text, fact.subject) and holds(text, fact.object):
                both.append((start, end))
        found.update(both or read)
    yield from sorted(found)


def _with(steps: Sequence[Step], now: dict[str, Passage]) -> Sequence[Step]:
    """Return the steps with the passages of their hits replaced by their corrected form."""
    if not now:
        return steps
    changed: list[Step] = []
    for step in steps:
        hits = []
        for hit in step.hits:
            passage = now.get(hit.passage.id, hit.passage)
            hits.append(replace(hit, passage=passage))
        changed.append(replace(step, hits=tuple(hits)))
    return changed


_Place = tuple[str, int, int]
"""A passage's id, and the start and end of a span in it."""


def _where_read(
    citations: Sequence[Citation],
    rewritten: Sequence[Triple],
    passages: Sequence[Passage],
) -> tuple[Citation, ...]:
    """Return the citations for `passages`, each place once.

    A fact in a passage that was made from facts is cited where it was first read.
    """
    given = {passage.id: passage for passage in passages}
    found: dict[_Place, list[str]] = {}
    for citation in citations:
        page = given.get(citation.passage_id)
        if page is not None and citation.end <= len(page.text):
            place = (citation.passage_id, citation.start, citation.end)
            ids = found.setdefault(place, [])
            ids += citation.triple_ids
            continue
        here = Source(citation.passage_id, citation.start, citation.end)
        for fact in rewritten:
            first = _first_place(fact, given)
            if first is not None and fact.was_read_in(here):
                ids = found.setdefault(first, [])
                ids.append(fact.id)
    cited: list[Citation] = []
    for (name, start, end), ids in found.items():
        page = given[name]
        facts = tuple(dict.fromkeys(ids))
        number = len(cited) + 1
        quote = page.text[start:end]
        cited.append(Citation(number, name, page.title, start, end, quote, facts))
    return tuple(cited)


def _first_place(fact: Triple, given: Mapping[str, Passage]) -> _Place | None:
    """Return the first place where a fact was read in one of the given passages; None if there is none."""
    for source in fact.sources:
        page = given.get(source.passage_id)
        if page is None:
            continue
        end = min(source.end, len(page.text))
        if source.start < end:
            return source.passage_id, source.start, end
    return None
