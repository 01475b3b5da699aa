"""The usual ways to show a study: runs side by side, held against a base run; and two choices crossed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

from ras_agent.eval.run.result import Result
from ras_agent.eval.study.design import Shown
from ras_agent.eval.study.folder import LeftOut
from ras_agent.eval.study.plots import heat_map
from ras_agent.eval.study.tables import compared, markdown_matrix, markdown_rows, matrix

__all__ = ["left_out_lines", "show_crossed", "side_by_side"]


def side_by_side(
    runs: Mapping[str, Sequence[Result]],
    metrics: Sequence[str],
    headline: str,
    base: str = "",
    left_out: Sequence[LeftOut] = (),
    columns: Sequence[str] | None = None,
    loop: bool = True,
) -> Shown:
    """One table of `columns`, all `metrics` unless told, and what was left out. loop: whether hops were taken."""
    rows = compared(runs, metrics, headline, base)
    shown = [name for name in columns or metrics if any(name in row.scores for row in rows)]
    text = markdown_rows(rows, shown, headline, base, loop=loop) + "\n" + left_out_lines(left_out)
    return Shown(text, {"rows": [asdict(row) for row in rows]})


def show_crossed(
    runs: Mapping[str, Sequence[Result]],
    *,
    cells: Mapping[tuple[str, str], str],
    metrics: Sequence[str],
    titles: tuple[str, str],
) -> Shown:
    """A matrix and a heat map for each metric that any run has. cells: run names by row and column."""
    found = [matrix(runs, cells, metric, *titles) for metric in metrics]
    found = [one for one in found if any(cell for row in one.cells for cell in row)]
    text = "\n".join(f"## {one.metric}, %\n\n{markdown_matrix(one)}\n" for one in found)
    pictures = {f"{one.metric.replace('@', '-at-')}.svg": partial(heat_map, one) for one in found}
    return Shown(text, {"matrices": [one.to_dict() for one in found]}, pictures)


def left_out_lines(left_out: Sequence[LeftOut]) -> str:
    """A line for each run that does not apply, below a blank one; nothing without any."""
    return "".join(["\n", *(f"Not run: {one.name}: {one.why}.\n" for one in left_out)]) if left_out else ""
