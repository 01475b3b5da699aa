"""Settings: flags override the environment, which overrides the file; a typing error is reported with its place."""

import traceback
from pathlib import Path
from typing import Any

import pytest

from ras_agent.config.address import Address
from ras_agent.config.settings import Settings, find_config, load_settings
from ras_agent.config.settings.trust import (
    refuse_code,
    refuse_keys,
    unnamed_destinations,
)
from ras_agent.contracts.errors import FlagError, SettingsError
from ras_agent.tools.chat.models import build_chat_model
from ras_agent.tools.chat.openai_chat import OpenAIChat
from tests.messages import says


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "ras-agent.toml"


def test_without_anything_the_defaults_are_the_papers() -> None:
    assert load_settings(None, {}) == Settings()
    assert (Settings().max_hops, Settings().k, Settings().loop) == (5, 5, "ras")


def test_flags_win_over_the_environment_and_the_environment_over_the_file(
    config: Path,
) -> None:
    config.write_text('planner = "file"\nanswerer = "file"\nextractor = "file"\n')
    environment = {
        "RAS_AGENT_PLANNER": "environment",
        "RAS_AGENT_ANSWERER": "environment",
    }
    settings = load_settings(
        config, environment, {"planner": "flag", "extractor": None}
    )
    assert (settings.planner, settings.answerer, settings.extractor) == (
        "flag",
        "environment",
        "file",
    )


def test_variables_are_read_as_the_type_of_their_setting() -> None:
    environment = {
        "RAS_AGENT_MAX_HOPS": "3",
        "RAS_AGENT_MAX_SECONDS": "1.5",
        "RAS_AGENT_FEW_SHOT": "true",
    }
    settings = load_settings(None, environment)
    assert (settings.max_hops, settings.max_seconds, settings.few_shot) == (
        3,
        1.5,
        True,
    )


def test_empty_and_foreign_variables_are_no_settings() -> None:
    assert (
        load_settings(None, {"RAS_AGENT_MAX_HOPS": "", "MAX_HOPS": "3"}) == Settings()
    )


def test_relative_paths_in_a_file_start_from_its_folder(
    config: Path, tmp_path: Path
) -> None:
    config.write_text('index = "my.index"\nprompts = "/prompts"\n')
    settings = load_settings(config, {})
    assert (settings.index, settings.prompts) == (
        tmp_path / "my.index",
        Path("/prompts"),
    )


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"RAS_AGENT_MAX_HOP": "3"},
            "environment: unknown setting RAS_AGENT_MAX_HOP; did you mean RAS_AGENT_MAX_HOPS?",
        ),
        (
            {"RAS_AGENT_MAX_HOPS": "0"},
            "environment: RAS_AGENT_MAX_HOPS: input should be greater than 0, got '0'",
        ),
        (
            {"RAS_AGENT_OVERLAP": "1000"},
            "overlap 1000 must be less than chunk_size 1000",
        ),
    ],
)
def test_a_wrong_variable_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings(None, environment)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("plannner = 'x'", "unknown setting 'plannner'; did you mean 'planner'?"),
        (
            "max_hops = 2.5",
            "'max_hops': input should be a valid integer, got a number with a fractional part, got 2.5",
        ),
        (
            "dialect = 'r2'",
            "'dialect': unknown dialect 'r2'; known: autorefine, corag, r1-searcher, ras, react, search-r1, "
            "think-on-graph, tool-json",
        ),
        (
            "loop = 'tree'",
            "'loop': unknown loop 'tree'; known: ircot, ras, react, single-shot",
        ),
        (
            "openai_api_key = 'x'",
            "unknown setting 'openai_api_key'; "
            "a key goes into the variable that its provider reads, such as OPENAI_API_KEY",
        ),
        (
            '[fields."*.csv"]\ntexts = "body"',
            "'fields': '*.csv' must name text, title or id, such as text = \"body\", got {'texts': 'body'}",
        ),
        (
            "max_hops 3",
            "not valid TOML (Expected '=' after a key in a key/value pair (at line 1, column 10)): correct the file",
        ),
    ],
)
def test_a_wrong_line_is_reported_with_its_file(
    config: Path, line: str, message: str
) -> None:
    config.write_text(line)
    with pytest.raises(SettingsError) as raised:
        load_settings(config, {})
    assert str(raised.value) == f"{config}: {message}"


def test_fields_by_kind_of_file_are_a_table_or_flags(config: Path) -> None:
    config.write_text('[fields."*.jsonl"]\ntext = "body"\nid = ""\n')
    assert load_settings(config, {}).fields == {"*.jsonl": {"text": "body", "id": None}}
    flags = {"fields": ["*.csv:text=a:b, title=name", "c/*:id="]}
    assert load_settings(None, {}, flags).fields == {
        "*.csv": {"text": "a:b", "title": "name"},
        "c/*": {"id": None},
    }
    for wrong in ("*.jsonl:body", ":text=body", "=body"):
        with pytest.raises(
            FlagError,
            match=says(
                "--fields",
                "expected text=KEY or PATTERN:text=KEY",
                "'*.jsonl:text=body'",
            ),
        ):
            load_settings(None, {}, {"fields": [wrong]})


