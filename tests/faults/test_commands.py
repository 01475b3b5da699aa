"""Attacks on the commands: locked files, full disks, keys in errors, text that steers a terminal."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ras_agent.app.cli import build_program
from ras_agent.tools.store.cache import StoredCache
from ras_agent.tools.store.sqlite import SqliteDatabase
from tests.faults.attack import Attack
from tests.faults.faulty_server import FAULTS, SECRET, Server, serving
from tests.faults.interruptions import run

FACTS = {
    "reply": "(S> Hull | P> was built by | O> Ann Rowe)\nAnswer: Ann Rowe [1]",
    "repeat": True,
}
REORDERING = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x1b]8;;http://x\x1b\\ \u202elive\u2066\x08\r"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with passages, questions and an index, which is the working directory."""
    for name in os.environ:
        if name.startswith("RAS_AGENT_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    passages = [
        {
            "id": f"p{n}",
            "title": f"Hull {n}",
            "text": f"Hull {n} was built by Ann Rowe. " * 20,
        }
        for n in range(40)
    ]
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in passages)
    )
    asked = [
        {"id": f"q{n}", "question": f"Who built Hull {n}?", "answers": ["Ann Rowe"]}
        for n in range(6)
    ]
    (tmp_path / "questions.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in asked)
    )
    assert command("index", "corpus.jsonl", "--out", "an.index", "-q").exit_code == 0
    return tmp_path


def command(*arguments: object) -> Any:
    return CliRunner().invoke(
        build_program(), [str(argument) for argument in arguments]
    )


def in_words(result: Any) -> bool:
    """Tell whether a command ended as it wanted to, and not in a traceback."""
    return result.exception is None or isinstance(result.exception, SystemExit)


def commands(spec: str) -> dict[str, tuple[object, ...]]:
    """Commands that write replies or facts."""
    data = ("--data", "questions.jsonl", "--corpus", "corpus.jsonl")
    return {
        "ask --cache": (
            "ask",
            "Who built Hull 3?",
            "--index",
            "an.index",
            "--llm",
            spec,
            "--cache",
            "file.sqlite",
        ),
        "ask --triple-cache": (
            *(
                "ask",
                "Who built Hull 3?",
                "--index",
                "an.index",
                "--extractor",
                spec,
                "--triple-cache",
                "file.sqlite",
            ),
        ),
        "structure": (
            "structure",
            "--corpus",
            "corpus.jsonl",
            "--extractor",
            spec,
            "-o",
            "file.sqlite",
        ),
        "eval": (
            "eval",
            "jsonl",
            *data,
            "--out",
            "a-run",
            "--llm",
            spec,
            "--cache",
            "file.sqlite",
        ),
    }


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        SqliteDatabase, "wait", property(lambda _: 0.3, lambda _, seconds: None)
    )


@pytest.mark.filterwarnings("ignore:cannot store")
@pytest.mark.parametrize(
    "lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE", "from the beginning"]
)
@pytest.mark.usefixtures("patience")
def test_locked_files(
    attack: Attack, folder: Path, scripted_llm: Any, lock: str
) -> None:
    """A cache that another process has locked: waited for once, reported in words."""
    scripted_llm.script(FACTS)
    for name, arguments in commands(scripted_llm.spec).items():
        file = folder / f"{name.replace(' ', '')}.sqlite"
        arguments = tuple(file if one == "file.sqlite" else one for one in arguments)
        new = lock == "from the beginning"
        if not new:
            StoredCache(file, "replies" if name in ("ask --cache", "eval") else "facts")
        other = sqlite3.connect(file)
        other.execute("PRAGMA locking_mode = EXCLUSIVE" if new else lock)
        if new:
            other.execute("CREATE TABLE mine (x)")
        began = time.monotonic()
        ended = command(*arguments)
        seconds = time.monotonic() - began
        other.close()
        told = f"{name} {lock}: {ended.exit_code} {ended.stderr[-300:]} {ended.exception!r}"
        attack.expect(in_words(ended), told)
        attack.expect(seconds < 30, f"{told}: {seconds:.1f} s")
        if name == "structure":
            attack.expect(ended.exit_code == 1 and "another file" in ended.stderr, told)
        elif name != "ask --triple-cache":
            attack.expect(ended.exit_code in (0, 3), told)


