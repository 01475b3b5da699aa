"""Draws the plots of a report with matplotlib, as SVG elements whose colours come from the page's style sheet.

Colours become CSS classes, so that a plot follows the page's light and dark modes, and has no inline styles,
which a Content-Security-Policy would refuse. Names are drawn as plain text, never as formulas or markup.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ras_agent.contracts.errors import needs_extra
from ras_agent.eval.report.figures import RunFigures, Versus, kinds_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _SOFT, _GRID, _GROUND = "#010101", "#010102", "#010103", "#010104"
_SERIES = [f"#01020{number}" for number in range(1, 9)]
MARKERS = "osD^vPX*"
_CLASSES = {_INK: "ink", _SOFT: "soft", _GRID: "grid", _GROUND: "ground"} | {
    colour: f"run{number}" for number, colour in enumerate(_SERIES, 1)
}
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_LINES = [(0, ()), (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5))]
STYLE: Any = {
    "svg.hashsalt": "ras-agent",  # the same figures give the same file
    "svg.fonttype": "none",  # text stays text: it can be searched and uses the page's typeface
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.parse_math": False,  # a model's name may hold dollars
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_STYLE: Any = STYLE | {
    "text.color": _INK,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _SOFT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.7,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 10,
}
_NAME = 26  # the maximum number of characters of a name in a plot


@dataclass(frozen=True, slots=True)
class Plot:
    """Holds a plot as an SVG element, with its caption."""

    name: str
    caption: str
    svg: str


def drawn_plots(
    runs: Sequence[RunFigures],
    differences: Sequence[Versus],
    metrics: Sequence[str],
    metric: str,
    seconds: Mapping[str, Sequence[float]],
) -> dict[str, Plot]:
    """Draw all plots for which the runs have figures, and return them by name.

    Args:
        runs: The figures of the runs.
        differences: The differences of the later runs to the first.
        metrics: The metrics that are shown.
        metric: The metric of the plots by kind of question.
        seconds: The seconds of each question, by the run's name.

    Raises:
        MissingExtra: If matplotlib is not installed.
    """
    rows = max(1, len(metrics)) * (len(runs) + 0.7)
    drawings: list[tuple[str, str, float, Callable[[Axes], object]]] = [
        (
            "scores",
            "Mean scores with 95 % intervals",
            0.7 + 0.17 * rows,
            lambda axes: _scores(axes, runs, metrics),
        )
    ]
    if differences:
        high = 0.9 + 0.26 * len(differences)
        caption = f"Differences to {differences[0].base} on common questions, with 95 % intervals"
        drawings.append(
            (
                "differences",
                caption,
                high,
                lambda axes: _differences(axes, differences, runs),
            )
        )
    for kind in kinds_of(runs):
        groups = max(len(run.groups.get(kind, ())) for run in runs)
        high = 0.8 + 0.19 * groups * (len(runs) + 0.7)
        caption = f"{metric} by {kind}, with 95 % intervals"
        draw_groups = partial(_groups, runs=runs, kind=kind, metric=metric)
        drawings.append((kind, caption, high, draw_groups))
    if any(run.recall for run in runs):
        caption = "Gold passages among the first k: mean share found (line) and questions with all of them (dashed)"
        drawings.append(("recall", caption, 2.9, lambda axes: _recall(axes, runs)))
    if any(run.confidence for run in runs):
        caption = "Wrong answers among the surest share of all that were said"
        drawings.append(("risk", caption, 2.6, lambda axes: _risk(axes, runs)))
    if any(any(values) for values in seconds.values()):
        caption = "Share of questions that ended within so many seconds"
        drawings.append(
            ("seconds", caption, 2.6, lambda axes: _seconds(axes, runs, seconds))
        )

    plots = {}
    for name, caption, high, draw in drawings:
        # the ids that matplotlib makes from this word are unique in the page
        style = _STYLE | {"svg.hashsalt": name}
        with new_figure(5.2, high, style) as figure:
            figure.patch.set_visible(False)
            axes = figure.subplots()
            axes.patch.set_visible(False)
            draw(axes)
            plots[name] = Plot(name, caption, _inline(figure, caption))
    return plots


@contextmanager
def new_figure(width: float, height: float, style: Any = STYLE) -> Iterator[Figure]:
    """Yield an empty figure of `width` by `height` inches. Draw and save inside the block, where `style`
    applies.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with needs_extra("plots", "eval"):
        import matplotlib
        from matplotlib.figure import Figure
    with matplotlib.rc_context(style):
        yield Figure(figsize=(min(width, 14), min(height, 12)), layout="constrained")


