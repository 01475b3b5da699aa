"""Folders of weights: this package's and the published ones."""

import json
import pickle
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from ras_agent.errors import WeightsError  # noqa: E402
from ras_agent.tools.gfm.config import GFMConfig  # noqa: E402
from ras_agent.tools.gfm.network import initial_weights  # noqa: E402
from ras_agent.tools.gfm.weights import load_gfm, save_gfm  # noqa: E402

CONFIG = GFMConfig(text_width=6, width=4, layers=2)
PUBLISHED = {
    "text_emb_model_config": {"text_emb_model_name": "some/encoder"},
    "model_config": {
        "entity_model": {"input_dim": 4, "hidden_dims": [4, 4], "message_func": "distmult", "aggregate_func": "sum"},
        "feat_dim": 6,
    },
}


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
    (tmp_path / "config.json").write_text(json.dumps(PUBLISHED))
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
