"""Planner and answerer are shown the best facts of a question's graph only; the run's own graph stays whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ras_agent.config.settings import Settings
from ras_agent.contracts.records import (
    Answer,
    Citation,
    Extraction,
    Hit,
    Passage,
    Plan,
    Source,
    Step,
    Triple,
)
from ras_agent.graphs.parts import AgentParts
from ras_agent.graphs.ras import assemble_ras
from ras_agent.graphs.resolve import resolve_parts
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.graph_tokens.fact_orders import FactPruner, fact_order


def fact(subject: str, predicate: str, object_: str) -> Triple:
    return Triple(subject, predicate, object_, (Source("p", 0, 1),))


ENGINE, MOTHER, BORN = (
    fact("Charles", "built", "an engine"),
    fact("Ada", "has the mother", "Anna"),
    fact("Anna", "was born in", "Kent"),
)
GRAPH = QuestionGraph((ENGINE, MOTHER, BORN))
STEPS = (Step(1, "Where was Anna born?", (), (), ()),)


class Watching:
    """All roles: two hops, whose facts are those of GRAPH; notes which facts planner and answerer are shown."""

    name = "watching"

    def __init__(self) -> None:
        self.shown: list[tuple[str, str]] = []

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        self.shown.append(("planner", graph.to_text()))
        return Plan("sufficient") if steps else Plan("subq", question)

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return [
            Hit(
                Passage(
                    "p", "Charles built an engine. Ada's mother Anna was born in Kent."
                ),
                1.0,
            )
        ]

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        return Extraction((ENGINE, MOTHER, BORN))

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        self.shown.append(("answerer", graph.to_text()))
        return Answer("Ada", (Citation(1, passages[0].id),))


def _asked(pruner: Any) -> tuple[Watching, Callable[[], Any]]:
    roles = Watching()
    parts = AgentParts(
        "ras",
        planner=roles,
        extractor=roles,
        answerer=roles,
        retriever=roles,
        pruner=pruner,
    )
    return roles, lambda: assemble_ras(parts)


def _sync(agent: Any) -> Any:
    return agent.invoke({"question": "Who built an engine?"})


def _async(agent: Any) -> Any:
    return asyncio.run(agent.ainvoke({"question": "Who built an engine?"}))


@pytest.mark.parametrize("ask", [_sync, _async])
def test_both_roles_see_the_best_facts_and_the_graph_keeps_all(
    ask: Callable[[Any], Any],
) -> None:
    roles, agent = _asked(FactPruner(fact_order("use"), 1))
    out = ask(agent())
    assert roles.shown == [
        ("planner", ""),
        ("planner", str(ENGINE)),
        ("answerer", str(ENGINE)),
    ]
    assert len(out["graph"]["facts"]) == 3
    assert out["failures"] == []


def test_the_sub_queries_have_a_say() -> None:
    pruner = FactPruner(fact_order("use"), 1)
    assert pruner.prune("Where from?", GRAPH, STEPS).facts == (BORN,)
    assert pruner.prune("Who built an engine?", GRAPH, ()).facts == (ENGINE,)


@pytest.mark.parametrize("ask", [_sync, _async])
def test_a_pruner_that_fails_is_recorded_and_the_whole_graph_is_shown(
    ask: Callable[[Any], Any],
) -> None:
    def broken(*_: object) -> list[str]:
        raise OSError("the embedder is away")

    roles, agent = _asked(FactPruner(broken, 1))
    out = ask(agent())
    whole = "\n".join(map(str, (MOTHER, BORN, ENGINE)))
    assert roles.shown == [("planner", ""), ("planner", whole), ("answerer", whole)]
    assert [(one["role"], one["message"]) for one in out["failures"]] == [
        ("planner", "OSError: the embedder is away"),
        ("answerer", "OSError: the embedder is away"),
    ]


def test_a_graph_that_is_small_enough_is_shown_as_it_is() -> None:
    assert FactPruner(fact_order("use"), 3).prune("Kent?", GRAPH, ()) is GRAPH


def test_a_fact_is_shown_with_those_that_contradict_it() -> None:
    one, other = (
        Triple("Anna", "was born in", year, (Source(year, 0, 1),))
        for year in ("1792", "1795")
    )
    graph = QuestionGraph((ENGINE, one, other))
    assert graph.conflicts == ((one, other),)
    assert graph.showing([one.id]).facts == (one, other)
    assert graph.showing([one.id]).conflicts == graph.conflicts
    assert graph.showing([ENGINE.id]).facts == (ENGINE,)
    assert graph.showing([]).bounded(9) == graph


def test_the_setting_prune_facts_makes_the_pruner() -> None:
    corpus = [Passage("p", "Ada.")]
    pruner = resolve_parts(
        "ras", settings=Settings(prune_facts="use", prune_to=1), index=corpus
    ).pruner
    assert pruner is not None
    assert pruner.prune("Who built an engine?", GRAPH, ()).facts == (ENGINE,)
    assert resolve_parts("ras", settings=Settings(), index=corpus).pruner is None
