"""An index in gfm-rag's layout, scored with published weights, against the network written out over its files."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("torch")

import torch

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import IngestError, SettingsError
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.gfm import GFMRetriever
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.retrieve.resolve import retriever_options
from ras_agent.tools.structure.build_graph import build_graph
from tests.messages import says

Reals = npt.NDArray[np.float64]

DOCUMENTS = {
    "The Beatles": "The Beatles were formed in Liverpool.",
    "Beatles": "Beatles is a place name.",
    "Liverpool": "Liverpool lies on the Mersey.",
    "Mersey": "The Mersey is a river.",
}
# two entities that are one by their canonical keys, equivalences in both directions and in one, a double space, an
# entity that no document names, a fact whose ends share no document, a node of another type, an edge to a lost node
NODES = [
    *((name, "document") for name in DOCUMENTS),
    *(
        (name, "entity")
        for name in (
            "the beatles",
            "beatles",
            "liverpool",
            "mersey",
            "river  mersey",
            "wirral",
            "uk",
        )
    ),
    ("about rivers", "summary"),
]
EDGES = [
    ("the beatles", "formed in", "liverpool"),
    ("liverpool", "lies on", "mersey"),
    ("mersey", "parts from liverpool", "wirral"),
    ("beatles", "formed in", "uk"),
    ("the beatles", "equivalent", "beatles"),
    ("beatles", "equivalent", "the beatles"),
    ("river  mersey", "equivalent", "mersey"),
    ("about rivers", "tells of", "mersey"),
    ("mersey", "lies in", "nowhere"),
    ("the beatles", "is_mentioned_in", "The Beatles"),
    ("liverpool", "is_mentioned_in", "The Beatles"),
    ("liverpool", "is_mentioned_in", "Liverpool"),
    ("mersey", "is_mentioned_in", "Liverpool"),
    ("beatles", "is_mentioned_in", "Beatles"),
    ("mersey", "is_mentioned_in", "Mersey"),
    ("river  mersey", "is_mentioned_in", "Mersey"),
    ("uk", "is_mentioned_in", "Mersey"),
]
QUESTION = "Which river flows through the city where the Beatles were formed?"
STARTS = ["the beatles", "mersey", "wirral"]
INSTRUCTION = "Query: "


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder as gfm-rag's indexer leaves it."""
    folder = tmp_path / "data" / "rivers"
    tables = folder / "processed" / "stage1"
    tables.mkdir(parents=True)
    (folder / "raw").mkdir()
    (folder / "raw" / "documents.json").write_text(json.dumps(DOCUMENTS))
    relations = sorted({relation for _, relation, _ in EDGES})
    for name, header, rows in (
        ("nodes", "name,type,attributes", [(*node, str({"x": 1})) for node in NODES]),
        ("relations", "name,attributes", [(relation, "{}") for relation in relations]),
        (
            "edges",
            "source,relation,target,attributes",
            [(*edge, "{}") for edge in EDGES],
        ),
    ):
        with (tables / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header.split(","), *rows])
    question = {
        "id": "1",
        "question": QUESTION,
        "start_nodes": {"entity": STARTS, "document": ["Mersey"]},
        "target_nodes": {"entity": ["mersey"], "document": ["Mersey"]},
    }
    (tables / "test.json").write_text(json.dumps([question]))
    return folder


@pytest.fixture
def weights(tmp_path: Path, hash_embedder: Any) -> Path:
    """Random weights as gfm-rag's trainer saves them."""
    folder = tmp_path / "weights"
    folder.mkdir()
    shape = GFMConfig(hash_embedder.dimension, 8, 3)
    entity_model = {
        "input_dim": 8,
        "hidden_dims": [8, 8, 8],
        "message_func": "distmult",
        "aggregate_func": "sum",
    }
    ranker = {
        "_target_": "gfmrag.models.gfm_rag_v1.rankers.IDFWeightedTopKRanker",
        "top_k": 3,
    }
    encoder = {
        "text_emb_model_name": "tests/hash",
        "normalize": True,
        "query_instruct": INSTRUCTION,
    }
    (folder / "config.json").write_text(
        json.dumps(
            {
                "text_emb_model_config": encoder,
                "dataset_config": {
                    "class_name": "GraphIndexDatasetV1",
                    "target_type": "entity",
                },
                "model_config": {
                    "feat_dim": shape.text_width,
                    "entity_model": entity_model,
                    "ranker": ranker,
                },
            }
        )
    )
    # large enough for scores to differ, as a trained network's do
    torch.save(
        {"model": {name: 3 * one for name, one in initial_weights(shape, 3).items()}},
        folder / "model.pth",
    )
    return folder


