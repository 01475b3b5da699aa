"""Implements `ras-agent judge`: a model judges the answers of a run, as in published figures that need a judge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.options import INCOMPLETE, AsJSON, RunPlace
from ras_agent.app.cli.terminal import inert, print_json, quantity
from ras_agent.config.settings import Settings

if TYPE_CHECKING:
    from ras_agent.tools.chat.client import ChatSettings


def judge(
    *,
    run: RunPlace,
    judge: Annotated[
        str, typer.Option(help="The model: provider:model, or vllm:URL#model.")
    ],
    rule: Annotated[
        str,
        typer.Option(
            help="agreement: whether the answer says the same as the gold answer, as FanOutQA asks; coverage: the "
            "share of the gold answer's statements that it makes."
        ),
    ] = "agreement",
    at_once: Annotated[
        int, typer.Option(min=1, help="Questions judged at the same time.", hidden=True)
    ] = 16,
    as_json: AsJSON = False,
    settings: Settings,
    flags: frozenset[str],
) -> None:
    """Ask a model whether a run's answers are right, and write judged-RULE.json into its folder.

    Summaries and reports do not have these figures, because they change
    with the judge. An abstention counts as wrong and is not asked about. The
    same command continues where it was stopped, since the judge's replies
    are kept next to the run. Its calls are made as the settings say, and
    `roles.judge` in a file.
    """
    from ras_agent.eval.judge import judge_run, summary_of
    from ras_agent.eval.run.folder import RunFolder

    judged = judge_run(
        RunFolder(run),
        judge,
        rule,
        at_once=at_once,
        settings=_calls(settings.for_role("judge"), flags),
    )
    if as_json:
        print_json(summary_of(judged))
    else:
        interval = f"{100 * judged.low:.1f} to {100 * judged.high:.1f}"
        told = f"{judged.rule} by {inert(judged.judge)}: {100 * judged.mean:.1f} ({interval})"
        typer.echo(f"{told} over {quantity(judged.n, 'question')}")
        for kind, mean in judged.by_type.items() if len(judged.by_type) > 1 else ():
            typer.echo(f"  {inert(kind or 'no type')}: {100 * mean:.1f}")
    if judged.unread:
        typer.echo(
            f"{quantity(len(judged.unread), 'question')} without a verdict, left out",
            err=True,
        )
        raise typer.Exit(INCOMPLETE)


def _calls(settings: Settings, flags: frozenset[str]) -> ChatSettings:
    """Return how the judge is called: at temperature 0 and with a cache in the run's folder, unless flags say
    otherwise.
    """
    from ras_agent.tools.chat.client import ChatSettings

    own = (settings.roles or {}).get("judge", {})
    calls = ChatSettings.of(settings)
    if "temperature" not in flags and "temperature" not in own:
        calls = replace(calls, temperature=0.0)
    if "cache" not in flags:
        calls = replace(calls, cache=None)
    return calls
