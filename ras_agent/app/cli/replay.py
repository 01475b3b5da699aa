"""Implements `ras-agent replay`, which asks a run's questions again from its cached replies, completely or up
to a hop.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ras_agent.app.cli.evaluate import RunOptions, progress
from ras_agent.app.cli.options import INCOMPLETE, RunPlace, run_option
from ras_agent.app.cli.terminal import inert_lines, screen


def replay(
    *,
    run: RunPlace,
    from_hop: Annotated[
        int | None,
        run_option(
            min=1,
            help="The first hop that is asked again, by the roles given here. If not set, no model is asked.",
        ),
    ] = None,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="For scripts: exit code 3 only if the runs differ; an error that both runs have does not count.",
        ),
    ] = False,
    options: RunOptions,
) -> None:
    """Ask an evaluation's questions again, from its own replies.

    Without --from-hop no model is asked: the answers are the same, or the
    first request without a reply is shown. With --from-hop 2 --planner OTHER
    the first hop is replayed, and the other planner continues from there.
    All other options are those of the run.
    """
    from ras_agent.eval.report import load_runs
    from ras_agent.eval.report.changes import changes, changes_markdown
    from ras_agent.eval.report.figures import metric_names
    from ras_agent.eval.run.begin import begin_run
    from ras_agent.eval.run.folder import RunFolder
    from ras_agent.eval.run.fork import Fork

    if from_hop is None and (
        other := options.flags & {"llm", "planner", "extractor", "answerer"}
    ):
        raise typer.BadParameter(
            f"--{min(other)} needs the hop from which the role changes: add --from-hop N"
        )
    if "llm" in options.flags:
        raise typer.BadParameter(
            "--llm does not say which role changes: give --planner, --extractor or --answerer instead"
        )
    fork = Fork(RunFolder(run), from_hop)
    given = options.run_settings()
    settings = fork.settings.model_copy(
        update={name: getattr(given, name) for name in options.flags}
    )
    task = fork.task(settings, corpus=options.corpus, embedder=options.embedder)
    begun = begin_run(
        task.scored_by(options.metric) if options.metric else task,
        fork.agent(options.out.name, settings),
        options.out,
        retry_errors=options.retry_errors,
        concurrency=options.concurrency,
    )
    with progress(screen(quiet=options.quiet, stderr=True), begun) as on_end:
        summary = begun.finish(on_end)
    before, after = load_runs([run, options.out])
    found = changes(before, after, metric_names([before, after]))
    typer.echo(inert_lines(changes_markdown(found, most=5)).rstrip("\n"))
    is_incomplete = summary["errors"] > 0
    if exit_code:
        # an error that the original run also had is not a difference
        failed = {result.id for result in after.results if result.error}
        had_failed = {result.id for result in before.results if result.error}
        is_incomplete = found.any or not failed <= had_failed
    if is_incomplete:
        raise typer.Exit(INCOMPLETE)
