"""Base class of all planners on chat models: a dialogue with the model yields the next action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Plan, Step
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse


class ChatPlanner(ABC):
    """Planner that asks a chat model for the next action."""

    def __init__(self, model: object, settings: ChatSettings | None) -> None:
        self._chat = as_chat(model, settings)

    @property
    def name(self) -> str:
        return self._chat.name

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next action. Raises ParseError if the model's replies state none, even when it is asked again."""
        dialogue = self.dialogue(question, graph, steps)
        return converse(self._chat, dialogue)

    async def aplan(
        self, question: str, graph: QuestionGraph, steps: Sequence[Step]
    ) -> Plan:
        """Return the next action like `plan`, as a coroutine."""
        dialogue = self.dialogue(question, graph, steps)
        return await aconverse(self._chat, dialogue)

    @abstractmethod
    def dialogue(
        self, question: str, graph: QuestionGraph, steps: Sequence[Step]
    ) -> Dialogue[Plan]:
        """Ask the model for the next action."""