@pytest.mark.parametrize(
    "name", ["ask --cache", "ask --triple-cache", "structure", "eval"]
)
def test_full_disks(attack: Attack, folder: Path, scripted_llm: Any, name: str) -> None:
    """A disk that fills while replies or facts are stored: reported in words, and the rerun is complete."""
    scripted_llm.script(FACTS)
    for room in (0, 100, 4096, 8192, 16_384, 30_000, 45_000, 70_000):
        arguments = [*commands(scripted_llm.spec)[name]]
        where = folder / f"room-{room}"
        where.mkdir()
        arguments = [
            f"{where.name}/{one}" if one in ("file.sqlite", "a-run") else one
            for one in arguments
        ]

        def work(arguments: list[object] = arguments, room: int = room) -> None:
            # as a disk with so much room a file
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            ended = command(*arguments)
            assert in_words(ended), (
                f"{ended.exit_code} {ended.stderr[-300:]} {ended.exception!r}"
            )

        attack.expect(not (told := run(work).error), f"{name} {room}: {told[-400:]}")
        again = command(*arguments)
        attack.expect(
            again.exit_code == 0,
            f"{name} {room}, again: {again.exit_code} {again.stderr[-300:]}",
        )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as running:
        yield running


def test_keys(
    attack: Attack, folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that a server repeats in its errors: in no output and no file."""
    for fault in ("401", "429-quota", "422", "404"):
        monkeypatch.setenv("VLLM_API_KEY", SECRET)
        spec = f"vllm:http://me:hunter2hunter2@127.0.0.1:{server.port}/{fault}/always/k/v1#m"
        out = folder / fault
        out.mkdir()
        data = ("--data", "questions.jsonl", "--corpus", "corpus.jsonl")
        ask = (
            "ask",
            "Who built Hull 3?",
            "--index",
            "an.index",
            "--llm",
            spec,
            "--cache",
            out / "c.sqlite",
        )
        for arguments in (
            ask,
            (*ask, "--json"),
            (*ask, "--debug", "--save", out / "run.html", "--save", out / "run.json"),
            (
                "structure",
                "--corpus",
                "corpus.jsonl",
                "--extractor",
                spec,
                "-o",
                out / "f.sqlite",
                "--limit",
                2,
            ),
            ("kg", "build", "an.index", "--extractor", spec),
            ("eval", "jsonl", *data, "--out", out / "run", "--llm", spec, "--limit", 1),
            ("report", out / "run", "--out", out / "report.html"),
            ("doctor", "--json"),
        ):
            ended = command(*arguments)
            attack.expect(
                "hunter2" not in ended.output + ended.stderr,
                f"{fault} {arguments[0]}: {ended.output[-300:]}",
            )
            attack.expect(
                in_words(ended) or "--debug" in arguments,
                f"{fault} {arguments[0]}: {ended.exception!r}",
            )
        for path in out.rglob("*"):
            attack.expect(
                not path.is_file() or b"hunter2" not in path.read_bytes(), str(path)
            )


@pytest.mark.parametrize("way", ["ask", "ask --debug", "structure", "eval"])
def test_keys_whatever_a_server_does(
    attack: Attack,
    folder: Path,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """Every fault of a server, through the commands: no key in output, tracebacks, traces and caches."""
    monkeypatch.setenv("VLLM_API_KEY", SECRET)
    for name, value in {
        "TIMEOUT": "0.4",
        "RETRIES": "0",
        "MAX_HOPS": "1",
        "K": "2",
    }.items():
        monkeypatch.setenv(f"RAS_AGENT_{name}", value)
    data = ("--data", "questions.jsonl", "--corpus", "corpus.jsonl")
    for fault in FAULTS:
        spec = f"vllm:http://me:hunter2hunter2@127.0.0.1:{server.port}/{fault}/always/k{way[-2:]}/v1#m"
        out = folder / fault
        out.mkdir()
        ask = (
            "ask",
            "Who built Hull 3?",
            "--index",
            "an.index",
            "--llm",
            spec,
            "--cache",
            out / "c.sqlite",
        )
        runs: dict[str, tuple[tuple[object, ...], ...]] = {
            "ask": ((*ask, "--save", out / "run.html", "--save", out / "run.json"),),
            "ask --debug": (
                (*ask, "--debug", "--json", "--triple-cache", out / "f.sqlite"),
            ),
            "structure": (
                (
                    "structure",
                    "--corpus",
                    "corpus.jsonl",
                    "--extractor",
                    spec,
                    "-o",
                    out / "f.sqlite",
                    "--limit",
                    2,
                ),
            ),
            "eval": (
                (
                    "eval",
                    "jsonl",
                    *data,
                    "--out",
                    out / "run",
                    "--llm",
                    spec,
                    "--limit",
                    1,
                ),
                ("report", out / "run", "--out", out / "report.html"),
            ),
        }
        for arguments in runs[way]:
            ended = command(*arguments)
            told = ended.output + ended.stderr
            if ended.exception is not None:
                told += "".join(traceback.format_exception(ended.exception))
            attack.expect("hunter2" not in told, f"{way} {fault}: {told[-300:]}")
            attack.expect(
                in_words(ended) or "--debug" in arguments,
                f"{way} {fault}: {ended.exception!r}",
            )
        for path in out.rglob("*"):
            attack.expect(
                not path.is_file() or b"hunter2" not in path.read_bytes(), str(path)
            )


def steers(char: str) -> bool:
    """Tell whether a character moves the cursor, colours the screen or turns the reading direction."""
    return (
        (ord(char) < 32 and char != "\n")
        or 127 <= ord(char) < 160
        or char in REORDERING
    )


def test_text_that_steers_a_terminal(
    attack: Attack, folder: Path, scripted_llm: Any
) -> None:
    """Control and reordering characters in passages, questions, replies, names and paths: they do not reach the screen."""
    passages = [
        {
            "id": f"p{n}{EVIL}",
            "title": f"{EVIL}Hull {n}",
            "text": f"{EVIL} Hull {n} was built by Ann{EVIL} Rowe.",
        }
        for n in range(3)
    ]
    (folder / "evil.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in passages)
    )
    asked = {
        "id": f"q{EVIL}",
        "question": f"Who built Hull {EVIL} 1?",
        "answers": [f"Ann{EVIL}"],
        "type": EVIL,
    }
    (folder / "asked.jsonl").write_text(json.dumps(asked) + "\n")
    scripted_llm.script(
        {
            "reply": f"{EVIL}(S> Hull{EVIL} | P> built by | O> Ann{EVIL})\n[SUFFICIENT] Answer: Ann{EVIL} [1]",
            "repeat": True,
        }
    )
    name = "".join(char for char in EVIL if char not in "/\x00")
    (folder / f"odd{name}.jsonl").write_text("{")
    model, question = scripted_llm.spec, f"Who built Hull 1 {EVIL}?"
    data = ("--data", "asked.jsonl", "--corpus", "evil.jsonl")
    given: Callable[..., tuple[object, ...]] = lambda *more: (
        "ask",
        question,
        "--index",
        "evil.index",
        *more,
    )
    for arguments in (
        ("index", "evil.jsonl", "--out", "evil.index"),
        ("index", f"odd{name}.jsonl", "--out", "evil.index"),
        ("index", f"none{name}", "--out", "evil.index"),
        given(),
        given("-v"),
        given("-q"),
        given("--json"),
        given("--llm", model, "-v", "--save", "run.json"),
        given("--llm", f"vllm:http://127.0.0.1:9/v1#{EVIL}"),
        given("--retriever", f"bm25{EVIL}"),
        ("show", "run.json", "-v"),
        ("show", f"odd{name}.jsonl"),
        (
            "structure",
            "--corpus",
            "evil.jsonl",
            "--extractor",
            model,
            "-o",
            "facts.sqlite",
        ),
        ("kg", "build", "evil.index", "--extractor", model),
        ("kg", "stats", "evil.index"),
        ("kg", "delete", "evil.index", EVIL),
        ("eval", "jsonl", *data, "--out", "evil-run", "--llm", model),
        ("report", "evil-run"),
        ("doctor", "--index", "evil.index"),
    ):
        ended = command(*arguments)
        bad = sorted(
            {repr(char) for char in ended.output + ended.stderr if steers(char)}
        )
        attack.expect(not bad, f"{arguments[:3]}: {bad}")
        attack.expect(in_words(ended), f"{arguments[:3]}: {ended.exception!r}")
