"""Numbers the evidence in a prompt, and reads the numbers in an answer as citations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from ras_agent.contracts.marks import NOTE_FENCE, NUMBER, fenced, number_text
from ras_agent.contracts.records import (
    Citation,
    EvidenceLayout,
    Passage,
    Source,
    Step,
    Triple,
    is_person,
)
from ras_agent.prompts import (
    fact_block,
    fact_line,
    history_block,
    passage_block,
    searches_block,
    text_history_block,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.support import best_bearing
from ras_agent.running.review import overruled
from ras_agent.text.overlap import best_sentence, sentences_of, support
from ras_agent.tools.answer.forms import AnswerForm

_RUN = re.compile(rf"((?<![ \t])[ \t]*+)({NUMBER.live}(?:[ \t]*+{NUMBER.live})*+)")
_PART = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_LONGEST_RANGE = 20
_MOST_SUPPORTING = 2


@dataclass(frozen=True, slots=True)
class Cited:
    """Holds an answer's text and the evidence numbers that it cites."""

    bare: str
    """The text without bracketed numbers."""
    numbered: str
    """The text in which evidence numbers are replaced by passage numbers, counted from 1 in the order of citation."""
    numbers: tuple[int, ...]
    """The cited evidence numbers, in the order of first mention."""
    invented: tuple[int, ...]
    """Numbers in the text that belong to no evidence."""

    def text(self, form: AnswerForm) -> str:
        """Return the text of the answer. Numbers are kept only if the form is prose."""
        if form.prose:
            return self.numbered
        return self.bare


def read_citations(text: str, passage_ids: Mapping[int, str]) -> Cited:
    """Parse the bracketed numbers in the text of an answer.

    Args:
        passage_ids: the id of the passage that each citable number refers to.
    """
    numbers: dict[int, None] = {}
    invented: dict[int, None] = {}
    places: dict[str, int] = {}

    def renumbered(run: re.Match[str]) -> str:
        marks: dict[int, None] = {}
        for number in _expand(run[2]):
            name = passage_ids.get(number)
            if name is None:
                invented[number] = None
                continue
            numbers[number] = None
            place = places.setdefault(name, len(places) + 1)
            marks[place] = None
        spaces = run[1] if marks else ""
        return spaces + "".join(map(number_text, marks))

    return Cited(
        bare=_RUN.sub("", text),
        numbered=_RUN.sub(renumbered, text),
        numbers=tuple(numbers),
        invented=tuple(invented),
    )


