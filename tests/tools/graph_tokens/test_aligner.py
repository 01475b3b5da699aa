"""The aligner: its losses by the paper's formulas, the nodes that it keeps of a graph, its file form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from ras_agent.contracts.errors import SettingsError, WeightsError
from ras_agent.contracts.graph_batch import GraphFeatures
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.graph_tokens.aligner import (
    AlignedGraph,
    AlignerConfig,
    GraphAligner,
    align_encoder,
    fact_places,
    node_alignment,
    representation_alignment,
)
from ras_agent.tools.graph_tokens.encoders import EncoderConfig, build_encoder, pool
from ras_agent.tools.graph_tokens.features import Fact
from tests.messages import says

SMALL = AlignerConfig(
    EncoderConfig(layers=2, heads=2, width=64, input=64), hidden=32, projected=16
)
FACTS = [
    ("Ada", "mother", "Anna"),
    ("Anna", "born in", "Kent"),
    ("Ada", "friend", "Charles"),
    ("Charles", "built", "engine"),
    ("Kent", "in", "England"),
]
REASONING = "Ada mother Anna. Anna born in Kent."


def small(embedder: Any, config: AlignerConfig = SMALL) -> GraphAligner:
    torch.manual_seed(0)
    return GraphAligner(config, embedder)


def _example(
    aligner: GraphAligner, facts: Sequence[Fact], question: str, reasoning: str
) -> AlignedGraph:
    return AlignedGraph(
        aligner.vectors.of_facts(facts),
        query_vector(aligner.embedder, question),
        aligner.vectors.of_texts([reasoning])[0],
    )


def softmax(values: np.ndarray) -> np.ndarray:
    powers = np.exp(values - values.max())
    return powers / powers.sum()


@pytest.mark.parametrize("per_node", [False, True])
def test_node_alignment_is_the_divergence_of_equation_6(per_node: bool) -> None:
    scores, wanted = (
        np.array([0.5, -1.0, 2.0, 0.0, 3.0]),
        np.array([1.0, 0.0, 0.3, 2.0, -1.0]),
    )
    owner = np.array([0, 0, 0, 2, 2])  # graph 1 is empty
    expected = []
    for graph in (0, 2):
        p, q = softmax(wanted[owner == graph]), softmax(scores[owner == graph])
        divergence = np.sum(p * np.log(p / q))
        expected.append(divergence / len(p) if per_node else divergence)
    tensors = (torch.tensor(scores), torch.tensor(wanted), torch.tensor(owner))
    found = node_alignment(*tensors, 3, per_node=per_node)
    assert float(found) == pytest.approx(np.mean(expected), rel=1e-6)


def test_node_alignment_is_nothing_where_both_agree_and_for_no_nodes_at_all() -> None:
    same, owner = torch.tensor([1.0, 2.0, -4.0]), torch.tensor([0, 0, 1])
    assert float(node_alignment(same, same + 7, owner, 2)) == pytest.approx(0, abs=1e-6)
    none = torch.zeros(0)
    assert float(node_alignment(none, none, torch.zeros(0, dtype=torch.long), 2)) == 0


def test_a_graph_of_one_node_diverges_by_nothing_and_counts() -> None:
    # graph 0: ln 2 - the entropy of (3/4, 1/4); graph 1 has one node, whose probability is 1 whatever its score
    scores, wanted = torch.tensor([0.0, 0.0, 5.0]), torch.tensor([3.0, 1.0, 1.0]).log()
    divergence = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    found = node_alignment(scores, wanted, torch.tensor([0, 0, 1]), 2)
    assert float(found) == pytest.approx(divergence / 2, rel=1e-6)


def test_scores_in_the_thousands_overflow_nowhere() -> None:
    scores, owner = (
        torch.tensor([5000.0, 5000.0, -5000.0, -5000.0]),
        torch.tensor([0, 0, 1, 1]),
    )
    wanted = torch.tensor([3.0, 1.0, 3.0, 1.0]).log()
    divergence = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    assert float(node_alignment(scores, wanted, owner, 2)) == pytest.approx(
        divergence, rel=1e-6
    )


def test_representation_alignment_is_the_mean_of_both_directions_of_equation_9() -> (
    None
):
    dice = np.random.default_rng(1)
    graphs, texts, temperature = dice.normal(size=(3, 4)), dice.normal(size=(3, 4)), 0.3
    sim = np.array(
        [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in texts] for a in graphs]
    )
    to_text = -np.mean([np.log(softmax(sim[i] / temperature)[i]) for i in range(3)])
    to_graph = -np.mean([np.log(softmax(sim[:, i] / temperature)[i]) for i in range(3)])
    found = representation_alignment(
        torch.tensor(graphs), torch.tensor(texts), temperature
    )
    assert float(found) == pytest.approx((to_text + to_graph) / 2, rel=1e-6)


def test_a_text_in_the_place_of_another_costs_more() -> None:
    rows = torch.eye(3)
    assert representation_alignment(rows, rows, 0.1) < representation_alignment(
        rows, rows.roll(1, 0), 0.1
    )


def test_the_losses_of_a_batch_follow_the_equations(hash_embedder: Any) -> None:
    aligner = small(hash_embedder, replace(SMALL, likeness=False))
    examples = [
        _example(aligner, FACTS, "Where was Ada's mother born?", REASONING),
        _example(aligner, [], "Who is nobody?", "Nobody."),
        _example(
            aligner, FACTS[2:4], "What did Ada's friend build?", "Charles built engine."
        ),
    ]
    nodes, _ = aligner.losses(examples)
    expected = []
    for one in (examples[0], examples[2]):
        scores = aligner.scores(one.graph, one.question[None])[0].astype(np.float64)
        likeness = one.graph.nodes.astype(np.float64) @ one.reasoning
        p, q = softmax(likeness / SMALL.temperature), softmax(scores)
        expected.append(np.sum(p * np.log(p / q)))
    # the graphs went through the encoder one by one here, and together there
    assert nodes.item() == pytest.approx(np.mean(expected), rel=1e-4)


def test_an_untrained_aligner_orders_nodes_by_their_likeness_to_the_question(
    hash_embedder: Any,
) -> None:
    aligner = small(hash_embedder)
    graph = aligner.vectors.of_facts(FACTS)
    questions = hash_embedder.embed(["Where was Anna born", "Charles"])
    np.testing.assert_allclose(
        aligner.scores(graph, questions), questions @ graph.nodes.T / 0.1, atol=1e-4
    )


def test_an_aligner_in_use_drops_nothing_out(hash_embedder: Any) -> None:
    aligner = small(
        hash_embedder,
        replace(SMALL, encoder=replace(SMALL.encoder, dropout=0.5), likeness=False),
    )
    graph, question = aligner.vectors.of_facts(FACTS), hash_embedder.embed(["Ada"])
    assert (
        aligner.scores(graph, question).tolist()
        == aligner.scores(graph, question).tolist()
    )


def kept(
    aligner: GraphAligner, facts: list[tuple[str, str, str]], question: str, n: int
) -> tuple[list[int], ...]:
    nodes, edges = aligner.prune(aligner.vectors.of_facts(facts), question, n)
    return nodes.tolist(), edges.tolist()


def test_pruning_keeps_the_facts_of_the_best_nodes_with_their_neighbours(
    hash_embedder: Any,
) -> None:
    aligner = small(hash_embedder)
    assert kept(aligner, FACTS, "Anna", 1) == ([0, 1, 2], [0, 1])  # Ada, Anna and Kent
    assert kept(aligner, FACTS, "Charles", 1) == ([0, 3, 4], [2, 3])
    assert kept(aligner, FACTS, "Anna", 25) == ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
    assert kept(aligner, FACTS, "Anna", 0) == ([], [])


def test_pruning_keeps_a_best_node_that_nothing_touches(hash_embedder: Any) -> None:
    aligner = small(hash_embedder)
    graph = aligner.vectors.of_graph(["cup", "table", "lamp"], [(0, "on", 1)])
    nodes, edges = aligner.prune(graph, "lamp", 1)
    assert (nodes.tolist(), edges.tolist()) == ([2], [])


def test_facts_in_two_parts_and_no_facts_can_be_pruned(hash_embedder: Any) -> None:
    aligner = small(hash_embedder)
    apart = [("a", "is", "b"), ("c", "is", "d")]
    assert kept(aligner, apart, "d", 1) == ([2, 3], [1])
    assert kept(aligner, [], "d", 25) == ([], [])
    assert aligner.best([], "d", 3) == []


def test_the_best_facts_begin_with_those_that_pruning_keeps(hash_embedder: Any) -> None:
    aligner = small(hash_embedder)
    assert sorted(aligner.best(FACTS, "Charles", 2)) == [2, 3]
    assert len(aligner.best(FACTS, "Charles", 99)) == len(FACTS)


def test_the_best_facts_are_in_the_order_of_their_better_node_then_of_the_other(
    hash_embedder: Any,
) -> None:
    aligner = small(hash_embedder)
    facts = [
        ("red", "is", "dark"),
        ("blue sky", "is", "red"),
        ("blue sky sea", "is", "dark"),
        ("blue sky sea", "is", "blue sky"),
    ]
    # by likeness to the question: blue sky sea, blue sky, then red and dark, which tie
    assert aligner.best(facts, "blue sky sea", 4) == [3, 2, 1, 0]
    assert aligner.best(facts, "blue sky sea", 3) == [3, 2, 1]


def test_nodes_that_tie_keep_their_order() -> None:
    empty = np.zeros((0, 1), np.float32)
    graph = GraphFeatures(
        empty, empty, np.array([[0, 2], [1, 3]]), np.zeros(4, np.int64)
    )
    assert fact_places(graph, np.array([1.0, 1.0, 1.0 + 1e-8, 1.0])).tolist() == [
        [0, 2],
        [1, 3],
    ]
    assert fact_places(graph, np.array([0.0, 1.0, 3.0, 2.0])).tolist() == [
        [2, 0],
        [3, 1],
    ]
    # cosines over a temperature are compared as they are, not by their size
    assert fact_places(graph, np.array([1e5, 1e5, 1e5, 1e5 + 0.01])).tolist() == [
        [1, 0],
        [2, 3],
    ]


def test_training_lets_both_losses_fall_and_finds_what_the_reasoning_names(
    hash_embedder: Any,
) -> None:
    aligner = small(hash_embedder)
    examples = [
        _example(aligner, FACTS, "Where is her mother from?", REASONING),
        _example(
            aligner, FACTS[2:4], "What did her friend do?", "Charles built engine."
        ),
    ]
    first = [loss.item() for loss in aligner.losses(examples)]
    optimiser = torch.optim.AdamW(aligner.parameters(), lr=3e-3)
    for _ in range(40):
        optimiser.zero_grad()
        aligner.loss(examples).backward()
        optimiser.step()
    last = [loss.item() for loss in aligner.losses(examples)]
    assert all(after < before / 4 for before, after in zip(first, last, strict=True))
    assert kept(aligner, FACTS, "Where is her mother from?", 1)[1] == [0, 1]


@pytest.mark.parametrize(
    ("left_out", "place"), [("align_nodes", 1), ("align_graphs", 0)]
)
def test_a_loss_that_is_left_out_does_not_count(
    hash_embedder: Any, left_out: str, place: int
) -> None:
    aligner = small(hash_embedder, replace(SMALL, **{left_out: False}))
    examples = [
        _example(aligner, FACTS, "mother?", REASONING),
        _example(aligner, FACTS[2:4], "friend?", "Charles."),
    ]
    assert float(aligner.loss(examples).detach()) == float(
        aligner.losses(examples)[place].detach()
    )


def test_an_aligner_that_learns_from_nothing_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=says("nodes", "graphs", "--no-align-nodes")
    ):
        replace(SMALL, align_nodes=False, align_graphs=False)


def test_a_graph_that_is_like_its_text_has_a_cosine_of_one(hash_embedder: Any) -> None:
    aligner = small(hash_embedder)
    graphs = [aligner.vectors.of_facts(FACTS), aligner.vectors.of_facts(FACTS[:1])]
    with torch.no_grad():
        states, batch = aligner(graphs)
        own = pool(states, batch).numpy()
    # single precision
    assert aligner.likeness(graphs, own).tolist() == pytest.approx([1.0, 1.0], abs=1e-5)
    assert aligner.likeness(graphs, own[::-1].copy())[0] < 0.999


def test_an_aligner_is_read_back_as_it_was_written(
    hash_embedder: Any, tmp_path: Path
) -> None:
    aligner = small(hash_embedder)
    for weight in aligner.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    aligner.save(tmp_path)
    again = GraphAligner.load(tmp_path, hash_embedder)
    graph, question = aligner.vectors.of_facts(FACTS), hash_embedder.embed(["Ada"])[0]
    assert (
        again.scores(graph, question).tolist()
        == aligner.scores(graph, question).tolist()
    )
    assert again.config == SMALL


def test_the_configuration_of_an_aligner_can_be_read_by_a_person(
    hash_embedder: Any, tmp_path: Path
) -> None:
    small(hash_embedder).save(tmp_path, {"data": "Bücher", "seed": 3})
    lines = (tmp_path / "config.json").read_text("utf-8").splitlines()
    assert lines[:4] == [
        "{",
        '  "format": "ras-agent aligner",',
        '  "version": 2,',
        '  "config": {',
    ]
    assert lines[-5:] == [
        '  "about": {',
        '    "data": "Bücher",',
        '    "seed": 3',
        "  }",
        "}",
    ]


def test_a_folder_without_an_aligner_says_so(
    hash_embedder: Any, tmp_path: Path
) -> None:
    with pytest.raises(
        WeightsError, match=r"there is no aligner in this folder; python -m"
    ):
        GraphAligner.load(tmp_path)
    small(hash_embedder).save(tmp_path)
    (tmp_path / "aligner.safetensors").write_bytes(b"no weights")
    with pytest.raises(WeightsError, match="no weights of the aligner"):
        GraphAligner.load(tmp_path, hash_embedder)
    (tmp_path / "config.json").write_text('{"format": "other"}')
    with pytest.raises(WeightsError, match="expected 'ras-agent aligner' version 2"):
        GraphAligner.load(tmp_path, hash_embedder)


def test_the_encoder_of_a_graph_llm_can_begin_as_an_aligners(
    hash_embedder: Any, tmp_path: Path
) -> None:
    aligner = small(hash_embedder)
    aligner.save(tmp_path)
    torch.manual_seed(5)
    encoder = build_encoder(SMALL.encoder)
    align_encoder(encoder, SMALL.encoder, tmp_path)
    for name, value in aligner.encoder.state_dict().items():
        assert torch.equal(encoder.state_dict()[name], value)
    with pytest.raises(SettingsError, match="has the encoder"):
        align_encoder(encoder, replace(SMALL.encoder, layers=1), tmp_path)


def test_an_aligner_is_written_into_folders_that_are_made(
    hash_embedder: Any, tmp_path: Path
) -> None:
    small(hash_embedder).save(tmp_path / "models" / "aligner")
    small(hash_embedder).save(tmp_path / "models" / "aligner")  # over the existing ones
    assert (
        GraphAligner.load(tmp_path / "models" / "aligner", hash_embedder).config
        == SMALL
    )


def test_the_temperatures_are_those_of_contrastive_learning_unless_given() -> None:
    config = AlignerConfig()
    assert (config.hidden, config.projected, config.temperature, config.contrast) == (
        384,
        384,
        0.1,
        0.1,
    )
    assert (
        config.likeness,
        config.per_node,
        config.embedder,
        config.encoder.width,
    ) == (True, False, "minilm", 384)


@pytest.mark.parametrize(
    "wrong", [{"hidden": 0}, {"projected": 0}, {"temperature": 0.0}, {"contrast": 0.0}]
)
def test_a_width_below_1_and_a_temperature_of_0_are_refused(
    wrong: dict[str, Any],
) -> None:
    with pytest.raises(
        SettingsError,
        match="an aligner's widths have to be at least 1 and its temperatures above 0",
    ):
        replace(SMALL, **wrong)
    least = replace(SMALL, hidden=1, projected=1, temperature=0.01, contrast=0.01)
    assert least.hidden == 1


def test_an_encoder_of_another_width_than_the_texts_is_refused() -> None:
    with pytest.raises(SettingsError, match="one MLP"):
        AlignerConfig(EncoderConfig(width=1024, input=384))