# the characters that an XML file cannot hold, but a run's name can
_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def svg_of(figure: Figure) -> str:
    """Return a figure as the text of an SVG file. Equal figures give equal texts."""
    file = io.StringIO()
    with warnings.catch_warnings():
        # a name may have characters that matplotlib's font lacks: it draws a box for each, and warns
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(
            file,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", file.getvalue())


def _scores(axes: Axes, runs: Sequence[RunFigures], metrics: Sequence[str]) -> None:
    rows = dict(zip(metrics, metrics, strict=True))
    _whiskers(axes, rows, runs, lambda run, name: run.scores.get(name))


def _groups(axes: Axes, runs: Sequence[RunFigures], kind: str, metric: str) -> None:
    parts = {}
    sizes: dict[str, set[int]] = {}
    for run in runs:
        for group in run.groups.get(kind, ()):
            parts[run.name, group.name] = group
            sizes.setdefault(group.name, set()).add(group.n)
    labels = {}
    for name, size in sizes.items():
        labels[name] = _short(name)
        if len(size) == 1:
            labels[name] += f" (n={min(size)})"

    def score(run: RunFigures, name: str) -> Any:
        group = parts.get((run.name, name))
        if group:
            return group.scores.get(metric)
        return None

    _whiskers(axes, labels, runs, score)


def _whiskers(
    axes: Axes,
    rows: Mapping[str, str],
    runs: Sequence[RunFigures],
    score: Callable[[RunFigures, str], Any],
) -> None:
    """Draw one row for each name in `rows` (name to label), with a dot and its interval for each run."""
    step = 1 / (len(runs) + 0.7)
    for number, run in enumerate(runs):
        heights = []
        estimates = []
        for row, name in enumerate(rows):
            estimate = score(run, name)
            if estimate:
                heights.append(row + (number - (len(runs) - 1) / 2) * step)
                estimates.append(estimate)
        look = _look(number, "none")
        _dots(axes, heights, estimates, label=_short(run.name), **look)
    _label_rows(axes, list(rows.values()))
    axes.set_xlim(-2, 102)
    axes.set_xlabel("%")
    _legend(axes, runs)


def _label_rows(axes: Axes, labels: Sequence[str]) -> None:
    """Write a label beside each row of a plot, the first at its top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", labelcolor=_INK)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _dots(
    axes: Axes, heights: Sequence[float], estimates: Sequence[Any], **look: Any
) -> None:
    """Draw means in percent with their intervals, each at its height on the y axis."""
    means = [100 * one.mean for one in estimates]
    below = [100 * max(0.0, one.mean - one.low) for one in estimates]
    above = [100 * max(0.0, one.high - one.mean) for one in estimates]
    axes.errorbar(means, heights, xerr=[below, above], **look)


def _differences(
    axes: Axes, differences: Sequence[Versus], runs: Sequence[RunFigures]
) -> None:
    number = {run.name: index for index, run in enumerate(runs)}
    several = len({difference.name for difference in differences}) > 1
    labels = []
    for row, difference in enumerate(differences):
        look = _look(number[difference.name], "none")
        _dots(axes, [row], [difference.comparison.difference], **look)
        label = difference.metric
        if several:
            label = f"{_short(difference.name)}: {label}"
        labels.append(label)
    _label_rows(axes, labels)
    axes.axvline(0, color=_SOFT, linewidth=1)
    axes.set_xlabel("points")


def _recall(axes: Axes, runs: Sequence[RunFigures]) -> None:
    from matplotlib.ticker import MaxNLocator

    for number, run in enumerate(runs):
        depth = [point.k for point in run.recall]
        look = _look(number, _LINES[0], every=max(1, len(depth) // 10))
        axes.plot(
            depth,
            [100 * point.recall for point in run.recall],
            label=_short(run.name),
            **look,
        )
        axes.plot(
            depth,
            [100 * point.all for point in run.recall],
            **{**look, "linestyle": _LINES[1]},
        )
    axes.set_ylim(0, 102)
    axes.set_xlabel("k, passages ranked by hop, then rank")
    axes.set_ylabel("%")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(axes, runs)


def _risk(axes: Axes, runs: Sequence[RunFigures]) -> None:
    for number, run in enumerate(runs):
        if run.confidence is None:
            continue
        n = run.confidence.n
        shares = [100 * count / n for count in range(1, n + 1)]
        risks = [100 * risk for risk in run.confidence.risks]
        look: dict[str, Any] = _look(number, _LINES[0]) | {"marker": ""}
        axes.plot(shares, risks, label=_short(run.name), **look)
    axes.set_xlim(0, 102)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("% of the answers, the surest first")
    axes.set_ylabel("% wrong")
    _legend(axes, runs)


def _seconds(
    axes: Axes, runs: Sequence[RunFigures], seconds: Mapping[str, Sequence[float]]
) -> None:
    for number, run in enumerate(runs):
        values = sorted(value for value in seconds[run.name] if value > 0)
        shares = []
        for index in range(len(values)):
            shares.append(100 * (index + 1) / len(values))
        look: dict[str, Any] = _look(number, _LINES[0]) | {"marker": ""}
        axes.plot(
            values, shares, label=_short(run.name), drawstyle="steps-post", **look
        )
    axes.set_xscale("log")
    axes.set_ylim(0, 102)
    axes.set_xlabel("seconds")
    axes.set_ylabel("% of questions")
    axes.grid(visible=False, which="minor")
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _legend(axes, runs)


def _look(number: int, line: Any, every: int | None = None) -> dict[str, Any]:
    """Return the matplotlib style of run `number`. Runs differ by marker as well as by colour."""
    place = number % len(_SERIES)
    look = {
        "color": _SERIES[place],
        "marker": MARKERS[place],
        "markersize": 5,
        "linestyle": line,
        "linewidth": 1.6,
    }
    return look | ({"markevery": every} if every else {})


def _legend(axes: Axes, runs: Sequence[RunFigures]) -> None:
    if len(runs) > 1:
        axes.figure.legend(
            loc="outside upper left", ncols=min(3, len(runs)), labelcolor=_INK
        )


def _short(name: str) -> str:
    line = " ".join(name.split())
    if len(line) <= _NAME:
        return line
    return line[: _NAME - 1] + "…"


def _inline(figure: Figure, caption: str) -> str:
    """Return the figure as an <svg> element without style sheets, foreign namespaces and names of its groups."""
    root = ElementTree.fromstring(svg_of(figure))
    for parent in root.iter():
        for child in list(parent):
            if not child.tag.startswith(_SVG) or child.tag in (
                f"{_SVG}metadata",
                f"{_SVG}style",
            ):
                parent.remove(child)
    for element in root.iter():
        _plain(element)
    width = root.get("width", "")
    height = root.get("height", "")
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update(
        {"viewBox": view, "role": "img", "aria-label": caption, "class": "plot"}
    )
    root.attrib.update(
        {"width": width.replace("pt", ""), "height": height.replace("pt", "")}
    )
    return re.sub(
        r">\s+<", "><", ElementTree.tostring(root, encoding="unicode")
    ).strip()


def _plain(element: ElementTree.Element) -> None:
    """Turn an element's inline styles into attributes and classes, and drop the namespace of its tag."""
    element.tag = element.tag.removeprefix(_SVG)
    if element.tag == "g":
        # such as "axes_1", in every plot; nothing refers to it
        element.attrib.pop("id", None)
    rules = dict(re.findall(r"([\w-]+)\s*:\s*([^;]+)", element.attrib.pop("style", "")))
    classes = []
    for kind, value in {**element.attrib, **rules}.items():
        if kind in ("fill", "stroke") and value.strip() in _CLASSES:
            classes.append(f"{kind}-{_CLASSES[value.strip()]}")
            element.attrib.pop(kind, None)
        elif kind in rules:
            element.attrib.update(_attribute(kind, value.strip()))
    if element.tag == "text" and not any(
        class_name.startswith("fill-") for class_name in classes
    ):
        classes.append("fill-ink")
    if classes:
        element.set("class", " ".join(classes))
    target = element.attrib.pop(_HREF, None)
    if target:
        element.set("href", target)


def _attribute(kind: str, value: str) -> dict[str, str]:
    """Return the attributes for one rule of a style. Rules about typefaces give none, because the page chooses
    its typeface.
    """
    if kind == "font":
        size = re.search(r"([\d.]+)px", value)
        if size:
            return {"font-size": size[1]}
        return {}
    if kind.startswith("font-family"):
        return {}
    return {kind: value}
