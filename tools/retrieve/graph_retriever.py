"""What retrievers that look for structures in a knowledge graph share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Generic, TypeVar

from ras_agent.errors import ModelCallError
from ras_agent.records import Failure, Passage
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.linking import LinkedEntity
from ras_agent.tools.subgraph.evidence import passages_of

__all__ = ["GraphRetriever", "tell"]

Finder = TypeVar("Finder")


class GraphRetriever(Generic[Finder]):
    """A graph, a finder of structures in it, and the passages that state its facts."""

    def __init__(
        self,
        passages: Sequence[Passage],
        linked: LinkedGraph,
        finder: Finder,
    ) -> None:
        """linked: the graph that `finder` looks through, with `passages`' rows."""
        self.passages, self.index, self.finder = passages, linked.graph, finder
        self._passage_of, self._linker = passages_of(linked.graph, passages, linked.rows), linked.linker

    def linked(self, query: str) -> tuple[LinkedEntity, ...]:
        """The entities that the finder starts from."""
        return self._linker.link(query)


def tell(failures: Sequence[Failure], judging: str, found: bool) -> None:
    """Warn of what went wrong while a chat model was judging. Raises ModelCallError if it `found` nothing for it."""
    if not failures:
        return
    told = f"{len(failures)} failures while {judging} judged, the first: {failures[0].message}"
    if not found:
        raise ModelCallError(told)
    warnings.warn(told, RuntimeWarning, stacklevel=3)
