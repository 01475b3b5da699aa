"""Defines the nodes that all loops share, in the order of a run: begin, rewrite, retrieve, structure, merge,
answer.

Each factory takes the tool that the node uses and returns the node's body. ras_agent.graphs.node explains how
bodies are run.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage
from langgraph.config import get_config

from ras_agent.config.filters import Filter
from ras_agent.contracts.errors import ReviewError
from ras_agent.contracts.events import (
    Answered,
    GraphDelta,
    Hits,
    Rewritten,
    Triples,
    emit,
    streaming,
)
from ras_agent.contracts.records import (
    JSON,
    Answer,
    Exchange,
    Extraction,
    Failure,
    Hit,
    OnConflict,
    Passage,
    Span,
    Step,
    Triple,
    any_failed,
    is_person,
)
from ras_agent.graphs.conversation import (
    exchanges_in,
    messages_of_answer,
    structured_response,
    with_turn,
)
from ras_agent.graphs.memory import ThreadMemory, remember_call, without_passages
from ras_agent.graphs.node import (
    NodeBody,
    NodeSteps,
    RoleCall,
    instead_of_model,
    record_failures,
    together,
)
from ras_agent.graphs.records import Records
from ras_agent.graphs.state import (
    Beginning,
    CallReads,
    Reads,
    Scope,
    State,
    Update,
    empty_state,
)
from ras_agent.graphs.validate import (
    check_admitted,
    finite,
    read_filter,
    read_given_passages,
    valid_citations,
    valid_facts,
    valid_hit,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.disputes import Functional, not_known, with_dispute
from ras_agent.question_graph.support import (
    is_grounded,
    texts_to_judge,
    unsupported_message,
    with_support,
)
from ras_agent.question_graph.times import as_of, facts_at, without_as_of
from ras_agent.running.budget import Limits, current_ledger
from ras_agent.running.confidence import ANY_SURENESS, Sureness, cited_texts, signals_of
from ras_agent.running.protocols import (
    Answerer,
    Extractor,
    Judge,
    Retriever,
    Rewriter,
    SpanReader,
)
from ras_agent.running.standing_facts import keep_standing
from ras_agent.text.normal_form import storable
from ras_agent.tools.graph_tokens.fact_orders import FactPruner
from ras_agent.tools.retrieve.search import Search
from ras_agent.tools.roles import role_name
from ras_agent.tools.structure.given_triples import given_triples

# the steps begin, plan and answer
LEAST_STEPS = 3
# the key under which LangGraph passes the checkpointer to a graph and to the graphs inside it
_CHECKPOINTER = "__pregel_checkpointer"

SEARCH_FAILED = "nothing was found, since the search failed"
"""The reason why a run has no answer if all its searches failed."""


def begin(
    *,
    least_steps: int = LEAST_STEPS,
    stop_reason: str = "",
    static: bool = False,
    reviewed: bool = False,
) -> NodeBody:
    """Return the body of a node that checks the caller's input and clears the state that an earlier question
    left in the thread.

    Args:
        least_steps: the smallest number of steps that a run takes.
        stop_reason: the stop reason of every run, for a graph without a loop.
        static: whether the graph accepts `static_passages`.
        reviewed: whether runs wait for a person, which requires a checkpointer.
    """

    def body(state: Beginning, limits: Limits, records: Records) -> Update:
        question = state.get("question")
        if not isinstance(question, str) or not question.strip():
            raise ValueError(
                f'the input needs a question that is not blank: {{"question": "..."}}, got {question!r}'
            )
        exchanges = exchanges_in(
            cast("Sequence[BaseMessage]", state.get("messages", ())), question
        )
        turns = [exchange.to_dict() for exchange in exchanges] or state.get("turns", [])
        least = least_steps + bool(turns)
        if state["remaining_steps"] < least:
            # LangGraph requires one more than the number of steps
            raise ValueError(
                f"the run's recursion_limit is too low to reach an answer: give at least {least + 1}, or leave it out"
            )
        if state.get("static_passages") and not static:
            raise ValueError(
                "only the RAS loop has static_passages: give seed_passages, or use --loop ras (create_ras_agent)"
            )
        if reviewed and get_config().get("configurable", {}).get(_CHECKPOINTER) is None:
            raise ReviewError(
                "a review pauses the run, and only a checkpointer holds a run that is paused: give one where the agent "
                "is made, checkpointer=InMemorySaver() or open_checkpointer(...), or leave review out"
            )
        question = storable(question)
        filter = read_filter(state)
        date = state.get("as_of") or ""
        dated = {}
        if date:
            dated = {"question": as_of(question, date), "asked": question}
        return {
            **empty_state(),
            "question": question,
            "subquery": question,
            **dated,
            "turns": turns,
            "scope": Scope(
                filter=filter,
                as_of=date,
                given=read_given_passages(state),
                static=bool(state.get("static_passages")),
                commit="",
            ),
            "stop_reason": stop_reason,
        }

    return body


def rewrite(rewriter: Rewriter) -> NodeBody:
    """Return the body of a node that rewrites a follow-up question so that it can be understood without its
    conversation.

    If the rewriter fails, the question stays unchanged.
    """

    def body(state: State, limits: Limits, records: Records) -> NodeSteps:
        question = state["question"]
        ledger = current_ledger()
        exchanges = [Exchange.from_dict(data) for data in state["turns"]]
        reply = yield RoleCall(
            "rewriter", 0, rewriter, "rewrite", (question, exchanges), str
        )
        if ledger.refused != "model_refused":
            ledger.refused = None  # a limit that forbids the rewriting does not end the run; the next call is checked again
        standalone = storable(" ".join((reply or "").split()))
        date = state["scope"].get("as_of", "")
        searched = without_as_of(standalone)
        if date:
            standalone = as_of(standalone, date)
        if not searched or standalone == question:
            return {}
        emit(Rewritten(question, standalone))
        asked = without_as_of(question)
        return {"question": standalone, "subquery": searched, "asked": asked}

    return body


def searches_of(state: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return the hop and the sub-query of each search of the current plan. A plan makes one search or several."""
    first = len(state["steps"]) + 1
    subqueries = [state["subquery"], *state.get("further", ())]
    return list(enumerate(subqueries, start=first))


