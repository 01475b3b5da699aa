"""Embedders behind an address, over real HTTP: requests, replies and reports."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import (
    IndexMismatch,
    ModelCallError,
    ModelRefused,
    SettingsError,
)
from ras_agent.contracts.records import Passage
from ras_agent.tools.chat.retry import RetryPolicy
from ras_agent.tools.embed.embedders import of_unit_length, resolve_embedder
from ras_agent.tools.embed.served import ServedEmbedder, same_model, server_of
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over
from tests.messages import says

pytest.importorskip("langchain_openai")

PASSAGES = [
    Passage("bell", "Bell patented the telephone.", "Bell"),
    Passage("sea", "The deep blue sea.", "Sea"),
]
TEXTS = ["Bell patented the telephone.", "The deep blue sea."]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "VLLM_API_KEY",
        "VLLM_BASE_URL",
        "OLLAMA_HOST",
    ):
        monkeypatch.delenv(name, raising=False)


def spec_of(server: Any, provider: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set up the environment for a provider, and return the embedder's name."""
    if provider == "openai":
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        return "openai:bge"
    if provider == "ollama":
        monkeypatch.setenv("OLLAMA_HOST", server.root)
        return "ollama:bge"
    return f"vllm:{server.base_url}#bge"


def patient(server: Any, passing_time: Any, **options: Any) -> ServedEmbedder:
    """Return an embedder whose waits take no time."""
    spec = f"vllm:{server.base_url}#bge"
    return ServedEmbedder(
        server_of(spec),
        name=spec,
        clock=passing_time,
        retry=RetryPolicy(jitter=lambda: 1.0),
        **options,
    )


@pytest.mark.parametrize(
    ("provider", "shape"),
    [("openai", "openai"), ("vllm", "vllm"), ("vllm", "tei"), ("ollama", "ollama")],
)
def test_an_index_is_made_and_searched_with_a_server_s_vectors(
    provider: str,
    shape: str,
    scripted_llm: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    scripted_llm.script({"vectors": 24, "shape": shape, "repeat": True})
    spec = spec_of(scripted_llm, provider, monkeypatch)
    PassageIndex.create(tmp_path / "i", spec).add(PASSAGES)
    asked = len(scripted_llm.requests())
    index = PassageIndex.open(tmp_path / "i")
    assert (index.snapshot.manifest.embedder.name, index.embedder.dimension) == (
        spec,
        24,
    )  # type: ignore[union-attr]
    # the width is remembered, and nothing is asked before a query
    assert len(scripted_llm.requests()) == asked
    assert [
        hit.passage.id
        for hit in retriever_over(index, "dense").retrieve("the deep blue sea", 2)
    ] == [
        "sea",
        "bell",
    ]
    bodies = scripted_llm.requests()
    assert [body["input"] for body in bodies] == [
        ["dimension"],
        ["Bell. Bell patented the telephone.", "Sea. The deep blue sea."],
        ["the deep blue sea"],
    ]
    assert {(body["model"], body["encoding_format"]) for body in bodies} == {
        ("bge", "float")
    }


def test_vectors_are_of_length_one_in_the_order_of_the_texts_unless_unscaled(
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"vectors": 16, "shape": "vllm", "repeat": True})
    scaled = resolve_embedder(f"vllm:{scripted_llm.base_url}#bge")
    plain = resolve_embedder(f"unscaled:vllm:{scripted_llm.base_url}#bge")
    vectors = scaled.embed(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((2, 16), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])
    assert vectors[1] == pytest.approx(scaled.embed(TEXTS[1:])[0])
    lengths = np.linalg.norm(plain.embed(TEXTS), axis=1)
    assert (lengths > 2).all()
    assert of_unit_length(plain).name == scaled.name
    assert of_unit_length(plain).embed(TEXTS) == pytest.approx(vectors)


def test_batches_are_bounded(scripted_llm: Any) -> None:
    scripted_llm.script({"vectors": 8, "repeat": True})
    embedder = resolve_embedder(f"vllm:{scripted_llm.base_url}#bge")
    texts = [f"text {number}" for number in range(70)]
    together = embedder.embed(texts)
    assert sorted(len(body["input"]) for body in scripted_llm.requests()) == [6, 32, 32]
    assert together[69] == pytest.approx(embedder.embed(texts[69:])[0])
    embedder.embed(["long " * 30_000] * 3)
    assert [len(body["input"]) for body in scripted_llm.requests()[-3:]] == [1, 1, 1]
    assert embedder.embed([]).shape == (0, 8)


