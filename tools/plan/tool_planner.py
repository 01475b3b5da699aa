"""A planner that calls tools: the ReAct loop (Yao et al., 2023) over the question's graph.

The model searches, looks at the neighbours of an entity, reads a passage, or finishes. A search or the finish is its
decision, a `Plan` as of any planner; the other two are answered at once from what was found, and it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ras_agent.budget import current_ledger
from ras_agent.errors import ParseError, SettingsError
from ras_agent.prompts import ToolCall, Turn, as_data, load, task_block
from ras_agent.protocols import Planner
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage, Plan, Step
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse, fitted, repair, without_thinking
from ras_agent.tools.chat.models import with_tools
from ras_agent.tools.chat.window import cut_to_tokens, estimate_turns
from ras_agent.tools.plan.grammar import PATTERN, parse_plan
from ras_agent.tools.plan.graph_tools import (
    FINISH,
    MOST_LOOKS,
    NEIGHBOURS,
    READ,
    SEARCH,
    neighbours_result,
    read_result,
    search_result,
)
from ras_agent.tools.roles import RoleOptions

MAX_TOKENS = 2048
_SHORTEST_RESULT = 32
_FORM = "a call of one of the tools search, neighbours, read or finish"


_DECISIONS = (SEARCH.schema(), FINISH.schema())
_LOOKS = (NEIGHBOURS.schema(), READ.schema())
_ARGUMENTS = {tool.name: tool.argument for tool in (SEARCH, NEIGHBOURS, READ, FINISH)}


@dataclass(frozen=True, slots=True)
class _Move:
    """Call of a tool: its name and its one argument."""

    tool: str
    argument: str

    def call(self, number: int) -> ToolCall:
        return ToolCall(self.tool, {_ARGUMENTS[self.tool]: as_data(self.argument)}, f"call_{number}")


class LLMToolPlanner:
    """Planner on a chat model that can call tools.

    model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
    task: a task's own instruction, shown above the question.
    prompts_dir: a folder whose files override the packaged prompts (react, repair).
    """

    def __init__(
        self,
        model: object,
        *,
        task: str = "",
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        """Raises SettingsError for a model that cannot call tools."""
        self._chat = as_chat(model, settings)
        with_tools(self._chat.model, _DECISIONS)
        self._prompt = load("react", prompts_dir)
        self._repair = load("repair", prompts_dir)
        self._task = task

    @property
    def name(self) -> str:
        return self._chat.name

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next search, or the end. Raises ParseError for a model that calls no tool when asked twice."""
        return converse(self._chat, self._dialogue(question, graph, steps))

    async def aplan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Do the same as `plan`, for coroutines."""
        return await aconverse(self._chat, self._dialogue(question, graph, steps))

    def _dialogue(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Dialogue[Plan]:
        passages_by_id = {hit.passage.id: hit.passage for step in steps for hit in step.hits}
        passages = tuple(passages_by_id.values())
        moves = [(_Move("search", step.subquery), search_result(step, graph, passages)) for step in steps]
        looks: list[_Move] = []

        def render(room: int) -> Request:
            tools = _DECISIONS + (_LOOKS if steps and len(looks) < MOST_LOOKS else ())
            first = self._prompt.fill(task=task_block(self._task), question=as_data(question))
            return Request((*first, *_transcript(moves, room - estimate_turns(first))), tools=tools)

        while True:
            request, reply = yield from fitted(self._chat, MAX_TOKENS, render)
            _note_what_is_missing(request, moves, self._chat.window)
            move = _move_in(reply, request)
            if move is None:
                again = repair(request, reply, self._repair, "it calls none of the tools", _FORM, PATTERN)
                move = _move_in((yield replace(again, tools=request.tools)), request)
            if move is None:
                raise ParseError(f"no call of a tool in the reply {reply.text[:200]!r}")
            if move.tool == "search":
                return Plan("subq", move.argument, _reason(looks))
            if move.tool == "finish":
                return Plan("sufficient", reason=move.argument)
            looks.append(move)
            moves.append((move, _look(move, graph, passages)))


def tool_planner(spec: object, options: RoleOptions) -> Planner:
    """Return a planner that calls tools on the model that `spec` names; an object that plans is returned as it is.

    Raises SettingsError for "offline": without a model nobody calls a tool.
    """
    if spec == "offline":
        raise SettingsError(
            "--graph react needs a model that calls tools: give --planner provider:model (or --llm), "
            "or take --graph ras"
        )
    if isinstance(spec, Planner):
        return spec
    chat = options.chat
    if isinstance(spec, str) and chat.temperature is None:
        chat = replace(chat, temperature=0.0)  # asked to decide, not to write
    return LLMToolPlanner(spec, task=options.task, prompts_dir=options.prompts_dir, settings=chat)


def _move_in(reply: Reply, request: Request) -> _Move | None:
    """Return the reply's first call that can be followed, or the plan that it states in words; None for neither."""
    offered = {tool["function"]["name"] for tool in request.tools}
    for call in reply.calls:
        argument = call.arguments.get(_ARGUMENTS.get(call.name, ""), "")
        text = argument.strip() if isinstance(argument, str) else ""
        if call.name in offered and (text or call.name == "finish"):
            return _Move(call.name, text)
    try:
        plan = parse_plan(without_thinking(reply.text), request.turns[-1].text)
    except ParseError:
        return None
    return _Move("search", plan.subquery) if plan.action == "subq" else _Move("finish", plan.reason)


def _transcript(moves: Sequence[tuple[_Move, str]], room: int) -> Iterator[Turn]:
    """Yield each move as a call and its answer. If `room` tokens are too few, old answers are shortened first."""
    turns = [(Turn("assistant", "", move.call(n)), Turn("tool", text, move.call(n))) for n, (move, text) in
             enumerate(moves, 1)]  # fmt: skip
    excess = sum(map(estimate_turns, turns)) - room
    for call, answer in turns:
        if excess > 0:
            size = estimate_turns([answer])
            answer = replace(answer, text=cut_to_tokens(answer.text, max(size - excess, _SHORTEST_RESULT)))
            excess -= size - estimate_turns([answer])
        yield call
        yield answer


def _note_what_is_missing(request: Request, moves: Sequence[tuple[_Move, str]], window: int) -> None:
    texts = [turn.text for turn in request.turns if turn.role == "tool"]
    count = sum(text != result for text, (_, result) in zip(texts, moves, strict=True))
    if count:
        current_ledger().note(f"{count} results of tools were cut to fit into the model's window of {window:,} tokens")


def _look(move: _Move, graph: QuestionGraph, passages: Sequence[Passage]) -> str:
    if move.tool == "neighbours":
        return neighbours_result(move.argument, graph)
    return read_result(move.argument, passages)


def _reason(looks: Sequence[_Move]) -> str:
    """Name the entities and passages that were looked at before a search, for the trace."""
    return "; ".join(f"looked at {look.tool} {look.argument!r}" for look in looks)
