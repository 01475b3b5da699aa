"""Roles that are shown the best facts of a question's graph alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ras_agent.graphs.resolve import resolve_parts
from ras_agent.protocols import Answerer, Planner
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Passage, Plan, Source, Step, Triple
from ras_agent.settings import Settings
from ras_agent.tools.graph_tokens.fact_orders import fact_order
from ras_agent.tools.graph_tokens.pruned import FactPruner, PrunedAnswerer, PrunedPlanner


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
    """A planner and answerer that says which facts it was shown."""

    name = "watching"

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        return Plan("subq", graph.to_text())

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        return Answer(graph.to_text())


PRUNER = FactPruner(fact_order("use"), 1)


def test_both_roles_see_the_best_facts_for_the_question_and_its_sub_queries() -> None:
    planner, answerer = PrunedPlanner(Watching(), PRUNER), PrunedAnswerer(Watching(), PRUNER)
    assert planner.plan("Where from?", GRAPH, STEPS).subquery == str(BORN)
    assert answerer.answer("Who built an engine?", GRAPH, (), ()).text == str(ENGINE)
    assert asyncio.run(planner.aplan("Where from?", GRAPH, STEPS)).subquery == str(BORN)
    assert asyncio.run(answerer.aanswer("Who built an engine?", GRAPH, (), ())).text == str(ENGINE)
    assert (isinstance(planner, Planner), isinstance(answerer, Answerer), answerer.name) == (True, True, "watching")


def test_a_graph_that_is_small_enough_is_shown_as_it_is() -> None:
    assert FactPruner(fact_order("use"), 3).prune("Kent?", GRAPH, ()) is GRAPH


def test_a_fact_is_shown_with_those_that_contradict_it() -> None:
    one, other = (Triple("Anna", "was born in", year, (Source(year, 0, 1),)) for year in ("1792", "1795"))
    graph = QuestionGraph((ENGINE, one, other))
    assert graph.conflicts == ((one, other),)
    assert graph.showing([one.id]).facts == (one, other)
    assert graph.showing([one.id]).conflicts == graph.conflicts
    assert graph.showing([ENGINE.id]).facts == (ENGINE,)
    assert graph.showing([]).bounded(9) == graph


def test_the_setting_prune_facts_puts_it_around_both_roles() -> None:
    roles = resolve_parts("ras", settings=Settings(prune_facts="use", prune_to=5), index=[Passage("p", "Ada.")])
    assert isinstance(roles.planner, PrunedPlanner)
    assert isinstance(roles.answerer, PrunedAnswerer)
    assert roles.answerer.name == "offline"
    plain = resolve_parts("ras", settings=Settings(), index=[Passage("p", "Ada.")])
    assert not isinstance(plain.answerer, PrunedAnswerer)
