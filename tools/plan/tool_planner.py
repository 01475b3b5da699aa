"""Plans by tool calls: the ReAct loop (Yao et al., 2023) over the question's graph.

The model searches, looks at the neighbours of an entity, reads a passage, or finishes. A search or the finish
becomes a `Plan`, as with any planner; looks are answered at once from the evidence, and the model is asked again.
If the index has a graph, the model chooses the retriever of a search, and steps in that graph are searches too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ras_agent.contracts.errors import ModelCallError, ParseError, SettingsError
from ras_agent.contracts.marks import ANSWER_TAGS, SEARCH_TAGS
from ras_agent.contracts.records import Passage, Plan, Step, passages_found
from ras_agent.prompts import ToolCall, Turn, as_data, load, task_block
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.protocols import Planner
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.chat.dialogue import Dialogue, fitted
from ras_agent.tools.chat.endings import nothing_in
from ras_agent.tools.chat.models import with_tools
from ras_agent.tools.chat.thoughts import after_thoughts, without_thinking
from ras_agent.tools.chat.tool_calls import calls_in_text, tool_named
from ras_agent.tools.plan.chat_planner import ChatPlanner
from ras_agent.tools.plan.dialects import TOOL_JSON, read_own, read_react, read_tags
from ras_agent.tools.plan.grammar import REPLY_FORM, copies_example
from ras_agent.tools.plan.graph_tools import (
    FINISH,
    MOST_LOOKS,
    NEIGHBOURS,
    READ,
    SEARCH,
    Tool,
    argument_of,
    neighbours_result,
    read_result,
    search_result,
)
from ras_agent.tools.plan.transcript import Transcript, Turns
from ras_agent.tools.roles import RoleOptions

MAX_TOKENS = 2048
_ONE_AT_A_TIME = "(not done: one call at a time)"
_FOLLOWS = "(a search of its own: where it is made, its result follows)"
_NOT_POSSIBLE = "(not done: there is no such call, or its argument is missing)"
_NO_MORE_LOOKS = "(not done: enough was looked at for now, so search, or finish)"
_FORM_NAME = "tools"
_EXAMPLE = TOOL_JSON.example


_OFFERED = (SEARCH, FINISH, NEIGHBOURS, READ)
_NO_TOOLS = re.compile(
    r"(?:not|n't) support\w*\b.{0,20}\b(?:tool|function)|\b(?:tool|function)\w*\b.{0,30}\b(?:not supported|unsupported)"
    r"|unsupported\b.{0,20}\btools?\b|no tool support|support tool use|tool-call-parser|tools param requires",
    re.IGNORECASE,
)
_TAKE_RAS = "this model calls no tools: take --loop ras (create_ras_agent), whose planner writes its moves as text"


@dataclass(frozen=True, slots=True)
class _Move:
    """Holds a tool call: the tool, its argument, and the retriever if it is a search."""

    tool: Tool
    argument: str
    retriever: str = ""
    """The retriever that a search uses; "" for the agent's own."""

    def call(self, name: str) -> ToolCall:
        """Return the tool call with the id `name`, by which its result is matched to it."""
        arguments = {self.tool.argument: as_data(self.argument)}
        return ToolCall(self.tool.name, arguments, name)

    @property
    def is_decision(self) -> bool:
        """Return whether the move is a search or the finish; any other move is a look, which is answered at once."""
        return self.tool.searches or self.tool.name == FINISH.name

    @property
    def plan(self) -> Plan:
        """Return the plan that a decision means."""
        if self.tool.searches:
            return Plan("subq", self.argument, retriever=self.retriever)
        return Plan("sufficient", reason=self.argument)


