"""A planner on any chat model: show it what has been asked and found, read its action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ras_agent.errors import ParseError
from ras_agent.prompts import as_data, history_block, load
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Plan, Step
from ras_agent.tools.chat.client import ChatSettings, Request, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse, repair
from ras_agent.tools.plan.grammar import FORM, parse_plan

__all__ = ["LLMPlanner"]


class LLMPlanner:
    """Plans with a chat model.

    model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
    few_shot: whether worked examples stand in front of the question.
    prompts_dir: a folder whose files override the packaged prompts (plan, plan-few-shot, repair).
    """

    def __init__(
        self,
        model: object,
        *,
        few_shot: bool = False,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        self._chat = as_chat(model, settings)
        self._prompt = load("plan-few-shot" if few_shot else "plan", prompts_dir)
        self._repair = load("repair", prompts_dir)

    @property
    def name(self) -> str:
        return self._chat.name

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """The next action. Raises ParseError if neither the first reply nor the second one holds any.

        After the first search, a model that wants no more retrieval is taken to find the facts sufficient.
        """
        return converse(self._chat, self._dialogue(question, graph, steps))

    async def aplan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """`plan` for coroutines."""
        return await aconverse(self._chat, self._dialogue(question, graph, steps))

    def _dialogue(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Dialogue[Plan]:
        request = Request(self._prompt.fill(history=history_block(graph, steps), question=as_data(question)))
        reply = yield request
        try:
            plan = parse_plan(reply.text)
        except ParseError:
            second = yield repair(request, reply, self._repair, "it holds none of the three moves", FORM)
            plan = parse_plan(second.text)
        return replace(plan, action="sufficient") if steps and plan.action == "no_retrieval" else plan