def retriever_of_hop(plans: Sequence[JSON], hop: int) -> str:
    """Return the name of the retriever that the plan of a hop chooses; "" if it chooses no retriever."""
    for plan in reversed(plans):
        last: int = plan["hop"] + len(plan.get("further", ()))
        if plan["hop"] <= hop <= last:
            return str(plan.get("retriever", ""))
    return ""


class RetrieveReads(CallReads):
    """Lists the keys of the state that `retrieve` reads."""

    plans: list[JSON]
    subquery: str
    further: list[str]
    scope: Scope
    passages: dict[str, JSON]
    read: list[str]
    graph: JSON


def retrieve(
    retriever: Retriever, by_name: Mapping[str, Retriever] = MappingProxyType({})
) -> NodeBody:
    """Return the body of a node that searches for the sub-queries of the plan, all at the same time.

    If the caller gave passages for this hop, they replace the search. Hits are processed in the order of the
    plan, so the result does not depend on which search ends first.

    Args:
        by_name: the retrievers that a plan may choose instead of `retriever`.
    """

    def body(state: RetrieveReads, limits: Limits, records: Records) -> NodeSteps:
        searches = searches_of(state)
        first = searches[0][0]
        scope = state["scope"]
        given_passages = scope["given"]
        commit = scope["commit"]
        admitted = Filter.of(scope["filter"])
        found: list[list[Hit]]
        named = retriever_of_hop(state["plans"], first)
        chosen = by_name.get(named, retriever)
        if given_passages:
            given = [
                Hit(records.passage(data), 1 / rank)
                for rank, data in enumerate(given_passages[0], start=1)
            ]
            allowed = Search(retriever, admitted).filter
            check_admitted([hit.passage for hit in given], allowed)
            found = [given]
        else:
            works = []
            views = []
            for hop, subquery in searches:
                search = Search(chosen, admitted, scope["commit"])
                views.append(search)
                works.append(_search(search, hop, subquery, limits.k))
            found = yield from together(works)
            # the state of the index that the first search saw
            commit = next((view.commit for view in views if view.commit), commit)
        texts: dict[
            str, str
        ] = {}  # by id: the first text that came with the id is kept
        dumped_hits: list[JSON] = []
        new: dict[str, JSON] = {}
        shadowed: list[Failure] = []
        stale = []
        for (hop, subquery), hits in zip(searches, found, strict=False):
            kept_hits: list[Hit] = []
            for hit in hits:
                passage = hit.passage
                stored = state["passages"].get(passage.id)
                is_earlier = stored is not None and not stored.get("recalled")
                text = texts.setdefault(
                    passage.id,
                    stored["text"] if stored and is_earlier else passage.text,
                )
                if passage.text != text:
                    shadowed.append(_shared_id(passage, hop))
                    continue
                kept_hits.append(hit)
                if not is_earlier and passage.id not in new:
                    new[passage.id] = records.dump(passage)
                    if stored and passage.text != stored["text"]:
                        stale.append(passage.id)
            emit(Hits(hop, subquery, tuple(kept_hits)))
            dumped = records.dump_hits(tuple(kept_hits))
            if hop == first:
                dumped_hits = dumped
            else:
                dumped_hits = dumped_hits + [hit | {"hop": hop} for hit in dumped]
        update: Update = {"hits": dumped_hits, "passages": new}
        if given_passages or commit != scope["commit"]:
            update["scope"] = {
                **scope,
                "given": given_passages[1:],
                "commit": commit,
            }
        if stale:  # the text has changed since these recalled facts were read in it
            graph = without_passages(records.graph(state["graph"]), stale)
            update |= {
                "graph": records.dump_graph(graph),
                "read": [name for name in state["read"] if name not in stale],
            }
        failures = list(shadowed)
        if named and named not in by_name:
            known = ", ".join(by_name) or "only the default"
            message = f"this run has no retriever {named!r} (known: {known}), so the default retriever searched"
            failures.append(Failure("planner", message, first))
        if failures:
            update["failures"] = record_failures(failures)
        return update

    return body


