"""Implements `ras-agent threads`, which lists, exports and deletes stored conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ras_agent.app.cli.options import AsJSON
from ras_agent.app.cli.terminal import inert, print_json, quantity
from ras_agent.contracts.errors import FlagError

_Place = Annotated[
    str,
    typer.Argument(
        metavar="CHECKPOINT", help="Where: sqlite:FILE or postgres:CONNECTION."
    ),
]


def export(
    *,
    checkpoint: _Place,
    out: Annotated[
        Path,
        typer.Argument(
            help="The file of questions to write, for `ras-agent eval jsonl`."
        ),
    ],
) -> None:
    """Write people's verdicts on answers from the server's page as questions with their right answers.

    An answer that was judged wrong is replaced by the one that the person
    gave; without such an answer the question is left out. `ras-agent eval
    jsonl` reads the file.
    """
    import asyncio
    import json

    from ras_agent.graphs.threads import Verdict, averdicts
    from ras_agent.running.checkpoints import aopen_store

    async def verdicts() -> list[Verdict]:
        async with aopen_store(_existing(checkpoint)) as store:
            return await averdicts(store) if store is not None else []

    every = asyncio.run(verdicts())
    rows = [row for verdict in every if (row := verdict.row()) is not None]
    lines = [
        json.dumps({"id": f"feedback-{number}", **row}, ensure_ascii=False)
        for number, row in enumerate(rows, 1)
    ]
    out.write_text("".join(f"{line}\n" for line in lines), "utf-8", "replace")
    left_out = (
        f", {len(every) - len(rows)} left out whose right answer nobody gave"
        if len(every) > len(rows)
        else ""
    )
    typer.echo(f"{inert(str(out))} {quantity(len(rows), 'question')}{left_out}")


def list_stored(
    *,
    checkpoint: _Place,
    as_json: AsJSON = False,
) -> None:
    """List the stored threads, the most recent first: id, time and first question.

    A thread of `ras-agent serve` has its caller's name before a slash.
    """
    import asyncio
    from dataclasses import asdict

    from ras_agent.graphs.threads import StoredThread, alist_threads
    from ras_agent.running.checkpoints import aopen_checkpointer

    async def threads() -> list[StoredThread]:
        async with aopen_checkpointer(_existing(checkpoint)) as checkpointer:
            return await alist_threads(checkpointer)

    stored = asyncio.run(threads())
    if as_json:
        print_json([asdict(thread) for thread in stored])
        return
    for thread in stored:
        typer.echo(f"{inert(thread.id)}  {thread.began[:19]}  {inert(thread.question)}")


def forget(
    *,
    checkpoint: _Place,
    thread: Annotated[
        str,
        typer.Argument(help="The thread's id, as `ras-agent threads list` prints it."),
    ],
) -> None:
    """Delete a stored thread: its checkpoints, and the facts that a server's thread remembers.

    Afterwards no file of CHECKPOINT contains the thread's text.
    """
    import asyncio

    from ras_agent.graphs.threads import aforget_thread
    from ras_agent.running.checkpoints import aopen_checkpointer, aopen_store

    async def forget() -> bool:
        user = thread.rpartition("/")[0]  # a server's thread id begins with the user
        place = _existing(checkpoint)
        async with (
            aopen_checkpointer(place) as checkpointer,
            aopen_store(place) as store,
        ):
            return await aforget_thread(checkpointer, thread, user=user, store=store)

    if not asyncio.run(forget()):
        raise FlagError(
            f"there is no thread {thread!r}: find its id with `ras-agent threads list CHECKPOINT`"
        )
    typer.echo(f"forgotten: {inert(thread)}")


def _existing(place: str) -> str:
    """Return the place of the threads.

    Raises:
        FlagError: for a file that does not exist, because SQLite would create it.
    """
    kind, _, file = place.partition(":")
    if kind == "sqlite" and not Path(file).is_file():
        raise FlagError(
            f"the file of threads {file!r} does not exist: give the FILE of `--checkpoint sqlite:FILE`"
        )
    return place