def published(
    data: Path, weights: Path, embedder: Any, top: int = 3
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the entities' logits and the documents' scores by name, by gfm-rag's formulas over its own files.

    Every node is in its graph, those that are no entity without a message, and any of them may be among the `top` best.
    """
    w = {
        name: tensor.double().numpy()
        for name, tensor in torch.load(weights / "model.pth")["model"].items()
    }
    type_of = dict(NODES)
    edges = [
        (h, r, t) for h, r, t in EDGES if type_of.get(h) == type_of.get(t) == "entity"
    ]
    named = defaultdict(set)
    for entity, _, document in EDGES:
        if (type_of[entity], type_of.get(document)) == ("entity", "document"):
            named[entity].add(document)

    def linear(name: str, x: Reals) -> Reals:
        result: Reals = w[f"{name}.weight"] @ x + w[f"{name}.bias"]
        return result

    asked = linear(
        "question_mlp",
        embedder.embed([f"{INSTRUCTION}{QUESTION}"])[0].astype(np.float64),
    )
    nodes = [name for name, _ in NODES]
    first = {
        name: asked / len(named[name]) if name in STARTS and named[name] else 0 * asked
        for name in nodes
    }
    state = dict(first)
    for layer in range(3):
        at = f"entity_model.layers.{layer}"

        def relation(text: str, at: str = at) -> Reals:
            hidden = linear(
                f"{at}.relation_projection.0",
                linear("rel_mlp", embedder.embed([text])[0]),
            )
            return linear(f"{at}.relation_projection.2", np.maximum(hidden, 0))

        total = {name: start.copy() for name, start in first.items()}
        for (
            head,
            name,
            tail,
        ) in (
            edges
        ):  # from edge_index[1] to edge_index[0], and the inverse edge the other way
            total[head] += state[tail] * relation(name)
            total[tail] += state[head] * relation(f"inverse_{name}")
        following = {}
        for name in nodes:
            mixed = linear(f"{at}.linear", np.concatenate((state[name], total[name])))
            norm = (mixed - mixed.mean()) / np.sqrt(mixed.var() + 1e-5)
            norm = norm * w[f"{at}.layer_norm.weight"] + w[f"{at}.layer_norm.bias"]
            following[name] = np.maximum(norm, 0) + state[name]
        state = following
    logits = {}
    for name in nodes:
        hidden = np.maximum(
            linear("entity_model.mlp.0", np.concatenate((state[name], asked))), 0
        )
        logits[name] = float(linear("entity_model.mlp.2", hidden)[0])
    best = sorted(nodes, key=lambda name: -logits[name])[:top]
    documents = {
        name: sum(1 / len(named[one]) for one in best if name in named[one])
        for name in DOCUMENTS
    }
    return {
        name: logits[name] for name in nodes if type_of[name] == "entity"
    }, documents


def _retriever(index: Path, data: Path, weights: Path, embedder: Any) -> GFMRetriever:
    settings = Settings(
        retriever="gfm",
        weights=str(weights),
        starts=data / "processed" / "stage1" / "test.json",
        index=index,
    )
    found = retriever_over(
        PassageIndex.open(index, embedder), "gfm", **retriever_options(settings)
    )
    assert isinstance(found, GFMRetriever)
    return found


def test_an_imported_index_scores_as_gfm_rag_does(
    tmp_path: Path, data: Path, weights: Path, hash_embedder: Any
) -> None:
    report = build_graph(tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True)
    assert [item.error for item in report.skipped] == [False]  # an edge to a lost node
    retriever = _retriever(tmp_path / "i", data, weights, hash_embedder)
    logits, documents = published(data, weights, hash_embedder)
    scores = retriever.entity_scores(QUESTION)
    assert scores is not None
    ours = dict(
        zip(
            retriever.graph.entities,
            np.log(scores / (1 - scores)).tolist(),
            strict=True,
        )
    )
    assert ours == pytest.approx(
        logits, abs=2e-6 * (max(logits.values()) - min(logits.values()))
    )
    assert len({round(logit, 2) for logit in logits.values()}) == len(logits)
    hits = {hit.passage.id: hit.score for hit in retriever.retrieve(QUESTION, 4)}
    assert hits == pytest.approx(
        {name: score for name, score in documents.items() if score}, abs=1e-6
    )


@pytest.mark.parametrize("top", [1, 2, 3, 4, 5, 6, 7])
def test_entities_without_documents_and_other_nodes_take_places_as_in_gfm_rag(
    tmp_path: Path, data: Path, weights: Path, hash_embedder: Any, top: int
) -> None:
    config = json.loads((weights / "config.json").read_text())
    config["model_config"]["ranker"]["top_k"] = top
    (weights / "config.json").write_text(json.dumps(config))
    build_graph(tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True)
    retriever = _retriever(tmp_path / "i", data, weights, hash_embedder)
    _, documents = published(data, weights, hash_embedder, top)
    hits = {hit.passage.id: hit.score for hit in retriever.retrieve(QUESTION, 4)}
    assert hits == pytest.approx(
        {name: score for name, score in documents.items() if score}, abs=1e-6
    )


def equivalences(graph: KGIndex) -> set[tuple[str, str]]:
    triples = [graph.triple(edge) for edge in graph.equivalences]
    return {(triple.subject, triple.object) for triple in triples}


def test_an_imported_graph_keeps_names_and_equivalences_as_they_are(
    tmp_path: Path, data: Path, hash_embedder: Any
) -> None:
    graph = build_graph(
        tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True
    ).graph
    assert set(graph.entities) == {name for name, kind in NODES if kind == "entity"}
    assert equivalences(graph) == {(h, t) for h, r, t in EDGES if r == "equivalent"}
    assert not any(
        graph.triple(edge).sources
        for edge in graph.facts
        if "wirral" in str(graph.triple(edge))
    )
    assert graph.document_frequency.tolist() == [
        {"liverpool": 2, "mersey": 2, "wirral": 0}.get(n, 1) for n in graph.keys
    ]
    # a name that is none of them is looked up by its canonical key: "the beatles" and "beatles" share one
    found = [
        graph.entity_id(name)
        for name in ("beatles", "the beatles", "River Mersey", "The Mersey")
    ]
    assert [graph.entities[number or 0] for number in found] == [
        "beatles",
        "the beatles",
        "river  mersey",
        "mersey",
    ]
    again = build_graph(tmp_path / "i", embedder=hash_embedder)
    assert (again.read, again.graph.fingerprint) == (0, graph.fingerprint)
    assert KGIndex.open(tmp_path / "i", hash_embedder).manifest.exact


def test_a_tolerance_of_nought_leaves_nothing_out(
    tmp_path: Path, data: Path, weights: Path, hash_embedder: Any
) -> None:
    build_graph(tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True)
    index = PassageIndex.open(tmp_path / "i", hash_embedder)
    usual, exact = (
        retriever_over(index, "gfm", weights=weights, device="cpu", **options)
        for options in ({}, {"tolerance": 0})
    )
    assert (usual.network.negligible > 0, exact.network.negligible) == (True, 0)  # type: ignore[attr-defined]
    with pytest.raises(
        SettingsError,
        match=says(
            "the tolerance of probabilities has to be at least 0 and below 1",
            "got -0.1",
        ),
    ):
        retriever_over(index, "gfm", weights=weights, device="cpu", tolerance=-0.1)


def test_by_canonical_keys_every_node_that_is_no_document_is_an_entity(
    tmp_path: Path, data: Path, hash_embedder: Any
) -> None:
    graph = build_graph(tmp_path / "i", gfm=data, embedder=hash_embedder).graph
    assert {"about rivers", "nowhere"} < set(graph.entities)
    assert graph.entity_id("beatles") == graph.entity_id("the beatles")
    assert equivalences(graph) == {("river  mersey", "mersey")}


def test_equivalences_are_found_anew_where_they_are_asked_for(
    tmp_path: Path, data: Path, hash_embedder: Any
) -> None:
    build_graph(tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True)
    graph = build_graph(
        tmp_path / "i", embedder=hash_embedder, equivalence={"threshold": 0.99}
    ).graph
    assert graph.manifest.equivalence.kind == "auto"
    assert equivalences(graph) == set()


def test_what_a_deleted_document_alone_named_leaves_the_imported_edges_too(
    tmp_path: Path, data: Path, hash_embedder: Any
) -> None:
    build_graph(tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True)
    index = PassageIndex.open(tmp_path / "i", hash_embedder)
    assert index.document_ids() == tuple(DOCUMENTS)
    graph = delete_documents(tmp_path / "i", "Beatles").graph
    assert "beatles" not in set(graph.entities)
    # one never was in a document, one still is
    assert {"wirral", "river  mersey"} < set(graph.entities)
    assert not [
        path
        for path in (tmp_path / "i").rglob("*")
        if path.is_file() and b"Beatles is a place" in path.read_bytes()
    ]


def test_starts_are_for_retrievers_that_search_a_graph(
    tmp_path: Path, data: Path
) -> None:
    starts = data / "processed" / "stage1" / "test.json"
    with pytest.raises(
        SettingsError,
        match=says("--starts", "retrievers that search a graph", "gfm or ppr, not"),
    ):
        retriever_options(Settings(retriever="dense", starts=starts))
    with pytest.raises(
        SettingsError,
        match=says("--weights", "retrievers that use a graph network", "such as gfm"),
    ):
        retriever_options(Settings(retriever="ppr+dense", weights="packaged"))
    assert set(
        retriever_options(
            Settings(retriever="graph", weights="packaged", starts=starts)
        )
    ) == {
        "weights",
        "linking",
    }
    starts.write_text('[{"question": "Who?"}]')
    with pytest.raises(IngestError, match="no question has start_nodes"):
        retriever_options(Settings(retriever="gfm", starts=starts))
