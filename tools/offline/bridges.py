"""Bridge entities: names in what has been read that could lead to what is still missing."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import is_name
from ras_agent.text.words import fold, stem, stems
from ras_agent.tools.offline.evidence import Evidence, ReadPassage

__all__ = ["COPULAS", "Bridge", "bridges"]

_WORD = re.compile(r"\w+")
COPULAS = frozenset({"is", "are", "was", "were"})
"""Predicates that say what an entity is."""

# what the parts of a score weigh; set on the tuning half and two training sets, and flat around these values
_COVERED = 2.0
_FIRST_RANK = 2.0
_CLASS = 1.0
_SEVERAL_WORDS = 0.7
_ALREADY_READ = -1.0


@dataclass(frozen=True, slots=True)
class Bridge:
    """A name worth looking up, the fact that suggests it, and the question's words that its passage leaves open."""

    name: str
    fact: Triple
    score: float
    missing: tuple[str, ...]

    @property
    def subquery(self) -> str:
        return " ".join((self.name, *self.missing))


def bridges(evidence: Evidence, graph: QuestionGraph) -> list[Bridge]:
    """The candidates, the most promising first, one for each name; ties in order of reading.

    A name scores by the share of the question that its sentence and the fact's other end cover, by the rank of its
    passage, by how near it stands to words of the question and how many of them its predicate holds, and for being of
    a class that the question names ("Southeastern Conference" for "a conference").
    """
    classes = _classes(graph)
    sentences: dict[tuple[str, int, int], _Sentence] = {}
    best: dict[str, Bridge] = {}
    for fact in graph.facts:
        for source in fact.sources:
            read = evidence.passages.get(source.passage_id)
            if read is None:
                continue
            place = (source.passage_id, source.start, source.end)
            sentence = sentences.get(place)
            if sentence is None:
                sentence = sentences[place] = _sentence(read, source)
            for name, other in ((fact.object, fact.subject), (fact.subject, fact.object)):
                if not is_name(name):
                    continue
                key = canonical_key(name)
                score = _score(evidence, read, sentence, fact, name, other, classes[key])
                if key not in best or score > best[key].score:
                    missing = evidence.missing(read.words | set(stems(name)))
                    best[key] = Bridge(name, fact, score, tuple(missing))
    return sorted(best.values(), key=lambda bridge: -bridge.score)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence as stems: each word's in order, and the content words' as a set."""

    order: tuple[str, ...]
    words: frozenset[str]


def _sentence(read: ReadPassage, source: Source) -> _Sentence:
    text = read.passage.text[source.start : source.end]
    return _Sentence(_stemmed(text), frozenset(stems(text)))


def _stemmed(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in _WORD.findall(fold(text)))


def _score(
    evidence: Evidence, read: ReadPassage, sentence: _Sentence, fact: Triple, name: str, other: str, classes: set[str]
) -> float:
    own = set(stems(name))
    relation = set(stems(fact.predicate)) - own
    plain = evidence.plain
    return (
        _COVERED * (evidence.coverage(sentence.words - own) + evidence.coverage(set(stems(other)) - own))
        + _FIRST_RANK / (1 + read.rank)
        + _nearness(plain - own, sentence.order, _stemmed(name))
        + len(plain & relation) / max(1, len(plain))
        + _CLASS * bool(own & plain)
        + _CLASS * bool(classes & plain)
        + _SEVERAL_WORDS * (len(name.split()) > 1)
        + _ALREADY_READ * evidence.has_read(name)
    )


def _nearness(wanted: frozenset[str] | set[str], order: tuple[str, ...], name: tuple[str, ...]) -> float:
    """The sum over wanted stems in the sentence of 1 / (1 + words between it and the name)."""
    size = len(name)
    starts = [at for at, word in enumerate(order) if word == name[0] and order[at : at + size] == name] if name else []
    if not starts:
        return 0.0
    nearest: dict[str, int] = {}
    for at, word in enumerate(order):
        if word in wanted:
            distance = min(min(abs(at - start), abs(at - start - size + 1)) for start in starts)
            nearest[word] = min(distance, nearest.get(word, distance))
    return sum(1 / (1 + distance) for distance in nearest.values())


def _classes(graph: QuestionGraph) -> defaultdict[str, set[str]]:
    """Canonical key -> stems of what the graph says the entity is."""
    classes: defaultdict[str, set[str]] = defaultdict(set)
    for fact in graph.facts:
        if fact.predicate in COPULAS:
            classes[canonical_key(fact.subject)] |= set(stems(fact.object))
    return classes
