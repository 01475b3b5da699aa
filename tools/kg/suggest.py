"""Suggests a schema for the relations that a graph has."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from ras_agent.contracts.records import Triple
from ras_agent.contracts.schema import DATE, NUMBER, kind_of, relation_key
from ras_agent.tools.kg.index import KGIndex

_NAME = "name"
_MOSTLY = 0.9  # share of the facts from which their type of an end is suggested
_SHOWN = 4  # kinds of an end, in the comment about a relation
_HEAD = """\
# {facts:,} facts have {relations:,} relations. Each relation with at least {least:,} facts is suggested here, the most
# frequent first. Give types of your own, and merge relations that say the same: one is the name, the others are aliases.

[types]
name = "anything that is neither a date nor a number"
"""


@dataclass
class _Counts:
    """Counts the facts of one relation: by predicate, and by the types of subject and object."""

    predicates: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)

    def add(self, fact: Triple) -> None:
        source = _kind(fact, "subject_type", fact.subject)
        target = _kind(fact, "object_type", fact.object)
        self.predicates[fact.predicate] += 1
        self.sources[source] += 1
        self.targets[target] += 1

    @property
    def total(self) -> int:
        return self.predicates.total()

    def rank(self) -> tuple[int, str]:
        """Return the relation's key in the order of the schema: the most facts first."""
        return -self.total, min(self.predicates)

    def toml(self) -> str:
        """Return the relation as a table in TOML."""
        predicates = []
        for predicate, _ in self.predicates.most_common():
            predicates.append(_quoted(predicate))
        name, *aliases = predicates
        sources = _listed(self.sources)
        targets = _listed(self.targets)
        lines = [
            f"# {self.total:,} facts: {sources} -> {targets}",
            f"[relations.{name}]",
        ]
        lines += self._end("from", self.sources)
        lines += self._end("to", self.targets)
        if aliases:
            listed = ", ".join(aliases)
            lines.append(f"aliases = [{listed}]")
        return "\n".join(lines) + "\n"

    def _end(self, key: str, kinds: Counter[str]) -> list[str]:
        """Return the TOML line for the type of the relation's subjects or objects; [] if they have different types.

        Args:
            key: "from" for subjects, "to" for objects.
            kinds: the number of facts by type.
        """
        [(kind, count)] = kinds.most_common(1)
        if count < _MOSTLY * self.total:
            return []
        return [f"{key} = {_quoted(kind)}"]


def suggested(graph: KGIndex, least: int = 5) -> str:
    """Return a schema in TOML with the graph's relations, the most frequent first.

    Predicates that differ only in auxiliaries are one relation.

    Args:
        least: the least number of facts of a relation.
    """
    relations: dict[str, _Counts] = {}
    for edge in graph.facts:
        fact = graph.triple(edge)
        key = relation_key(fact.predicate)
        relations.setdefault(key, _Counts()).add(fact)
    frequent = []
    types: set[str] = set()
    for one in relations.values():
        if one.total >= least:
            frequent.append(one)
            types.update(one.sources, one.targets)
    frequent.sort(key=_Counts.rank)
    types -= {_NAME, DATE, NUMBER}
    head = _HEAD.format(
        facts=len(graph.facts),
        relations=len(relations),
        least=least,
    )
    for kind in sorted(types):
        head += f'{_quoted(kind)} = ""\n'
    tables = [head]
    for one in frequent:
        tables.append(one.toml())
    return "\n".join(tables)


def _kind(fact: Triple, attribute: str, end: str) -> str:
    """Return the type of a fact's subject or object: the extractor's, else "date", "number" or "name" by its words."""
    stated = fact.attributes.get(attribute)
    if stated:
        return str(stated)
    return kind_of(end) or _NAME


def _listed(kinds: Counter[str]) -> str:
    shown = [f"{kind} {count:,}" for kind, count in kinds.most_common(_SHOWN)]
    return ", ".join(shown)


def _quoted(text: str) -> str:
    """Return a text as a string of TOML, which has JSON's escapes."""
    return json.dumps(text, ensure_ascii=False)
