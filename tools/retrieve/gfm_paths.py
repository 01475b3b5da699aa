"""Paths that explain a passage, as facts: from what the question names to what the passage names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.paths import MessagePath
from ras_agent.tools.kg.index import KGIndex

__all__ = ["FactPath", "fact_path"]


@dataclass(frozen=True, slots=True)
class FactPath:
    """A chain of facts (subject, relation, object), and how much the score depends on it.

    A fact that is walked from its object to its subject has its ends swapped and "^-1" behind its relation.
    """

    facts: tuple[tuple[str, str, str], ...]
    weight: float

    def to_text(self) -> str:
        """One line, in the paper's form: "1.095  (a | sings | b) → (b | owned by^-1 | c)"."""
        return f"{self.weight:.3f}  " + " → ".join(f"({' | '.join(fact)})" for fact in self.facts)


def fact_path(kg: KGIndex, graph: GFMGraph, path: MessagePath, toward: str) -> FactPath:
    """A path of messages as facts. toward: which end of a fact hears its relation, see GFMConfig."""
    return FactPath(tuple(_walked(kg, graph, message, toward) for message in path.messages), path.weight)


def _walked(kg: KGIndex, graph: GFMGraph, message: int, toward: str) -> tuple[str, str, str]:
    kinds = len(graph.vectors) // 2
    number = int(graph.relation[message])
    hearer = int(graph.indptr.searchsorted(message, side="right")) - 1
    # toward the head, a relation's own message goes from object to subject
    backwards = (number < kinds) == (toward == "head")
    name = kg.relations[number % kinds]
    names: Sequence[str] = kg.entities
    return names[int(graph.source[message])], f"{name}^-1" if backwards else name, names[hearer]
