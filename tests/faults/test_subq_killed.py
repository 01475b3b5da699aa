"""Attacks on building training samples: killed, or out of disk space, at each file operation."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ras_agent.train.subq.build import SubqConfig, build
from tests.faults.attack import Attack
from tests.faults.interruptions import Ended, run

CORPUS = [
    {"id": "c0", "title": "CrossGen", "text": "CrossGen was founded in 1998."},
    {"id": "c1", "title": "Crux", "text": "Crux was published by CrossGen."},
]
QUESTIONS = [
    {
        "id": f"h{number}",
        "question": f"When was the publisher of Crux number {number} launched?",
        "answers": ["1998"],
        "supporting_titles": ["CrossGen", "Crux"],
    }
    for number in range(3)
]
REPLIES = (
    ("from what you know", "Answer: 1999"),
    ("Say which ones are", "2, 1"),
    ("[SUBQ] Who", "When was CrossGen founded?"),
    ("Write the search question whose answer", "Who published Crux?"),
)
CALLS = 4 * len(QUESTIONS)


def _write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in records), encoding="utf-8"
    )
    return path


def test_building_samples_killed(
    attack: Attack, tmp_path: Path, scripted_model: Callable[..., Any]
) -> None:
    """kill -9 a build of samples at each file operation: the rerun makes the same samples and asks nothing twice."""
    build_once, asked, whole, samples = _prepared(tmp_path, scripted_model)
    for number in range(whole.operations):
        os.truncate(tmp_path / "asked", 0)
        out = tmp_path / f"{number}.jsonl"
        run(lambda out=out: build_once(out), kill_at=number)  # type: ignore[misc]
        rerun = run(lambda out=out: build_once(out))  # type: ignore[misc]
        calls = asked()
        # the reply that was being stored when the process was killed may be asked for again
        few = len(calls) == CALLS and sum(calls.values()) <= CALLS + 1
        same = out.is_file() and out.read_bytes() == samples
        attack.expect(
            not rerun.error and few and same,
            f"operation {number}: {rerun.error}, {sum(calls.values())} calls",
        )


def test_building_samples_on_a_full_disk(
    attack: Attack, tmp_path: Path, scripted_model: Callable[..., Any]
) -> None:
    """Fill the disk at each file operation of a build of samples: an error that says so, no half file, a good rerun."""
    build_once, _, whole, samples = _prepared(tmp_path, scripted_model)
    for number in range(whole.operations):
        out = tmp_path / f"{number}.jsonl"
        full = run(lambda out=out: build_once(out), fail_from=number)  # type: ignore[misc]
        half = out.is_file() and out.read_bytes() != samples
        rerun = run(lambda out=out: build_once(out))  # type: ignore[misc]
        same = out.is_file() and out.read_bytes() == samples
        # the errors that end the program with one line (ras_agent.running.program)
        plain = not full.error or full.error.strip().splitlines()[-1].startswith(
            ("OSError", "ras_agent.contracts.errors.")
        )
        attack.expect(
            plain and not half and not rerun.error and same,
            f"operation {number}: {full.error} {rerun.error}",
        )


def _prepared(
    folder: Path, scripted_model: Callable[..., Any]
) -> tuple[Callable[[Path], None], Callable[[], Counter[str]], Ended, bytes]:
    """Return a builder of the samples, a counter of the prompts since the log was emptied, a whole run, its samples."""
    (folder / "asked").touch()
    _write(folder / "corpus.jsonl", CORPUS)
    source = _write(folder / "questions.jsonl", QUESTIONS)
    log = os.open(folder / "asked", os.O_RDWR | os.O_APPEND)

    def answering(reply: str) -> Callable[[str], str]:
        def answer(prompt: str) -> str:
            # survives the process that asked
            os.write(log, (json.dumps(prompt) + "\n").encode())
            return reply

        return answer

    def build_once(out: Path) -> None:
        model = scripted_model(*((text, answering(reply)) for text, reply in REPLIES))
        build(SubqConfig(out, hotpotqa=(source,), model=model, concurrency=1))

    def asked() -> Counter[str]:
        return Counter((folder / "asked").read_text("utf-8").splitlines())

    out = folder / "whole.jsonl"
    whole = run(lambda: build_once(out))
    assert not whole.error
    assert sum(asked().values()) == CALLS
    return build_once, asked, whole, out.read_bytes()
