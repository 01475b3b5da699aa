"""Makes the tables and pictures of studies: runs side by side or crossed, as Markdown, JSON, heat maps and
curves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from statistics import fmean, median
from typing import Any, Literal

import numpy as np

from ras_agent.eval.metrics import ceilings
from ras_agent.eval.report.markdown import (
    ceiling_note,
    difference_text,
    markdown_table,
    money,
    p_text,
    percent,
    score_text,
)
from ras_agent.eval.report.plots import MARKERS, new_figure, svg_of
from ras_agent.eval.run.prices import Prices
from ras_agent.eval.run.result import Result, estimates
from ras_agent.eval.run.summarise import cost_of_results
from ras_agent.eval.significance import Comparison, Estimate, compare
from ras_agent.eval.study.design import LeftOut, Shown

Results = Mapping[str, Sequence[Result]]


Unit = Literal["money", "tokens", "seconds"]


@dataclass(frozen=True, slots=True)
class Spent:
    """Holds the cost of one question of a run."""

    seconds: float
    """The median over questions, so that a stalled call does not change it."""
    tokens: float
    """The mean over questions, of all models together."""
    money: float | None
    """The mean over questions; None if a price is unknown or no model was called."""
    alone: bool = False
    """Whether questions were asked one at a time, so that the seconds are those of one question."""

    def of(self, unit: Unit) -> float:
        """Return the cost in a unit, "money", "tokens" or "seconds"; 0.0 if the money is unknown."""
        if unit == "money":
            return self.money or 0.0
        if unit == "tokens":
            return self.tokens
        return self.seconds


def spent_by(results: Sequence[Result], prices: Prices | None = None) -> Spent:
    """Return the cost of one question of a run; 0 if the run has no results."""
    if not results:
        return Spent(0.0, 0.0, None)
    tokens = [result.tokens for result in results]
    total = cost_of_results(results, prices or Prices())
    known = None
    if any(tokens) and not total.unpriced:
        known = total.total / len(results)
    alone = all(result.at_once == 1 for result in results)
    seconds = median(result.seconds for result in results)
    return Spent(seconds, fmean(tokens), known, alone)


def unit_of(spent: Sequence[Spent]) -> Unit:
    """Return the first unit in which the cost of all runs is known: "money", "tokens" or "seconds"."""
    if all(each.money is not None for each in spent):
        return "money"
    if any(each.tokens for each in spent):
        return "tokens"
    return "seconds"


@dataclass(frozen=True, slots=True)
class RunRow:
    """Holds the scores and the cost of one run."""

    name: str
    n: int
    scores: Mapping[str, Estimate]
    hops: float
    """The mean over questions."""
    abstained: int
    errors: int
    spent: Spent
    ceilings: Mapping[str, float]
    """The highest scores that any ranking can reach; see `ras_agent.eval.metrics.ceilings`."""
    difference: Comparison | None = None
    """The difference in the headline metric to the run with which others are compared."""


@dataclass(frozen=True, slots=True)
class ScoreMatrix:
    """Holds one metric for each row and column of a table of crossed runs. A cell without scores is None."""

    metric: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[Estimate | None, ...], ...]
    row_title: str = ""
    column_title: str = ""


def compared(
    runs: Results,
    metrics: Sequence[str],
    headline: str,
    base: str = "",
    *,
    keep: Callable[[Result], bool] | None = None,
    prices: Prices | None = None,
) -> list[RunRow]:
    """Return a row for each run, with its difference to the run `base` over the questions that both have scored.

    Args:
        runs: The results of each run by name.
        metrics: The metrics that are shown.
        headline: The metric of the difference.
        base: The run that others are compared with; "" for no comparison.
        keep: Decides which questions count; by default all do.
        prices: The prices of model calls.
    """
    counted = {}
    for name, results in runs.items():
        counted[name] = [result for result in results if keep is None or keep(result)]
    base_scores = _scores_by_id(counted.get(base, ()), headline)
    rows = []
    for name, results in counted.items():
        gap = None
        own_scores = _scores_by_id(results, headline)
        if name != base and own_scores.keys() & base_scores.keys():
            gap = compare(own_scores, base_scores)
        rows.append(_row(name, results, metrics, gap, prices))
    return rows


def _scores_by_id(results: Sequence[Result], metric: str) -> dict[str, float]:
    """Return the score of each question, sorted by id so that resampling does not depend on the order of the
    results.
    """
    scores = {}
    for result in sorted(results, key=lambda result: result.id):
        if metric in result.scores:
            scores[result.id] = result.scores[metric]
    return scores


def matrix(
    runs: Results,
    cells: Mapping[tuple[str, str], str],
    metric: str,
    row_title: str = "",
    column_title: str = "",
) -> ScoreMatrix:
    """Return one metric over crossed runs. `cells` has the run's name by (row, column), in the order of the
    matrix.
    """
    rows = tuple(dict.fromkeys(row for row, _ in cells))
    columns = tuple(dict.fromkeys(column for _, column in cells))
    lines = []
    for row in rows:
        line = []
        for column in columns:
            name = cells.get((row, column), "")
            scores = estimates(runs.get(name, ()), [metric])
            line.append(scores.get(metric))
        lines.append(tuple(line))
    return ScoreMatrix(metric, rows, columns, tuple(lines), row_title, column_title)


def markdown_rows(
    rows: Sequence[RunRow],
    metrics: Sequence[str],
    headline: str,
    base: str = "",
    *,
    loop: bool = True,
    costs: bool = False,
) -> str:
    """Return a table of runs with scores in percent and 95 % intervals, followed by the highest reachable scores.

    Args:
        loop: whether to show hops and abstentions.
        costs: whether to show the costs.
    """
    has_errors = any(row.errors for row in rows)
    has_gaps = any(row.difference for row in rows)
    unit = unit_of([row.spent for row in rows])
    lines = []
    for row in rows:
        cells = {"run": row.name, "n": str(row.n)}
        cells |= score_cells(row, metrics)
        if loop:
            cells["hops"] = f"{row.hops:.1f}"
            cells["abstained"] = str(row.abstained)
        if has_errors:
            cells["errors"] = str(row.errors)
        if costs:
            cells |= cost_cells(row.spent, unit)
        if has_gaps:
            gap = row.difference
            cells[f"{headline} − {base}"] = difference_text(gap)
            cells["p"] = ""
            if gap:
                cells["p"] = p_text(gap.permutation_p)
        lines.append(cells)
    return table_of(lines) + _bounds(rows, metrics)


def score_cells(row: RunRow, metrics: Sequence[str]) -> dict[str, str]:
    """Return a run's score in each metric, in percent with its interval."""
    cells = {}
    for metric in metrics:
        score = row.scores.get(metric)
        cells[metric] = score_text(score, row.n)
    return cells


