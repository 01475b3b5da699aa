"""A graph of four layers in gfm-rag's layout, ranked by G-reasoner, against the network written out over its files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ras_agent.config.settings import Settings
from ras_agent.tools.gfm.reasoner import ReasonerConfig
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.kg.formats.gfm_csv import write_gfm_files
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.other_nodes import Node
from ras_agent.tools.kg.stats import counts
from ras_agent.tools.retrieve.greasoner import GReasonerRetriever
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.retrieve.resolve import retriever_options
from ras_agent.tools.structure.build_graph import build_graph

DOCUMENTS = {
    "Bell": "Bell was born in Edinburgh.",
    "Leith": "The Leith flows through Edinburgh.",
    "Ohio": "A river.",
}
# an entity with attributes, one without an edge, a node of each other layer; edges between any two layers, one in place
# of a mention, one next to it, one between documents; a relation with attributes
NODES: list[tuple[str, str, dict[str, Any]]] = [
    *((name, "document", {"content": text}) for name, text in DOCUMENTS.items()),
    ("bell", "entity", {"born": 1847, "died": None}),
    ("edinburgh", "entity", {}),
    ("leith river", "entity", {}),
    ("nobody", "entity", {}),
    ("length: 35 km", "attribute", {}),
    ("scotland", "community", {"summary": "Rivers and inventors."}),
]
RELATIONS: dict[str, dict[str, str]] = {
    "born in": {"description": "where a life began"},
    **{
        name: {}
        for name in (
            "flows through",
            "is_mentioned_in",
            "has",
            "belongs to",
            "describes",
            "cites",
        )
    },
}
EDGES = [
    ("bell", "born in", "edinburgh"),
    ("leith river", "flows through", "edinburgh"),
    ("bell", "is_mentioned_in", "Bell"),
    ("edinburgh", "is_mentioned_in", "Bell"),
    ("edinburgh", "is_mentioned_in", "Leith"),
    ("leith river", "belongs to", "Leith"),
    ("edinburgh", "describes", "Leith"),
    ("leith river", "has", "length: 35 km"),
    ("edinburgh", "belongs to", "scotland"),
    ("Leith", "belongs to", "scotland"),
    ("Ohio", "cites", "Leith"),
]
QUESTION = "Which river flows where Bell was born?"
STARTS = {"entity": ["bell"], "document": ["Ohio"], "community": ["scotland"]}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "layers"
    tables = folder / "processed" / "stage1"
    tables.mkdir(parents=True)
    (folder / "raw").mkdir()
    (folder / "raw" / "documents.json").write_text(json.dumps(DOCUMENTS))
    for name, header, rows in (
        (
            "nodes",
            ("name", "type", "attributes"),
            [(name, kind, str(about)) for name, kind, about in NODES],
        ),
        (
            "relations",
            ("name", "attributes"),
            [(name, str(about)) for name, about in RELATIONS.items()],
        ),
        (
            "edges",
            ("source", "relation", "target", "attributes"),
            [(*edge, "{}") for edge in EDGES],
        ),
    ):
        with (tables / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    (tables / "test.json").write_text(
        json.dumps([{"question": QUESTION, "start_nodes": STARTS}])
    )
    return folder


@pytest.fixture
def weights(tmp_path: Path, hash_embedder: Any) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    shape = ReasonerConfig(hash_embedder.dimension, 8, 3)
    entity_model = {"input_dim": 8, "hidden_dims": [8, 8, 8], "return_hidden": True}
    config = {
        "text_emb_model_config": {
            "text_emb_model_name": "tests/hash",
            "query_instruct": "Query: ",
        },
        "model_config": {
            "use_ent_emb": "early-late-fusion",
            "entity_model": entity_model,
            "feat_dim": 64,
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    rng = np.random.default_rng(5)
    tensors = {
        name: torch.from_numpy(rng.normal(size=at).astype(np.float32))
        for name, at in shape.shapes().items()
    }
    torch.save({"model": tensors}, folder / "model.pth")
    return folder


def published(weights: Path, embedder: Any) -> dict[str, float]:
    """Return the logit of every node by name, by gfm-rag's formulas over its own tables."""
    w = {
        name: tensor.double().numpy()
        for name, tensor in torch.load(weights / "model.pth")["model"].items()
    }

    def linear(name: str, x: Any) -> Any:
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    def two(name: str, x: Any) -> Any:
        return linear(f"{name}.2", np.maximum(linear(f"{name}.0", x), 0))

    def encoded(first: dict[str, str], about: dict[str, Any]) -> Any:
        pairs = [*first.items(), *about.items()]
        text = "\n".join(f"{key}: {value}" for key, value in pairs if value is not None)
        return embedder.embed([text])[0].astype(np.float64)

    asked = linear(
        "question_mlp", embedder.embed([f"Query: {QUESTION}"])[0].astype(np.float64)
    )
    own = {
        name: linear("ent_mlp", encoded({"name": name, "type": kind}, about))
        for name, kind, about in NODES
    }
    starts = {name for names in STARTS.values() for name in names}
    first = {
        name: two(
            "early_fuse_mlp",
            np.concatenate((asked if name in starts else 0 * asked, one)),
        )
        for name, one in own.items()
    }
    state = dict(first)
    for layer in range(3):
        at = f"entity_model.layers.{layer}"
        kinds = {
            name: [
                two(
                    f"{at}.relation_projection",
                    linear("rel_mlp", encoded({"name": text}, about)),
                )
                for text in (name, f"inverse_{name}")
            ]
            for name, about in RELATIONS.items()
        }
        total = {name: one.copy() for name, one in first.items()}
        for head, relation, tail in EDGES:
            total[head] += state[tail] * kinds[relation][0]
            total[tail] += state[head] * kinds[relation][1]
        following = {}
        for name, before in state.items():
            mixed = linear(f"{at}.linear", np.concatenate((before, total[name])))
            norm = (mixed - mixed.mean()) / np.sqrt(mixed.var() + 1e-5)
            norm = norm * w[f"{at}.layer_norm.weight"] + w[f"{at}.layer_norm.bias"]
            following[name] = np.maximum(norm, 0) + before
        state = following
    return {
        name: float(
            two("predict_mlp", np.concatenate((state[name], asked, own[name])))[0]
        )
        for name in state
    }


