"""Shapes of weights, configurations, and folders of weights: this package's and the published ones."""

import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from ras_agent.contracts.errors import WeightsError
from ras_agent.tools.gfm.weights import (
    GFMConfig,
    initial_weights,
    load_gfm,
    same_encoder,
    save_gfm,
    weights_folder,
)
from tests.messages import says

CONFIG = GFMConfig(text_width=6, width=4, layers=2)
SMALL_PUBLISHED = {
    "text_emb_model_config": {"text_emb_model_name": "some/encoder", "normalize": True},
    "model_config": {
        "entity_model": {
            "input_dim": 4,
            "hidden_dims": [4, 4],
            "message_func": "distmult",
            "aggregate_func": "sum",
        },
        "feat_dim": 6,
    },
}


PUBLISHED = {
    "text_emb_model_config": {
        "_target_": "gfmrag.text_emb_models.BaseTextEmbModel",
        "text_emb_model_name": "sentence-transformers/all-mpnet-base-v2",
    },
    "model_config": {
        "_target_": "gfmrag.models.GNNRetriever",
        "entity_model": {
            "_target_": "gfmrag.ultra.models.QueryNBFNet",
            "input_dim": 512,
            "hidden_dims": [512, 512, 512, 512, 512, 512],
            "message_func": "distmult",
            "aggregate_func": "sum",
            "short_cut": True,
            "layer_norm": True,
        },
        "rel_emb_dim": 768,
    },
}


@pytest.mark.parametrize(
    ("width", "parameters"),
    [(32, 78_977), (64, 215_297), (128, 659_969), (256, 2_237_441), (512, 8_144_897)],
)
def test_the_parameters_are_as_many_as_the_paper_counts(
    width: int, parameters: int
) -> None:
    assert GFMConfig(width=width).parameters() == parameters


def test_the_published_configuration_is_understood() -> None:
    expected = GFMConfig(
        768,
        512,
        6,
        "sentence-transformers/all-mpnet-base-v2",
        "head",
        "text",
        question_prefix="",
    )
    assert GFMConfig.from_dict(PUBLISHED) == expected


def with_parts(**parts: dict[str, object]) -> dict[str, object]:
    """Return the published configuration with fields of its parts replaced."""
    return {
        **PUBLISHED,
        **{
            name: {**PUBLISHED.get(name, {}), **fields}
            for name, fields in parts.items()
        },
    }


SIMPLE = {"_target_": "gfmrag.models.gfm_rag_v1.rankers.SimpleRanker"}
IDF_TOP = {
    "_target_": "gfmrag.models.gfm_rag_v1.rankers.IDFWeightedTopKRanker",
    "top_k": 20,
}
TOP = {"_target_": "gfmrag.models.gfm_rag_v1.rankers.TopKRanker", "top_k": 7}


@pytest.mark.parametrize(
    ("part", "fields", "expected"),
    [
        (
            "dataset_config",
            {"inverse_relation_feat": "inverse"},
            {"inverse": "negated"},
        ),
        ("dataset_config", {"inverse_relation_feat": "text"}, {"inverse": "text"}),
        (
            "dataset_config",
            {
                "inverse_relation_feat": None,
                "use_relation_feat": None,
                "target_type": None,
            },
            {},
        ),
        ("model_config", {"init_nodes_weight": False}, {"idf_start_weights": False}),
        (
            "model_config",
            {"init_nodes_weight": None, "init_nodes_type": None, "ranker": None},
            {},
        ),
        (
            "model_config",
            {"ranker": IDF_TOP},
            {"ranker": {"top": 20, "weight": "rarity"}},
        ),
        ("model_config", {"ranker": TOP}, {"ranker": {"top": 7, "weight": "one"}}),
        (
            "text_emb_model_config",
            {"query_instruct": "Query: "},
            {"question_prefix": "Query: "},
        ),
        (
            "text_emb_model_config",
            {"passage_instruct": "Fact: "},
            {"relation_prefix": "Fact: "},
        ),
        (
            "text_emb_model_config",
            {"query_instruct": None, "passage_instruct": None, "normalize": False},
            {},
        ),
    ],
)
def test_what_else_a_published_configuration_says_is_obeyed(
    part: str, fields: dict[str, object], expected: dict[str, object]
) -> None:
    assert GFMConfig.from_dict(with_parts(**{part: fields})) == replace(
        GFMConfig.from_dict(PUBLISHED), **expected
    )


@pytest.mark.parametrize(
    ("part", "fields", "message"),
    [
        (
            "dataset_config",
            {"inverse_relation_feat": "both"},
            "inverse_relation_feat is 'both'; known: text, inverse",
        ),
        (
            "dataset_config",
            {"class_name": "GraphIndexDataset"},
            "class_name is 'GraphIndexDataset'; only",
        ),
        (
            "dataset_config",
            {"target_type": "passage"},
            "target_type is 'passage'; only 'entity' is supported",
        ),
        (
            "dataset_config",
            {"use_relation_feat": False},
            "use_relation_feat is False; only True",
        ),
        (
            "model_config",
            {"init_nodes_type": "summary"},
            "init_nodes_type is 'summary'; only 'document'",
        ),
        (
            "model_config",
            {"ranker": SIMPLE},
            "ranker is 'SimpleRanker', which adds up logits; known: TopKRanker",
        ),
        (
            "text_emb_model_config",
            {"text_emb_model_name": "facebook/contriever"},
            "normalize is not true",
        ),
    ],
)
def test_what_cannot_be_obeyed_is_refused(
    part: str, fields: dict[str, object], message: str
) -> None:
    with pytest.raises(WeightsError, match=message):
        GFMConfig.from_dict(with_parts(**{part: fields}))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            "sentence-transformers/all-mpnet-base-v2",
            "st:sentence-transformers/all-mpnet-base-v2",
            True,
        ),
        (
            "sentence-transformers/all-mpnet-base-v2",
            "st:/models/all-mpnet-base-v2/",
            True,
        ),
        ("minilm", "st:all-MiniLM-L6-v2", True),
        ("sentence-transformers/all-mpnet-base-v2", "st:BAAI/bge-base-en-v1.5", False),
        ("minilm", "openai:text-embedding-3-small", False),
    ],
)
def test_an_encoder_is_known_by_its_model_s_own_name(
    one: str, other: str, same: bool
) -> None:
    assert same_encoder(one, other) is same


