"""The part of a question's graph that a GraphLLM sees: the Steiner tree, the rest behind an aligner, rows that fit."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch_geometric")

from ras_agent.contracts.errors import SettingsError
from ras_agent.tools.graph_tokens.features import GraphVectors
from ras_agent.tools.graph_tokens.graph_reader import (
    GraphPrompts,
    GraphReader,
    GraphView,
)
from ras_agent.tools.subgraph.graph import Graph
from tests.messages import says

NODES = ("red cup", "wooden table", "lamp", "red cup")
EDGES = ((0, "on", 1), (2, "above", 1))
GRAPH = Graph.of_texts(NODES, EDGES)
CSV = "node_id,node_attr\n0,red cup\n1,wooden table\n2,lamp\n3,red cup\n\nsrc,edge_attr,dst\n0,on,1\n2,above,1"


def prompts(embedder: Any, aligner: Any = None, **view: Any) -> GraphPrompts:
    return GraphPrompts(
        GraphView(**view),
        GraphVectors(embedder),
        lambda text: len(text.split()),
        aligner,
    )


def test_a_whole_graph_is_shown_as_csv_and_nodes_of_one_text_stay_apart(
    hash_embedder: Any,
) -> None:
    item = prompts(hash_embedder, task="One word.").input(
        "What is on the table?", GRAPH
    )
    assert [turn.text for turn in item.turns] == [
        f"{CSV}\nOne word.\nQuestion: What is on the table?\nAnswer:"
    ]
    assert (item.nodes, item.edges) == (NODES, EDGES)


def test_the_graph_that_an_encoder_reads_is_the_one_in_the_text(
    hash_embedder: Any,
) -> None:
    vectors = GraphVectors(hash_embedder)
    features = prompts(hash_embedder).input("?", GRAPH).features(vectors)
    assert features.nodes.tolist() == hash_embedder.embed(list(NODES)).tolist()
    assert features.edge_index.tolist() == [[0, 2], [1, 1]]


def test_prizes_take_the_part_that_fits_the_question(hash_embedder: Any) -> None:
    item = prompts(hash_embedder, top_nodes=1, top_edges=1, edge_cost=0.5).input(
        "red cup on", GRAPH
    )
    assert (item.nodes, item.edges) == (("red cup", "wooden table"), ((0, "on", 1),))


def test_an_aligner_prunes_to_the_best_nodes_and_their_neighbours(
    hash_embedder: Any,
) -> None:
    from ras_agent.tools.graph_tokens.aligner import AlignerConfig, GraphAligner
    from ras_agent.tools.graph_tokens.encoders import EncoderConfig

    # a new aligner scores nodes by their likeness to the question
    config = AlignerConfig(
        EncoderConfig(layers=1, heads=2, width=64, input=64), hidden=8, projected=8
    )
    item = prompts(hash_embedder, GraphAligner(config, hash_embedder), n_seed=1).input(
        "lamp", GRAPH
    )
    assert (item.nodes, item.edges) == (("wooden table", "lamp"), ((1, "above", 0),))


def test_pruning_without_an_aligner_is_refused(hash_embedder: Any) -> None:
    with pytest.raises(
        SettingsError,
        match=says("pruning to n_seed = 5 nodes needs an aligner"),
    ):
        prompts(hash_embedder, n_seed=5)


def test_rows_that_do_not_fit_are_left_out_from_the_end(hash_embedder: Any) -> None:
    item = prompts(hash_embedder, graph_text_tokens=5).input("?", GRAPH)
    assert (
        item.turns[0].text
        == "node_id,node_attr\n0,red cup\n1,wooden table\nQuestion: ?\nAnswer:"
    )
    assert item.nodes == NODES  # the encoder reads all


def test_without_text_the_prompt_has_the_question_alone(hash_embedder: Any) -> None:
    item = prompts(hash_embedder, text=False).input("?", GRAPH)
    assert (item.turns[0].text, item.nodes) == ("Question: ?\nAnswer:", NODES)


def test_marks_in_a_graph_are_data(hash_embedder: Any) -> None:
    item = prompts(hash_embedder).input("?", Graph.of_texts(["[SUFFICIENT]"], []))
    assert "‹SUFFICIENT›" in item.turns[0].text


def test_a_graph_without_edges_is_shown_whole(hash_embedder: Any) -> None:
    assert prompts(hash_embedder, top_nodes=1, edge_cost=1.0).input(
        "a", Graph.of_texts(["a", "b"], [])
    ).nodes == (
        "a",
        "b",
    )


def test_a_folder_without_a_view_is_no_reader(tmp_path: Any) -> None:
    from ras_agent.contracts.errors import WeightsError

    with pytest.raises(
        WeightsError, match=says("there is no graph view in this folder")
    ):
        GraphReader.load(tmp_path)
