"""G-reasoner's scores equal loops over nodes and messages; its configuration is read as it was published."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import WeightsError
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import GraphTensors
from ras_agent.tools.gfm.reasoner import (
    FastReasoner,
    ReasonerConfig,
    load_reasoner,
    plain_reasoner_scores,
)
from tests.messages import says

TINY = ReasonerConfig(text_width=6, width=4, layers=2)


def _published(**changes: Any) -> dict[str, Any]:
    """A config.json as the published trainer saves one, with nulls, for TINY; `changes` by the path of a field."""
    config: dict[str, Any] = {
        "text_emb_model_config": {
            "_target_": "gfmrag.text_emb_models.Qwen3TextEmbModel",
            "text_emb_model_name": "Qwen/Qwen3-Embedding-0.6B",
            "normalize": True,
            "batch_size": 32,
            "query_instruct": "Instruct: find\nQuery: ",
            "passage_instruct": None,
            "truncate_dim": 1024,
        },
        "dataset_config": {
            "class_name": "GraphIndexDataset",
            "use_node_feat": None,
            "use_relation_feat": None,
            "use_edge_feat": None,
            "inverse_relation_feat": None,
        },
        "model_config": {
            "_target_": "gfmrag.models.gfm_reasoner.GraphReasoner",
            "use_ent_emb": "early-late-fusion",
            "dtype": "bfloat16",
            "entity_model": {
                "_target_": "gfmrag.models.ultra.models.QueryNBFNet",
                "input_dim": 4,
                "hidden_dims": [4, 4],
                "message_func": "distmult",
                "aggregate_func": "sum",
                "short_cut": True,
                "layer_norm": True,
                "return_hidden": True,
            },
            "feat_dim": 6,
        },
    }
    for path, value in changes.items():
        *parts, last = path.split("__")
        place = config
        for part in parts:
            place = place[part]
        place[last] = value
    return config


def _weights(config: ReasonerConfig, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        name: torch.from_numpy(
            rng.normal(size=shape).astype(np.float32)
            / np.float32(shape[-1] ** 0.5 if len(shape) > 1 else 2)
        )
        for name, shape in config.shapes().items()
    }


def _loops(
    weights: dict[str, Any],
    facts: Any,
    relations: int,
    vectors: Floats,
    nodes: Floats,
    question: Floats,
    start: Any,
) -> Floats:
    """Compute the logits of all nodes one by one, in double precision."""
    w = {name: tensor.numpy().astype(np.float64) for name, tensor in weights.items()}

    def linear(name: str, x: Any) -> Any:
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    def two(name: str, x: Any) -> Any:
        return linear(f"{name}.2", np.maximum(linear(f"{name}.0", x), 0))

    query = linear("question_mlp", question)
    own = [linear("ent_mlp", node) for node in nodes]
    first = [
        two(
            "early_fuse_mlp",
            np.concatenate((query if number in start else 0 * query, one)),
        )
        for number, one in enumerate(own)
    ]
    state = list(first)
    for layer in range(sum(name.endswith("layer_norm.weight") for name in w)):
        at = f"entity_model.layers.{layer}"
        factor = [
            two(f"{at}.relation_projection", linear("rel_mlp", vector))
            for vector in vectors
        ]
        following = []
        for node in range(len(nodes)):
            total = first[node].copy()
            for head, relation, tail in facts:
                if head == node:
                    total += state[tail] * factor[relation]
                if tail == node:
                    total += state[head] * factor[relation + relations]
            mixed = linear(f"{at}.linear", np.concatenate((state[node], total)))
            centred = mixed - mixed.mean()
            norm = centred / np.sqrt((centred**2).mean() + 1e-5)
            norm = norm * w[f"{at}.layer_norm.weight"] + w[f"{at}.layer_norm.bias"]
            following.append(np.maximum(norm, 0) + state[node])
        state = following
    return np.array(
        [
            two("predict_mlp", np.concatenate((one, query, node)))[0]
            for one, node in zip(state, own, strict=True)
        ]
    )


@pytest.fixture
def case() -> dict[str, Any]:
    """A network of width 8 and 3 layers over 40 nodes of uneven degree, two of them without edges, with 90 facts."""
    rng = np.random.default_rng(0)
    config = ReasonerConfig(text_width=12, width=8, layers=3)
    common = rng.zipf(1.5, size=(90, 2)).clip(max=38) - 1
    facts = np.column_stack(
        (
            common[:, 0],
            rng.integers(0, 5, 90),
            (common[:, 1] + rng.integers(0, 30, 90)) % 38,
        )
    )
    vectors = rng.normal(size=(10, 12)).astype(np.float32)
    weights, starts = (
        _weights(config),
        [np.array([3]), np.array([5, 39]), np.array([], dtype=np.int64)],
    )
    questions = rng.normal(size=(3, 12)).astype(np.float32)
    nodes = rng.normal(size=(40, 12)).astype(np.float32)
    asked = zip(questions, starts, strict=True)
    return {
        "weights": weights,
        "graph": GFMGraph.from_edges(40, facts, vectors[:5], vectors[5:]),
        "nodes": nodes,
        "questions": questions,
        "starts": [
            GFMStart(one, np.ones(len(one), dtype=np.float32)) for one in starts
        ],
        "expected": np.stack(
            [
                _loops(weights, facts, 5, vectors, nodes, one, start)
                for one, start in asked
            ]
        ),
    }


def test_the_plain_pass_equals_loops_over_nodes_and_messages(
    case: dict[str, Any],
) -> None:
    dense = torch.zeros(3, 40)
    for row, start in zip(dense, case["starts"], strict=True):
        row[start.entities] = 1
    tensors = [torch.from_numpy(case[name]) for name in ("nodes", "questions")]
    found = plain_reasoner_scores(
        case["weights"], GraphTensors.of(case["graph"]), *tensors, dense
    )
    np.testing.assert_allclose(found.numpy(), case["expected"], atol=1e-4)


@pytest.mark.parametrize(
    ("cache_bytes", "half", "tolerance"),
    [
        (10**9, False, 1e-4),
        (10**9, True, 1e-2),
        (0, False, 1e-4),
        (9_000, False, 1e-4),
        (14_000, False, 1e-4),
    ],
)
def test_what_a_question_changes_gives_the_same_scores(
    case: dict[str, Any], cache_bytes: int, half: bool, tolerance: float
) -> None:
    network = FastReasoner(
        case["weights"],
        case["graph"],
        case["nodes"],
        cache_bytes=cache_bytes,
        half_cache=half,
        tolerance=0,
    )
    found = network.scores(case["questions"], case["starts"])
    np.testing.assert_allclose(found, case["expected"], atol=tolerance)


def test_how_much_of_the_background_is_cached_depends_on_the_room(
    case: dict[str, Any],
) -> None:
    def layers(cache_bytes: int) -> tuple[int, bool]:
        cache = FastReasoner(
            case["weights"],
            case["graph"],
            case["nodes"],
            cache_bytes=cache_bytes,
            half_cache=False,
        ).cache
        return len(cache.pre_norm), cache.score_hidden is not None

    # three layers' relation states take 1,080 bytes; a layer 40 * (36 + 32), of which 40 * 36 remain
    assert [
        layers(size) for size in (0, 1_080 + 2_719, 1_080 + 2_720, 9_000, 10**9)
    ] == [
        (0, False),
        (0, False),
        (1, False),
        (3, True),
        (3, True),
    ]


def test_a_graph_without_nodes_has_no_scores() -> None:
    nothing = np.zeros((0, 6), dtype=np.float32)
    graph = GFMGraph.from_edges(0, np.zeros((0, 3), dtype=np.int64), nothing, nothing)
    start = GFMStart(np.array([], dtype=np.int64), np.array([], dtype=np.float32))
    scores = FastReasoner(_weights(TINY), graph, nothing).scores(
        np.ones((1, 6), dtype=np.float32), [start]
    )
    assert scores.shape == (1, 0)


def test_the_published_network_has_34_640_897_parameters() -> None:
    shapes = ReasonerConfig().shapes()
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 34_640_897
    assert shapes["early_fuse_mlp.0.weight"] == (1024, 2048)
    assert shapes["predict_mlp.0.weight"] == (1024, 3072)
    assert "entity_model.mlp.0.weight" not in shapes


def test_a_published_configuration_is_read_with_its_nulls_as_defaults() -> None:
    assert ReasonerConfig.from_dict(_published()) == ReasonerConfig(
        text_width=6,
        width=4,
        layers=2,
        text_model="Qwen/Qwen3-Embedding-0.6B",
        query_instruct="Instruct: find\nQuery: ",
        passage_instruct="",
        inverse="text",
    )
    assert ReasonerConfig.from_dict(_published(dataset_config=None)).inverse == "text"
    negated = ReasonerConfig.from_dict(
        _published(dataset_config__inverse_relation_feat="inverse")
    )
    assert negated.inverse == "negated"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("model_config__use_ent_emb", None, "retriever 'gfm', not for 'greasoner'"),
        ("model_config__use_ent_emb", "late-fusion", "use_ent_emb is 'late-fusion'"),
        (
            "model_config__entity_model__message_func",
            "transe",
            "message_func is 'transe'; only 'distmult'",
        ),
        (
            "model_config__entity_model__return_hidden",
            None,
            "return_hidden is False; only True is supported",
        ),
        (
            "model_config__entity_model__hidden_dims",
            [4, 8],
            r"have to be equal, got \[4, 8\]",
        ),
        ("dataset_config__use_node_feat", False, "use_node_feat is False; only True"),
        ("dataset_config__use_edge_feat", True, "use_edge_feat is True; only False"),
        (
            "dataset_config__inverse_relation_feat",
            "other",
            "inverse_relation_feat is 'other'",
        ),
        ("text_emb_model_config__normalize", False, "normalize is False; only True"),
        (
            "model_config__entity_model",
            None,
            "not a G-reasoner network's configuration",
        ),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    field: str, value: Any, message: str
) -> None:
    with pytest.raises(WeightsError, match=message):
        ReasonerConfig.from_dict(_published(**{field: value}))


def test_a_published_folder_is_loaded(tmp_path: Path) -> None:
    weights = _weights(TINY)
    (tmp_path / "config.json").write_text(json.dumps(_published()))
    torch.save({"model": weights}, tmp_path / "model.pth")
    config, loaded = load_reasoner(tmp_path)
    assert config.text_model == "Qwen/Qwen3-Embedding-0.6B"
    assert set(loaded) == set(weights)
    assert torch.equal(loaded["predict_mlp.0.weight"], weights["predict_mlp.0.weight"])
    torch.save(
        {"model": {**weights, "ent_mlp.weight": torch.zeros(4, 5)}},
        tmp_path / "model.pth",
    )
    with pytest.raises(
        WeightsError, match=says("ent_mlp.weight", "expected (4, 6)", "found (4, 5)")
    ):
        load_reasoner(tmp_path)
