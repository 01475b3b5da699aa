"""`ras-agent export`: a run in the files of other libraries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ras_agent.app.cli.command import Options
from ras_agent.app.cli.terminal import inert, quantity


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Options):
    """Options of `ras-agent export`."""

    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of an evaluation run.")]
    to: Annotated[str, typer.Option(help="The format: ragas, trec, flashrag, ...; a wrong name lists all.")]
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")]
    least: Annotated[
        list[str] | None,
        typer.Option("--min", metavar="METRIC=SCORE", help="Only questions that score so much. May be repeated."),
    ] = None
    cited: Annotated[
        bool, typer.Option("--cited", help="Only questions whose answer is in a passage that it cites.")
    ] = False


def export(options: ExportOptions) -> None:
    """Write a run's questions, passages, answers and scores as other libraries read them."""
    from ras_agent.eval.formats import Exported, format_to_write

    write = format_to_write(options.to, calls=False)
    run = Exported.read(options.run)
    chosen = run.chosen(_least(options.least or ()), cited=options.cited)
    paths = write(chosen, options.out)
    left_out = f", {len(run.results) - len(chosen.results)} left out" if len(chosen.results) < len(run.results) else ""
    typer.echo(
        f"{', '.join(inert(str(path)) for path in paths)}: {quantity(len(chosen.results), 'question')}{left_out}"
    )


def _least(texts: list[str] | tuple[str, ...]) -> dict[str, float]:
    """Return {metric: score} of texts such as "f1=1". Raises BadParameter."""
    least = {}
    for text in texts:
        metric, _, score = text.partition("=")
        try:
            least[metric] = float(score)
        except ValueError:
            raise typer.BadParameter(f"--min takes METRIC=SCORE, as f1=0.5, not {text!r}") from None
    return least
