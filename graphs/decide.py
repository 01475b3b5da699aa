"""Defines the nodes that decide a loop's next step, RAS's `plan` and IRCoT's `reason`, and the limits that end
a loop.

Both nodes write the next sub-query into the state, or an empty sub-query and a stop reason. The route
`retrieve_or_answer` reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict

from ras_agent.contracts.events import Planned, emit, streaming
from ras_agent.contracts.marks import ends_chain
from ras_agent.contracts.records import (
    JSON,
    DialoguePart,
    Failure,
    Plan,
    Step,
    StopReason,
)
from ras_agent.graphs.node import NodeBody, NodeSteps, RoleCall, record_failures
from ras_agent.graphs.nodes import retriever_of_hop, shown_graph
from ras_agent.graphs.records import Records
from ras_agent.graphs.state import CallReads, Scope, Update
from ras_agent.graphs.validate import to_json_value
from ras_agent.running.budget import Limits, current_ledger
from ras_agent.running.protocols import Planner, Reasoner
from ras_agent.running.review import notes
from ras_agent.text.canonical import canonical_key
from ras_agent.text.normal_form import storable
from ras_agent.tools.graph_tokens.fact_orders import FactPruner
from ras_agent.tools.plan.grammar import needs_another

_LONGEST_DETAIL = 2000
# steps after a `plan`: retrieve, structure, merge, plan, answer
_STEPS_OF_A_HOP = 5


class DecideReads(CallReads):
    """Lists the keys of the state that `plan` and `reason` read."""

    stop_reason: str
    scope: Scope
    failures: list[JSON]
    plans: list[JSON]
    passages: dict[str, JSON]
    graph: JSON
    remaining_steps: RemainingSteps


def plan(
    planner: Planner,
    pruner: FactPruner | None = None,
    *,
    from_memory: bool = False,
    planner_writes_first_query: bool = False,
    more_steps: int = 0,
    fallback: object = None,
) -> NodeBody:
    """Return the body of a node that asks the planner for the next sub-query.

    The planner is not asked if a limit ends the loop, or if the caller gave passages for the next hop.

    The first sub-query is the question itself, whatever words the planner uses (RAS, section 3.1: q0 = Q), also
    if the first plan fails. An exception is a planner that records its dialogue: its first search uses its own
    words, because they are part of its next prompt. A plan that fails later ends the loop.

    Args:
        pruner: chooses the facts that the planner is shown.
        from_memory: whether a first plan of [NO_RETRIEVAL] leads to an answer from the model's memory;
            otherwise the question is searched. If set, the planner is asked even if the caller gave passages
            for the first hop.
        planner_writes_first_query: whether the first sub-query is in the planner's own words.
        more_steps: how many steps reviews may add between a plan and the answer.
        fallback: plans a later hop if no reply of the planner's model could be read.
    """

    def body(state: DecideReads, limits: Limits, records: Records) -> NodeSteps:
        question = state["question"]
        hop = len(state["steps"])
        update = decide_without_planner(state, limits, more_steps=more_steps)
        # the first plan may say that no search is needed
        first = from_memory and not hop and not state["scope"]["static"]
        if update is not None and not (first and update.get("subquery")):
            return update
        steps = _with_dialogue(
            [records.step(data, state["passages"]) for data in state["steps"]],
            state["plans"],
        )
        graph = yield from shown_graph(
            pruner, "planner", question, records.graph(state["graph"]), steps, hop + 1
        )
        # no fallback at first: the first search is for the question, with any planner
        instead = fallback if hop else None
        plan = yield RoleCall(
            "planner", hop + 1, planner, "plan", (question, graph, steps), Plan, instead
        )
        if current_ledger().refused == "model_refused":
            return end_loop("model_refused")
        in_own_words = planner_writes_first_query or bool(notes())
        if hop:
            following = _later_plan(plan)
        else:
            following = _first_plan(plan, question, from_memory, in_own_words)
        if following is None:
            return end_loop("planner_failed")
        return apply_plan(state, limits, following)

    return body


def _with_dialogue(steps: list[Step], plans: Sequence[JSON]) -> list[Step]:
    """Return the steps, each with its part of the planner's dialogue, so that the planner can continue the
    dialogue.
    """
    parts: dict[int, DialoguePart | None] = {}
    for plan in plans:
        if "dialogue" in plan:
            parts[plan["hop"]] = DialoguePart.from_dict(plan["dialogue"])
    if not parts:
        return steps
    return [
        replace(step, dialogue=parts.get(step.hop, step.dialogue)) for step in steps
    ]


def _later_plan(plan: Plan | None) -> Plan | None:
    """Return a plan made after a search, in which "no_retrieval" means that the facts are sufficient."""
    if plan and plan.action == "no_retrieval":
        return replace(plan, action="sufficient")
    return plan


def _first_plan(
    plan: Plan | None, question: str, from_memory: bool, in_own_words: bool
) -> Plan:
    """Return the first plan: to search for the question, or not to search at all.

    If the planner asks for several searches at once, the question is searched together with them.
    `in_own_words` tells whether the first search uses the planner's words, as it does after a person has asked
    for another plan.
    """
    if plan is None:
        return Plan(
            "subq", question, "no plan came back: the question itself comes first"
        )
    if plan.action == "subq":
        if in_own_words or plan.dialogue:
            return plan
        if plan.further:
            return replace(plan, subquery=question, further=plan.subqueries)
        return replace(plan, subquery=question)
    if plan.action == "no_retrieval" and from_memory:
        return plan
    why = "nothing has been found yet that could be sufficient"
    if plan.action == "no_retrieval":
        why = "the planner wants no retrieval, but an answer has to rest on evidence (from_memory is off)"
    reason = f" ({plan.reason})" if plan.reason else ""
    return Plan(
        "subq",
        question,
        f"{why}: the question itself is searched{reason}",
        dialogue=plan.dialogue,
    )


def reason(
    reasoner: Reasoner,
    *,
    structured: bool,
    more_steps: int = 0,
    fallback: object = None,
) -> NodeBody:
    """Return the body of a node that writes the next sentence of a chain of thought, and searches with it.

    The first sub-query is the question. A sentence that states the answer ends the loop
    (`ras_agent.contracts.marks.ends_chain`).

    Args:
        structured: whether the loop reads facts; then a hop without new facts may end it.
        more_steps: how many steps reviews may add between a plan and the answer.
        fallback: reasons at a later hop if no reply of the reasoner's model could be read.
    """

    def body(state: DecideReads, limits: Limits, records: Records) -> NodeSteps:
        question = state["question"]
        hop = len(state["steps"])
        if (
            update := decide_without_planner(
                state, limits, structured=structured, more_steps=more_steps
            )
        ) is not None:
            return update
        if not hop:
            return {"subquery": question}
        passages = [records.passage(data) for data in state["passages"].values()]
        thoughts = [step["thought"] for step in state["steps"] if step["thought"]]
        args = (question, passages, thoughts)
        sentence = yield RoleCall(
            "reasoner", hop + 1, reasoner, "next_sentence", args, str, fallback
        )
        if sentence is None or not sentence.strip():
            if sentence is None:
                wordless = []
            else:
                wordless = [
                    Failure(
                        "reasoner",
                        "the model wrote no sentence, so the loop ends: try another model",
                        hop + 1,
                    )
                ]
            return end_loop("planner_failed") | {"failures": record_failures(wordless)}
        if ends_chain(sentence):
            plan = Plan("sufficient", reason=sentence)
        else:
            plan = Plan("subq", sentence)
        return apply_plan(state, limits, plan, thought=True)

    return body


class NextQuery(TypedDict):
    """Holds the key of the state that says whether another search follows."""

    subquery: str


def retrieve_or_answer(state: NextQuery) -> Literal["retrieve", "answer"]:
    """Return the next node: "retrieve" if there is a sub-query, else "answer"."""
    if state["subquery"]:
        return "retrieve"
    return "answer"


def decide_without_planner(
    state: DecideReads, limits: Limits, *, structured: bool = True, more_steps: int = 0
) -> Update | None:
    """Return the update if no planner is needed: a limit ends the loop, or the caller's passages are read next.
    Else None.

    The body of a deciding node begins with this call.

    Args:
        structured: whether the loop reads facts, so that a hop without new ones ends it.
        more_steps: how many steps a hop and the answer take in addition to those of RAS.
    """
    if not structured:
        limits = replace(limits, stop_on_no_new_facts=False)
    if state["stop_reason"]:
        return end_loop(state["stop_reason"])
    given = state["scope"]["given"]
    static = state["scope"]["static"]
    if static and not given:
        return end_loop("static")
    end: StopReason | None = None
    if limits.loop_seconds is not None and state["seconds"] >= limits.loop_seconds:
        end = "max_seconds"  # checked first, because a hop may lack facts if the time was over
    elif not static:
        end = _loop_end(state, limits)
    end = end or _budget_end(state, limits, more_steps)
    if end:
        return end_loop(end)
    if given:
        return {"subquery": state["question"]}
    return None


def apply_plan(
    state: DecideReads, limits: Limits, plan: Plan, *, thought: bool = False
) -> Update:
    """Emit a plan as an event, record it in the state, and return the update that leads to a search or to the
    answer.

    A plan that repeats a sub-query ends the loop instead. Of several sub-queries, those are searched now that
    are new, do not need the answer to another, and fit into the limits; failures name the others. A node's body
    calls this last.

    Args:
        thought: whether the plan is a sentence of a chain of thought.
    """
    hop = len(state["steps"]) + 1
    plan = replace(
        plan,
        subquery=storable(plan.subquery),
        reason=storable(str(plan.reason or "")),
        further=tuple(map(storable, plan.further)),
    )
    failures: list[Failure] = []
    if plan.further:
        plan, failures = _searched_now(state, limits, plan)
    # these hold a model's words, which must become storable too
    if plan.answer or plan.dialogue:
        plan = Plan.from_dict(to_json_value(plan.to_dict()))
    if streaming():
        # the dialogue is long, and only for the planner
        shown = replace(plan, dialogue=None)
        emit(Planned(hop, shown, thought))
    recorded = plan.to_dict() | {"hop": hop}
    if thought:
        recorded["thought"] = True
    update: Update = {"plans": [recorded]}
    if failures:
        update["failures"] = record_failures(failures)
    if plan.action != "subq":
        return update | end_loop(plan.action)
    if limits.stop_on_repeat and _repeats(state, plan.subquery, plan.retriever):
        return update | end_loop("repeated_subquery")
    return update | {"subquery": plan.subquery, "further": list(plan.further)}


def _searched_now(
    state: DecideReads, limits: Limits, plan: Plan
) -> tuple[Plan, list[Failure]]:
    """Return the plan with only those sub-queries that can be searched at once, and failures that name the
    others.

    If no sub-query can be searched, the plan keeps only its first one.
    """
    hops = len(state["steps"])
    searches: list[str] = []
    left_out: dict[str, list[str]] = {}
    asked = set()
    for subquery in plan.subqueries:
        key = canonical_key(subquery)
        if key in asked:
            continue
        asked.add(key)
        why = ""
        if searches and needs_another(subquery):
            why = "need the answer to another, after which the planner is asked again"
        elif limits.stop_on_repeat and _repeats(state, subquery, plan.retriever):
            why = "were searched before"
        elif hops + len(searches) >= limits.max_hops:
            why = f"are more than max_hops = {limits.max_hops} allows"
        elif len(searches) >= limits.max_parallel:
            why = f"are more than max_parallel = {limits.max_parallel} at the same time"
        if why:
            left_out.setdefault(why, []).append(subquery)
        else:
            searches.append(subquery)
    failures = []
    for why, subqueries in left_out.items():
        message = f"sub-queries of the planner were left out: they {why}"
        detail = "\n".join(subqueries)[:_LONGEST_DETAIL]
        failures.append(Failure("planner", message, hops + 1, detail))
    if not searches:
        return replace(plan, further=()), failures
    return replace(plan, subquery=searches[0], further=tuple(searches[1:])), failures


def end_loop(reason: str) -> Update:
    """Return the update that ends the loop: no sub-query, and the reason."""
    return {"stop_reason": reason, "subquery": ""}


def _budget_end(
    state: DecideReads, limits: Limits, more_steps: int
) -> StopReason | None:
    """Return the stop reason if the budget does not allow another hop, or None.

    The ledger also checks tokens before every model call.
    """
    usage = state["usage"]
    if (
        limits.loop_tokens is not None
        and usage["input_tokens"] + usage["output_tokens"] >= limits.loop_tokens
    ):
        return "max_tokens"
    if state["remaining_steps"] <= _STEPS_OF_A_HOP + more_steps:
        return "recursion_limit"
    return None


def _loop_end(state: DecideReads, limits: Limits) -> StopReason | None:
    """Return the stop reason if all hops are used or the last hop gave no new facts; else None.

    A hop does not count as one without new facts if its retrieval or extraction failed, because the next hop
    may succeed, or if the planner chose its retriever, because it may choose another.
    """
    hop = len(state["steps"])
    if hop >= limits.max_hops:
        return "max_hops"
    began = _last_plan_began(state)
    steps = state["steps"][began - 1 :]
    is_news = any(step["new_triple_ids"] for step in steps)
    if limits.stop_on_no_new_facts and hop and not is_news:
        if retriever_of_hop(state["plans"], hop):
            return None
        failed = {
            failure["role"] for failure in state["failures"] if failure["hop"] >= began
        }
        if failed & {"retriever", "extractor"}:
            return None
        return "no_new_facts"
    return None


def _last_plan_began(state: DecideReads) -> int:
    """Return the number of the first hop of the last plan. A plan with several sub-queries makes several hops."""
    hop = len(state["steps"])
    for plan in state["plans"]:
        if plan["hop"] < hop <= plan["hop"] + len(plan.get("further", ())):
            began: int = plan["hop"]
            return began
    return max(hop, 1)


def _repeats(state: DecideReads, subquery: str, retriever: str) -> bool:
    """Tell whether the same retriever was asked `subquery` before and found passages."""
    key = canonical_key(subquery)
    for step in state["steps"]:
        if not step["hits"] or canonical_key(step["subquery"]) != key:
            continue
        if retriever_of_hop(state["plans"], step["hop"]) == retriever:
            return True
    return False
