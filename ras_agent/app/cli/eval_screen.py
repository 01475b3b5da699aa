"""How an evaluation looks on screen: a bar with the running score while it runs, a table when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from ras_agent.app.cli.inert import inert
from ras_agent.app.cli.summary import counted
from ras_agent.eval.run.prices import Cost, Prices, cost_of, model_tokens

if TYPE_CHECKING:
    from ras_agent.eval.run.evaluation import Evaluation
    from ras_agent.eval.run.result import Result
    from ras_agent.records import JSON

__all__ = ["progress", "show"]


@contextmanager
def progress(console: Console, run: Evaluation, prices: Prices | None = None) -> Iterator[Callable[[Result], None]]:
    """A bar that is told each result: how far, the headline score so far, errors, tokens, cost, time left."""
    tally = _Tally(run.headline, prices or Prices())
    for result in run.done:
        tally.add(result)
    if run.done:
        console.print(
            f"resuming {run.folder.path}: {len(run.done)} of {len(run.questions)} are done", style="dim", soft_wrap=True
        )
    columns = (
        TextColumn("{task.fields[score]}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[spent]}", style="dim"),
        TimeElapsedColumn(),
        TextColumn("left", style="dim"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=len(run.questions), completed=len(run.done), score=tally.score, spent=tally.spent)

        def on_end(result: Result) -> None:
            tally.add(result)
            bar.update(task, advance=1, score=tally.score, spent=tally.spent)

        yield on_end


def show(console: Console, summary: JSON, run: Evaluation) -> None:
    """The scores with their intervals, and what the run took."""
    shown = Table("metric", "mean", "95 % interval", "n", box=None, header_style="dim", pad_edge=False)
    for column in shown.columns[1:]:
        column.justify = "right"
    for metric, score in summary["scores"].items():
        interval = f"{100 * score['low']:.1f} to {100 * score['high']:.1f}"
        shown.add_row(metric, f"{100 * score['mean']:.1f}", interval, str(score["n"]))
    if len(summary["by_answer"]) > 1:
        for kind, part in summary["by_answer"].items():
            for metric in sorted({"em", "f1"} & part["scores"].keys()):
                score = part["scores"][metric]
                interval = f"{100 * score['low']:.1f} to {100 * score['high']:.1f}"
                shown.add_row(f"  {metric}, {kind}", f"{100 * score['mean']:.1f}", interval, str(score["n"]))
    tokens = summary["tokens"]
    parts = [
        counted(summary["questions"], "question"),
        f"{summary['hops']:.1f} hops and {summary['retrieved']:.1f} passages each",
        f"{summary['seconds']['p50']:.2f} s each (95 %: {summary['seconds']['p95']:.2f} s)",
        counted(tokens["calls"], "LLM call"),
    ]
    if tokens["calls"]:
        parts.append(f"{tokens['input_tokens']:,} + {tokens['output_tokens']:,} tokens")
    if cost := summary["cost"]:
        parts.append(
            f"cost {cost['total']:.4g}{' without ' + inert(', '.join(cost['unknown'])) if cost['unknown'] else ''}"
        )
    parts.append(f"{run.folder.path} written")
    stops = ", ".join(f"{reason} {count}" for reason, count in summary["stop_reasons"].items())
    console.print(shown)
    console.print(f"stopped by: {stops}", style="dim", soft_wrap=True)
    console.print(" · ".join(parts), style="dim", soft_wrap=True)
    if failures := summary["failures"]:
        message, most = next(iter(failures.items()))
        told = f"{counted(sum(failures.values()), 'failure')} inside runs, {most} of them: {inert(message, limit=300)}"
        console.print(told, style="yellow", soft_wrap=True)
    if summary["errors"]:
        told = f"{counted(summary['errors'], 'question')} ended in an error; --retry-errors asks again"
        console.print(told, style="red", soft_wrap=True)


class _Tally:
    """Sums so far, without a pass over all results each time."""

    def __init__(self, headline: str, prices: Prices) -> None:
        self._headline, self._prices, self._cost = headline, prices, Cost()
        self._total, self._scored, self._errors, self._tokens = 0.0, 0, 0, 0

    def add(self, result: Result) -> None:
        if self._headline in result.scores:
            self._total += result.scores[self._headline]
            self._scored += 1
        self._errors += result.error is not None
        self._tokens += result.usage.get("input_tokens", 0) + result.usage.get("output_tokens", 0)
        self._cost += cost_of(model_tokens(result.usage), self._prices)

    @property
    def score(self) -> str:
        return f"{self._headline} {100 * self._total / self._scored:.1f}" if self._scored else self._headline

    @property
    def spent(self) -> str:
        cost = f" · cost {self._cost.known:.2f}" if self._cost.known else ""
        errors = f" · {counted(self._errors, 'error')}" if self._errors else ""
        return f"{self._tokens:,} tokens{cost}{errors}"
