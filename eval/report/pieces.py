"""What a report's page is made from, and the pieces that several of its sections use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ras_agent.eval.report.figures import RunFigures, Versus
from ras_agent.eval.report.markdown import percent
from ras_agent.eval.report.markup import Html, el
from ras_agent.eval.report.plots import Plot
from ras_agent.eval.report.read import Run
from ras_agent.eval.run.prices import Prices
from ras_agent.eval.significance import Estimate

__all__ = ["VERDICTS", "Report", "figure", "pair", "run_name", "score_cell"]

VERDICTS = {"right": "✓", "wrong": "✗", "abstained": "–", "error": "!"}


@dataclass(frozen=True, slots=True)
class Report:
    """Runs and all that is said about them. `missing`: why there are no plots."""

    runs: tuple[Run, ...]
    figures: tuple[RunFigures, ...]
    differences: tuple[Versus, ...]
    metrics: tuple[str, ...]
    metric: str
    prices: Prices
    plots: Mapping[str, Plot]
    missing: str = ""


def run_name(report: Report, number: int) -> Html:
    """A run's name with its colour, `number` from 1; a lone run needs none."""
    name = report.runs[number - 1].name
    key = el("i", class_=f"key run{(number - 1) % 8 + 1}") if len(report.runs) > 1 else Html("")
    return el("span", key, name, class_="run")


def score_cell(score: Estimate | None, n: int) -> Html:
    """Mean and interval, in percent; how many questions have the score, if they are not all `n`."""
    if score is None:
        return Html("–")
    interval = el("small", f"{percent(score.low)} – {percent(score.high)}")
    fewer = el("small", f" n = {score.n}") if score.n != n else ""
    return el("span", el("b", percent(score.mean)), " ", interval, fewer, class_="score")


def figure(report: Report, name: str) -> Html:
    plot = report.plots.get(name)
    return el("figure", Html(plot.svg), el("figcaption", plot.caption)) if plot else Html("")


def pair(left: Html, right: Html) -> Html:
    """Side by side, where there is room and something on both sides."""
    return el("div", *filter(None, (left, right)), class_="pair")
