"""Measures everything that has a peer to compare with, prints one table, and appends its rows to a file.

    python -m ras_agent.eval.bench --json build/bench.jsonl
    python -m ras_agent.eval.bench --parts start,retrieval

Each row has our figure, the figure of a named peer from the same run, their ratio, and the bar that the ratio
must meet. Ratios are compared, not times, because machines differ and are busy. The column `before` is the
median of the row's last five ratios in the file. A ratio that is a fifth worse than `before` is marked WORSE,
and listed under the table. Parts that were not measured, because their peer or server is missing, are listed
there too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from ras_agent.contracts.errors import RasError, SettingsError
from ras_agent.eval.bench.rows import BenchRow, append_rows, bench_table, earlier_ratios
from ras_agent.eval.run.manifest import git_commit
from ras_agent.running.program import run_program

PARTS = {
    "start": "ras_agent.eval.bench.start",
    "overhead": "ras_agent.eval.bench.overhead",
    "retrieval": "ras_agent.eval.bench.retrieval",
    "dense": "ras_agent.eval.bench.dense",
    "walk": "ras_agent.eval.bench.walk",
    "gfm": "ras_agent.eval.bench.gfm",
    "postgres": "ras_agent.eval.bench.postgres",
    "graph": "ras_agent.eval.bench.graph",
    "neighbours": "ras_agent.eval.bench.neighbours",
    "throughput": "ras_agent.eval.bench.throughput",
}
"""The modules that are measured, in this order; each has a function `bench_rows()`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks, print their table, and append its rows to the file of --json."""
    parser = argparse.ArgumentParser(
        prog="python -m ras_agent.eval.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--parts", default=",".join(PARTS), help="separated by commas (all)"
    )
    parser.add_argument(
        "--json",
        type=Path,
        help="append the rows there, and compare with those that it has",
    )
    options = parser.parse_args(arguments)
    parts = options.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        raise SettingsError(
            f"--parts: unknown {unknown[0]!r}; known: {', '.join(PARTS)}"
        )
    if options.json:
        before = earlier_ratios(options.json)
    else:
        before = {}
    rows = []
    left_out = []
    for part in parts:
        print(f"measuring {part}", file=sys.stderr, flush=True)
        bench_rows: Callable[[], Iterator[BenchRow]] = import_module(
            PARTS[part]
        ).bench_rows
        try:
            rows += list(bench_rows())
        except RasError as error:
            left_out.append(f"{part} is left out: {error}")
            print(left_out[-1], file=sys.stderr)
    if options.json:
        append_rows(
            options.json,
            rows,
            git_commit() or "",
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
    print(bench_table(rows, before, left_out))


if __name__ == "__main__":
    run_program(main)