def cost_cells(spent: Spent, unit: Unit) -> dict[str, str]:
    """Return the costs of a question: seconds, then tokens and money if they are known, as `unit` says."""
    cells = {"s": f"{spent.seconds:.2f}"}
    if unit != "seconds":
        cells["tokens"] = f"{spent.tokens:,.0f}"
    if unit == "money":
        cells["cost of 1,000"] = money(1000 * spent.of(unit))
    return cells


def table_of(rows: Sequence[Mapping[str, str]]) -> str:
    """Return a Markdown table of rows, each a mapping from the headings to the row's cells."""
    cells = [list(row.values()) for row in rows]
    return markdown_table(list(rows[0]), cells)


def _bounds(rows: Sequence[RunRow], metrics: Sequence[str]) -> str:
    """Return the note on the highest reachable scores, after a blank line; "" if there are no such scores, or
    they differ between runs.
    """
    bounds = rows[0].ceilings
    if any(row.ceilings != bounds for row in rows):
        return ""
    visible = {name: bounds[name] for name in metrics if name in bounds}
    if visible:
        return f"\n\n{ceiling_note(visible)}"
    return ""


def markdown_matrix(table: ScoreMatrix) -> str:
    """Return a score matrix as a Markdown table, in percent with 95 % intervals."""
    corner = " / ".join(filter(None, (table.row_title, table.column_title)))
    lines = []
    for row, cells in zip(table.rows, table.cells, strict=True):
        lines.append([row, *map(score_text, cells)])
    return markdown_table([corner, *table.columns], lines)


def _row(
    name: str,
    results: Sequence[Result],
    metrics: Sequence[str],
    difference: Comparison | None,
    prices: Prices | None,
) -> RunRow:
    hops = 0.0
    if results:
        hops = fmean(result.hops for result in results)
    gold = [result.supporting for result in results if result.supporting]
    return RunRow(
        name=name,
        n=len(results),
        scores=estimates(results, metrics),
        hops=hops,
        abstained=sum(result.abstained for result in results),
        errors=sum(result.error is not None for result in results),
        spent=spent_by(results, prices),
        ceilings=ceilings(metrics, gold),
        difference=difference,
    )


