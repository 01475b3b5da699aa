"""Replays: replies come only from the cache, and a request without one is refused, with the place where it differs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ras_agent import create_ras_agent
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import ReplayMiss, SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.prompts import Turn
from ras_agent.running.budget import Ledger, metered
from ras_agent.tools.chat.cache import ReplyCache
from ras_agent.tools.chat.cached import first_difference, nearest_request
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from tests.messages import says

TURNS = (Turn("system", "Be brief."), Turn("user", "Who invented the telephone?"))


def _request(
    *messages: list[str], role: str = "planner", hop: int = 1, **parameters: Any
) -> dict[str, Any]:
    return {
        "parameters": parameters,
        "messages": list(messages),
        "role": role,
        "hop": hop,
    }


@pytest.fixture
def recorded(tmp_path: Path, scripted_model: Any) -> ChatSettings:
    """Settings of a replay that holds the reply to TURNS, asked by the planner at hop 2."""
    with metered(Ledger("planner", 2)):
        Chat(
            scripted_model("Bell"), settings=ChatSettings(cache=tmp_path / "r.sqlite")
        ).complete(Request(TURNS))
    return ChatSettings(cache=tmp_path / "r.sqlite", replay=True)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_recorded_reply_is_given_and_the_model_left_alone(
    asynchronous: bool, recorded: ChatSettings, scripted_model: Any
) -> None:
    model = scripted_model()
    chat, request = Chat(model, settings=recorded), Request(TURNS)
    reply = (
        asyncio.run(chat.acomplete(request)) if asynchronous else chat.complete(request)
    )
    assert (reply.text, reply.replayed, model.prompts) == ("Bell", True, [])


def test_a_miss_asks_no_model_and_says_where_the_nearest_request_differs(
    recorded: ChatSettings, scripted_model: Any
) -> None:
    model = scripted_model("Meucci")
    turns = (TURNS[0], Turn("user", "Who invented the telegraph?"))
    with metered(Ledger("planner", 2)), pytest.raises(ReplayMiss) as raised:
        Chat(model, settings=recorded).complete(Request(turns))
    assert str(raised.value) == (
        "replay: no reply in r.sqlite to the request of planner at hop 2. The nearest request there (planner, hop 2) "
        "differs first in message 2 (user), character 22: 'Who invented the telephone?' there, "
        "'Who invented the telegraph?' here: run without --replay to call the model and record its reply"
    )
    assert model.prompts == []
    assert len(ReplyCache(str(recorded.cache))) == 1


def test_another_parameter_is_the_difference(
    recorded: ChatSettings, scripted_model: Any
) -> None:
    with pytest.raises(
        ReplayMiss,
        match=says("has most = None where this one has 64", "planner, hop 2"),
    ):
        Chat(scripted_model(), settings=recorded).complete(
            Request(TURNS, max_tokens=64)
        )


def test_a_replay_of_nothing_says_how_to_record(
    tmp_path: Path, scripted_model: Any
) -> None:
    with pytest.raises(SettingsError, match=says("name their file", "--cache FILE")):
        Chat(scripted_model(), settings=ChatSettings(replay=True))
    with pytest.raises(
        SettingsError, match=says("no replies at", "none.sqlite", "without --replay")
    ):
        Chat(
            scripted_model(),
            settings=ChatSettings(cache=tmp_path / "none.sqlite", replay=True),
        )
    assert not (tmp_path / "none.sqlite").exists()
    ReplyCache(tmp_path / "empty.sqlite")
    with pytest.raises(ReplayMiss, match=says("is empty")):
        Chat(
            scripted_model(),
            settings=ChatSettings(cache=tmp_path / "empty.sqlite", replay=True),
        ).complete(Request(TURNS))


def test_a_replay_of_a_model_of_openais_needs_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ReplyCache(tmp_path / "r.sqlite")
    chat = as_chat(
        "openai:gpt-4o-mini", ChatSettings(cache=tmp_path / "r.sqlite", replay=True)
    )
    assert chat.name == "openai:gpt-4o-mini"
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        as_chat("openai:gpt-4o-mini", ChatSettings(cache=tmp_path / "r.sqlite"))


def test_a_replay_of_another_providers_model_needs_no_key_and_finds_its_replies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel
    from pydantic import ConfigDict, Field, SecretStr

    class ChatGroq(FakeListChatModel):
        """As the provider's own class, it is not built without a key."""

        model_config = ConfigDict(populate_by_name=True)
        responses: list[str] = ["Bell"]  # noqa: RUF012
        model: str
        temperature: float | None = None
        groq_api_key: SecretStr = Field(alias="api_key")

    package = ModuleType("langchain_groq")
    vars(package)["ChatGroq"] = ChatGroq
    monkeypatch.setitem(sys.modules, "langchain_groq", package)
    place, request = tmp_path / "r.sqlite", Request(TURNS)
    with pytest.raises(
        SettingsError,
        match=says("cannot set up the chat model 'groq:llama'", "api_key"),
    ):
        as_chat("groq:llama", ChatSettings(cache=place))
    recorded = ChatGroq(model="llama", api_key=SecretStr("a-key"))
    Chat(recorded, settings=ChatSettings(cache=place)).complete(request)
    reply = as_chat("groq:llama", ChatSettings(cache=place, replay=True)).complete(
        request
    )
    assert (reply.text, reply.replayed) == ("Bell", True)


