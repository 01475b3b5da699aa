"""Several addresses or keys of one model, asked in turn."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from ras_agent import Settings
from ras_agent.contracts.errors import SettingsError
from ras_agent.prompts import Turn
from ras_agent.running.budget import Ledger, metered
from ras_agent.tools.chat.balance import BalancedChat, BalancedEndpoint, _Place
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.http import Endpoint, ErrorStatus, NoConnection
from ras_agent.tools.chat.models import build_chat_model
from ras_agent.tools.chat.secrets import without_secrets

ASKED = Request((Turn("user", "Who?"),))


class Server(Endpoint):
    """Endpoint that replies with its name, or raises the next of `problems`, one a call."""

    def __init__(self, name: str, *problems: BaseException) -> None:
        super().__init__(f"http://{name}/v1")
        object.__setattr__(self, "problems", list(problems))

    def reply(self) -> str:
        problems: list[BaseException] = getattr(self, "problems")  # noqa: B009
        if problems:
            raise problems.pop(0)
        return self.url[7]

    async def events(
        self, path: str, body: Any, seconds: float | None = None
    ) -> AsyncIterator[Any]:
        yield self.reply()
        yield "more"


def balanced(time: Any, *servers: Server) -> BalancedEndpoint:
    return BalancedEndpoint("all", places=tuple(map(_Place, servers)), now=time.now)


async def replies(endpoint: BalancedEndpoint, count: int) -> str:
    names = []
    for _ in range(count):
        events = [event async for event in endpoint.events("/chat", {})]
        names.append(events[0])
    return "".join(names)


GONE = NoConnection("no connection", "http://a/v1")


async def test_calls_go_to_the_places_in_turn(passing_time: Any) -> None:
    assert (
        await replies(balanced(passing_time, Server("a"), Server("b"), Server("c")), 7)
        == "abcabca"
    )


@pytest.mark.parametrize(
    "problem", [GONE, ErrorStatus(503, {}, "loading"), ErrorStatus(429, {}, "too many")]
)
async def test_a_place_that_fails_is_set_aside_and_another_replies(
    passing_time: Any, problem: Exception
) -> None:
    endpoint = balanced(passing_time, Server("a", problem), Server("b"))
    assert await replies(endpoint, 4) == "bbbb"
    passing_time.sleep(10)
    assert await replies(endpoint, 3) == "aba"


async def test_the_others_share_the_calls_of_a_place_that_is_set_aside(
    passing_time: Any,
) -> None:
    endpoint = balanced(passing_time, Server("a", GONE), Server("b"), Server("c"))
    assert await replies(endpoint, 6) == "bcbcbc"


async def test_a_place_is_set_aside_for_as_long_as_it_asks(passing_time: Any) -> None:
    endpoint = balanced(
        passing_time,
        Server("a", ErrorStatus(429, {"retry-after": "60"}, "")),
        Server("b"),
    )
    assert await replies(endpoint, 1) == "b"
    passing_time.sleep(59)
    assert await replies(endpoint, 2) == "bb"
    passing_time.sleep(1)
    assert await replies(endpoint, 2) == "ab"


async def test_where_all_fail_the_error_is_that_of_the_first_to_be_back(
    passing_time: Any,
) -> None:
    slow, soon = (
        ErrorStatus(429, {"retry-after": "60"}, ""),
        ErrorStatus(429, {"retry-after": "5"}, ""),
    )
    endpoint = balanced(passing_time, Server("a", soon), Server("b", slow))
    with pytest.raises(ErrorStatus) as told:
        await replies(endpoint, 1)
    assert told.value is soon
    assert await replies(endpoint, 1) == "a"  # nobody else is asked before its time


async def test_a_request_that_is_wrong_is_wrong_everywhere(passing_time: Any) -> None:
    wrong = ErrorStatus(400, {}, "too long")
    with pytest.raises(ErrorStatus):
        await replies(balanced(passing_time, Server("a", wrong), Server("b")), 1)


async def test_a_call_that_was_given_up_sets_its_place_aside(passing_time: Any) -> None:
    endpoint = balanced(
        passing_time, Server("a", asyncio.CancelledError()), Server("b")
    )
    with pytest.raises(asyncio.CancelledError):
        await replies(endpoint, 1)
    assert await replies(endpoint, 3) == "bbb"


async def test_a_key_that_is_refused_is_told_and_the_others_are_asked(
    passing_time: Any,
) -> None:
    endpoint = balanced(
        passing_time, Server("a", ErrorStatus(401, {}, "no")), Server("b")
    )
    with metered(Ledger("planner")) as ledger:
        assert await replies(endpoint, 2) == "bb"
    (note,) = ledger.notes
    assert note.message.startswith(
        "http://a/v1 refuses its key (401) and is not asked for 300 seconds"
    )


async def test_a_stream_begins_at_another_place_and_is_not_begun_twice(
    passing_time: Any,
) -> None:
    endpoint = balanced(passing_time, Server("a", GONE), Server("b"))
    assert [event async for event in endpoint.events("/chat", {})] == ["b", "more"]


def test_a_spec_with_several_addresses_is_one_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY_A", "swordfish-a")
    monkeypatch.setenv("KEY_B", "swordfish-b")
    request = ChatSettings.of(Settings(api_keys="KEY_A,KEY_B")).request
    model = build_chat_model("vllm:http://a/v1,http://b/v1#m", request=request)
    assert isinstance(model, BalancedChat)
    assert model.places == (
        ("http://a/v1", SecretStr("swordfish-a")),
        ("http://b/v1", SecretStr("swordfish-b")),
    )
    assert (model.base_url, model.model_name) == ("http://a/v1,http://b/v1", "m")
    assert without_secrets("no swordfish-b", model) == "no ***"


def test_several_keys_of_one_address_are_used_in_turn(
    scripted_llm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_A", "a")
    monkeypatch.setenv("KEY_B", "b")
    request = ChatSettings.of(Settings(api_keys="KEY_A,KEY_B")).request
    model = build_chat_model(scripted_llm.spec, request=request)
    sent = [place.endpoint.headers["Authorization"] for place in model._endpoint.places]
    assert sent == ["Bearer a", "Bearer b"]


def test_an_address_that_nobody_listens_at_costs_nothing(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "Bell."})
    url, _, name = scripted_llm.spec.removeprefix("vllm:").partition("#")
    chat = as_chat(
        f"vllm:http://127.0.0.1:9/v1,{url}#{name}", ChatSettings(timeout=60.0)
    )
    assert chat.complete(ASKED).text == "Bell."
    assert len(scripted_llm.requests()) == 1


def test_keys_that_fit_no_addresses_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEY_A", "a")
    request = ChatSettings.of(Settings(api_keys="KEY_A,KEY_A")).request
    with pytest.raises(
        SettingsError, match="the model has 3 addresses, and api_keys names 2 variables"
    ):
        build_chat_model("vllm:http://a/v1,http://b/v1,http://c/v1#m", request=request)


def test_its_text_shows_no_password_of_an_address() -> None:
    places = (("http://bob:p@ss@one/v1?key=abc", SecretStr("k")),)
    shown = repr(
        BalancedChat(model="m", base_url=places[0][0], api_key="k", places=places)
    )
    assert "ss@" not in shown
    assert "abc" not in shown
