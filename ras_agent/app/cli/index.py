"""Implements `ras-agent index`, which makes an index of files, or brings one up to date."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.options import INCOMPLETE, Compacting, Quiet, read_place
from ras_agent.app.cli.terminal import (
    hang,
    inert,
    name_list,
    print_outcome,
    print_skipped,
    progress_bar,
    quantity,
    screen,
)
from ras_agent.config.address import Address
from ras_agent.config.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.tools.index.documents import Skipped
    from ras_agent.tools.index.ingest import IngestReport, Progress

_NAMED = 3


def index(
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files, and folders of them: text, tables, PDF, web pages, Office files, mails and more."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            parser=read_place,
            metavar="PLACE",
            help="The index to make or to bring up to date: a folder, or postgresql://host/database.",
        ),
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Index the bundled sample, too.")
    ] = False,
    settings: Settings,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            hidden=True,
            help="Stop at the first error, before anything is written.",
        ),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Remove the passages of files that no longer exist."
        ),
    ] = False,
    forget: Annotated[
        list[str] | None,
        typer.Option(
            help="Remove the passages of this file or folder, or of the document with this id. May be repeated."
        ),
    ] = None,
    compact: Compacting = "now",
    follow_links: Annotated[
        bool,
        typer.Option(
            "--follow-links",
            hidden=True,
            help="Follow symbolic links inside the folders.",
        ),
    ] = False,
    read_as: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--as",
            metavar="text PATTERNS",
            help="Read other kinds of files: --as text '*.log,*.tex'.",
        ),
    ] = None,
    ocr: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command that reads a PDF page without text: COMMAND FILE PAGE prints its text.",
        ),
    ] = None,
    vision: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Vision model that describes pictures, such as openai:MODEL.",
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="List each file and record that is left out."
        ),
    ] = False,
) -> None:
    """Make an index of files and folders, or bring one up to date.

    Unchanged files are not read again: the same command resumes a run
    that was interrupted. Unreadable files are skipped and listed, and make
    the exit code 3.
    """
    from ras_agent.app.sample import sample_file
    from ras_agent.tools.index.chunk import Chunking
    from ras_agent.tools.index.fields import Fields
    from ras_agent.tools.index.ingest import ingest

    if not paths and not forget and not sample:
        raise typer.BadParameter(
            "nothing to index: name files or folders, or give --sample"
        )
    target: Path | Address | None = out or settings.index
    if target is None:
        raise typer.BadParameter(
            "there is no place for the index: give --out PATH, such as --out my.index"
        )
    console = screen(quiet=quiet)
    with _bar(console) as on_progress, sample_file() as bundled:
        report = ingest(
            [*(paths or ()), *([bundled] if sample else [])],
            target,
            embedder=settings.embedder,
            chunking=Chunking.of(settings.chunk_size, settings.overlap),
            fields={
                pattern: Fields(**keys)
                for pattern, keys in (settings.fields or {}).items()
            },
            metadata=settings.metadata,
            language=settings.language,
            strict=strict,
            prune=prune,
            compact=compact,
            forget=forget or (),
            follow_links=follow_links,
            as_text=_patterns_of(read_as),
            ocr=shlex.split(ocr or ""),
            vision=vision or "",
            on_progress=on_progress,
        )
    print_skipped(report.errors)
    _print_report(console, report, target, prune=prune, verbose=verbose)
    if report.errors:
        raise typer.Exit(INCOMPLETE)


def _patterns_of(read_as: tuple[str, str] | None) -> list[str]:
    """Return the patterns of the files that are read as text."""
    if read_as is None:
        return []
    kind, patterns = read_as
    if kind != "text":
        raise typer.BadParameter(
            f"files can be read only as text, not as {kind!r}: write --as text '*.log'"
        )
    return patterns.split(",")


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[Progress], None]]:
    """Show a bar on an interactive terminal, and yield the function that updates it."""
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.fields[file]}", markup=False),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TextColumn("{task.fields[passages]:,} passages", markup=False),
        rich.TimeRemainingColumn(),
    )
    with progress_bar(
        console, *columns, file="looking for files", passages=0
    ) as update:
        # computed only once, because a file may have a million records
        width = console.width // 3

        def on_progress(now: Progress) -> None:
            # the search structures are built last
            file = "building"
            if now.bytes_read < now.bytes_total:
                file = inert(now.file, limit=width)
            update(
                total=now.bytes_total,
                completed=now.bytes_read,
                file=file,
                passages=now.passages,
            )

        yield on_progress


def _print_report(
    console: Console,
    report: IngestReport,
    out: Path | Address,
    *,
    prune: bool,
    verbose: bool,
) -> None:
    """Print the skipped and the indexed files."""
    from rich.text import Text

    from ras_agent.tools.index.chunk import Chunking

    def say(label: str, text: str) -> None:
        body = Text(text, "dim")
        hang(console, Text(label), body, 9)

    left_out = [item for item in report.skipped if not item.error]
    if left_out:
        lines = (
            [f"{item.place}: {item.reason}" for item in left_out]
            if verbose
            else _group_lines(left_out)
        )
        say("left out", "\n".join(map(inert, lines)))
    for old, new in report.moved:
        say("moved", f"{inert(old)} is now {inert(new)}")
    if report.remaining:
        remedy = "forgotten, and still there: the next index of its folder reads it again; move or delete it"
        say("remains", f"{name_list(report.remaining)}: {remedy}")
    if report.long_records:
        what = "record is" if report.long_records == 1 else "records are"
        remedy = f"longer than {Chunking().size:,} characters and whole, as records with an id are; --chunk-size N cuts them"
        say("long", f"{report.long_records:,} {what} {remedy}")
    if report.stranded:
        remedy = "what came from there is still in the index; --forget PATH removes it"
        say("gone", f"{name_list(report.stranded)}: {remedy}")
    if report.vanished:
        remedy = (
            "not pruned, because their place cannot be read"
            if prune
            else "--prune removes them"
        )
        say("gone", f"{name_list(report.vanished)}: still in the index; {remedy}")
    counts = [
        f"{report.passages_written:,} written",
        f"{quantity(report.documents_removed, 'document')} removed",
        f"{quantity(report.files_unchanged, 'file')} unchanged",
        f"{len(left_out):,} left out",
        quantity(len(report.errors), "error"),
    ]
    total = quantity(report.passages_total, "passage")
    print_outcome(console, out, [total], counts)


def _group_lines(items: Sequence[Skipped]) -> list[str]:
    """Return a line for each reason, with the first few places where it occurred."""
    places: dict[str, list[str]] = {}
    for item in items:
        places.setdefault(item.reason, []).append(item.place)
    return [
        f"{reason}: {', '.join(where[:_NAMED])}{f' and {len(where) - _NAMED:,} more' if len(where) > _NAMED else ''}"
        for reason, where in places.items()
    ]
