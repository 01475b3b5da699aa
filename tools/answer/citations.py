"""Numbered evidence: what an answer may cite, what it did cite, and what supports it where it cites nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ras_agent.prompts import fact_block, passage_block
from ras_agent.records import Citation, Passage, Source, Triple
from ras_agent.text.overlap import best_sentence, sentences_of

__all__ = ["Cited", "Evidence", "read_citations"]

_NUMBERS = r"\[\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*\]"
_RUN = re.compile(rf"([ \t]*)({_NUMBERS}(?:[ \t]*{_NUMBERS})*)")
_PART = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_LONGEST_RANGE = 20
_MOST_SUPPORTING = 2


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer's text without bracketed numbers, and with one number for each passage, counted from 1.

    numbers: of the evidence, in the order of first mention. invented: those that are no evidence.
    """

    bare: str
    numbered: str
    numbers: tuple[int, ...]
    invented: tuple[int, ...]


def read_citations(text: str, passage_ids: Mapping[int, str]) -> Cited:
    """The bracketed numbers of `text`; `passage_ids` names the passage behind each number that may be cited."""
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
        return run[1] + "".join(f"[{place}]" for place in marks) if marks else ""

    numbered = _RUN.sub(renumbered, text)
    return Cited(_RUN.sub("", text), numbered, tuple(numbers), tuple(invented))


@dataclass(frozen=True, slots=True)
class Evidence:
    """Passages numbered from 1, then facts. `unshown` passages have no number, but facts may come from them."""

    passages: tuple[Passage, ...] = ()
    facts: tuple[Triple, ...] = ()
    unshown: tuple[Passage, ...] = ()

    def block(self) -> str:
        """As prompts show it; blank for none."""
        blocks = (passage_block(self.passages), fact_block(self.facts, first=len(self.passages) + 1))
        return "\n".join(filter(None, blocks))

    def passage_ids(self) -> dict[int, str]:
        """The passage behind each number: itself, or the given one that a fact was read in, if there is one."""
        behind = {number: passage.id for number, passage in enumerate(self.passages, start=1)}
        for number, fact in enumerate(self.facts, start=len(self.passages) + 1):
            source = self._source(fact)
            if source is not None:
                behind[number] = source.passage_id
        return behind

    def citations(self, numbers: Iterable[int], answer: str, question: str) -> tuple[Citation, ...]:
        """One citation for each passage behind citable `numbers`, in their order.

        It quotes where the first cited fact was read; without any, what says most of answer and question.
        """
        behind = self.passage_ids()
        cited: dict[str, list[Triple]] = {}
        for number in numbers:
            facts = cited.setdefault(behind[number], [])
            if number > len(self.passages):
                facts.append(self.facts[number - 1 - len(self.passages)])
        given = {passage.id: passage for passage in (*self.passages, *self.unshown)}
        return tuple(
            self._citation(place, given[name], facts, (answer, question))
            for place, (name, facts) in enumerate(cited.items(), start=1)
        )

    def supporting(self, answer: str, question: str) -> tuple[Citation, ...]:
        """Citations of the two passages whose sentences share most with answer and question, the best first."""
        scored = []
        for place, passage in enumerate(self.passages):
            sentence, support = best_sentence(sentences_of(passage.text), (answer, question))
            if sentence is not None:
                scored.append((-support, place))
        best = [self.passages[place] for _, place in sorted(scored)[:_MOST_SUPPORTING]]
        return tuple(self._citation(place, passage, (), (answer, question)) for place, passage in enumerate(best, 1))

    def _citation(self, place: int, passage: Passage, facts: Sequence[Triple], phrases: tuple[str, str]) -> Citation:
        start, end = self._quoted(passage, facts, phrases)
        ids = dict.fromkeys(fact.id for fact in (*facts, *self._read_at(passage, start, end)))
        return Citation(place, passage.id, passage.title, start, end, passage.text[start:end], tuple(ids))

    def _quoted(self, passage: Passage, facts: Sequence[Triple], phrases: tuple[str, str]) -> tuple[int, int]:
        for fact in facts:
            source = self._source(fact)
            if source is not None and source.start < source.end <= len(passage.text):
                return source.start, source.end
            phrases = (fact.subject, fact.object)
        sentence, _ = best_sentence(sentences_of(passage.text), phrases)
        return (sentence.start, sentence.end) if sentence else (0, len(passage.text))

    def _read_at(self, passage: Passage, start: int, end: int) -> list[Triple]:
        """Facts read within characters `start` to `end`."""
        here = Source(passage.id, start, end)
        return [fact for fact in self.facts if any(_overlap(source, here) for source in fact.sources)]

    def _source(self, fact: Triple) -> Source | None:
        """The source of a fact whose passage was given, the first one retrieved of several."""
        ranks = {passage.id: rank for rank, passage in enumerate((*self.passages, *self.unshown))}
        sources = [source for source in fact.sources if source.passage_id in ranks]
        return min(sources, key=lambda source: ranks[source.passage_id], default=None)


def _overlap(one: Source, other: Source) -> bool:
    return one.passage_id == other.passage_id and one.start < other.end and other.start < one.end


def _expanded(run: str) -> list[int]:
    """`[2, 4-6][9]` -> 2 4 5 6 9; a range too long to be one is its two ends."""
    numbers: list[int] = []
    for first, last in _PART.findall(run):
        low, high = int(first), int(last or first)
        numbers += range(low, high + 1) if low <= high <= low + _LONGEST_RANGE else (low, high)
    return numbers
