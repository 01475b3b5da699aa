"""The fields that settings add to requests: fields, headers, keys; those that a server refuses are left out."""

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from ras_agent import Settings, create_ras_agent
from ras_agent.contracts.errors import ModelCallError, SettingsError
from ras_agent.prompts import Turn
from ras_agent.running.budget import Ledger, metered
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatSettings, as_chat
from ras_agent.tools.chat.fields import RequestFields
from ras_agent.tools.chat.models import build_chat_model

ASKED = Request((Turn("user", "Who?"),))


def chat_of(spec: str, **settings: Any) -> Any:
    return as_chat(spec, ChatSettings.of(Settings(**settings)))


def test_a_request_has_the_fields_that_settings_name(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "Bell."})
    chat_of(
        scripted_llm.spec,
        top_p=0.9,
        seed=7,
        presence_penalty=0.5,
        frequency_penalty=0.25,
        reasoning_effort="low",
        chat_template_kwargs={"enable_thinking": False},
        extra_body={"top_k": 20},
    ).complete(ASKED)
    (sent,) = scripted_llm.requests()
    assert {
        name: value
        for name, value in sent.items()
        if name not in ("model", "messages", "max_tokens")
    } == {
        "top_p": 0.9,
        "seed": 7,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.25,
        "reasoning_effort": "low",
        "chat_template_kwargs": {"enable_thinking": False},
        "top_k": 20,
    }


def test_a_field_that_the_server_refuses_is_left_out_and_the_run_says_so(
    scripted_llm: Any,
) -> None:
    refusal = {
        "status": 400,
        "body": '{"error": {"message": "Unrecognized request argument: enable_magic"}}',
    }
    scripted_llm.script(refusal, {"reply": "Bell."}, {"reply": "Watson."})
    chat = chat_of(scripted_llm.spec, extra_body={"enable_magic": True, "top_k": 20})
    with metered(Ledger("planner", hop=1)) as ledger:
        assert chat.complete(ASKED).text == "Bell."
        assert chat.complete(ASKED).text == "Watson."
    magic = ["enable_magic" in sent for sent in scripted_llm.requests()]
    assert magic == [True, False, False]
    assert all(sent["top_k"] == 20 for sent in scripted_llm.requests())
    (note,) = ledger.notes
    assert note.message.endswith(
        "refuses enable_magic, which is left out of later requests to it"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"seed": 1}, {"seed": 2}),
        ({"top_p": 0.5}, {}),
        ({"extra_body": {"top_k": 1}}, {"extra_body": {"top_k": 2}}),
        (
            {"chat_template_kwargs": {"enable_thinking": True}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        ({"headers": {"x-version": "1"}}, {"headers": {"x-version": "2"}}),
    ],
)
def test_what_may_change_a_reply_is_in_the_key_of_a_cached_one(
    scripted_llm: Any, tmp_path: Any, one: dict[str, Any], other: dict[str, Any]
) -> None:
    scripted_llm.script({"reply": "one"}, {"reply": "other"})
    cache = tmp_path / "replies.sqlite"
    assert chat_of(scripted_llm.spec, cache=cache, **one).complete(ASKED).text == "one"
    assert (
        chat_of(scripted_llm.spec, cache=cache, **other).complete(ASKED).text == "other"
    )
    assert chat_of(scripted_llm.spec, cache=cache, **one).complete(ASKED).text == "one"


def test_a_secret_header_is_sent_and_stands_in_no_key_and_no_message(
    scripted_llm: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "swordfish-1")
    cache = tmp_path / "replies.sqlite"
    settings = {
        "cache": cache,
        "headers": {"x-gateway": "env:GATEWAY_KEY", "x-token": "swordfish-2"},
    }
    scripted_llm.script(
        {"reply": "Bell."},
        {"status": 401, "body": '{"error": "no swordfish-1, no swordfish-2"}'},
    )
    chat = chat_of(scripted_llm.spec, **settings)
    assert chat.model.default_headers == {
        "x-gateway": "swordfish-1",
        "x-token": "swordfish-2",
    }
    chat.complete(ASKED)
    assert b"swordfish" not in cache.read_bytes()
    # a key that was replaced changes no reply
    monkeypatch.setenv("GATEWAY_KEY", "swordfish-3")
    assert chat_of(scripted_llm.spec, **settings).complete(ASKED).replayed
    with pytest.raises(ModelCallError) as told:
        chat.complete(Request((Turn("user", "Where?"),)))
    assert "swordfish" not in str(told.value)
    assert "***" in str(told.value)


