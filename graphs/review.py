"""Defines the nodes at which a run waits for a person, and the edges around them. See ras_agent.running.review for the
decisions.

When a run resumes, LangGraph runs the waiting node again from its start. So each review is a separate node,
which makes no calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain

from langchain_core.messages import RemoveMessage
from langgraph.graph import END
from langgraph.types import interrupt

from ras_agent.contracts.errors import ReviewError
from ras_agent.contracts.events import Answered, Planned, Triples, emit
from ras_agent.contracts.records import (
    JSON,
    Answer,
    Citation,
    Passage,
    Plan,
    Source,
    Triple,
    person,
)
from ras_agent.graphs import decide
from ras_agent.graphs.assembly import AgentGraph
from ras_agent.graphs.conversation import answer_message, structured_response, with_turn
from ras_agent.graphs.inbox import inbox_form, own_form
from ras_agent.graphs.node import NodeBody
from ras_agent.graphs.nodes import searches_of
from ras_agent.graphs.parts import AgentParts
from ras_agent.graphs.records import Records
from ras_agent.graphs.state import ReviewedState, Update
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.support import is_grounded
from ras_agent.running.budget import Limits
from ras_agent.running.review import (
    Action,
    Decision,
    Review,
    Reviewed,
    decisions_of,
)

# stop reasons with which the loop ends although a plan for the next hop was made
_PLANNED_ENDS = frozenset(("", "sufficient", "no_retrieval", "repeated_subquery"))


def add_edges(graph: AgentGraph, parts: AgentParts, decides: str = "") -> None:
    """Add the loop's edges, with a node between them wherever `parts.review` says that a person reviews.

    The edges lead from `decides` to retrieve or answer, from structure to merge, and from answer to the end.

    Args:
        decides: the node that plans; "" in a graph without planning.
    """
    planner_accepts = bool(decides) and _accepts_feedback(parts.planner)
    if decides and "plan" in parts.review:
        graph.add_body("review_plan", _plan(decides if planner_accepts else ""))
        graph.add_edge(decides, "review_plan")
        graph.add_route(
            "review_plan",
            _again_or(decide.retrieve_or_answer),
            ["retrieve", "answer", decides],
        )
    elif decides:
        graph.add_route(decides, decide.retrieve_or_answer, ["retrieve", "answer"])
    if "facts" in parts.review:
        graph.add_body(
            "review_facts", _facts(planner_accepts or _accepts_feedback(parts.answerer))
        )
        graph.add_edge("structure", "review_facts")
        graph.add_edge("review_facts", "merge")
    elif parts.extractor is not None:
        graph.add_edge("structure", "merge")
    if "answer" in parts.review:
        if _accepts_feedback(parts.answerer):
            back = {"answerer": "answer"}
        else:
            back = {}
        back |= {"planner": decides} if planner_accepts else {}
        graph.add_body("review_answer", _answer(back))
        graph.add_edge("answer", "review_answer")
        graph.add_route(
            "review_answer",
            _again_or(lambda state: END),
            [END, "answer", *filter(None, [decides])],
        )
    else:
        graph.add_edge("answer", END)


def more_steps(parts: AgentParts) -> int:
    """Return how many steps reviews may add between a plan and the answer."""
    return len(parts.review) + ("plan" in parts.review)


def _accepts_feedback(role: object) -> bool:
    return bool(getattr(role, "accepts_feedback", False))


def _again_or(route: Callable[[ReviewedState], str]) -> Callable[[ReviewedState], str]:
    return lambda state: state["again"] or route(state)


def _waited(review: Review, follow: Callable[[tuple[Decision, ...]], Update]) -> Update:
    """Wait for the person's decision, and return the update that `follow` makes of it. An invalid decision
    makes it wait again.
    """
    while True:
        asked = review.to_dict() | inbox_form(review)
        try:
            given = interrupt(asked)
            return follow(decisions_of(own_form(given, review), review))
        except ReviewError as error:
            review = replace(review, error=str(error))


def _reviewed(review: Review, decision: Decision, before: JSON | None = None) -> JSON:
    reviewed = Reviewed(review.at, review.hop, decision, before)
    return reviewed.to_dict()


def _plan(back: str) -> NodeBody:
    """Return the body of a node that waits for a decision about the next hop's plan.

    `back` is the node that runs again after the person writes a note; "" if no role reads notes.
    """

    def body(state: ReviewedState, limits: Limits, records: Records) -> Update:
        hop = len(state["steps"]) + 1
        plans = [plan for plan in state["plans"] if plan["hop"] == hop]
        if not plans or not (
            state["subquery"] or state["stop_reason"] in _PLANNED_ENDS
        ):
            return {"again": ""}
        shown = ("action", "subquery", "reason", "further")
        plan = {key: plans[0][key] for key in shown if key in plans[0]}
        actions: tuple[Action, ...] = (
            ("approve", "edit", "ask") if back else ("approve", "edit")
        )
        ends = "" if state["subquery"] else state["stop_reason"]
        review = Review(
            "plan",
            hop,
            state["question"],
            actions,
            plan=Plan.from_dict(plan),
            stop_reason=ends,
        )

        def follow(decisions: tuple[Decision, ...]) -> Update:
            (decision,) = decisions
            update: Update = {"again": "", "reviews": [_reviewed(review, decision)]}
            if decision.action == "ask":
                planned_again = {"again": back, "subquery": "", "stop_reason": ""}
                return update | planned_again | {"further": []}
            if decision.action == "approve":
                return update
            changed = (
                Plan("sufficient") if decision.stop else Plan("subq", decision.subquery)
            )
            thought = bool(plans[0].get("thought"))
            emit(Planned(hop, changed, thought, decision.person))
            # the model's answer and dialogue belong to the plan that the person has replaced
            kept = {
                key: value
                for key, value in plans[0].items()
                if key not in ("answer", "dialogue", "further")
            }
            return {
                "again": "",
                "reviews": [_reviewed(review, decision, plan)],
                "plans": [kept | changed.to_dict() | {"by": decision.person}],
                "subquery": changed.subquery,
                "further": [],
                "stop_reason": "sufficient" if decision.stop else "",
            }

        return _waited(review, follow)

    return body


def _facts(accepts_feedback: bool) -> NodeBody:
    """Return the body of a node that waits for decisions about the facts read at this hop.

    `accepts_feedback` tells whether a role reads the person's notes.
    """

    def body(state: ReviewedState, limits: Limits, records: Records) -> Update:
        if state["stop_reason"] == "model_refused":
            return {}
        hop = len(state["steps"]) + 1
        subquery = state["subquery"]
        found = dict.fromkeys(hit["passage_id"] for hit in state["hits"])
        passages = {
            name: records.passage(data) for name, data in state["passages"].items()
        }
        triples = records.triples(state["triples"])
        actions: tuple[Action, ...] = ("approve", "edit", "remove", "add", "ask")
        review = Review(
            "facts",
            hop,
            state["question"],
            actions if accepts_feedback else actions[:-1],
            subquery="; ".join(asked for _, asked in searches_of(state)),
            facts=tuple(
                (fact, _read_in(fact, passages))
                for fact in QuestionGraph(triples).facts
            ),
            passages=tuple((name, passages[name].title) for name in found),
        )

        def follow(decisions: tuple[Decision, ...]) -> Update:
            readings: dict[str, tuple[Triple, ...]] = {}
            for triple in triples:
                readings[triple.id] = (*readings.get(triple.id, ()), triple)
            persons_passages: dict[str, Passage] = {}
            log: list[JSON] = []
            for decision in decisions:
                before = readings.get(decision.fact, ())
                if decision.action == "remove":
                    readings[decision.fact] = ()
                elif decision.action == "edit":
                    readings[decision.fact] = tuple(
                        _corrected(triple, decision) for triple in before
                    )
                elif decision.action == "add":
                    source, passage = _source(decision, passages, hop, subquery)
                    if passage:
                        persons_passages[passage.id] = passage
                    added = Triple(
                        subject=decision.subject,
                        predicate=decision.predicate,
                        object=decision.object,
                        sources=(source,),
                    )
                    readings[f"added {len(log)}"] = (added,)
                log.append(
                    _reviewed(review, decision, _as_read(before) if before else None)
                )
            decided = tuple(chain.from_iterable(readings.values()))
            if any("" in triple.key for triple in decided):
                raise ReviewError(
                    "decision: a subject, predicate or object has no visible letter: write words into it"
                )
            update: Update = {"reviews": log}
            if decided != triples:
                emit(Triples(hop, decided))
                update["triples"] = records.dump_triples(decided)
            if persons_passages:
                update["passages"] = {
                    name: records.dump(passage)
                    for name, passage in persons_passages.items()
                }
            return update

        return _waited(review, follow)

    return body


def _as_read(fact: Sequence[Triple]) -> JSON:
    """Return the JSON of a fact with all sources in which this hop has read it."""
    sources = chain.from_iterable(reading.sources for reading in fact)
    return replace(fact[0], sources=tuple(sources)).to_dict()


def _read_in(fact: Triple, passages: dict[str, Passage]) -> str:
    source = fact.sources[0]
    passage = passages.get(source.passage_id)
    if passage:
        return passage.text[source.start : source.end]
    return ""


def _corrected(fact: Triple, decision: Decision) -> Triple:
    """Return a fact in the person's words, with the sources of the fact that it corrects."""
    sources = [replace(source, extractor=decision.person) for source in fact.sources]
    return replace(
        fact,
        subject=decision.subject or fact.subject,
        predicate=decision.predicate or fact.predicate,
        object=decision.object or fact.object,
        sources=tuple(sources),
    )