def test_the_nearest_request_is_of_the_same_role_and_hop_before_it_is_alike() -> None:
    asked = _request(["user", "Where was Bell born?"], hop=2)
    same_text = _request(["user", "Where was Bell born?"], role="answerer")
    same_role = _request(["user", "Who was Bell?"], hop=1)
    same_hop, alike = (
        _request(["user", "What flows there?"], hop=2),
        _request(["user", "Where was Bob born?"], hop=2),
    )
    assert nearest_request(asked, []) is None
    assert nearest_request(asked, [same_text]) == same_text
    assert nearest_request(asked, [same_text, same_role]) == same_role
    assert nearest_request(asked, [same_text, same_role, same_hop]) == same_hop
    assert nearest_request(asked, [same_hop, alike, same_role]) == alike


@pytest.mark.parametrize(
    ("there", "here", "difference"),
    [
        (_request(["user", "a"]), _request(["user", "a"]), ""),
        (
            _request(temperature=0.0),
            _request(temperature=0.7),
            "has temperature = 0.0 where this one has 0.7",
        ),
        (
            _request(["user", "a"]),
            _request(["system", "a"]),
            "has as message 1 one of user where this one has one of system",
        ),
        (
            _request(["user", "a"]),
            _request(["user", "a"], ["user", "b"]),
            "has as message 2 one of nothing where this one has one of user",
        ),
        (
            _request(["user", "x" * 50 + "there" + "y" * 50]),
            _request(["user", "x" * 50 + "here"]),
            "differs first in message 1 (user), character 51: "
            f"'…{'x' * 40}there{'y' * 35}…' there, '…{'x' * 40}here' here",
        ),
        (
            _request(["assistant", "", {"name": "search"}]),  # type: ignore[list-item]
            _request(["assistant", "", {"name": "read"}]),  # type: ignore[list-item]
            "differs first in message 1 (assistant), in the call of a tool: [{'name': 'search'}] there, "
            "[{'name': 'read'}] here",
        ),
    ],
)
def test_the_first_difference_is_named(
    there: dict[str, Any], here: dict[str, Any], difference: str
) -> None:
    assert first_difference(there, here) == difference


def test_a_run_raises_its_first_miss(tmp_path: Path, scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "[SUFFICIENT]", "repeat": True})
    passages = [Passage("bell", "Bell was born in Edinburgh.")]

    def run(question: str, replay: bool) -> Any:
        settings = Settings(cache=tmp_path / "r.sqlite", replay=replay)
        agent = create_ras_agent(
            index=passages,
            planner=scripted_llm.spec,
            extractor="offline",
            settings=settings,
        )
        return agent.invoke({"question": question})

    first = run("Where was Bell born?", replay=False)
    asked = len(scripted_llm.requests())
    again = run("Where was Bell born?", replay=True)
    assert (again["answer"], again["graph"]) == (first["answer"], first["graph"])
    with pytest.raises(
        ReplayMiss,
        match=says(
            "no reply in r.sqlite",
            "the request of planner at hop 1",
            "Bell born",
            "Bell bred",
        ),
    ):
        run("Where was Bell bred?", replay=True)
    assert len(scripted_llm.requests()) == asked > 0
