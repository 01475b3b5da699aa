"""`ras-agent index`: files into an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.exits import INCOMPLETE
from ras_agent.app.cli.options import Config, Debug, settings_from

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.tools.index.ingest import IngestReport, Progress
    from ras_agent.tools.index.load import Skipped

__all__ = ["index"]

CUTTING, RECORDS = "Cutting into passages", "Fields of JSON Lines and tables"
NAMED = 3


def index(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files, and folders of them: txt, md, jsonl, csv, tsv, pdf.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The index to make or to bring up to date.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Index the bundled sample, too.")] = False,
    embedder: Annotated[
        str | None,
        typer.Option(help="minilm, st:MODEL or provider:MODEL; for dense and hybrid retrieval. None: BM25 alone."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first error, before anything is written.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove what came from files that are no longer there.")
    ] = False,
    forget: Annotated[
        list[str] | None, typer.Option(help="Remove what came from this file, or the document of this id.")
    ] = None,
    chunk_size: Annotated[
        int | None, typer.Option(help="Longest passage, in characters (1000).", rich_help_panel=CUTTING)
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option(help="Characters of whole sentences repeated in the next passage (200).", rich_help_panel=CUTTING),
    ] = None,
    text_field: Annotated[str | None, typer.Option(help="Key or column (text).", rich_help_panel=RECORDS)] = None,
    title_field: Annotated[str | None, typer.Option(help="Key or column (title).", rich_help_panel=RECORDS)] = None,
    id_field: Annotated[
        str | None, typer.Option(help="Key or column (id); '' numbers the records.", rich_help_panel=RECORDS)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors alone.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List all that was left out, one by one.")] = False,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Make an index of files and folders, or bring one up to date.

    Unchanged files are not read again: the same command resumes a run
    that was interrupted. What cannot be read is skipped, listed, and makes
    the exit code 3.
    """
    from ras_agent.app.cli.screen import screen
    from ras_agent.app.sample import sample_file
    from ras_agent.tools.index.chunk import Chunking
    from ras_agent.tools.index.ingest import ingest
    from ras_agent.tools.index.load import Fields

    if not paths and not forget and not sample:
        raise typer.BadParameter("index what? name files or folders, or give --sample")
    settings = settings_from(
        config, index=out, embedder=embedder, chunk_size=chunk_size, overlap=overlap, text_field=text_field,
        title_field=title_field, id_field=id_field,
    )  # fmt: skip
    if settings.index is None:
        raise typer.BadParameter("where to? give --out PATH, such as --out my.index")
    console = screen(quiet=quiet)
    with _bar(console) as on_progress, sample_file() as bundled:
        report = ingest(
            [*(paths or ()), *([bundled] if sample else [])],
            settings.index,
            embedder=settings.embedder,
            chunking=Chunking(settings.chunk_size, settings.overlap),
            fields=Fields(settings.text_field, settings.title_field, settings.id_field or None),
            strict=strict,
            prune=prune,
            forget=forget or (),
            on_progress=on_progress,
        )
    _tell_errors(report)
    _tell(console, report, settings.index, prune=prune, verbose=verbose)
    if report.errors:
        raise typer.Exit(INCOMPLETE)


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[Progress], None] | None]:
    """A bar on an interactive terminal, nothing elsewhere."""
    if console.quiet or not console.file.isatty():
        yield None
        return
    from rich import progress as rich

    from ras_agent.app.cli.inert import inert

    columns = (
        rich.TextColumn("{task.fields[file]}", markup=False),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TextColumn("{task.fields[passages]:,} passages", markup=False),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, file="looking for files", passages=0)

        def on_progress(now: Progress) -> None:
            # the search structures are built at the very end
            file = inert(now.file, limit=console.width // 3) if now.bytes_read < now.bytes_total else "building"
            bar.update(task, total=now.bytes_total, completed=now.bytes_read, file=file, passages=now.passages)

        yield on_progress


def _tell(console: Console, report: IngestReport, out: Path, *, prune: bool, verbose: bool) -> None:
    """What was left out, what was done. Errors are told by `_tell_errors`."""
    from rich.text import Text

    from ras_agent.app.cli.inert import inert
    from ras_agent.app.cli.layout import hang
    from ras_agent.app.cli.summary import counted

    left_out = [item for item in report.skipped if not item.error]
    if left_out:
        lines = [f"{item.place}: {item.reason}" for item in left_out] if verbose else _grouped(left_out)
        hang(console, Text("left out "), Text("\n".join(map(inert, lines)), "dim"), 9)
    if report.vanished:
        what = f"{', '.join(report.vanished[:5])}{', …' if len(report.vanished) > 5 else ''}"
        remedy = "not pruned, for their place cannot be read" if prune else "--prune removes them"
        hang(console, Text("gone     "), Text(f"{inert(what)}: still in the index; {remedy}", "dim"), 9)
    parts = [
        counted(report.passages_total, "passage"),
        f"{report.passages_written:,} written",
        f"{counted(report.documents_removed, 'document')} removed",
        f"{counted(report.files_unchanged, 'file')} unchanged",
        f"{len(left_out):,} left out",
        counted(len(report.errors), "error"),
    ]
    parts[1:] = [part for part in parts[1:] if not part.startswith("0 ")]
    hang(console, Text(f"{inert(str(out))} ", "bold"), Text(" · ".join(parts)), len(str(out)) + 1)


def _tell_errors(report: IngestReport) -> None:
    """Each on a line of its own, uncut, so that it can be looked up or searched for."""
    from ras_agent.app.cli.inert import inert

    for item in report.errors:
        typer.echo(f"skipped  {inert(str(item))}", err=True)


def _grouped(items: Sequence[Skipped]) -> list[str]:
    """One line for each reason, with the first few places."""
    places: dict[str, list[str]] = {}
    for item in items:
        places.setdefault(item.reason, []).append(item.place)
    return [
        f"{reason}: {', '.join(found[:NAMED])}{f' and {len(found) - NAMED:,} more' if len(found) > NAMED else ''}"
        for reason, found in places.items()
    ]
