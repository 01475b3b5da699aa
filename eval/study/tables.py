"""Tables and pictures of studies: runs side by side or crossed, as Markdown, JSON, heat maps and curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean

from ras_agent.eval.report.markdown import difference_text, markdown_table, score_text
from ras_agent.eval.report.plots import MARKERS, new_figure, svg_of
from ras_agent.eval.run.result import Result, score_columns
from ras_agent.eval.significance import Comparison, Estimate, compare, mean_interval
from ras_agent.eval.study.design import LeftOut, Shown
from ras_agent.records import JSON

Results = Mapping[str, Sequence[Result]]


@dataclass(frozen=True, slots=True)
class RunRow:
    """Scores of one run, its hops per question, and the difference of its headline metric to the base run's."""

    name: str
    n: int
    scores: Mapping[str, Estimate]
    hops: float
    abstained: int
    errors: int
    difference: Comparison | None = None


@dataclass(frozen=True, slots=True)
class ScoreMatrix:
    """Table of one metric for each pair of a row's choice and a column's; a cell without scores is None."""

    metric: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Estimate | None, ...], ...]
    row_title: str = ""
    column_title: str = ""

    def to_dict(self) -> JSON:
        return asdict(self)


def mean_score(values: Sequence[float]) -> Estimate | None:
    """Return mean and interval; None if there are no values."""
    if values:
        return mean_interval(values)
    return None


def compared(
    runs: Results,
    metrics: Sequence[str],
    headline: str,
    base: str = "",
    *,
    keep: Callable[[Result], bool] | None = None,
) -> list[RunRow]:
    """Return a row for each run. The difference to `base` is over the questions that both scored.

    keep: decides which questions count.
    """
    counted = {}
    for name, results in runs.items():
        counted[name] = [result for result in results if keep is None or keep(result)]
    base_scores = {}
    for result in counted.get(base, ()):
        if headline in result.scores:
            base_scores[result.id] = result.scores[headline]
    return [
        _row(name, results, metrics, headline, base_scores if name != base else {})
        for name, results in counted.items()
    ]


def matrix(
    runs: Results,
    cells: Mapping[tuple[str, str], str],
    metric: str,
    row_title: str = "",
    column_title: str = "",
) -> ScoreMatrix:
    """Return one metric over crossed runs. cells: the run's name by (row, column), in the order of the matrix."""
    rows = tuple(dict.fromkeys(row for row, _ in cells))
    columns = tuple(dict.fromkeys(column for _, column in cells))

    def cell(row: str, column: str) -> Estimate | None:
        results = runs.get(cells.get((row, column), ""), ())
        return mean_score(score_columns(results).get(metric, ()))

    rows_of_cells = tuple(
        tuple(cell(row, column) for column in columns) for row in rows
    )
    return ScoreMatrix(metric, rows, columns, rows_of_cells, row_title, column_title)


def markdown_rows(
    rows: Sequence[RunRow],
    metrics: Sequence[str],
    headline: str,
    base: str = "",
    *,
    loop: bool = True,
) -> str:
    """Return a table of runs, with scores in percent and 95 % intervals.

    loop: whether hops and abstentions mean something.
    """
    columns: dict[str, Callable[[RunRow], str]] = {
        "run": lambda row: row.name,
        "n": lambda row: str(row.n),
    }
    for metric in metrics:
        columns[metric] = lambda row, metric=metric: score_text(
            row.scores.get(metric), row.n
        )  # type: ignore[misc]
    if loop:
        columns |= {
            "hops": lambda row: f"{row.hops:.1f}",
            "abstained": lambda row: str(row.abstained),
        }
    if any(row.errors for row in rows):
        columns["errors"] = lambda row: str(row.errors)
    if any(row.difference for row in rows):
        columns[f"{headline} − {base}"] = lambda row: difference_text(row.difference)
        columns["p"] = lambda row: (
            f"{row.difference.permutation_p:.4f}" if row.difference else ""
        )
    return markdown_table(
        list(columns), [[tell(row) for tell in columns.values()] for row in rows]
    )


def markdown_matrix(table: ScoreMatrix) -> str:
    """Return a crossing as a Markdown table, in percent with 95 % intervals."""
    corner = " / ".join(filter(None, (table.row_title, table.column_title)))
    lines = []
    for row, cells in zip(table.rows, table.cells, strict=True):
        lines.append([row, *(score_text(cell) for cell in cells)])
    return markdown_table([corner, *table.columns], lines)


def _row(
    name: str,
    results: Sequence[Result],
    metrics: Sequence[str],
    headline: str,
    base_scores: Mapping[str, float],
) -> RunRow:
    columns = score_columns(results)
    scores = {name: mean_interval(columns[name]) for name in metrics if name in columns}
    # by id, so that the order in which questions ended has no say in the resampling
    own_scores = {}
    for result in sorted(results, key=lambda result: result.id):
        if headline in result.scores:
            own_scores[result.id] = result.scores[headline]
    gap = None
    if own_scores.keys() & base_scores.keys():
        gap = compare(own_scores, base_scores)
    return RunRow(
        name,
        len(results),
        scores,
        fmean(result.hops for result in results) if results else 0.0,
        sum(result.abstained for result in results),
        sum(result.error is not None for result in results),
        gap,
    )


