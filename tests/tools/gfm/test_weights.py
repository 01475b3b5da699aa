"""Shapes of weights, configurations, and folders of weights: this package's and the published ones."""

import json
import pickle
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from ras_agent.errors import WeightsError  # noqa: E402
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights, load_gfm, save_gfm  # noqa: E402

CONFIG = GFMConfig(text_width=6, width=4, layers=2)
SMALL_PUBLISHED = {
    "text_emb_model_config": {"text_emb_model_name": "some/encoder"},
    "model_config": {
        "entity_model": {"input_dim": 4, "hidden_dims": [4, 4], "message_func": "distmult", "aggregate_func": "sum"},
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
    ("width", "parameters"), [(32, 78_977), (64, 215_297), (128, 659_969), (256, 2_237_441), (512, 8_144_897)]
)
def test_the_parameters_are_as_many_as_the_paper_counts(width: int, parameters: int) -> None:
    assert GFMConfig(width=width).parameters() == parameters


def test_the_published_configuration_is_understood() -> None:
    expected = GFMConfig(768, 512, 6, "sentence-transformers/all-mpnet-base-v2", "head", "text")
    assert GFMConfig.from_dict(PUBLISHED) == expected


def test_a_configuration_survives_its_own_json() -> None:
    config = GFMConfig(384, 64, 4, "minilm", "tail", "negated")
    assert GFMConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("field", "value"), [("message_func", "transe"), ("aggregate_func", "pna"), ("layer_norm", False)]
)
def test_another_architecture_is_refused_by_its_field(field: str, value: object) -> None:
    model = PUBLISHED["model_config"]
    data = {"model_config": {**model, "entity_model": {**model["entity_model"], field: value}}}  # type: ignore[dict-item]
    with pytest.raises(WeightsError, match=field):
        GFMConfig.from_dict(data)


@pytest.mark.parametrize(
    "data",
    [
        {"width": 8, "depth": 3},
        {"width": 0},
        {"toward": "both"},
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
    assert torch.equal(loaded["rel_mlp.weight"], weights["rel_mlp.weight"].half().float())


def test_a_published_folder_loads(tmp_path: Path) -> None:
    weights = initial_weights(CONFIG, 0)
    (tmp_path / "config.json").write_text(json.dumps(SMALL_PUBLISHED))
    torch.save({"model": weights}, tmp_path / "model.pth")
    config, loaded = load_gfm(tmp_path)
    assert config == GFMConfig(6, 4, 2, "some/encoder")
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("sprung"),)  # type: ignore[return-value]


def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG.to_dict()))
    (tmp_path / "model.pth").write_bytes(pickle.dumps(Trap(), protocol=2))
    with pytest.raises(WeightsError, match=r"model\.pth"):
        load_gfm(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_weights_of_another_shape_name_the_first_that_does_not_fit(tmp_path: Path) -> None:
    save_gfm(tmp_path, CONFIG, initial_weights(GFMConfig(text_width=6, width=4, layers=3), 0))
    with pytest.raises(WeightsError, match=r"entity_model\.layers\.2.*expected nothing"):
        load_gfm(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", '{"widht": 3}'])
def test_a_broken_configuration_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(WeightsError, match=r"config\.json"):
        load_gfm(tmp_path)


def test_a_folder_without_weights_says_what_belongs_there(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG.to_dict()))
    with pytest.raises(WeightsError, match=r"neither model\.safetensors nor model\.pth"):
        load_gfm(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(WeightsError, match="not a safetensors file"):
        load_gfm(tmp_path)
