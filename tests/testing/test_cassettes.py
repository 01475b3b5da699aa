"""Cassettes: recorded by a run with the models, replayed by one without; and the fixture of pytest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import ReplayMiss, SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.testing.cassettes import Cassette
from tests.messages import says

pytest_plugins = ["pytester"]
PASSAGES = [Passage("bell", "Bell was born in Edinburgh.")]


def _ask(cassette: Cassette, spec: str, question: str = "Where was Bell born?") -> Any:
    agent = create_ras_agent(
        index=PASSAGES, planner=spec, extractor="offline", settings=cassette.settings
    )
    return agent.invoke({"question": question})


def _record(path: Path, scripted_llm: Any) -> Any:
    scripted_llm.script({"reply": "[SUFFICIENT]", "repeat": True})
    with Cassette(path, record=True) as cassette:
        return _ask(cassette, scripted_llm.spec)


def test_what_was_recorded_is_replayed_without_the_model(
    tmp_path: Path, scripted_llm: Any
) -> None:
    first = _record(tmp_path / "new" / "bell.jsonl", scripted_llm)
    asked = len(scripted_llm.requests())
    with Cassette(tmp_path / "new" / "bell.jsonl") as cassette:
        again = _ask(cassette, scripted_llm.spec)
    assert (again["answer"], again["graph"], again["plans"]) == (
        first["answer"],
        first["graph"],
        first["plans"],
    )
    assert len(scripted_llm.requests()) == asked > 0


def test_a_cassette_is_text_with_a_request_and_its_reply_a_line(
    tmp_path: Path, scripted_llm: Any
) -> None:
    _record(tmp_path / "bell.jsonl", scripted_llm)
    call, *others = map(
        json.loads, (tmp_path / "bell.jsonl").read_text("utf-8").splitlines()
    )
    assert (call["role"], call["hop"], call["reply"]["text"]) == (
        "planner",
        1,
        "[SUFFICIENT]",
    )
    assert [other["hop"] for other in others] == sorted(
        other["hop"] for other in others
    )
    assert call["parameters"]["endpoint"].endswith("#scripted")
    assert "Where was Bell born?" in call["messages"][-1][1]


def test_recording_twice_writes_the_same(tmp_path: Path, scripted_llm: Any) -> None:
    _record(tmp_path / "bell.jsonl", scripted_llm)
    first = (tmp_path / "bell.jsonl").read_text("utf-8")
    _record(tmp_path / "bell.jsonl", scripted_llm)
    assert (tmp_path / "bell.jsonl").read_text("utf-8") == first


def test_a_changed_question_misses_and_says_where(
    tmp_path: Path, scripted_llm: Any
) -> None:
    _record(tmp_path / "bell.jsonl", scripted_llm)
    with (
        Cassette(tmp_path / "bell.jsonl") as cassette,
        pytest.raises(ReplayMiss, match="differs first in message"),
    ):
        _ask(cassette, scripted_llm.spec, "Where was Bell bred?")


def test_a_cassette_that_cannot_be_replayed_says_why(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=says("the cassette", "none.jsonl", "--record")
    ):
        Cassette(tmp_path / "none.jsonl").__enter__()
    (tmp_path / "bad.jsonl").write_text('{"messages": []}\n')
    with pytest.raises(
        SettingsError,
        match=says("bad.jsonl line 1: no recorded call", "record the cassette again"),
    ):
        Cassette(tmp_path / "bad.jsonl").__enter__()


TEST = """
from ras_agent import create_ras_agent

def test_bell(cassette):
    agent = create_ras_agent(
        index=["Bell was born in Edinburgh."], planner={spec!r}, extractor="offline", settings=cassette.settings
    )
    assert agent.invoke({{"question": "Where was Bell born?"}})["stop_reason"] == "sufficient"
"""


def test_the_fixture_records_on_request_and_replays_else(
    pytester: pytest.Pytester, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "[SUFFICIENT]", "repeat": True})
    pytester.makeconftest('pytest_plugins = ["ras_agent.testing.plugin"]')
    pytester.makepyfile(test_answers=TEST.format(spec=scripted_llm.spec))
    options = ("-p", "no:cacheprovider")
    # nothing is recorded unasked
    pytester.runpytest_inprocess(*options).assert_outcomes(errors=1)
    assert scripted_llm.requests() == []
    pytester.runpytest_inprocess("--record", *options).assert_outcomes(passed=1)
    assert (pytester.path / "cassettes" / "test_answers" / "test_bell.jsonl").is_file()
    asked = len(scripted_llm.requests())
    pytester.runpytest_inprocess(*options).assert_outcomes(passed=1)
    assert len(scripted_llm.requests()) == asked > 0


def test_a_recording_that_fails_leaves_the_cassette_as_it_was(
    tmp_path: Path, scripted_llm: Any
) -> None:
    _record(tmp_path / "bell.jsonl", scripted_llm)
    first = (tmp_path / "bell.jsonl").read_text("utf-8")
    with pytest.raises(AssertionError), Cassette(tmp_path / "bell.jsonl", record=True):
        raise AssertionError
    assert (tmp_path / "bell.jsonl").read_text("utf-8") == first != ""


def test_a_reply_that_is_no_unicode_is_recorded(
    tmp_path: Path, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "[SUFFICIENT] \ud800", "repeat": True})
    with Cassette(tmp_path / "bell.jsonl", record=True) as cassette:
        _ask(cassette, scripted_llm.spec)
    line = (tmp_path / "bell.jsonl").read_text("utf-8").splitlines()[0]
    assert json.loads(line)["reply"]["text"] == "[SUFFICIENT] ?"


def test_a_test_that_fails_writes_no_cassette(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["ras_agent.testing.plugin"]')
    pytester.makepyfile(
        test_answers="""
        import pytest
        def test_wrong(cassette): assert False
        def test_skipped(cassette): pytest.skip("not here")
        def test_right(cassette): pass
        """
    )
    done = pytester.runpytest_inprocess("--record", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1, failed=1, skipped=1)
    assert [file.name for file in pytester.path.glob("cassettes/*/*")] == [
        "test_right.jsonl"
    ]


def test_each_test_has_a_cassette_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["ras_agent.testing.plugin"]')
    pytester.makepyfile(
        test_answers="""
        import pytest
        class TestA:
            def test_x(self, cassette): pass
        class TestB:
            def test_x(self, cassette): pass
        @pytest.mark.parametrize("name", ["a b", "a/b"])
        def test_y(cassette, name): pass
        """
    )
    pytester.runpytest_inprocess("--record", "-p", "no:cacheprovider").assert_outcomes(
        passed=4
    )
    assert sorted(file.name for file in pytester.path.glob("cassettes/*/*")) == [
        "TestA.test_x.jsonl",
        "TestB.test_x.jsonl",
        "test_y-a-b-3369bc57.jsonl",
        "test_y-a-b-7816fed4.jsonl",
    ]
