"""What a study shows: its runs side by side, or the crossing of two roles, as figures, Markdown and JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from ras_agent.eval.run.result import Result
from ras_agent.eval.significance import Comparison, Estimate, compare, mean_interval
from ras_agent.records import JSON

__all__ = [
    "Matrix",
    "Row",
    "Table",
    "compared",
    "markdown_matrix",
    "markdown_rows",
    "markdown_table",
    "matrix",
    "mean_score",
]

Results = Mapping[str, Sequence[Result]]


@dataclass(frozen=True, slots=True)
class Row:
    """One run: its scores, hops a question, and its headline metric against that of the base run."""

    name: str
    n: int
    scores: Mapping[str, Estimate]
    hops: float
    abstained: int
    errors: int
    difference: Comparison | None = None


@dataclass(frozen=True, slots=True)
class Matrix:
    """One metric over the crossing of two choices; a cell without scores is None."""

    metric: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Estimate | None, ...], ...]
    row_title: str = ""
    column_title: str = ""

    def to_dict(self) -> JSON:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table of texts."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def mean_score(values: Sequence[float]) -> Estimate | None:
    """Mean and interval; None for no values."""
    return mean_interval(values) if values else None


def compared(
    runs: Results,
    metrics: Sequence[str],
    headline: str,
    base: str = "",
    *,
    keep: Callable[[Result], bool] | None = None,
) -> list[Row]:
    """A row for each run. keep: which questions count. The difference to `base` is over questions that both scored."""
    kept = {name: [one for one in results if keep is None or keep(one)] for name, results in runs.items()}
    beside = {one.id: one.scores[headline] for one in kept.get(base, ()) if headline in one.scores}
    return [_row(name, results, metrics, headline, beside if name != base else {}) for name, results in kept.items()]


def matrix(
    runs: Results,
    cells: Mapping[tuple[str, str], str],
    metric: str,
    row_title: str = "",
    column_title: str = "",
) -> Matrix:
    """Run names crossed: `cells` names the run at (row, column), whose order is kept."""
    rows = tuple(dict.fromkeys(row for row, _ in cells))
    columns = tuple(dict.fromkeys(column for _, column in cells))

    def cell(row: str, column: str) -> Estimate | None:
        results = runs.get(cells.get((row, column), ""), ())
        return mean_score([one.scores[metric] for one in results if metric in one.scores])

    found = tuple(tuple(cell(row, column) for column in columns) for row in rows)
    return Matrix(metric, rows, columns, found, row_title, column_title)


def markdown_rows(
    rows: Sequence[Row], metrics: Sequence[str], headline: str, base: str = "", *, loop: bool = True
) -> str:
    """Runs side by side, scores in percent with 95 % intervals. loop: whether hops and abstentions mean something."""
    columns: dict[str, Callable[[Row], str]] = {"run": lambda row: row.name, "n": lambda row: str(row.n)}
    for metric in metrics:
        columns[metric] = lambda row, metric=metric: score_text(row.scores.get(metric), row.n)  # type: ignore[misc]
    if loop:
        columns |= {"hops": lambda row: f"{row.hops:.1f}", "abstained": lambda row: str(row.abstained)}
    if any(row.errors for row in rows):
        columns["errors"] = lambda row: str(row.errors)
    if any(row.difference for row in rows):
        columns[f"{headline} − {base}"] = lambda row: difference_text(row.difference)
        columns["p"] = lambda row: f"{row.difference.permutation_p:.4f}" if row.difference else ""
    return markdown_table(list(columns), [[tell(row) for tell in columns.values()] for row in rows])


def markdown_matrix(found: Matrix) -> str:
    """A crossing, in percent with 95 % intervals."""
    corner = " / ".join(filter(None, (found.row_title, found.column_title)))
    lines = [[row, *(score_text(cell) for cell in cells)] for row, cells in zip(found.rows, found.cells, strict=True)]
    return markdown_table([corner, *found.columns], lines)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; figures to the right."""
    alignment = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in (head, alignment, *rows))


def score_text(score: Estimate | None, n: int | None = None) -> str:
    """Mean and interval in percent; how many questions have the score, if they are not all `n`."""
    if score is None:
        return "–"
    text = f"{100 * score.mean:.1f} ({100 * score.low:.1f}–{100 * score.high:.1f})"
    return text if n is None or score.n == n else f"{text}, n={score.n}"


def difference_text(found: Comparison | None) -> str:
    """A paired difference in points with its interval; nothing for none."""
    if found is None:
        return ""
    gap = found.difference
    return f"{100 * gap.mean:+.1f} ({100 * gap.low:+.1f} to {100 * gap.high:+.1f})"


def _row(
    name: str, results: Sequence[Result], metrics: Sequence[str], headline: str, beside: Mapping[str, float]
) -> Row:
    scores = {metric: mean_score([one.scores[metric] for one in results if metric in one.scores]) for metric in metrics}
    # by id, so that the order in which questions ended has no say in the resampling
    own = {one.id: one.scores[headline] for one in sorted(results, key=lambda one: one.id) if headline in one.scores}
    gap = compare(own, beside) if own.keys() & beside.keys() else None
    return Row(
        name,
        len(results),
        {metric: score for metric, score in scores.items() if score},
        fmean(one.hops for one in results) if results else 0.0,
        sum(one.abstained for one in results),
        sum(one.error is not None for one in results),
        gap,
    )


def _cell(text: Any) -> str:
    """Names come from users: no cell may end a cell or a line, or begin markup."""
    return " ".join(str(text).split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