class _Offer:
    """Holds the tools that are offered to the model, and finds them in the model's calls."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._by_name = {tool.name.casefold(): tool for tool in tools}
        self.schemas = tuple(tool.schema() for tool in tools)

    def tool(self, name: str) -> Tool | None:
        """Return the tool that a name means, which may have other words around it; None for an unknown tool."""
        known = tuple(self._by_name)
        return self._by_name.get(tool_named(name, known))

    def move_of(self, call: ToolCall) -> _Move | None:
        """Return the move that a call states; None if the tool is unknown or its argument is missing."""
        tool = self.tool(call.name) if call.name else self._with(call.arguments)
        if tool is None:
            return None
        argument = argument_of(tool, call.arguments)
        if not argument and tool.name != FINISH.name:
            return None
        return _Move(tool, argument, tool.retriever_of(call.arguments))

    def _with(self, arguments: Mapping[str, object]) -> Tool | None:
        """Return the tool that a call without a name means, by the name of its argument; None if none fits."""
        for tool in self._by_name.values():
            if tool.argument in arguments:
                return tool
        return None

    def with_calls(self, reply: Reply) -> Reply:
        """Return the reply with its calls separated from its text, also if the server left them in the text."""
        if reply.calls or reply.unread:
            return reply
        spoken = after_thoughts(reply.text)
        words, calls = calls_in_text(spoken, tuple(self._by_name))
        if not calls:
            return reply
        return replace(reply, text=words, calls=tuple(calls))

    def move_in(
        self, reply: Reply, request: Request, *, may_look: bool
    ) -> _Move | None:
        """Return the move of the reply's first valid call, or the one that its text states.

        Return None if there is neither, or if the move is a look and `may_look` is False.
        """
        move = next(filter(None, map(self.move_of, reply.calls)), None)
        if move is not None:
            if may_look or move.is_decision:
                return move
            return None
        plan = _plan_in_words(reply, request.turns[-1].text)
        if plan is None:
            return None
        if plan.action != "subq":
            return _Move(FINISH, plan.reason)
        search = self.tool(SEARCH.name)
        if search is None:
            return None
        return _Move(search, plan.subquery)

    def answered(self, said: Turn, result: str) -> Turns:
        """Return the answers to the calls of an assistant's turn; the first valid call gets `result`.

        Other searches that belong to the first are answered that their results follow in later turns; any other call
        is answered that only one call is made at a time. After a turn without calls, `result` is a user's turn.
        """
        if not said.calls:
            return (Turn("user", result),)
        followed = next(filter(self.move_of, said.calls), said.calls[0])
        first = self.move_of(followed)
        answers = []
        for call in said.calls:
            text = _ONE_AT_A_TIME
            if call is followed:
                text = result
            elif first is not None and self._goes_with(first, call):
                text = _FOLLOWS
            answers.append(Turn("tool", text, (call,)))
        return tuple(answers)

    def searches_with(self, first: _Move, reply: Reply) -> tuple[str, ...]:
        """Return the queries of the reply's further searches that belong to the first one, without repetitions."""
        others: dict[str, None] = {}
        for call in reply.calls:
            move = self._goes_with(first, call)
            if move is not None and move != first:
                others[move.argument] = None
        return tuple(others)

    def _goes_with(self, first: _Move, call: ToolCall) -> _Move | None:
        """Return the move of a call that searches with the first search's retriever; None for any other call."""
        move = self.move_of(call)
        if move is None or not move.tool.searches or not first.tool.searches:
            return None
        if move.retriever != first.retriever:
            return None
        return move


class LLMToolPlanner(ChatPlanner):
    """Asks a chat model that can call tools for the next action.

    The model's replies and calls stay in the dialogue unchanged, with their ids, so that each prompt begins with
    the whole of the one before.
    """

    def __init__(
        self,
        model: object,
        *,
        task: str = "",
        keeps_thoughts: bool = True,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
        tools: Sequence[Tool] = _OFFERED,
    ) -> None:
        """Prepare the planner. Raises SettingsError if the model cannot call tools.

        Args:
            model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
            task: an instruction that is shown above the question.
            keeps_thoughts: whether the model's thoughts stay in the dialogue.
            prompts_dir: a folder with files that override the packaged prompts (react, repair).
            tools: the tools that are offered to the model; the agent must have the retrievers that they name.
        """
        super().__init__(model, settings)
        self._offer = _Offer(tools)
        with_tools(self._chat.model, self._offer.schemas)
        self._prompt = load("react", prompts_dir)
        self._repair = load("repair", prompts_dir)
        self._task = task
        self._keeps_thoughts = keeps_thoughts

    def dialogue(
        self, question: str, graph: QuestionGraph, steps: Sequence[Step]
    ) -> Dialogue[Plan]:
        """Ask for tool calls until one is a search or the finish."""
        passages = passages_found(steps)
        transcript = self._so_far(question, graph, steps, passages)
        looks: list[_Move] = []

        def render(room: int) -> Request:
            nonlocal transcript
            transcript = transcript.fitting(room, self._chat.sizes.window)
            # the tools are part of the prompt, so they stay the same at each call
            return Request(transcript.turns, tools=self._offer.schemas)

        while True:
            request, reply = yield from self._asked(render)
            may_look = len(looks) < MOST_LOOKS
            said = self._said(reply, transcript)
            move = self._offer.move_in(reply, request, may_look=may_look)
            if move is None:
                asked_again = self._repair.fill(
                    problem="it calls none of the tools that can help now",
                    form=_EXAMPLE,
                )
                transcript = transcript.adding(
                    said, *_refused(said, may_look), *asked_again
                )
                again = replace(
                    request, turns=transcript.turns, form=REPLY_FORM, varied=True
                )
                reply = self._offer.with_calls((yield again))
                said = self._said(reply, transcript)
                move = self._offer.move_in(reply, again, may_look=may_look)
                if move is None or copies_example(move.argument, question):
                    raise ParseError(_unread(reply))
            transcript = transcript.adding(said)
            if move.is_decision:
                plan = move.plan
                if plan.action == "subq":
                    others = self._offer.searches_with(move, reply)
                    plan = replace(plan, reason=_reason(looks), further=others)
                return transcript.recorded_in(plan, self.name)
            looks.append(move)
            result = _look(move, graph, passages)
            transcript = transcript.adding(*self._offer.answered(said, result))

    def _so_far(
        self,
        question: str,
        graph: QuestionGraph,
        steps: Sequence[Step],
        passages: Sequence[Passage],
    ) -> Transcript:
        """Return the transcript up to the model's next turn."""

        def opening() -> Turns:
            return self._prompt.fill(
                task=task_block(self._task), question=as_data(question)
            )

        def search(step: Step) -> Turn:
            move = _Move(SEARCH, step.subquery)
            call = move.call(f"call_{step.hop}")
            return Turn("assistant", "", (call,))

        def found(step: Step, said: Turn) -> Turns:
            result = search_result(step, graph, passages)
            return self._offer.answered(said, result)

        return Transcript.so_far(_FORM_NAME, steps, opening, search, found)

    def _asked(
        self, render: Callable[[int], Request]
    ) -> Generator[Request, Reply, tuple[Request, Reply]]:
        """Ask for the next call. Raises ModelCallError, with advice if the model cannot call tools."""
        try:
            request, reply = yield from fitted(self._chat, MAX_TOKENS, render)
        except ModelCallError as error:
            if not _NO_TOOLS.search(str(error)):
                raise
            raise type(error)(f"{error}; {_TAKE_RAS}") from error
        return request, self._offer.with_calls(reply)

    def _said(self, reply: Reply, transcript: Transcript) -> Turn:
        """Return the model's turn: its words, and its calls with their ids; missing ids are filled in."""
        calls = []
        for number, call in enumerate(reply.calls):
            name = call.id or f"call_{len(transcript.turns)}_{number}"
            calls.append(replace(call, id=name))
        if not self._keeps_thoughts:
            spoken = without_thinking(reply.text).strip()
            return Turn("assistant", spoken, tuple(calls))
        return Turn("assistant", reply.text, tuple(calls), reply.thoughts)


