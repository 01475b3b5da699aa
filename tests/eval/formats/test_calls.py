"""The calls of a role in a run, joined from its results and its reply cache, and their rows."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import Call, Usage
from ras_agent.eval.formats import Exported, format_to_write
from ras_agent.eval.formats.atif import trajectory_of
from ras_agent.eval.formats.calls import RoleCall, pair_calls, read_calls
from ras_agent.eval.run.result import Result
from ras_agent.prompts import ToolCall, Turn
from ras_agent.running.trace import Trace
from ras_agent.tools.chat.cache import ReplyCache
from tests.messages import says

SYSTEM, FIRST = Turn("system", "Plan."), Turn("user", "Where was Bell born?")
Reply = Callable[..., Call]


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    return tmp_path / "replies.sqlite"


@pytest.fixture
def called(replies: Path) -> Reply:
    """`called("planner", 1, turns, "reply")`: a call that the cache knows."""
    cache = ReplyCache(replies)

    def called(
        role: str, hop: int, turns: tuple[Turn, ...], text: str, **more: Any
    ) -> Call:
        tools = {"tools": more.pop("tools")} if "tools" in more else {}
        slot = cache.slot({"model": "m", **tools}, turns)
        slot.put({"text": text, "model": "m", **more})
        return Call(role, hop, "m", 7, 3, key=slot.key)

    return called


def _result(
    *calls: Call, id: str = "q1", scores: Mapping[str, float] | None = None
) -> Result:
    trace = Trace("Where was Bell born?", "Edinburgh", usage=Usage(calls)).to_dict()
    return Result(
        id,
        "Where was Bell born?",
        ("Edinburgh",),
        answer="Edinburgh",
        scores=scores or {},
        trace=trace,
    )


def test_a_call_has_its_messages_its_reply_and_the_score_of_the_answer(
    called: Reply, replies: Path
) -> None:
    result = _result(
        called("planner", 1, (SYSTEM, FIRST), "[SUBQ] Who was Bell?"),
        called("answerer", 1, (FIRST,), "Edinburgh"),
        scores={"f1": 1.0},
    )
    (call,) = read_calls([result], "planner", replies, {"run": "runs/a"})
    assert (call.id, call.question, call.role, call.hop, call.model) == (
        "q1",
        "Where was Bell born?",
        "planner",
        1,
        "m",
    )
    assert call.messages == [
        {"role": "system", "content": "Plan."},
        {"role": "user", "content": "Where was Bell born?"},
        {"role": "assistant", "content": "[SUBQ] Who was Bell?"},
    ]
    assert (call.mask, call.scores) == ([0, 0, 1], {"f1": 1.0})
    assert call.provenance == {
        "run": "runs/a",
        "key": result.trace["usage"]["calls"][0]["key"],
    }  # type: ignore[index]


def test_a_reply_that_could_not_be_used_is_left_out_and_so_is_the_second(
    called: Reply, replies: Path
) -> None:
    again = (SYSTEM, FIRST, Turn("assistant", "Hm."), Turn("user", "Reply again."))
    result = _result(
        called("planner", 1, (SYSTEM, FIRST), "<think>x</think>Hm."),
        called("planner", 1, again, "[SUBQ] Who?"),
        called("planner", 2, (SYSTEM, Turn("user", "More.")), "[SUFFICIENT]"),
    )
    assert [
        call.reply["content"] for call in read_calls([result], "planner", replies, {})
    ] == ["[SUFFICIENT]"]


def test_a_look_at_the_graph_and_the_search_after_it_are_both_kept(
    called: Reply, replies: Path
) -> None:
    look = ToolCall("neighbours", {"entity": "Bell"}, "c1")
    after = (FIRST, Turn("assistant", "", (look,)), Turn("tool", "(nothing)", (look,)))
    tools = [{"type": "function", "function": {"name": "search"}}]
    result = _result(
        called(
            "planner",
            1,
            (FIRST,),
            "",
            calls=[{"name": "neighbours", "arguments": {"entity": "Bell"}, "id": "c1"}],
        ),
        called(
            "planner",
            1,
            after,
            "",
            calls=[{"name": "search", "arguments": {"query": "?"}, "id": "c2"}],
            tools=tools,
        ),
    )
    first, second = read_calls([result], "planner", replies, {})
    assert first.reply["tool_calls"] == [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "neighbours", "arguments": {"entity": "Bell"}},
        }
    ]
    assert second.prompt[1:] == (
        first.reply,
        {
            "role": "tool",
            "content": "(nothing)",
            "tool_call_id": "c1",
            "name": "neighbours",
        },
    )
    assert second.tools == tuple(tools)


def test_a_planners_call_says_what_the_agent_did_next(
    called: Reply, replies: Path
) -> None:
    result = _result(called("planner", 1, (FIRST,), "[SUBQ] Who was Bell?"))
    plan = {
        "hop": 1,
        "action": "subq",
        "subquery": "Where was Bell born?",
        "reason": "",
    }
    result = Result.from_dict(
        {**result.to_dict(), "trace": {**(result.trace or {}), "plans": [plan]}}
    )
    (call,) = read_calls([result], "planner", replies, {})
    assert call.about["plan"] == {
        "action": "subq",
        "subquery": "Where was Bell born?",
        "reason": "",
    }


def test_thoughts_are_kept_beside_the_text(called: Reply, replies: Path) -> None:
    result = _result(
        called("planner", 1, (FIRST,), "[SUFFICIENT]", thoughts="All is there.")
    )
    (call,) = read_calls([result], "planner", replies, {})
    assert call.reply == {
        "role": "assistant",
        "content": "[SUFFICIENT]",
        "reasoning_content": "All is there.",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"key": ""},
            "question 'q1', planner, hop 1: the run, of an earlier version, does not record where the reply is stored",
        ),
        (
            {"key": "0" * 64},
            "question 'q1', planner, hop 1: the reply is not in the cache; give",
        ),
        (
            {"role": "answerer"},
            "'planner' called no model in this run; roles with calls: answerer",
        ),
    ],
)
def test_what_is_missing_is_told(
    called: Reply, replies: Path, change: dict[str, Any], message: str
) -> None:
    call = Call.from_dict({**called("planner", 1, (FIRST,), "x").to_dict(), **change})
    with pytest.raises(RunError, match=message):
        read_calls([_result(call)], "planner", replies, {})


# ---- pairs


def _call(hop: int, prompt: str, reply: str, f1: float, id: str = "q1") -> RoleCall:
    message = {"role": "assistant", "content": reply}
    return RoleCall(
        id,
        "?",
        "planner",
        hop,
        "m",
        ({"role": "user", "content": prompt},),
        message,
        scores={"f1": f1},
    )


def test_a_pair_is_made_where_two_runs_parted() -> None:
    ours = [
        _call(1, "a", "same", 1.0),
        _call(2, "b", "good", 1.0),
        _call(3, "c", "more", 1.0),
    ]
    theirs = [
        _call(1, "a", "same", 0.0),
        _call(2, "b", "bad", 0.0),
        _call(3, "other", "more", 0.0),
    ]
    (pair,) = pair_calls(ours, theirs, "f1")
    assert (pair.hop, pair.reply["content"], (pair.rejected or {})["content"]) == (
        2,
        "good",
        "bad",
    )
    (turned,) = pair_calls(theirs, ours, "f1")
    assert (turned.reply["content"], (turned.rejected or {})["content"]) == (
        "good",
        "bad",
    )


def test_answers_of_one_score_make_no_pair() -> None:
    assert pair_calls([_call(1, "a", "x", 1.0)], [_call(1, "a", "y", 1.0)], "f1") == []


def test_a_difference_without_an_effect_on_the_next_prompt_is_not_where_runs_part() -> (
    None
):
    ours = [_call(1, "a", "x", 1.0), _call(2, "b", "good", 1.0)]
    theirs = [_call(1, "a", "y", 0.0), _call(2, "b", "bad", 0.0)]
    assert [pair.hop for pair in pair_calls(ours, theirs, "f1")] == [2]
    same = [_call(1, "a", "y", 0.0), _call(2, "b", "good", 0.0)]
    assert pair_calls(ours, same, "f1") == []


# ---- rows

SEARCH = {"name": "search", "arguments": {"query": "Bell"}}
CALL = RoleCall(
    "q1", "Where?", "planner", 1, "m",
    ({"role": "system", "content": "Plan."}, {"role": "user", "content": "Where?"}),
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c1", "type": "function", "function": SEARCH}],
    },
    tools=({"type": "function", "function": {"name": "search"}},),
    scores={"f1": 1.0},
    provenance={"run": "runs/a", "key": "k"},
)  # fmt: skip
ABOUT = {
    "id": "q1", "question": "Where?", "role": "planner", "hop": 1, "scores": {"f1": 1.0},
    "provenance": {"run": "runs/a", "key": "k", "model": "m"},
}  # fmt: skip
AS_TEXT = [
    {
        "id": "c1",
        "type": "function",
        "function": {"name": "search", "arguments": '{"query": "Bell"}'},
    }
]


def _written(name: str, call: RoleCall, path: Path) -> dict[str, Any]:
    (file,) = format_to_write(name, calls=True)(Exported({}, calls=(call,)), path)
    row: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return row


def test_a_row_of_trl_has_prompt_and_completion(tmp_path: Path) -> None:
    assert _written("trl", CALL, tmp_path / "x.jsonl") == {
        "prompt": list(CALL.prompt),
        "completion": [CALL.reply],
        "tools": '[{"type": "function", "function": {"name": "search"}}]',
        **ABOUT,
    }


def test_a_pair_of_trl_has_chosen_and_rejected(tmp_path: Path) -> None:
    (pair,) = pair_calls(
        [_call(1, "a", "good", 1.0)], [_call(1, "a", "bad", 0.0)], "f1"
    )
    row = _written("trl", pair, tmp_path / "x.jsonl")
    assert {name: row[name] for name in ("prompt", "chosen", "rejected")} == {
        "prompt": [{"role": "user", "content": "a"}],
        "chosen": [{"role": "assistant", "content": "good"}],
        "rejected": [{"role": "assistant", "content": "bad"}],
    }
    assert "completion" not in row


def test_a_row_of_prime_has_arguments_and_tools_as_json(tmp_path: Path) -> None:
    assert _written("prime", CALL, tmp_path / "x.jsonl") == {
        "prompt": list(CALL.prompt),
        "completion": [{"role": "assistant", "content": "", "tool_calls": AS_TEXT}],
        "tool_defs": '[{"type": "function", "function": {"name": "search"}}]',
        "mask": [0, 0, 1],
        **ABOUT,
    }


def test_a_row_of_verl_is_a_conversation_in_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (file,) = format_to_write("verl", calls=True)(
        Exported({}, calls=(CALL,)), tmp_path / "x.parquet"
    )
    (row,) = parquet.read_table(file).to_pylist()
    assert [message["role"] for message in row["messages"]] == [
        "system",
        "user",
        "assistant",
    ]
    assert row["messages"][2]["tool_calls"] == AS_TEXT
    assert {name: row[name] for name in ("mask", *ABOUT)} == {
        "mask": [0, 0, 1],
        **ABOUT,
    }


def test_rows_of_verl_keep_what_only_later_ones_have_and_what_is_no_unicode(
    tmp_path: Path,
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    bare = replace(CALL, tools=(), question="Where is \ud800?")
    (file,) = format_to_write("verl", calls=True)(
        Exported({}, calls=(bare, CALL)), tmp_path / "x.parquet"
    )
    first, second = parquet.read_table(file).to_pylist()
    assert (first["tools"], first["question"]) == ([], "Where is ??")
    assert second["tools"] == list(CALL.tools)


def test_rows_of_verl_without_scores_are_written(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    tool = {
        "type": "function",
        "function": {
            "name": "search",
            "parameters": {"type": "object", "properties": {}},
        },
    }
    bare = replace(CALL, tools=(tool,), scores={})
    (file,) = format_to_write("verl", calls=True)(
        Exported({}, calls=(bare,)), tmp_path / "x.parquet"
    )
    (row,) = parquet.read_table(file).to_pylist()
    assert "scores" not in row
    assert row["tools"] == [
        {
            "type": "function",
            "function": {"name": "search", "parameters": {"type": "object"}},
        }
    ]


def test_rows_of_verl_keep_a_column_of_zeros(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (file,) = format_to_write("verl", calls=True)(
        Exported({}, calls=(replace(CALL, hop=0),)), tmp_path / "x.parquet"
    )
    (row,) = parquet.read_table(file).to_pylist()
    assert row["hop"] == 0


def test_an_export_to_verl_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")

    def fail(table: object, where: Any) -> None:
        if isinstance(where, Path):
            where.write_bytes(b"PAR1")
        raise OSError("halfway")

    (tmp_path / "x.parquet").write_bytes(b"before")
    monkeypatch.setattr(parquet, "write_table", fail)
    with pytest.raises(OSError, match="halfway"):
        format_to_write("verl", calls=True)(
            Exported({}, calls=(CALL,)), tmp_path / "x.parquet"
        )
    assert (tmp_path / "x.parquet").read_bytes() == b"before"


def test_trajectories_of_atif_are_written_to_an_empty_folder_alone(
    tmp_path: Path,
) -> None:
    write = format_to_write("atif", calls=True)
    write(Exported({}, calls=(CALL,)), tmp_path / "new")
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["00001.json"]
    with pytest.raises(RunError, match=says("new is not an empty folder", "--out")):
        write(Exported({}, calls=(CALL,)), tmp_path / "new")


def test_a_trajectory_of_atif_has_each_prompt_and_each_reply_once() -> None:
    found = {
        "role": "tool",
        "content": "Bell is a person.",
        "tool_call_id": "c1",
        "name": "search",
    }
    done = {"role": "assistant", "content": "Enough."}
    second = RoleCall(
        "q1", "Where?", "planner", 2, "m", (*CALL.prompt, CALL.reply, found), done
    )
    trajectory = trajectory_of([CALL, second])
    assert (trajectory["schema_version"], trajectory["session_id"]) == (
        "ATIF-v1.4",
        "q1",
    )
    system, user, searched, finished = trajectory["steps"]
    assert (system["source"], user["source"]) == ("system", "user")
    assert searched == {
        "step_id": 3,
        "source": "agent",
        "message": "",
        "model_name": "m",
        "metrics": {},
        "extra": {"hop": 1},
        "tool_calls": [
            {
                "tool_call_id": "c1",
                "function_name": "search",
                "arguments": {"query": "Bell"},
            }
        ],
        "observation": {
            "results": [{"source_call_id": "c1", "content": "Bell is a person."}]
        },
    }
    assert (finished["step_id"], finished["message"]) == (4, "Enough.")


def test_a_prompt_that_was_made_anew_is_shown_without_its_equal_beginning() -> None:
    system, reply = (
        {"role": "system", "content": "Plan."},
        {"role": "assistant", "content": "ok"},
    )
    calls = [
        RoleCall(
            "q",
            "?",
            "planner",
            hop,
            "m",
            (system, {"role": "user", "content": text}),
            reply,
        )
        for hop, text in ((1, "a"), (2, "a b"))
    ]
    steps = trajectory_of(calls)["steps"]
    assert [(step["source"], step["message"]) for step in steps] == [
        ("system", "Plan."), ("user", "a"), ("agent", "ok"), ("user", "a b"), ("agent", "ok"),
    ]  # fmt: skip
