"""Writes a report as one self-contained HTML page: figures, plots, and a browser of questions with their
traces.

A trace is stored in the page as gzip in base64, about a third of the size of its JSON. When a question is
opened, the browser's DecompressionStream unpacks it.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from ras_agent.contracts.errors import MissingExtra
from ras_agent.contracts.marks import ACTIONS
from ras_agent.contracts.records import JSON
from ras_agent.eval.report.figures import (
    Run,
    comparisons,
    figures_of,
    headline_metrics,
    metric_names,
    summed_tokens,
)
from ras_agent.eval.report.plots import Plot, drawn_plots
from ras_agent.eval.report.sections import Report, body
from ras_agent.eval.report.traces import packed_traces
from ras_agent.eval.run.prices import Prices, model_tokens
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.verdicts import deciding_metric, verdict
from ras_agent.page import (
    filled,
    json_for_html,
    page_file,
    policy,
    trace_frame,
    trace_script,
)


def make_report(
    runs: Sequence[Run], prices: Prices, metric: str = "", *, plots: bool = True
) -> Report:
    """Compute all figures of the runs and, unless `plots` is False, draw their plots.

    Args:
        runs: The runs; the others are compared with the first.
        prices: The prices of model calls.
        metric: The metric that decides whether an answer is right; by default the run's metric with the lowest
            `Metric.decides`.
        plots: Whether plots are drawn.
    """
    metrics = metric_names(runs)
    deciding = metric or deciding_metric(metrics)
    figures = [figures_of(run, deciding, prices) for run in runs]
    differences = comparisons(runs, metrics)
    seconds = {}
    for run in runs:
        seconds[run.name] = [result.seconds for result in run.results]
    pictures: dict[str, Plot] = {}
    missing = ""
    try:
        if plots:
            pictures = drawn_plots(figures, differences, metrics, deciding, seconds)
    except MissingExtra as error:
        missing = str(error)
    return Report(
        tuple(runs),
        tuple(figures),
        tuple(differences),
        tuple(metrics),
        deciding,
        prices,
        pictures,
        missing,
    )


def report_html(
    report: Report,
    *,
    traces: bool = True,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return the report as one self-contained HTML page.

    Args:
        report: The report.
        traces: Whether the runs' traces can be opened in the page.
        workers: The number of processes that lay out the traces.
        progress: Is called with the number of finished traces, and the number of all.
    """
    style = page_file("report.css")
    script = page_file("report.js")
    # the page of a trace, in a frame, must obey this page's policy as well
    inner = (trace_script(), page_file("trace.css"))
    if traces:
        packed = _pack_traces(report.runs, workers, progress)
    else:
        packed = {}
    scripts = []
    for (run, place), text in packed.items():
        name = f"trace-{run}-{place}"
        scripts.append(f'<script type="text/plain" id="{name}">{text}</script>')
    names = [run.name for run in report.runs]
    slots = {
        "POLICY": policy([script, inner[0]], [style, inner[1]]),
        "TITLE": html.escape(" and ".join(names)[:120]),
        "STYLE": style,
        "SCRIPT": script,
        "BODY": body(report),
        "DATA": json_for_html(_data(report, packed)),
        "FRAME": json_for_html(trace_frame("Trace")) if packed else "null",
        "TRACES": "\n".join(scripts),
    }
    return filled(page_file("report.html"), slots)


def _pack_traces(
    runs: Sequence[Run], workers: int, progress: Callable[[int, int], None] | None
) -> dict[tuple[int, int], str]:
    """Return the packed traces by run number and position of the result in its run. Unreadable traces are left
    out.
    """
    traces = {}
    for number, run in enumerate(runs):
        for place, result in enumerate(run.results):
            if result.trace is not None:
                traces[(number, place)] = result.trace
    packed = packed_traces(list(traces.values()), workers=workers, progress=progress)
    return {place: text for place, text in zip(traces, packed, strict=True) if text}


def _data(report: Report, packed: Mapping[tuple[int, int], str]) -> JSON:
    """Return the data for the page's browser of questions: each question once, with its result in each run."""
    questions: dict[str, JSON] = {}
    traced = []
    for number, run in enumerate(report.runs):
        traced.append(any(result.trace is not None for result in run.results))
        for place, result in enumerate(run.results):
            entry = questions.setdefault(result.id, _question(result, len(report.runs)))
            shown = None
            if (number, place) in packed:
                shown = place
            entry["by"][number] = _outcome(result, report.metric, shown)
    prices = {}
    for model in summed_tokens(run.models for run in report.figures):
        if price := report.prices.of(model):
            prices[model] = asdict(price)
    return {
        "metric": report.metric,
        "marks": {action: str(mark) for action, mark in ACTIONS.items()},
        "heads": headline_metrics(report.metrics, report.metric),
        "runs": [run.name for run in report.runs],
        "traced": traced,
        "questions": list(questions.values()),
        "prices": prices,
    }


def _question(result: Result, runs: int) -> JSON:
    return {
        "id": result.id,
        "question": result.question,
        "answers": list(result.answers),
        "supporting": list(result.supporting),
        "type": result.type,
        "hops": result.gold_hops,
        "by": [None] * runs,
    }


def _outcome(result: Result, metric: str, place: int | None) -> JSON:
    tokens = {}
    for model, used in model_tokens(result.usage).items():
        tokens[model] = [used.calls, used.input, used.output, used.cached]
    error = ""
    if result.error:
        error = f"{result.error.get('type')}: {result.error.get('message')}"
    return {
        "answer": result.answer,
        "verdict": verdict(result, metric),
        "scores": dict(result.scores),
        "retrieved": list(result.retrieved),
        "stop": result.stop_reason,
        "hops": result.hops,
        "seconds": result.seconds,
        "tokens": tokens,
        "error": error,
        "trace": place,
    }
