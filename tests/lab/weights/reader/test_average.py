"""The mean of several trained readers."""

import json
from pathlib import Path

import numpy as np
import pytest

from lab.weights.reader.average import average, main
from ras_agent.contracts.errors import WeightsError
from ras_agent.tools.embed.stored_bert import load_weights, save_weights


def _reader(file: Path, value: float, name: str = "heads.spans.weight") -> Path:
    save_weights(
        {
            name: np.full((2, 4), value, np.float32),
            "encoder.bias": np.full(3, -value, np.float32),
        },
        file,
    )
    file.with_suffix(".json").write_text(
        json.dumps({"base": "MiniLM", "settings": {"seed": value}})
    )
    return file


def test_a_mean_has_the_mean_of_each_weight_and_the_cards_of_all(
    tmp_path: Path,
) -> None:
    files = [_reader(tmp_path / f"{value}.safetensors", value) for value in (1, 2, 6)]
    main([*map(str, files), "--out", str(tmp_path / "mean.safetensors")])
    mean = load_weights(tmp_path / "mean.safetensors")
    assert mean["heads.spans.weight"].tolist() == [[3.0] * 4] * 2
    assert mean["encoder.bias"].tolist() == [-3.0] * 3
    card = json.loads((tmp_path / "mean.json").read_text())
    assert card["base"] == "MiniLM"
    assert card["trainings"] == [{"settings": {"seed": value}} for value in (1, 2, 6)]


def test_readers_of_other_weights_or_without_a_card_are_refused(tmp_path: Path) -> None:
    one = _reader(tmp_path / "one.safetensors", 1)
    other = _reader(tmp_path / "other.safetensors", 1, "heads.more.weight")
    with pytest.raises(
        WeightsError,
        match=r"other\.safetensors: other weights than .*one\.safetensors has",
    ):
        average([one, other], tmp_path / "mean.safetensors")
    other.with_suffix(".json").unlink()
    with pytest.raises(
        WeightsError, match=r"the card of other\.safetensors cannot be read"
    ):
        average([one, other], tmp_path / "mean.safetensors")
    assert not (tmp_path / "mean.safetensors").exists()
