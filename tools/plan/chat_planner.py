"""Defines the base class of planners that ask a chat model for the next action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ras_agent.contracts.records import Plan, Step
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.chat.client import ChatRole
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse


class ChatPlanner(ChatRole, ABC):
    """Asks a chat model for the next action. Subclasses implement `dialogue`."""

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next action. Raises ParseError if the model's replies state no action, even when it is asked
        again.

        Args:
            question: the user's question.
            graph: the facts found so far.
            steps: the searches made so far, with their results.
        """
        dialogue = self.dialogue(question, graph, steps)
        return converse(self._chat, dialogue)

    async def aplan(
        self, question: str, graph: QuestionGraph, steps: Sequence[Step]
    ) -> Plan:
        """Return the same as `plan`, as a coroutine."""
        dialogue = self.dialogue(question, graph, steps)
        return await aconverse(self._chat, dialogue)

    @abstractmethod
    def dialogue(
        self, question: str, graph: QuestionGraph, steps: Sequence[Step]
    ) -> Dialogue[Plan]:
        """Return the conversation with the model that ends in the next action."""
