"""Suggests a schema for the relations that a graph has."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from ras_agent.records import Triple
from ras_agent.schema import DATE, NUMBER, kind_of, relation_key
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
    """Counts of the facts of one relation: by predicate, and by the types of subject and object."""

    predicates: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)

    def add(self, fact: Triple) -> None:
        self.predicates[fact.predicate] += 1
        self.sources[_kind(fact, "subject_type", fact.subject)] += 1
        self.targets[_kind(fact, "object_type", fact.object)] += 1

    @property
    def total(self) -> int:
        return self.predicates.total()

    def toml(self) -> str:
        """Return the relation's table."""
        predicates = [predicate for predicate, _ in self.predicates.most_common()]
        name = _quoted(predicates[0])
        ends = f"{_listed(self.sources)} -> {_listed(self.targets)}"
        lines = [f"# {self.total:,} facts: {ends}", f"[relations.{name}]"]
        for key, kinds in (("from", self.sources), ("to", self.targets)):
            [(kind, count)] = kinds.most_common(1)
            if count >= _MOSTLY * self.total:
                lines.append(f"{key} = {_quoted(kind)}")
        aliases = ", ".join(map(_quoted, predicates[1:]))
        if aliases:
            lines.append(f"aliases = [{aliases}]")
        return "\n".join(lines) + "\n"


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
    frequent = [one for one in relations.values() if one.total >= least]
    frequent.sort(key=lambda one: (-one.total, min(one.predicates)))
    types: set[str] = set()
    for one in frequent:
        types.update(one.sources, one.targets)
    types -= {_NAME, DATE, NUMBER}
    count = len(relations)
    head = _HEAD.format(facts=len(graph.facts), relations=count, least=least)
    for kind in sorted(types):
        head += f'{_quoted(kind)} = ""\n'
    tables = [one.toml() for one in frequent]
    return "\n".join([head, *tables])


def _kind(fact: Triple, attribute: str, end: str) -> str:
    """Return the type of an end of a fact: the extractor's, else "date", "number" or "name" by its words."""
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
