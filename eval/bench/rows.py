"""Defines a row of `make bench`: our figure, a peer's from the same run, and a bar. Also compares it with
earlier runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ras_agent.eval.question_file import read_records
from ras_agent.eval.report.markdown import markdown_table

REGRESSION = 0.2
"""How much worse than before a ratio must be to be marked, as a share."""
_REMEMBERED = 5
_HEADER = ("", "unit", "ours", "peer", "peer's", "ratio", "bar", "before", "")


@dataclass(frozen=True, slots=True)
class BenchRow:
    """Holds a figure of ours and a peer's from the same run, and one bar: either `at_most` or `at_least`."""

    name: str
    unit: str
    ours: float
    peer: str
    theirs: float
    at_most: float | None = None
    """The highest allowed ratio ours / peer's."""
    at_least: float | None = None
    """The lowest allowed ratio ours / peer's."""

    @property
    def ratio(self) -> float:
        """Return our figure divided by the peer's."""
        return self.ours / self.theirs

    @property
    def bar(self) -> str:
        """Return the bar in words, such as "at most 2"."""
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        return f"at least {self.at_least:g}"

    @property
    def met(self) -> bool:
        """Tell whether the ratio meets the bar."""
        if self.at_most is not None:
            return self.ratio <= self.at_most
        return self.ratio >= (self.at_least or 0.0)

    def worsening(self, before: float) -> float:
        """Return how much worse the ratio is than `before`, as a share: 0.25 for a quarter; negative if it is
        better.
        """
        if self.at_least is None:
            return self.ratio / before - 1
        return before / self.ratio - 1


def processor_ms(call: Callable[..., object], *arguments: Any) -> float:
    """Return the milliseconds of processor time that a call takes."""
    began = time.process_time()
    call(*arguments)
    return 1e3 * (time.process_time() - began)


def wall_ms(call: Callable[..., object], *arguments: Any) -> float:
    """Return the milliseconds by the clock that a call takes."""
    began = time.perf_counter()
    call(*arguments)
    return 1e3 * (time.perf_counter() - began)


def median_row(
    name: str,
    unit: str,
    peer: str,
    times: Iterable[tuple[float, float]],
    at_most: float,
) -> BenchRow:
    """Return a row of the medians of our times and of the peer's, which `times` holds in pairs."""
    ours, theirs = map(median, zip(*times, strict=True))
    return BenchRow(name, unit, ours, peer, theirs, at_most=at_most)


def earlier_ratios(path: Path) -> dict[str, float]:
    """Return the median of the last five ratios of each row, by its name; {} if there is no file.

    Lines of other programs are skipped. Raises IngestError for a line that is not a JSON object.
    """
    if not path.exists():
        return {}
    ratios: dict[str, list[float]] = {}
    for record in read_records(path):
        if record.data.get("benchmark") == "row":
            name = record.text("name")
            ratios.setdefault(name, []).append(float(record.text("ratio")))
    return {name: median(values[-_REMEMBERED:]) for name, values in ratios.items()}


def append_rows(path: Path, rows: Sequence[BenchRow], commit: str, date: str) -> None:
    """Append a JSON line for each row, with the commit and the date of the run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for row in rows:
            record = {
                "benchmark": "row",
                **asdict(row),
                "ratio": row.ratio,
                "met": row.met,
            }
            file.write(json.dumps({**record, "commit": commit, "date": date}) + "\n")


def bench_table(
    rows: Sequence[BenchRow], before: Mapping[str, float], left_out: Sequence[str] = ()
) -> str:
    """Return a Markdown table, followed by a sentence for each missed bar and each regression.

    Args:
        left_out: sentences about the parts that were not measured, which come first.
    """
    lines = []
    remarks = [*left_out]
    for row in rows:
        marks = []
        if not row.met:
            marks.append("misses its bar")
            remarks.append(
                f"{row.name}: {row.ratio:.3g} times {row.peer} misses the bar, {row.bar}."
            )
        earlier = before.get(row.name)
        if earlier is not None and row.worsening(earlier) > REGRESSION:
            marks.append("WORSE")
            remarks.append(
                f"{row.name}: {row.ratio:.3g} times {row.peer} is {row.worsening(earlier):.0%} worse than the "
                f"{earlier:.3g} of the last runs."
            )
        shown = ""
        if earlier is not None:
            shown = f"{earlier:.3g}"
        cells = (
            row.name,
            row.unit,
            f"{row.ours:.3g}",
            row.peer,
            f"{row.theirs:.3g}",
            f"{row.ratio:.3g}",
        )
        lines.append((*cells, row.bar, shown, ", ".join(marks)))
    summary = remarks or ["Every bar is met, and no row is a fifth worse than before."]
    return "\n".join([markdown_table(_HEADER, lines), "", *summary])
