"""Defines the state that all requests of a server share: the agent, its index and threads, and the runs in
progress.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, StateSnapshot

from ras_agent import __version__
from ras_agent.app.sample import sample_passages
from ras_agent.app.serve import wire
from ras_agent.app.serve.access import Caller
from ras_agent.app.serve.documents import Documents
from ras_agent.app.serve.errors import ApiError, no_graph, without_server
from ras_agent.app.serve.runs import Ended, Run, outputs_of
from ras_agent.config.filters import Filter, as_of_filter
from ras_agent.config.settings import Settings
from ras_agent.contracts.records import JSON, Hit, Passage
from ras_agent.graphs.conversation import question_of
from ras_agent.graphs.parts import AgentParts
from ras_agent.graphs.resolve import (
    assemble_agent,
    resolve_parts,
    retrievers_by_name,
    review_points,
)
from ras_agent.graphs.threads import (
    aforget_thread,
    alist_threads,
    anotes_of,
    awrite_notes,
)
from ras_agent.graphs.tool import without_sources
from ras_agent.logs import LOGGER
from ras_agent.page.examples import questions_about
from ras_agent.running.budget import Limits
from ras_agent.running.calling import Threads, Turns, acall
from ras_agent.running.checkpoints import aopen_checkpointer, aopen_store, prober
from ras_agent.running.protocols import Retriever
from ras_agent.running.review import Place, places
from ras_agent.text.lines import one_line
from ras_agent.text.normal_form import storable
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import graph_of
from ras_agent.tools.kg.neighbourhood import (
    Neighbourhood,
    names_beginning,
    neighbourhood,
)
from ras_agent.tools.retrieve.retrieval import Retrieval
from ras_agent.tools.retrieve.search import Search

# seconds of one question if the settings have no limit, so that no run lasts for ever
_MAX_SECONDS = 300.0
# seconds of one search, of one reading of the index, and of each check by `/ready`
_SEARCH_SECONDS = 30.0
_READ_SECONDS = 60.0
_READY_SECONDS = 2.0
# seconds in which the form of an upload has to be parsed, including the wait for earlier forms of the caller
_FORM_SECONDS = 600.0
# number of queries of a batch that are searched at the same time, and the seconds of the whole batch
_BATCH_AT_ONCE = 4
_BATCH_SECONDS = 60.0
# seconds of reading a checkpoint
_STORED_SECONDS = 10.0
# number of threads that are kept in memory; the least recently used one is forgotten first
_REMEMBERED = 1000
# number of knowledge graphs that are kept open, one for each filter
_GRAPHS = 8
# number of names that are suggested for a name that the graph does not have
_NAMES = 5
# roles of a conversation with messages that are read, and the speakers that they stand for
_SPEAKERS = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
# the metadata key of a checkpoint that says where its run waits for a person
_REVIEW = "review"


class Service:
    """Holds the agent of a server, and starts its runs.

    A thread belongs to the caller who began it. Callers with another token have separate threads, even with the same
    id.
    """

    def __init__(
        self,
        settings: Settings,
        parts: AgentParts,
        checkpointer: BaseCheckpointSaver[Any],
        index: PassageIndex,
    ) -> None:
        self.settings = settings
        self.index = index
        self.documents = Documents(index, settings)
        # separate threads for each kind of work, so that work that hangs does not stop other kinds
        self.searching = Threads(32, _SEARCH_SECONDS)
        self.reading = Threads(16, _READ_SECONDS)
        self.drawing = Threads(2, _READ_SECONDS)
        self.parsing = Threads(2, _READ_SECONDS)
        self.parsing_forms = defaultdict[str, Threads](_parser_of_forms)
        self._limits = replace(
            parts.limits, max_seconds=parts.limits.max_seconds or _MAX_SECONDS
        )
        self._parts = parts
        self._by_name: dict[str, Retriever] = {}
        self._checkpointer = checkpointer
        self._prober = prober(checkpointer)
        # verdicts on threads are kept as long as threads are
        self._notes: BaseStore = parts.store or InMemoryStore()
        # one agent for each choice of places where a person decides
        self._agent = lru_cache(None)(
            lambda review: assemble_agent(replace(parts, review=review), checkpointer)
        )
        self._without_threads = assemble_agent(replace(parts, review=(), store=None))
        self._running: dict[str, Run] = {}
        self._turns = Turns()
        # whether callers share the runs, set if several tokens are known
        self.has_shares = False
        self._remembered: OrderedDict[str, None] = OrderedDict()
        self._open_graph = lru_cache(_GRAPHS)(
            lambda commit, seen: graph_of(index.within(seen))
        )
        self._examples = lru_cache(_GRAPHS)(
            lambda commit, seen: questions_about(index.within(seen).passages)
        )

    @property
    def runs(self) -> int:
        """Return the number of runs that have not ended."""
        return len(self._running)

    def end_runs(self) -> None:
        """Cancel the runs in progress, and tell their callers that the server is shutting down."""
        for run in self._running.values():
            run.end_with_server()

    def ask(self, request: wire.AskRequest, caller: Caller) -> tuple[str, Run]:
        """Start the run of a request, and return its thread and the run. Raises ApiError and ReviewError."""
        thread = request.thread or uuid4().hex
        inputs = _inputs(request, caller)
        review = self._parts.review
        reads_facts = self._parts.extractor is not None
        if request.review is not None:
            review = review_points(
                self._parts.graph, request.review, reads_facts=reads_facts
            )
        return thread, self._on_thread(thread, caller, review, inputs, request.limits)

    def ask_once(self, request: wire.AskRequest, caller: Caller) -> Run:
        """Start a run whose thread is not kept. Raises ApiError."""
        return self._start(
            uuid4().hex,
            caller.name,
            self._without_threads,
            _inputs(request, caller),
            {},
            None,
        )

    async def resume(
        self, thread: str, request: wire.ResumeRequest, caller: Caller
    ) -> Run:
        """Resume a thread's run.

        Raises ApiError if the run has ended, or if a decision is given although the run does not wait for one.
        """
        self._check_free(thread, caller)
        review, state = await self._state(thread, caller)
        if not state.tasks:  # `next` is also empty after a node that ended before its checkpoint was written
            raise ApiError(
                409,
                f"the run of thread {thread!r} has ended: ask a new question",
                "nothing_to_resume",
            )
        if request.decision is not None and not state.interrupts:
            raise ApiError(
                409,
                f"thread {thread!r} does not wait for a decision: send the request without one",
                "no_review",
            )
        inputs: Any = (
            None if request.decision is None else Command(resume=request.decision)
        )
        return self._on_thread(thread, caller, review, inputs, request.limits)

    async def thread(self, thread: str, caller: Caller) -> JSON:
        """Return the state of a thread. Raises ApiError if the thread is not the caller's."""
        _, state = await self._state(thread, caller)
        review = next((interrupt.value for interrupt in state.interrupts), None)
        running = self._key(thread, caller) in self._running
        ended = Ended(outputs_of(state.values), review)
        return {
            **ended.document(thread),
            "running": running,
            "finished": not state.tasks and not running,
        }

    async def threads(self, caller: Caller, limit: int) -> JSON:
        """List the threads of a caller, the most recent first."""
        own = self._key("", caller)
        stored = await alist_threads(self._checkpointer, user=caller.name, limit=limit)
        threads = [
            (thread, thread.id.removeprefix(own))
            for thread in stored
            if thread.id.startswith(own)
        ]
        about = []
        for one, name in threads:
            notes = await anotes_of(self._notes, one.id, user=caller.name)
            about.append(
                {
                    "thread": name,
                    "name": notes.name,
                    "question": one.question,
                    "began": one.began,
                }
            )
        return {"threads": about}

    async def note(self, thread: str, note: wire.ThreadNote, caller: Caller) -> JSON:
        """Store a person's note on a thread. Raises ApiError if the thread is not the caller's or has no answer yet."""
        key, (_, state) = self._key(thread, caller), await self._state(thread, caller)
        notes = await anotes_of(self._notes, key, user=caller.name)
        if note.name is not None:
            notes = replace(notes, name=one_line(storable(note.name)))
        if note.right is not None:
            outputs = outputs_of(state.values)
            if not outputs.get("stop_reason"):
                raise ApiError(
                    409,
                    f"thread {thread!r} has no answer yet: wait for its run to end",
                    "no_answer",
                )
            notes = notes.judged(
                outputs, right=note.right, correct=note.correct.strip()
            )
        await awrite_notes(self._notes, key, notes, user=caller.name)
        return {"thread": thread, "name": notes.name, "verdicts": len(notes.verdicts)}

    async def forget(self, thread: str, caller: Caller) -> JSON:
        """Delete a thread and everything stored about it. Raises ApiError if it is not the caller's or is running."""
        self._check_free(thread, caller)
        key = self._key(thread, caller)
        if not await aforget_thread(
            self._checkpointer, key, user=caller.name, store=self._notes
        ):
            raise ApiError(
                404,
                f"there is no thread {thread!r}: ask with this thread first",
                "unknown_thread",
            )
        return {"threads_forgotten": 1}

    async def retrieve(
        self,
        query: str,
        k: int,
        caller: Caller,
        filter: JSON | None,
        retriever: str = "",
    ) -> Retrieval:
        """Search the index as the agent does, or with a named retriever for which the index has all the data.

        Raises ValueError for a blank query, FilterError, and ApiError for a retriever that the index does not have.
        """
        chosen = self._parts.retriever
        if retriever:
            chosen = await self.reading.run(self._retriever_named, retriever)
        search = Search(chosen, Filter.of(caller.joined_filter(filter)))
        retrieval: Retrieval = await self.searching.run(search.find, query, k)
        for failure in retrieval.failures:
            LOGGER.warning("%s", failure.message)
        return retrieval

    def _retriever_named(self, name: str) -> Retriever:
        """Return the retriever of this name, which is made only once. Raises ApiError for one that the index
        does not have.
        """
        if name not in self._by_name:
            # a graph may have been built since
            made = retrievers_by_name(self.settings, self.index)
            self._by_name = made | self._by_name
        if name not in self._by_name:
            known = ", ".join(self._by_name)
            wrong = f"this index has no retriever {name!r}; it has: {known}"
            raise ApiError(400, wrong, "unknown_retriever")
        return self._by_name[name]

    async def retrieve_all(
        self, queries: Sequence[str], k: int, caller: Caller
    ) -> list[list[Hit]]:
        """Search for each query as `retrieve` does; a blank query finds nothing.

        Only a few searches run at a time, because other requests need threads too. Raises TimeoutError if all searches
        together take longer than a minute.
        """
        found: dict[str, list[Hit]] = {query: [] for query in queries}
        waiting = (query for query in found if query.strip())

        async def search() -> None:
            for query in waiting:  # shared: each query is taken once
                retrieval = await self.retrieve(query, k, caller, None)
                found[query] = list(retrieval.hits)

        try:
            async with asyncio.timeout(_BATCH_SECONDS):
                await asyncio.gather(*(search() for _ in range(_BATCH_AT_ONCE)))
        finally:
            waiting.close()  # if one search has failed, the others begin no further query
        return [found[query] for query in queries]

    async def parts(self) -> dict[str, str]:
        """Return "ok" or "down" for each part that holds data, and for searches, which are down if all their
        threads hang.
        """
        config = self._config("ready", Caller())
        asked: dict[str, Awaitable[object]] = {
            "index": acall(self.index.database, "state", within=_READY_SECONDS),
            "search": asyncio.wait_for(self.searching.run(bool), _READY_SECONDS),
            "threads": acall(self._prober, "get_tuple", config, within=_READY_SECONDS),
        }
        if self._parts.store is not None:
            asked["memory"] = acall(
                self._parts.store, "get", ("ready",), "ready", within=_READY_SECONDS
            )
        answers = await asyncio.gather(*asked.values(), return_exceptions=True)
        states = (
            "down" if isinstance(answer, BaseException) else "ok" for answer in answers
        )
        return dict(zip(asked, states, strict=True))

    def view(self, caller: Caller) -> PassageIndex:
        """Return the part of the index that the caller may read, as of the last commit."""
        self.index.refresh()
        return self.index.within([self.settings.filter, caller.filter])

    def about(self, caller: Caller) -> wire.About:
        """Return the description of the server that a page shows before the first question."""
        view = self.view(caller)
        place = self.settings.index
        changes = bool(place and self.settings.max_upload_mb)
        roles = self._parts.role_names.items()
        return wire.About(
            version=__version__,
            collection=str(place).rstrip("/").rpartition("/")[2]
            if place
            else "The bundled sample",
            models={
                role: without_server(name)
                for role, name in roles
                if not name.startswith("offline")
            },
            graph=self.has_graph,
            changes=changes,
            corrects=changes and caller.sees_all and self.has_graph,
            examples=self._examples(view.commit, view.filter),
        )

    def passage(self, passage_id: str, caller: Caller) -> Passage:
        """Return a passage. Raises ApiError for an unknown passage, or one that the caller may not see."""
        passage = self.view(caller).get(passage_id)
        if passage is None:
            raise ApiError(
                404, f"there is no passage {passage_id!r}", "unknown_passage"
            )
        return passage

    @property
    def has_graph(self) -> bool:
        """Tell whether the index has a knowledge graph."""
        return KGIndex.exists(self.index)

    def graph(self, caller: Caller) -> KGIndex:
        """Return the part of the stored knowledge graph that the caller may see. Raises ApiError if there is no
        graph."""
        if not self.has_graph:
            raise no_graph()
        view = self.view(caller)
        return self._open_graph(view.commit, view.filter)

    def around(self, entity: str, entities: int, caller: Caller) -> Neighbourhood:
        """Return the stored knowledge graph around an entity, with at most `entities` entities.

        For "" it is the graph around the best connected entities. Raises ApiError if there is no graph or no such
        entity.
        """
        graph = self.graph(caller)
        try:
            return neighbourhood(graph, entity, entities)
        except KeyError:
            close = ", ".join(names_beginning(graph, entity[:4], _NAMES)) or "none"
            wrong = (
                f"the graph has no entity {entity!r}; names that begin like it: {close}"
            )
            raise ApiError(404, wrong, "unknown_entity") from None

    async def _state(
        self, thread: str, caller: Caller
    ) -> tuple[tuple[Place, ...], StateSnapshot]:
        """Return where a thread's last run waits for a person, and its state. Raises ApiError for an unknown thread."""
        config = self._config(thread, caller)
        stored = await acall(
            self._checkpointer, "get_tuple", config, within=_STORED_SECONDS
        )
        if stored is None:
            raise ApiError(
                404,
                f"there is no thread {thread!r}: ask with this thread first",
                "unknown_thread",
            )
        # a run is continued by an agent with the same nodes
        review = places(cast("dict[str, Any]", stored.metadata).get(_REVIEW, ""))
        return review, await self._agent(review).aget_state(config)

    def _on_thread(
        self,
        thread: str,
        caller: Caller,
        review: tuple[Place, ...],
        inputs: Any,
        limits: wire.RequestLimits | None,
    ) -> Run:
        self._check_free(thread, caller)
        self._remember(self._key(thread, caller))
        config: RunnableConfig = {
            **self._config(thread, caller),
            "metadata": {_REVIEW: ",".join(review)},
        }
        return self._start(
            self._key(thread, caller),
            caller.name,
            self._agent(review),
            inputs,
            config,
            limits,
        )

    def _start(
        self,
        key: str,
        caller: str,
        agent: Any,
        inputs: Any,
        config: RunnableConfig,
        limits: wire.RequestLimits | None,
    ) -> Run:
        free = self.settings.max_runs - len(self._running)
        own = sum(run.caller == caller for run in self._running.values())
        # a caller must leave as many places free as it uses, so the first caller gets half of them, the next half of the rest
        if free <= (own if self.has_shares else 0):
            which = "of yours " if free else ""
            raise ApiError(
                503,
                f"too many questions {which}are already being answered: try again soon",
                "busy",
            )
        within = _lower(self._limits, limits)
        turn = self._turns.turn()
        ended = partial(self._running.pop, key)
        run = Run(
            agent,
            inputs,
            config,
            within,
            caller=caller,
            turn=turn,
            ended=ended,
            check=self._check_reached,
        )
        self._running[key] = run
        return run

    async def _check_reached(self) -> None:
        """Raise an error if the index is gone, or if its database does not answer."""
        await self.reading.run(self.index.database.state)

    def _key(self, thread: str, caller: Caller) -> str:
        # an id of a thread holds no slash, so no caller can name another's
        return f"{caller.name}/{thread}"

    def _config(self, thread: str, caller: Caller) -> RunnableConfig:
        return {
            "configurable": {
                "user_id": caller.name,
                "thread_id": self._key(thread, caller),
            }
        }

    def _check_free(self, thread: str, caller: Caller) -> None:
        if self._key(thread, caller) in self._running:
            wrong = f"thread {thread!r} is being answered: wait for its end, or ask in another thread"
            raise ApiError(409, wrong, "thread_busy")

    def _remember(self, key: str) -> None:
        """Record that a thread is used. If threads are only in memory, the least recently used one is dropped
        when there are too many.
        """
        if self.settings.checkpoint != "memory":
            return
        self._remembered[key] = None
        self._remembered.move_to_end(key)
        oldest = next(other for other in self._remembered if other not in self._running)
        if len(self._remembered) > _REMEMBERED and oldest != key:
            del self._remembered[oldest]
            self._checkpointer.delete_thread(oldest)