def _retriever(
    index: Path, data: Path, weights: Path, embedder: Any
) -> GReasonerRetriever:
    starts = data / "processed" / "stage1" / "test.json"
    options = retriever_options(
        Settings(
            retriever="greasoner", weights=str(weights), starts=starts, index=index
        )
    )
    found = retriever_over(
        PassageIndex.open(index, embedder),
        "greasoner",
        **options,
        embedder=embedder,
        tolerance=0,
    )
    assert isinstance(found, GReasonerRetriever)
    return found


def test_a_graph_of_four_layers_scores_as_in_gfm_rag(
    tmp_path: Path, data: Path, weights: Path, hash_embedder: Any
) -> None:
    hash_embedder.name = "tests/hash"
    assert not build_graph(
        tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True
    ).skipped
    retriever = _retriever(tmp_path / "i", data, weights, hash_embedder)
    names = [
        *retriever.graph.entities,
        *(node.name for node in retriever.graph.others.nodes),
        *DOCUMENTS,
    ]
    start = retriever.start(QUESTION)
    assert {names[node] for node in start.entities} == {"bell", "Ohio", "scotland"}
    found = retriever.node_scores(QUESTION)
    logits = published(weights, hash_embedder)
    span = max(logits.values()) - min(logits.values())
    assert dict(zip(names, found.tolist(), strict=True)) == pytest.approx(
        logits, abs=1e-5 * span
    )
    hits = [hit.passage.id for hit in retriever.retrieve(QUESTION, 3)]
    assert hits == sorted(DOCUMENTS, key=lambda name: -logits[name])


def test_other_layers_travel_to_gfm_rag_and_back(
    tmp_path: Path, data: Path, hash_embedder: Any
) -> None:
    graph = build_graph(
        tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True
    ).graph
    assert set(graph.entities) == {"bell", "edinburgh", "leith river"}
    assert set(graph.others.nodes) == {
        Node("entity", "nobody"),
        Node("attribute", "length: 35 km"),
        Node("community", "scotland"),
    }
    assert counts(graph)["other nodes"] == [
        "attribute (1)",
        "community (1)",
        "entity (1)",
    ]
    passages = {
        passage.id: passage
        for passage in PassageIndex.open(tmp_path / "i", hash_embedder).passages
    }
    write_gfm_files(
        KGIndex.open(tmp_path / "i", hash_embedder),
        tmp_path / "data" / "again",
        passages.get,
    )
    again = build_graph(
        tmp_path / "j",
        gfm=tmp_path / "data" / "again",
        embedder=hash_embedder,
        exact=True,
    ).graph
    assert (again.fingerprint, again.others) == (graph.fingerprint, graph.others)


def test_what_rests_on_a_deleted_document_alone_leaves_the_other_layers(
    tmp_path: Path, data: Path, hash_embedder: Any
) -> None:
    build_graph(tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True)
    graph = delete_documents(tmp_path / "i", "Leith").graph
    # the river was named only there, and its length went with it; Edinburgh still belongs to Scotland
    assert set(graph.others.nodes) == {
        Node("entity", "nobody"),
        Node("community", "scotland"),
    }
    assert [link.relation for link in graph.others.links] == ["belongs to"]
    files = [
        path.read_bytes() for path in (tmp_path / "i").rglob("*") if path.is_file()
    ]
    assert not any(b"35 km" in data for data in files)


def test_a_view_of_some_documents_has_no_other_layers(
    tmp_path: Path, data: Path, hash_embedder: Any
) -> None:
    graph = build_graph(
        tmp_path / "i", gfm=data, embedder=hash_embedder, exact=True
    ).graph
    admitted = np.array([name != "Ohio" for name in graph.documents])
    assert not graph.within(admitted).others  # a community may tell of any document
    left = graph.without(~admitted).others
    assert {link.relation for link in left.links} == {
        "belongs to",
        "is_mentioned_in",
        "describes",
        "has",
    }
