"""Chat models from strings; names that may be printed, and secrets that may not."""

import sys
from typing import Any

import pytest

from ras_agent.contracts.errors import MissingExtra, SettingsError
from ras_agent.tools.chat.models import build_chat_model
from ras_agent.tools.chat.names import endpoint_of, model_name, sampling_parameters
from ras_agent.tools.chat.runnables import is_chat_model
from ras_agent.tools.chat.secrets import printable, without_secrets
from tests.messages import says

KEY = "sk-test-0123456789abcdef"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_API_BASE",
        "VLLM_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)


def test_a_provider_and_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = build_chat_model("openai:gpt-4o-mini", temperature=0.0, max_tokens=99)
    assert (model.model_name, model.timeout, model.base_url) == (
        "gpt-4o-mini",
        None,
        "https://api.openai.com/v1",
    )
    assert (model.temperature, model.max_tokens, model.limit_name) == (
        0.0,
        99,
        "max_completion_tokens",
    )
    assert endpoint_of(model) == "https://api.openai.com/v1#gpt-4o-mini"


def test_an_openai_compatible_server() -> None:
    model = build_chat_model("vllm:http://localhost:8000/v1#org/model-7b")
    assert (model.base_url, model.model_name) == (
        "http://localhost:8000/v1",
        "org/model-7b",
    )
    assert model.api_key.get_secret_value() == "EMPTY"
    assert endpoint_of(model) == "http://localhost:8000/v1#org/model-7b"


def test_such_a_server_gets_its_own_key_and_never_openais(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert build_chat_model("vllm:http://h/v1#m").api_key.get_secret_value() == "EMPTY"
    monkeypatch.setenv("VLLM_API_KEY", "own")
    assert build_chat_model("vllm:http://h/v1#m").api_key.get_secret_value() == "own"


@pytest.mark.parametrize(
    "spec", ["vllm:localhost#m", "vllm:http://h/v1", "vllm:", "vllm:http://u:pw@h/v1"]
)
def test_an_address_without_scheme_or_model_is_an_error(spec: str) -> None:
    with pytest.raises(
        SettingsError,
        match=says("'vllm:", "write it as 'vllm:http://host:port/v1#model'"),
    ) as caught:
        build_chat_model(spec)
    assert "pw" not in str(caught.value)


def test_a_missing_provider_package_gives_the_install_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # as if it were not installed
    monkeypatch.setitem(sys.modules, "langchain_anthropic", None)
    with pytest.raises(
        MissingExtra,
        match=says("'anthropic'", "need a package", "pip install langchain-anthropic"),
    ):
        build_chat_model("anthropic:claude-x")


def test_a_missing_key_is_an_error_that_names_the_variable() -> None:
    with pytest.raises(
        SettingsError,
        match=says("cannot set up", "'openai:gpt-4o-mini'", "OPENAI_API_KEY"),
    ):
        build_chat_model("openai:gpt-4o-mini")


def test_an_unknown_provider_is_an_error() -> None:
    with pytest.raises(
        SettingsError,
        match=says(
            "'nobody:model'",
            "no known provider",
            "openai:gpt-4o-mini",
            "Supported providers:",
        ),
    ):
        build_chat_model("nobody:model")
    with pytest.raises(
        SettingsError,
        match=says("no known provider: did you mean openai? write provider:model"),
    ):
        build_chat_model("opnai:gpt-4o-mini")


def test_what_is_a_chat_model(scripted_model: Any) -> None:
    assert is_chat_model(scripted_model())
    assert not is_chat_model("openai:gpt-4o-mini")


def test_names_of_models(scripted_model: Any) -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    assert model_name(scripted_model()) == "scripted"
    assert model_name(FakeListChatModel(responses=[])) == "FakeListChatModel"


def test_sampling_parameters_differ_between_requests_and_hold_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    cold, warm = (
        build_chat_model("openai:gpt-4o-mini", temperature=value)
        for value in (0.0, 1.0)
    )
    assert sampling_parameters(cold) != sampling_parameters(warm)
    assert sampling_parameters(cold) == sampling_parameters(
        build_chat_model("openai:gpt-4o-mini", temperature=0.0)
    )
    assert KEY not in repr(sampling_parameters(cold))


def test_a_spec_is_printed_without_user_and_query() -> None:
    assert (
        printable("vllm:https://user:pw@host:1/v1?api_key=x#model")
        == "vllm:https://host:1/v1#model"
    )


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            "Incorrect API key provided: sk-abcd1234efgh.",
            "Incorrect API key provided: ***.",
        ),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ('{"api_key": "hunter2hunter2"}', '{"api_key": "***"}'),
        ("http://me:pw@host/v1 refused", "http://***@host/v1 refused"),
        (
            "401 for https://h/?q=Bell&key=AIzaSy123&page=2",
            "401 for https://h/?q=Bell&key=***&page=2",
        ),
        (
            "no https://h/?access_token=abc123, 'https://h/?token=d.e'",
            "no https://h/?access_token=*** 'https://h/?token=***'",
        ),
        ("the key-value task failed", "the key-value task failed"),
    ],
)
def test_what_looks_like_a_credential_is_masked(text: str, masked: str) -> None:
    assert without_secrets(text) == masked


def test_the_secrets_of_the_model_itself_are_masked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "plainword")
    model = build_chat_model("vllm:http://h/v1#m")
    assert without_secrets("you sent plainword to us", model) == "you sent *** to us"
