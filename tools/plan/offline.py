"""A planner without a model: the question first, then what it compares, then the bridge that leads furthest."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Plan, Step
from ras_agent.tools.plan.bridges import bridges
from ras_agent.tools.plan.evidence import Evidence, gather

__all__ = ["OfflinePlanner"]

_MOST_BRIDGES = 2


class OfflinePlanner:
    """Plans with rules over the question's graph and the passages read; it never answers without retrieval."""

    name = "offline"

    def __init__(self, most_bridges: int = _MOST_BRIDGES) -> None:
        self._most_bridges = most_bridges

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """The question itself; then compared names not yet looked up, or bridges; sufficient when none is left."""
        if not steps:
            return Plan("subq", question, "the question itself comes first")
        evidence = gather(question, steps)
        asked_before = {step.subquery for step in steps}
        for name in evidence.asked.compared:
            if not evidence.has_read(name) and name not in asked_before:
                return Plan("subq", name, f"{name} is compared and has not been looked up")
        if evidence.asked.compared:
            return Plan("sufficient", reason="everything compared has been looked up")
        if len(steps) > self._most_bridges:
            return Plan("sufficient", reason="nothing promising is unexplored")
        tried = " ".join(asked_before - {question})
        for bridge in bridges(evidence, graph):
            if bridge.subquery not in asked_before and bridge.name not in tried:
                return Plan("subq", bridge.subquery, f"{bridge.name} is unexplored: {bridge.fact}")
        return Plan("sufficient", reason="nothing promising is unexplored")
