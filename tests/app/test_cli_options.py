"""Options come from the fields of Settings: a new field is an option, a variable and a key of the file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from ras_agent.app.cli import build_program, program, settings_table
from ras_agent.app.cli.options import AnswerSettings, GivenFlags, with_options
from ras_agent.app.cli.program import show_warning
from ras_agent.errors import SettingsError
from ras_agent.settings import Settings, describe

DOCS = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


class MySettings(Settings):
    """Has two fields more than the program's own settings."""

    tone: Literal["dry", "warm"] = Field("dry", description="Tone of the [answer].")
    patience: Annotated[int | None, Field(description="How long to wait.", json_schema_extra={"work": ["index"]})] = (
        None
    )


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


def _say(question: str, *, settings: AnswerSettings, given: GivenFlags, k: int = 0) -> None:
    """Print what reached the command."""
    assert isinstance(settings, MySettings)
    typer.echo(f"{question} {settings.tone} {settings.k} {k} {sorted(given)}")


@pytest.fixture
def say() -> Callable[..., str]:
    """`say("Who?", "--tone", "warm")`: a command over MySettings."""
    app = typer.Typer()
    app.command()(with_options(_say, MySettings))
    return lambda *arguments: CliRunner().invoke(app, arguments, obj={}, catch_exceptions=False).output


@pytest.mark.parametrize("command", [("ask",), ("eval",), ("study",), ("kg", "build"), ("structure",), ("index",)])
def test_a_new_field_is_an_option_of_every_command_that_takes_settings(command: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(build_program(MySettings), [*command, "--help"]).stdout
    assert "--tone " in shown
    assert "Tone of the [answer]. One of dry, warm. [default: dry]" in shown
    assert ("--patience" in shown) == (command == ("index",))


def test_a_new_field_is_read_from_file_environment_and_flag(
    say: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert say("Who?") == "Who? dry 5 0 []\n"
    Path("ras-agent.toml").write_text('tone = "warm"\n')
    assert say("Who?") == "Who? warm 5 0 []\n"
    monkeypatch.setenv("RAS_AGENT_TONE", "dry")
    assert say("Who?") == "Who? dry 5 0 []\n"
    assert say("Who?", "--tone", "warm") == "Who? warm 5 0 ['tone']\n"


def test_a_command_may_define_an_option_of_the_same_name_itself(say: Callable[..., str]) -> None:
    assert say("Who?", "--k", "3") == "Who? dry 5 3 []\n"


def test_commands_of_one_work_take_the_same_options() -> None:
    def flags(*command: str) -> set[str]:
        shown = CliRunner().invoke(build_program(), [*command, "--help"]).stdout
        begun = [line.lstrip("│ *") for line in shown.splitlines()]  # a help text may name another option
        return {name for name in describe() if any(line.startswith(f"--{name.replace('_', '-')} ") for line in begun)}

    answering, extracting = set(describe(work="answer")), set(describe(work="extract"))
    assert flags("ask") == {*answering, "review", "checkpoint"} == set(describe(work="ask"))
    # they make an index where none is given, so they take what embeds it, too
    assert flags("eval") == flags("study") == {*answering, "embedder"}
    assert flags("kg", "build") == extracting | {"embedder"}
    assert flags("structure") == extracting | {"index"}
    assert flags("index") == set(describe(work="index"))


def test_every_setting_has_a_help_text_and_is_taken_by_some_command() -> None:
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in settings_table().splitlines()[2:]]
    assert [name for name, *_ in rows] == list(Settings.model_fields)
    assert all(meaning and takers for _, _, meaning, takers in rows)
    assert ["max_hops", "5", "Most hops.", "ask`, `serve`, `mcp`, `eval`, `study"] in rows


def test_the_docs_show_the_table_of_the_fields() -> None:
    remedy = 'python -c "from ras_agent.app.cli import settings_table; print(settings_table())"'
    assert settings_table() in DOCS.read_text("utf-8"), f"make the table anew: {remedy}"


def test_a_file_of_the_folder_that_names_a_server_or_a_place_is_named_on_screen(
    say: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    Path("ras-agent.toml").write_text('llm = "vllm:http://me:secret@127.0.0.1:9/v1#m"\ncache = "replies.sqlite"\n')
    line = "ras-agent: settings of ras-agent.toml: llm = vllm:http://127.0.0.1:9/v1#m, cache = replies.sqlite\n"
    assert say("Who?").startswith(line)
    assert not say("Who?", "--config", "ras-agent.toml").startswith("ras-agent: settings")
    monkeypatch.setenv("VLLM_API_KEY", "plainsecret")
    with pytest.raises(SettingsError, match="say so: --config ras-agent"):
        say("Who?")
    assert not say("Who?", "--config", "ras-agent.toml").startswith("ras-agent: settings")


def test_a_file_of_the_folder_that_names_neither_is_not_mentioned(say: Callable[..., str]) -> None:
    Path("ras-agent.toml").write_text('k = 3\nindex = "an.index"\nplanner = "offline"\n')
    assert say("Who?").startswith("Who?")


def test_a_warning_is_one_line_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    show_warning("replies are asked for\nwithout it \x1b[31m", RuntimeWarning, "cache.py", 7)
    assert capsys.readouterr().err == "ras-agent: replies are asked for without it [31m\n"


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
