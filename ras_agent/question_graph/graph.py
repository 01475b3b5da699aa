"""The knowledge graph of one question: facts with provenance, merged hop by hop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from ras_agent.question_graph.bound import least_useful
from ras_agent.question_graph.conflicts import conflicts_of
from ras_agent.question_graph.json import dump_fact, dump_reading, load_fact, load_reading
from ras_agent.question_graph.merge import Entity, Readings, entities_of, facts_of, united
from ras_agent.records import JSON, Triple
from ras_agent.text.canonical import canonical_key


@dataclass(frozen=True)
class QuestionGraph:
    """An immutable set of facts; what changes it returns a new one.

    readings: every triple as it was read, one for each surface form; facts, labels and entities are computed from them.
    shelf: ids of facts that `bounded` has put aside. They are out of sight and stay in the state, so that a later hop
    that supports one of them finds what the earlier hops had: without that, the order of hops would decide. The state
    thus grows with the passages read, which it holds anyway, and what prompts and searches see stays bounded.
    """

    readings: tuple[Triple, ...] = ()
    shelf: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "readings", united(self.readings))

    def merge(self, triples: Iterable[Triple]) -> Self:
        """The graph with `triples` added, those on the shelf back in sight.

        Merging twice changes nothing, and in whatever order hops are merged, the result is equal (where bounds came
        between them: after `bounded`). To merge a whole graph, merge its `readings`.
        """
        added = united(triples)
        shelf = self.shelf.difference(triple.id for triple in added) if self.shelf else self.shelf
        readings, new = united(self.readings), facts_of(added)
        if not readings.followed_by(added) or not self._held.keys().isdisjoint(new):
            return replace(self, readings=(*readings, *added), shelf=shelf)
        # a hop brings mostly what is new, and then nothing that is held changes its words, sources or place
        grown = replace(self, readings=Readings((*readings, *added)), shelf=shelf)
        grown.__dict__["_held"] = self._held | new
        return grown

    @cached_property
    def _held(self) -> dict[str, tuple[Triple, tuple[Triple, ...]]]:
        """Fact id -> (fact, its readings), those on the shelf too."""
        return facts_of(united(self.readings))

    @cached_property
    def _seen(self) -> dict[str, tuple[Triple, tuple[Triple, ...]]]:
        return {name: held for name, held in self._held.items() if name not in self.shelf} if self.shelf else self._held

    @cached_property
    def by_id(self) -> Mapping[str, Triple]:
        return {name: fact for name, (fact, _) in self._seen.items()}

    @cached_property
    def facts(self) -> tuple[Triple, ...]:
        """One Triple for each distinct `Triple.key`, with the sources of all its mentions, as they were first read."""
        return tuple(self.by_id.values())

    @cached_property
    def entities(self) -> Mapping[str, Entity]:
        """Canonical key -> Entity, in order of first mention."""
        return entities_of(self._seen)

    @cached_property
    def _touching(self) -> Mapping[str, tuple[Triple, ...]]:
        table: dict[str, list[Triple]] = {}
        for fact in self.facts:
            for key in dict.fromkeys((canonical_key(fact.subject), canonical_key(fact.object))):
                table.setdefault(key, []).append(fact)
        return {key: tuple(facts) for key, facts in table.items()}

    def touching(self, key: str) -> tuple[Triple, ...]:
        """Return the facts that have the entity `key` as subject or object; none for an unknown key."""
        return self._touching.get(key, ())

    @cached_property
    def conflicts(self) -> tuple[tuple[Triple, ...], ...]:
        """Groups of facts that cannot all hold; ras_agent.question_graph.conflicts has the rule."""
        # facts on the shelf speak too: they may show that a predicate takes several values
        groups = conflicts_of(fact for fact, _ in self._held.values())
        if not self.shelf:
            return groups
        seen = (tuple(fact for fact in group if fact.id not in self.shelf) for group in groups)
        return tuple(group for group in seen if len(group) > 1)

    def bounded(self, max_facts: int = 400, question: str = "", keep: Iterable[str] = ()) -> Self:
        """The graph with at most `max_facts` facts in sight; the others are on the shelf.

        The least supported facts are put aside first, then those least similar to the question; see
        ras_agent.question_graph.bound. Facts whose ids are in `keep` and conflicting ones stay, even where that makes
        more than `max_facts`. Facts on the shelf are weighed with the others, so the result depends on what was ever
        merged and on the arguments, not on the order of merges or on earlier bounds.
        """
        shelf: frozenset[str] = frozenset()
        if len(self._held) > max_facts:
            facts = {name: fact for name, (fact, _) in self._held.items()}
            conflicting = (fact.id for group in conflicts_of(facts.values()) for fact in group)
            shelf = least_useful(facts, max_facts, question, frozenset((*keep, *conflicting)))
        return self if shelf == self.shelf else replace(self, shelf=shelf)

    def __len__(self) -> int:
        return len(self.facts)

    def to_text(self) -> str:
        """One fact a line, as prompts show it: `(S> s | P> p | O> o)`."""
        return "\n".join(map(str, self.facts))

    def to_dict(self, dump: Callable[[str, Triple, tuple[Triple, ...]], JSON] = dump_fact) -> JSON:
        """Plain JSON: facts with their ids, conflicts as groups of ids, the shelf in a short form.

        dump: what `dump_fact` does, for a caller that has kept the JSON of facts it knows.
        """
        return {
            "facts": [dump(name, fact, readings) for name, (fact, readings) in self._seen.items()],
            "conflicts": [[fact.id for fact in group] for group in self.conflicts],
            "shelf": [dump_reading(reading) for name in sorted(self.shelf) for reading in self._held[name][1]],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; only `facts` is needed. Conflicts are found anew."""
        shelf = [load_reading(reading) for reading in data.get("shelf", ())]
        readings = [reading for fact in data["facts"] for reading in load_fact(fact)]
        return cls((*readings, *shelf), frozenset(reading.id for reading in shelf))
