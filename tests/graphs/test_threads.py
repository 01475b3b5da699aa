"""Stored threads are listed, and forgotten with all that is stored of them."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from ras_agent import aopen_checkpointer, create_ras_agent, open_checkpointer
from ras_agent.contracts.records import Passage
from ras_agent.graphs.threads import (
    ThreadNotes,
    Verdict,
    aforget_thread,
    alist_threads,
    forget_thread,
    list_threads,
)
from ras_agent.running.checkpoints import aopen_store

PASSAGES = [
    Passage(
        "tel",
        "The telephone was patented by Alexander Graham Bell in 1876.",
        "Telephone",
    ),
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    ),
]
QUESTION = {"question": "Who patented the telephone?"}


def _of(thread: str, user: str = "") -> Any:
    return {"configurable": {"thread_id": thread, "user_id": user}}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'threads.sqlite'}"
    return (
        f"postgres:{request.getfixturevalue('postgres')}"
        if request.param == "postgres"
        else "memory"
    )


def test_threads_are_listed_the_last_begun_first_and_forgotten(spec: str) -> None:
    with open_checkpointer(spec) as checkpointer:
        for thread in list_threads(checkpointer):  # one server has those of all tests
            forget_thread(checkpointer, thread.id, user=thread.user)
        agent = create_ras_agent(index=PASSAGES, checkpointer=checkpointer)
        agent.invoke(QUESTION, _of("1", "ada"))
        agent.invoke({"question": "Where was he born?"}, _of("1", "ada"))
        agent.invoke({"messages": [("user", "Where was Bell born?")]}, _of("2", "bob"))
        assert [
            (thread.id, thread.user, thread.question)
            for thread in list_threads(checkpointer)
        ] == [
            ("2", "bob", "Where was Bell born?"),
            ("1", "ada", "Who patented the telephone?"),
        ]
        assert [thread.id for thread in list_threads(checkpointer, user="ada")] == ["1"]
        assert [
            thread.id for thread in list_threads(checkpointer, limit=1, user="bob")
        ] == ["2"]
        assert forget_thread(checkpointer, "1", user="ada")
        assert not forget_thread(checkpointer, "1", user="ada")
        assert [thread.id for thread in list_threads(checkpointer)] == ["2"]
        assert agent.get_state(_of("1")).values == {}


async def test_no_file_holds_the_text_of_a_forgotten_thread(tmp_path: Path) -> None:
    spec = f"sqlite:{tmp_path / 'threads.sqlite'}"
    files = lambda: {file: file.read_bytes() for file in tmp_path.iterdir()}
    async with aopen_checkpointer(spec) as checkpointer, aopen_store(spec) as store:
        agent = create_ras_agent(index=PASSAGES, checkpointer=checkpointer, store=store)
        await agent.ainvoke(QUESTION, _of("1", "ada"))
        await agent.ainvoke(
            {"question": "Where was Alexander Graham Bell born?"}, _of("1", "ada")
        )
        other = create_ras_agent(
            index=PASSAGES[1:], checkpointer=checkpointer, store=store
        )
        await other.ainvoke(
            {"question": "Where was Alexander Graham Bell born?"}, _of("2", "ada")
        )
        held = {
            file.name.partition("-")[0]
            for file, content in files().items()
            if b"telephone" in content
        }
        assert held == {"threads.sqlite", "threads.sqlite.store"}
        assert await aforget_thread(checkpointer, "1", user="ada", store=store)
        assert [
            file.name for file, content in files().items() if b"telephone" in content
        ] == []
        assert [thread.id for thread in await alist_threads(checkpointer)] == ["2"]
        assert len(await store.asearch(("ras_agent", "user ada"))) == 1


async def test_a_file_of_threads_and_what_lies_beside_it_can_be_read_by_its_owner_alone(
    tmp_path: Path,
) -> None:
    spec = f"sqlite:{tmp_path / 'threads.sqlite'}"
    async with aopen_checkpointer(spec) as checkpointer, aopen_store(spec):
        agent = create_ras_agent(index=PASSAGES, checkpointer=checkpointer)
        await agent.ainvoke(QUESTION, _of("1"))
        rights = {
            file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()
        }
    with open_checkpointer(f"sqlite:{tmp_path / 'other.sqlite'}") as saver:
        saver.setup()  # type: ignore[attr-defined]
        rights["other.sqlite"] = stat.S_IMODE(
            (tmp_path / "other.sqlite").stat().st_mode
        )
    assert {
        "threads.sqlite",
        "threads.sqlite-wal",
        "threads.sqlite.store",
    } <= rights.keys()
    assert set(rights.values()) == {0o600}


def test_a_verdict_is_a_question_with_its_right_answer_if_one_is_known() -> None:
    asked = {
        "question": "Where was Bell born?",
        "answer": "Boston",
        "passage_ids": ("bell",),
    }
    row = {
        "question": "Where was Bell born?",
        "answers": ["Boston"],
        "supporting_ids": ["bell"],
    }
    assert Verdict(**asked, right=True).row() == row
    assert Verdict(**asked, right=False, correct="Edinburgh").row() == {
        "question": "Where was Bell born?",
        "answers": ["Edinburgh"],
    }
    assert Verdict(**asked, right=False).row() is None


def test_an_answer_is_judged_again_in_place_of_the_first_time() -> None:
    cited = [{"passage_id": "bell"}, {"passage_id": "leith"}, {"passage_id": "bell"}]
    out = {"question": "Where was Bell born?", "answer": "Boston", "citations": cited}
    notes = (
        ThreadNotes("Bell")
        .judged(out, right=True)
        .judged(out, right=False, correct="Edinburgh")
    )
    verdict = Verdict(
        "Where was Bell born?", "Boston", False, "Edinburgh", ("bell", "leith")
    )
    assert notes == ThreadNotes("Bell", {"Where was Bell born?": verdict})
    notes = notes.judged(out | {"abstained": True}, right=True)
    assert notes.verdicts["Where was Bell born?"].row() is None
