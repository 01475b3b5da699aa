"""What the README shows is true: its commands exist, its code runs, its trace is what the demo prints."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
DEMO = "Which river flows through the city where the inventor of the telephone was born?"


def _blocks(language: str) -> list[str]:
    return [text for name, text in BLOCKS if name == language]


def _commands(program: str) -> list[list[str]]:
    lines = "\n".join(_blocks("bash")).replace("\\\n", " ").splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words for words in split if words and words[0] == program]


def _ras_agent(*arguments: str) -> str:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ras-agent")), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"},
    )
    return done.stdout


def _command(words: list[str]) -> tuple[str, ...]:
    """The command's name; of a group of commands both names."""
    return tuple(words[1:3] if words[1] == "kg" else words[1:2])


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {words[1] for words in _commands("make")}
    assert {"demo", "test"} <= named <= targets


def test_every_command_has_the_flags_it_is_shown_with() -> None:
    shown = _commands("ras-agent")
    assert {words[1] for words in shown} >= {"index", "ask", "doctor"}
    for command in {_command(words) for words in shown}:
        flags = {word for words in shown if _command(words) == command for word in words if word.startswith("--")}
        assert flags <= set(re.findall(r"--[a-z][a-z-]*", _ras_agent(*command, "--help"))), command


def test_every_python_module_that_is_run_has_the_flags_it_is_shown_with() -> None:
    for words in _commands("python"):
        assert words[1] == "-m"
        shown = subprocess.run(
            [sys.executable, "-P", "-m", words[2], "--help"], capture_output=True, text=True, check=True
        )
        assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[a-z][a-z-]*", shown.stdout))


@pytest.mark.parametrize("code", _blocks("python"), ids=lambda code: code.strip().splitlines()[0][:40])
def test_the_python_code_compiles_and_names_what_there_is(code: str) -> None:
    compile(code, "README.md", "exec", flags=0x2000)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for module, names in re.findall(r"^from (ras_agent[\w.]*) import (.+)$", code, re.MULTILINE):
        found = __import__(module, fromlist=["*"])
        for name in names.split(","):
            assert hasattr(found, name.strip())


def test_the_trace_is_what_the_demo_prints() -> None:
    (shown,) = [text for text in _blocks("console") if text.startswith("$ make demo")]
    printed = _ras_agent("ask", "--sample", DEMO)

    def lines(text: str) -> list[str]:
        timeless = re.sub(r"[\d.]+ s\b", "… s", text)
        return [line.rstrip() for line in timeless.splitlines() if line.strip() and not line.startswith("$")]

    assert lines(shown) == lines(printed)
