"""Calls of tools in the forms that servers and models write them in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.tools.chat.tool_calls import (
    arguments_in,
    calls_in_message,
    calls_in_text,
    tool_named,
)

NAMES = ("search", "finish", "neighbours", "read")
BELL = {"query": "Where was Bell born?"}
TEXT = json.dumps(BELL)


@pytest.mark.parametrize(
    "raw",
    [
        BELL,
        TEXT,
        json.dumps(TEXT),
        [BELL],
        f"[{TEXT}]",
        f"```json\n{TEXT}\n```",
        f"{TEXT}<|im_end|>",
        str(BELL),
        json.dumps({"arguments": BELL}),
        json.dumps({"name": "search", "parameters": BELL}),
    ],
)
def test_arguments_are_read_in_each_of_their_forms(raw: object) -> None:
    assert arguments_in(raw) == [BELL]


def test_arguments_of_merged_calls_are_those_of_each() -> None:
    assert arguments_in(f'{TEXT}{{"query": "main river"}}') == [
        BELL,
        {"query": "main river"},
    ]


@pytest.mark.parametrize("raw", [None, "", "{}"])
def test_a_call_without_arguments_has_none(raw: object) -> None:
    assert arguments_in(raw) == [{}]


@pytest.mark.parametrize("raw", ["query is Bell", "[1, 2]", 7, "null!"])
def test_arguments_that_hold_no_object_are_an_error_that_shows_them(
    raw: object,
) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        arguments_in(raw)


@pytest.mark.parametrize(
    "said",
    [
        {
            "tool_calls": [
                {"id": "7", "function": {"name": "search", "arguments": TEXT}}
            ]
        },
        {
            "tool_calls": [
                {
                    "id": 7,
                    "type": "function",
                    "function": {"name": "search", "arguments": BELL},
                }
            ]
        },
        {"tool_calls": [{"id": "7", "name": "search", "arguments": TEXT}]},
        {"tool_calls": {"id": "7", "function": {"name": "search", "arguments": TEXT}}},
        {"tool_calls": [{"id": "7", "functionCall": {"name": "search", "args": BELL}}]},
        {"tool_calls": [{"id": "7", "toolUse": {"name": "search", "input": BELL}}]},
        {
            "function_call": {"id": "7", "name": "search", "arguments": TEXT},
            "tool_calls": None,
        },
    ],
)
def test_a_message_calls_a_tool_in_each_form(said: dict[str, Any]) -> None:
    (call,), unread = calls_in_message(said)
    assert (call.name, call.arguments, call.id, unread) == ("search", BELL, "7", [])


def test_a_call_that_cannot_be_read_is_kept_apart_with_its_text() -> None:
    calls, (unread,) = calls_in_message(
        {"tool_calls": [{"function": {"name": "search", "arguments": "Bell"}}]}
    )
    assert (calls, unread.name, unread.arguments) == ([], "search", {"raw": "Bell"})


@pytest.mark.parametrize(
    "text",
    [
        f'<tool_call>\n{{"name": "search", "arguments": {TEXT}}}\n</tool_call>',
        f'<tool_call>{{"name": "search", "arguments": {TEXT}}}',
        "<tool_call>\n<function=search>\n<parameter=query>\nWhere was Bell born?\n</parameter>\n</function>",
        "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>Where was Bell born?</arg_value>\n</tool_call>",
        '<invoke name="search"><parameter name="query">Where was Bell born?</parameter></invoke>',
        f"<function=search>{TEXT}</function>",
        '[search(query="Where was Bell born?")]',
        "```tool_code\nsearch('Where was Bell born?')\n```",
        '<|python_start|>[search(query="Where was Bell born?")]<|python_end|>',
        f'[TOOL_CALLS][{{"name": "search", "arguments": {TEXT}}}]',
        f"[TOOL_CALLS]search[ARGS]{TEXT}",
        f'{{"type": "function", "name": "search", "parameters": {TEXT}}}',
        f'<|python_tag|>{{"name": "search", "parameters": {TEXT}}}',
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{TEXT}\n```",
        f"<|channel|>commentary to=functions.search <|constrain|>json<|message|>{TEXT}<|call|>",
        f"<|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{TEXT}<|tool_call_end|>",
        f'<|START_ACTION|>[{{"tool_call_id": "0", "tool_name": "search", "parameters": {TEXT}}}]<|END_ACTION|>',
        f'functools[{{"name": "search", "arguments": {TEXT}}}]',
        f'{{"function": {{"name": "search", "arguments": {json.dumps(TEXT)}}}}}',
        f"Action: search\nAction Input: {TEXT}",
        "<tool_call>{'name': 'search', 'arguments': {'query': 'Where was Bell born?'}}</tool_call>",
        f'<tool_call>{{"name": "search", "arguments": {TEXT}',
        f'<functioncall> {{"name": "search", "arguments": \'{TEXT}\'}} </functioncall>',
        '<|python_tag|>search.call(query="Where was Bell born?")',
        '<|tool_call_start|>[search(query="Where was Bell born?")]<|tool_call_end|>',
        '<function_calls>\nsearch(query="Where was Bell born?")\n</function_calls>',
        f"[TOOL_CALLS]search[CALL_ID]abc[ARGS]{TEXT}",
        '<｜DSML｜invoke name="search"><｜DSML｜parameter name="query" string="true">Where was Bell born?'
        "</｜DSML｜parameter>",
        '<steptml:invoke name="search"><steptml:parameter name="query">Where was Bell born?</steptml:parameter>',
        "<invoke><tool_name>search</tool_name><parameters><query>Where was Bell born?</query></parameters></invoke>",
        "<search>\n<query>Where was Bell born?</query>\n</search>",
        'Action: search("Where was Bell born?")',
        "<start_function_call>call:search{query:<escape>Where was Bell born?<escape>}<end_function_call>",
        '<|tool_call>call:search{query:<|"|>Where was Bell born?<|"|>}<tool_call|>',
        f"<|start|>assistant to=functions.search<|channel|>commentary json<|message|>{TEXT}<|call|>",
        f'{{"tool_calls": [{{"id": "1", "function": {{"name": "search", "arguments": {json.dumps(TEXT)}}}}}]}}',
        'To find it, I search.\n\n[search(query="Where was Bell born?")]',
        '{"tool": "search", "query": "Where was Bell born?"}',
        '{"action": "search", "action_input": "Where was Bell born?"}',
    ],
)
def test_a_call_in_the_text_is_read_in_the_form_of_each_family(text: str) -> None:
    _, (call,) = calls_in_text(text, NAMES)
    assert (call.name, list(call.arguments.values())) == (
        "search",
        ["Where was Bell born?"],
    )


def test_calls_in_the_text_keep_their_order_and_the_words_in_front() -> None:
    text = f'I look it up.\n<tool_call>{{"name": "search", "arguments": {TEXT}}}</tool_call>\n'
    text += (
        '<tool_call>{"name": "finish", "arguments": {"reason": "known"}}</tool_call>'
    )
    words, calls = calls_in_text(text, NAMES)
    assert (words, [call.name for call in calls]) == (
        "I look it up.",
        ["search", "finish"],
    )


@pytest.mark.parametrize(
    "text",
    [
        "I could search(for more), but I read enough.",
        'A binary search("x") is fast.',
        "<search>Where was Bell born?</search>",
        f'{{"name": "erase", "arguments": {TEXT}}}',
        '{"name": "search"}',
        '{"name": "search", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}',
        '{"name": "search", "query": "A name is no call."}',
        "search",
        "",
    ],
)
def test_prose_about_a_tool_calls_none(text: str) -> None:
    assert calls_in_text(text, NAMES) == ("", [])


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("search", "search"),
        ("functions.search", "search"),
        ("functions.search:0", "search"),
        ("search<|channel|>commentary", "search"),
        ("Web_Search", "search"),
        ("research", ""),
        ("", ""),
    ],
)
def test_a_tool_is_known_by_its_name_among_other_words(name: str, tool: str) -> None:
    assert tool_named(name, NAMES) == tool


@given(
    st.text()
    | st.recursive(
        st.none() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_arguments_are_objects_or_an_error(raw: object) -> None:
    try:
        found = arguments_in(raw)
    except ValueError:
        return
    assert all(isinstance(item, dict) for item in found)


@given(st.text(alphabet='search(){}[]"<>=:, \n`') | st.text())
def test_any_text_can_be_searched_for_calls(text: str) -> None:
    words, calls = calls_in_text(text, NAMES)
    assert text.startswith(words)
    assert {call.name for call in calls} <= set(NAMES)