def _search(
    search: Search, hop: int, subquery: str, k: int
) -> Generator[RoleCall, Any, list[Hit]]:
    reply = yield RoleCall(
        "retriever", hop, search, "retrieve", (subquery, k), Sequence
    )
    return list(map(valid_hit, (reply or ())[:k]))


class StructureReads(CallReads):
    """Lists the keys of the state that `structure` reads."""

    subquery: str
    further: list[str]
    hits: list[JSON]
    read: list[str]
    passages: dict[str, JSON]
    scope: Scope


def structure(extractor: Extractor, fallback: object = None) -> NodeBody:
    """Return the body of a node that reads facts in the passages that this hop's searches found.

    A passage is read only once in a run. If several searches of the hop found it, its facts belong to the first
    of them. The extractor is called only for passages that do not come with triples.

    Args:
        fallback: reads the passages for which the extractor's model gave no readable reply.
    """

    def body(state: StructureReads, limits: Limits, records: Records) -> NodeSteps:
        searches = searches_of(state)
        first = searches[0][0]
        works = []
        date = state["scope"].get("as_of", "")
        seen = set(state["read"])
        for hop, subquery in searches:
            passages: dict[str, Passage] = {}
            for hit in state["hits"]:
                name = hit["passage_id"]
                if hit.get("hop", first) == hop and name not in seen:
                    seen.add(name)
                    passages[name] = records.passage(state["passages"][name])
            if passages:
                works.append(_read(extractor, fallback, passages, hop, subquery, date))
        triples: tuple[Triple, ...] = ()
        read = list(state["read"])
        failures: list[Failure] = []
        if works:
            for facts in (yield from together(works)):
                triples += facts.triples
                failures += facts.failures
                read += facts.read
        update: Update = {"triples": records.dump_triples(triples)}
        if len(read) > len(state["read"]):
            update["read"] = read
        if failures:
            update["failures"] = record_failures(failures)
        return update

    return body


class _Facts(NamedTuple):
    """Holds the result of reading one search's passages: facts, failures, and the ids of passages that need not
    be read again.
    """

    triples: tuple[Triple, ...] = ()
    failures: tuple[Failure, ...] = ()
    read: tuple[str, ...] = ()


