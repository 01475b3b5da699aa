"""Measures what a question costs in the offline mode, phase by phase.

    python -m lab.phases --index my.index --questions questions.jsonl --count 40

Processor milliseconds a question on one thread, each question asked once, after three that load what is needed. A phase
is what its functions take without those of other phases that they call: `reading: network` is not in `planning`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from statistics import fmean, median
from typing import Any
from unittest.mock import patch

from ras_agent.errors import SettingsError
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.program import run_program
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.offline import reader
from ras_agent.tools.offline.answerer.answer import OfflineAnswerer
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.offline.planner import OfflinePlanner
from ras_agent.tools.retrieve.ranker import RankedRetriever
from ras_agent.tools.roles import resolve_answerer, resolve_extractor, resolve_planner

_WARM = 3
PHASES: dict[str, tuple[type, str]] = {
    "planning: rules": (OfflinePlanner, "plan"),
    "searching": (RankedRetriever, "retrieve"),
    "extracting facts": (OfflineExtractor, "extract"),
    "answering: rules": (OfflineAnswerer, "answer"),
    "reading: network": (reader._Network, "_states"),
    "reading: tokens, spans": (reader.Reader, "readings"),
    "reading: descriptions": (reader.Reader, "described"),
}
REST = "the loop, and all else"


class _Clock:
    """Clock of processor time that belongs to one phase at a time."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys((*PHASES, REST), 0.0)
        self._stack, self._since = [REST], time.process_time()

    def _turn(self) -> None:
        now = time.process_time()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now

    def timed(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return `function` with its time booked under `phase`."""

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            self._turn()
            self._stack.append(phase)
            try:
                return function(*arguments, **named)
            finally:
                self._turn()
                self._stack.pop()

        return call

    def lap(self) -> dict[str, float]:
        """Return the seconds of each phase since the last lap, and begin anew."""
        self._turn()
        seconds = dict(self.seconds)
        self.seconds = dict.fromkeys(seconds, 0.0)
        return seconds


@contextmanager
def _clocked() -> Iterator[_Clock]:
    clock = _Clock()
    patches = [patch.object(of, name, clock.timed(phase, getattr(of, name))) for phase, (of, name) in PHASES.items()]
    for one in patches:
        one.start()
    try:
        yield clock
    finally:
        for one in patches:
            one.stop()


def measure(index: PassageIndex, questions: Sequence[str]) -> list[dict[str, float]]:
    """Return the milliseconds of each phase for each question, but for the first three, and its hops as "hops"."""
    agent = create_ras_agent(
        planner=resolve_planner("offline"),
        extractor=resolve_extractor("offline"),
        answerer=resolve_answerer("offline"),
        index=index,
        retriever="bm25",
    )
    rows = []
    with _clocked() as clock:
        for question in questions:
            clock.lap()
            output = agent.invoke({"question": question})
            rows.append({name: 1000 * value for name, value in clock.lap().items()} | {"hops": len(output["steps"])})
    return rows[_WARM:]


def report(rows: Sequence[dict[str, float]]) -> str:
    """Format a Markdown table: means, medians and the share of the mean."""
    whole = fmean(sum(value for name, value in row.items() if name != "hops") for row in rows)
    lines = ["| phase | mean, ms | median, ms | share |", "|---|---:|---:|---:|"]
    for name in (*PHASES, REST):
        values = [row[name] for row in rows]
        lines.append(f"| {name} | {fmean(values):.1f} | {median(values):.1f} | {fmean(values) / whole:.0%} |")
    hops = fmean(row["hops"] for row in rows)
    return "\n".join([*lines, f"| all, {len(rows)} questions of {hops:.1f} hops | {whole:.1f} | | |"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True, help="an index of passages")
    parser.add_argument("--questions", type=Path, required=True, help="JSON lines with question")
    parser.add_argument("--count", type=int, default=40, help="how many of them are measured (40)")
    options = parser.parse_args(arguments)
    lines = options.questions.read_text(encoding="utf-8").splitlines()[: _WARM + options.count]
    if len(lines) <= _WARM:
        raise SettingsError(f"{options.questions}: expected more than {_WARM} questions, found {len(lines)}")
    print(report(measure(PassageIndex.open(options.index), [json.loads(line)["question"] for line in lines])))


if __name__ == "__main__":
    run_program(main)