@dataclass(frozen=True, slots=True)
class NumberedEvidence:
    """Holds the evidence for a prompt: passages, numbered from 1, then facts."""

    passages: tuple[Passage, ...] = ()
    """The passages that are shown."""
    facts: tuple[Triple, ...] = ()
    """Facts, numbered after the passages; a fact may come from an unshown passage."""
    unshown: tuple[Passage, ...] = ()
    """Passages without a number, which may be cited through their facts."""
    chain: tuple[Step, ...] = ()
    """The searches of the run; if there are any, each sub-query is shown with its results."""
    in_text: bool = True
    """Whether passages and facts are shown as text; if not, their numbers cannot be cited."""

    @classmethod
    def laid_out(
        cls,
        layout: EvidenceLayout,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Self:
        """Return the evidence, numbered in the order in which `layout` shows it."""
        shown = tuple(passages)
        if layout == "chain-of-text":
            return cls(shown, chain=tuple(steps))
        if layout not in ("chain", "searches"):
            return cls(shown, graph.facts)
        of_a_hop = dict.fromkeys(
            fact_id for step in steps for fact_id in step.triple_ids
        )
        without_hop = [fact for fact in graph.facts if fact.id not in of_a_hop]
        return cls(
            facts=(*without_hop, *graph.with_ids(of_a_hop)),
            unshown=shown,
            chain=tuple(steps),
            in_text=layout == "chain",
        )

    def showing(self, facts: Sequence[Triple], passages: Sequence[Passage]) -> Self:
        """Return the evidence with only these facts and passages, some of which may be shortened."""
        names = {passage.id for passage in passages}
        unshown = [
            passage for passage in self._all_passages() if passage.id not in names
        ]
        return replace(
            self, passages=tuple(passages), facts=tuple(facts), unshown=tuple(unshown)
        )

    def _all_passages(self) -> tuple[Passage, ...]:
        return self.passages + self.unshown

    def times(self) -> Counter[str]:
        """Return how many hops show each fact and passage, by id."""
        times = Counter[str]()
        for step in self.chain:
            times.update(step.triple_ids)
            if self.passages:
                times.update(hit.passage.id for hit in step.hits)
        return times

    def block(self) -> str:
        """Return the evidence as a block of a prompt, with a note on facts that people edited; "" without evidence."""
        blocks = (self._numbered(), self._from_people())
        return "\n".join(filter(None, blocks))

    def _from_people(self) -> str:
        """Return a note on the facts that a person corrected, added or removed, which override the texts; "" if there are
        no such facts.
        """
        if not self.in_text:
            return ""
        first = 1 if self.chain else len(self.passages) + 1
        stated = []
        for number, fact in enumerate(self.facts, start=first):
            if any(is_person(source.extractor) for source in fact.sources):
                stated.append(number_text(number))
        # a removed fact may have been added again, or changed only in its spelling
        keys = {fact.key for fact in self.facts}
        ruled_out = [fact_line(fact) for fact in overruled() if fact.key not in keys]
        sentences = []
        if stated:
            sentences.append(
                f"A person has stated {', '.join(stated)}. It holds where texts say otherwise."
            )
        if ruled_out:
            sentences.append(
                f"A person has ruled out {', '.join(ruled_out)}. It does not hold, whatever texts say."
            )
        return fenced(NOTE_FENCE, "\n".join(sentences)) if sentences else ""

    def _numbered(self) -> str:
        if not self.in_text:
            return searches_block(self.chain)
        if self.chain and self.passages:
            return text_history_block(self.passages, self.chain)
        if self.chain and self.facts:
            numbers = {
                fact.id: number for number, fact in enumerate(self.facts, start=1)
            }
            return history_block(
                QuestionGraph(self.facts), self.chain, repeated=True, numbers=numbers
            )
        first = len(self.passages) + 1
        blocks = (passage_block(self.passages), fact_block(self.facts, first))
        return "\n".join(filter(None, blocks))

    def frame(self) -> str:
        """Return the part of the block that does not depend on which facts and passages are shown; "" if there is no
        such part.
        """
        if not self.in_text:
            return self.block()
        if not self.chain:
            return ""
        return history_block(QuestionGraph(), self.chain, repeated=True)

    def passage_ids(self) -> dict[int, str]:
        """Return the id of the passage that each citable number refers to.

        A fact's number refers to the best ranked passage in which the fact was read.
        """
        if not self.in_text:
            return {}
        return self._passages_behind()

    def _passages_behind(self) -> dict[int, str]:
        behind = {
            number: passage.id for number, passage in enumerate(self.passages, start=1)
        }
        ranks = {passage.id: rank for rank, passage in enumerate(self._all_passages())}
        for number, fact in enumerate(self.facts, start=len(self.passages) + 1):
            names = [
                source.passage_id
                for source in fact.sources
                if source.passage_id in ranks
            ]
            if names:
                behind[number] = min(names, key=ranks.__getitem__)
        return behind

    def citations(
        self, numbers: Iterable[int], answer: str, question: str
    ) -> tuple[Citation, ...]:
        """Return one citation for each passage that the citable `numbers` refer to, in their order.

        A citation quotes the sentence in which the first cited fact of its passage was read. If no fact of the
        passage is cited, it quotes the sentence that shares most words with answer and question.
        """
        behind = self._passages_behind()
        cited: dict[str, list[Triple]] = {}
        for number in numbers:
            facts = cited.setdefault(behind[number], [])
            place = number - 1 - len(self.passages)
            if place >= 0:
                facts.append(self.facts[place])
        return self._cite(cited, answer, question)

    def _cite(
        self, cited: Mapping[str, Sequence[Triple]], answer: str, question: str
    ) -> tuple[Citation, ...]:
        """Return a citation for each passage.

        Args:
            cited: maps a passage's id to the cited facts that were read in it.
        """
        passages = {passage.id: passage for passage in self._all_passages()}
        citations = []
        for place, (name, facts) in enumerate(cited.items(), start=1):
            own = [
                fact
                for fact in self.facts
                if any(source.passage_id == name for source in fact.sources)
            ]
            citation = _citation(place, passages[name], facts, own, (answer, question))
            citations.append(citation)
        return tuple(citations)

    def supporting(self, answer: str, question: str) -> tuple[Citation, ...]:
        """Return citations of the two passages with the sentences that share most words with answer and question, best
        first.

        If only facts are shown, the facts that share most words decide instead.
        """
        phrases = (answer, question)
        if not self.passages:
            return self.citations(self._supporting_facts(phrases), answer, question)
        scored = []
        for place, passage in enumerate(self.passages):
            sentence, shared = best_sentence(sentences_of(passage.text), phrases)
            if sentence is not None:
                scored.append((-shared, place))
        best = sorted(scored)[:_MOST_SUPPORTING]
        names = [self.passages[place].id for _, place in best]
        return self._cite(dict.fromkeys(names, ()), answer, question)

    def _supporting_facts(self, phrases: tuple[str, str]) -> list[int]:
        """Return the numbers, from 1, of the facts that share most words with the phrases.

        At most two are returned, each from a different passage; facts that share no word are left out.
        """
        behind = self._passages_behind()
        scored = []
        for number, fact in enumerate(self.facts, start=1):
            shared = support(f"{fact.subject} {fact.predicate} {fact.object}", phrases)
            if shared > 0 and number in behind:
                scored.append((-shared, number))
        best: dict[str, int] = {}
        for _, number in sorted(scored):
            best.setdefault(behind[number], number)
        return list(best.values())[:_MOST_SUPPORTING]


def _citation(
    place: int,
    passage: Passage,
    facts: Sequence[Triple],
    facts_of_passage: Sequence[Triple],
    phrases: tuple[str, str],
) -> Citation:
    """Return a citation of a passage, with `facts` and the passage's other facts that were read in the quoted text."""
    start, end = _quote(passage, facts, phrases)
    here = Source(passage.id, start, end)
    quoted_facts = [fact for fact in facts_of_passage if fact.was_read_in(here)]
    ids = dict.fromkeys(fact.id for fact in (*facts, *quoted_facts))
    return Citation(
        place,
        passage.id,
        passage.title,
        start,
        end,
        passage.text[start:end],
        tuple(ids),
    )


def _quote(
    passage: Passage, facts: Sequence[Triple], phrases: tuple[str, str]
) -> tuple[int, int]:
    for fact in facts:
        for source in fact.sources:
            if source.passage_id == passage.id:
                if source.start < source.end <= len(passage.text):
                    return source.start, source.end
                break
        phrases = (fact.subject, fact.object)
    answer, question = phrases
    sentence = best_bearing(question, answer, passage)
    if sentence:
        return sentence.start, sentence.end
    return 0, len(passage.text)


def _expand(run: str) -> list[int]:
    """Return the numbers in brackets: `[2, 4-6][9]` -> 2 4 5 6 9.

    If a range is too long, only its two ends are returned.
    """
    numbers: list[int] = []
    for first, last in _PART.findall(run):
        low = int(first)
        high = int(last or first)
        if low <= high <= low + _LONGEST_RANGE:
            numbers += range(low, high + 1)
        else:
            numbers += [low, high]
    return numbers