def _read(
    extractor: Extractor,
    fallback: object,
    passages: Mapping[str, Passage],
    hop: int,
    subquery: str,
    date: str,
) -> Generator[RoleCall, Any, _Facts]:
    """Read facts in the passages of one search. If the question has a date, return only facts that may hold then."""
    triples, unread = given_triples(passages.values())
    reply: Extraction | None = Extraction()
    if unread:
        reply = yield RoleCall(
            "extractor", hop, extractor, "extract", (unread, subquery), Extraction
        )
        if reply is None and not triples:
            return _Facts()
    extraction = reply or Extraction()
    missed = [
        passages[passage_id]
        for passage_id in extraction.unread
        if passage_id in passages
    ]
    if missed and fallback is not None and not current_ledger().refused:
        args = (missed, subquery)
        message = instead_of_model(fallback)
        more = yield RoleCall("extractor", hop, fallback, "extract", args, Extraction)
        noted = Failure(
            "extractor",
            f"no fact was read in {len(missed)} passages; {message}",
            hop,
        )
        parts = [extraction, Extraction(failures=(noted,)), more or Extraction()]
        extraction = Extraction.joined(parts)
    extraction = Extraction(triples + extraction.triples, extraction.failures)
    name = role_name(extractor)
    extraction = valid_facts(extraction, passages, name, hop, subquery)
    extraction = keep_standing(extraction, passages.values(), hop)
    triples = extraction.triples
    if date:
        triples = tuple(facts_at(triples, passages, date))
    emit(Triples(hop, triples))
    read = tuple(passages)
    if reply is None or any_failed(extraction.failures):
        # a passage without facts may give some if it is found and read again
        facts_from = {
            source.passage_id for triple in triples for source in triple.sources
        }
        read = tuple([name for name in passages if name in facts_from])
    return _Facts(triples, extraction.failures, read)


class MergeReads(Reads):
    """Lists the keys of the state that `merge` reads."""

    subquery: str
    further: list[str]
    hits: list[JSON]
    triples: list[JSON]
    graph: JSON


def merge(*, thinking: bool = False) -> NodeBody:
    """Return the body of a node that merges new facts into the question's graph and records the hop as a step.

    Searches that were made at the same time are recorded as one step each.

    Args:
        thinking: whether sub-queries after the first are sentences of a chain of thought.
    """

    def body(state: MergeReads, limits: Limits, records: Records) -> Update:
        searches = searches_of(state)
        first = searches[0][0]
        before = records.graph(state["graph"])
        triples = records.triples(state["triples"])
        graph = before
        if triples:
            grown = before.merge(triples)
            graph = grown.bounded(
                limits.max_facts,
                state["question"],
                _of_persons(grown) if state["reviews"] else (),
            )
        spent = state["seconds"] - sum(step["seconds"] for step in state["steps"])
        seconds = round(spent / len(searches), 6)
        # a fact of an earlier turn counts as new when a search for this question finds it
        known = set().union(*[step["triple_ids"] for step in state["steps"]])
        steps: list[JSON] = []
        for hop, subquery in searches:
            hits = state["hits"]
            if len(searches) > 1:
                hits = _hits_at(hop, first, hits)
            passage_ids = {hit["passage_id"] for hit in hits}
            # a person may have added facts from other passages
            passage_ids |= {
                source.passage_id
                for triple in triples
                for source in triple.sources
                if len(searches) == 1 or max(source.hop, first) == hop
            }
            ids = _facts_from(passage_ids, graph)
            new = tuple([name for name in ids if name not in known])
            known.update(ids)
            step = Step(
                hop,
                subquery,
                triple_ids=ids,
                new_triple_ids=new,
                thought=subquery if thinking and state["steps"] else "",
                seconds=seconds,
            )
            steps.append(step.to_dict() | {"hits": hits})
            # only if streaming, because counting entities and conflicts costs as much as the merge
            if streaming():
                emit(
                    GraphDelta(
                        hop,
                        graph.with_ids(new),
                        len(graph),
                        len(graph.entities),
                        len(graph.conflicts),
                        new,
                    )
                )
        changed: Update = {}
        if graph is not before:
            changed["graph"] = records.dump_graph(graph, state["graph"], triples)
        # hits and triples are emptied: step and graph hold them now, and a checkpointer would store them at each later step
        return {**changed, "steps": steps, "hits": [], "triples": [], "further": []}

    return body


def _hits_at(hop: int, first: int, hits: Sequence[JSON]) -> list[JSON]:
    """Return the hits of hop `hop` in the JSON form of a Step. `first` is the first hop of the current plan."""
    own = []
    for hit in hits:
        if hit.get("hop", first) == hop:
            own.append({key: value for key, value in hit.items() if key != "hop"})
    return own


