"""Implements `ras-agent calibrate`, which fits confidences to a run with answers that are known to be right or wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.options import AsJSON, RunPlace
from ras_agent.app.cli.terminal import inert, inert_json, inert_lines

if TYPE_CHECKING:
    from ras_agent.running.confidence import Calibration


def calibrate(
    *,
    run: RunPlace,
    right: Annotated[
        str,
        typer.Option(help="Which answers are right: a metric and its lowest score."),
    ] = "f1>=0.5",
    risk: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=0.9,
            help="Allowed share of wrong answers among those that are stated.",
        ),
    ] = 0.1,
    sure: Annotated[
        float,
        typer.Option(
            min=0.5, max=0.999, help="Probability with which that share is kept."
        ),
    ] = 0.9,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file; if not set, calibration.json in the run's folder."
        ),
    ] = None,
    as_json: AsJSON = False,
) -> None:
    """Learn from a run how sure answers are, and above which confidence few of them are wrong.

    The answerer may be of any kind. With `--calibration FILE`, other commands
    then do not state answers that are less sure. Ask the run with
    --least-confidence 0, so that it has all answers.
    """
    from ras_agent.config.registry import find
    from ras_agent.eval.calibration import Rule, calibrated, signals_in
    from ras_agent.eval.run.folder import RunFolder
    from ras_agent.tools.store.durable import replace_file

    folder = RunFolder(run)
    manifest = folder.manifest()
    rule = Rule.read(right)
    signals, are_right = signals_in(folder, rule, find("judge", "offline")())
    calibration = calibrated(
        signals,
        are_right,
        risk=risk,
        sure=sure,
        rule=right,
        run=run.name,
        manifest=manifest,
    )
    out = out or run / "calibration.json"
    text = json.dumps(calibration.to_dict(), indent=1)
    replace_file(out, text.encode())
    if as_json:
        typer.echo(inert_json(text))
        return
    typer.echo(inert_lines(_table_text(calibration)))
    typer.echo(f"{inert(str(out))} written: use it with --calibration")


def _table_text(calibration: Calibration) -> str:
    """Return the table of risks, with a line that says for which questions the threshold keeps the allowed
    risk.
    """
    lines = ["confidence   said   wrong   at most wrong"]
    for row in calibration.table:
        if row.said:
            wrong = f"{100 * row.wrong / row.said:.1f} %"
            lines.append(
                f"{row.threshold:10.2f} {row.said:6} {wrong:>7} {100 * row.at_most:13.1f} %"
            )
    lines.append(
        f"{calibration.n} answers, {calibration.count_right} right; error of the confidence "
        f"{100 * calibration.error:.1f} points, cross-validated"
    )
    lines.append(
        f"threshold {calibration.threshold:.2f}: with {100 * calibration.sure:.0f} % certainty at most "
        f"{100 * calibration.risk:.0f} % of the answers said are wrong, for {calibration.condition}"
    )
    return "\n".join(lines)
