"""Planner and answerer that are shown the best facts of a question's graph alone (Align-GRAG's pruning, in the loop).

The run's own graph stays whole: its state, its trace and later hops lose nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ras_agent.calling import acall, call
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Passage, Plan, Step
from ras_agent.tools.graph_tokens.fact_orders import FactOrder
from ras_agent.tools.roles import role_name


class FactPruner:
    """Leaves the best `most` facts of a graph, by an order of ras_agent.tools.graph_tokens.fact_orders."""

    def __init__(self, order: FactOrder, most: int) -> None:
        self._order, self._most = order, most

    def prune(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> QuestionGraph:
        """Return the graph with the best facts visible, and those that contradict one of them."""
        if len(graph) <= self._most:
            return graph
        return graph.showing(self._order(question, graph, [step.subquery for step in steps])[: self._most])


class _Pruned:
    def __init__(self, role: object, pruner: FactPruner) -> None:
        self.__wrapped__: Any = role
        self._pruner = pruner
        self.name = role_name(role)

    async def _aprune(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> QuestionGraph:
        # embedding a graph takes a moment, in which other questions go on
        return await asyncio.to_thread(self._pruner.prune, question, graph, steps)


class PrunedPlanner(_Pruned):
    """Fits `Planner`: hands another planner a pruned graph."""

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the other planner's plan. Raises what it raises."""
        plan: Plan = call(self.__wrapped__, "plan", question, self._pruner.prune(question, graph, steps), steps)
        return plan

    async def aplan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Do the same as `plan`, for coroutines."""
        graph = await self._aprune(question, graph, steps)
        plan: Plan = await acall(self.__wrapped__, "plan", question, graph, steps)
        return plan


class PrunedAnswerer(_Pruned):
    """Fits `Answerer`: hands another answerer a pruned graph."""

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        """Return the other answerer's answer. Raises what it raises."""
        graph = self._pruner.prune(question, graph, steps)
        answer: Answer = call(self.__wrapped__, "answer", question, graph, passages, steps)
        return answer

    async def aanswer(
        self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]
    ) -> Answer:
        """Do the same as `answer`, for coroutines."""
        graph = await self._aprune(question, graph, steps)
        answer: Answer = await acall(self.__wrapped__, "answer", question, graph, passages, steps)
        return answer