def _facts_from(passage_ids: Collection[str], graph: QuestionGraph) -> tuple[str, ...]:
    """Return the ids of the facts that were read in these passages."""
    names = [
        name
        for name, (fact, _) in graph.entries.items()
        for source in fact.sources
        if source.passage_id in passage_ids
    ]
    return tuple(dict.fromkeys(names))


def _of_persons(graph: QuestionGraph) -> list[str]:
    """Return the ids of facts that a person stated or corrected. These are always shown."""
    stated = []
    for name, fact in graph.by_id.items():
        if any(is_person(source.extractor) for source in fact.sources):
            stated.append(name)
    return stated


def shown_graph(
    pruner: FactPruner | None,
    kind: str,
    question: str,
    graph: QuestionGraph,
    steps: Sequence[Step],
    hop: int,
) -> Generator[RoleCall, Any, QuestionGraph]:
    """Return the part of the question's graph that a planner or answerer is shown: without a pruner, the whole
    graph.

    Args:
        kind: the role that is shown the graph; a failure of the pruner is recorded under this role.
    """
    if pruner is None:
        return graph
    pruned: QuestionGraph | None = yield RoleCall(
        kind, hop, pruner, "prune", (question, graph, steps), QuestionGraph
    )
    return graph if pruned is None else pruned


def answer(
    answerer: Answerer,
    memory: ThreadMemory | None = None,
    pruner: FactPruner | None = None,
    judge: Judge | None = None,
    *,
    asks_anyway: bool = False,
    fallback: object = None,
    on_conflict: OnConflict = "both",
    functional: Functional = not_known,
    sureness: Sureness = ANY_SURENESS,
) -> NodeBody:
    """Return the body of a node that answers from the graph and the passages.

    Citations of passages that do not exist are dropped and recorded as failures. Each citation is marked with
    whether it supports the answer. If no citation does, the answer is not grounded, and a failure records that.
    Without evidence the answerer is not called and there is no answer, unless the plan was [NO_RETRIEVAL] or,
    with `asks_anyway`, a search has found nothing.

    Args:
        memory: remembers the graph for the thread's next question.
        pruner: chooses the facts that the answerer is shown.
        judge: decides whether a cited sentence supports a yes or a no.
        asks_anyway: whether the answerer is called even if searches found no evidence.
        fallback: answers if no reply of the answerer's model held an answer.
        on_conflict: how the answer states claims on which documents disagree.
        functional: tells which relations have only one object for each subject.
        sureness: how the answer's confidence is computed, and how high it has to be.
    """

    def body(state: State, limits: Limits, records: Records) -> NodeSteps:
        hop = len(state["steps"])
        graph = records.graph(state["graph"])
        passages = {
            name: records.passage(data) for name, data in state["passages"].items()
        }
        steps = tuple(records.step(data, state["passages"]) for data in state["steps"])
        evidence = bool(passages or len(graph))
        if state["stop_reason"] == "model_refused":
            reply = None
        elif (
            evidence
            or state["stop_reason"] == "no_retrieval"
            or (asks_anyway and steps)
        ):
            graph_shown = yield from shown_graph(
                pruner, "answerer", state["question"], graph, steps, hop
            )
            args = (state["question"], graph_shown, tuple(passages.values()), steps)
            reply = yield RoleCall("answerer", hop, answerer, "answer", args, Answer)
            if reply is not None and reply.failed and fallback is not None and evidence:
                failed = replace(reply.failures[-1], message=instead_of_model(fallback))
                instead = yield RoleCall(
                    "answerer", hop, fallback, "answer", args, Answer
                )
                if instead is not None:
                    reply = replace(
                        instead, failures=(*reply.failures, failed, *instead.failures)
                    )
        else:
            reply = _without_evidence(state)
        refused = current_ledger().refused
        if reply is None:
            cause = f"{refused} is used up" if refused else "the answerer failed"
            if "model_refused" in (refused, state["stop_reason"]):
                cause = "a model cannot be asked"
            reply = Answer(f"No answer: {cause}.", abstained=True, failed=cause)
        reply = valid_citations(reply, passages, graph.by_id, hop)
        reply = yield from _supported(
            state["question"], reply, passages, graph, judge, hop
        )
        current_ledger().refused = (
            refused  # a judge that had no time does not change the stop reason
        )
        reply = sureness.of_answerer(reply)
        reply = with_dispute(reply, graph, passages, on_conflict, functional)
        grounded = is_grounded(reply)
        if evidence and (unsupported := unsupported_message(reply)):
            reply = replace(
                reply, failures=(*reply.failures, Failure("answerer", unsupported))
            )
        if sureness.calibration is not None and not reply.abstained:
            spans = yield from _spans(state["question"], reply, passages, judge, hop)
            current_ledger().refused = refused
            signals = signals_of(
                state["question"],
                reply,
                graph,
                passages,
                stop_reason=refused or state["stop_reason"],
                hops=hop,
                failed=bool(state["failures"] or reply.failures),
                spans=spans,
            )
            reply = sureness.calibrated(reply, signals)
        failures = record_failures(
            replace(failure, role="answerer", hop=hop) for failure in reply.failures
        )
        emit(Answered(reply, refused or state["stop_reason"], grounded))
        if memory is not None and len(graph):
            yield remember_call(memory, hop, graph, passages)
            # the answer is complete: a store that had no time does not change the stop reason
            current_ledger().refused = refused
        return {
            "answer": reply.text,
            "citations": [citation.to_dict() for citation in reply.citations],
            "abstained": reply.abstained,
            "failed": reply.failed,
            "suggestion": reply.suggestion,
            "disputes": [dispute.to_dict() for dispute in reply.disputes],
            "grounded": grounded,
            "confidence": finite(reply.confidence),
            "agreement": reply.agreement,
            "failures": failures,
            "structured_response": structured_response(
                state.get("messages", ()),
                reply,
                finite(reply.confidence),
                grounded=grounded,
            ),
            "messages": messages_of_answer(
                state.get("messages", ()),
                state["question"],
                state.get("asked", ""),
                reply,
                grounded=grounded,
            ),
            "turns": with_turn(state.get("turns", ()), state["question"], reply),
        }

    return body


