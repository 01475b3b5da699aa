"""A planner without a model: ask the question, then follow the entity closest to it that has not been looked up."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.canonical import canonical_key
from ras_agent.question_analysis import analyse
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Plan, Step
from ras_agent.words import stems

__all__ = ["OfflinePlanner"]


class OfflinePlanner:
    """Plans with rules over the question's graph."""

    name = "offline"

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        if not steps:
            return Plan("subq", question, "the question itself comes first")
        asked = analyse(question)
        known = {canonical_key(hit.passage.title.split(" (")[0]) for step in steps for hit in step.hits}
        tried = {step.subquery for step in steps}
        for name in asked.compared:
            if canonical_key(name) not in known and name not in tried:
                return Plan("subq", name, f"{name} has not been looked up")
        if asked.compared or len(steps) > 1:
            return Plan("sufficient", reason="nothing promising is unexplored")
        wanted = set(stems(question))
        best = max(
            (fact for fact in graph.facts if fact.key[2] not in known and fact.object[:1].isupper()),
            key=lambda fact: len(wanted & set(stems(f"{fact.subject} {fact.predicate}"))),
            default=None,
        )
        if best is None:
            return Plan("sufficient", reason="nothing promising is unexplored")
        return Plan("subq", f"{best.object} {' '.join(asked.content_words[-4:])}", f"{best.object} is unexplored")
