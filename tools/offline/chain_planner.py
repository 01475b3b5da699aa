"""A planner without a model that follows a nested question link by link.

Which river flows through the city where the inventor of the telephone was born?
-> What is the city where Alexander Graham Bell was born? -> Which river flows through Edinburgh?
"""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.protocols import Answerer, Planner
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage, Plan, Step
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.offline.question_chain import MOST_LINKS, innermost, names_link, speaking_of

__all__ = ["ChainPlanner"]


class ChainPlanner:
    """Names the question's descriptions one after the other, and asks for those that the graph cannot name yet.

    resolver: answers "What is <description>?" from the graph, and abstains where it cannot. trust: the confidence, in
    0..1, from which its answer stands for the description. otherwise: plans what has no description, and goes on where
    a link stays open after it was asked for.
    """

    name = "offline"

    def __init__(self, resolver: Answerer, otherwise: Planner, trust: float = 0.3) -> None:
        self._resolver, self._otherwise, self._trust = resolver, otherwise, trust

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        link = innermost(question) if steps else None
        if link is None:
            return self._otherwise.plan(question, graph, steps)
        passages = {hit.passage.id: hit.passage for step in steps for hit in step.hits}
        asked = {canonical_key(step.subquery) for step in steps}
        rest, name, reason = question, "", ""
        for _ in range(MOST_LINKS):
            if link is None:
                break
            step = link.as_question
            if name and name in link.text and not _looked_up(name, passages, steps):
                return Plan("subq", step, reason)
            found = self._resolver.answer(step, graph, speaking_of(name, tuple(passages.values())))
            if not names_link(found, link, passages, self._trust):
                if canonical_key(step) in asked:
                    return self._otherwise.plan(question, graph, steps)
                return Plan("subq", step, reason or f"{link.text} has no name yet")
            name, reason = found.text, f"{link.text} is {found.text}"
            rest = link.replaced(rest, name)
            link = innermost(rest)
        if canonical_key(rest) in asked:
            return Plan("sufficient", reason="every link of the question has a name")
        return Plan("subq", rest, reason)


def _looked_up(name: str, passages: dict[str, Passage], steps: Sequence[Step]) -> bool:
    """Whether a passage is about `name`, or a sub-query after the question itself has asked for it."""
    key = canonical_key(name)
    titles = {canonical_key(passage.title.split(" (")[0]) for passage in passages.values()}
    return key in titles or any(key in canonical_key(step.subquery) for step in steps)
