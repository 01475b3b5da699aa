"""Numbered evidence: the numbers that an answer may cite, those it does cite, and the citations made from them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from ras_agent.marks import NOTE_FENCE, NUMBER, fenced, number_text
from ras_agent.prompts import fact_block, fact_line, history_block, passage_block, searches_block, text_history_block
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.support import best_bearing
from ras_agent.records import Citation, EvidenceLayout, Passage, Source, Step, Triple
from ras_agent.review import is_person, overruled
from ras_agent.text.overlap import best_sentence, sentences_of, support

_RUN = re.compile(rf"((?<![ \t])[ \t]*+)({NUMBER.live}(?:[ \t]*+{NUMBER.live})*+)")
_PART = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_LONGEST_RANGE = 20
_MOST_SUPPORTING = 2


@dataclass(frozen=True, slots=True)
class Cited:
    """Citations of an answer.

    bare: the text without bracketed numbers. numbered: the text with one number per passage, counted from 1.
    numbers: of the cited evidence, in the order of first mention. invented: numbers that stand for no evidence.
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
        for number in _expand(run[2]):
            if number in passage_ids:
                numbers[number] = None
                marks[places.setdefault(passage_ids[number], len(places) + 1)] = None
            else:
                invented[number] = None
        if marks:
            return run[1] + "".join(map(number_text, marks))
        return ""

    numbered = _RUN.sub(renumbered, text)
    return Cited(
        _RUN.sub("", text),
        numbered,
        tuple(numbers),
        tuple(invented),
    )


