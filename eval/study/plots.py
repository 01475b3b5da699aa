"""A study's pictures as SVG text: a heat map of two choices, and lines with bands. Needs matplotlib."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ras_agent.errors import MissingExtra
from ras_agent.eval.study.tables import Matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Points", "heat_map", "lines"]

Points = Sequence[tuple[float, float, float, float]]
"""(x, mean, low, high), the last three in 0..1."""

_STYLE: Any = {
    "svg.hashsalt": "ras-agent",  # the same figures give the same file
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.parse_math": False,  # a model's name may hold dollars
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_COLOURS = ("#0b6e99", "#c2410c", "#4d7c0f", "#7e22ce", "#a16207", "#be185d", "#334155", "#0f766e")
_MARKERS = "osD^vPX*"
_NAME = 30


def heat_map(found: Matrix, title: str = "") -> str:
    """The crossing, one cell a run: percent, its 95 % interval below. Raises MissingExtra without matplotlib."""
    rc_context, figure = _figure(3.6 + 1.35 * len(found.columns), 2.0 + 0.62 * len(found.rows))
    means = [[cell.mean if cell else float("nan") for cell in row] for row in found.cells]
    with rc_context(_STYLE):
        axes = figure.subplots()
        shown = [mean for row in means for mean in row if mean == mean]
        low, high = min(shown, default=0.0), max(shown, default=1.0)
        axes.imshow(means, cmap="Blues", aspect="auto", vmin=low - 0.3 * max(high - low, 0.02), vmax=high + 1e-9)
        for y, row in enumerate(found.cells):
            for x, cell in enumerate(row):
                if cell is None:
                    axes.text(x, y, "–", ha="center", va="center", color="#111")
                    continue
                dark = cell.mean > low + 0.55 * (high - low)
                text = f"{100 * cell.mean:.1f}\n{100 * cell.low:.1f}–{100 * cell.high:.1f}"
                axes.text(x, y, text, ha="center", va="center", color="#fff" if dark and high > low else "#111")
        columns = [_short(name) for name in found.columns]
        rotation = 20 if max(map(len, columns), default=0) > 14 else 0
        axes.set_xticks(range(len(columns)), columns, rotation=rotation, ha="right" if rotation else "center")
        axes.set_yticks(range(len(found.rows)), [_short(name) for name in found.rows])
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.set_xlabel(found.column_title)
        axes.set_ylabel(found.row_title)
        axes.set_title(title or f"{found.metric}, %", loc="left")
        return _svg(figure)


def lines(series: Mapping[str, Points], x_title: str, y_title: str, title: str = "") -> str:
    """A line for each name, with a band from low to high. Raises MissingExtra without matplotlib."""
    rc_context, figure = _figure(6.2, 3.8)
    with rc_context(_STYLE):
        axes = figure.subplots()
        for number, (name, points) in enumerate(series.items()):
            colour = _COLOURS[number % len(_COLOURS)]
            xs = [point[0] for point in points]
            marker = _MARKERS[number % len(_MARKERS)] if len(xs) <= 12 else ""
            axes.plot(xs, [100 * point[1] for point in points], color=colour, marker=marker, label=name)
            if any(point[2] != point[3] for point in points):
                lows, highs = [100 * point[2] for point in points], [100 * point[3] for point in points]
                axes.fill_between(xs, lows, highs, color=colour, alpha=0.15, linewidth=0)
        axes.grid(alpha=0.3)
        axes.set_xlabel(x_title)
        axes.set_ylabel(y_title)
        axes.set_title(title, loc="left")
        if len(series) > 1:
            axes.legend(frameon=False)
        return _svg(figure)


def _figure(width: float, height: float) -> tuple[Any, Figure]:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("a picture of a study", "eval") from error
    return matplotlib.rc_context, Figure(figsize=(min(width, 14), min(height, 12)), layout="constrained")


def _svg(figure: Figure) -> str:
    written = io.StringIO()
    # without a date the same figures give the same file
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()


def _short(name: str) -> str:
    """A name beside an axis: its beginning and its end, where a model's own name stands."""
    return name if len(name) <= _NAME else f"{name[:10]}…{name[-(_NAME - 11) :]}"