def _supported(
    question: str,
    reply: Answer,
    passages: Mapping[str, Passage],
    graph: QuestionGraph,
    judge: Judge | None,
    hop: int,
) -> Generator[RoleCall, Any, Answer]:
    """Return the answer with `supported` set in each citation. The judge is called only for an answer of yes or
    no.
    """
    texts = texts_to_judge(question, reply, passages) if judge else []
    verdicts = None
    if texts:
        verdicts = yield RoleCall(
            "judge", hop, judge, "judge", (question, texts), Sequence
        )
    return with_support(question, reply, passages, graph.by_id, verdicts or ())


def _spans(
    question: str,
    reply: Answer,
    passages: Mapping[str, Passage],
    judge: Judge | None,
    hop: int,
) -> Generator[RoleCall, Any, Sequence[Sequence[Span]]]:
    """Return the spans that the judge reads in the title and text of each cited passage; () if the judge cannot
    read spans.
    """
    texts = cited_texts(reply, passages)
    if not texts or not isinstance(judge, SpanReader):
        return ()
    spans = yield RoleCall("judge", hop, judge, "read", (question, texts), Sequence)
    return spans or ()


def _without_evidence(state: State) -> Answer:
    """Return an answer that says that nothing was found, and the reason."""
    broken = [
        failure["message"]
        for failure in state["failures"]
        if failure["role"] == "retriever"
    ]
    if broken:
        cause = SEARCH_FAILED
        # only the beginning of the error: the rest is in the failures, and may name an internal address
        return Answer(
            f"No answer: {cause}: {broken[-1].partition(': ')[0]}",
            abstained=True,
            failed=cause,
        )
    if state["steps"]:
        return Answer(
            "No answer: no passage was found for the question.", abstained=True
        )
    cause = "the run ended before its first search"
    if any(plan.get("by") for plan in state["plans"]):
        cause += ": a person stopped it"
    elif state["stop_reason"]:
        cause += f": {state['stop_reason']}"
    return Answer(f"No answer: {cause}.", abstained=True, failed=cause)


def _shared_id(passage: Passage, hop: int) -> Failure:
    message = f"a passage was dropped, because another text has its id {passage.id!r}: give each passage its own id"
    return Failure("retriever", message, hop, passage.text[:200])
