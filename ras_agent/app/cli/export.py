"""Implements `ras-agent export`, which writes a run, or the calls of one of its roles, in the formats of other
libraries.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.options import RunPlace, read_place
from ras_agent.app.cli.terminal import inert, inert_lines, quantity

if TYPE_CHECKING:
    from ras_agent.eval.formats import Exported


def export(
    *,
    run: RunPlace,
    to: Annotated[
        str,
        typer.Option(
            help="The format: ragas, trec, flashrag, ...; a wrong name lists all."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The file to write, or the folder if the format has several files.",
        ),
    ],
    role: Annotated[
        str | None,
        typer.Option(
            help="Write the calls of this role with their replies, to train on: planner, ..."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Another run of the same questions: write pairs of different replies to the same prompt, that of the "
            "better run as chosen.",
        ),
    ] = None,
    least: Annotated[
        list[str] | None,
        typer.Option(
            "--min",
            metavar="METRIC=SCORE",
            help="Only questions with at least this score. May be repeated.",
        ),
    ] = None,
    cited: Annotated[
        bool,
        typer.Option(
            "--cited", help="Only questions whose answer a cited sentence supports."
        ),
    ] = False,
    cache: Annotated[
        Path | None,
        typer.Option(
            parser=read_place,
            metavar="PLACE",
            help="The cache of the replies, if the run had a --cache.",
        ),
    ] = None,
) -> None:
    """Write a run's questions, passages, answers and scores in the formats of other libraries.

    With --role, write the prompts and replies of the model in a role, to
    train a model on them: each reply with question, hop, scores and the run
    that it comes from. With --against, pairs for preference training.
    """
    from ras_agent.eval.formats import Exported, find_format, format_to_write, writers
    from ras_agent.eval.run.folder import RunFolder
    from ras_agent.eval.run.task import questions_of

    calls = role is not None
    pairs = against is not None
    if pairs and not calls:
        raise typer.BadParameter(
            "--against pairs the calls of a role: name it with --role"
        )
    if not calls and to not in writers() and to in writers(calls=True):
        raise typer.BadParameter(f"{to} holds the calls of a role: add --role planner")
    write = format_to_write(to, calls=calls, pairs=pairs)
    scores = _least(least or ())
    exported = Exported.read(run, questions_of(RunFolder(run)))
    if against is not None:
        chosen = _pairs(
            role or "",
            exported,
            Exported.read(against),
            scores,
            cited=cited,
            cache=cache,
        )
    else:
        chosen = exported.chosen(scores, cited=cited)
        if role is not None and chosen.results:
            chosen = chosen.with_calls(role, cache)
    paths = write(chosen, out)
    left_out = (
        f", {len(exported.results) - len(chosen.results)} left out"
        if len(chosen.results) < len(exported.results)
        else ""
    )
    counted = (
        f"{quantity(len(chosen.calls), 'pair' if pairs else 'call')} of "
        if calls
        else ""
    )
    place = (
        inert(str(out))
        if len(paths) > 2
        else ", ".join(inert(str(path)) for path in paths)
    )
    typer.echo(
        f"{place}: {counted}{quantity(len(chosen.results), 'question')}{left_out}"
    )
    if find_format(to).trains_every_turn:
        _warn_of_earlier_turns(to, chosen)


def _pairs(
    role: str,
    run: Exported,
    other: Exported,
    least: dict[str, float],
    *,
    cited: bool,
    cache: Path | None,
) -> Exported:
    """Return the run with pairs of both runs' calls. A pair is left out if its better answer does not meet
    --min and --cited.
    """
    from ras_agent.eval.formats.calls import pair_calls
    from ras_agent.eval.run.manifest import apart_from_role

    if differing := apart_from_role(run.manifest, other.manifest, role):
        note = f"the runs differ in more than the {role}, and which reply is better may be due to that"
        typer.echo(inert_lines(f"ras-agent: {note}: {'; '.join(differing)}"), err=True)
    metric = next(iter(least), run.manifest["metrics"][0])
    calls, others = (one.with_calls(role, cache).calls for one in (run, other))
    wanted = {
        (str(one.folder), result.id)
        for one in (run, other)
        for result in one.chosen(least, cited=cited).results
    }
    pairs = [
        pair
        for pair in pair_calls(calls, others, metric)
        if (pair.provenance["run"], pair.id) in wanted
    ]
    ids = {pair.id for pair in pairs}
    return replace(
        run,
        calls=tuple(pairs),
        results=tuple(result for result in run.results if result.id in ids),
    )


def _warn_of_earlier_turns(name: str, run: Exported) -> None:
    count = sum(
        any(message["role"] == "assistant" for message in call.prompt)
        for call in run.calls
    )
    if count:
        note = f"{name} trains all turns of the assistant, and {quantity(count, 'prompt')} have some"
        settings = run.manifest.get("settings") or {}
        remedy = "export to trl, which trains the last turn of each"
        if settings.get("few_shot"):
            remedy = "export runs without --few-shot, or to trl"
        typer.echo(f"ras-agent: {note}; {remedy}", err=True)


def _least(texts: list[str] | tuple[str, ...]) -> dict[str, float]:
    """Parse texts such as "f1=1" into the lowest score by metric.

    Raises:
        BadParameter: for another form.
    """
    least = {}
    for text in texts:
        metric, _, score = text.partition("=")
        try:
            least[metric] = float(score)
        except ValueError:
            raise typer.BadParameter(
                f"--min takes METRIC=SCORE, as f1=0.5, not {text!r}"
            ) from None
    return least
