"""The input of a step of GFM training: documents near a question, parts of graphs, facts to complete, shares."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Source, Triple
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge
from ras_agent.train.gfm.batches import (
    completion_example,
    part_of,
    pick_documents,
    retrieval_example,
)
from ras_agent.train.gfm.sets import GFMSet, LinkedQuestion, share_of

PEOPLE = 20


@pytest.fixture
def graph(hash_embedder: Any) -> KGIndex:
    """Person n was born in town n, which lies on the one river."""
    facts = []
    for n in range(PEOPLE):
        town = f"Town {n}"
        facts.append(_stated(f"person-{n}", (f"Person {n}", "was born in", town)))
        facts.append(
            _stated(
                f"town-{n}",
                (town, "lies on", "River"),
                (town, "belongs to", f"Country {n}"),
            )
        )
    return KGIndex.in_memory(facts, hash_embedder)


def _stated(name: str, *facts: tuple[str, str, str]) -> PassageFacts:
    return PassageFacts(name, tuple(Triple(*fact, (Source(name),)) for fact in facts))


def _asked(graph: KGIndex, entities: list[str], supporting: str) -> LinkedQuestion:
    numbers = np.array(sorted(graph.entity_id(name) or 0 for name in entities))
    documents = np.array([graph.document_id(supporting) or 0])
    return LinkedQuestion(
        np.ones(64, dtype=np.float32),
        numbers,
        np.ones(len(numbers), dtype=np.float32),
        documents,
    )


def _set(graph: KGIndex, *labelled: LinkedQuestion) -> GFMSet:
    return GFMSet(
        "people",
        graph,
        {"labelled": list(labelled)},
        GFMConfig(64, 8, 2, inverse="negated"),
    )


def test_documents_that_name_what_a_question_names_are_picked(graph: KGIndex) -> None:
    asked = _asked(graph, ["Person 4", "Town 4"], "town-9")
    for seed in range(5):
        documents = pick_documents(graph, [asked], 10, np.random.default_rng(seed))
        assert len(documents) == 10
        assert {"person-4", "town-4", "town-9"} <= {
            graph.documents[document] for document in documents
        }


def test_no_more_than_half_of_what_is_left_is_near_a_question(graph: KGIndex) -> None:
    asked = _asked(graph, ["River"], "person-9")
    near = [
        sum(graph.documents[document].startswith("town") for document in documents)
        for documents in (
            pick_documents(graph, [asked], 21, np.random.default_rng(seed))
            for seed in range(5)
        )
    ]
    # ten by name, the other ten by chance: ten of 29, of which ten more are near
    assert min(near) >= 10
    assert max(near) < 20


def test_a_part_holds_equivalences_between_its_own_entities(hash_embedder: Any) -> None:
    facts = [
        _stated("bell", ("Graham Bell", "invented", "Telephone")),
        _stated("again", ("Bell Graham", "spoke", "English")),
    ]
    graph = KGIndex.in_memory(facts, hash_embedder)
    inverse = -np.asarray(graph.relation_vectors)
    both, alone = (
        part_of(graph, np.array([0, 1]), inverse),
        part_of(graph, np.array([0]), inverse),
    )
    assert [graph.entities[entity] for entity in both.entities] == [
        "Bell Graham",
        "English",
        "Graham Bell",
        "Telephone",
    ]
    messages = zip(both.graph.source.tolist(), both.graph.target.tolist(), strict=True)
    assert sorted(messages) == [(0, 1), (0, 2), (1, 0), (2, 0), (2, 3), (3, 2)]
    assert alone.graph.messages == 2


def test_a_fact_is_asked_for_by_its_relation_or_from_its_other_end_by_the_inverse(
    graph: KGIndex,
) -> None:
    known = np.asarray(graph.relation_vectors)
    born = known[graph.relation_id("was born in") or 0]
    example = completion_example([_set(graph)], 60, 40, 3, np.random.default_rng(0))
    asked = {
        (graph.entities[start], graph.entities[target]): vector
        for start, target, vector in zip(
            example.start.argmax(1),
            example.targets.argmax(1),
            example.vectors,
            strict=True,
        )
    }
    people = {
        ends: vector for ends, vector in asked.items() if ends[0].startswith("Person")
    }
    towns = {
        ends: vector for ends, vector in asked.items() if ends[1].startswith("Person")
    }
    assert len(people) + len(towns) == PEOPLE
    assert min(len(people), len(towns)) > 1
    for vector in people.values():
        np.testing.assert_array_equal(vector, born)
    for vector in towns.values():
        np.testing.assert_array_equal(vector, -born)


def test_a_negative_completes_no_other_fact(hash_embedder: Any) -> None:
    facts = [
        _stated(
            "bell",
            *(("Bell", "invented", f"Thing {n}") for n in range(12)),
            ("Bell", "saw", "Thing 3"),
        )
    ]
    graph = KGIndex.in_memory(facts, hash_embedder, equivalence=Equivalence(1.0))
    invented = np.asarray(graph.relation_vectors)[graph.relation_id("invented") or 0]
    inventor, seen = graph.entity_id("Bell"), 0
    for seed in range(5):
        example = completion_example(
            [_set(graph)], 3, 1, 40, np.random.default_rng(seed)
        )
        assert example.candidates is not None
        for start, vector, chosen in zip(
            example.start.argmax(1), example.vectors, example.candidates, strict=True
        ):
            if start == inventor and np.array_equal(vector, invented):
                seen += 1
                # all it did not invent is itself
                assert set(chosen[1:].tolist()) == {inventor}
    assert seen


def test_another_fact_of_the_same_two_stays_in_the_graph(hash_embedder: Any) -> None:
    graph = KGIndex.in_memory(
        [_stated("bell", ("Bell", "invented", "It"), ("Bell", "sold", "It"))],
        hash_embedder,
    )
    example = completion_example([_set(graph)], 1, 1, 2, np.random.default_rng(0))
    assert example.graph.messages == 2
    left = example.graph.vectors[example.graph.relation]
    # neither the relation that is asked for nor its inverse
    assert not any(
        np.array_equal(vector, sign * example.vectors[0])
        for vector in left
        for sign in (1, -1)
    )


def test_no_number_of_documents_is_the_whole_graph(hash_embedder: Any) -> None:
    # which no document states
    apart = UnstatedEdge("Forth", "flows through", "Scotland")
    graph = KGIndex.in_memory(
        [_stated("bell", ("Bell", "invented", "It"))], hash_embedder, edges=[apart]
    )
    sets = [_set(graph, _asked(graph, ["Bell"], "bell"))]
    completion = completion_example(sets, 1, 0, 2, np.random.default_rng(0))
    # the fact that is asked for is out
    assert (completion.graph.entities, completion.graph.messages) == (
        4,
        2,
    )
    retrieval = retrieval_example(sets, 1, 0, 1.0, 0.0, np.random.default_rng(0))
    assert (retrieval.graph.entities, retrieval.graph.messages) == (4, 4)
    assert retrieval.targets.sum() == 2
    assert (
        retrieval_example(sets, 1, 1, 1.0, 0.0, np.random.default_rng(0)).graph.entities
        == 2
    )


def test_documents_that_state_nothing_are_drawn_again(hash_embedder: Any) -> None:
    silent = [PassageFacts(f"title-{n}", (), (f"Title {n}",)) for n in range(200)]
    graph = KGIndex.in_memory(
        [*silent, _stated("bell", ("Bell", "invented", "Telephone"))], hash_embedder
    )
    for seed in range(5):
        example = completion_example(
            [_set(graph)], 4, 3, 2, np.random.default_rng(seed)
        )
        assert example.start.sum(1).tolist() == example.targets.sum(1).tolist() == [1]


def test_a_set_without_facts_cannot_be_completed(hash_embedder: Any) -> None:
    graph = KGIndex.in_memory([PassageFacts("title", (), ("Title",))], hash_embedder)
    with pytest.raises(SettingsError, match="graph of people has no facts to complete"):
        completion_example([_set(graph)], 4, 3, 2, np.random.default_rng(0))


def test_an_entity_gives_documents_what_the_packaged_ranker_lets_it_give(
    graph: KGIndex,
) -> None:
    sets = [_set(graph, _asked(graph, ["River"], "town-3"))]
    example = retrieval_example(sets, 1, 40, 1.0, 0.0, np.random.default_rng(0))
    assert example.shares is not None
    shares = example.shares.to_dense().numpy()
    assert shares.shape == (40, 61)
    row = shares[graph.document_id("town-3") or 0]
    given = {
        name: float(row[graph.entity_id(name) or 0])
        for name in ("Town 3", "River", "Country 3", "Person 3")
    }
    # named by 2, 20 and 1 documents; this one names three entities
    assert given == pytest.approx(
        {
            "Town 3": 1 / sqrt(2 * 3),
            "River": 1 / sqrt(20 * 3),
            "Country 3": 1 / sqrt(3),
            "Person 3": 0,
        }
    )


@pytest.mark.parametrize(
    ("dropout", "share"), [(0.0, 1.0), (0.25, 0.75), (1.0, 1 / 61)]
)
def test_dropout_is_the_share_of_a_questions_entities_that_is_left_out(
    graph: KGIndex, dropout: float, share: float
) -> None:
    some = _set(graph, _asked(graph, list(graph.entities), "town-3"))
    examples = (
        retrieval_example([some], 1, 40, 1.0, dropout, np.random.default_rng(seed))
        for seed in range(20)
    )
    shares = [(example.start > 0).mean() for example in examples]
    assert np.mean(shares) == pytest.approx(share, abs=0.04)
    assert min(shares) > 0


def _numbered(count: int) -> list[LinkedQuestion]:
    numbers, none = np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int64)
    return [LinkedQuestion(numbers, none, numbers, np.array([n])) for n in range(count)]


def test_a_smaller_share_of_the_questions_is_part_of_a_larger_one() -> None:
    shares = [
        [int(one.supporting[0]) for one in share_of(_numbered(10), share)]
        for share in (0.01, 0.25, 0.5, 1.0)
    ]
    assert [len(share) for share in shares] == [1, 3, 5, 10]
    assert all(set(small) < set(large) for small, large in pairwise(shares))
    assert shares[-1] == list(range(10))
