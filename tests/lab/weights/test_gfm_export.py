"""A trained network's card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from lab.weights.gfm_export import export
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights, load_gfm, save_gfm


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("minilm", "all-MiniLM-L6-v2, as packaged"),
        (
            "sentence-transformers/all-mpnet-base-v2",
            "sentence-transformers/all-mpnet-base-v2",
        ),
        ("", "unknown"),
    ],
)
def test_a_card_names_the_encoder_that_the_network_was_trained_with(
    tmp_path: Path, model: str, expected: str
) -> None:
    shape = GFMConfig(8, 4, 1, model)
    save_gfm(tmp_path / "run", shape, initial_weights(shape, 0))
    (tmp_path / "run" / "training.json").write_text('{"sets": ["musique", "own"]}')
    export(tmp_path / "run", tmp_path / "out", {})
    card = json.loads((tmp_path / "out" / "card.json").read_text("utf-8"))
    assert card["encoder"] == expected
    assert card["data"] == [
        "MuSiQue training set, 199 questions and their paragraphs (CC BY 4.0)",
        "own",
    ]
    assert load_gfm(tmp_path / "out")[0] == shape
