"""Plans with any chat model: shows it the searches and their results, and parses the action in its reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.records import (
    EvidenceLayout,
    Passage,
    Plan,
    Step,
    Triple,
    passages_found,
)
from ras_agent.prompts import (
    STOPS,
    Prompt,
    Turn,
    as_data,
    history_block,
    searches_block,
    task_block,
    text_history_block,
)
from ras_agent.prompts.fit import Evidence, fit, fit_version
from ras_agent.prompts.templates import examples_in
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.usefulness import evidence_by_use
from ras_agent.running.budget import current_ledger
from ras_agent.text.unusable import copies
from ras_agent.tools.chat.by_need import Asking, ByNeed
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, fitted
from ras_agent.tools.chat.endings import nothing_in
from ras_agent.tools.chat.form import FormUse
from ras_agent.tools.chat.thoughts import without_thinking
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.plan.chat_planner import ChatPlanner
from ras_agent.tools.plan.dialects import (
    OWN,
    Dialect,
    dialect,
    dialect_of_model,
    dialect_of_reply,
)
from ras_agent.tools.plan.dialogue_planner import DialoguePlanner
from ras_agent.tools.plan.grammar import (
    EXAMPLE,
    REPLY_FORM,
    ended,
    first_question,
    parse_plan,
)
from ras_agent.tools.roles import RoleOptions

_PROBLEM = "it holds none of the three moves"
MAX_TOKENS = 2048
"""The maximum number of tokens of a reply; a model that writes thoughts gets more."""


class LLMPlanner(ChatPlanner):
    """Asks a chat model for the next action, in the grammar of `ras_agent.tools.plan.grammar`.

    If the model replies after the first search that no retrieval is needed, the plan is that the facts are
    sufficient.
    """

    accepts_feedback = True

    def __init__(
        self,
        model: object,
        *,
        few_shot: bool = False,
        task: str = "",
        layout: EvidenceLayout | None = None,
        follows_any: bool = False,
        finds_dialect: bool = False,
        keeps_thoughts: bool = True,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
        form: FormUse = "auto",
    ) -> None:
        """Take the model and the prompts.

        Args:
            model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
            few_shot: whether worked examples come before the question.
            task: an instruction that is shown above the question.
            layout: the part of each search's result that is shown: "evidence" (also None), the facts that no
                earlier search found; "chain", all its facts, as in RAS (eq. 2); "chain-of-text", its passages;
                "searches", only the sub-query.
            follows_any: whether a reply that states no action, after the second try, becomes the next search, as in
                RAS's code.
            finds_dialect: whether the planner changes to a dialect once the model replies in it.
            keeps_thoughts: whether the model's thoughts stay in the dialogue after that change.
            prompts_dir: a folder with files that override the packaged prompts (plan, plan-few-shot, repair).
            form: when the server enforces the form of replies: "auto" after an unreadable one, "on" always, "off"
                never.
        """
        super().__init__(model, settings)
        self._by_need = ByNeed.load(
            "plan",
            prompts_dir,
            few_shot=few_shot,
            example=EXAMPLE,
            form=REPLY_FORM,
            use=form,
        )
        self._task = task
        self._layout: EvidenceLayout = layout or "evidence"
        self._follows_any = follows_any
        self._finds_dialect = finds_dialect
        self._in_dialect = partial(
            DialoguePlanner,
            self._chat,
            task=task,
            layout=layout,
            keeps_thoughts=keeps_thoughts,
            prompts_dir=prompts_dir,
        )

    def _dialect_found(self, steps: Sequence[Step]) -> Dialect | None:
        """Return the dialect that this planner has changed to in this run; None for this project's own form."""
        if not self._finds_dialect:
            return None
        for step in steps:
            if step.dialogue and step.dialogue.model == self.name:
                return dialect(step.dialogue.form)
        return None

    def dialogue(
        self, question: str, graph: QuestionGraph, steps: Sequence[Step]
    ) -> Dialogue[Plan]:
        """Ask for the next action, in the model's dialect if it is known."""
        if (row := self._dialect_found(steps)) is not None:
            return (yield from self._in_dialect(row).dialogue(question, graph, steps))
        asking = self._by_need.asking()
        history = _History(question, self._task, self._layout, graph, steps)
        evidence = Evidence()

        def render(asking: Asking, room: int) -> Request:
            nonlocal evidence

            def fit_to(version: Prompt) -> Evidence:
                bare = history.turns(version, Evidence())
                left = room - estimate_turns(bare)
                return history.fit(left, self._chat.sizes.evidence_tokens)

            shown, evidence = fit_version(asking.prompt, fit_to)
            return Request(
                history.turns(shown, evidence),
                graph=graph.by_subquery(steps),
                form=asking.form,
                stop=STOPS,
            )

        request, reply = yield from fitted(
            self._chat, MAX_TOKENS, partial(render, asking)
        )
        evidence.note(self._chat.sizes.window)
        searched = bool(steps or graph.facts)
        read = partial(_plan_in, shown=request.turns[-1].text, searched=searched)
        try:
            return ended(read(reply, request.turns), steps)
        except ParseError:
            if self._finds_dialect:
                row = dialect_of_reply(reply.text, reply.truncated)
        if row is not None:
            current_ledger().note(
                f"the planner's model writes {row.name}: set dialect={row.name} to spare a call"
            )
            return (yield from self._in_dialect(row).dialogue(question, graph, steps))
        asked = (request, reply)
        request, reply = yield from self._by_need.again(
            self._chat, asking, asked, _PROBLEM, render
        )
        try:
            return ended(read(reply, request.turns), steps)
        except ParseError:
            text = first_question(without_thinking(reply.text))
            if not self._follows_any or not text:
                raise
            return Plan(
                "subq", text, "the reply states no move, so it is the next search"
            )