def test_a_batch_that_the_server_finds_too_large_is_sent_in_halves(
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"vectors": 8, "shape": "tei", "most": 5, "repeat": True})
    embedder = resolve_embedder(f"vllm:{scripted_llm.base_url}#bge")
    texts = [f"text {number}" for number in range(20)]
    vectors = embedder.embed(texts)
    assert sorted(len(body["input"]) for body in scripted_llm.requests()) == [
        5,
        5,
        5,
        5,
        10,
        10,
        20,
    ]
    assert vectors[13] == pytest.approx(embedder.embed(texts[13:14])[0])


def test_a_server_that_is_busy_for_a_moment_is_asked_again(
    scripted_llm: Any, passing_time: Any
) -> None:
    scripted_llm.script(
        {"status": 429, "headers": {"Retry-After": "7"}},
        {"status": 503},
        {"body": "{"},
        {"vectors": 8, "repeat": True},
    )
    assert patient(scripted_llm, passing_time).embed(["a"]).shape == (1, 8)
    assert len(scripted_llm.requests()) == 4


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data": []}, "the reply has 0 vectors for 1 texts"),
        (
            {"data": [{"object": "embedding", "index": 0, "embedding": []}]},
            "vectors of different widths",
        ),
        (
            {"data": [{"object": "embedding", "index": 0, "embedding": ["x"]}]},
            "the reply holds no vectors",
        ),
        (
            {"data": [{"object": "embedding", "index": 0, "embedding": [1e999]}]},
            "values that are not numbers",
        ),
        ({"data": None}, "no"),
    ],
)
def test_a_reply_without_vectors_is_an_error(
    fields: Any, message: str, scripted_llm: Any, passing_time: Any
) -> None:
    scripted_llm.script({"vectors": 8, "fields": fields, "repeat": True})
    with pytest.raises(ModelCallError, match=message):
        patient(scripted_llm, passing_time).embed(["a"])


@pytest.mark.parametrize(
    ("error", "entry", "message"),
    [
        (
            ModelRefused,
            {"status": 401, "reply": "no key"},
            "401.*no key.*; set VLLM_API_KEY to a key that the server accepts",
        ),
        (
            ModelRefused,
            {"status": 404, "reply": "no model"},
            "404.*; check the model's name and the server's address, which usually",
        ),
        (
            ModelCallError,
            {
                "status": 400,
                "reply": "This model's maximum context length is 512 tokens",
            },
            "the text that begins 'Bell patented the telephone.' is too long for the model: cut shorter chunks, --chunk-size",
        ),
    ],
    ids=["key", "model", "length"],
)
def test_a_refusal_says_what_to_do(
    error: type[Exception],
    entry: Any,
    message: str,
    scripted_llm: Any,
    passing_time: Any,
) -> None:
    scripted_llm.script({**entry, "repeat": True})
    with pytest.raises(error, match=message):
        patient(scripted_llm, passing_time).embed(TEXTS[:1])
    assert len(scripted_llm.requests()) == 1


def test_keys_go_where_they_belong_and_are_masked(
    scripted_llm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "plainsecret-of-openai")
    scripted_llm.script(
        {"vectors": 8}, {"status": 400, "reply": "wrong key plainsecret-of-vllm"}
    )
    embedder = resolve_embedder(f"vllm:{scripted_llm.base_url}#bge")
    embedder.embed(["a"])
    monkeypatch.setenv("VLLM_API_KEY", "plainsecret-of-vllm")
    with pytest.raises(ModelCallError, match=r"wrong key \*\*\*"):
        resolve_embedder(f"vllm:{scripted_llm.base_url}#bge").embed(["a"])
    sent = [body["authorization"] for body in scripted_llm.requests()]
    assert sent == ["Bearer EMPTY", "Bearer plainsecret-of-vllm"]


