"""A planner on any chat model: the model sees what has been asked and found, and replies with an action (grammar)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ras_agent.budget import current_ledger
from ras_agent.errors import ParseError
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
from ras_agent.prompts.fit import Evidence, did_not_fit, fit
from ras_agent.prompts.templates import examples_in
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.usefulness import evidence_by_use
from ras_agent.records import EvidenceLayout, Passage, Plan, Step, Triple
from ras_agent.text.unusable import copies
from ras_agent.tools.chat.by_need import Asking, ByNeed
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.dialogue import Dialogue, aconverse, converse, fitted, without_thinking
from ras_agent.tools.chat.endings import nothing_in
from ras_agent.tools.chat.form import FormUse
from ras_agent.tools.chat.window import estimate_turns
from ras_agent.tools.plan.dialects import OWN, Dialect, dialect, dialect_of_model, dialect_of_reply
from ras_agent.tools.plan.dialogue_planner import DialoguePlanner
from ras_agent.tools.plan.grammar import EXAMPLE, REPLY_FORM, first_question, parse_plan
from ras_agent.tools.roles import RoleOptions

_PROBLEM = "it holds none of the three moves"
MAX_TOKENS = 2048
"""The most tokens of a reply, of a model that writes no thoughts."""


class LLMPlanner:
    """Planner on a chat model.

    model: a LangChain chat model, a string such as "openai:gpt-4o-mini", or a Chat.
    few_shot: whether worked examples come before the question.
    task: a task's own instruction, shown above the question.
    layout: what the history shows of each search: "evidence" (also None) is the facts that no earlier one found;
        "chain" is all its facts, as in RAS (eq. 2); "chain-of-text" is its passages; "searches" is nothing but the
        search.
    follows_any: whether a reply that states no move, after the second try, is the next search, as in RAS's code.
    finds_dialect: whether a model whose reply is in the dialect of a search-trained planner is asked in it from then
        on. shown_in_dialect: what it is shown of each search then; None for `layout`, and where that is None too, for
        what that dialect shows.
    keeps_thoughts: whether what the model thought stays in the dialogue of such a dialect.
    prompts_dir: a folder whose files override the packaged prompts (plan, plan-few-shot, repair).
    form: when the server holds replies to their form.
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
        shown_in_dialect: EvidenceLayout | None = None,
        keeps_thoughts: bool = True,
        prompts_dir: str | Path | None = None,
        settings: ChatSettings | None = None,
        form: FormUse = "auto",
    ) -> None:
        self._chat = as_chat(model, settings)
        self._by_need = ByNeed.load("plan", prompts_dir, few_shot=few_shot, example=EXAMPLE, form=REPLY_FORM, use=form)
        self._task, self._follows_any = task, follows_any
        self._layout: EvidenceLayout = layout or "evidence"
        self._finds_dialect, self._prompts_dir = finds_dialect, prompts_dir
        self._shown_in_dialect: EvidenceLayout | None = shown_in_dialect or layout
        self._keeps_thoughts = keeps_thoughts

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

    def _dialect_found(self, steps: Sequence[Step]) -> Dialect | None:
        """Return the dialect in which this planner has asked in this run; None for this project's own form."""
        parts = [step.dialogue for step in steps if step.dialogue and step.dialogue.model == self.name]
        return dialect(parts[0].form) if parts and self._finds_dialect else None

    def _in_dialect(self, row: Dialect) -> DialoguePlanner:
        return DialoguePlanner(
            self._chat,
            row,
            task=self._task,
            layout=self._shown_in_dialect,
            keeps_thoughts=self._keeps_thoughts,
            prompts_dir=self._prompts_dir,
        )

    def _dialogue(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Dialogue[Plan]:
        if (row := self._dialect_found(steps)) is not None:
            return (yield from self._in_dialect(row).dialogue(question, graph, steps))
        asking, evidence = self._by_need.asking(), Evidence()
        in_text, repeated = self._layout == "chain-of-text", self._layout == "chain"
        passages_by_id = {hit.passage.id: hit.passage for step in steps for hit in step.hits} if in_text else {}
        bare = self._layout == "searches"
        facts, passages = () if in_text or bare else graph.facts, tuple(passages_by_id.values())
        by_subquery = graph.by_subquery(steps)
        times = Counter(name for step in steps for name in step.triple_ids) if repeated else Counter[str]()
        times.update(hit.passage.id for step in steps for hit in step.hits)

        def prompt(shown: Prompt, facts: Sequence[Triple], passages: Sequence[Passage]) -> tuple[Turn, ...]:
            graph_shown = graph if len(facts) == len(graph) else QuestionGraph(tuple(facts))
            if bare:
                history = searches_block(steps)
            elif in_text:
                history = text_history_block(passages, steps)
            else:
                history = history_block(graph_shown, steps, repeated=repeated)
            return shown.fill(history=history, task=task_block(self._task), question=as_data(question))

        def render(asking: Asking, room: int) -> Request:
            nonlocal evidence
            ranked = partial(evidence_by_use, question, graph, passages, steps)

            def fit_to(version: Prompt) -> Evidence:
                left = room - estimate_turns(prompt(version, (), ()))
                return fit(facts, passages, left, ranked, steps, times, self._chat.evidence_tokens)

            shown, *shorter = asking.prompt.versions()
            evidence = fit_to(shown)
            while shorter and evidence.left_out and not evidence.by_budget:
                shown = shorter.pop(0)
                evidence = fit_to(shown)
            turns = prompt(shown, evidence.facts, evidence.passages)
            return Request(turns, graph=by_subquery, form=asking.form, stop=STOPS)

        request, reply = yield from fitted(self._chat, MAX_TOKENS, partial(render, asking))
        if evidence.left_out:
            most = self._chat.evidence_tokens if evidence.by_budget else None
            current_ledger().note(did_not_fit(evidence.left_out, self._chat.window, most))
        shown = request.turns[-1].text
        read = partial(_plan_in, shown=shown, searched=bool(steps or graph.facts))
        try:
            plan = read(reply, request.turns)
        except ParseError:
            row = dialect_of_reply(reply.text, reply.truncated) if self._finds_dialect else None
            if row is not None:
                current_ledger().note(f"the planner's model writes {row.name}: set dialect={row.name} to spare a call")
                return (yield from self._in_dialect(row).dialogue(question, graph, steps))
            asked = request, reply
            request, second = yield from self._by_need.again(self._chat, asking, asked, _PROBLEM, render)
            try:
                plan = read(second, request.turns)
            except ParseError:
                text = first_question(without_thinking(second.text)) if self._follows_any else ""
                if not text:
                    raise
                plan = Plan("subq", text, "the reply states no move, so it is the next search")
        return replace(plan, action="sufficient") if steps and plan.action == "no_retrieval" else plan


def _plan_in(reply: Reply, turns: Sequence[Turn], *, shown: str, searched: bool) -> Plan:
    """Return the plan that a reply to `turns` states. Raises ParseError for none, and for that of an example.

    shown: the question, and what was found. searched: whether anything was; before, the question itself is a plan.
    """
    plan = parse_plan(reply.text, shown if searched else "")
    if plan.action == "subq" and copies(plan.subquery, (EXAMPLE, *examples_in(turns)), [shown]):
        raise ParseError(f"{nothing_in(reply.text, 'no action')}: it copies a worked example")
    return plan


def llm_planner(model: object, options: RoleOptions) -> LLMPlanner | DialoguePlanner:
    """Return the planner on a chat model, for the options of an agent.

    One whose dialect is set, or told by its name, plans in it; so does any in a dialogue.
    """
    chat = as_chat(model, options.chat)
    by_name = dialect_of_model(chat.name)
    row = dialect(options.dialect) if options.dialect else by_name
    if (row is not None and row is not OWN) or options.layout == "dialogue":
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