def tool_planner(spec: object, options: RoleOptions) -> Planner:
    """Build a planner that calls tools on the model that `spec` names; a Planner object is returned unchanged.

    Raises SettingsError for "offline", which has no model to call tools, and for a dialect, in which calls are
    text.
    """
    if spec == "offline":
        raise SettingsError(
            "--loop react needs a model that calls tools: give --planner provider:model (or --llm), "
            "or choose --loop ras"
        )
    if isinstance(spec, Planner):
        return spec
    if options.dialect:
        raise SettingsError(
            f"dialect {options.dialect!r} writes its moves as text, but --loop react calls tools: choose --loop ras, or "
            "leave --dialect out"
        )
    chat = options.chat
    if isinstance(spec, str) and chat.temperature is None:
        chat = replace(chat, temperature=0.0)  # the model decides rather than writes
    return LLMToolPlanner(
        spec,
        task=options.task,
        keeps_thoughts=options.keeps_thoughts,
        prompts_dir=options.prompts_dir,
        settings=chat,
        tools=options.tools or _OFFERED,
    )


def _plan_in_words(reply: Reply, shown: str) -> Plan | None:
    """Return the plan that a reply's text states in this project's form, in ReAct's, or in tags; None without a plan.

    Args:
        shown: the text that the model was shown last.
    """
    text = without_thinking(reply.text)
    reading = (
        read_own(text, reply.truncated, shown)
        or read_react(text, reply.truncated)
        or read_tags(SEARCH_TAGS, ANSWER_TAGS, text, reply.truncated)
    )
    if reading is None:
        return None
    return reading.plan


def _unread(reply: Reply) -> str:
    """Return why no call in a reply could be followed."""
    if reply.unread:
        call = reply.unread[0]
        raw = call.arguments["raw"][:200]
        return f"the call of {call.name!r} cannot be read: its arguments are no JSON object: {raw!r}"
    if reply.calls:
        call = reply.calls[0]
        return f"no tool that can help now is called: {call.name!r} with {call.arguments!r:.200}"
    return nothing_in(reply.text, "no call of a tool")


def _refused(said: Turn, may_look: bool) -> Turns:
    """Return the answers to calls of which none can be followed."""
    text = _NO_MORE_LOOKS
    if may_look:
        text = _NOT_POSSIBLE
    answers = []
    for call in said.calls:
        answers.append(Turn("tool", text, (call,)))
    return tuple(answers)


def _look(move: _Move, graph: QuestionGraph, passages: Sequence[Passage]) -> str:
    if move.tool.name == NEIGHBOURS.name:
        return neighbours_result(move.argument, graph)
    return read_result(move.argument, passages)


def _reason(looks: Sequence[_Move]) -> str:
    """Return the entities and passages that were looked at before a search, for the trace."""
    names = (f"looked at {look.tool.name} {look.argument!r}" for look in looks)
    return "; ".join(names)