def test_weights_of_the_hub_are_downloaded_without_pickles_of_other_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, list[str]]] = []

    def snapshot_download(name: str, allow_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        return str(tmp_path)

    monkeypatch.setitem(
        sys.modules,
        "huggingface_hub",
        SimpleNamespace(snapshot_download=snapshot_download),
    )
    assert weights_folder("rmanluo/GFM-RAG-8M") == tmp_path
    assert asked == [
        ("rmanluo/GFM-RAG-8M", ["config.json", "model.safetensors", "model.pth"])
    ]
    assert weights_folder(str(tmp_path)) == tmp_path
    assert weights_folder("nowhere") == Path("nowhere")
    assert (weights_folder("packaged") / "model.safetensors").is_file()
    assert len(asked) == 1


def test_weights_that_are_nowhere_are_said_to_be_neither_here_nor_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def snapshot_download(name: str, **_: object) -> str:
        raise OSError("Connection refused\nand more")

    monkeypatch.setitem(
        sys.modules,
        "huggingface_hub",
        SimpleNamespace(snapshot_download=snapshot_download),
    )
    with pytest.raises(
        WeightsError, match=says("no such folder", "hub", "Connection refused")
    ):
        weights_folder("rmanluo/GFM-RAG-8M")


def test_a_configuration_survives_its_own_json() -> None:
    config = GFMConfig(
        384,
        64,
        4,
        "minilm",
        "tail",
        "negated",
        "Q: ",
        "R: ",
        False,
        {"top": 5, "weight": "one"},
    )
    assert GFMConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("field", "value"),
    [("message_func", "transe"), ("aggregate_func", "pna"), ("layer_norm", False)],
)
def test_another_architecture_is_refused_by_its_field(
    field: str, value: object
) -> None:
    model = PUBLISHED["model_config"]
    data = {
        "model_config": {
            **model,
            "entity_model": {**model["entity_model"], field: value},
        }
    }  # type: ignore[dict-item]
    with pytest.raises(WeightsError, match=field):
        GFMConfig.from_dict(data)


@pytest.mark.parametrize(
    "data",
    [
        {"width": 8, "depth": 3},
        {"width": 0},
        {"message_target": "both"},
        {"inverse": "none"},
        {"model_config": {}},
        {**PUBLISHED, "text_emb_model_config": "mpnet"},
    ],
)
def test_what_is_no_configuration_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(WeightsError):
        GFMConfig.from_dict(data)


def test_weights_come_back_as_they_were_saved(tmp_path: Path) -> None:
    weights = initial_weights(CONFIG, 0)
    save_gfm(tmp_path, CONFIG, weights)
    config, loaded = load_gfm(tmp_path)
    assert config == CONFIG
    assert list(loaded) == list(CONFIG.shapes())
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)


def test_half_precision_weights_load_as_float32(tmp_path: Path) -> None:
    weights = initial_weights(CONFIG, 0)
    save_gfm(tmp_path, CONFIG, weights, half=True)
    _, loaded = load_gfm(tmp_path)
    assert loaded["rel_mlp.weight"].dtype == torch.float32
    assert torch.equal(
        loaded["rel_mlp.weight"], weights["rel_mlp.weight"].half().float()
    )


def test_a_published_folder_loads(tmp_path: Path) -> None:
    weights = initial_weights(CONFIG, 0)
    (tmp_path / "config.json").write_text(json.dumps(SMALL_PUBLISHED))
    torch.save({"model": weights}, tmp_path / "model.pth")
    config, loaded = load_gfm(tmp_path)
    assert config == GFMConfig(6, 4, 2, "some/encoder", question_prefix="")
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("sprung"),)  # type: ignore[return-value]


def test_a_pickle_that_would_run_something_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG.to_dict()))
    (tmp_path / "model.pth").write_bytes(pickle.dumps(Trap(), protocol=2))
    with pytest.raises(WeightsError, match=r"model\.pth"):
        load_gfm(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_weights_of_another_shape_name_the_first_that_does_not_fit(
    tmp_path: Path,
) -> None:
    save_gfm(
        tmp_path, CONFIG, initial_weights(GFMConfig(text_width=6, width=4, layers=3), 0)
    )
    with pytest.raises(
        WeightsError, match=r"entity_model\.layers\.2.*expected nothing"
    ):
        load_gfm(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", '{"widht": 3}'])
def test_a_broken_configuration_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(WeightsError, match=r"config\.json"):
        load_gfm(tmp_path)


def test_a_folder_without_weights_says_what_belongs_there(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG.to_dict()))
    with pytest.raises(
        WeightsError, match=r"neither model\.safetensors nor model\.pth"
    ):
        load_gfm(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(WeightsError, match="not a safetensors file"):
        load_gfm(tmp_path)
