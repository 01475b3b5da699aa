"""Implements `ras-agent report`, which shows runs as a page and tables, and `ras-agent diff`, which compares
two runs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ras_agent.app.cli.options import INCOMPLETE, AsJSON, PricesFile
from ras_agent.app.cli.terminal import busy, inert, inert_lines, print_line, screen
from ras_agent.contracts.errors import SettingsError, UnknownName

_DecidingMetric = Annotated[
    str | None,
    typer.Option(
        help="The metric that decides right or wrong; if not set, em if there is one."
    ),
]


def report(
    *,
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of evaluation runs; the others are compared with the first."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page, one self-contained .html file.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="The tables, .md; - prints them.")
    ] = None,
    prices: PricesFile = None,
    metric: _DecidingMetric = None,
    traces: Annotated[
        bool,
        typer.Option(
            "--traces/--no-traces",
            help="Put the traces (hops, facts, graphs) into the page, or leave them out.",
        ),
    ] = True,
) -> None:
    """Show evaluation runs: scores with intervals, differences, costs, and every question.

    Without --out and --markdown the tables are printed.
    """
    from ras_agent.eval.report import (
        load_runs,
        make_report,
        report_html,
        report_markdown,
    )
    from ras_agent.eval.run.prices import load_prices

    printed = markdown == Path("-") or not (out or markdown)
    targets = [path for path in (out, None if printed else markdown) if path]
    for path in targets:
        if not path.parent.is_dir():
            raise SettingsError(
                f"cannot write {path}: the folder {path.parent} does not exist; create it first"
            )
    console = screen(stderr=True)
    with busy(console) as doing:
        doing("reading")
        table = load_prices(prices)
        evaluations = load_runs(runs, traces=traces and out is not None)
        doing("counting")
        metrics = tuple(
            dict.fromkeys(
                name
                for run in evaluations
                for result in run.results
                for name in result.scores
            )
        )
        if metric and metric not in metrics:
            raise UnknownName("metric", metric, metrics)
        summary = make_report(evaluations, table, metric or "", plots=out is not None)
        text = report_markdown(
            summary.figures, summary.differences, summary.metrics, summary.metric
        )
        if out:
            page = report_html(
                summary, traces=traces, workers=os.cpu_count() or 1,
                progress=lambda count, of: doing(f"drawing graph {count} of {of}"),
            )  # fmt: skip
            out.write_text(page, encoding="utf-8")
        if markdown and not printed:
            markdown.write_text(text, encoding="utf-8")
    if printed:
        typer.echo(inert_lines(text))
    if summary.missing and out:
        print_line(console, inert(f"no plots: {summary.missing}"), "yellow")
    for path in targets:
        print_line(
            console, inert(f"{path} written, {path.stat().st_size / 1e6:.1f} MB"), "dim"
        )


def diff(
    *,
    before: Annotated[
        Path,
        typer.Argument(help="The folder of an evaluation run."),
    ],
    after: Annotated[
        Path,
        typer.Argument(help="The folder of another run of the same questions."),
    ],
    most: Annotated[
        int,
        typer.Option(
            min=0, help="Largest number of questions that are listed; 0 for all."
        ),
    ] = 20,
    metric: _DecidingMetric = None,
    as_json: AsJSON = False,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code", help="For scripts: exit code 3 if the runs differ."
        ),
    ] = False,
) -> None:
    """Say which questions changed between two runs, and at which step first.

    A step is the plan of a hop, its hits, its facts, or the answer. Questions
    with answers that turned wrong or right are listed first.
    """
    import json
    from dataclasses import asdict

    from ras_agent.eval.report import load_runs
    from ras_agent.eval.report.changes import changes, changes_markdown
    from ras_agent.eval.report.figures import metric_names

    runs = load_runs([before, after])
    metrics = tuple(metric_names(runs))
    metric = metric or ""
    if metric and metric not in metrics:
        raise UnknownName("metric", metric, metrics)
    found = changes(runs[0], runs[1], metrics, metric)
    typer.echo(
        json.dumps(asdict(found))
        if as_json
        else inert_lines(changes_markdown(found, most=most))
    )
    if exit_code and found.any:
        raise typer.Exit(INCOMPLETE)
