"""A planner without a model: the question first, then what it compares, then the bridge that leads furthest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Plan, Step
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.offline.bridges import COPULAS, bridges
from ras_agent.tools.offline.evidence import ENOUGH, Evidence, gather

__all__ = ["OfflinePlanner"]

_MOST_BRIDGES = 3


class OfflinePlanner:
    """Plans with rules over the question's graph and the passages read; it never answers without retrieval.

    Compared names ("Who is older, A or B?") are looked up one by one. Else the planner follows bridges: names in what
    has been read, each asked for together with the words of the question that its passage leaves open, until two
    linked passages explain the question, `most_bridges` have been followed, or none is left.
    """

    name = "offline"

    def __init__(self, *, most_bridges: int = _MOST_BRIDGES) -> None:
        self._most_bridges = most_bridges

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """The next sub-query, or sufficient; the reason is for a reader of the trace."""
        if not steps:
            return Plan("subq", question, "the question itself comes first")
        evidence = gather(question, steps)
        asked = {canonical_key(step.subquery) for step in steps}
        if evidence.asked.compared:
            return _compare(evidence, graph, asked)
        explained = evidence.explained()
        if explained >= ENOUGH:
            return Plan("sufficient", reason=f"two linked passages hold {explained:.0%} of the question")
        if len(steps) > self._most_bridges:
            return Plan("sufficient", reason=f"bridges followed: {self._most_bridges}, the most allowed")
        return _follow(evidence, graph, asked)


def _compare(evidence: Evidence, graph: QuestionGraph, asked: Set[str]) -> Plan:
    for name in evidence.asked.compared:
        if not evidence.has_read(name):
            for subquery in (name, *_with_class(name, evidence, graph)):
                if canonical_key(subquery) not in asked:
                    return Plan("subq", subquery, f"{name} is compared and has not been looked up")
    return Plan("sufficient", reason="what is compared has been looked up")


def _with_class(name: str, evidence: Evidence, graph: QuestionGraph) -> Iterator[str]:
    """The name with what the other compared entity is: things of one class are compared ("Live rock band")."""
    for other in evidence.asked.compared:
        for fact in graph.touching(canonical_key(other)) if other != name else ():
            if fact.predicate in COPULAS and canonical_key(fact.subject) == canonical_key(other):
                yield f"{name} {fact.object}"
                return


def _follow(evidence: Evidence, graph: QuestionGraph, asked: Set[str]) -> Plan:
    earlier = [f" {subquery} " for subquery in asked - {canonical_key(evidence.asked.question)}]
    for bridge in bridges(evidence, graph):
        if not any(f" {canonical_key(bridge.name)} " in subquery for subquery in earlier):
            return Plan("subq", bridge.subquery, f"{bridge.name} is unexplored: {bridge.fact}")
    return Plan("sufficient", reason="nothing promising is unexplored")
