"""Threads that a checkpointer holds: listed, and forgotten with all that is stored of them.

    with open_checkpointer("sqlite:conversations.sqlite") as checkpointer:
        for thread in list_threads(checkpointer):
            print(thread.id, thread.began, thread.question)
        forget_thread(checkpointer, "ada-1")

What is forgotten are the thread's checkpoints and the facts that a store keeps of it. In SQLite, in files that
`open_checkpointer`, `aopen_checkpointer` and `aopen_store` open, nothing stays of their text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.store.base import BaseStore

from ras_agent.graphs.conversation import with_question
from ras_agent.graphs.memory import KEY, namespace_of

# LangGraph's first checkpoint of a thread, which holds its first input
_FIRST = {"step": -1}
# SQLite copies its write-ahead log, which holds deleted text, into the file, and empties it
_EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"


@dataclass(frozen=True, slots=True)
class StoredThread:
    """Thread of a checkpointer. user: its run's `user_id`, if any. question: its first one. began: in ISO 8601, UTC."""

    id: str
    user: str
    question: str
    began: str


def list_threads(
    checkpointer: BaseCheckpointSaver[Any], *, user: str | None = None, limit: int | None = None
) -> list[StoredThread]:
    """Return the threads of a user, or of all without one, the last begun first; at most `limit`."""
    return _listed(checkpointer.list(None, filter=_first_of(user), limit=limit))


async def alist_threads(
    checkpointer: BaseCheckpointSaver[Any], *, user: str | None = None, limit: int | None = None
) -> list[StoredThread]:
    """Do the same as `list_threads`, for coroutines."""
    return _listed([found async for found in checkpointer.alist(None, filter=_first_of(user), limit=limit)])


def forget_thread(
    checkpointer: BaseCheckpointSaver[Any], thread: str, *, user: str = "", store: BaseStore | None = None
) -> bool:
    """Delete a thread with all that is stored of it, and return whether there was one. user: its run's `user_id`.

    No run of the thread may be under way. A log of SQLite that another process reads is emptied by its next write.
    """
    exists = checkpointer.get_tuple(_config(thread)) is not None
    checkpointer.delete_thread(thread)
    if store is not None:
        store.delete(namespace_of(user, thread), KEY)
    for holder in (checkpointer, store):
        if (connection := _sqlite(holder)) is not None:
            with holder.lock:  # type: ignore[union-attr]
                connection.execute(_EMPTY_LOG)
    return exists


async def aforget_thread(
    checkpointer: BaseCheckpointSaver[Any], thread: str, *, user: str = "", store: BaseStore | None = None
) -> bool:
    """Do the same as `forget_thread`, for coroutines."""
    exists = await checkpointer.aget_tuple(_config(thread)) is not None
    await checkpointer.adelete_thread(thread)
    if store is not None:
        await store.adelete(namespace_of(user, thread), KEY)
    for holder in (checkpointer, store):
        if (connection := _sqlite(holder)) is not None:
            async with holder.lock:  # type: ignore[union-attr]
                await connection.execute(_EMPTY_LOG)
    return exists


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def _first_of(user: str | None) -> dict[str, Any]:
    return _FIRST if user is None else {**_FIRST, "user_id": user}


def _listed(found: Iterable[CheckpointTuple]) -> list[StoredThread]:
    threads = []
    for item in found:
        names: Any = item.config.get("configurable", {})
        if names.get("checkpoint_ns"):  # of a graph inside another
            continue
        inputs, user = item.checkpoint["channel_values"].get("__start__"), item.metadata.get("user_id", "")
        try:
            question = str(with_question(inputs or {})["question"])
        except (TypeError, ValueError, LookupError, AttributeError):  # another graph's input
            question = ""
        threads.append(StoredThread(names["thread_id"], str(user), question, item.checkpoint["ts"]))
    return sorted(threads, key=lambda thread: thread.began, reverse=True)


def _sqlite(holder: object) -> Any:
    """Return the connection of a saver or store in SQLite; None for others."""
    connection = getattr(holder, "conn", None)
    return connection if type(connection).__module__.partition(".")[0] in ("sqlite3", "aiosqlite") else None
