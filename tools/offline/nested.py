"""A nested question is answered from the inside out: what it describes is named first, then takes its place there.

Which river flows through the city where the inventor of the telephone was born?
-> Who is the inventor of the telephone?  (Alexander Graham Bell)
-> In which city was Alexander Graham Bell born?  (Edinburgh)
-> Which river flows through Edinburgh?
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ras_agent.protocols import Answerer, Planner
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Passage, Plan, Step
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import name_spans
from ras_agent.text.words import stems
from ras_agent.tools.offline.question import head_type
from ras_agent.tools.offline.reading import read
from ras_agent.tools.offline.reviewed import steps_as_reviewed

_MOST_LINKS = 5  # a found name that is a description itself must not go on for ever
_TRUST = 0.35  # the least confidence from which a name replaces its description

# names are masked with zeros, so that they match as one thing and every offset stays
_NAME = r"(?:the )?\0+"
_DESCRIPTION = re.compile(
    rf"[Tt]he (?:[a-z-]+ )?(?P<noun>[a-z-]+) (?:"
    rf"(?P<of>of) (?:{_NAME}|(?:the )?[a-z-]+)(?: (?:of|for|by|in|from) {_NAME})*"
    rf"|(?:where|in which) (?P<who>{_NAME}) (?P<be>is|was|are|were) (?P<what>[a-z]+(?: [a-z]+(?:ed|n)\b)?)"
    r")(?![\w-])"
)
_SOUGHT = re.compile(r"\b(?:what|who|which) (?:is|was|are|were) $", re.IGNORECASE)
_SOUGHT_BEFORE = 12
_PLACES = frozenset({"birthplace", "hometown", "capital", "headquarters"})
_AGENT = re.compile(r"(?:or|er|ist|ian|ess|man)$")


@dataclass(frozen=True, slots=True)
class Description:
    """Characters `start` to `end` of a question, which describe one entity without naming it, and how to ask for it."""

    start: int
    end: int
    text: str
    question: str


def innermost(question: str) -> Description | None:
    """Return the last description that holds no other one; None if the question describes nothing.

    >>> innermost("Where was the inventor of the telephone born?").question
    'Who is the inventor of the telephone?'
    >>> innermost("Which river flows through the city where Bell was born?").question
    'In which city was Bell born?'
    """
    hidden = list(question)
    for start, end in name_spans(question):
        hidden[start:end] = "\0" * (end - start)
    masked = "".join(hidden)
    starts = [found.start() for found in re.finditer(r"\b[Tt]he ", masked)]
    for start in reversed(starts):
        match = _DESCRIPTION.match(masked, start)
        if match is None or (match["of"] and not (_is_somebody(match["noun"]) or match["noun"] in _PLACES)):
            continue  # "the museum of Bath" may be one of many, "the body of water" says of what sort
        # what is sought is not described: "Who was the mother of Mary Shelley?"
        if not _SOUGHT.search(masked[max(start - _SOUGHT_BEFORE, 0) : start]):
            return Description(*match.span(), question[slice(*match.span())], _asking(question, match))
    return None


def _asking(question: str, match: re.Match[str]) -> str:
    noun = match["noun"]

    def part(name: str) -> str:
        return question[slice(*match.span(name))]

    if match["who"]:
        return f"In which {noun} {part('be')} {part('who')} {part('what')}?"
    asks = "Who" if _is_somebody(noun) else "What"
    return f"{asks} is the{question[match.start() + 3 : match.end()]}?"


def _is_somebody(noun: str) -> bool:
    return head_type((noun,)) == "person" or _AGENT.search(noun) is not None


@dataclass(frozen=True, slots=True)
class Resolved:
    """Holds what is left of a question when its descriptions are replaced by the names found for them.

    question: with the names alone. explained: with the last description beside its name, which tells what is known and
    therefore no answer. names: those found. evidence: a citation for each. open: the description without a name yet.
    """

    question: str
    explained: str
    names: tuple[str, ...] = ()
    evidence: tuple[Citation, ...] = ()
    open: Description | None = None


def resolve(
    question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step], namer: Answerer
) -> Resolved:
    """Name the descriptions of a question, the innermost first, until one stays open or none is left."""
    left = Resolved(question, question)
    read_stems = {passage.id: passage.stems for passage in read(passages)}
    for _ in range(_MOST_LINKS):
        link = innermost(left.question)
        if link is None:
            break
        found = namer.answer(link.question, graph, about(left.names[-1:], passages), steps)
        told = frozenset[str]().union(*(read_stems[cited.passage_id] for cited in found.citations))
        unsure = found.abstained or (found.confidence is not None and found.confidence < _TRUST)
        if unsure or not _needed(link.text) <= told:
            return replace(left, open=link)
        before, after = left.question[: link.start], left.question[link.end :]
        left = Resolved(
            f"{before}{found.text}{after}",
            f"{before}{found.text}, {link.text},{after}",
            (*left.names, found.text),
            (*left.evidence, *found.citations[:1]),
        )
    return left


def _needed(description: str) -> set[str]:
    """Return the stems that a name's evidence has to hold: of the description's own names, else of its other words."""
    names = [description[start:end] for start, end in name_spans(description)]
    return set(stems(" ".join(names))) or set(stems(description)[1:])


def about(names: Sequence[str], passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages that hold every word of `names`, in order; all of them where none does."""
    needed = set(stems(" ".join(names)))
    return [one for one in passages if needed <= read([one])[0].stems] or list(passages)


class NestedPlanner:
    """Asks for the descriptions that cannot be named yet, one after the other; `plain` plans all other questions.

    namer: answers "Who is <description>?" from the graph, and abstains where it cannot.
    """

    name = "offline"

    def __init__(self, namer: Answerer, plain: Planner) -> None:
        self._namer, self._plain = namer, plain

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        steps = steps_as_reviewed(graph, steps)
        if not steps or innermost(question) is None:
            return self._plain.plan(question, graph, steps)
        passages = {hit.passage.id: hit.passage for step in steps for hit in step.hits}
        left = resolve(question, graph, tuple(passages.values()), steps, self._namer)
        subquery = left.open.question if left.open else left.question
        if canonical_key(subquery) not in {canonical_key(step.subquery) for step in steps}:
            known = f"named so far: {', '.join(left.names)}" if left.names else ""
            return Plan("subq", subquery, f"{left.open.text} has no name yet" if left.open else known)
        if left.open:
            return self._plain.plan(question, graph, steps)
        return Plan("sufficient", reason="every description in the question has a name")


class NestedAnswerer:
    """Names the descriptions in a question, then has `last` answer what is left, and cites what named them."""

    name = "offline"

    def __init__(self, namer: Answerer, last: Answerer) -> None:
        self._namer, self._last = namer, last

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        left = resolve(question, graph, passages, steps, self._namer)
        if left.open or not left.names:
            return self._last.answer(question, graph, passages, steps)
        read_now = about(left.names[-1:], passages)
        answer = self._last.answer(left.explained, graph, read_now, steps)
        if answer.abstained:
            answer = self._last.answer(left.question, graph, read_now, steps)
        if answer.abstained:
            as_asked = self._last.answer(question, graph, passages, steps)
            # what only led towards the answer is not the answer
            return answer if canonical_key(as_asked.text) in map(canonical_key, left.names) else as_asked
        cited = {(one.passage_id, one.start, one.end): one for one in (*left.evidence, *answer.citations)}
        numbered = tuple(replace(one, number=number) for number, one in enumerate(cited.values(), start=1))
        return replace(answer, citations=numbered)
