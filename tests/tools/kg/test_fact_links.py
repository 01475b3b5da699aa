"""A question is linked to the entities that it names, and to those of the facts that are nearest to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent import Settings, create_ras_agent
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.kg.fact_links import FactLinker
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, Linking
from ras_agent.tools.kg.text_vectors import maker_of
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.offline.roles import offline_extractor
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.roles import resolve_linker
from tests.messages import says

PASSAGES = [
    Passage("bell", "Bell was born in Edinburgh.", "Bell"),
    Passage(
        "leith",
        "The Water of Leith flows through Edinburgh.",
        "Water of Leith",
        document_id="leith",
    ),
]
QUESTION = "What river runs through the town of Bell?"
WORDS = ("bell", "born", "flows", "leith", "river", "runs")


class Words:
    """Embedder with a direction for each word; "river" and "runs" are those of a stream that flows."""

    name = "words"
    dimension = len(WORDS)

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed(self, texts: Any) -> Any:
        self.texts += texts
        vectors = np.full((len(texts), len(WORDS)), 0.01, dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for place, word in enumerate(WORDS):
                row[place] += word in text.lower()
            row[2] += row[4] + row[5]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "my.index"
    made = PassageIndex.create(folder, embedder=Words())
    made.add(PASSAGES)
    with open_writer(folder, embedder=Words()) as writer:
        writer.read(
            made.passages, read_each(offline_extractor()), "offline", whole=True
        )
        writer.write()
    return folder


def linked(place: Path, embedder: Words) -> dict[str, float]:
    graph = KGIndex.open(place, embedder)
    linker = EntityLinker(graph, embedder, linking=Linking(linker=FactLinker(1)))
    return {graph.entities[link.entity]: link.weight for link in linker.link(QUESTION)}


def test_names_and_both_ends_of_the_nearest_fact_have_half_of_the_weight_each(
    place: Path,
) -> None:
    weights = linked(place, Words())
    assert weights == pytest.approx(
        {"Bell": 1.0, "Water of Leith": 0.5, "Edinburgh": 0.5}
    )


def test_a_mix_with_dense_search_embeds_the_question_once(place: Path) -> None:
    embedder = Words()
    index = PassageIndex.open(place, embedder)
    linking = Linking(linker=FactLinker(1))
    mix = retriever_over(index, "ppr+dense", linking=linking)
    mix.retrieve(QUESTION, 2)
    assert embedder.texts.count(QUESTION) == 1


def test_the_facts_vectors_are_stored_and_made_once(place: Path) -> None:
    first = Words()
    linked(place, first)
    assert "Water of Leith flows through Edinburgh" in first.texts
    again = Words()
    linked(place, again)
    assert again.texts == [QUESTION]  # the name is found by its letters


def test_the_vector_of_a_fact_goes_with_its_passage(place: Path) -> None:
    linked(place, Words())
    index = PassageIndex.open(place, embedder=Words())
    maker = maker_of("facts", Words().name)
    stored = f"SELECT count(*) FROM kg_texts WHERE maker = {maker}"
    with index.database.reading() as connection:
        (before,) = connection.execute(stored).fetchone()
    delete_documents(place, ["leith"])
    with index.database.reading() as connection:
        (after,) = connection.execute(stored).fetchone()
    assert (before, after) == (2, 1)


def test_a_graph_without_vectors_has_nothing_to_compare() -> None:
    graph = KGIndex.in_memory([])
    with pytest.raises(SettingsError, match=says("--linker facts", "--embedder")):
        EntityLinker(graph, linking=Linking(linker=FactLinker()))


def test_it_is_named_with_the_number_of_its_facts(place: Path) -> None:
    assert resolve_linker("facts:3")
    with pytest.raises(SettingsError, match=says("facts:N", "'many'")):
        resolve_linker("facts:many")
    settings = Settings(retriever="ppr", linker="facts:1")
    index = PassageIndex.open(place, embedder=Words())
    agent = create_ras_agent(index=index, settings=settings)
    out = agent.invoke({"question": QUESTION})
    hits = [hit["passage_id"] for hit in out["steps"][0]["hits"]]
    assert hits == ["bell", "leith"]
