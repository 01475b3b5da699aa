"""The benchmark of parsing, merging and drawing: both sides do the same work, and it runs."""

import pytest

from ras_agent.eval.bench import graph as bench_graph

pytestmark = pytest.mark.slow("benchmarks")


def test_both_parsers_find_all_facts() -> None:
    reply = "\n".join(map(str, bench_graph._facts(50)))
    assert (
        len(bench_graph.parse_triples(reply).triples)
        == len(bench_graph._PLAIN.findall(reply))
        == 50
    )
