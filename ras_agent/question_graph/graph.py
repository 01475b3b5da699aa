"""Holds the knowledge graph of one question: facts with their sources, merged hop by hop."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Self

from ras_agent.contracts.records import JSON, Step, Triple
from ras_agent.contracts.shape import Record
from ras_agent.question_graph.conflicts import conflicts_of, valued_facts
from ras_agent.question_graph.merge import (
    Entity,
    Readings,
    entities_of,
    facts_of,
    readings_of,
)
from ras_agent.text.canonical import canonical_key


@dataclass(frozen=True)
class QuestionGraph:
    """Holds an immutable set of facts; every change returns a new graph.

    A reading is a triple in the words of one text. All readings with the same `Triple.key` form one fact.
    """

    readings: tuple[Triple, ...] = ()
    """all readings; facts, labels and entities are computed from them"""
    hidden_facts: frozenset[str] = frozenset()
    """Ids of the facts that `bounded` has hidden. Prompts and searches leave them out, but the graph keeps
    their readings: a later hop may support a hidden fact, and without its earlier readings the result would
    depend on the order of the hops. """

    def __post_init__(self) -> None:
        readings = readings_of(self.readings)
        object.__setattr__(self, "readings", readings)

    def merge(self, triples: Iterable[Triple]) -> Self:
        """Return the graph with `triples` added. A hidden fact that one of them states becomes visible again.

        Merging the same triples twice changes nothing, and the order in which hops are merged does not matter
        (if `bounded` was called in between, call it again before comparing). To merge another graph, merge its
        `readings`.
        """
        added = readings_of(triples)
        new = facts_of(added)
        hidden_facts = self.hidden_facts.difference(new)
        before = readings_of(self.readings)
        readings = (*before, *added)
        is_new = self._all_facts.keys().isdisjoint(new)
        if not is_new or not before.followed_by(added):
            return type(self)(readings, hidden_facts)
        # the usual case: all facts are new, so no known fact changes its words, sources or place
        grown = type(self)(Readings(readings), hidden_facts)
        grown.__dict__["_all_facts"] = self._all_facts | new
        facts = [fact for fact, _ in new.values()]
        valued = self._valued_facts + valued_facts(facts)
        grown.__dict__["_valued_facts"] = valued
        return grown

    @cached_property
    def _all_facts(self) -> dict[str, tuple[Triple, tuple[Triple, ...]]]:
        """Map each fact id to (fact, its readings), including the hidden facts."""
        return facts_of(readings_of(self.readings))

    @cached_property
    def _visible_facts(self) -> dict[str, tuple[Triple, tuple[Triple, ...]]]:
        """Map each fact id to (fact, its readings), without the hidden facts."""
        if not self.hidden_facts:
            return self._all_facts
        visible = dict(self._all_facts)
        for name in self.hidden_facts:
            visible.pop(name, None)
        return visible

    @cached_property
    def by_id(self) -> Mapping[str, Triple]:
        """Map each visible fact's id to the fact."""
        entries = self._visible_facts.items()
        return {name: fact for name, (fact, _) in entries}

    @cached_property
    def facts(self) -> tuple[Triple, ...]:
        """List the visible facts in the order of their first reading: one Triple for each `Triple.key`, with
        all its sources.
        """
        facts = self.by_id.values()
        return tuple(facts)

    def with_ids(self, ids: Iterable[str]) -> tuple[Triple, ...]:
        """Return the visible facts with these ids, in the order of `ids`. Unknown and hidden ids are skipped."""
        facts = map(self.by_id.get, ids)
        return tuple(fact for fact in facts if fact)

    @cached_property
    def entities(self) -> Mapping[str, Entity]:
        """Map each canonical key to its Entity, in the order of first mention."""
        return entities_of(self._visible_facts)

    @cached_property
    def _touching(self) -> Mapping[str, list[Triple]]:
        table: dict[str, list[Triple]] = {}
        for fact in self.facts:
            subject, _, target = fact.key
            for key in {subject, target}:
                table.setdefault(key, []).append(fact)
        return table

    def touching(self, key: str) -> tuple[Triple, ...]:
        """Return the facts that have the entity `key` as subject or object; () for an unknown key."""
        facts = self._touching.get(key, ())
        return tuple(facts)

    @cached_property
    def _valued_facts(self) -> tuple[Triple, ...]:
        """List the facts that may be in conflict, including the hidden facts."""
        entries = self._all_facts.values()
        return valued_facts(fact for fact, _ in entries)

    @cached_property
    def conflicts(self) -> tuple[tuple[Triple, ...], ...]:
        """List the groups of facts that cannot all be true, as ras_agent.question_graph.conflicts finds them."""
        # hidden facts count too: they may show that a predicate takes several values
        groups = conflicts_of(self._valued_facts)
        if not self.hidden_facts:
            return groups
        visible_groups = []
        for group in groups:
            visible = tuple(fact for fact in group if fact.id not in self.hidden_facts)
            if len(visible) > 1:
                visible_groups.append(visible)
        return tuple(visible_groups)

    @cached_property
    def disputed(self) -> frozenset[str]:
        """Return the ids of the facts in `conflicts`."""
        facts = chain.from_iterable(self.conflicts)
        return frozenset(fact.id for fact in facts)

    def by_subquery(self, steps: Iterable[Step]) -> tuple[tuple[Triple, ...], ...]:
        """Group the visible facts by the hop that found them.

        Facts that no hop found come first, followed by a group for each hop, in order. Groups without facts are left
        out.
        """
        without_hop = dict(self.by_id)
        groups = []
        for step in steps:
            groups.append(self.with_ids(step.triple_ids))
            for name in step.triple_ids:
                without_hop.pop(name, None)
        rest = tuple(without_hop.values())
        groups.insert(0, rest)
        return tuple(filter(None, groups))

    def bounded(
        self, max_facts: int, question: str = "", keep: Iterable[str] = ()
    ) -> Self:
        """Return the graph with at most `max_facts` visible facts; all other facts are hidden.

        The facts with the fewest source passages are hidden first, and among equals those least similar to the
        question. Facts with ids in `keep`, and facts in conflict, stay visible even if that exceeds `max_facts`. Each
        call decides again among all facts, hidden or visible, so the result depends only on the facts that were ever
        merged and on the arguments, not on the order of merges or on earlier bounds.
        """
        hidden_facts: frozenset[str] = frozenset()
        spare = len(self._all_facts) - max_facts
        if spare > 0:
            kept = set(keep)
            for group in conflicts_of(self._valued_facts):
                kept.update(fact.id for fact in group)
            loose = []
            for name, (fact, _) in self._all_facts.items():
                if name not in kept:
                    loose.append(fact)
            hidden_facts = _least_useful(loose, spare, question)
        if hidden_facts == self.hidden_facts:
            return self
        return replace(self, hidden_facts=hidden_facts)

    def showing(self, facts: Iterable[str]) -> Self:
        """Hide all facts except those with the ids `facts` and those in conflict with them.

        A later call of `bounded` decides again which facts are hidden.
        """
        visible = set(facts)
        for group in self.conflicts:
            names = {fact.id for fact in group}
            if visible & names:
                visible |= names
        hidden = self.by_id.keys() - visible
        return replace(self, hidden_facts=self.hidden_facts | hidden)

    def __len__(self) -> int:
        return len(self._visible_facts)

    def to_text(self) -> str:
        """Return the visible facts as prompts show them, one per line: `(S> s | P> p | O> o)`."""
        lines = map(str, self.facts)
        return "\n".join(lines)

    @property
    def entries(self) -> Mapping[str, tuple[Triple, tuple[Triple, ...]]]:
        """Map each visible fact's id to (fact, its readings), in the order of first reading."""
        return self._visible_facts

    def to_dict(self, facts: list[JSON] | None = None) -> JSON:
        """Return the graph as plain JSON.

        The key `facts` lists the visible facts with their ids, `conflicts` the groups of fact ids, and `shelf`
        the readings of hidden facts.

        Args:
            facts: The JSON of the facts, if the caller already has it.
        """
        if facts is None:
            facts = [dump_fact(name, *entry) for name, entry in self.entries.items()]
        shelf: list[JSON] = []
        for name in sorted(self.hidden_facts):
            _, readings = self._all_facts[name]
            shelf += map(Triple.to_dict, readings)
        conflicts = []
        for group in self.conflicts:
            conflicts.append([fact.id for fact in group])
        return {
            "facts": facts,
            "conflicts": conflicts,
            "shelf": shelf,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the graph that `to_dict` wrote. Only `facts` is required; conflicts are computed again."""
        shelf = data.get("shelf", ())
        hidden = list(map(Triple.from_dict, shelf))
        readings: list[Triple] = []
        for fact in data["facts"]:
            readings += _load_fact(fact)
        ids = frozenset(reading.id for reading in hidden)
        return cls((*readings, *hidden), ids)


def _least_useful(facts: Sequence[Triple], count: int, question: str) -> frozenset[str]:
    """Return the ids of the `count` facts to hide, or of all facts if there are fewer.

    The facts with the fewest source passages are hidden first, and among equals those least similar to the question.
    Ties are broken by key, so the result depends only on the set of facts.
    """
    question_words = set(canonical_key(question).split())
    shared = {}
    for fact in facts:
        words = " ".join(fact.key).split()
        shared[fact.id] = question_words.intersection(words)
    likenesses = likeness_of(shared)

    def rank(fact: Triple) -> tuple[int, float, tuple[str, str, str]]:
        support = len(fact.passage_ids)
        likeness = likenesses[fact.id]
        return -support, -likeness, fact.key

    ranked = sorted(facts, key=rank)
    first = max(0, len(facts) - count)
    hidden = ranked[first:]
    return frozenset(fact.id for fact in hidden)


def likeness_of(shared: Mapping[str, Set[str]]) -> dict[str, float]:
    """Return for each text its similarity to a question: the summed weight of the words that they share.

    `shared` maps the id of each text to these words. A word has the weight log(1 + n / m) if m of the n texts
    contain it.
    """
    texts_with = Counter[str]()
    for words in shared.values():
        texts_with.update(words)
    weights = {}
    for word, count in texts_with.items():
        rareness = len(shared) / count
        weights[word] = math.log(1 + rareness)
    likeness = {}
    for name, words in shared.items():
        # fsum, because the result of a plain sum depends on the order of the numbers
        shared_weights = [weights[word] for word in words]
        likeness[name] = math.fsum(shared_weights)
    return likeness


# ---- as JSON


ReadingJSON = (
    tuple[str, str, str, list[int]] | tuple[str, str, str, list[int], dict[str, Any]]
)
"""Subject, predicate, object, indexes into the fact's sources, and the attributes if there are any."""


@dataclass(frozen=True)
class GraphJSON(Record):
    """Describes the JSON of a question graph (see `QuestionGraph.to_dict`)."""

    facts: list[JSON]
    conflicts: list[list[str]]
    shelf: list[JSON]


def dump_fact(
    name: str,
    fact: Triple,
    readings: tuple[Triple, ...] = (),
    sources: list[JSON] | None = None,
) -> JSON:
    """Return the JSON of a fact with the id `name`.

    A fact that was read in several surface forms has `readings`, a ReadingJSON for each form. `sources` is the JSON of
    its sources, if the caller already has it.
    """
    if sources is None:
        sources = [source.to_dict() for source in fact.sources]
    data: JSON = {
        "id": name,
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        "sources": sources,
    }
    if fact.attributes:
        data["attributes"] = dict(fact.attributes)
    if len(readings) > 1:
        numbers = range(len(fact.sources))
        place = dict(zip(fact.sources, numbers, strict=True))
        data["readings"] = []
        for reading in readings:
            sources_read = [place[source] for source in reading.sources]
            form: list[Any] = [
                reading.subject,
                reading.predicate,
                reading.object,
                sources_read,
            ]
            if reading.attributes:
                form.append(dict(reading.attributes))
            data["readings"].append(form)
    return data


def _load_fact(data: Mapping[str, Any]) -> Iterable[Triple]:
    """Return the readings of a fact that `dump_fact` wrote.

    Raises:
        ValueError: if a reading refers to a source that the fact does not have.
    """
    fact = Triple.from_dict(data)
    if "readings" not in data:
        return (fact,)
    readings = []
    try:
        for subject, predicate, object_, indexes, *attributes in data["readings"]:
            sources = [fact.sources[index] for index in indexes]
            reading = Triple(
                subject=subject,
                predicate=predicate,
                object=object_,
                sources=tuple(sources),
            )
            if attributes:
                reading = replace(reading, attributes=attributes[0])
            readings.append(reading)
    except IndexError as error:
        raise ValueError(
            f"fact {fact.id}: a reading refers to a source that the fact does not have; get the graph again"
        ) from error
    return readings
