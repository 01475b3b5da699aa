"""Every program of ras_agent.train says in its help the meaning of each option, and its default."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest

import ras_agent.train
from ras_agent.config.registry import PLUGINS, is_registered
from ras_agent.train.loop import FitConfig
from ras_agent.train.options import config_from

_FOLDER = Path(ras_agent.train.__file__).parent
_LEFT_OUT = (None, False, argparse.SUPPRESS)


def _programs() -> list[str]:
    files = (
        path
        for path in sorted(_FOLDER.rglob("*.py"))
        if "__main__" in path.read_text("utf-8")
    )
    return [
        ".".join(("ras_agent.train", *file.relative_to(_FOLDER).with_suffix("").parts))
        for file in files
    ]


class _ParserMadeError(Exception):
    """Carries the parser of a program, which goes no further."""


def _parser(program: str, monkeypatch: pytest.MonkeyPatch) -> argparse.ArgumentParser:
    def stop(parser: argparse.ArgumentParser, *arguments: Any) -> NoReturn:
        raise _ParserMadeError(parser)

    main = import_module(program).main
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    with pytest.raises(_ParserMadeError) as made:
        main()
    parser: argparse.ArgumentParser = made.value.args[0]
    return parser


def test_there_are_programs() -> None:
    assert len(_programs()) >= 14


@pytest.mark.parametrize("program", _programs())
def test_no_option_lacks_a_word(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = [
        one for one in _parser(program, monkeypatch)._actions if one.dest != "help"
    ]
    assert options
    assert [
        one.dest
        for one in options
        if len((one.help or "").partition("(")[0].split()) < 2
    ] == []


@pytest.mark.parametrize("program", _programs())
def test_an_option_that_may_be_left_out_says_what_it_is_then(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = _parser(program, monkeypatch)
    shown = [one for one in parser._actions if one.default not in (*_LEFT_OUT, [])]
    assert [
        one.dest for one in shown if f"(default: {one.default})" not in (one.help or "")
    ] == []


def test_the_help_has_the_sentence_of_a_field_and_its_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        config_from(FitConfig, "About.", ["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--rate RATE The highest learning rate. (default: 0.0001)" in text
    assert (
        "--bf16, --no-bf16 Compute in bfloat16; if not set, wherever the graphics processor has it. (not set)"
        in text
    )
    assert (
        "--validate-first, --no-validate-first Validate before the first step" in text
    )
    assert "may be the best. (default: off)" in text


def test_a_plug_in_file_is_run_before_its_names_are_needed(tmp_path: Path) -> None:
    file = tmp_path / "named_here.py"
    file.write_text(
        "from ras_agent import register\nregister('encoder', 'named-here', int)\n"
    )
    config_from(FitConfig, "About.", ["--plugin", str(file)])
    try:
        assert is_registered("encoder", "named-here")
    finally:
        del PLUGINS["encoder"]["named-here"]
