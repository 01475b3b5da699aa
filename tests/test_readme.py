"""The README and the docs are true: commands and flags exist, code runs, the demo prints its trace."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent.app.cli import build_program

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
_FILES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "lab").glob("*.md")),
)
PAGES = {str(page): page.read_text("utf-8") for page in _FILES}
DEMO = (
    "Which river flows through the city where the inventor of the telephone was born?"
)
# a command in a fenced block, in an indented one, or inside a line
_FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^ {4,}(?:\$ )?(\S.*)$", re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")
_FLAG = re.compile(r"--[a-z][a-z0-9-]*")


def _blocks(language: str) -> list[str]:
    return [
        text
        for page in PAGES.values()
        for name, text in _FENCED.findall(page)
        if name == language
    ]


def _commands(*program: str) -> list[list[str]]:
    """Return the words of every command that begins with the words `program`, on any page and in any form."""
    found: list[list[str]] = []
    for page in PAGES.values():
        text = page.replace("\\\n", " ")
        fenced = [
            line
            for name, block in _FENCED.findall(text)
            if name == "bash"
            for line in block.splitlines()
        ]
        rest = _FENCED.sub("", text)
        for line in (*fenced, *_INDENTED.findall(rest), *_INLINE.findall(rest)):
            if line.strip().startswith(program[0]):
                words = shlex.split(line, comments=True)
                if words[: len(program)] == list(program):
                    found.append(words)
    return found


def _ras_agent(*arguments: str) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ras-agent")), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={
            "PATH": "/usr/bin:/bin",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PYTHONUTF8": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        },
    )
    return done.stdout


GROUPS = ("kg", "study", "threads")


def _command(words: list[str]) -> tuple[str, ...]:
    """Return the command's name; both names of a command in a group."""
    name = words[1:3] if words[1] in GROUPS else words[1:2]
    return tuple(word for word in name if not word.startswith("-"))


def test_every_make_target_exists() -> None:
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    )
    named = {words[1] for words in _commands("make")}
    assert {"demo", "test"} <= named <= targets


def test_every_command_has_the_flags_it_is_shown_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = [
        words
        for words in _commands("ras-agent")
        if len(words) > 1 and not words[1].startswith("-")
    ]
    assert {words[1] for words in shown} >= {"index", "ask", "doctor", "eval", "kg"}
    program = build_program()
    for command in {_command(words) for words in shown}:
        page = "--help" if command[-1] in GROUPS else "--help-all"
        help_text = CliRunner().invoke(program, [*command, page])
        assert help_text.exit_code == 0, command
        flags = {
            word.partition("=")[0]
            for words in shown
            if _command(words) == command
            for word in words
        }
        assert {flag for flag in flags if flag.startswith("--")} <= set(
            _FLAG.findall(help_text.stdout)
        ), command


def find_any(name: str) -> object:
    """Return how a module would be imported; None where a part of its name is not there."""
    try:
        return find_spec(name)
    except ModuleNotFoundError:
        return None


NAMED = {words[2] for words in _commands("python", "-m")}
GONE = {name for name in NAMED if name.startswith("lab.") and find_any(name) is None}
"""Programs of experiments that are decided: pages of lab/ name them, and lab/README.md the commit that has them."""
MODULES = sorted(NAMED - GONE)


def test_programs_that_are_gone_are_named_in_lab_alone() -> None:
    for path, page in PAGES.items():
        if Path(path).parent != ROOT / "lab":
            named = set(re.findall(r"python -m (lab[\w.]*)", page))
            assert named.isdisjoint(GONE), path


def test_the_pages_show_programs_to_run() -> None:
    assert {"ras_agent.eval.bench", "ras_agent.train.gfm.train"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_every_program_has_the_flags_it_is_shown_with(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    assert ended.value.code in (0, None)
    flags = {
        word
        for words in _commands("python", "-m", module)
        for word in words
        if word.startswith("--")
    }
    assert flags <= set(_FLAG.findall(capsys.readouterr().out))


@pytest.mark.parametrize(
    "code", _blocks("python"), ids=lambda code: code.strip().splitlines()[0][:40]
)
def test_the_python_code_compiles_and_names_what_there_is(code: str) -> None:
    compile(code, "docs", "exec", flags=0x2000)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for module, names in re.findall(
        r"^from (ras_agent[\w.]*) import (.+)$", code, re.MULTILINE
    ):
        found = __import__(module, fromlist=["*"])
        for name in names.split(","):
            assert hasattr(found, name.strip())


def test_the_trace_is_what_the_demo_prints() -> None:
    (shown,) = [
        text
        for name, text in _FENCED.findall(README)
        if name == "console" and text.startswith("$ make demo")
    ]
    printed = _ras_agent("ask", "--sample", DEMO)

    def lines(text: str) -> list[str]:
        timeless = re.sub(r"[\d.]+ s\b", "… s", text)
        return [
            line.rstrip()
            for line in timeless.splitlines()
            if line.strip() and not line.startswith("$")
        ]

    assert lines(shown) == lines(printed)


def test_links_of_llms_txt_exist() -> None:
    links = re.findall(r"\]\(([\w./-]+)\)", (ROOT / "llms.txt").read_text("utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_the_readme_s_code_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = [text for name, text in _FENCED.findall(README) if name == "python"]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith(
        "Water of Leith ['Alexander Graham Bell, the inventor"
    )