def side_by_side(
    runs: Mapping[str, Sequence[Result]],
    metrics: Sequence[str],
    headline: str,
    base: str = "",
    left_out: Sequence[LeftOut] = (),
    columns: Sequence[str] | None = None,
    loop: bool = True,
) -> Shown:
    """Show one table of `columns` (all `metrics` by default), and the runs that were left out.

    loop: whether hops were taken, so that their numbers say something.
    """
    rows = compared(runs, metrics, headline, base)
    visible = []
    for name in columns or metrics:
        if any(name in row.scores for row in rows):
            visible.append(name)
    text = (
        markdown_rows(rows, visible, headline, base, loop=loop)
        + "\n"
        + left_out_lines(left_out)
    )
    return Shown(text, {"rows": [asdict(row) for row in rows]})


def show_crossed(
    runs: Mapping[str, Sequence[Result]],
    *,
    cells: Mapping[tuple[str, str], str],
    metrics: Sequence[str],
    titles: tuple[str, str],
) -> Shown:
    """Show a matrix and a heat map for each metric that any run has. cells: run names by row and column."""
    tables = []
    for metric in metrics:
        tables.append(matrix(runs, cells, metric, *titles))
    tables = [
        table for table in tables if any(cell for row in table.cells for cell in row)
    ]
    text = "\n".join(
        f"## {table.metric}, %\n\n{markdown_matrix(table)}\n" for table in tables
    )
    pictures = {}
    for table in tables:
        pictures[f"{table.metric.replace('@', '-at-')}.svg"] = partial(heat_map, table)
    return Shown(text, {"matrices": [table.to_dict() for table in tables]}, pictures)


def left_out_lines(left_out: Sequence[LeftOut]) -> str:
    """Return a line for each run that does not apply, below a blank line; "" without any."""
    if left_out:
        return "".join(
            ["\n", *(f"Not run: {run.name}: {run.why}.\n" for run in left_out)]
        )
    return ""


Points = Sequence[tuple[float, float, float, float]]
"""(x, mean, low, high), the last three in 0..1."""

_COLOURS = (
    "#0b6e99",
    "#c2410c",
    "#4d7c0f",
    "#7e22ce",
    "#a16207",
    "#be185d",
    "#334155",
    "#0f766e",
)
_NAME = 30


def heat_map(table: ScoreMatrix, title: str = "") -> str:
    """Draw a score matrix as SVG: each cell has percent and 95 % interval. Raises MissingExtra without matplotlib."""
    means = [
        [cell.mean if cell else float("nan") for cell in row] for row in table.cells
    ]
    with new_figure(
        3.6 + 1.35 * len(table.columns), 2.0 + 0.62 * len(table.rows)
    ) as figure:
        axes = figure.subplots()
        finite = [mean for row in means for mean in row if mean == mean]
        low = min(finite, default=0.0)
        high = max(finite, default=1.0)
        axes.imshow(
            means,
            cmap="Blues",
            aspect="auto",
            vmin=low - 0.3 * max(high - low, 0.02),
            vmax=high + 1e-9,
        )
        for y, row in enumerate(table.cells):
            for x, cell in enumerate(row):
                if cell is None:
                    axes.text(x, y, "–", ha="center", va="center", color="#111")
                    continue
                dark = cell.mean > low + 0.55 * (high - low)
                text = (
                    f"{100 * cell.mean:.1f}\n{100 * cell.low:.1f}–{100 * cell.high:.1f}"
                )
                axes.text(
                    x,
                    y,
                    text,
                    ha="center",
                    va="center",
                    color="#fff" if dark and high > low else "#111",
                )
        columns = [_short(name) for name in table.columns]
        rotation = 0
        if max(map(len, columns), default=0) > 14:
            rotation = 20
        axes.set_xticks(
            range(len(columns)),
            columns,
            rotation=rotation,
            ha="right" if rotation else "center",
        )
        axes.set_yticks(range(len(table.rows)), [_short(name) for name in table.rows])
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlabel(table.column_title)
        axes.set_ylabel(table.row_title)
        axes.set_title(title or f"{table.metric}, %", loc="left")
        return svg_of(figure)


def lines(
    series: Mapping[str, Points], x_title: str, y_title: str, title: str = ""
) -> str:
    """Draw a line for each name, with a band from low to high. Raises MissingExtra without matplotlib."""
    with new_figure(6.2, 3.8) as figure:
        axes = figure.subplots()
        for number, (name, points) in enumerate(series.items()):
            colour = _COLOURS[number % len(_COLOURS)]
            xs = [point[0] for point in points]
            marker = ""
            if len(xs) <= 12:
                marker = MARKERS[number % len(MARKERS)]
            axes.plot(
                xs,
                [100 * point[1] for point in points],
                color=colour,
                marker=marker,
                label=name,
            )
            if any(point[2] != point[3] for point in points):
                lows = [100 * point[2] for point in points]
                highs = [100 * point[3] for point in points]
                axes.fill_between(
                    xs, lows, highs, color=colour, alpha=0.15, linewidth=0
                )
        axes.grid(alpha=0.3)
        axes.set_xlabel(x_title)
        axes.set_ylabel(y_title)
        axes.set_title(title, loc="left")
        if len(series) > 1:
            axes.legend(frameon=False)
        return svg_of(figure)


def _short(name: str) -> str:
    """Shorten a name for an axis to its beginning and its end, which is a model's own name."""
    if len(name) <= _NAME:
        return name
    return f"{name[:10]}…{name[-(_NAME - 11) :]}"
