"""Model calls over real HTTP, through langchain-openai, to a server process with scripted behaviour."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from langchain_openai import ChatOpenAI

from ras_agent.contracts.errors import ModelCallError, ModelRefused
from ras_agent.prompts import Turn
from ras_agent.running.budget import Ledger, metered
from ras_agent.tools.chat.call import Reply, Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from tests.messages import says

TURNS = (Turn("user", "Who invented the telephone?"),)

Complete = Callable[[Chat, Request], Awaitable[Reply]]


async def _sync(chat: Chat, request: Request) -> Reply:
    return chat.complete(request)


async def _async(chat: Chat, request: Request) -> Reply:
    return await chat.acomplete(request)


@pytest.fixture(params=[_sync, _async], ids=["sync", "async"])
def complete(request: pytest.FixtureRequest) -> Complete:
    chosen: Complete = request.param
    return chosen


async def test_a_reply_with_its_usage(scripted_llm: Any, complete: Complete) -> None:
    scripted_llm.script({"reply": "Alexander Graham Bell.", "cached": 2})
    with metered(Ledger("planner")) as ledger:
        reply = await complete(as_chat(scripted_llm.spec), Request(TURNS))
    assert (reply.text, reply.truncated) == ("Alexander Graham Bell.", False)
    (call,) = ledger.calls
    assert (call.input_tokens, call.output_tokens, call.cached_tokens) == (4, 3, 2)
    (request,) = scripted_llm.requests()
    assert request["model"] == "scripted"
    assert request["messages"] == [
        {"role": "user", "content": "Who invented the telephone?"}
    ]


async def test_a_stream_with_its_usage(scripted_llm: Any, complete: Complete) -> None:
    scripted_llm.script({"reply": "Alexander Graham Bell.", "cached": 2})
    streamed: list[str] = []
    reply = await complete(as_chat(scripted_llm.spec), Request(TURNS, streamed.append))
    assert list(dict.fromkeys(streamed)) == [
        "Alexander",
        "Alexander Graham",
        "Alexander Graham Bell.",
    ]
    assert (reply.input_tokens, reply.output_tokens, reply.cached_tokens) == (4, 3, 2)
    assert scripted_llm.requests()[0]["stream"] is True


async def test_a_rate_limit_waits_as_long_as_the_server_asks(
    scripted_llm: Any, settings: ChatSettings, passing_time: Any, complete: Complete
) -> None:
    scripted_llm.script(
        {"status": 429, "headers": {"Retry-After": "3"}}, {"reply": "Bell."}
    )
    assert (
        await complete(as_chat(scripted_llm.spec, settings), Request(TURNS))
    ).text == "Bell."
    assert passing_time.waits == [3.0]
    assert len(scripted_llm.requests()) == 2


async def test_server_errors_back_off_and_the_clients_own_retries_do_not_multiply(
    scripted_llm: Any, settings: ChatSettings, passing_time: Any, complete: Complete
) -> None:
    scripted_llm.script({"status": 500, "repeat": True})
    with pytest.raises(
        ModelCallError, match=r"failed after 3 tries: \w+: Error code: 500"
    ):
        await complete(as_chat(scripted_llm.spec, settings), Request(TURNS))
    assert passing_time.waits == [0.5, 1.0]
    assert len(scripted_llm.requests()) == 3


@pytest.mark.parametrize(
    "trouble",
    [
        {"status": 503},
        {"body": "<html>Bad gateway</html>"},
        {"body": '{"choices": [{"mess'},
        {"reply": "Alexander Graham Bell.", "cut": 30},
    ],
    ids=["unavailable", "not JSON", "half JSON", "connection cut"],
)
async def test_a_broken_reply_is_asked_for_again(
    scripted_llm: Any,
    settings: ChatSettings,
    complete: Complete,
    trouble: dict[str, Any],
) -> None:
    scripted_llm.script(trouble, {"reply": "Bell."})
    assert (
        await complete(as_chat(scripted_llm.spec, settings), Request(TURNS))
    ).text == "Bell."
    assert len(scripted_llm.requests()) == 2


async def test_a_broken_stream_is_begun_anew(
    scripted_llm: Any, settings: ChatSettings, complete: Complete
) -> None:
    scripted_llm.script({"reply": "Elisha Gray did.", "cut": 2}, {"reply": "Bell did."})
    streamed: list[str] = []
    reply = await complete(
        as_chat(scripted_llm.spec, settings), Request(TURNS, streamed.append)
    )
    assert reply.text == "Bell did."
    assert list(dict.fromkeys(streamed)) == [
        "Elisha",
        "Elisha Gray",
        "Bell",
        "Bell did.",
    ]


@pytest.mark.parametrize(
    "on_text", [None, lambda text: None], ids=["whole", "streamed"]
)
def test_a_users_own_model_does_not_stumble_over_the_connections_of_an_earlier_event_loop(
    scripted_llm: Any,
    settings: ChatSettings,
    passing_time: Any,
    on_text: Callable[[str], None] | None,
) -> None:
    scripted_llm.script({"reply": "Bell.", "repeat": True})
    chat = as_chat(
        ChatOpenAI(
            model="scripted",
            base_url=scripted_llm.base_url,
            api_key="any",
            max_retries=0,
        ),
        settings,
    )

    async def ask(times: int) -> list[str]:
        replies = await asyncio.gather(
            *(chat.acomplete(Request(TURNS, on_text)) for _ in range(times))
        )
        return [reply.text for reply in replies]

    assert asyncio.run(ask(8)) == ["Bell."] * 8
    assert asyncio.run(ask(1)) + asyncio.run(ask(2)) == ["Bell."] * 3
    assert passing_time.waits == []


async def test_a_timeout_is_tried_again(
    scripted_llm: Any, settings: ChatSettings, complete: Complete
) -> None:
    scripted_llm.script({"hang": True}, {"reply": "Bell."})
    chat = as_chat(scripted_llm.spec, replace(settings, timeout=0.3))
    assert (await complete(chat, Request(TURNS))).text == "Bell."


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "check the API key"),
        (404, "check the model's name and the server's address"),
    ],
)
async def test_a_refusal_is_final_names_the_endpoint_and_shows_no_key(
    scripted_llm: Any,
    monkeypatch: pytest.MonkeyPatch,
    complete: Complete,
    status: int,
    remedy: str,
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "plainsecret")
    scripted_llm.script({"status": status, "reply": "no entry with plainsecret"})
    with pytest.raises(ModelRefused) as caught:
        await complete(as_chat(scripted_llm.spec), Request(TURNS))
    message = str(caught.value)
    assert message.startswith(f"{scripted_llm.spec} failed after 1 try: ")
    assert message.endswith(f"no entry with ***; {remedy}")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_server_that_is_not_there_is_tried_twice_with_one_short_wait(
    settings: ChatSettings, passing_time: Any, complete: Complete, host: str
) -> None:
    patient = replace(settings, retry=replace(settings.retry, attempts=5))
    told = says(
        f"vllm:http://{host}:9/v1#m",
        "2 tries",
        f"nothing listens at http://{host}:9",
        "start the server",
    )
    with pytest.raises(ModelRefused, match=told):
        await complete(as_chat(f"vllm:http://{host}:9/v1#m", patient), Request(TURNS))
    assert passing_time.waits == [0.5]


async def test_a_systems_proxy_is_used(
    scripted_llm: Any, monkeypatch: pytest.MonkeyPatch, complete: Complete
) -> None:
    scripted_llm.script({"reply": "Bell."})
    proxy, _, name = scripted_llm.root.rpartition("/")
    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY")
    reply = await complete(
        as_chat(f"vllm:http://model.invalid/{name}/v1#m"), Request(TURNS)
    )
    assert reply.text == "Bell."


def test_one_process_may_use_several_event_loops_one_after_the_other(
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"reply": "Bell.", "repeat": True})

    async def several(number: int) -> list[str]:
        chat = as_chat(scripted_llm.spec)
        asked = [
            Request((Turn("user", f"loop {number}, question {place}"),))
            for place in range(4)
        ]
        return [
            reply.text for reply in await asyncio.gather(*map(chat.acomplete, asked))
        ]

    assert [asyncio.run(several(number)) for number in range(3)] == [["Bell."] * 4] * 3
    assert len(scripted_llm.requests()) == 12