def _source(
    decision: Decision, passages: dict[str, Passage], hop: int, subquery: str
) -> tuple[Source, Passage | None]:
    """Return the source of a fact that a person adds, and the new passage, if one is made.

    The source is in the passage that the person names, or in a new passage that holds the person's statement.

    Raises:
        ReviewError: if the named passage does not contain the quote.
    """
    stated: Passage | None = None
    if decision.passage_id:
        name = decision.passage_id
        start = passages[name].text.find(decision.quote)
        end = start + len(decision.quote)
        if start < 0:
            raise ReviewError(
                f"decision.quote: passage {name!r} does not contain {decision.quote!r:.80}: copy its words exactly"
            )
    else:
        title = f"Stated by {decision.by or 'a person'}"
        text = f"{decision.subject} {decision.predicate} {decision.object}."
        # a name that no later passage has by chance
        digest = sha256(f"{title}: {text}".encode()).hexdigest()
        name = f"{person()}:{digest[:16]}"
        stated = Passage(name, text, title, person(), {"by": decision.person})
        start = 0
        end = len(text)
    return Source(name, start, end, hop, subquery, decision.person), stated


def _answer(back: dict[str, str]) -> NodeBody:
    """Return the body of a node that waits for a decision about the answer.

    `back` maps each role that reads notes to the node that runs again after a note to it.
    """

    def body(state: ReviewedState, limits: Limits, records: Records) -> Update:
        if state["stop_reason"] == "model_refused":
            return {"again": ""}
        actions: tuple[Action, ...] = ("approve", "edit", "remove", "ask")
        # the message with the answer, if the caller gave messages
        last_message = state.get("messages", [])[-1:]
        citations = tuple(map(Citation.from_dict, state["citations"]))
        review = Review(
            "answer",
            len(state["steps"]),
            state["question"],
            actions if back else actions[:-1],
            stop_reason=state["stop_reason"],
            answer=state["answer"],
            citations=citations,
            abstained=state["abstained"],
            suggestion=state["suggestion"],
        )

        def follow(decisions: tuple[Decision, ...]) -> Update:
            (decision,) = decisions
            update: Update = {"again": "", "reviews": [_reviewed(review, decision)]}
            if decision.action == "approve":
                return update
            if decision.action == "ask":
                to = decision.to or next(iter(back))
                if to not in back:
                    raise ReviewError(
                        f"decision.to: the {to} of this run cannot read a person's note; send it to {' or '.join(back)}"
                    )
                # the next answer replaces this one
                unsaid = [
                    RemoveMessage(id=message.id)
                    for message in last_message
                    if message.id
                ]
                update |= {"again": back[to], "messages": unsaid}
                return update | ({"stop_reason": ""} if to == "planner" else {})
            update["reviews"] = [
                _reviewed(review, decision, {"answer": state["answer"]})
            ]
            numbers = decision.citations
            kept = [
                citation
                for citation in citations
                if numbers is None or citation.number in numbers
            ]
            # the person has seen that the citations support the answer
            reply = Answer(
                decision.answer,
                tuple([replace(citation, supported=True) for citation in kept]),
            )
            if decision.action == "remove":
                reply = Answer(
                    f"No answer: it was withdrawn by {decision.by or 'a person'}.",
                    abstained=True,
                )
            grounded = is_grounded(reply)
            emit(Answered(reply, state["stop_reason"], grounded))
            cited = [citation.to_dict() for citation in reply.citations]
            instead = answer_message(state["question"], reply, grounded=grounded)
            return update | {
                "turns": with_turn(state["turns"], state["question"], reply),
                "messages": [
                    instead.model_copy(update={"id": message.id})
                    for message in last_message
                ],
                "answer": reply.text,
                "citations": cited,
                "abstained": reply.abstained,
                "failed": "",
                "suggestion": "",
                "disputes": [],
                "grounded": grounded,
                "confidence": None,
                "agreement": None,
                "structured_response": structured_response(
                    last_message, reply, None, grounded=grounded
                ),
            }

        return _waited(review, follow)

    return body
