"""The planner of the offline mode: it takes a question apart, looks up what is compared, and follows bridges."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Plan, Step, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import is_name
from ras_agent.text.words import fold, stem, stem_set
from ras_agent.tools.offline.chain import Chain, follow, passages_of
from ras_agent.tools.offline.evidence import ENOUGH, QuestionEvidence, gather
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import ReadPassage
from ras_agent.tools.offline.told import steps_as_reviewed

_MOST_BRIDGES = 3


class OfflinePlanner:
    """Takes the question apart with the reader, and goes on by rules where that does not lead to an answer.

    What the question describes is asked for, the innermost first, and the answers take its place. Then the whole
    question is asked, and what it compares is looked up ("Who is older, A or B?"). Else the planner follows bridges:
    names in what has been read, each asked for together with the words of the question that its passage leaves open,
    until two linked passages explain the question, `most_bridges` have been followed, or none is left.
    """

    name = "offline"

    def __init__(self, reader: Reader, *, most_bridges: int = _MOST_BRIDGES) -> None:
        self._reader, self._most_bridges = reader, most_bridges

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next sub-query, or sufficient; the reason says what has been found and what is missing."""
        steps = steps_as_reviewed(graph, steps)
        chain = follow(question, self._reader, steps, passages_of(steps))
        if chain.open:
            return Plan("subq", chain.open, _so_far(chain))
        if chain.answered:
            return Plan("sufficient", reason=f"{_so_far(chain)}; so the answer is {chain.answered.text}")
        asked = {canonical_key(step.subquery) for step in steps}
        if canonical_key(question) not in asked:
            return Plan("subq", question, _so_far(chain) or "first the question as it is asked")
        evidence = gather(question, steps)
        if evidence.asked.compared:
            return _compare(evidence, asked)
        explained = evidence.explained()
        if explained >= ENOUGH:
            return Plan("sufficient", reason="two passages, of which one names the other, tell of all that is asked")
        if len(steps) > self._most_bridges:
            leads = "one more name has" if self._most_bridges == 1 else f"{self._most_bridges} more names have"
            return Plan("sufficient", reason=f"{leads} been looked up, which is the most; what was read has to do")
        return _follow(evidence, graph, asked)


def _so_far(chain: Chain) -> str:
    """Say what the links have found: "the inventor of the telephone is Alexander Graham Bell"."""
    return "; ".join(f"{link.description} is {link.found.text}" for link in chain.links)


def _compare(evidence: QuestionEvidence, asked: Set[str]) -> Plan:
    for name in evidence.asked.compared:
        if not evidence.has_read(name) and canonical_key(name) not in asked:
            reason = f"the question compares {name} with another; nothing has been read about it yet"
            return Plan("subq", name, reason)
    return Plan("sufficient", reason="both that the question compares have been looked up")


def _follow(evidence: QuestionEvidence, graph: QuestionGraph, asked: Set[str]) -> Plan:
    earlier = [f" {subquery} " for subquery in asked - {canonical_key(evidence.asked.question)}]
    for bridge in bridges(evidence, graph):
        if not any(f" {canonical_key(bridge.name)} " in subquery for subquery in earlier):
            return Plan("subq", bridge.subquery, f"{bridge.name} may lead on: {bridge.fact}")
    return Plan("sufficient", reason="no name is left that may lead on")


# what the parts of a score weigh; set on the tuning half and two training sets, and flat around these values
_COVERED = 2.0
_FIRST_RANK = 2.0
_CLASS = 1.0
_ALREADY_READ = -1.0


@dataclass(frozen=True, slots=True)
class Bridge:
    """Holds a name worth looking up, the fact that suggests it, and the question's words that its passage lacks."""

    name: str
    fact: Triple
    score: float
    missing: tuple[str, ...]

    @property
    def subquery(self) -> str:
        return " ".join((self.name, *self.missing))


def bridges(evidence: QuestionEvidence, graph: QuestionGraph) -> list[Bridge]:
    """Return the candidates, the most promising first, one for each name; ties in order of reading.

    A name scores by the share of the question that its sentence and the fact's other end cover, by the rank of its
    passage, by how near it is to words of the question and how many of them its predicate holds, and for being of
    a class that the question names ("Southeastern Conference" for "a conference").
    """
    classes = _classes(graph)
    best: dict[str, Bridge] = {}
    for fact in graph.facts:
        for source in fact.sources:
            read = evidence.passages.get(source.passage_id)
            if read is None:
                continue
            sentence = read.text[source.start : source.end]
            for name, other in ((fact.object, fact.subject), (fact.subject, fact.object)):
                if not is_name(name):
                    continue
                key = canonical_key(name)
                score = _score(evidence, read, sentence, fact, name, other)
                score += _CLASS * bool(classes[key] & evidence.plain)
                if key not in best or score > best[key].score:
                    best[key] = Bridge(name, fact, score, tuple(evidence.missing(read.stems | stem_set(name))))
    return sorted(best.values(), key=lambda bridge: -bridge.score)


def _score(evidence: QuestionEvidence, read: ReadPassage, sentence: str, fact: Triple, name: str, other: str) -> float:
    own, plain = stem_set(name), evidence.plain
    return (
        _COVERED * (evidence.coverage(stem_set(sentence) - own) + evidence.coverage(stem_set(other) - own))
        + _FIRST_RANK / (1 + evidence.ranks[read.id])
        + _nearness(plain - own, _in_order(sentence), _in_order(name))
        + len(plain & (stem_set(fact.predicate) - own)) / max(1, len(plain))
        + _CLASS * bool(own & plain)
        + _ALREADY_READ * evidence.has_read(name)
    )


_WORD = re.compile(r"\w+")


def _in_order(text: str) -> list[str]:
    """Return the stem of every word, function words too."""
    return [stem(word) for word in _WORD.findall(fold(text))]


def _nearness(wanted: Set[str], order: list[str], name: list[str]) -> float:
    """Return the sum over wanted stems in the sentence of 1 / (1 + words between it and the name)."""
    starts = [at for at in range(len(order)) if name and order[at : at + len(name)] == name]
    nearest: dict[str, int] = {}
    for at, word in enumerate(order if starts else ()):
        if word in wanted:
            distance = min(min(abs(at - start), abs(at - start - len(name) + 1)) for start in starts)
            nearest[word] = min(distance, nearest.get(word, distance))
    return sum(1 / (1 + distance) for distance in nearest.values())


def _classes(graph: QuestionGraph) -> defaultdict[str, set[str]]:
    """Canonical key -> stems of what the graph says the entity is."""
    classes: defaultdict[str, set[str]] = defaultdict(set)
    for fact in graph.facts:
        if fact.predicate in ("is", "are", "was", "were"):
            classes[canonical_key(fact.subject)] |= stem_set(fact.object)
    return classes