def test_an_index_alone_has_no_key_sent_anywhere(
    scripted_llm: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripted_llm.script({"vectors": 8, "repeat": True})
    PassageIndex.create(tmp_path / "i", f"vllm:{scripted_llm.base_url}#bge").add(
        PASSAGES
    )
    monkeypatch.setenv("VLLM_API_KEY", "plainsecret")
    with pytest.raises(
        IndexMismatch,
        match=says(f"VLLM_BASE_URL={scripted_llm.base_url}", "if you trust it"),
    ):
        retriever_over(PassageIndex.open(tmp_path / "i"), "dense")
    monkeypatch.setenv("VLLM_BASE_URL", scripted_llm.base_url)
    assert retriever_over(PassageIndex.open(tmp_path / "i"), "dense").retrieve("sea", 1)
    assert [body["authorization"] for body in scripted_llm.requests()][
        -1
    ] == "Bearer plainsecret"


def test_a_server_that_has_moved_is_named_by_a_variable_or_in_python(
    scripted_llm: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scripted_llm.script({"vectors": 8, "repeat": True})
    PassageIndex.create(tmp_path / "i", f"vllm:{scripted_llm.base_url}#bge").add(
        PASSAGES
    )
    index = PassageIndex.open(tmp_path / "i", f"vllm:{scripted_llm.base_url}#bge")
    moved = replace(
        index.snapshot.manifest,
        embedder=EmbedderIdentity("vllm:http://127.0.0.1:9/v1#bge", 8),
    )
    with index.database.writing() as connection:
        connection.execute("UPDATE index_state SET manifest = ?", (moved.to_json(),))
    with pytest.raises(
        ModelRefused,
        match=says("nothing listens", "http://127.0.0.1:9", "VLLM_BASE_URL says"),
    ):
        retriever_over(PassageIndex.open(tmp_path / "i"), "dense").retrieve("sea", 1)
    named = PassageIndex.open(tmp_path / "i", f"vllm:{scripted_llm.base_url}#bge")
    assert (
        retriever_over(named, "dense").retrieve("the deep blue sea", 1)[0].passage.id
        == "sea"
    )
    monkeypatch.setenv("VLLM_BASE_URL", scripted_llm.base_url)
    out = create_ras_agent(index=tmp_path / "i", retriever="hybrid").invoke(
        {"question": "What is the deep blue sea?"}
    )
    assert "sea" in out["passages"]
    with pytest.raises(IndexMismatch, match="was built with embedder"):
        PassageIndex.open(tmp_path / "i", f"vllm:{scripted_llm.base_url}#another")


def test_a_server_that_now_has_another_model_is_noticed(
    scripted_llm: Any, tmp_path: Path
) -> None:
    scripted_llm.script({"vectors": 8}, {"vectors": 8}, {"vectors": 12, "repeat": True})
    PassageIndex.create(tmp_path / "i", f"vllm:{scripted_llm.base_url}#bge").add(
        PASSAGES
    )
    with pytest.raises(IndexMismatch, match=says("vectors of 12 numbers", "8 before")):
        retriever_over(PassageIndex.open(tmp_path / "i"), "dense").retrieve("sea", 1)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("gpu1", "http://gpu1:11434/v1"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000/v1"),
        ("https://gpu1:8000/", "https://gpu1:8000/v1"),
        ("http://gpu1:8000/v1", "http://gpu1:8000/v1"),
        ("http://proxy:8000/ollama", "http://proxy:8000/ollama/v1"),
    ],
)
def test_ollama_s_address_is_read_as_ollama_reads_it(
    given: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", given)
    assert server_of("ollama:nomic-embed-text").url == url


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "openai:text-embedding-3-small",
            "set OPENAI_API_KEY, or OPENAI_BASE_URL to your",
        ),
        (
            "vllm:gpu1#bge",
            "'vllm:gpu1#bge' is not the address of a model: write it as 'vllm:http://host:port/v1#model'",
        ),
        (
            "vllm:http://me:secret@gpu1/v1#bge",
            r"'vllm:http://gpu1/v1#bge': the address is stored in the index",
        ),
    ],
)
def test_a_name_that_cannot_be_used_says_why(spec: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        resolve_embedder(spec)


def test_one_model_is_the_same_at_every_address() -> None:
    assert same_model("vllm:http://a/v1#bge", "vllm:http://b/v1#bge")
    assert same_model("ollama:bge", "vllm:http://b/v1#bge")
    assert not same_model("vllm:http://a/v1#bge", "vllm:http://a/v1#gte")
    assert not same_model("st:bge", "ollama:bge")
    assert not same_model("vllm:http://a/v1", "vllm:http://b/v1")
    assert not same_model("unscaled:ollama:bge", "ollama:bge")
