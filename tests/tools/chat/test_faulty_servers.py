"""Servers that drip, break off, send too much or point elsewhere: calls are bounded, tried again, reported."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from ras_agent.contracts.errors import ModelCallError, SettingsError
from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from tests.messages import says

TURNS = (Turn("user", "Who invented the telephone?"),)

Complete = Callable[[Chat, tuple[Turn, ...]], Awaitable[Reply]]


async def _sync(chat: Chat, turns: tuple[Turn, ...]) -> Reply:
    return chat.complete(Request(turns))


async def _sync_streamed(chat: Chat, turns: tuple[Turn, ...]) -> Reply:
    return chat.complete(Request(turns, lambda text: None))


async def _async(chat: Chat, turns: tuple[Turn, ...]) -> Reply:
    return await chat.acomplete(Request(turns))


async def _async_streamed(chat: Chat, turns: tuple[Turn, ...]) -> Reply:
    return await chat.acomplete(Request(turns, lambda text: None))


@pytest.fixture(
    params=[_sync, _async, _sync_streamed, _async_streamed],
    ids=lambda way: way.__name__.strip("_"),
)
def complete(request: pytest.FixtureRequest) -> Complete:
    chosen: Complete = request.param
    return chosen


@pytest.fixture(
    params=[_sync_streamed, _async_streamed], ids=lambda way: way.__name__.strip("_")
)
def stream(request: pytest.FixtureRequest) -> Complete:
    chosen: Complete = request.param
    return chosen


async def test_a_server_that_drips_bytes_holds_a_try_no_longer_than_its_timeout(
    scripted_llm: Any, settings: ChatSettings, complete: Complete
) -> None:
    scripted_llm.script({"reply": "word " * 2000, "drip": 0.05}, {"reply": "Bell."})
    async with asyncio.timeout(60):
        reply = await complete(
            as_chat(scripted_llm.spec, replace(settings, timeout=0.4)), TURNS
        )
    assert reply.text == "Bell."


@pytest.mark.parametrize(
    "slow",
    [{"reply": "word " * 2000, "drip": 0.05}, {"hang": True}],
    ids=["drips", "is-silent"],
)
async def test_a_try_that_takes_too_long_says_how_long_it_may_take(
    scripted_llm: Any, settings: ChatSettings, complete: Complete, slow: dict[str, Any]
) -> None:
    scripted_llm.script({**slow, "repeat": True})
    with pytest.raises(
        ModelCallError, match=says("3 tries", "TryTimedOut", "0.4 seconds")
    ):
        await complete(
            as_chat(scripted_llm.spec, replace(settings, timeout=0.4)), TURNS
        )


async def test_a_stream_that_ends_without_a_finish_reason_is_begun_anew(
    scripted_llm: Any, settings: ChatSettings, stream: Complete
) -> None:
    scripted_llm.script(
        {"reply": "Answer: Wat", "unfinished": True}, {"reply": "Answer: Watson"}
    )
    assert (
        await stream(as_chat(scripted_llm.spec, settings), TURNS)
    ).text == "Answer: Watson"
    scripted_llm.script(
        {
            "reply": 'a "finish_reason":"stop" and data: [DONE]',
            "unfinished": True,
            "repeat": True,
        }
    )
    with pytest.raises(
        ModelCallError,
        match=says("3 tries", "BrokenReply", "stream ended without a finish reason"),
    ):
        await stream(as_chat(scripted_llm.spec, settings), TURNS)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"error": {"message": "overloaded", "code": 529}},
            "the server replied with an error: overloaded",
        ),
        (
            {"error": "overloaded"},
            "the reply does not have the form of OpenAI's protocol: overloaded",
        ),
        ({"choices": []}, "the reply does not have the form of OpenAI's protocol"),
        ({"choices": None}, "the reply does not have the form of OpenAI's protocol"),
    ],
)
async def test_a_reply_without_a_message_is_asked_for_again_and_then_reported(
    scripted_llm: Any,
    settings: ChatSettings,
    complete: Complete,
    fields: dict[str, Any],
    told: str,
) -> None:
    scripted_llm.script({"reply": "", "whole": True, "fields": fields, "repeat": True})
    with pytest.raises(
        ModelCallError, match=f"failed after 3 tries: BrokenReply: {told}"
    ):
        await complete(as_chat(scripted_llm.spec, settings), TURNS)


async def test_an_error_inside_a_stream_is_tried_again(
    scripted_llm: Any, settings: ChatSettings, stream: Complete
) -> None:
    scripted_llm.script(
        {"reply": "Al", "fields": {"error": {"message": "overloaded"}}},
        {"reply": "Bell."},
    )
    assert (await stream(as_chat(scripted_llm.spec, settings), TURNS)).text == "Bell."


async def test_a_used_up_account_is_not_tried_again(
    scripted_llm: Any, settings: ChatSettings, complete: Complete
) -> None:
    told = {"error": {"message": "no credit", "code": "insufficient_quota"}}
    scripted_llm.script({"reply": "", "whole": True, "fields": told, "repeat": True})
    with pytest.raises(ModelCallError, match=r"failed after 1 try: .*no credit"):
        await complete(as_chat(scripted_llm.spec, settings), TURNS)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
async def test_a_reply_larger_than_the_limit_is_not_read_on(
    scripted_llm: Any,
    settings: ChatSettings,
    complete: Complete,
    packed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ras_agent.tools.chat.http.MOST_BYTES", 2**20)
    headers = (
        {"Content-Type": "text/event-stream"} if "stream" in complete.__name__ else {}
    )
    scripted_llm.script({"bytes": 2**24, "gzip": packed, "headers": headers})
    with pytest.raises(ModelCallError, match=says("1 try", "larger than 1 MB")):
        await complete(as_chat(scripted_llm.spec, settings), TURNS)


async def test_a_compressed_reply_is_read(
    scripted_llm: Any, settings: ChatSettings, complete: Complete
) -> None:
    scripted_llm.script({"reply": "Bell.", "whole": True, "gzip": True, "repeat": True})
    assert (await complete(as_chat(scripted_llm.spec, settings), TURNS)).text == "Bell."


async def test_a_compression_that_nobody_asked_for_is_refused(
    scripted_llm: Any, settings: ChatSettings, complete: Complete
) -> None:
    scripted_llm.script({"body": "{}", "headers": {"Content-Encoding": "br"}})
    with pytest.raises(ModelCallError, match=says("1 try", "compressed", "(br)")):
        await complete(as_chat(scripted_llm.spec, settings), TURNS)


async def test_a_text_longer_than_the_limit_is_refused(
    scripted_llm: Any,
    settings: ChatSettings,
    complete: Complete,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ras_agent.tools.chat.asking.MOST_CHARACTERS", 10)
    scripted_llm.script({"reply": "Alexander Graham Bell."})
    with pytest.raises(
        ModelCallError, match=says("1 try", "RefusedReply", "more than 10 characters")
    ):
        await complete(as_chat(scripted_llm.spec, settings), TURNS)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_refused_and_named_without_its_secrets(
    scripted_llm: Any, settings: ChatSettings, complete: Complete, status: int
) -> None:
    there = "http://me:secret@localhost:9/v1/chat/completions?key=secret"
    scripted_llm.script(
        {"status": status, "headers": {"Location": there}, "repeat": True}
    )
    told = re.escape(
        f"the server redirects ({status}) to http://localhost:9/v1/chat/completions, and prompts are sent"
    )
    with pytest.raises(ModelCallError, match=f"failed after 1 try: .*{told}") as caught:
        await complete(as_chat(scripted_llm.spec, settings), TURNS)
    assert "secret" not in str(caught.value)
    assert len(scripted_llm.requests()) == 1


async def test_half_a_character_in_a_turn_is_sent_as_a_question_mark(
    scripted_llm: Any, settings: ChatSettings, complete: Complete
) -> None:
    scripted_llm.script({"reply": "Bell."})
    await complete(
        as_chat(scripted_llm.spec, settings), (Turn("assistant", "[SUBQ] \ud83d"),)
    )
    assert scripted_llm.requests()[0]["messages"][0]["content"] == "[SUBQ] ?"


async def test_plain_http_behind_https_says_tls(
    scripted_llm: Any, settings: ChatSettings, complete: Complete
) -> None:
    spec = scripted_llm.spec.replace("http:", "https:")
    with pytest.raises(
        ModelCallError,
        match=says("1 try", "TLS", "https://127.0.0.1:", "does not use TLS"),
    ):
        await complete(as_chat(spec, settings), TURNS)


def test_a_port_that_is_none_is_told_before_any_call() -> None:
    with pytest.raises(
        SettingsError,
        match=says(
            "'vllm:http://127.0.0.1:99999/v1#m'", "port", "out of range 0-65535"
        ),
    ):
        as_chat("vllm:http://127.0.0.1:99999/v1#m")


async def test_a_model_object_without_settings_has_its_own_timeout_alone(
    scripted_llm: Any,
) -> None:
    model = ChatOpenAI(
        model="scripted", base_url=scripted_llm.base_url, api_key="any", max_retries=0
    )
    assert as_chat(model).a_try == float("inf")
    assert as_chat(model, ChatSettings(timeout=5)).a_try == 5


async def test_arguments_of_a_tool_that_are_no_object_are_the_reason_that_is_given(
    scripted_llm: Any, complete: Complete
) -> None:
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "search", "arguments": "1969786"},
    }
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    scripted_llm.script(
        {"reply": "", "whole": True, "fields": {"choices": choices}, "repeat": True}
    )
    model = ChatOpenAI(
        model="scripted", base_url=scripted_llm.base_url, api_key="any", max_retries=0
    )
    with pytest.raises(
        ModelCallError, match=says("BrokenReply", "tool_calls.0.args", "1969786")
    ):
        await complete(as_chat(model), TURNS)