def _parser_of_forms() -> Threads:
    return Threads(1, _FORM_SECONDS)


def conversation(messages: list[wire.Message] | None) -> list[BaseMessage]:
    """Return the turns that have text as LangChain messages, without the sources that the server appends to its
    answers.
    """
    turns = [
        (_SPEAKERS[turn.role], turn.text)
        for turn in messages or ()
        if turn.role in _SPEAKERS
    ]
    said = [
        (role, without_sources(text) if role == "assistant" else text)
        for role, text in turns
        if text.strip()
    ]
    if not any(role == "user" for role, _ in said):
        raise ApiError(
            400,
            "no message of the user has a text: add one with the role 'user'",
            "no_question",
        )
    return convert_to_messages(said)


def _inputs(request: wire.AskRequest, caller: Caller) -> JSON:
    """Return the agent's input for a request. Raises ApiError, ValueError or FilterError for an impossible request."""
    turns: list[BaseMessage]
    turns = (
        [HumanMessage(request.question)]
        if request.question is not None
        else conversation(request.messages)
    )
    question_of(turns)
    longest = max(len(turn.text) for turn in turns if turn.type == "human")
    if longest > wire.LONGEST_QUESTION:
        wrong = f"the question has {longest:,} characters, and {wire.LONGEST_QUESTION:,} are the most: shorten it"
        raise ApiError(422, wrong, "question_too_long")
    filter = caller.joined_filter(request.filter)
    Filter.of(filter)
    inputs: JSON = {"messages": turns}
    if filter is not None:
        inputs["filter"] = filter
    if request.as_of is not None:
        as_of_filter(request.as_of)
        inputs["as_of"] = request.as_of
    return inputs


def _lower(limits: Limits, lower: wire.RequestLimits | None) -> Limits:
    """Return `limits` with each limit replaced by the request's limit if that is lower."""
    values = lower.model_dump(exclude_none=True) if lower else {}
    return replace(
        limits,
        **{
            name: min(value, getattr(limits, name) or value)
            for name, value in values.items()
        },
    )


@asynccontextmanager
async def open_service(
    settings: Settings, *, sample: bool = False
) -> AsyncIterator[Service]:
    """Open the index, models and thread store that the settings name, and close them at the end of the block.

    Raises a RasError if one of them cannot be opened.
    """
    if sample or settings.index is None:  # an external retriever needs no index
        settings = settings.model_copy(update={"index": None})
        index = PassageIndex.in_memory(sample_passages() if sample else ())
    else:
        index = PassageIndex.open(settings.index)
    with closing(index):
        async with (
            aopen_checkpointer(settings.checkpoint) as checkpointer,
            aopen_store(settings.checkpoint) as store,
        ):
            parts = resolve_parts(
                settings.loop, settings=settings, index=index, store=store
            )
            yield Service(settings, parts, checkpointer, index)