@dataclass(frozen=True)
class _History:
    """Holds the question and the searches so far, as the planner's prompt shows them in a layout."""

    question: str
    task: str
    layout: EvidenceLayout
    graph: QuestionGraph
    steps: Sequence[Step]

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        if self.layout != "chain-of-text":
            return ()
        return passages_found(self.steps)

    @cached_property
    def times(self) -> Counter[str]:
        """Return, for each fact and passage id, how often the prompt shows it."""
        times = Counter[str]()
        for step in self.steps:
            times.update(hit.passage.id for hit in step.hits)
            if self.layout == "chain":
                times.update(step.triple_ids)
        return times

    def fit(self, room: int, most: int) -> Evidence:
        """Return the evidence that fits into `room` tokens and has at most `most` tokens."""
        facts: tuple[Triple, ...] = ()
        if self.layout in ("evidence", "chain", "dialogue"):
            facts = self.graph.facts
        ranked = partial(
            evidence_by_use,
            self.question,
            self.graph,
            self.passages,
            self.steps,
        )
        return fit(
            facts,
            self.passages,
            room,
            by_use=ranked,
            steps=self.steps,
            times=self.times,
            most=most,
        )

    def turns(self, prompt: Prompt, evidence: Evidence) -> tuple[Turn, ...]:
        """Return the prompt with the evidence."""
        if self.layout == "searches":
            history = searches_block(self.steps)
        elif self.layout == "chain-of-text":
            history = text_history_block(evidence.passages, self.steps)
        else:
            graph = self.graph
            if len(evidence.facts) < len(graph):
                graph = QuestionGraph(evidence.facts)
            is_chain = self.layout == "chain"
            history = history_block(graph, self.steps, repeated=is_chain)
        return prompt.fill(
            history=history,
            task=task_block(self.task),
            question=as_data(self.question),
        )


def _plan_in(
    reply: Reply, turns: Sequence[Turn], *, shown: str, searched: bool
) -> Plan:
    """Return the plan that a reply to `turns` states.

    Raises ParseError for a reply without a plan, and for a plan that copies a worked example.

    Args:
        shown: the question and the evidence.
        searched: whether there is any evidence yet; before that, a sub-query may repeat the question.
    """
    plan = parse_plan(reply.text, shown if searched else "")
    examples = (EXAMPLE, *examples_in(turns))
    if plan.action == "subq" and copies(plan.subquery, examples, [shown]):
        raise ParseError(
            f"{nothing_in(reply.text, 'no action')}: it copies a worked example"
        )
    own = [other for other in plan.further if not copies(other, examples, [shown])]
    return replace(plan, further=tuple(own))


def llm_planner(model: object, options: RoleOptions) -> LLMPlanner | DialoguePlanner:
    """Build the planner on a chat model, with an agent's options.

    It is a DialoguePlanner if a dialect is set or known from the model's name, or if the layout is "dialogue".
    """
    chat = as_chat(model, options.chat)
    if options.dialect:
        row: Dialect | None = dialect(options.dialect)
    else:
        row = dialect_of_model(chat.name)
    if row not in (None, OWN) or options.layout == "dialogue":
        return DialoguePlanner(
            chat,
            row or OWN,
            task=options.task,
            layout=options.layout,
            keeps_thoughts=options.keeps_thoughts,
            prompts_dir=options.prompts_dir,
        )
    return LLMPlanner(
        chat,
        few_shot=options.few_shot,
        task=options.task,
        layout=options.layout,
        follows_any=options.follows_any,
        finds_dialect=row is None,
        form=options.form,
        keeps_thoughts=options.keeps_thoughts,
        prompts_dir=options.prompts_dir,
    )
