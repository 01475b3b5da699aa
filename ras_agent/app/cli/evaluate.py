"""Implements `ras-agent eval`, which asks an agent a question set and prints a table of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ras_agent.app.cli.options import (
    INCOMPLETE,
    Engine,
    PricesFile,
    RayAddress,
    Workers,
    data_option,
    run_option,
)
from ras_agent.app.cli.terminal import (
    inert,
    print_line,
    print_skipped,
    progress_bar,
    quantity,
    screen,
)
from ras_agent.config.settings import Settings
from ras_agent.eval.run.prices import Cost, Prices, cost_of, load_prices, model_tokens

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.contracts.records import JSON
    from ras_agent.eval.run.begin import Run
    from ras_agent.eval.run.result import Result
    from ras_agent.eval.run.task import Task

_SECONDS_BETWEEN_LINES = 20.0
"""Seconds between two progress lines of a run without a terminal."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Holds the options of every command that asks questions of a benchmark: `eval` and the studies."""

    corpus: Annotated[
        Path | None,
        data_option(
            help="Passages to search, JSON Lines of id, text, title. If not set, those of the questions."
        ),
    ] = None
    embedder: Annotated[
        str | None,
        data_option(
            help="Embeds --corpus, or the questions' own passages or graphs, for retrievers that need vectors: minilm, "
            "st:MODEL or provider:MODEL.",
            hidden=True,
        ),
    ] = None
    first: Annotated[
        int,
        data_option(
            min=1,
            help="The first question asked, from 1.",
            hidden=True,
        ),
    ] = 1
    limit: Annotated[
        int | None,
        data_option(min=1, help="How many questions are asked; if not set, all."),
    ] = None
    out: Annotated[
        Path,
        run_option(
            "--out", "-o", help="The folder of the results; the same command resumes."
        ),
    ]
    concurrency: Annotated[
        int,
        run_option(
            min=1,
            help="Questions asked at the same time.",
            hidden=True,
        ),
    ] = 32
    metric: Annotated[
        list[str] | None,
        run_option(
            help="Metric to compute instead of the benchmark's, e.g. recall@10. May be repeated.",
            hidden=True,
        ),
    ] = None
    retry_errors: Annotated[
        bool,
        run_option(
            "--retry-errors",
            help="Ask questions again that ended in an error.",
            hidden=True,
        ),
    ] = False
    seed: Annotated[
        int,
        run_option(
            help="Seed of random choices, such as shuffles.",
            hidden=True,
        ),
    ] = 0
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print only errors, and the tables of a study.",
            hidden=True,
        ),
    ] = False
    settings: Settings
    flags: frozenset[str]

    def run_settings(self) -> Settings:
        """Return the settings of the runs, without reviews, because no person is there to decide.

        Raises:
            BadParameter: if both --corpus and --index are given.
        """
        if self.corpus and "index" in self.flags:
            raise typer.BadParameter(
                "--corpus and --index exclude each other: give one of them"
            )
        # a settings file that is also used for `ask` may name reviews
        return self.settings.model_copy(update={"review": None})

    def task(
        self,
        benchmark: str,
        data: Path,
        settings: Settings | None = None,
        **others: Any,
    ) -> Task:
        """Return the task of the questions that the options select, which searches the index of `settings`.

        Without `settings`, it searches --corpus or the index of the run's settings. `others` are further arguments of
        `load_task`.
        """
        from ras_agent.eval.run.task import load_task

        if settings is None:
            settings = self.run_settings()
            others |= {"corpus": self.corpus, "embedder": self.embedder}
        return load_task(
            benchmark,
            data,
            settings,
            first=self.first,
            limit=self.limit,
            metrics=self.metric or (),
            **others,
        )


Benchmark = Annotated[
    str,
    typer.Argument(help="hotpotqa, musique, ..., or jsonl for your own questions."),
]
QuestionFile = Annotated[Path, data_option(help="The question file.")]


