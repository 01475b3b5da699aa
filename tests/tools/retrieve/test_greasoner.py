"""G-reasoner retrieval: documents are nodes of the graph, and their texts are embedded once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from ras_agent.contracts.errors import IndexMismatch, SettingsError, WeightsError
from ras_agent.contracts.records import Passage, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.retrieve.greasoner import (
    GReasonerRetriever,
    messages_of_nodes,
    node_texts,
    relation_texts,
)
from ras_agent.tools.retrieve.registered import retriever_over
from tests.messages import says

BELL = Passage(
    "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
)
LEITH = Passage(
    "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
)
PARIS = Passage("paris", "Paris is the capital of France.")
FACTS = [
    PassageFacts(
        "bell", (Triple("Alexander Graham Bell", "was born in", "Edinburgh"),)
    ),
    PassageFacts("leith", (Triple("Water of Leith", "flows through", "Edinburgh"),)),
    PassageFacts("paris", (Triple("Paris", "is the capital of", "France"),)),
]
QUESTION = "Where was Alexander Graham Bell born?"
Folder = Callable[[int], Path]


@pytest.fixture
def index(tmp_path: Path, hash_embedder: Any) -> PassageIndex:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([BELL, LEITH, PARIS])
    with open_writer(tmp_path / "index", hash_embedder) as writer:
        writer.put(FACTS)
        writer.write()
    return index


def _retriever(
    index: PassageIndex, folder: Folder, **options: Any
) -> GReasonerRetriever:
    retriever = retriever_over(index, "greasoner", weights=folder(64), **options)
    assert isinstance(retriever, GReasonerRetriever)
    return retriever


def test_documents_and_entities_are_nodes_with_texts(index: PassageIndex) -> None:
    graph = KGIndex.in_memory(FACTS)
    rows = np.array([0, 2, -1])  # the passage of the last is gone
    assert node_texts(graph, index.snapshot.passages, rows) == [
        "name: Alexander Graham Bell\ntype: entity",
        "name: Edinburgh\ntype: entity",
        "name: France\ntype: entity",
        "name: Paris\ntype: entity",
        "name: Water of Leith\ntype: entity",
        "name: Alexander Graham Bell\ntype: document\ncontent: Alexander Graham Bell was born in Edinburgh.",
        "type: document\ncontent: Paris is the capital of France.",
        "type: document",
    ]


def test_relations_have_a_text_each_way_and_mentions_are_one_of_them() -> None:
    assert relation_texts(KGIndex.in_memory(FACTS[:1])) == (
        ["name: was born in", "name: equivalent", "name: is_mentioned_in"],
        [
            "name: inverse_was born in",
            "name: inverse_equivalent",
            "name: inverse_is_mentioned_in",
        ],
    )


def test_a_mention_is_a_message_from_the_document_to_the_entity_and_back() -> None:
    # entities Bell 0, Edinburgh 1; the document is node 2
    graph = KGIndex.in_memory(FACTS[:1])
    vectors = np.zeros((3, 4), dtype=np.float32)
    messages = messages_of_nodes(graph, vectors, vectors)
    found = sorted(
        zip(
            messages.target.tolist(),
            messages.source.tolist(),
            messages.relation.tolist(),
            strict=True,
        )
    )
    # toward the head: 0 is "was born in", 2 "is_mentioned_in"; their inverses are 3 and 5
    assert found == [(0, 1, 0), (0, 2, 2), (1, 0, 3), (1, 2, 2), (2, 0, 5), (2, 1, 5)]


def test_a_query_starts_from_what_it_names_and_from_the_nearest_documents(
    index: PassageIndex, reasoner_folder: Folder
) -> None:
    # entities 0 to 4, documents bell 5, leith 6, paris 7
    start = _retriever(index, reasoner_folder, nearest=1).start(QUESTION)
    assert (start.entities.tolist(), start.weights.tolist()) == ([0, 5], [1, 1])
    assert _retriever(index, reasoner_folder, nearest=0).start(
        QUESTION
    ).entities.tolist() == [0]
    # three documents are all there are
    assert len(_retriever(index, reasoner_folder).start(QUESTION).entities) == 4


def test_equal_documents_are_start_nodes_together(
    hash_embedder: Any, reasoner_folder: Folder
) -> None:
    # copies
    passages = [
        Passage(f"twin-{number}", "Edinburgh is a city.", "Edinburgh")
        for number in (2, 0, 1)
    ]
    graph = KGIndex.in_memory(
        PassageFacts(one.id, (Triple("Edinburgh", "is", "a city"),)) for one in passages
    )
    index = PassageIndex.in_memory(passages, hash_embedder)
    retriever = _retriever(
        index, reasoner_folder, graph=graph, embedder=hash_embedder, nearest=1
    )
    assert retriever.start("Where is the city?").entities.tolist()[-3:] == [2, 3, 4]
    assert [hit.passage.id for hit in retriever.retrieve("Where is the city?", 3)] == [
        "twin-2"
    ]


def test_documents_rank_by_the_layers_that_reach_their_nodes(
    index: PassageIndex, reasoner_folder: Folder
) -> None:
    hits = _retriever(index, reasoner_folder, nearest=0).retrieve(QUESTION, 3)
    # bell's node is reached in both layers; leith's, by Edinburgh, in the second; paris never
    assert [hit.passage.id for hit in hits] == ["bell", "leith", "paris"]
    assert hits[0].score > hits[1].score > hits[2].score > 0


def test_a_hit_is_explained_by_the_chain_from_the_questions_nodes_to_its_own(
    index: PassageIndex, reasoner_folder: Folder
) -> None:
    retriever = _retriever(index, reasoner_folder, nearest=0, paths=1)
    leith, paris = retriever.explain(QUESTION, ["leith", "paris"])
    assert leith[0].facts == (
        ("Alexander Graham Bell", "was born in", "Edinburgh"),
        ("Edinburgh", "is_mentioned_in", "Water of Leith (document)"),
    )
    assert leith[0].weight > 0
    assert paris == []  # no message leads there
    hits = {hit.passage.id: hit.why for hit in retriever.retrieve(QUESTION, 3)}
    assert (hits["leith"], hits["paris"]) == ((leith[0].to_text(),), ())


def test_the_question_is_encoded_with_the_weights_instruction(
    index: PassageIndex, reasoner_folder: Folder, hash_embedder: Any
) -> None:
    found = _retriever(index, reasoner_folder).vector("Who?")
    assert np.array_equal(found, hash_embedder.embed(["Query: Who?"])[0])


def test_texts_are_embedded_once_and_kept_beside_the_graph(
    index: PassageIndex, reasoner_folder: Folder, hash_embedder: Any
) -> None:
    _retriever(index, reasoner_folder)
    hash_embedder.texts.clear()
    _retriever(index, reasoner_folder)
    assert hash_embedder.texts == []


def test_another_encoder_is_refused_by_name(
    index: PassageIndex, reasoner_folder: Folder, hash_embedder: Any
) -> None:
    class Other:
        name, dimension, embed = "st:all-mpnet-base-v2", 64, hash_embedder.embed

    with pytest.raises(
        IndexMismatch,
        match=says(
            "vectors of org/hash",
            "not of 'st:all-mpnet-base-v2'",
            "embedder='st:org/hash'",
        ),
    ):
        _retriever(index, reasoner_folder, embedder=Other())

    class Same(Other):
        name = "st:/models/Hash"  # a folder of the same model

    _retriever(index, reasoner_folder, embedder=Same())


def test_longer_vectors_are_cut_to_the_networks_width_and_shorter_ones_refused(
    index: PassageIndex, reasoner_folder: Folder, hash_embedder: Any
) -> None:
    retriever = retriever_over(index, "greasoner", weights=reasoner_folder(16))
    assert isinstance(retriever, GReasonerRetriever)
    whole = hash_embedder.embed(["Query: Who?"])[0][:16]
    np.testing.assert_allclose(
        retriever.vector("Who?"), whole / np.linalg.norm(whole), rtol=1e-6
    )
    with pytest.raises(
        IndexMismatch, match=says("width 128 of org/hash", "'hash'", "width 64")
    ):
        retriever_over(index, "greasoner", weights=reasoner_folder(128))


def test_missing_weights_and_wrong_numbers_are_refused(
    index: PassageIndex, reasoner_folder: Folder
) -> None:
    with pytest.raises(
        WeightsError, match=says("needs weights", "weights='rmanluo/G-reasoner-34M'")
    ):
        retriever_over(index, "greasoner")
    with pytest.raises(SettingsError, match="must be 0 or more, got -1"):
        _retriever(index, reasoner_folder, nearest=-1)


def test_weights_of_the_other_network_name_the_retriever_that_they_are_for(
    index: PassageIndex, reasoner_folder: Folder
) -> None:
    with pytest.raises(
        WeightsError,
        match=says("config.json", "retriever 'greasoner'", "not for 'gfm'"),
    ):
        retriever_over(index, "gfm", weights=reasoner_folder(64))
    with pytest.raises(
        WeightsError,
        match=says("config.json", "retriever 'gfm'", "not for 'greasoner'"),
    ):
        retriever_over(index, "greasoner", weights="packaged")
