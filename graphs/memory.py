"""Keeps a thread's facts in a LangGraph Store, so that the next question starts with the facts of earlier
turns.

Each user and thread has one item, which holds the last graph and the passages in which its facts were read. The
names of user and thread come from the run's configuration, `{"configurable": {"user_id": ..., "thread_id":
...}}`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from langgraph.config import get_config
from langgraph.store.base import BaseStore

from ras_agent.config.filters import Filter
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import JSON, Failure, Passage
from ras_agent.graphs.node import NodeBody, NodeSteps, RoleCall, record_failures
from ras_agent.graphs.records import Records
from ras_agent.graphs.state import State
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Limits

_ROOT = "ras_agent"
KEY = "graph"
"""The key of the only item in a thread's namespace."""
_MAX_FACTS = 200

Namespace = tuple[str, ...]


class ThreadMemory:
    """Reads and writes a thread's item in a store."""

    def __init__(self, store: BaseStore, scope: Filter) -> None:
        """Take the store, and the filter within which the agent may use evidence."""
        self._store = store
        self._scope = scope

    def recall(self, namespace: Namespace) -> JSON:
        """Return the stored item, or {} if there is no item."""
        item = self._store.get(namespace, KEY)
        if item:
            return item.value
        return {}

    async def arecall(self, namespace: Namespace) -> JSON:
        """Return the same as `recall`, as a coroutine."""
        item = await self._store.aget(namespace, KEY)
        if item:
            return item.value
        return {}

    def remember(self, namespace: Namespace, value: JSON) -> bool:
        """Store the item in place of the last one. Returns True."""
        self._store.put(namespace, KEY, value, index=False)
        return True

    async def aremember(self, namespace: Namespace, value: JSON) -> bool:
        """Do the same as `remember`, as a coroutine."""
        await self._store.aput(namespace, KEY, value, index=False)
        return True

    def admits(self, filter: Any, passage: Passage) -> bool:
        """Return whether a question that is asked within `filter` may be answered from the passage."""
        return self._scope.both(Filter.of(filter)).matches(passage)


def recall(memory: ThreadMemory) -> NodeBody:
    """Return the body of a node that puts the facts of the thread's earlier turns into the question's graph.

    Only facts from passages within the run's filter are used. They keep their sub-query and get hop 0. Their
    passages are added to the state.
    """

    def body(state: State, limits: Limits, records: Records) -> NodeSteps:
        item = yield RoleCall("store", 0, memory, "recall", (namespace(),), dict)
        if not item:
            return {}
        try:
            passages = {
                name: data | {"recalled": True}
                for name, data in item["passages"].items()
                if memory.admits(state["scope"]["filter"], Passage.from_dict(data))
            }
            graph = _of_hop_0(QuestionGraph.from_dict(item["graph"]), passages)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            failure = Failure(
                "store",
                f"this thread's item in the store is not a graph, so its facts are left out: {type(error).__name__}: {error}"[
                    :500
                ],
            )
            return {"failures": record_failures([failure])}
        graph = graph.bounded(limits.max_facts, state["question"])
        return {
            "graph": records.dump_graph(graph),
            "passages": passages,
            "read": list(passages) if item.get("whole") else [],
        }

    return body


def remember_call(
    memory: ThreadMemory,
    hop: int,
    graph: QuestionGraph,
    passages: Mapping[str, Passage],
) -> RoleCall:
    """Return the role call that stores a graph's facts and their passages; of a big graph, only the most useful
    facts.

    Args:
        hop: the hop under which a failure of the store is recorded.
        passages: the run's passages, by id.
    """
    kept_graph = graph.bounded(_MAX_FACTS)
    sources = dict.fromkeys(
        source.passage_id for fact in kept_graph.facts for source in fact.sources
    )
    value = {
        "graph": {**kept_graph.to_dict(), "shelf": []},
        "passages": {
            name: passages[name].to_dict() for name in sources if name in passages
        },
        "whole": not kept_graph.hidden_facts,
    }
    return RoleCall("store", hop, memory, "remember", (namespace(), value), bool)


def without_passages(graph: QuestionGraph, names: Collection[str]) -> QuestionGraph:
    """Return the graph without the facts that are stated only in the passages with these ids."""
    return _with_sources(
        graph, lambda source: source if source.passage_id not in names else None
    )


def namespace() -> Namespace:
    """Return the namespace of the run's user and thread. Raises SettingsError for a run without a thread."""
    names = get_config().get("configurable", {})
    if not (thread := names.get("thread_id")):
        raise SettingsError(
            "a store keeps the facts of each user and thread apart, and this run names no thread: ask with "
            '{"configurable": {"user_id": "...", "thread_id": "..."}}'
        )
    return namespace_of(names.get("user_id"), thread)


def namespace_of(user: object, thread: object, root: str = _ROOT) -> Namespace:
    """Return the namespace of a user's thread.

    Args:
        user: None or "" if no user is named.
        root: the first part of the namespace.
    """
    return (
        root,
        "anybody" if user in (None, "") else f"user {_label(user)}",
        f"thread {_label(thread)}",
    )


def _label(name: object) -> str:
    """Encode a name as a label of a namespace, which may not contain a full stop. Different names get different
    labels.
    """
    return str(name).replace("%", "%25").replace(".", "%2E")


def _of_hop_0(graph: QuestionGraph, passages: Collection[str]) -> QuestionGraph:
    return _with_sources(
        graph,
        lambda source: (
            replace(source, hop=0) if source.passage_id in passages else None
        ),
    )


def _with_sources(graph: QuestionGraph, change: Any) -> QuestionGraph:
    readings = (
        replace(reading, sources=tuple(filter(None, map(change, reading.sources))))
        for reading in graph.readings
    )
    return QuestionGraph(
        tuple(reading for reading in readings if reading.sources), graph.hidden_facts
    )
