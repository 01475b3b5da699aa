"""Options come from the fields of Settings: a new field is an option, a variable and a key of the file."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from ras_agent.app.cli import build_program, flags, program, settings_table
from ras_agent.app.cli.command import Command, each_command
from ras_agent.app.cli.program import COMMANDS, LazyGroup, show_warning
from ras_agent.config.registry import PLUGINS
from ras_agent.config.settings import Settings, describe
from ras_agent.contracts.errors import SettingsError

DOCS = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


class MySettings(Settings):
    """Has two fields more than the program's own settings."""

    tone: Literal["dry", "warm"] = Field("dry", description="Tone of the [answer].")
    stamina: Annotated[
        int | None,
        Field(
            description="How long to wait.",
            json_schema_extra={"work": ["index"], "everyday": True},
        ),
    ] = None


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The settings, as several commands share them."""

    settings: Settings
    flags: frozenset[str]


def _say(
    *,
    question: Annotated[str, typer.Argument()],
    k: Annotated[int, typer.Option()] = 0,
    shared: Shared,
) -> None:
    """Print the values that reached the command: an option that replaces a setting, and all settings."""
    settings = shared.settings
    assert isinstance(settings, MySettings)
    typer.echo(f"{question} {settings.tone} {settings.k} {k} {sorted(shared.flags)}")


@pytest.fixture
def say() -> Callable[..., str]:
    """`say("Who?", "--tone", "warm")`: a command over MySettings."""
    command = Command(f"{__name__}:_say", "Print the values.", work="answer")
    app = typer.Typer(cls=LazyGroup.over({"say": command}, MySettings))
    app.callback()(lambda: None)
    return lambda *arguments: (
        CliRunner().invoke(app, ["say", *arguments], catch_exceptions=False).output
    )


@cache  # making the page of a command takes a quarter of a second
def _help(
    *command: str, model: type[Settings] = Settings, page: str = "--help-all"
) -> str:
    return CliRunner().invoke(build_program(model), [*command, page]).stdout


def _flags(shown: str) -> list[str]:
    """Return the flags that a page of help lists; the text of another option may name one, too."""
    lines = [line.lstrip("│ *") for line in shown.splitlines()]
    return [line.split()[0].split(",")[0] for line in lines if line.startswith("--")]


@pytest.mark.parametrize(
    "command",
    [
        ("ask",),
        ("eval",),
        ("study", "roles"),
        ("kg", "build"),
        ("structure",),
        ("index",),
    ],
)
def test_a_new_field_is_an_option_of_every_command_that_takes_settings(
    command: tuple[str, ...],
) -> None:
    shown = _help(*command, model=MySettings)
    assert "--tone " in shown
    assert "Tone of the [answer]. One of dry, warm. [default: dry]" in shown
    assert ("--stamina" in shown) == (command == ("index",))
    first = _help(*command, model=MySettings, page="--help")
    assert ("--tone" in first, "--stamina" in first) == (False, command == ("index",))


def test_a_new_field_is_read_from_file_environment_and_flag(
    say: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert say("Who?") == "Who? dry 5 0 []\n"
    Path("ras-agent.toml").write_text('tone = "warm"\n')
    assert say("Who?") == "Who? warm 5 0 []\n"
    monkeypatch.setenv("RAS_AGENT_TONE", "dry")
    assert say("Who?") == "Who? dry 5 0 []\n"
    assert say("Who?", "--tone", "warm") == "Who? warm 5 0 ['tone']\n"


def test_a_command_may_define_an_option_of_the_same_name_itself(
    say: Callable[..., str],
) -> None:
    assert say("Who?", "--k", "3") == "Who? dry 5 3 []\n"


def test_commands_of_one_work_take_the_same_options() -> None:
    def settings(*command: str) -> set[str]:
        flags = {flag.partition("/")[0] for flag in _flags(_help(*command))}
        return {name for name in describe() if f"--{name.replace('_', '-')}" in flags}

    answering, extracting = set(describe(work="answer")), set(describe(work="extract"))
    assert (
        settings("ask")
        == {*answering, "review", "checkpoint"}
        == set(describe(work="ask"))
    )
    # they make an index where none is given, so they take its embedder, too
    assert (
        settings("eval")
        == settings("study", "roles")
        == {*describe(work="eval"), "embedder"}
    )
    assert set(describe(work="eval")) == {*answering, "starts"}
    assert settings("kg", "build") == extracting | {"embedder", "fallback"}
    assert settings("structure") == extracting | {"index"}
    assert settings("index") == set(describe(work="index"))


def test_the_first_page_of_help_is_short_and_leads_to_the_whole_one() -> None:
    assert _flags(_help("ask", page="--help")) == [
        "--sample", "--index", "--retriever", "--k", "--llm", "--planner", "--answerer", "--max-hops", "--save",
        "--json", "--verbose", "--config", "--help-all", "--help",
    ]  # fmt: skip
    for name, _ in each_command(COMMANDS):
        first = _flags(_help(*name.split(), page="--help"))
        assert len(first) <= 19, name
        assert set(first) < set(_flags(_help(*name.split()))), name


@pytest.mark.parametrize(
    "name", [name for name, command in each_command(COMMANDS) if command.work]
)
def test_the_whole_page_names_every_setting_of_the_command_in_panels(name: str) -> None:
    command = dict(each_command(COMMANDS))[name]
    shown = _help(*name.split())
    for setting in describe(work=command.work).values():
        assert f"--{setting.name.replace('_', '-')}" in shown, setting.name
        assert (
            f"─ {setting.panel} ─" in shown
            or not setting.panel
            or setting.name in _own(command)
        ), setting.panel


def _own(command: Command) -> set[str]:
    return set(flags._declared(command.run))


def test_an_option_that_only_the_whole_page_shows_is_taken_and_suggested(
    say: Callable[..., str],
) -> None:
    assert "--tone" not in say("--help")
    assert say("Who?", "--tone", "warm").startswith("Who? warm")
    wrong = CliRunner().invoke(build_program(), ["ask", "Who?", "--max-secnds", "3"])
    assert "No such option: --max-secnds" in wrong.stderr
    assert "--max-seconds" in wrong.stderr
    assert wrong.exit_code == 2


def test_an_option_that_only_the_whole_page_shows_is_completed() -> None:
    environment = {
        "_RAS_AGENT_COMPLETE": "complete_bash",
        "COMP_WORDS": "ras-agent ask --max-",
        "COMP_CWORD": "2",
    }
    done = CliRunner().invoke(
        build_program(), [], prog_name="ras-agent", env=environment
    )
    assert {"--max-hops", "--max-seconds"} <= set(done.stdout.split())


def test_commands_are_listed_in_their_order() -> None:
    shown = _help(page="--help")
    places = [shown.index(f"│ {name} ") for name in COMMANDS]
    panels = [
        shown.index(f"─ {panel} ─")
        for panel in ("Ask", "Your texts", "Evaluate", "Set up")
    ]
    assert panels == sorted(panels)
    assert places == sorted(places)


def test_a_start_describes_the_command_that_runs_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    described: list[str | None] = []
    typer_command = flags.typer_command

    def counted(
        told: Command, model: type[Settings] | None = None, name: str | None = None
    ) -> Any:
        described.append(name)
        return typer_command(told, model, name)

    monkeypatch.setattr(flags, "typer_command", counted)
    assert "ask" in CliRunner().invoke(build_program(), ["--help"]).stdout
    assert described == []
    CliRunner().invoke(build_program(), ["kg", "build", "--help"])
    assert described == ["build"]


def test_the_list_of_commands_imports_no_command_and_no_settings() -> None:
    names = "import sys; from ras_agent.app.cli import build_program; build_program(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", names], capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert "ras_agent.app.cli.command" in modules
    commands = {command.run.__module__ for _, command in each_command(COMMANDS)}
    assert modules.isdisjoint({"pydantic", "ras_agent.config.settings", *commands})


@pytest.mark.parametrize(("name", "command"), list(each_command(COMMANDS)))
def test_the_list_says_of_a_command_what_its_docstring_says(
    name: str, command: Command
) -> None:
    about, _, _ = (inspect.getdoc(command.run) or "").partition("\n\n")
    assert command.about == about.replace("\n", " ")


def test_every_setting_has_a_help_text_and_is_taken_by_some_command() -> None:
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]]
        for line in settings_table().splitlines()[2:]
    ]
    assert [name for name, *_ in rows] == list(Settings.model_fields)
    assert all(meaning and takers for _, _, meaning, takers in rows)
    assert [
        "max_hops",
        "5",
        "Largest number of hops.",
        "ask`, `serve`, `mcp`, `eval`, `replay`, `rollout`, `arena`, `study",
    ] in rows


def test_the_docs_show_the_table_of_the_fields() -> None:
    remedy = 'python -c "from ras_agent.app.cli import settings_table; print(settings_table())"'
    assert settings_table() in DOCS.read_text("utf-8"), f"make the table anew: {remedy}"


def test_a_file_of_the_folder_that_names_a_server_or_a_place_is_named_on_screen(
    say: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    Path("ras-agent.toml").write_text(
        'llm = "vllm:http://me:secret@127.0.0.1:9/v1#m"\ncache = "replies.sqlite"\n'
    )
    line = "ras-agent: settings of ras-agent.toml: llm = vllm:http://127.0.0.1:9/v1#m, cache = replies.sqlite\n"
    assert say("Who?").startswith(line)
    assert not say("Who?", "--config", "ras-agent.toml").startswith(
        "ras-agent: settings"
    )
    monkeypatch.setenv("VLLM_API_KEY", "plainsecret")
    with pytest.raises(SettingsError, match="give --config ras-agent"):
        say("Who?")
    assert not say("Who?", "--config", "ras-agent.toml").startswith(
        "ras-agent: settings"
    )
    for spec in ("http://127.0.0.1:9/rerank#m", "llm:vllm:http://127.0.0.1:9/v1#m"):
        Path("ras-agent.toml").write_text(f'reranker = "{spec}"\n')
        with pytest.raises(SettingsError, match="'reranker' names the server"):
            say("Who?")


def test_a_file_of_the_folder_that_names_neither_is_not_mentioned(
    say: Callable[..., str],
) -> None:
    Path("ras-agent.toml").write_text(
        'k = 3\nindex = "an.index"\nplanner = "offline"\n'
    )
    assert say("Who?").startswith("Who?")


def test_a_warning_is_one_line_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_warning(
        "models are called\nwithout it \x1b[31m", RuntimeWarning, "cache.py", 7
    )
    assert capsys.readouterr().err == "ras-agent: models are called without it [31m\n"


def test_an_interrupt_while_the_command_line_is_built_ends_it_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "build_program", interrupted)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 130


WORDS = """
from ras_agent import Hit, register


