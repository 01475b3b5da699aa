"""Fields and headers of requests, as settings write them."""

from pathlib import Path
from typing import Any

import pytest

from ras_agent import Settings
from ras_agent.config.settings import described_request, load_settings
from ras_agent.config.settings.request_fields import described_headers, with_values
from ras_agent.config.settings.trust import refuse_keys, unnamed_destinations
from ras_agent.contracts.errors import SettingsError
from ras_agent.graphs.resolve import role_options


def in_file(folder: Path, text: str) -> Path:
    file = folder / "ras-agent.toml"
    file.write_text(text)
    return file


def test_a_file_the_environment_and_flags_write_them_alike(tmp_path: Path) -> None:
    file = in_file(
        tmp_path,
        """
        top_p = 0.9
        extra_body = { top_k = 20 }
        [headers]
        x-team = "a"
        [roles.planner]
        reasoning_effort = "low"
        chat_template_kwargs = { enable_thinking = false }
        """,
    )
    variables = {
        "RAS_AGENT_TOP_P": "0.9",
        "RAS_AGENT_EXTRA_BODY": "top_k=20",
        "RAS_AGENT_HEADERS": '{"x-team": "a"}',
        "RAS_AGENT_ROLES": '{"planner": {"reasoning_effort": "low", "chat_template_kwargs": '
        '{"enable_thinking": false}}}',
    }
    flags = {
        "top_p": 0.9,
        "extra_body": ["top_k=20"],
        "headers": ["x-team=a"],
        "roles": [
            "planner.reasoning_effort=low",
            "planner.chat_template_kwargs.enable_thinking=false",
        ],
    }
    settings = load_settings(file, {})
    assert settings == load_settings(None, variables) == load_settings(None, {}, flags)
    assert settings.extra_body == {"top_k": 20}
    assert settings.roles == {
        "planner": {
            "reasoning_effort": "low",
            "chat_template_kwargs": {"enable_thinking": False},
        }
    }


def test_a_role_has_its_own_settings_in_place_of_the_common_ones() -> None:
    settings = Settings(
        top_p=0.9,
        headers={"x-team": "a"},
        roles={"planner": {"top_p": 0.1, "headers": {"x-role": "p"}}},
    )
    planner = settings.for_role("planner")
    assert (planner.top_p, planner.headers) == (0.1, {"x-team": "a", "x-role": "p"})
    assert settings.for_role("answerer") is settings


def test_an_agents_roles_are_called_by_their_own_settings() -> None:
    options = role_options(
        Settings(
            temperature=0.5, roles={"planner": {"temperature": 0.2, "timeout": 300}}
        )
    )
    assert (
        options.for_role("planner").chat.temperature,
        options.for_role("planner").chat.timeout,
    ) == (0.2, 300.0)
    assert options.for_role("reasoner").chat.temperature == 0.2
    assert (
        options.for_role("answerer").chat.temperature,
        options.for_role("answerer").chat.timeout,
    ) == (0.5, None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"extra_body": {"messages": []}},
            "'messages' cannot be set here: the role's model and its prompts say it",
        ),
        (
            {"extra_body": "top_k"},
            "extra_body must be written as NAME=VALUE, or as a JSON object",
        ),
        (
            {"roles": {"planer": {"top_p": 1}}},
            "'planer' is not a role that can have its own settings; did you mean planner",
        ),
        (
            {"roles": {"planner": {"topp": 1}}},
            "planner has the unknown setting 'topp'; did you mean top_p",
        ),
        (
            {"roles": "planner.top_p=3"},
            "planner.top_p: input should be less than or equal to 1, got 3",
        ),
        ({"roles": "planner"}, "roles must be written as NAME=VALUE"),
        ({"headers": {"x team": "a"}}, "'x team' is not the name of a header"),
        (
            {"headers": {"Host": "a"}},
            "'Host' cannot be set, because the HTTP connection sets it: leave it out",
        ),
        ({"top_p": 2}, "less than or equal to 1, got 2"),
    ],
)
def test_what_cannot_be_sent_is_an_error_that_says_why(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        Settings(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"headers": {"x-key": "sword\nfish"}},
        {"headers": "swordfish"},
        {"headers": {"x-key": ["swordfish"]}},
        {"api_keys": "sword-fish"},
        {"roles": {"planner": {"headers": {"x-key": "sword\nfish"}}}},
    ],
)
def test_no_message_shows_what_may_be_a_secret(values: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as told:
        Settings(**values)
    assert "sword" not in str(told.value)


def test_settings_show_no_value_of_a_header_but_a_variables_name() -> None:
    settings = Settings(
        headers={"x-key": "swordfish", "x-gateway": "env:GATEWAY_KEY"},
        roles={"planner": {"headers": {"x-a": "swordfish"}}},
    )
    assert "swordfish" not in repr(settings)
    assert "env:GATEWAY_KEY" in repr(settings)


def test_settings_go_over_a_pipe_to_another_process_and_back() -> None:
    settings = Settings(
        headers={"x-key": "swordfish"},
        roles={"planner": {"headers": {"x-a": "b"}}},
        extra_body={"top_k": 20},
    )
    assert (
        Settings.model_validate(settings.model_dump(mode="json", exclude_unset=True))
        == settings
    )


def test_a_variable_may_be_a_part_of_a_header() -> None:
    headers = {"Authorization": "Bearer env:TOKEN", "x-mail": "me@env:here"}
    assert with_values({"Authorization": headers["Authorization"]}, {"TOKEN": "t"}) == {
        "Authorization": "Bearer t"
    }
    assert described_headers(headers)["authorization"] == "***"


def test_a_manifest_states_what_may_change_a_reply_and_no_secret() -> None:
    settings = Settings(
        seed=7,
        api_keys="KEY_A",
        headers={"x-key": "swordfish", "x-version": "2"},
        roles={
            "planner": {
                "headers": {"x-token": "swordfish"},
                "top_p": 0.5,
                "api_keys": "KEY_B",
            }
        },
    )
    described = described_request(settings)
    assert described == {
        "seed": 7,
        "headers": {"x-key": "***", "x-version": "sha256:d4735e3a"},
        "roles": {"planner": {"headers": {"x-token": "***"}, "top_p": 0.5}},
    }
    assert described_request(Settings()) == {}


@pytest.mark.parametrize(
    "line",
    [
        'headers = {x-key = "env:OPENAI_API_KEY"}',
        'api_keys = "OPENAI_API_KEY"',
        '[roles.planner]\napi_keys = "OPENAI_API_KEY"',
        '[roles.planner.headers]\nx-key = "Bearer env:OPENAI_API_KEY"',
    ],
)
def test_a_file_of_the_working_folder_names_no_variable_whose_value_is_sent(
    tmp_path: Path, line: str
) -> None:
    file = in_file(tmp_path, f'llm = "vllm:http://somewhere.example/v1#m"\n{line}\n')
    with pytest.raises(
        SettingsError, match=r"names environment variables \(OPENAI_API_KEY\)"
    ):
        refuse_keys(file, unnamed_destinations(file, None, {}), {})
    # the user named the file
    refuse_keys(file, unnamed_destinations(file, file, {}), {})


def test_a_secret_on_the_command_line_is_refused() -> None:
    with pytest.raises(
        SettingsError,
        match="others can see the command line; name a variable: --headers x-key=env:NAME",
    ):
        load_settings(None, {}, {"headers": ["x-key=swordfish"]})
    load_settings(None, {}, {"headers": ["x-key=env:KEY", "x-team=a"]})