def side_by_side(
    runs: Mapping[str, Sequence[Result]],
    metrics: Sequence[str],
    headline: str,
    base: str = "",
    left_out: Sequence[LeftOut] = (),
) -> Shown:
    """Return a table with a row for each run, and a line for each run that was left out."""
    rows = compared(runs, metrics, headline, base)
    visible = []
    for name in metrics:
        if any(name in row.scores for row in rows):
            visible.append(name)
    table = markdown_rows(rows, visible, headline, base)
    text = f"{table}\n{left_out_lines(left_out)}"
    return Shown(text, {"rows": list(map(asdict, rows))})


def show_crossed(
    runs: Mapping[str, Sequence[Result]],
    *,
    cells: Mapping[tuple[str, str], str],
    metrics: Sequence[str],
    titles: tuple[str, str],
) -> Shown:
    """Return a matrix and a heat map for each metric that at least one run has.

    `cells` has the names of the runs by row and column; `titles` are the titles of rows and columns.
    """
    parts = []
    matrices = []
    pictures = {}
    for metric in metrics:
        table = matrix(runs, cells, metric, *titles)
        if not any(map(any, table.cells)):
            continue
        parts.append(f"## {metric}, %\n\n{markdown_matrix(table)}\n")
        matrices.append(asdict(table))
        pictures[f"{metric.replace('@', '-at-')}.svg"] = partial(heat_map, table)
    return Shown("\n".join(parts), {"matrices": matrices}, pictures)


def left_out_lines(left_out: Sequence[LeftOut]) -> str:
    """Return a line for each run that was left out, after a blank line; "" if no run was."""
    text = ""
    for run in left_out:
        text += f"Not run: {run.name}: {run.why}.\n"
    if text:
        return f"\n{text}"
    return ""


Points = Sequence[tuple[float, float, float, float]]
"""Points (x, mean, low, high); the last three are in 0..1."""

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


def heat_map(table: ScoreMatrix) -> str:
    """Draw a score matrix as SVG, with percent and 95 % interval in each cell.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    means = []
    for row in table.cells:
        means.append([cell.mean if cell else float("nan") for cell in row])
    finite = [cell.mean for cell in chain.from_iterable(table.cells) if cell]
    low = min(finite, default=0.0)
    high = max(finite, default=1.0)
    width = 3.6 + 1.35 * len(table.columns)
    height = 2.0 + 0.62 * len(table.rows)
    with new_figure(width, height) as figure:
        axes = figure.subplots()
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
                colour = "#111"
                if high > low and cell.mean > low + 0.55 * (high - low):
                    colour = "#fff"
                interval = f"{percent(cell.low)}–{percent(cell.high)}"
                text = f"{percent(cell.mean)}\n{interval}"
                axes.text(x, y, text, ha="center", va="center", color=colour)
        columns = list(map(_short, table.columns))
        rotation = 0
        side = "center"
        if max(map(len, columns), default=0) > 14:
            rotation = 20
            side = "right"
        axes.set_xticks(range(len(columns)), columns, rotation=rotation, ha=side)
        rows = list(map(_short, table.rows))
        axes.set_yticks(range(len(rows)), rows)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlabel(table.column_title)
        axes.set_ylabel(table.row_title)
        axes.set_title(f"{table.metric}, %", loc="left")
        return svg_of(figure)


def lines(
    series: Mapping[str, Points], x_title: str, y_title: str, title: str = ""
) -> str:
    """Draw each series as a line with a band from low to high, as SVG. `series` maps names to points.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with new_figure(6.2, 3.8) as figure:
        axes = figure.subplots()
        for number, (name, points) in enumerate(series.items()):
            colour = _COLOURS[number % len(_COLOURS)]
            xs, means, lows, highs = np.array(points).T
            marker = ""
            if len(xs) <= 12:
                marker = MARKERS[number % len(MARKERS)]
            axes.plot(xs, 100 * means, color=colour, marker=marker, label=name)
            if np.any(lows != highs):
                band: Any = {"color": colour, "alpha": 0.15, "linewidth": 0}
                axes.fill_between(xs, 100 * lows, 100 * highs, **band)
        axes.grid(alpha=0.3)
        axes.set_xlabel(x_title)
        axes.set_ylabel(y_title)
        axes.set_title(title, loc="left")
        if len(series) > 1:
            axes.legend(frameon=False)
        return svg_of(figure)


def _short(name: str) -> str:
    """Shorten a name for an axis: keep its beginning and its end, where the model's name is."""
    if len(name) <= _NAME:
        return name
    return f"{name[:10]}…{name[-(_NAME - 11) :]}"