def test_fields_without_a_pattern_are_those_of_all_files() -> None:
    assert load_settings(None, {}, {"fields": ["text=a:b,id="]}).fields == {
        "*": {"text": "a:b", "id": None}
    }


def test_an_unknown_setting_lists_the_known_ones(config: Path) -> None:
    config.write_text("zebra = 'red'")
    with pytest.raises(
        SettingsError,
        match=says("unknown setting 'zebra'", "known: 'answer_tokens', 'answerer'"),
    ):
        load_settings(config, {})


def test_the_given_file_is_read_else_the_variable_s_else_this_folder_s_else_the_user_s(
    tmp_path: Path,
) -> None:
    def file(name: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    environment = {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    assert find_config(None, environment, tmp_path / "here") is None
    home = file("home/ras-agent/config.toml")
    assert find_config(None, environment, tmp_path / "here") == home
    here = file("here/ras-agent.toml")
    assert find_config(None, environment, tmp_path / "here") == here
    named = file("named.toml")
    assert (
        find_config(
            None, environment | {"RAS_AGENT_CONFIG": str(named)}, tmp_path / "here"
        )
        == named
    )
    assert (
        find_config(file("given.toml"), environment, tmp_path / "here")
        == tmp_path / "given.toml"
    )


def test_a_named_file_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone.toml' does not exist"):
        find_config(tmp_path / "gone.toml", {})


def test_a_user_without_a_home_has_no_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pwd

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert find_config(None, {}, tmp_path) is None


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A settings file of the working directory that names servers and places."""
    path = tmp_path / "ras-agent.toml"
    path.write_text(
        'llm = "vllm:http://me:secret@127.0.0.1:9/v1#m"\nplanner = "offline"\ncache = "../replies.sqlite"\nk = 3\n'
    )
    return path


def test_a_file_of_the_working_directory_says_where_it_leads(
    here: Path, tmp_path: Path
) -> None:
    assert unnamed_destinations(here, None, {}) == {
        "llm": "vllm:http://me:secret@127.0.0.1:9/v1#m",
        "cache": str(tmp_path / "../replies.sqlite"),
    }
    assert unnamed_destinations(here, None, {}, work="index") == {}


def test_what_flags_and_variables_set_does_not_come_from_the_file(
    here: Path, tmp_path: Path
) -> None:
    environment = {"RAS_AGENT_CACHE": "mine.sqlite"}
    assert (
        unnamed_destinations(
            here, None, environment, {"llm": "openai:gpt-4o-mini", "k": None}
        )
        == {}
    )


def test_a_file_that_the_user_named_or_owns_is_trusted(
    here: Path, tmp_path: Path
) -> None:
    assert unnamed_destinations(here, here, {}) == {}
    assert unnamed_destinations(here, None, {"RAS_AGENT_CONFIG": str(here)}) == {}
    assert unnamed_destinations(here.rename(tmp_path / "config.toml"), None, {}) == {}
    assert unnamed_destinations(None, None, {}) == {}


def test_no_key_goes_to_a_server_that_only_such_a_file_names(here: Path) -> None:
    destinations = unnamed_destinations(here, None, {})
    refuse_keys(here, destinations, {"OPENAI_API_KEY": "secret"})
    place = says(str(here), "'llm'", "http://127.0.0.1:9", "VLLM_API_KEY is set")
    remedy = says(
        "If you trust the file",
        f"--config {here}",
        f"RAS_AGENT_CONFIG={here}",
        "unset VLLM_API_KEY",
    )
    with pytest.raises(SettingsError, match=place) as raised:
        refuse_keys(here, destinations, {"VLLM_API_KEY": "secret"})
    assert remedy.search(str(raised.value))
    assert "secret" not in str(raised.value)


def test_an_index_is_a_folder_or_an_address_that_shows_no_password(
    config: Path,
) -> None:
    config.write_text('index = "my.index"\n')
    assert load_settings(config, {}).index == config.parent / "my.index"
    config.write_text('index = "postgresql://me:secret@host/db?schema=handbook"\n')
    settings = load_settings(config, {})
    assert settings.index == Address("postgresql://me:secret@host/db", "handbook")
    assert str(settings.index) == "postgresql://me@host/db?schema=handbook"
    assert "secret" not in repr(settings) + settings.model_dump_json()


def test_a_wrong_address_is_refused_without_its_password() -> None:
    with pytest.raises(
        SettingsError, match="the schema of an index must be one name"
    ) as raised:
        load_settings(
            None, {"RAS_AGENT_INDEX": "postgresql://me:secret@host/db?schema=A-B"}
        )
    assert "secret" not in str(raised.value)


def test_a_database_that_only_a_file_of_the_working_directory_names_is_shown_and_gets_no_password(
    tmp_path: Path,
) -> None:
    here = tmp_path / "ras-agent.toml"
    here.write_text('index = "postgresql://me:secret@host/db"\n')
    destinations = unnamed_destinations(here, None, {})
    assert destinations == {"index": "postgresql://me@host/db"}
    refuse_keys(here, destinations, {})
    with pytest.raises(
        SettingsError,
        match=says("PGPASSWORD is set", "folder names"),
    ):
        refuse_keys(here, destinations, {"PGPASSWORD": "secret"})
    here.write_text(
        'cache = "postgresql://me:secret@host/db"\ntriple_cache = "facts.sqlite"\n'
    )
    destinations = unnamed_destinations(here, None, {})
    assert destinations == {
        "cache": "postgresql://me@host/db",
        "triple_cache": str(tmp_path / "facts.sqlite"),
    }
    with pytest.raises(SettingsError, match=says("'cache'", "PGPASSWORD is set")):
        refuse_keys(here, destinations, {"PGPASSWORD": "secret"})
    here.write_text('index = "my.index"\nretriever = "dense"\n')
    assert unnamed_destinations(here, None, {}) == {}


def test_code_that_only_a_file_of_the_working_directory_names_is_not_run(
    tmp_path: Path,
) -> None:
    here = tmp_path / "ras-agent.toml"
    here.write_text('retriever = "langchain:my_store:store"\n')
    with pytest.raises(SettingsError, match="--retriever langchain:my_store:store"):
        refuse_code(here, unnamed_destinations(here, None, {}))
    refuse_code(here, unnamed_destinations(here, here, {}))
    refuse_code(
        here,
        unnamed_destinations(here, None, {}, {"retriever": "langchain:mine:store"}),
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"maxhops": 3}, ("unknown setting 'maxhops'", "did you mean 'max_hops'")),
        (
            {"zebra": "red"},
            ("unknown setting 'zebra'", "known: 'answer_tokens', 'answerer'"),
        ),
        ({"api_key": "x"}, ("unknown setting 'api_key'", "OPENAI_API_KEY")),
        ({"max_hops": "many"}, ("'max_hops'", "integer", "got 'many'")),
        ({"style": "shrt"}, ("'style'", "'short'", "got 'shrt'")),
        ({"overlap": 2000}, ("overlap 2000 must be less than chunk_size 1000",)),
    ],
)
def test_settings_made_in_python_say_what_is_wrong_and_what_was_meant(
    values: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(SettingsError, match=says(*words)):
        Settings(**values)


@pytest.mark.parametrize("place", ["file", "environment", "call"])
def test_the_loop_may_be_named_by_its_old_name(place: str, config: Path) -> None:
    config.write_text('graph = "ircot"\nretriever = "graph+dense"\n')
    values = {"graph": "ircot", "retriever": "graph+dense"}
    variables = {f"RAS_AGENT_{key.upper()}": value for key, value in values.items()}
    read = {
        "file": lambda: load_settings(config, {}),
        "environment": lambda: load_settings(None, variables),
        "call": lambda: Settings(**values),  # type: ignore[arg-type]
    }
    with pytest.warns(FutureWarning) as notices:
        settings = read[place]()
    assert (settings.loop, settings.retriever) == ("ircot", "kg-mix+dense")
    old, new = {
        "file": ("'graph'", "'loop'"),
        "environment": ("RAS_AGENT_GRAPH", "RAS_AGENT_LOOP"),
        "call": ("'graph'", "'loop'"),
    }[place]
    assert [str(notice.message) for notice in notices] == [
        f"{old} is called {new} now: write {new}",
        "retriever 'graph' is called kg-mix now: write kg-mix",
    ]


def test_the_new_name_wins_over_the_old_one() -> None:
    with pytest.warns(FutureWarning):
        assert Settings(loop="react", graph="ircot").loop == "react"  # type: ignore[call-arg]


LOGIN = "http://bob:hunter2hunter2@host:8000/v1"


@pytest.mark.parametrize(
    "given",
    [
        {"llm": f"vllm:{LOGIN}#m"},
        {"llm": [f"vllm:{LOGIN}#m"]},
        {"llmm": f"vllm:{LOGIN}#m"},
        {"checkpoint": "postgresql://bob:hunter2hunter2@host/threads"},
        {"planner": "vllm:bob:hunter2hunter2@host/v1#m"},
    ],
)
def test_settings_and_what_is_wrong_with_them_show_no_password(given: Any) -> None:
    try:
        shown = repr(Settings(**given)) + str(Settings(**given))
    except SettingsError as error:
        shown = "".join(traceback.format_exception(error))
    assert "hunter2" not in shown


def test_a_model_of_an_address_shows_neither_password_nor_header() -> None:
    model = OpenAIChat(
        model="m", base_url=LOGIN, default_headers={"X-Key": "hunter2hunter2"}
    )
    assert "hunter2" not in repr(model) + str(model)
    with pytest.raises(SettingsError) as error:
        build_chat_model("vllm:bob:hunter2hunter2@host/v1#m")
    assert "hunter2" not in str(error.value)
