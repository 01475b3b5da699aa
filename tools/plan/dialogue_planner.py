"""A planner on a model that was trained to search in a dialect of its own, and on any model in a growing dialogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ras_agent.errors import ParseError
from ras_agent.marks import tags
from ras_agent.prompts import Turn, as_data, as_line, fact_block, history_block, load, task_block
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import EvidenceLayout, Plan, Step
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse, fitted, spoken_span, without_thinking
from ras_agent.tools.chat.endings import nothing_in
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.plan.dialects import Dialect, Reading, dialect, search_list
from ras_agent.tools.plan.grammar import copies_example
from ras_agent.tools.plan.transcript import Transcript, Turns, new_notes

MAX_TOKENS = 2048
"""The most tokens of a reply."""
_DIGEST_TOKENS = 128
THINKING = tags("think")


class DialoguePlanner:
    """Planner on a chat model that speaks a dialect: its own words and what its searches found, in one dialogue.

    What the model answers itself is its end of the search, and the plan's `answer`.

    model: a LangChain chat model, a string such as "vllm:http://host/v1#Search-R1-7B", or a Chat.
    dialect: by name, or a row of your own.
    task: a task's own instruction, shown above the question.
    layout: what is shown of each search: None for what the dialect shows, "chain-of-text" for passages, "evidence" for
        the facts that no earlier search found, "chain" for all its facts; "dialogue" as None, but each search is a turn
        of the model's, and what it found a turn of the user's, where the dialect has one long turn of the model's.
    keeps_thoughts: whether what the model thought stays in the dialogue.
    prompts_dir: a folder whose files override the packaged prompts (plan-search-r1, ..., repair).
    """

    accepts_feedback = True

    def __init__(
        self,
        model: object,
        dialect_: str | Dialect,
        *,
        task: str = "",
        layout: EvidenceLayout | None = None,
        keeps_thoughts: bool = True,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
    ) -> None:
        self._chat = as_chat(model, settings)
        row = dialect(dialect_) if isinstance(dialect_, str) else dialect_
        if layout == "dialogue" and row.rendering == "continued":
            before, behind = row.around
            row = replace(row, rendering="turns", around=(before.lstrip(), behind.rstrip()))
        self._dialect, self._layout, self._task, self._keeps_thoughts = row, layout, task, keeps_thoughts
        self._prompt, self._repair = load(row.prompt, prompts_dir), load("repair", prompts_dir)
        self._digest = load(row.digest, prompts_dir) if row.digest else None

    @property
    def name(self) -> str:
        return self._chat.name

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the next action. Raises ParseError if neither the first reply nor the second states one."""
        return converse(self._chat, self.dialogue(question, graph, steps))

    async def aplan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Do the same as `plan`, for coroutines."""
        return await aconverse(self._chat, self.dialogue(question, graph, steps))

    def dialogue(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Dialogue[Plan]:
        """Ask for the next action, as `plan` does."""
        row = self._dialect
        digest = yield from self._read_passages(steps)

        def opening() -> Turns:
            return self._opening(
                question, search_list([]) if row.rendering == "rewritten" else history_block(graph, ())
            )

        def found(step: Step, said: Turn) -> Turns:
            return (Turn("user", digest if digest and step is steps[-1] else self._found(step, graph)),)

        transcript = Transcript.so_far(
            row.name, steps, opening, lambda step: Turn("assistant", row.write(as_line(step.subquery))), found
        )
        # a prompt that is rewritten shows a person's notes each time
        if steps and row.rendering != "rewritten" and (note := new_notes(transcript.turns)):
            last = transcript.new[-1]
            text = f"{last.text}{note}\n" if row.around[1] else f"{note}\n{last.text}"  # outside the frame
            transcript = replace(transcript, new=(*transcript.new[:-1], replace(last, text=text)))

        def render(room: int) -> Request:
            nonlocal transcript
            room -= estimate_turns([Turn("assistant", row.opening)])
            transcript = transcript.fitting(room, self._chat.window, self._around)
            return self._request(transcript, question)

        request, reply = yield from fitted(self._chat, MAX_TOKENS, render)
        reading = self._reading(reply, transcript)
        if reading is None and row.rendering != "rewritten":
            transcript = transcript.adding(self._said(reply), self._asked_again())
            second = yield replace(self._request(transcript, question), max_tokens=request.max_tokens)
            reply = second
            reading = self._reading(second, transcript)
            if reading is not None and copies_example(reading.plan.subquery, question):
                reading = None
        if reading is None:
            raise ParseError(f"{nothing_in(reply.text, 'no action')}; expected {row.form}")
        plan = transcript.adding(self._said(reply, reading)).recorded_in(reading.plan, self.name)
        # after the first search, a model that wants no retrieval is taken to find the facts sufficient
        return replace(plan, action="sufficient") if steps and plan.action == "no_retrieval" else plan

    def _opening(self, question: str, history: str) -> Turns:
        shown = {"history": history} if "history" in self._prompt.variables else {}
        return self._prompt.fill(task=task_block(self._task), question=as_data(question), **shown)

    def _read_passages(self, steps: Sequence[Step]) -> Dialogue[str]:
        """Return what the model reads in the passages of the last step, where its dialect has it read them."""
        if self._digest is None or not steps or not steps[-1].hits:
            return ""
        query, documents = as_line(steps[-1].subquery), self._passages(steps[-1])
        turns = self._digest.fill(documents=documents, question=query)
        reply = yield Request(turns, max_tokens=_DIGEST_TOKENS)
        return as_line(without_thinking(reply.text))

    def _request(self, transcript: Transcript, question: str) -> Request:
        """Render the dialogue as the dialect has it."""
        row, turns = self._dialect, transcript.turns
        if row.rendering == "rewritten":
            said = [turn.text for turn in turns if turn.role != "system"][1:]
            turns = self._opening(question, search_list(list(zip(said[::2], said[1::2], strict=False))))
        elif row.rendering == "continued":
            first = next((n for n, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
            prefix = row.opening + "".join(turn.text for turn in turns[first:])
            turns = (*turns[:first], *([Turn("assistant", prefix)] if prefix else ()))
        return Request(turns, stop=row.stop)

    def _reading(self, reply: Reply, transcript: Transcript) -> Reading | None:
        return self._dialect.read(reply.text, reply.truncated, transcript.turns[-1].text)

    def _said(self, reply: Reply, reading: Reading | None = None) -> Turn:
        """Return the model's own turn: what counts of its reply, with the tag that a stop string has cut off."""
        if not self._keeps_thoughts:
            start, end = (reading.start, reading.end) if reading else spoken_span(reply.text)
            spoken = f"{reply.text[start:end]}{reading.closing if reading else ''}".strip()
            return Turn("assistant", spoken or ("" if self._dialect.rendering == "continued" else "(no text)"))
        end, closing = (reading.end, reading.closing) if reading else (len(reply.text), "")
        text = f"{reply.text[:end]}{closing}"
        if reply.thoughts and self._dialect.rendering == "continued":
            return Turn("assistant", f"{THINKING.around(reply.thoughts)}{text}")
        return Turn("assistant", text, thoughts=reply.thoughts)

    def _asked_again(self) -> Turn:
        row = self._dialect
        if row.rendering == "continued" and row.retry:
            return Turn("user", row.retry)
        (asked,) = self._repair.fill(problem="it holds no action", form=row.example)
        return asked

    def _found(self, step: Step, graph: QuestionGraph) -> str:
        """Render what a step's search found, in the dialect's frame."""
        row, layout = self._dialect, self._layout
        if layout in ("evidence", "chain") or not row.passage:
            ids = step.triple_ids if layout == "chain" else step.new_triple_ids
            shown = fact_block(graph.by_id[name] for name in ids if name in graph.by_id)
        else:
            shown = self._passages(step) if layout != "searches" else ""
        before, behind = row.around
        return f"{before}{shown.strip() or row.nothing}{behind}"

    def _passages(self, step: Step) -> str:
        """Render a step's passages in the dialect's form."""
        lines = [
            self._dialect.passage.format(
                number=number, title=as_line(hit.passage.title or hit.passage.id), text=as_data(hit.passage.text)
            )
            for number, hit in enumerate(step.hits, 1)
        ]
        return "".join(reversed(lines) if self._dialect.best_last else lines)

    def _around(self, turn: Turn) -> tuple[str, str]:
        """Return a turn's text up to what was found, and behind it: the frame, and a person's note outside it."""
        (before, behind), text = self._dialect.around, turn.text
        start = 0 if text.startswith(before) else text.find(f"\n{before}") + 1
        begins, ends = start + len(before), text.rfind(behind) if behind else len(text)
        framed = text.startswith(before, start) and begins <= ends
        return (text[:begins], text[ends:]) if framed else ("", "")
