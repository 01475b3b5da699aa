"""Lists and deletes the threads that a checkpointer holds, and keeps people's notes on them: names and
verdicts.

    with open_checkpointer("sqlite:conversations.sqlite") as checkpointer:
        for thread in list_threads(checkpointer):
            print(thread.id, thread.began, thread.question)
        forget_thread(checkpointer, "ada-1")

Deleting a thread removes its checkpoints and its items in a store: facts and notes. In SQLite files opened by
`open_checkpointer`, `aopen_checkpointer` and `aopen_store`, none of its text remains.
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
_PAGE = 1000  # number of notes that are read from a store at a time
# identifies LangGraph's first checkpoint of a thread, which holds its first input
_FIRST = {"step": -1}
# SQLite writes its write-ahead log, which holds deleted text, into the file, and empties it
_EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"


@dataclass(frozen=True, slots=True)
class StoredThread:
    """Describes a thread that a checkpointer holds."""

    id: str
    user: str
    """The `user_id` of its run, if any."""
    question: str
    """Its first question."""
    began: str
    """When it began, in ISO 8601, UTC."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Records a person's judgement of an answer."""

    question: str
    answer: str
    right: bool
    correct: str = ""
    """The answer that the person gives instead."""
    passage_ids: tuple[str, ...] = ()
    """The ids of the cited passages."""

    def row(self) -> dict[str, Any] | None:
        """Return the question with its correct answer as a row for `ras-agent eval jsonl`; None if no correct
        answer is known.
        """
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
    """Holds people's notes on a thread."""

    name: str = ""
    """The name to show instead of the thread's first question."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """The last verdict on each question, by question."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the notes that were stored as `data`."""
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
        """Return the notes with a verdict on the answer in a run's outputs.

        Args:
            right: whether the answer is right.
            correct: the right answer, if the person gives one.
        """
        bearing = [
            one for one in outputs["citations"] if one.get("supported") is not False
        ]
        cited = tuple(dict.fromkeys(citation["passage_id"] for citation in bearing))
        # an abstention may be right, but is not an answer
        answer = "" if outputs.get("abstained") else outputs["answer"]
        verdict = Verdict(outputs["question"], answer, right, correct, cited)
        return replace(self, verdicts={**self.verdicts, verdict.question: verdict})


async def anotes_of(store: BaseStore, thread: str, *, user: str = "") -> ThreadNotes:
    """Return people's notes on a thread; empty notes if none are stored."""
    item = await store.aget(namespace_of(user, thread, _NOTES), KEY)
    if item:
        return ThreadNotes.from_dict(item.value)
    return ThreadNotes()


async def awrite_notes(
    store: BaseStore, thread: str, notes: ThreadNotes, *, user: str = ""
) -> None:
    """Store the notes on a thread, replacing earlier ones."""
    await store.aput(
        namespace_of(user, thread, _NOTES),
        KEY,
        to_json_value(asdict(notes)),
        index=False,
    )


async def averdicts(store: BaseStore) -> list[Verdict]:
    """Return all verdicts of a store, ordered by thread."""
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
    """Return at most `limit` threads of a user, or of all users if `user` is None, the most recent first."""
    return _listed(checkpointer.list(None, filter=_first_of(user), limit=limit))


async def alist_threads(
    checkpointer: BaseCheckpointSaver[Any],
    *,
    user: str | None = None,
    limit: int | None = None,
) -> list[StoredThread]:
    """Return the same as `list_threads`, as a coroutine."""
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
    """Delete a thread with everything that is stored about it. Returns whether it existed.

    No run may be active on the thread. While another process reads an SQLite file, deleted text stays in the
    file's log until the next write.

    Args:
        user: the `user_id` of its run.
        store: the store of its facts and notes, if there is one.
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
    """Do the same as `forget_thread`, as a coroutine."""
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
        if names.get("checkpoint_ns"):  # belongs to a graph inside another
            continue
        inputs = item.checkpoint["channel_values"].get("__start__")
        user = item.metadata.get("user_id", "")
        try:
            question = str(with_question(inputs or {})["question"])
        # the input of another kind of graph
        except (TypeError, ValueError, LookupError, AttributeError):
            question = ""
        threads.append(
            StoredThread(names["thread_id"], str(user), question, item.checkpoint["ts"])
        )
    return sorted(threads, key=lambda thread: thread.began, reverse=True)


def _sqlite(holder: object) -> Any:
    """Return the SQLite connection of a saver or store; None if it uses another database."""
    connection = getattr(holder, "conn", None)
    if type(connection).__module__.partition(".")[0] in ("sqlite3", "aiosqlite"):
        return connection
    return None
