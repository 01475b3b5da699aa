"""The knowledge graph of one question: facts with provenance, merged hop by hop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from ras_agent.canonical import canonical_key
from ras_agent.records import Triple

__all__ = ["Entity", "QuestionGraph"]


@dataclass(frozen=True, slots=True)
class Entity:
    """A node: its canonical key, the label to show, every surface form it was read under."""

    key: str
    label: str
    forms: tuple[str, ...]


@dataclass(frozen=True)
class QuestionGraph:
    """An immutable set of facts; `merge` returns a new one.

    facts: one Triple for each distinct `Triple.key`, with the sources of all its mentions.
    """

    facts: tuple[Triple, ...] = ()

    def merge(self, triples: Iterable[Triple]) -> Self:
        """The graph with `triples` added. Merging twice changes nothing; the order of merges does not change the set."""
        merged = {fact.key: fact for fact in self.facts}
        for triple in triples:
            known = merged.get(triple.key)
            if known is None:
                merged[triple.key] = triple
            else:
                sources = tuple(sorted({*known.sources, *triple.sources}))
                merged[triple.key] = Triple(known.subject, known.predicate, known.object, sources)
        return type(self)(tuple(merged.values()))

    @cached_property
    def by_id(self) -> Mapping[str, Triple]:
        return {fact.id: fact for fact in self.facts}

    @cached_property
    def entities(self) -> Mapping[str, Entity]:
        """Canonical key -> Entity, in order of first mention."""
        forms: dict[str, dict[str, None]] = {}
        for fact in self.facts:
            for surface in (fact.subject, fact.object):
                forms.setdefault(canonical_key(surface), {})[surface] = None
        return {key: Entity(key, next(iter(names)), tuple(names)) for key, names in forms.items()}

    @cached_property
    def _touching(self) -> Mapping[str, tuple[Triple, ...]]:
        table: dict[str, list[Triple]] = {}
        for fact in self.facts:
            for key in {fact.key[0], fact.key[2]}:
                table.setdefault(key, []).append(fact)
        return {key: tuple(facts) for key, facts in table.items()}

    def touching(self, key: str) -> tuple[Triple, ...]:
        """Facts that have the entity `key` as subject or object; none for an unknown key."""
        return self._touching.get(key, ())

    @cached_property
    def conflicts(self) -> tuple[tuple[Triple, ...], ...]:
        """Groups of facts that cannot all hold."""
        return ()

    def bounded(self, max_facts: int, question: str, keep: Iterable[str] = ()) -> Self:
        """At most `max_facts` facts; facts whose ids are in `keep` and conflicting ones stay."""
        return self if len(self.facts) <= max_facts else type(self)(self.facts[:max_facts])

    def __len__(self) -> int:
        return len(self.facts)

    def to_text(self) -> str:
        """One fact a line, as prompts show it: `(S> s | P> p | O> o)`."""
        return "\n".join(str(fact) for fact in self.facts)

    def to_dict(self) -> dict[str, Any]:
        return {"facts": [fact.to_dict() for fact in self.facts]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(tuple(Triple.from_dict(fact) for fact in data["facts"]))