def evaluate(
    *,
    engine: Engine = "here",
    workers: Workers = None,
    ray_address: RayAddress = None,
    retrieval_only: Annotated[
        bool,
        run_option(
            "--retrieval-only",
            help="Only search for the question, without an answer.",
            hidden=True,
        ),
    ] = False,
    baseline: Annotated[
        str | None,
        run_option(
            help="Answer yes, no, or the title of the best passage (top-title) instead of asking the agent.",
            hidden=True,
        ),
    ] = None,
    instruction: Annotated[
        str,
        run_option(
            help="The benchmark's instruction: answer, answer_baseline, or answer_citing, to have the answerer list "
            "nodes and edges of the graph.",
            hidden=True,
        ),
    ] = "answer",
    context_use: Annotated[
        str | None,
        data_option(
            help="How the passages that come with the questions are used: corpus searches their union; seed gives a "
            "question's own to its first hop; static gives them in place of a search. If not set, as the "
            "benchmark does.",
            hidden=True,
        ),
    ] = None,
    strict: Annotated[
        bool,
        data_option(
            "--strict",
            help="Stop at a record that cannot be read.",
            hidden=True,
        ),
    ] = False,
    traces: Annotated[
        bool,
        run_option(
            "--traces/--no-traces",
            help="Store each question's trace.",
            hidden=True,
        ),
    ] = True,
    mauve: Annotated[
        str | None,
        run_option(
            help="Also compute MAUVE of the answers, with the vectors of this language model: gpt2-large, or a folder.",
            hidden=True,
        ),
    ] = None,
    repeat: Annotated[
        int,
        run_option(
            min=1,
            help="Ask all questions this many times, and measure how far the repeats agree.",
        ),
    ] = 1,
    prices: PricesFile = None,
    name: Annotated[
        str | None,
        run_option(help="The run's name in reports.", hidden=True),
    ] = None,
    benchmark: Benchmark,
    data: QuestionFile,
    options: RunOptions,
) -> None:
    """Ask an agent a question set and score its answers.

    Each result is on disk as soon as its question ends. The same command
    resumes a run that was interrupted or killed, and asks no question and
    no model twice: model replies are stored in the run's folder, or in
    --cache.
    A question that fails is recorded, counts as wrong, and makes the exit
    code 3. So does a record that cannot be read, which is left out.
    """
    from ras_agent.eval.run.agent import EvalAgent, baseline_agent, search_agent
    from ras_agent.eval.run.begin import begin_run
    from ras_agent.eval.run.repeats import ask_repeatedly
    from ras_agent.eval.run.workers import WorkerPlan

    table = load_prices(prices)
    console = screen(quiet=options.quiet)
    task = options.task(
        benchmark,
        data,
        instruction=instruction,
        context_use=context_use,
        strict=strict,
    )
    if retrieval_only and not options.metric:
        task = task.for_search()
    described: dict[str, Any] = {
        "name": name or options.out.name,
        "settings": options.run_settings(),
        "seed": options.seed,
        "traces": traces,
    }
    if baseline:
        agent = baseline_agent(baseline=baseline, **described)
    elif retrieval_only:
        agent = search_agent(**described)
    else:
        agent = EvalAgent(**described)
    print_skipped(task.skipped)
    begin: dict[str, Any] = {
        "retry_errors": options.retry_errors,
        "concurrency": options.concurrency,
        "workers": WorkerPlan(engine, workers, ray_address),
    }
    if repeat > 1:
        summary = ask_repeatedly(
            task,
            agent,
            options.out,
            repeat,
            prices=table,
            mauve=mauve,
            watch=lambda run: progress(console, run, table),
            **begin,
        )
    else:
        run = begin_run(task, agent, options.out, **begin)
        with progress(console, run, table) as on_end:
            summary = run.finish(on_end, table, mauve)
    _show(console, summary, task, options.out)
    if summary["errors"] or task.skipped:
        raise typer.Exit(INCOMPLETE)


@contextmanager
def progress(
    console: Console, run: Run, prices: Prices | None = None
) -> Iterator[Callable[[Result], None]]:
    """Show a progress bar, and yield the function to call with each result.

    The bar shows questions done, the main score, tokens, cost, errors and the time left. Without a terminal, a
    line is printed to standard error from time to time.
    """
    from rich import progress as rich

    tally = _RunTally(run.headline, prices or Prices())
    for result in run.done:
        tally.add(result)
    if run.done:
        print_line(
            console,
            f"resuming {run.folder.path}: {len(run.done)} of {len(run.questions)} are done",
            "dim",
        )
    columns = (
        rich.TextColumn("{task.fields[score]}"),
        rich.BarColumn(bar_width=24),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[spent]}", style="dim"),
        rich.TimeElapsedColumn(),
        rich.TextColumn("left", style="dim"),
        rich.TimeRemainingColumn(elapsed_when_finished=False),
    )
    started = {
        "completed": len(run.done),
        "score": tally.score,
        "spent": tally.cost_text,
    }
    with progress_bar(console, *columns, total=len(run.questions), **started) as update:
        done = len(run.done)
        said = monotonic()
        errors = screen(stderr=True, quiet=console.quiet)

        def on_end(result: Result) -> None:
            nonlocal done, said
            done += 1
            tally.add(result)
            update(advance=1, score=tally.score, spent=tally.cost_text)
            if console.is_terminal or monotonic() - said < _SECONDS_BETWEEN_LINES:
                return
            said = monotonic()
            print_line(
                errors,
                f"{done} of {len(run.questions)} done · {tally.score} · {tally.cost_text}",
            )

        yield on_end


