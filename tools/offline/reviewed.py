"""What a person has removed or corrected is read no more: its sentence gives way to the facts that are left of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ras_agent.protocols import Answerer
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Passage, Step, Triple
from ras_agent.review import overruled
from ras_agent.text.canonical import canonical_key
from ras_agent.text.sentences import sentence_spans


class AsReviewed:
    """Lets an answerer read the passages as a person has corrected them; it cites them as they are."""

    name = "offline"

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        """Return the answer as the passages and the person's facts write it."""
        changed = _corrected(graph, passages)
        if not changed:
            return self._answerer.answer(question, graph, passages, steps)
        now = [changed[one.id].passage if one.id in changed else one for one in passages]
        answer = self._answerer.answer(question, graph, now, _with(steps, changed))
        return replace(answer, citations=_where_read(answer.citations, changed))


def steps_as_reviewed(graph: QuestionGraph, steps: Sequence[Step]) -> Sequence[Step]:
    """Return the steps with the passages of their hits as a person has corrected them."""
    changed = _corrected(graph, [hit.passage for step in steps for hit in step.hits])
    return _with(steps, changed) if changed else steps


@dataclass(frozen=True, slots=True)
class _Told:
    """Holds a fact that is told behind a passage's text, at `start`, for the sentence `place` that it was read in."""

    start: int
    place: tuple[int, int]
    fact: str


@dataclass(frozen=True, slots=True)
class _Corrected:
    """Holds a passage as it is read now, the sentences in question blank, and its text as it was."""

    passage: Passage
    text: str
    told: tuple[_Told, ...]

    def where_read(self, citation: Citation) -> Citation:
        """Return a citation of this passage as a citation of the one that was found."""
        if citation.start < len(self.text):
            return citation
        told = next(one for one in reversed(self.told) if one.start <= citation.start)
        start, end = told.place
        return replace(citation, start=start, end=end, quote=self.text[start:end], triple_ids=(told.fact,))


def _corrected(graph: QuestionGraph, passages: Sequence[Passage]) -> dict[str, _Corrected]:
    """Return by id the passages that a person's decisions change."""
    gone = overruled()
    found = {one.id: (one, list(_sentences(one, gone))) for one in passages} if gone else {}
    return {name: _rewritten(passage, places, graph) for name, (passage, places) in found.items() if places}


def _sentences(passage: Passage, gone: Sequence[Triple]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences that state one of the facts `gone`, in order.

    They are those that it was read in; of several those that hold both its ends, as also where nobody knows which.
    """
    spans = sentence_spans(passage.text)
    found: set[tuple[int, int]] = set()
    for fact in gone:
        sources = [one for one in fact.sources if one.passage_id == passage.id]
        read = [span for span in spans if any(span[0] < one.end and one.start < span[1] for one in sources)]
        among = read if fact.sources else spans
        both = [span for span in among if _holds_ends(passage.text[slice(*span)], fact)]
        found.update(both or read)
    yield from sorted(found)


def _holds_ends(sentence: str, fact: Triple) -> bool:
    padded = f" {canonical_key(sentence)} "
    return all(f" {canonical_key(end)} " in padded for end in (fact.subject, fact.object))


def _rewritten(passage: Passage, places: Sequence[tuple[int, int]], graph: QuestionGraph) -> _Corrected:
    """Return a passage without the sentences at `places`; the facts of `graph` that were read there follow its text."""
    text = passage.text
    for start, end in places:  # blanks, so that all else keeps its place
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    told: list[_Told] = []
    for place in places:
        for fact in graph.facts:
            if any(
                one.passage_id == passage.id and one.start < place[1] and place[0] < one.end for one in fact.sources
            ):
                text = f"{text}\n\n"
                told.append(_Told(len(text), place, fact.id))
                text = f"{text}{sentence_of(fact)}"
    return _Corrected(replace(passage, text=text), passage.text, tuple(told))


def sentence_of(fact: Triple) -> str:
    """Return a fact as a sentence."""
    sentence = " ".join(f"{fact.subject} {fact.predicate} {fact.object}".split())
    return sentence + ("" if sentence.endswith((".", "!", "?")) else ".")


def _with(steps: Sequence[Step], changed: Mapping[str, _Corrected]) -> tuple[Step, ...]:
    return tuple(
        replace(
            step,
            hits=tuple(
                replace(hit, passage=changed[hit.passage.id].passage) if hit.passage.id in changed else hit
                for hit in step.hits
            ),
        )
        for step in steps
    )


def _where_read(citations: Sequence[Citation], changed: Mapping[str, _Corrected]) -> tuple[Citation, ...]:
    """Return citations of what was found; two of one place are one, with the facts of both."""
    found: dict[tuple[str, int, int], Citation] = {}
    for citation in citations:
        one = changed[citation.passage_id].where_read(citation) if citation.passage_id in changed else citation
        place = one.passage_id, one.start, one.end
        earlier = found.get(place, replace(one, triple_ids=()))
        found[place] = replace(earlier, triple_ids=tuple(dict.fromkeys((*earlier.triple_ids, *one.triple_ids))))
    return tuple(replace(one, number=number) for number, one in enumerate(found.values(), start=1))
