"""From a question to entities: mentions, then candidates with weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Triple
from ras_agent.running.budget import Ledger, metered
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, Linking, query_mentions, split_mention
from ras_agent.tools.kg.passage_facts import PassageFacts

NAMES = (
    "Alexander Graham Bell",
    "first practical telephone",
    "telephone",
    "Graham Bell Museum",
    "University of Oxford",
)


def graph_of(*names: str, embedder: Any = None) -> KGIndex:
    return KGIndex.in_memory(
        [PassageFacts("p", tuple(Triple(name, "is", "thing") for name in names))],
        embedder,
    )


def mentions(question: str, *names: str) -> list[str]:
    graph = graph_of(*(names or NAMES))
    return [
        found.text
        for found in query_mentions(
            question, lambda text: graph.entity_id(text) is not None
        )
    ]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where was Alexander Graham Bell born?", ["Alexander Graham Bell"]),
        ("who made the first practical telephone?", ["first practical telephone"]),
        (
            "Did alexander graham bell study at the University of Oxford?",
            ["alexander graham bell", "University of Oxford"],
        ),
        ("Where is the Graham Bell Museum of Baddeck?", ["Graham Bell Museum"]),
        ("Who was Ada Lovelace?", ["Ada Lovelace"]),
        ("what is a telephone?", ["telephone"]),
        ("what is that?", []),
    ],
)
def test_names_and_phrases_that_are_entities(
    question: str, expected: list[str]
) -> None:
    assert mentions(question) == expected


@pytest.mark.parametrize(
    ("question", "entities", "expected"),
    [
        # longer than a name that is an entity, too
        (
            "Where is the Beaver and Erie Canal?",
            ["Beaver and Erie Canal", "Erie Canal"],
            ["Beaver and Erie Canal"],
        ),
        (
            "Who sang the song Against the Wind?",
            ["Against the Wind", "wind"],
            ["Against the Wind"],
        ),
        # but a phrase that is no name takes nothing from a name
        (
            "Which is the capital of France?",
            ["capital of France", "France"],
            ["France"],
        ),
        (
            'Who is in the "Mary Poppins" scene?',
            ["Mary Poppins", "Mary Poppins scene"],
            ["Mary Poppins"],
        ),
        # the rest of a name behind an entity
        (
            "Is James Norman Hall Argentinian?",
            ["James Norman Hall", "Argentinian"],
            ["James Norman Hall", "Argentinian"],
        ),
        (
            "Is James Norman Hall of Iowa dead?",
            ["James Norman Hall", "Iowa"],
            ["James Norman Hall", "Iowa"],
        ),
        (
            "When did the 1974 Texas Tech Raiders play?",
            ["Texas Tech", "1974"],
            ["1974", "Texas Tech"],
        ),
    ],
)
def test_phrases_and_names_that_overlap(
    question: str, entities: list[str], expected: list[str]
) -> None:
    assert mentions(question, *entities) == expected


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Scotland Edinburgh", ["Scotland", "Edinburgh"]),
        ("Water of Leith Scotland", ["Water of Leith", "Scotland"]),
        ("Scotland and the Edinburgh", ["Scotland", "Edinburgh"]),
        ("Scotland Glasgow", []),
        ("of the", []),
    ],
)
def test_a_name_is_split_where_all_of_it_is_entities(
    name: str, parts: list[str]
) -> None:
    graph = graph_of("Scotland", "Edinburgh", "Water of Leith", "Leith")
    assert split_mention(name, lambda text: graph.entity_id(text) is not None) == parts


def test_two_names_side_by_side_are_linked_without_an_embedder() -> None:
    graph = graph_of("Scotland", "Edinburgh")
    links = EntityLinker(graph).link("What flows there, Scotland Edinburgh?")
    assert [(graph.entities[link.entity], link.weight) for link in links] == [
        ("Scotland", 1.0),
        ("Edinburgh", 1.0),
    ]


def test_two_names_side_by_side_mean_their_nearest_where_there_is_one(
    hash_embedder: Any,
) -> None:
    graph = graph_of(
        "Scotland", "Edinburgh", "Edinburgh, in Scotland", embedder=hash_embedder
    )
    near = EntityLinker(
        graph, hash_embedder, linking=Linking(candidates=1, threshold=0.1)
    )
    far = EntityLinker(graph, hash_embedder, linking=Linking(threshold=0.999))
    question = "What flows there, Scotland Edinburgh?"
    assert [graph.entities[link.entity] for link in near.link(question)] == [
        "Edinburgh, in Scotland"
    ]
    assert [graph.entities[link.entity] for link in far.link(question)] == [
        "Scotland",
        "Edinburgh",
    ]


def test_a_name_is_linked_by_its_letters() -> None:
    graph = graph_of(*NAMES)
    (link,) = EntityLinker(graph).link("Where was Alexander Graham Bell born?")
    assert (graph.entities[link.entity], link.weight) == ("Alexander Graham Bell", 1.0)


def test_a_name_that_is_no_entity_means_its_nearest_with_weights_that_add_up_to_1(
    hash_embedder: Any,
) -> None:
    graph = graph_of("Alexander Bell", "Bell Canada", "Leith", embedder=hash_embedder)
    linker = EntityLinker(
        graph, hash_embedder, linking=Linking(candidates=2, threshold=0.1)
    )
    links = linker.link("Who is Alexander Graham Bell?")
    assert [graph.entities[link.entity] for link in links] == [
        "Alexander Bell",
        "Bell Canada",
    ]
    assert links[0].weight > links[1].weight
    assert sum(link.weight for link in links) == pytest.approx(1)


@pytest.mark.parametrize(
    ("temperature", "weights"), [(0.1, [0.8808, 0.1192]), (0.05, [0.9820, 0.0180])]
)
def test_weights_are_as_the_exponentials_of_cosines_over_the_temperature(
    temperature: float, weights: list[float]
) -> None:
    class Placed:
        name, dimension = "placed", 2

        def embed(self, texts: Sequence[str]) -> Any:
            vectors = {"Alex Bell": [1, 0], "Bell": [0.8, 0.6], "Ring": [0.6, 0.8]}
            return np.array(
                [vectors.get(text, [0, 1]) for text in texts], dtype=np.float32
            ).reshape(-1, 2)

    graph = graph_of("Bell", "Ring", embedder=Placed())
    how = Linking(candidates=2, temperature=temperature)
    links = EntityLinker(
        graph, Placed(), linking=how, mentions=lambda question: ["Alex Bell"]
    ).link("Who?")
    assert [graph.entities[link.entity] for link in links] == ["Bell", "Ring"]
    # cosines 0.8 and 0.6: 1 to exp(-0.2 / temperature)
    assert [link.weight for link in links] == pytest.approx(weights, abs=1e-4)


def test_without_an_embedder_an_unknown_name_is_nothing() -> None:
    assert EntityLinker(graph_of(*NAMES)).link("Who was Ada Lovelace?") == ()


def test_a_question_without_a_mention_is_linked_as_a_whole(hash_embedder: Any) -> None:
    graph = graph_of("river water", "mountain", embedder=hash_embedder)
    links = EntityLinker(graph, hash_embedder, linking=Linking(candidates=1)).link(
        "where does water flow?"
    )
    assert [graph.entities[link.entity] for link in links] == ["river water"]


def test_mentions_can_be_found_by_someone_else() -> None:
    graph = graph_of(*NAMES)
    linker = EntityLinker(
        graph, mentions=lambda question: ["telephone", "Telephone", ""]
    )
    assert [graph.entities[link.entity] for link in linker.link("anything")] == [
        "telephone"
    ]


def test_an_empty_graph_links_nothing(hash_embedder: Any) -> None:
    graph = KGIndex.in_memory([], hash_embedder)
    assert EntityLinker(graph, hash_embedder).link("Who was Ada Lovelace?") == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": -1},
        {"threshold": 2.0},
        {"threshold": float("nan")},
        {"temperature": 0.0},
        {"temperature": -1.0},
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: Any) -> None:
    with pytest.raises(SettingsError, match="linking needs candidates from 0 on"):
        Linking(**wrong)


def test_a_question_far_from_everything_has_weights(hash_embedder: Any) -> None:
    graph = graph_of(*NAMES, embedder=hash_embedder)

    class Opposite:
        name, dimension = hash_embedder.name, hash_embedder.dimension

        def embed(self, texts: list[str]) -> Any:
            away = -np.asarray(graph.entity_vectors).sum(axis=0, dtype=np.float32)
            return np.repeat((away / np.linalg.norm(away))[None], len(texts), axis=0)

    links = EntityLinker(graph, Opposite(), linking=Linking(temperature=1e-4)).link(
        "where does water flow?"
    )
    assert sum(link.weight for link in links) == pytest.approx(1.0)


# ---- linkers of somebody's


class Given:
    """A linker that knows the links, or fails."""

    def __init__(self, links: Any) -> None:
        self.given = links
        self.asked = 0

    def links(self, question: str) -> Any:
        self.asked += 1
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def test_a_linker_gives_the_names_and_their_weights() -> None:
    given = Given({"telephone": 3.0, "Graham Bell Museum": 0.5, "nobody": 1.0})
    linker = EntityLinker(graph_of(*NAMES), linking=Linking(linker=given))
    links = [(link.mention, link.weight) for link in linker.link("Who is Bell?")]
    assert links == [("telephone", 3.0), ("Graham Bell Museum", 0.5)]
    linker.link("Who is Bell?")
    assert given.asked == 1


def test_the_weight_of_a_name_is_shared_by_its_candidates(hash_embedder: Any) -> None:
    graph = graph_of("alpha beta", "alpha gamma", embedder=hash_embedder)
    how = Linking(candidates=2, threshold=-1.0, linker=Given({"alpha delta": 4.0}))
    links = EntityLinker(graph, hash_embedder, linking=how).link("?")
    assert sum(link.weight for link in links) == pytest.approx(4.0)
    assert len(links) == 2


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (ConnectionError("down"), "ConnectionError: down"),
        ({"telephone": 0.0}, "no name with a weight above 0: 'telephone': 0.0"),
        ({7: 1.0}, "no name with a weight above 0: 7: 1.0"),
    ],
)
def test_where_a_linker_fails_the_names_are_found_without_it_and_the_run_is_told(
    wrong: Any, why: str
) -> None:
    how = Linking(linker=Given(wrong))
    linker = EntityLinker(graph_of(*NAMES), linking=how)
    with metered(Ledger("retriever", hop=2)) as ledger:
        links = linker.link("Who was Alexander Graham Bell?")
    assert [link.mention for link in links] == ["Alexander Graham Bell"]
    (note,) = ledger.notes
    assert (note.role, note.hop, note.message) == (
        "linker",
        2,
        f"linker Given failed, and the names of the question are found without it: {why}",
    )


def test_a_linker_that_has_failed_is_asked_again() -> None:
    given = Given(ConnectionError("down"))
    linker = EntityLinker(graph_of(*NAMES), linking=Linking(linker=given))
    linker.link("Who?")
    given.given = {"telephone": 1.0}
    assert [link.mention for link in linker.link("Who?")] == ["telephone"]
