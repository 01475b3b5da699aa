"""Threads that a checkpointer holds: listed, named, judged, and forgotten with all that is stored of them.

    with open_checkpointer("sqlite:conversations.sqlite") as checkpointer:
        for thread in list_threads(checkpointer):
            print(thread.id, thread.began, thread.question)
        forget_thread(checkpointer, "ada-1")

Forgotten are the thread's checkpoints and its item in a store: facts, and notes of persons. In SQLite, in
files that `open_checkpointer`, `aopen_checkpointer` and `aopen_store` open, nothing stays of their text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.store.base import BaseStore

from ras_agent.graphs.conversation import with_question
from ras_agent.graphs.memory import KEY, namespace_of
from ras_agent.graphs.validate import to_json_value

_NOTES = "ras_agent notes"
_PAGE = 1000  # notes that are read from a store at a time
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """Judgement of a person on an answer. correct: the person's own answer. passage_ids: the cited passages."""

    question: str
    answer: str
    right: bool
    correct: str = ""
    passage_ids: tuple[str, ...] = ()

    def row(self) -> dict[str, Any] | None:
        """Return the question with its right answer, as `ras-agent eval jsonl` reads it; None where it is not known."""
        answer = self.answer if self.right else self.correct
        if not answer:
            return None
        row: dict[str, Any] = {"question": self.question, "answers": [answer]}
        # the citations of a wrong answer support nothing
        if self.right and self.passage_ids:
            return row | {"supporting_ids": list(self.passage_ids)}
        return row


@dataclass(frozen=True, slots=True)
class ThreadNotes:
    """Notes of persons on a thread. name: in place of its first question. verdicts: by question, the last one each."""

    name: str = ""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the notes that a store holds."""
        verdicts = {
            question: Verdict(
                **{**verdict, "passage_ids": tuple(verdict["passage_ids"])}
            )
            for question, verdict in data["verdicts"].items()
        }
        return cls(data["name"], verdicts)

    def judged(
        self, outputs: Mapping[str, Any], *, right: bool, correct: str = ""
    ) -> Self:
        """Return the notes with a verdict on the answer of a run's outputs."""
        bearing = [
            one for one in outputs["citations"] if one.get("supported") is not False
        ]
        cited = tuple(dict.fromkeys(citation["passage_id"] for citation in bearing))
        # "I don't know" may be right, and is no answer
        answer = "" if outputs.get("abstained") else outputs["answer"]
        verdict = Verdict(outputs["question"], answer, right, correct, cited)
        return replace(self, verdicts={**self.verdicts, verdict.question: verdict})


async def anotes_of(store: BaseStore, thread: str, *, user: str = "") -> ThreadNotes:
    """Return the notes on a thread."""
    item = await store.aget(namespace_of(user, thread, _NOTES), KEY)
    if item:
        return ThreadNotes.from_dict(item.value)
    return ThreadNotes()


async def awrite_notes(
    store: BaseStore, thread: str, notes: ThreadNotes, *, user: str = ""
) -> None:
    """Store the notes on a thread, in place of earlier ones."""
    await store.aput(
        namespace_of(user, thread, _NOTES),
        KEY,
        to_json_value(asdict(notes)),
        index=False,
    )


async def averdicts(store: BaseStore) -> list[Verdict]:
    """Return all verdicts of a store, by thread."""
    items: list[Any] = []
    while page := await store.asearch((_NOTES,), limit=_PAGE, offset=len(items)):
        items += page
    notes = [
        ThreadNotes.from_dict(item.value)
        for item in sorted(items, key=lambda item: item.namespace)
    ]
    return [verdict for one in notes for verdict in one.verdicts.values()]


def list_threads(
    checkpointer: BaseCheckpointSaver[Any],
    *,
    user: str | None = None,
    limit: int | None = None,
) -> list[StoredThread]:
    """Return the threads of a user, or of all without one, the last begun first; at most `limit`."""
    return _listed(checkpointer.list(None, filter=_first_of(user), limit=limit))


async def alist_threads(
    checkpointer: BaseCheckpointSaver[Any],
    *,
    user: str | None = None,
    limit: int | None = None,
) -> list[StoredThread]:
    """Do the same as `list_threads`, for coroutines."""
    return _listed(
        [
            found
            async for found in checkpointer.alist(
                None, filter=_first_of(user), limit=limit
            )
        ]
    )


def forget_thread(
    checkpointer: BaseCheckpointSaver[Any],
    thread: str,
    *,
    user: str = "",
    store: BaseStore | None = None,
) -> bool:
    """Delete a thread with all that is stored of it, and return whether there was one. user: its run's `user_id`.

    No run of the thread may be under way. A log of SQLite that another process reads is emptied by its next write.
    """
    exists = checkpointer.get_tuple(_config(thread)) is not None
    checkpointer.delete_thread(thread)
    if store is not None:
        store.delete(namespace_of(user, thread), KEY)
        store.delete(namespace_of(user, thread, _NOTES), KEY)
    for holder in (checkpointer, store):
        if (connection := _sqlite(holder)) is not None:
            with holder.lock:  # type: ignore[union-attr]
                connection.execute(_EMPTY_LOG)
    return exists


async def aforget_thread(
    checkpointer: BaseCheckpointSaver[Any],
    thread: str,
    *,
    user: str = "",
    store: BaseStore | None = None,
) -> bool:
    """Do the same as `forget_thread`, for coroutines."""
    exists = await checkpointer.aget_tuple(_config(thread)) is not None
    await checkpointer.adelete_thread(thread)
    if store is not None:
        await store.adelete(namespace_of(user, thread), KEY)
        await store.adelete(namespace_of(user, thread, _NOTES), KEY)
    for holder in (checkpointer, store):
        if (connection := _sqlite(holder)) is not None:
            async with holder.lock:  # type: ignore[union-attr]
                await connection.execute(_EMPTY_LOG)
    return exists


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def _first_of(user: str | None) -> dict[str, Any]:
    if user is None:
        return _FIRST
    return {**_FIRST, "user_id": user}


def _listed(found: Iterable[CheckpointTuple]) -> list[StoredThread]:
    threads = []
    for item in found:
        names: Any = item.config.get("configurable", {})
        if names.get("checkpoint_ns"):  # of a graph inside another
            continue
        inputs = item.checkpoint["channel_values"].get("__start__")
        user = item.metadata.get("user_id", "")
        try:
            question = str(with_question(inputs or {})["question"])
        # another graph's input
        except (TypeError, ValueError, LookupError, AttributeError):
            question = ""
        threads.append(
            StoredThread(names["thread_id"], str(user), question, item.checkpoint["ts"])
        )
    return sorted(threads, key=lambda thread: thread.began, reverse=True)


def _sqlite(holder: object) -> Any:
    """Return the connection of a saver or store in SQLite; None for others."""
    connection = getattr(holder, "conn", None)
    if type(connection).__module__.partition(".")[0] in ("sqlite3", "aiosqlite"):
        return connection
    return None
