"""Plans in the dialect in which a model was trained to search, or with any model in a growing dialogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import tags
from ras_agent.contracts.records import EvidenceLayout, Plan, Step
from ras_agent.prompts import (
    Turn,
    as_data,
    as_line,
    fact_block,
    history_block,
    load,
    task_block,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.chat.dialogue import Dialogue, fitted
from ras_agent.tools.chat.endings import nothing_in
from ras_agent.tools.chat.thoughts import spoken_span, without_thinking
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.plan.chat_planner import ChatPlanner
from ras_agent.tools.plan.dialects import Dialect, Reading, dialect, search_list
from ras_agent.tools.plan.grammar import copies_example, ended
from ras_agent.tools.plan.transcript import Transcript, Turns, new_notes

MAX_TOKENS = 2048
"""The maximum number of tokens of a reply."""
_DIGEST_TOKENS = 128
THINKING = tags("think")


class DialoguePlanner(ChatPlanner):
    """Asks a chat model in a dialect: the model's replies and its search results form one dialogue.

    If the model gives an answer, the search ends, and the answer is the plan's `answer`.
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
        """Take the model and its dialect.

        Args:
            model: a LangChain chat model, a string such as "vllm:http://host/v1#Search-R1-7B", or a Chat.
            dialect_: a dialect's name, or a Dialect of your own.
            task: an instruction that is shown above the question.
            layout: the part of each search's result that is shown: None for the dialect's own form;
                "chain-of-text", the passages; "evidence", the facts that no earlier search found; "chain", all its
                facts; "searches", nothing. "dialogue" is like None, but if the dialect puts everything into one
                long assistant turn, each search becomes an assistant turn and each result a user turn.
            keeps_thoughts: whether the model's thoughts stay in the dialogue.
            prompts_dir: a folder with files that override the packaged prompts (plan-search-r1, ..., repair).
        """
        row = dialect(dialect_) if isinstance(dialect_, str) else dialect_
        if layout == "dialogue" and row.rendering == "continued":
            before, behind = row.around
            around = (before.lstrip(), behind.rstrip())
            row = replace(row, rendering="turns", around=around)
        super().__init__(model, settings)
        self._dialect = row
        self._layout = layout
        self._task = task
        self._keeps_thoughts = keeps_thoughts
        self._prompt = load(row.prompt, prompts_dir)
        self._repair = load("repair", prompts_dir)
        self._digest = load(row.digest, prompts_dir) if row.digest else None

    def dialogue(
        self, question: str, graph: QuestionGraph, steps: Sequence[Step]
    ) -> Dialogue[Plan]:
        """Ask for the next action in the planner's dialect."""
        row = self._dialect
        transcript = yield from self._so_far(question, graph, steps)

        def render(room: int) -> Request:
            nonlocal transcript
            opening = estimate_turns([Turn("assistant", row.opening)])
            transcript = transcript.fitting(
                room - opening, self._chat.sizes.window, self._around
            )
            return self._request(transcript, question)

        request, reply = yield from fitted(self._chat, MAX_TOKENS, render)
        reading = self._reading(reply, transcript)
        if reading is None and row.rendering != "rewritten":
            transcript = transcript.adding(self._said(reply), self._asked_again())
            again = self._request(transcript, question)
            reply = yield replace(again, max_tokens=request.max_tokens)
            reading = self._reading(reply, transcript)
            if reading is not None and copies_example(reading.plan.subquery, question):
                reading = None
        if reading is None:
            raise ParseError(
                f"{nothing_in(reply.text, 'no action')}; expected {row.form}"
            )
        said = self._said(reply, reading)
        plan = transcript.adding(said).recorded_in(reading.plan, self.name)
        return ended(plan, steps)

    def _so_far(
        self, question: str, graph: QuestionGraph, steps: Sequence[Step]
    ) -> Dialogue[Transcript]:
        """Return the transcript up to the model's next turn, including the user's notes."""
        row = self._dialect
        rewritten = row.rendering == "rewritten"
        digest = yield from self._read_passages(steps)

        def opening() -> Turns:
            if rewritten:
                return self._opening(question, search_list([]))
            history = history_block(graph, ())
            return self._opening(question, history)

        def search(step: Step) -> Turn:
            query = as_line(step.subquery)
            return Turn("assistant", row.write(query))

        def found(step: Step, said: Turn) -> Turns:
            text = digest
            if not digest or step is not steps[-1]:
                text = self._found(step, graph)
            return (Turn("user", text),)

        transcript = Transcript.so_far(row.name, steps, opening, search, found)
        if rewritten or not steps:
            return transcript  # the opening shows the notes
        note = new_notes(transcript.turns)
        if not note:
            return transcript
        *earlier, last = transcript.new
        if row.around[1]:
            text = f"{last.text}{note}\n"  # after the text that closes the result
        else:
            text = f"{note}\n{last.text}"
        return replace(transcript, new=(*earlier, replace(last, text=text)))

    def _opening(self, question: str, history: str) -> Turns:
        values = {
            "task": task_block(self._task),
            "question": as_data(question),
        }
        if "history" in self._prompt.variables:
            values["history"] = history
        return self._prompt.fill(**values)

    def _read_passages(self, steps: Sequence[Step]) -> Dialogue[str]:
        """Return what the model reads out of the last step's passages; "" if the dialect shows the passages instead."""
        if self._digest is None or not steps or not steps[-1].hits:
            return ""
        newest = steps[-1]
        turns = self._digest.fill(
            documents=self._passages(newest), question=as_line(newest.subquery)
        )
        reply = yield Request(turns, max_tokens=_DIGEST_TOKENS)
        return as_line(without_thinking(reply.text))

    def _request(self, transcript: Transcript, question: str) -> Request:
        """Return the request that shows the dialogue in the dialect's rendering."""
        row = self._dialect
        turns = transcript.turns
        if row.rendering == "rewritten":
            said = [turn.text for turn in turns if turn.role != "system"]
            searches = zip(said[1::2], said[2::2], strict=False)
            turns = self._opening(question, search_list(searches))
        elif row.rendering == "continued":
            prefix = row.opening
            first = len(turns)
            for place, turn in enumerate(turns):
                if turn.role == "assistant":
                    first = min(first, place)
                if place >= first:
                    prefix += turn.text
            turns = turns[:first]
            if prefix:
                turns += (Turn("assistant", prefix),)
        return Request(turns, stop=row.stop)

    def _reading(self, reply: Reply, transcript: Transcript) -> Reading | None:
        last = transcript.turns[-1]
        read = self._dialect.read
        return read(reply.text, reply.truncated, last.text)

    def _said(self, reply: Reply, reading: Reading | None = None) -> Turn:
        """Return the model's turn: the part of its reply that counts, with the closing tag that a stop text cut off."""
        continued = self._dialect.rendering == "continued"
        start, end = spoken_span(reply.text)
        closing = ""
        if reading is not None:
            start = reading.start
            end = reading.end
            closing = reading.closing
        elif self._keeps_thoughts:
            end = len(reply.text)
        if not self._keeps_thoughts:
            spoken = f"{reply.text[start:end]}{closing}".strip()
            if not spoken and not continued:
                spoken = "(no text)"
            return Turn("assistant", spoken)
        text = f"{reply.text[:end]}{closing}"
        if not continued:
            return Turn("assistant", text, thoughts=reply.thoughts)
        if reply.thoughts:
            text = f"{THINKING.around(reply.thoughts)}{text}"
        return Turn("assistant", text)

    def _asked_again(self) -> Turn:
        row = self._dialect
        if row.rendering == "continued" and row.retry:
            return Turn("user", row.retry)
        turns = self._repair.fill(problem="it holds no action", form=row.example)
        return turns[0]

    def _found(self, step: Step, graph: QuestionGraph) -> str:
        """Return the text of a step's result, between the texts that the dialect puts around it."""
        row = self._dialect
        shown = ""
        if self._layout == "chain":
            shown = fact_block(graph.with_ids(step.triple_ids))
        elif self._layout == "evidence" or not row.passage:
            shown = fact_block(graph.with_ids(step.new_triple_ids))
        elif self._layout != "searches":
            shown = self._passages(step)
        before, behind = row.around
        return f"{before}{shown.strip() or row.nothing}{behind}"

    def _passages(self, step: Step) -> str:
        """Return a step's passages in the dialect's form."""
        texts = []
        for number, hit in enumerate(step.hits, start=1):
            passage = hit.passage
            text = self._dialect.passage.format(
                number=number,
                title=as_line(passage.title or passage.id),
                text=as_data(passage.text),
            )
            texts.append(text)
        if self._dialect.best_last:
            texts.reverse()
        return "".join(texts)

    def _around(self, turn: Turn) -> tuple[str, str]:
        """Return the text of a turn before a search's result and after it, including a note that stands outside.

        Return two empty strings if the turn shows no result.
        """
        text = turn.text
        before, behind = self._dialect.around
        if text.startswith(before):
            start = 0
        else:
            start = text.find(f"\n{before}") + 1
        begins = start + len(before)
        ends = text.rfind(behind) if behind else len(text)
        if text.startswith(before, start) and begins <= ends:
            return text[:begins], text[ends:]
        return "", ""
