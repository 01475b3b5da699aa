"""A planner on any chat model: the model sees what has been asked and found, and replies with an action.

    [SUBQ] a question        search for this
    [SUFFICIENT]             the graph holds the answer
    [NO_RETRIEVAL]           no search is needed

An action is a whole token in square brackets at the start of a line or a sentence. The first valid one counts. So
neither "INSUFFICIENT" nor "the facts are not [SUFFICIENT]" nor the word "sufficient" ends anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from ras_agent.errors import ParseError
from ras_agent.marks import ACTIONS, FLAGS, NO_RETRIEVAL, SUBQ, SUFFICIENT
from ras_agent.prompts import as_data, history_block, load
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Action, Plan, Step
from ras_agent.tools.chat.client import ChatSettings, Request, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse, repair, without_thinking

_FORM = f"one line, either {SUBQ} and a search question, or {SUFFICIENT}, or {NO_RETRIEVAL}"
_TOKEN = re.compile("|".join(f"(?P<{action}>{mark.live})" for action, mark in ACTIONS.items()), FLAGS)
_STARTS = re.compile(r"(?:^|[\n.:;!?…。！？—→])[\s*_`'\"“”‘’>#()|•-]*(?:\d+[.)]\s*)?\Z")
_WRAPPING = " \t*_`'\"“”‘’<>:|-—"
_LOOK_BACK = 80
_LONGEST_REASON = 500


class LLMPlanner:
    """Plans with a chat model.

    model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
    few_shot: whether worked examples come before the question.
    task: a task's own instruction, shown above the question.
    repeats_facts: whether the history shows a fact at every search that found it, as in RAS (eq. 2), or at the first.
    follows_any: whether a reply that states no move, after the second try, is the next search, as in RAS's code.
    prompts_dir: a folder whose files override the packaged prompts (plan, plan-few-shot, repair).
    """

    def __init__(
        self,
        model: object,
        *,
        few_shot: bool = False,
        task: str = "",
        repeats_facts: bool = False,
        follows_any: bool = False,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        self._chat = as_chat(model, settings)
        self._prompt = load("plan", prompts_dir, few_shot=few_shot)
        self._repair = load("repair", prompts_dir)
        self._task, self._repeats_facts, self._follows_any = task, repeats_facts, follows_any

    @property
    def name(self) -> str:
        return self._chat.name

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next action. Raises ParseError if neither the first reply nor the second states one.

        After the first search, a model that wants no retrieval is taken to find the facts sufficient.
        """
        return converse(self._chat, self._dialogue(question, graph, steps))

    async def aplan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Do the same as `plan`, for coroutines."""
        return await aconverse(self._chat, self._dialogue(question, graph, steps))

    def _dialogue(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Dialogue[Plan]:
        history = history_block(graph, steps, repeated=self._repeats_facts)
        request = Request(self._prompt.fill(history=history, task=self._task, question=as_data(question)))
        reply = yield request
        try:
            plan = parse_plan(reply.text)
        except ParseError:
            second = yield repair(request, reply, self._repair, "it holds none of the three moves", _FORM)
            try:
                plan = parse_plan(second.text)
            except ParseError:
                text = _question(without_thinking(second.text)) if self._follows_any else ""
                if not text:
                    raise
                plan = Plan("subq", text, "the reply states no move, so it is the next search")
        return replace(plan, action="sufficient") if steps and plan.action == "no_retrieval" else plan


def parse_plan(reply: str) -> Plan:
    """Return the plan that a reply states; prose in front of its action is the reason.

    Raises ParseError if it states none.
    """
    text = without_thinking(reply)
    tokens = [token for token in _TOKEN.finditer(text) if _begins(text, token.start())]
    ends = [*(token.start() for token in tokens[1:]), len(text)]
    for token, end in zip(tokens, ends, strict=False):  # without a token there is still one end
        action = cast(Action, token.lastgroup)
        subquery = _question(text[token.end() : end]) if action == "subq" else ""
        if action != "subq" or subquery:
            reason = text[: token.start()].strip(_WRAPPING + "\n")[:_LONGEST_REASON]
            return Plan(action, subquery, reason if any(map(str.isalpha, reason)) else "")
    raise ParseError(f"no action in the reply {reply.strip()[:200]!r}; expected {_FORM}")


def _begins(text: str, offset: int) -> bool:
    """Return whether a line or a sentence begins at `offset`, apart from markup and list numbers."""
    before = text[max(0, offset - _LOOK_BACK) : offset]  # a bounded look back keeps the parser linear
    return bool(_STARTS.search(before if offset <= _LOOK_BACK else f"x{before}"))


def _question(text: str) -> str:
    """Return the first line with words in it, without quotes and markup."""
    for line in text.splitlines():
        bare = " ".join(line.split()).strip(_WRAPPING)
        if any(char.isalnum() for char in bare):
            return bare
    return ""