def _show(console: Console, summary: JSON, task: Task, out: Path) -> None:
    """Print the scores with their intervals, and the hops, seconds, tokens and cost of the run."""
    from rich.table import Table

    from ras_agent.eval.report.markdown import at_once_text, ceiling_note

    table = Table(
        "metric",
        "mean",
        "95 % interval",
        "n",
        box=None,
        header_style="dim",
        pad_edge=False,
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for metric, score in summary["scores"].items():
        table.add_row(metric, *_figures(score))
    if mauve := summary.get("mauve"):
        table.add_row(
            "mauve",
            f"{100 * mauve['score']:.1f}",
            inert(mauve["featuriser"]),
            str(mauve["texts"]),
        )
    if len(summary["by_answer"]) > 1:
        for kind, part in summary["by_answer"].items():
            for metric in sorted({"em", "f1"} & part["scores"].keys()):
                table.add_row(f"  {metric}, {kind}", *_figures(part["scores"][metric]))
    for share, scores in summary["at_coverage"].items():
        for metric in sorted({"em", "f1"} & scores.keys()):
            table.add_row(
                f"  {metric}, surest {share}", f"{100 * scores[metric]:.1f}", "", ""
            )
    tokens = summary["tokens"]
    seconds = summary["seconds"]
    at_once = at_once_text(seconds["at_once"], seconds["queued"])
    parts = [
        quantity(summary["questions"], "question"),
        f"{summary['hops']:.1f} hops and {summary['retrieved']:.1f} passages each",
        f"{seconds['p50']:.2f} s each (95 %: {seconds['p95']:.2f} s{at_once})",
        quantity(tokens["calls"], "LLM call"),
    ]
    if tokens["calls"]:
        parts.append(f"{tokens['input_tokens']:,} + {tokens['output_tokens']:,} tokens")
    if cost := summary["cost"]:
        parts.append(
            f"cost {cost['total']:.4g}{' without ' + inert(', '.join(cost['unknown'])) if cost['unknown'] else ''}"
        )
    parts += _right_parts(summary["right"])
    parts.append(f"{out} written")
    stops = ", ".join(
        f"{reason} {count}" for reason, count in summary["stop_reasons"].items()
    )
    console.print(table)
    print_line(console, f"stopped by: {stops}", "dim")
    print_line(console, " · ".join(parts), "dim")
    if summary["ceilings"]:
        note = ceiling_note(summary["ceilings"])
        print_line(console, note, "dim")
    if repeats := summary.get("repeats"):
        print_line(console, _repeats_text(repeats))
    if note := task.evidence_note:
        print_line(console, note, "yellow")
    if failures := summary["failures"]:
        message, most = next(iter(failures.items()))
        note = f"{quantity(sum(failures.values()), 'failure')} inside runs, {most} of them: {inert(message, limit=300)}"
        print_line(console, note, "yellow")
    print_errors(console, summary["errors"])


def print_errors(console: Console, count: int) -> None:
    """Print how many questions ended in an error, if any did."""
    if count:
        note = f"{quantity(count, 'question')} ended in an error; --retry-errors asks again"
        print_line(console, note, "red")


def _right_parts(right: JSON) -> list[str]:
    """Return the cost of a correct answer in tokens, and in money if prices are known."""
    parts = []
    if right["tokens"] is not None:
        parts.append(f"{right['tokens']:,.0f} tokens a right answer")
    if right["cost"] is not None:
        parts.append(f"{right['cost']:.4g} a right answer")
    return parts


def _repeats_text(repeats: JSON) -> str:
    """Return how much repeats agree, as text: the spread of the deciding metric, and pass^k."""
    by = repeats["by"]
    parts = [f"{repeats['count']} repeats"]
    if spread := repeats["scores"].get(by):
        least = 100 * spread["least"]
        most = 100 * spread["most"]
        deviation = 100 * spread["deviation"]
        parts.append(
            f"{by} {100 * spread['mean']:.1f} ± {deviation:.1f} ({least:.1f} to {most:.1f})"
        )
    chances = [
        f"pass^{k} {100 * chance:.1f}" for k, chance in repeats["all_right"].items()
    ]
    return " · ".join([*parts, *chances])


def _figures(score: JSON) -> tuple[str, str, str]:
    """Return a metric's mean, interval and number of questions."""
    return (
        f"{100 * score['mean']:.1f}",
        f"{100 * score['low']:.1f} to {100 * score['high']:.1f}",
        str(score["n"]),
    )


class _RunTally:
    """Sums up the results so far, so that an update need not go through all results again."""

    def __init__(self, headline: str, prices: Prices) -> None:
        self._headline = headline
        self._prices = prices
        self._cost = Cost()
        self._total = 0.0
        self._scored = 0
        self._errors = 0
        self._tokens = 0

    def add(self, result: Result) -> None:
        if self._headline in result.scores:
            self._total += result.scores[self._headline]
            self._scored += 1
        self._errors += result.error is not None
        self._tokens += result.usage.get("input_tokens", 0) + result.usage.get(
            "output_tokens", 0
        )
        self._cost += cost_of(model_tokens(result.usage), self._prices)

    @property
    def score(self) -> str:
        return (
            f"{self._headline} {100 * self._total / self._scored:.1f}"
            if self._scored
            else self._headline
        )

    @property
    def cost_text(self) -> str:
        cost = f" · cost {self._cost.total:.2f}" if self._cost.total else ""
        errors = f" · {quantity(self._errors, 'error')}" if self._errors else ""
        return f"{self._tokens:,} tokens{cost}{errors}"
