"""Compares personalised PageRank, which the retriever `ppr` computes, with rustworkx's over the same weights."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ras_agent.contracts.errors import needs_extra
from ras_agent.eval.bench.gfm import drawn_facts
from ras_agent.eval.bench.rows import BenchRow, median_row, processor_ms
from ras_agent.tools.kg.page_rank import PageRank

ENTITIES = 20_000
FACTS = 24_000
_DAMPING = 0.5
_QUESTIONS = 20


def bench_rows(entities: int = ENTITIES, facts: int = FACTS) -> Iterator[BenchRow]:
    """Yield a row for PageRank from three start entities over random facts.

    Raises:
        MissingExtra: rustworkx or scipy is not installed.
    """
    with needs_extra("the benchmark's peer", "graph"):
        import rustworkx
        from scipy.sparse import csr_matrix
    edges = drawn_facts(entities, 500, facts)
    pairs = edges[edges[:, 0] != edges[:, 2]][:, [0, 2]]
    both = np.concatenate((pairs, pairs[:, ::-1]))
    weights = csr_matrix(
        (np.ones(len(both), np.float32), both.T), shape=(entities, entities)
    )
    walk = PageRank(weights, damping=_DAMPING)
    network = rustworkx.PyDiGraph()
    network.add_nodes_from(range(entities))
    table = weights.tocoo()
    network.add_edges_from(
        list(
            zip(
                table.row.tolist(), table.col.tolist(), table.data.tolist(), strict=True
            )
        )
    )
    times = []
    for seeds in np.random.default_rng(1).choice(pairs[:, 0], (_QUESTIONS, 3)):
        start = np.zeros(entities, np.float32)
        start[seeds] = 1
        personal = dict.fromkeys(map(int, seeds), 1.0)
        other_walk = partial(
            rustworkx.pagerank,
            network,
            alpha=_DAMPING,
            weight_fn=float,
            personalization=personal,
            dangling=personal,
        )
        times.append((processor_ms(walk.scores, start), processor_ms(other_walk)))
    name = f"PageRank, {entities:,} entities"
    yield median_row(name, "ms of processor", "rustworkx.pagerank", times, at_most=0.5)
