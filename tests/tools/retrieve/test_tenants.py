"""Two tenants over one index: neither ever finds a passage, a fact or a name of the other, whatever finds it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ras_agent import create_ras_agent
from ras_agent.config.filters import Filter
from ras_agent.contracts.records import Passage, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import graph_within
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.retrieve.document_ranker import DocumentRanker
from ras_agent.tools.retrieve.registered import retriever_over

TENANTS = ("anna", "boris")
COMMON = ("Rome", "Mars", "Tree")

Facts = list[tuple[int, int, int]]
_name = st.integers(0, 5)
_facts = st.lists(st.tuples(_name, st.integers(0, 2), _name), min_size=1, max_size=4)
_corpus = st.lists(st.tuples(st.sampled_from(TENANTS), _facts), min_size=1, max_size=8)


def _entity(tenant: str, number: int) -> str:
    """Name one of three entities of everybody, or of three of the tenant's own."""
    return COMMON[number] if number < 3 else f"{tenant.title()} secret {number}"


def _triples(tenant: str, facts: Facts) -> tuple[Triple, ...]:
    relations = ("likes", f"{tenant} sees", f"{tenant} sells")
    return tuple(
        Triple(_entity(tenant, a), relations[r], _entity(tenant, b))
        for a, r, b in facts
    )


def _made(corpus: list[tuple[str, Facts]]) -> tuple[list[Passage], list[PassageFacts]]:
    passages, stated = [], []
    for number, (tenant, facts) in enumerate(corpus):
        triples = _triples(tenant, facts)
        text = " ".join(
            f"{one.subject} {one.predicate} {one.object}." for one in triples
        )
        passages.append(
            Passage(
                f"{tenant}-{number}",
                text,
                triples[0].subject,
                f"{tenant}.md",
                {"user": tenant},
            )
        )
        stated.append(PassageFacts(passages[-1].id, triples))
    return passages, stated


def _shown(hits: Any) -> str:
    return json.dumps(
        [{**hit.to_dict(), **hit.passage.to_dict()} for hit in hits]
    ).lower()


def _searches(own: str, other: str) -> Iterator[str]:
    yield f"What does Rome like, and what does {own} sell?"
    yield f"Who sees {_entity(other, 4)} and {_entity(own, 5)}?"
    yield _entity(other, 3)


@pytest.mark.parametrize(
    "name",
    ["bm25", "dense", "hybrid", "ppr", "paths", "pcst", "ppr+dense", "paths+pcst"],
)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpus=_corpus)
def test_no_tenant_sees_what_is_the_other_s(
    name: str, corpus: list[tuple[str, Facts]], hash_embedder: Any
) -> None:
    passages, stated = _made(corpus)
    graph = KGIndex.in_memory(stated, hash_embedder)
    options = {} if name in ("bm25", "dense", "hybrid") else {"graph": graph}
    retriever: Any = retriever_over(
        PassageIndex.in_memory(passages, hash_embedder), name, **options
    )
    for own, other in (TENANTS, TENANTS[::-1]):
        for query in _searches(own, other):
            shown = _shown(retriever.retrieve(query, 10, {"user": own}))
            assert other not in shown, f"{own} was shown {shown}"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpus=_corpus)
def test_a_tenant_s_graph_is_the_one_of_what_his_passages_state(
    corpus: list[tuple[str, Facts]], hash_embedder: Any
) -> None:
    passages, stated = _made(corpus)
    index, graph = (
        PassageIndex.in_memory(passages, hash_embedder),
        KGIndex.in_memory(stated, hash_embedder),
    )
    for tenant in TENANTS:
        part = graph_within(index.within({"user": tenant}), graph)
        alone = KGIndex.in_memory(
            [one for one in stated if one.passage_id.startswith(tenant)], hash_embedder
        )
        for table in ("entities", "keys", "relations", "documents"):
            assert list(getattr(part, table)) == list(getattr(alone, table))
        facts = [
            [graph.triple(edge) for edge in graph.facts] for graph in (part, alone)
        ]
        assert facts[0] == facts[1]
        assert np.array_equal(
            part.mentions.to_scipy().toarray(), alone.mentions.to_scipy().toarray()
        )
        assert np.array_equal(part.entity_vectors, alone.entity_vectors)
        assert all(
            part.entity_id(name) == number for number, name in enumerate(part.entities)
        )


CORPUS = [
    ("anna", [(0, 0, 3), (3, 1, 4)]),
    ("boris", [(0, 0, 3), (3, 2, 1)]),
    ("anna", [(4, 2, 1)]),
    ("boris", [(1, 1, 5)]),
]


@pytest.mark.parametrize("name", ["gfm", "greasoner", "graph"])
def test_networks_are_run_over_the_tenant_s_graph_alone(
    name: str,
    hash_embedder: Any,
    gfm_folder: Callable[[int], Path],
    reasoner_folder: Callable[[int], Path],
) -> None:
    pytest.importorskip("torch")
    passages, stated = _made(CORPUS)
    options: dict[str, Any] = {"graph": KGIndex.in_memory(stated, hash_embedder)}
    if name == "greasoner":
        options |= {"weights": reasoner_folder(64)}
    else:
        options |= {
            "weights": gfm_folder(hash_embedder.dimension),
            "ranker": DocumentRanker(0, "score-rarity"),
            "paths": 2,
        }
    retriever: Any = retriever_over(
        PassageIndex.in_memory(passages, hash_embedder), name, **options
    )
    for own, other in (TENANTS, TENANTS[::-1]):
        for query in _searches(own, other):
            hits = retriever.retrieve(query, 10, {"user": own})
            assert other not in _shown(hits)
        assert {hit.passage.metadata["user"] for hit in hits} == {own}


def test_an_agent_shows_a_tenant_nothing_of_the_other_in_any_part_of_its_output(
    hash_embedder: Any,
) -> None:
    passages, _ = _made(CORPUS)
    agent = create_ras_agent(
        index=PassageIndex.in_memory(passages, hash_embedder), retriever="hybrid"
    )
    for own, other in (TENANTS, TENANTS[::-1]):
        out = agent.invoke(
            {"question": "What does Rome like?", "filter": {"user": own}}
        )
        assert out["passages"]
        assert other not in json.dumps(out, default=str).lower()


def test_equal_filters_are_one_and_different_ones_never_share_what_was_made(
    hash_embedder: Any,
) -> None:
    flags = enumerate([True, 1, "1"])
    passages = [
        Passage(str(number), f"River {number}.", metadata={"open": flag})
        for number, flag in flags
    ]
    retriever: Any = retriever_over(PassageIndex.in_memory(passages), "bm25")
    for filter, found in (
        ({"open": True}, ["0"]),
        ({"open": 1}, ["1", "2"]),
        ({"open": "1"}, ["1", "2"]),
    ):
        assert [
            hit.passage.id for hit in retriever.retrieve("river", 5, Filter.of(filter))
        ] == found
