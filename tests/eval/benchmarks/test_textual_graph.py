"""Graphs with text, as G-Retriever writes them for a prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.errors import IngestError
from ras_agent.eval.benchmarks.textual_graph import TextualGraph, parse_textual_graph

WORDS = st.text("abc ,\"'\n", min_size=1, max_size=8)


def test_a_graph_is_two_blocks() -> None:
    graph = TextualGraph.from_triples([("mill", "river", "Ardle"), ("mill", "owner", "Orr, Tam")])
    assert (
        graph.to_text() == 'node_id,node_attr\n0,mill\n1,Ardle\n2,"Orr, Tam"\nsrc,edge_attr,dst\n0,river,1\n0,owner,2\n'
    )


def test_ids_need_not_begin_at_nought() -> None:
    graph = parse_textual_graph("node_id,node_attr\n 7,mill\n9,Ardle\n\nsrc,edge_attr,dst\n7,river,9\n")
    assert graph.triples() == (("mill", "river", "Ardle"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,mill\n", "graph line 1: expected node_id"),
        ("node_id,node_attr\n0,mi\rll\n", r"graph line 2: not CSV \(new-line character"),
        ("node_id,node_attr\n0,mill,2\n", "graph line 2: expected node_id"),
        ("node_id,node_attr\n0,mill\nsrc,edge_attr,dst\n0,river,1\n", "edge 0,river,1 names a node that is not there"),
    ],
)
def test_what_is_no_graph_is_located(text: str, message: str) -> None:
    with pytest.raises(IngestError, match=message):
        parse_textual_graph(text)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=6))
def test_text_and_json_hold_the_whole_graph(triples: list[tuple[str, str, str]]) -> None:
    graph = TextualGraph.from_triples(triples)
    assert graph.triples() == tuple(triples)
    assert parse_textual_graph(graph.to_text()) == graph
    assert TextualGraph.from_dict(graph.to_dict()) == graph
