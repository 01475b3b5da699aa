"""Replies on disk, found by model, parameters and messages."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import SettingsError
from ras_agent.prompts import Turn
from ras_agent.tools.chat.cache import RecordedCalls, ReplyCache
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings
from tests.messages import says

TURNS = (Turn("system", "Be brief."), Turn("user", "Wer? 谁?"))


def test_a_reply_is_found_again_also_by_another_process(tmp_path: Path) -> None:
    ReplyCache(tmp_path / "new" / "replies.db").slot(
        {"model": "m", "temperature": 0}, TURNS
    ).put({"text": "Bell ☎"})
    assert ReplyCache(tmp_path / "new" / "replies.db").slot(
        {"model": "m", "temperature": 0}, TURNS
    ).get(dict) == {"text": "Bell ☎"}


def test_another_model_parameter_or_message_is_another_request(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.db")
    cache.slot({"model": "m", "temperature": 0}, TURNS).put({"text": "x"})
    assert cache.slot({"model": "n", "temperature": 0}, TURNS).get(dict) is None
    assert cache.slot({"model": "m", "temperature": 1}, TURNS).get(dict) is None
    assert cache.slot({"model": "m", "temperature": 0}, TURNS[1:]).get(dict) is None
    assert (
        cache.slot(
            {"model": "m", "temperature": 0}, (Turn("user", TURNS[0].text), TURNS[1])
        ).get(dict)
        is None
    )


def test_the_first_reply_stays(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.db")
    cache.slot({}, TURNS).put({"text": "first"})
    cache.slot({}, TURNS).put({"text": "second"})
    assert cache.slot({}, TURNS).get(dict) == {"text": "first"}
    assert len(cache) == 1


def test_threads_may_write_at_once(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.db")
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda number: cache.slot({"seed": number}, TURNS).put(
                    {"text": str(number)}
                ),
                range(20),
            )
        )
    assert len(cache) == 20
    assert cache.slot({"seed": 7}, TURNS).get(dict) == {"text": "7"}


def test_a_file_of_another_kind_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes, longer than nothing, and no database at all\n" * 20)
    with pytest.raises(
        SettingsError, match=says("replies", "notes.md", "not a database")
    ):
        ReplyCache(notes)
    assert notes.read_text().startswith("# Notes")


UNREADABLE = {
    "no JSON": "{",
    "a list": "[1]",
    "null": "null",
    "a field of a later version": '{"text": "x", "new": 1}',
    "no text": '{"truncated": false}',
    "a number as text": '{"text": 5}',
    "text as a number": '{"text": "x", "input_tokens": "many"}',
    "bytes that are no text": b"\xff\x00",
    "no UTF-8": b'{"text": "\xff"}',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_reply_that_cannot_be_read_is_asked_for_again_with_one_warning(
    case: str, tmp_path: Path, scripted_model: Any
) -> None:
    path, model = tmp_path / "c.sqlite", scripted_model("one", "two", "three")
    assert (
        Chat(model, settings=ChatSettings(cache=path)).complete(Request(TURNS)).text
        == "one"
    )
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE cache SET value = ?", (UNREADABLE[case],))
    chat = Chat(model, settings=ChatSettings(cache=path))
    with pytest.warns(
        RuntimeWarning, match=r"c\.sqlite holds values that this version cannot read"
    ) as warned:
        assert [chat.complete(Request(TURNS)).text for _ in range(2)] == [
            "two",
            "three",
        ]
    assert len(warned) == 1


def test_a_call_in_the_ledger_says_where_its_request_and_reply_are(
    tmp_path: Path,
) -> None:
    from langchain_core.language_models import FakeListChatModel

    from ras_agent.running.budget import Ledger, metered

    ledger = Ledger("planner", 2)
    cached = Chat(
        FakeListChatModel(responses=["Edinburgh"]),
        settings=ChatSettings(cache=tmp_path / "replies.db"),
    )
    with metered(ledger):
        cached.complete(Request(TURNS))
        cached.complete(Request(TURNS))
        Chat(FakeListChatModel(responses=["Paris"])).complete(Request(TURNS))
    first, again, without = ledger.calls
    assert (first.key, without.key) == (again.key, "")
    recorded = RecordedCalls(tmp_path / "replies.db")
    request, reply = recorded.call(first.key) or ({}, {})
    assert request["messages"] == [["system", "Be brief."], ["user", "Wer? 谁?"]]
    assert reply["text"] == "Edinburgh"
    assert recorded.call("0" * 64) is None


def test_calls_are_read_from_no_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=says("there is no cache of replies", "gone.db", "--cache")
    ):
        RecordedCalls(tmp_path / "gone.db")
    assert not (tmp_path / "gone.db").exists()
