"""The nodes that decide what comes next: RAS's `plan` and IRCoT's `reason`.

Both leave the next sub-query in the state, or none and a stop reason; see ras_agent.graphs.routes.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ras_agent.budget import Limits
from ras_agent.events import Planned, Thought, emit
from ras_agent.graphs.node import Ask, Body, Work, recorded
from ras_agent.graphs.plain import whole
from ras_agent.graphs.rehydrate import Records
from ras_agent.graphs.state import State, Update
from ras_agent.graphs.stops import budget_end, loop_end, repeats
from ras_agent.protocols import Planner, Reasoner
from ras_agent.records import JSON, Failure, Plan

__all__ = ["plan", "reason"]

_ANSWER_IS = re.compile(r"\banswer\s+is\b", re.IGNORECASE)


def plan(planner: Planner, records: Records) -> Body:
    """Ask for the next sub-query, unless a limit, given passages or an earlier refusal decide already.

    The first sub-query is the question itself, whatever words the planner has for it (RAS, section 3.1: q0 = Q); it
    is also what a failing first plan falls back on. A later failure ends the loop.
    """

    def body(state: State, limits: Limits) -> Work:
        question, hop = state["question"], len(state["steps"])
        settled = _settled(state, limits)
        if settled is not None:
            return settled
        steps = [records.step(data, state["passages"]) for data in state["steps"]]
        args = (question, records.graph(state["graph"]), steps)
        chosen = yield Ask("planner", hop + 1, planner, "plan", args, Plan)
        if chosen is None and hop:
            return _stop("planner_failed")
        if chosen is None:
            chosen = Plan("subq", question, "no plan came back: the question itself comes first")
        elif chosen.action == "subq" and not hop:
            chosen = replace(chosen, subquery=question)
        chosen = _storable(chosen)
        emit(Planned(hop + 1, chosen))
        update = {"plans": [_dated(chosen, hop + 1)]}
        if chosen.action != "subq":
            return update | _stop(chosen.action)
        if limits.stop_on_repeat and repeats(state, chosen.subquery):
            return update | _stop("repeated_subquery")
        return update | {"subquery": chosen.subquery}

    return body


def reason(reasoner: Reasoner, records: Records, *, structured: bool) -> Body:
    """Write the next sentence of the chain of thought, which is also the next sub-query; the first is the question.

    A sentence that holds "answer is" ends the loop. Without facts (`structured` false) none can fail to be new.
    """

    def body(state: State, limits: Limits) -> Work:
        question, hop = state["question"], len(state["steps"])
        settled = _settled(state, limits if structured else replace(limits, stop_on_no_new_facts=False))
        if settled is not None:
            return settled
        if not hop:
            return {"subquery": question}
        passages = [records.passage(data) for data in state["passages"].values()]
        thoughts = [step["thought"] for step in state["steps"] if step["thought"]]
        args = (question, passages, thoughts)
        sentence = yield Ask("reasoner", hop + 1, reasoner, "next_sentence", args, str)
        if sentence is None or not sentence.strip():
            wordless = [] if sentence is None else [Failure("reasoner", "wrote an empty sentence", hop + 1)]
            return _stop("planner_failed") | {"failures": recorded(wordless)}
        sentence = whole(sentence)
        emit(Thought(hop + 1, sentence))
        if _ANSWER_IS.search(sentence):
            return {"plans": [_dated(Plan("sufficient", reason=sentence), hop + 1)]} | _stop("sufficient")
        update: Update = {"plans": [_dated(Plan("subq", sentence), hop + 1)]}
        if limits.stop_on_repeat and repeats(state, sentence):
            return update | _stop("repeated_subquery")
        return update | {"subquery": sentence}

    return body


def _storable(plan: Plan) -> Plan:
    texts = whole(plan.subquery), whole(str(plan.reason or ""))
    return plan if texts == (plan.subquery, plan.reason) else replace(plan, subquery=texts[0], reason=texts[1])


def _settled(state: State, limits: Limits) -> Update | None:
    """What needs no planner: the end that a limit sets, or given passages, which are read under the question itself."""
    if state["stop_reason"]:
        return _stop(state["stop_reason"])
    if state["static"] and not state["given"]:
        return _stop("static")
    end = (None if state["static"] else loop_end(state, limits)) or budget_end(state, limits)
    if end:
        return _stop(end)
    return {"subquery": state["question"]} if state["given"] else None


def _stop(reason: str) -> Update:
    return {"stop_reason": reason, "subquery": ""}


def _dated(plan: Plan, hop: int) -> JSON:
    return {**plan.to_dict(), "hop": hop}
