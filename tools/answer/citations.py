"""Numbered evidence: the numbers that an answer may cite, those it does cite, and the citations made from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ras_agent.marks import NUMBER, number_text
from ras_agent.prompts import fact_block, passage_block
from ras_agent.records import Citation, Passage, Source, Triple
from ras_agent.text.overlap import best_sentence, sentences_of

_RUN = re.compile(rf"((?<![ \t])[ \t]*+)({NUMBER.live}(?:[ \t]*+{NUMBER.live})*+)")
_PART = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_LONGEST_RANGE = 20
_MOST_SUPPORTING = 2


@dataclass(frozen=True, slots=True)
class Cited:
    """Holds an answer's citations.

    bare: the text without bracketed numbers. numbered: the text with one number per passage, counted from 1.
    numbers: those of the evidence, in the order of first mention. invented: those that stand for no evidence.
    """

    bare: str
    numbered: str
    numbers: tuple[int, ...]
    invented: tuple[int, ...]


def read_citations(text: str, passage_ids: Mapping[int, str]) -> Cited:
    """Read the bracketed numbers of `text`. `passage_ids` maps each number that may be cited to its passage."""
    numbers: dict[int, None] = {}
    invented: dict[int, None] = {}
    places: dict[str, int] = {}

    def renumbered(run: re.Match[str]) -> str:
        marks: dict[int, None] = {}
        for number in _expanded(run[2]):
            if number in passage_ids:
                numbers[number] = None
                marks[places.setdefault(passage_ids[number], len(places) + 1)] = None
            else:
                invented[number] = None
        return run[1] + "".join(map(number_text, marks)) if marks else ""

    numbered = _RUN.sub(renumbered, text)
    return Cited(_RUN.sub("", text), numbered, tuple(numbers), tuple(invented))


@dataclass(frozen=True, slots=True)
class NumberedEvidence:
    """Holds passages, numbered from 1, then facts. `unshown` passages have no number, but facts may come from them."""

    passages: tuple[Passage, ...] = ()
    facts: tuple[Triple, ...] = ()
    unshown: tuple[Passage, ...] = ()

    def block(self) -> str:
        """Render the evidence for a prompt; "" for none."""
        blocks = (passage_block(self.passages), fact_block(self.facts, first=len(self.passages) + 1))
        return "\n".join(filter(None, blocks))

    def passage_ids(self) -> dict[int, str]:
        """Map each citable number to a passage: the passage itself, or the given one that the fact was read in."""
        behind = {number: passage.id for number, passage in enumerate(self.passages, start=1)}
        ranks = self._ranks()
        for number, fact in enumerate(self.facts, start=len(self.passages) + 1):
            source = _source(fact, ranks)
            if source is not None:
                behind[number] = source.passage_id
        return behind

    def citations(self, numbers: Iterable[int], answer: str, question: str) -> tuple[Citation, ...]:
        """Return one citation for each passage behind the citable `numbers`, in their order.

        A citation quotes the place where the first cited fact of its passage was read. If no fact of it is cited, it
        quotes the sentence that shares most with answer and question.
        """
        behind = self.passage_ids()
        cited: dict[str, list[Triple]] = {}
        for number in numbers:
            facts = cited.setdefault(behind[number], [])
            if number > len(self.passages):
                facts.append(self.facts[number - 1 - len(self.passages)])
        given = {passage.id: passage for passage in (*self.passages, *self.unshown)}
        read = self._facts_by_passage(cited)
        return tuple(
            _citation(place, given[name], facts, read[name], (answer, question))
            for place, (name, facts) in enumerate(cited.items(), start=1)
        )

    def supporting(self, answer: str, question: str) -> tuple[Citation, ...]:
        """Cite the two passages with the sentences that share most with answer and question, the best first."""
        scored = []
        for place, passage in enumerate(self.passages):
            sentence, support = best_sentence(sentences_of(passage.text), (answer, question))
            if sentence is not None:
                scored.append((-support, place))
        best = [self.passages[place] for _, place in sorted(scored)[:_MOST_SUPPORTING]]
        read = self._facts_by_passage([passage.id for passage in best])
        return tuple(
            _citation(place, passage, (), read[passage.id], (answer, question))
            for place, passage in enumerate(best, start=1)
        )

    def _ranks(self) -> dict[str, int]:
        return {passage.id: rank for rank, passage in enumerate((*self.passages, *self.unshown))}

    def _facts_by_passage(self, names: Iterable[str]) -> dict[str, list[Triple]]:
        """Map each passage of `names` to the facts that were read in it."""
        found: dict[str, dict[int, Triple]] = {name: {} for name in names}
        for number, fact in enumerate(self.facts):
            for source in fact.sources:
                if source.passage_id in found:
                    found[source.passage_id][number] = fact
        return {name: list(facts.values()) for name, facts in found.items()}


def _citation(
    place: int, passage: Passage, facts: Sequence[Triple], read: Sequence[Triple], phrases: tuple[str, str]
) -> Citation:
    """Cite a passage for `facts`, with those of the facts `read` in it that are at the quoted place."""
    start, end = _quoted(passage, facts, phrases)
    here = Source(passage.id, start, end)
    there = [fact for fact in read if any(_overlap(source, here) for source in fact.sources)]
    ids = dict.fromkeys(fact.id for fact in (*facts, *there))
    return Citation(place, passage.id, passage.title, start, end, passage.text[start:end], tuple(ids))


def _quoted(passage: Passage, facts: Sequence[Triple], phrases: tuple[str, str]) -> tuple[int, int]:
    for fact in facts:
        source = next((source for source in fact.sources if source.passage_id == passage.id), None)
        if source is not None and source.start < source.end <= len(passage.text):
            return source.start, source.end
        phrases = (fact.subject, fact.object)
    sentence, _ = best_sentence(sentences_of(passage.text), phrases)
    return (sentence.start, sentence.end) if sentence else (0, len(passage.text))


def _source(fact: Triple, ranks: Mapping[str, int]) -> Source | None:
    """Return the source of a fact in a passage of `ranks`, in the first of several; None if there is none."""
    sources = [source for source in fact.sources if source.passage_id in ranks]
    return min(sources, key=lambda source: ranks[source.passage_id], default=None)


def _overlap(one: Source, other: Source) -> bool:
    return one.passage_id == other.passage_id and one.start < other.end and other.start < one.end


def _expanded(run: str) -> list[int]:
    """Return the numbers in brackets: `[2, 4-6][9]` -> 2 4 5 6 9. An overlong range counts as its two ends."""
    numbers: list[int] = []
    for first, last in _PART.findall(run):
        low, high = int(first), int(last or first)
        numbers += range(low, high + 1) if low <= high <= low + _LONGEST_RANGE else (low, high)
    return numbers