@dataclass(frozen=True, slots=True)
class NumberedEvidence:
    """Passages, numbered from 1, then facts. `unshown` passages have no number, but facts may come from them.

    chain: the hops; if there are any, what they found is shown behind their sub-queries. in_text: whether passages and
    facts are shown at all; if not, none of their numbers can be cited.
    """

    passages: tuple[Passage, ...] = ()
    facts: tuple[Triple, ...] = ()
    unshown: tuple[Passage, ...] = ()
    chain: tuple[Step, ...] = ()
    in_text: bool = True

    @classmethod
    def laid_out(
        cls, layout: EvidenceLayout, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]
    ) -> Self:
        """Number the evidence in the order in which `layout` shows it."""
        if layout in ("chain", "searches"):
            chained_ids = dict.fromkeys(fact_id for step in steps for fact_id in step.triple_ids)
            unchained = (fact for fact in graph.facts if fact.id not in chained_ids)
            chained = (graph.by_id[fact_id] for fact_id in chained_ids if fact_id in graph.by_id)
            return cls(
                (),
                (*unchained, *chained),
                tuple(passages),
                tuple(steps),
                layout == "chain",
            )
        if layout == "chain-of-text":
            return cls(
                tuple(passages),
                (),
                (),
                tuple(steps),
            )
        return cls(tuple(passages), graph.facts)

    def showing(self, facts: Sequence[Triple], passages: Sequence[Passage]) -> Self:
        """Return evidence that shows only `facts` and `passages`, some of which may be cut."""
        names = {passage.id for passage in passages}
        unshown = (passage for passage in (*self.passages, *self.unshown) if passage.id not in names)
        return replace(
            self,
            passages=tuple(passages),
            facts=tuple(facts),
            unshown=tuple(unshown),
        )

    def times(self) -> Counter[str]:
        """Count at how many hops each fact and passage is shown, by id."""
        if self.passages:
            hits = Counter(hit.passage.id for step in self.chain for hit in step.hits)
        else:
            hits = Counter()
        return hits + Counter(fact_id for step in self.chain for fact_id in step.triple_ids)

    def block(self) -> str:
        """Render the evidence for a prompt, and name the facts that a person has stated; "" for no evidence."""
        return "\n".join(filter(None, (self._numbered(), self._from_people())))

    def _from_people(self) -> str:
        """Describe the facts that a person has corrected, added or removed, which are right where texts differ."""
        first = 1 if self.chain else len(self.passages) + 1
        persons_numbers = [
            number_text(number)
            for number, fact in enumerate(self.facts if self.in_text else (), start=first)
            if any(is_person(source.extractor) for source in fact.sources)
        ]
        keys = {fact.key for fact in self.facts}  # a person may have added it again, or changed its writing alone
        if self.in_text:
            ruled_out = [fact_line(fact) for fact in overruled() if fact.key not in keys]
        else:
            ruled_out = []
        if persons_numbers:
            sentences = [f"A person has stated {', '.join(persons_numbers)}. It holds where texts say otherwise."]
        else:
            sentences = []
        sentences += (
            [f"A person has ruled out {', '.join(ruled_out)}. It does not hold, whatever texts say."]
            if ruled_out
            else []
        )
        if sentences:
            return fenced(NOTE_FENCE, "\n".join(sentences))
        return ""

    def _numbered(self) -> str:
        if not self.in_text:
            return searches_block(self.chain)
        if self.chain and self.passages:
            return text_history_block(self.passages, self.chain)
        if self.chain and self.facts:
            numbers = {fact.id: number for number, fact in enumerate(self.facts, start=1)}
            return history_block(
                QuestionGraph(self.facts),
                self.chain,
                repeated=True,
                numbers=numbers,
            )
        blocks = (passage_block(self.passages), fact_block(self.facts, first=len(self.passages) + 1))
        return "\n".join(filter(None, blocks))

    def frame(self) -> str:
        """Render the part of the evidence that does not depend on which facts and passages are shown; "" for none."""
        if not self.in_text:
            return self.block()
        if self.chain:
            return history_block(
                QuestionGraph(),
                self.chain,
                repeated=True,
            )
        return ""

    def passage_ids(self) -> dict[int, str]:
        """Map each citable number to a passage: the passage itself, or the given one that the fact was read in."""
        if self.in_text:
            return self._passages_behind()
        return {}

    def _passages_behind(self) -> dict[int, str]:
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
        behind = self._passages_behind()
        cited: dict[str, list[Triple]] = {}
        for number in numbers:
            facts = cited.setdefault(behind[number], [])
            if number > len(self.passages):
                facts.append(self.facts[number - 1 - len(self.passages)])
        passages = {passage.id: passage for passage in (*self.passages, *self.unshown)}
        facts_by_passage = self._facts_by_passage(cited)
        return tuple(
            _citation(place, passages[name], facts, facts_by_passage[name], (answer, question))
            for place, (name, facts) in enumerate(cited.items(), start=1)
        )

    def supporting(self, answer: str, question: str) -> tuple[Citation, ...]:
        """Cite the two passages with the sentences that share most with answer and question, the best first.

        Where facts alone are shown, cite those that share most instead.
        """
        if not self.passages:
            return self.citations(
                self._supporting_facts(answer, question),
                answer,
                question,
            )
        scored = []
        for place, passage in enumerate(self.passages):
            sentence, shared = best_sentence(sentences_of(passage.text), (answer, question))
            if sentence is not None:
                scored.append((-shared, place))
        best = [self.passages[place] for _, place in sorted(scored)[:_MOST_SUPPORTING]]
        facts_by_passage = self._facts_by_passage([passage.id for passage in best])
        return tuple(
            _citation(place, passage, (), facts_by_passage[passage.id], (answer, question))
            for place, passage in enumerate(best, start=1)
        )

    def _supporting_facts(self, answer: str, question: str) -> list[int]:
        """Return the facts whose words answer and question share most, by their numbers in the prompt, from 1.

        At most two are returned, the best of each passage; a fact that shares no word is none of them.
        """
        behind = self._passages_behind()
        scored = sorted(
            (-support(f"{fact.subject} {fact.predicate} {fact.object}", (answer, question)), number)
            for number, fact in enumerate(self.facts, start=1)
            if number in behind
        )
        best: dict[str, int] = {}
        for score, number in scored:
            if score < 0:
                best.setdefault(behind[number], number)
        return list(best.values())[:_MOST_SUPPORTING]

    def _ranks(self) -> dict[str, int]:
        return {passage.id: rank for rank, passage in enumerate((*self.passages, *self.unshown))}

    def _facts_by_passage(self, names: Iterable[str]) -> dict[str, list[Triple]]:
        """Map each passage of `names` to the facts that were read in it."""
        facts_of: dict[str, dict[int, Triple]] = {name: {} for name in names}
        for number, fact in enumerate(self.facts):
            for source in fact.sources:
                if source.passage_id in facts_of:
                    facts_of[source.passage_id][number] = fact
        return {name: list(facts.values()) for name, facts in facts_of.items()}


def _citation(
    place: int, passage: Passage, facts: Sequence[Triple], facts_of_passage: Sequence[Triple], phrases: tuple[str, str]
) -> Citation:
    """Cite a passage for `facts`, together with those of its facts that were read at the quoted place."""
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


def _quote(passage: Passage, facts: Sequence[Triple], phrases: tuple[str, str]) -> tuple[int, int]:
    for fact in facts:
        source = next((source for source in fact.sources if source.passage_id == passage.id), None)
        if source is not None and source.start < source.end <= len(passage.text):
            return source.start, source.end
        phrases = (fact.subject, fact.object)
    answer, question = phrases
    sentence = best_bearing(question, answer, passage)
    if sentence:
        return (sentence.start, sentence.end)
    return (0, len(passage.text))


def _source(fact: Triple, ranks: Mapping[str, int]) -> Source | None:
    """Return where a fact was read: its source in the first passage of `ranks` that states it, or None."""
    sources = [source for source in fact.sources if source.passage_id in ranks]
    return min(sources, key=lambda source: ranks[source.passage_id], default=None)


def _expand(run: str) -> list[int]:
    """Return the numbers in brackets: `[2, 4-6][9]` -> 2 4 5 6 9. An overlong range counts as its two ends."""
    numbers: list[int] = []
    for first, last in _PART.findall(run):
        low = int(first)
        high = int(last or first)
        numbers += range(low, high + 1) if low <= high <= low + _LONGEST_RANGE else (low, high)
    return numbers
