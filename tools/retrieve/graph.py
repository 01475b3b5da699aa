"""Everything that knows about a question, in equal shares: GFM network, PageRank, sentence vectors."""

from __future__ import annotations

from typing import Any

from ras_agent.registry import forwards_to
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.linking import Linking, Mentions
from ras_agent.tools.retrieve.dense import dense
from ras_agent.tools.retrieve.gfm import gfm
from ras_agent.tools.retrieve.mix import MixedRetriever
from ras_agent.tools.retrieve.ppr import ppr

__all__ = ["graph_mix"]


@forwards_to(gfm)
def graph_mix(
    index: PassageIndex,
    *,
    graph: KGIndex | LinkedGraph | None = None,
    linking: Linking | None = None,
    mentions: Mentions | None = None,
    **options: Any,
) -> MixedRetriever:
    """The retriever registered as "graph": the mean of `gfm`, `ppr` and `dense`, each brought to 0..1.

    It found most on HotpotQA's tuning half (docs/graphs.md). options: of `gfm`. Raises what these three raise.
    """
    linked = LinkedGraph.of(index, graph, linking, mentions)
    network, walk = gfm(index, graph=linked, **options), ppr(index, graph=linked)
    return MixedRetriever([network, walk, dense(index, queries=linked.queries)], [1, 1, 1], name="graph")
