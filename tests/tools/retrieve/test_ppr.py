"""PageRank retrieval: passages that a walk finds and words do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ras_agent.config.registry import PLUGINS
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import IndexMismatch, SettingsError
from ras_agent.contracts.records import Passage, Triple
from ras_agent.graphs.resolve import search_from_settings
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import Linking
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.offline.roles import offline_extractor
from ras_agent.tools.retrieve.ppr import PPRRetriever
from ras_agent.tools.retrieve.registered import retriever_over
from tests.messages import says

PASSAGES = [
    Passage("paris", "Paris is the capital of France.", "Paris"),
    Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    ),
]


def built(folder: Path, passages: list[Passage], embedder: Any = None) -> PassageIndex:
    """An index with its graph, read by the offline extractor."""
    index = PassageIndex.create(folder, embedder)
    index.add(passages)
    with open_writer(folder, embedder) as writer:
        writer.read(
            index.passages, read_each(offline_extractor()), "offline", whole=True
        )
        writer.write()
    return index


def ids(
    index: PassageIndex, query: str, name: str = "ppr", k: int = 5, **options: Any
) -> list[str]:
    return [
        hit.passage.id
        for hit in retriever_over(index, name, **options).retrieve(query, k)
    ]


def test_a_walk_finds_the_second_hop(tmp_path: Path) -> None:
    index = built(tmp_path / "i", PASSAGES)
    assert ids(
        index, "Which river flows through the birthplace of Alexander Graham Bell?"
    ) == ["bell", "leith"]


def test_an_entity_that_many_passages_name_counts_less_as_a_start(
    tmp_path: Path,
) -> None:
    many = [
        Passage(f"scot-{n}", f"Person {n} was born in Scotland.", f"Person {n}")
        for n in range(5)
    ]
    rare = Passage("rare", "Baddeck is a village.", "Baddeck")
    index = built(tmp_path / "i", [*many, rare])
    ratios = []
    for specificity in (True, False):
        retriever = retriever_over(index, "ppr", specificity=specificity)
        assert isinstance(retriever, PPRRetriever)
        scores = retriever.entity_scores("What links Scotland and Baddeck?")
        assert scores is not None
        graph = retriever.graph
        ratios.append(
            scores[graph.entity_id("Baddeck") or 0]
            / scores[graph.entity_id("Scotland") or 0]
        )
    assert ratios == pytest.approx([5 * ratios[1], ratios[1]], rel=0.2)


def test_a_passage_that_names_much_is_not_better_for_it() -> None:
    long = PassageFacts(
        "long",
        (Triple("Bell", "knew", "Edison"),),
        tuple(f"Person {n}" for n in range(30)),
    )
    short = PassageFacts("short", (Triple("Bell", "knew", "Edison"),))
    passages = [Passage("long", "About many."), Passage("short", "About two.")]
    index, graph = PassageIndex.in_memory(passages), KGIndex.in_memory([long, short])
    query = "Whom did Bell know?"
    assert ids(index, query, graph=graph) == ["short", "long"]
    assert ids(index, query, graph=graph, length=0.0) == ["long", "short"]


def test_a_passage_counts_the_logarithm_of_how_often_it_names_an_entity() -> None:
    often = PassageFacts(
        "often", (Triple("Bell", "knew", "Edison"), Triple("Bell", "met", "Tesla"))
    )
    once = PassageFacts("once", (Triple("Bell", "knew", "Watson"),))
    graph = KGIndex.in_memory([often, once])
    index = PassageIndex.in_memory(
        [Passage("often", "Two facts."), Passage("once", "One.")]
    )
    # without a step the walk is only at Bell
    hits = retriever_over(index, "ppr", graph=graph, damping=0.0, length=0.0).retrieve(
        "Whom did Bell know?", 2
    )
    assert [(hit.passage.id, hit.score) for hit in hits] == [
        ("often", pytest.approx(1.0986, abs=1e-4)),  # log(1 + 2)
        ("once", pytest.approx(0.6931, abs=1e-4)),  # log(1 + 1)
    ]


class Angles:
    """Embeds a text of the form "name 60" as the unit vector at 60 degrees, any other at 0."""

    name, dimension = "angles", 2

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        last = [text.rsplit(" ", 1)[-1] for text in texts]
        angles = np.radians([float(word) if word.isdigit() else 0.0 for word in last])
        return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)


def test_entities_that_a_question_may_mean_count_by_how_likely_they_are() -> None:
    embedder = Angles()
    graph = KGIndex.in_memory([PassageFacts("p", (), ("Near 20", "Far 60"))], embedder)
    index = PassageIndex.in_memory([Passage("p", "...")], embedder)
    linked = LinkedGraph.of(index, graph, Linking(threshold=0.0, temperature=0.1), None)
    retriever = PPRRetriever(
        index.snapshot,
        graph,
        np.array([0]),
        linked.linker,
        damping=0.0,
        specificity=True,
        equivalence=1.0,
        length=0.5,
    )
    scores = retriever.entity_scores("Who is Nobody?")
    assert scores is not None
    # the question lies at 0: cosines of 0.9397 and 0.5, so shares of exp(9.397) and exp(5)
    wanted = {
        "Near 20": 1 / (1 + math.exp(-4.397)),
        "Far 60": 1 / (1 + math.exp(4.397)),
    }
    assert dict(zip(graph.entities, scores.tolist(), strict=True)) == pytest.approx(
        wanted, abs=1e-4
    )


def test_what_no_walk_reaches_is_no_hit(tmp_path: Path) -> None:
    assert "paris" not in ids(
        built(tmp_path / "i", PASSAGES), "Where was Alexander Graham Bell born?"
    )


def test_a_deleted_passage_is_no_hit_before_the_graph_knows(tmp_path: Path) -> None:
    paris, leith, bell = (
        Passage(p.id, p.text, p.title, document_id=p.id) for p in PASSAGES
    )
    index = built(tmp_path / "i", [leith, paris, bell])
    index.delete_document("bell")
    assert ids(index, "Which river flows through Edinburgh?") == ["leith"]


def test_passages_that_the_graph_does_not_know_are_told(tmp_path: Path) -> None:
    index = built(tmp_path / "i", PASSAGES)
    index.add([Passage("new", "Leith is a port.", "Leith")])
    with pytest.warns(
        UserWarning,
        match=says(
            "1 of 4 passages", "not in the knowledge graph", "ras-agent kg build"
        ),
    ):
        retriever_over(index, "ppr")


def test_an_index_without_a_graph_names_the_remedy(tmp_path: Path) -> None:
    index = PassageIndex.create(tmp_path / "i")
    with pytest.raises(IndexMismatch, match=r"ras-agent kg build .*i"):
        retriever_over(index, "ppr")
    # a command that can be run: an index in memory has no folder to name
    with pytest.raises(IndexMismatch, match=says("ras-agent index CORPUS --out my")):
        retriever_over(PassageIndex.in_memory(PASSAGES), "ppr")


def test_the_mix_ranks_by_both(tmp_path: Path, hash_embedder: Any) -> None:
    built(tmp_path / "i", PASSAGES, hash_embedder)
    graph = KGIndex.open(tmp_path / "i", hash_embedder)
    index = PassageIndex.open(tmp_path / "i", hash_embedder)
    query = "capital of the country of Alexander Graham Bell"
    found = ids(index, query, "ppr+dense", graph=graph)
    assert found[0] == "bell"
    assert set(found) == {"bell", "leith", "paris"}


def test_entities_that_a_question_starts_from_can_be_asked_for(tmp_path: Path) -> None:
    graph = KGIndex.in_memory(
        [PassageFacts("bell", (Triple("Bell", "born in", "Edinburgh"),))]
    )
    retriever = retriever_over(PassageIndex.in_memory(PASSAGES[2:]), "ppr", graph=graph)
    assert isinstance(retriever, PPRRetriever)
    assert [
        graph.entities[link.entity] for link in retriever.linked("Where is Edinburgh?")
    ] == ["Edinburgh"]


@pytest.mark.parametrize(
    "options",
    [
        *({"equivalence": value} for value in (-3.0, -0.5, float("inf"))),
        *({"length": value} for value in (5, 1.5, -0.5, -2)),
        {"damping": 1.0},
    ],
)
def test_numbers_outside_their_ranges_are_refused(
    tmp_path: Path, options: dict[str, float]
) -> None:
    with pytest.raises(SettingsError, match=r"from 0"):
        retriever_over(built(tmp_path / "i", PASSAGES), "ppr", **options)


@pytest.mark.parametrize(
    "options", [{"equivalence": 0.0}, {"length": 0}, {"length": 1}]
)
def test_the_ends_of_the_ranges_are_taken(
    tmp_path: Path, options: dict[str, float]
) -> None:
    index = built(tmp_path / "i", PASSAGES)
    assert ids(index, "Which river flows through Edinburgh?", **options)[0] == "leith"


def test_a_blank_query_is_refused(tmp_path: Path) -> None:
    retriever = retriever_over(built(tmp_path / "i", PASSAGES), "ppr")
    assert isinstance(retriever, PPRRetriever)
    with pytest.raises(ValueError, match="blank"):
        retriever.rank(" ", 1)


def test_rare_entities_and_equivalences_count_in_full_where_nobody_says_how_much(
    tmp_path: Path, hash_embedder: Any
) -> None:
    index = built(
        tmp_path / "i",
        [*PASSAGES, Passage("note", "Graham Bell Alexander lived in Leith.", "A note")],
        hash_embedder,
    )

    def scores(**options: Any) -> list[float]:
        retriever = retriever_over(index, "ppr", **options)
        assert isinstance(retriever, PPRRetriever)
        found = retriever.entity_scores("Was Alexander Graham Bell born in Edinburgh?")
        assert found is not None
        return [round(score, 5) for score in found.tolist()]

    assert scores() == scores(specificity=True, equivalence=1.0, damping=0.5)
    assert scores() != scores(specificity=False)
    assert scores() != scores(equivalence=0.0)
    assert scores() != scores(equivalence=2.0)


@pytest.mark.parametrize("name", ["ppr", "pcst"])
def test_of_many_passages_that_name_the_same_those_come_first_that_hold_the_question_s_other_words(
    tmp_path: Path, name: str
) -> None:
    hub = [Passage(f"visit-{n}", f"Mira Holt visited Hall {n}.") for n in range(300)]
    index = built(
        tmp_path / "i", [*hub, Passage("birth", "Mira Holt was born in Orvena.")]
    )
    retriever = retriever_over(index, name)
    (best,) = retriever.retrieve("Where was Mira Holt born?", 1)
    assert best.passage.id == "birth"


class Leith:
    """A linker that enters the graph at the river."""

    def links(self, question: str) -> dict[str, float]:
        return {"Water of Leith": 1.0}


@pytest.mark.parametrize("name", ["ppr", "paths", "pcst", "bm25+ppr"])
def test_a_linker_is_shared_by_the_retrievers_of_a_graph(
    tmp_path: Path, name: str
) -> None:
    index = built(tmp_path / "i", PASSAGES)
    retriever: Any = retriever_over(index, name, linking=Linking(linker=Leith()))
    assert "leith" in [hit.passage.id for hit in retriever.retrieve("Which one?")]
    assert "leith" not in [
        hit.passage.id for hit in retriever_over(index, name).retrieve("Which one?")
    ]


def test_the_setting_names_a_linker_for_retrievers_of_a_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = built(tmp_path / "i", PASSAGES)
    monkeypatch.setitem(PLUGINS["linker"], "leith", lambda argument, options: Leith())
    settings = Settings(retriever="ppr", linker="leith")
    hits = search_from_settings(settings, index).retrieve("Which one?")
    assert "leith" in [hit.passage.id for hit in hits]
    with pytest.raises(
        SettingsError, match=says("--linker", "search a graph", "not for 'bm25'")
    ):
        search_from_settings(Settings(linker="leith"), index)
    with pytest.raises(SettingsError, match=says("--linker llm", "give --llm")):
        search_from_settings(Settings(retriever="ppr", linker="llm"), index)