class First:
    def __init__(self, passages):
        self.passages = list(passages)

    def retrieve(self, query, k=5):
        return [Hit(passage, 1.0) for passage in self.passages[:k]]


register("retriever", "first-ones", lambda index: First(index.passages))
"""


def test_a_plugin_file_that_is_named_is_run_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLUGINS, "retriever", dict(PLUGINS["retriever"]))
    (tmp_path / "first_ones.py").write_text(WORDS)
    ask = ["ask", "Where was Bell born?", "--sample", "--retriever", "first-ones"]
    unknown = CliRunner().invoke(build_program(), ask)
    assert unknown.exit_code != 0
    assert "first-ones" in str(unknown.output) + str(unknown.exception)
    answered = CliRunner().invoke(build_program(), ["--plugin", "first_ones.py", *ask])
    assert answered.exit_code == 0, (answered.output, answered.exception)
    assert "Edinburgh" in answered.stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "the Python file"),
        ("\n\n1 / 0", "broken.py line 3: ZeroDivisionError"),
        ("def", "broken.py: SyntaxError"),
    ],
)
def test_a_plugin_file_that_fails_is_named_with_its_line(
    text: str | None, told: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "broken.py").write_text(text)
    failed = CliRunner().invoke(build_program(), ["--plugin", "broken.py", "ask", "q"])
    assert failed.exit_code != 0
    assert told in failed.output
