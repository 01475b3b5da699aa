"""Implements `ras-agent structure`, which reads the facts of a whole corpus into a triple cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.options import (
    INCOMPLETE,
    Engine,
    PricesFile,
    Quiet,
    RayAddress,
    Workers,
    read_place,
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
from ras_agent.contracts.records import any_failed

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.app.structuring import PassageReport
    from ras_agent.contracts.errors import IngestError
    from ras_agent.contracts.records import Failure, Passage
    from ras_agent.eval.question_file import OnBad
    from ras_agent.eval.run.prices import Prices

_NAMED = 3


def structure(
    *,
    triple_cache: Annotated[
        Path,
        typer.Option(
            "--triple-cache",
            "-o",
            parser=read_place,
            metavar="PLACE",
            help="The cache of facts to fill: a file, or postgresql://host/database.",
        ),
    ],
    corpus: Annotated[
        Path | None, typer.Option(help="Passages, JSON Lines of id, text, title.")
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            "-i",
            help="An index whose passages are read, instead of --corpus.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="How many passages are read; if not set, all."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Passages read at the same time.")
    ] = 32,
    engine: Engine = "here",
    workers: Workers = None,
    ray_address: RayAddress = None,
    settings: Settings,
    prices: PricesFile = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Stop at a record that cannot be read.", hidden=True
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Read the facts of a corpus once, for all later runs.

    `ask` and `eval` find them there, given the same --triple-cache and
    extractor. The same command resumes a run that was interrupted, and
    reads the failed passages again; failures make the exit code 3, and so do
    records of the corpus that cannot be read, which are left out. Facts
    that their passage does not hold are left out, too, and reported.
    """
    from ras_agent.app.structuring import read_corpus
    from ras_agent.eval.run.prices import load_prices
    from ras_agent.eval.run.workers import WorkerPlan

    settings = settings.model_copy(
        update={
            "triple_cache": triple_cache,
            "index": index or settings.index,
        }
    )
    spec = settings.extractor or settings.llm
    if spec is None:
        raise typer.BadParameter(
            "no extractor to read with: give one, such as --extractor openai:gpt-4o-mini"
        )
    table = load_prices(prices)
    console = screen(quiet=quiet)
    skipped: list[IngestError] = []
    passages = _passages(corpus, settings, None if strict else skipped.append)[:limit]
    print_skipped(skipped)
    plan = WorkerPlan(engine, workers, ray_address)
    tally = _CorpusTally(table)
    with _bar(console, len(passages), tally) as on_end:
        read_corpus(
            passages,
            settings,
            spec,
            concurrency=concurrency,
            workers=plan,
            on_end=on_end,
        )
    print_line(console, tally.summary(triple_cache), "dim")
    _print_failures(tally.failures)
    if any_failed(tally.failures) or skipped:
        raise typer.Exit(INCOMPLETE)


def _passages(
    corpus: Path | None, settings: Settings, on_bad: OnBad | None
) -> Sequence[Passage]:
    from ras_agent.eval.formats import load_passages
    from ras_agent.tools.index.store import PassageIndex

    if corpus is not None:
        return load_passages(corpus, on_bad)
    if settings.index is None:
        raise typer.BadParameter(
            "nothing to read: give --corpus PASSAGES.jsonl or --index PATH"
        )
    return PassageIndex.open(settings.index).passages


@dataclass
class _CorpusTally:
    """Counts the passages, facts and tokens so far."""

    prices: Prices
    passages: int = 0
    cached: int = 0
    facts: int = 0
    tokens: int = 0
    cost: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def add(self, report: PassageReport) -> None:
        self.passages += 1
        self.cached += not (report.calls or report.failures)
        self.facts += report.facts
        self.failures += report.failures
        for call in report.calls:
            self.tokens += call.input_tokens + call.output_tokens
            if price := self.prices.of(call.model):
                self.cost += price.cost(
                    call.input_tokens, call.output_tokens, call.cached_tokens
                )

    def summary(self, place: object) -> str:
        """Return a line such as "90 passages, 60 of them known · 1,204 facts · 40,300 tokens · facts.sqlite
        written".
        """

        cached = f", {self.cached:,} of them known" if self.cached else ""
        cost = f" · cost {self.cost:.4g}" if self.cost else ""
        facts = quantity(self.facts, "fact")
        tokens = quantity(self.tokens, "token")
        return f"{quantity(self.passages, 'passage')}{cached} · {facts} · {tokens}{cost} · {place} written"


@contextmanager
def _bar(
    console: Console, total: int, tally: _CorpusTally
) -> Iterator[Callable[[PassageReport], None]]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[spent]}"),
        TimeRemainingColumn(),
    )
    with progress_bar(console, *columns, total=total, spent="") as update:

        def on_end(report: PassageReport) -> None:
            tally.add(report)
            update(advance=1, spent=f"{tally.facts:,} facts · {tally.tokens:,} tokens")

        yield on_end


def _print_failures(failures: Sequence[Failure]) -> None:

    for failure in failures[:_NAMED]:
        typer.echo(f"ras-agent: {inert(failure.message, limit=300)}", err=True)
    if len(failures) > _NAMED:
        typer.echo(
            f"ras-agent: and {quantity(len(failures) - _NAMED, 'failure')} more",
            err=True,
        )