def test_a_variable_that_is_not_set_is_an_error_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GATEWAY_KEY", raising=False)
    with pytest.raises(
        SettingsError,
        match="headers: x-key needs the environment variable GATEWAY_KEY: set it",
    ):
        chat_of("vllm:http://127.0.0.1:9/v1#m", headers={"x-key": "env:GATEWAY_KEY"})
    with pytest.raises(
        SettingsError, match="api_keys names an environment variable that is not set"
    ) as told:
        chat_of("vllm:http://127.0.0.1:9/v1#m", api_keys="sk_somebodys_key")
    assert "somebodys" not in str(told.value)


class FakeProvider(FakeListChatModel):
    """Model of a provider's that takes some of it."""

    top_p: float | None = None
    default_headers: dict[str, str] | None = None
    timeout: float | None = None
    max_retries: int = 0
    api_key: str = ""


def test_a_class_of_langchains_gets_what_it_takes_and_a_warning_names_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def init_chat_model(spec: str, **options: Any) -> FakeProvider:
        return FakeProvider(responses=["Bell."], **options)

    monkeypatch.setattr("langchain.chat_models.init_chat_model", init_chat_model)
    monkeypatch.setenv("TEAM_KEY", "swordfish")
    request = RequestFields(
        {"top_p": 0.9, "seed": 7}, {"top_k": 20}, {"x-team": "a"}, ("TEAM_KEY",)
    )
    with pytest.warns(
        RuntimeWarning, match="^fake:m takes no seed, top_k: left out of its requests$"
    ):
        model = build_chat_model("fake:m", request=request)
    assert (model.top_p, model.default_headers, model.api_key) == (
        0.9,
        {"x-team": "a"},
        "swordfish",
    )


def test_a_model_object_comes_as_its_owner_made_it() -> None:
    model = FakeProvider(responses=["Bell."])
    chat = as_chat(model, ChatSettings.of(Settings(top_p=0.9, headers={"x-team": "a"})))
    assert chat.model is model
    assert chat.settings.request == RequestFields()


class LikeOllama(FakeListChatModel):
    """Model whose client takes fields that the model does not."""

    reasoning: str | None = None
    seed: int | None = None
    client_kwargs: dict[str, Any] | None = None


def test_a_class_that_has_another_name_for_a_field_gets_it_by_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def init_chat_model(spec: str, **options: Any) -> LikeOllama:
        return LikeOllama(responses=["Bell."], **options)

    monkeypatch.setattr("langchain.chat_models.init_chat_model", init_chat_model)
    request = RequestFields(
        {"reasoning_effort": "low", "seed": 7}, headers={"x-team": "a"}
    )
    model = build_chat_model("ollama:m", timeout=6.0, request=request)
    assert (model.reasoning, model.seed) == ("low", 7)
    # ten calls may be before it
    assert model.client_kwargs == {
        "timeout": 60.0,
        "headers": {"x-team": "a"},
    }


def test_the_fields_of_two_roles_are_those_of_each(scripted_llm: Any) -> None:
    scripted_llm.script(
        {"reply": "[SUBQ] Where was Bell born?"},
        {"reply": "Edinburgh [1]", "repeat": True},
    )
    agent = create_ras_agent(
        index=["Bell was born in Edinburgh."],
        planner=scripted_llm.spec,
        answerer=scripted_llm.spec,
        extractor="offline",
        settings=Settings(
            seed=7,
            max_hops=1,
            roles={"planner": {"reasoning_effort": "low"}, "answerer": {"top_p": 0.5}},
        ),
    )
    agent.invoke({"question": "Where was Bell born?"})
    planner, answerer = scripted_llm.requests()
    assert (planner["seed"], planner["reasoning_effort"], "top_p" in planner) == (
        7,
        "low",
        False,
    )
    assert (answerer["seed"], answerer["top_p"], "reasoning_effort" in answerer) == (
        7,
        0.5,
        False,
    )
