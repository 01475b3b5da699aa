"""Implements `ras-agent kg`, which builds, shows and exports the knowledge graph of an index, and deletes from
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ras_agent.app.cli.options import (
    INCOMPLETE,
    AsJSON,
    Compacting,
    IndexFolder,
    Quiet,
    read_place,
)
from ras_agent.app.cli.terminal import (
    inert,
    print_json,
    print_outcome,
    print_skipped,
    progress_bar,
    quantity,
    screen,
)
from ras_agent.config.address import as_argument
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import any_failed

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.contracts.records import Passage
    from ras_agent.tools.kg.build import KGReport
    from ras_agent.tools.kg.index import KGIndex
    from ras_agent.tools.kg.writer import KGProgress

_same_option = partial(typer.Option, rich_help_panel="What counts as the same")
_ready_option = partial(typer.Option, rich_help_panel="Ready facts")
_NODES = 300
_AROUND = 100


def _cosine(value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1:
        raise typer.BadParameter(
            f"the value must be above 0 and at most 1, got {value}"
        )
    return value


def build(
    *,
    index: IndexFolder,
    settings: Settings,
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Embedder of names: minilm, st:MODEL or provider:MODEL; '' for a graph without vectors. If not set, "
            "that of the index."
        ),
    ] = None,
    openie: Annotated[
        Path | None,
        _ready_option(
            help="JSON Lines of id, text, triples and entities: facts of passages that are then not extracted.",
            hidden=True,
        ),
    ] = None,
    gfm: Annotated[
        Path | None,
        _ready_option(
            help="gfm-rag's data/NAME: raw/documents.json and processed/stage1.",
            hidden=True,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        _same_option(
            callback=_cosine,
            help="Lowest cosine at which two names are taken for one thing.",
            hidden=True,
        ),
    ] = None,
    neighbours: Annotated[
        int | None,
        _same_option(
            min=0,
            help="Largest number of such names for each name.",
            hidden=True,
        ),
    ] = None,
    exact: Annotated[
        bool | None,
        _same_option(
            "--exact/--canonical",
            help="Compare names exactly as they are written, as gfm-rag does; with --canonical, 'The Bell' and 'bell' "
            "are one name.",
            hidden=True,
        ),
    ] = None,
    concurrency: Annotated[
        int,
        typer.Option(
            min=1, help="Passages read at the same time, if a model reads them."
        ),
    ] = 16,
    workers: Annotated[
        int,
        typer.Option(
            min=1, help="Processes that read passages, if no model reads them."
        ),
    ] = 1,
    fallback: Annotated[
        Literal["offline", "stop"] | None,
        typer.Option(
            help="What reads a passage if the model's reply about it cannot be read: offline, or stop for nothing. If "
            "not set, offline for English.",
            hidden=True,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make the graph of an index, or bring it up to date.

    Reads the passages that are new or have changed, and forgets those that
    no longer exist. The same command resumes a build that was interrupted.
    Passages that cannot be read are listed and make the exit code 3.
    """
    from ras_agent.graphs.resolve import extractor_from_settings
    from ras_agent.tools.structure.build_graph import build_graph

    spec = settings.extractor or settings.llm or "offline"
    computes = spec.partition(":")[0] == "offline"
    if workers > 1 and not computes:
        raise SettingsError(
            "--workers works only with the offline extractor; for a model, give --concurrency"
        )
    same: dict[str, Any] = {
        "threshold": threshold,
        "neighbours": neighbours,
    }
    console = screen(quiet=quiet)
    with _bar(console) as on_progress:
        report = build_graph(
            index,
            extractor=extractor_from_settings(settings, spec),
            openie=openie,
            gfm=gfm,
            embedder=embedder,
            equivalence={
                name: value for name, value in same.items() if value is not None
            }
            or None,
            exact=exact,
            at_once=1 if computes else concurrency,
            workers=workers,
            fallback=fallback or settings.fallback,
            schema=settings.schema_file,
            on_progress=on_progress,
        )
    _print_report(console, index, report)


def add(
    *,
    index: Annotated[
        Path,
        typer.Argument(
            parser=read_place,
            metavar="PLACE",
            help="The index; created if it does not exist.",
        ),
    ],
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files of a graph; docs/howto/own-graph.md lists the formats."
        ),
    ],
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Embedder for a new index and a new graph: minilm, st:MODEL or provider:MODEL; '' for no vectors."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Add an existing knowledge graph to an index.

    Each file becomes a document with one passage per entity. Its facts
    enter the question's graph without being extracted again, with file and
    line as their source. A file that was added before is replaced.
    """
    from ras_agent.tools.kg.build import add_triples

    console = screen(quiet=quiet)
    with _bar(console) as on_progress:
        report = add_triples(
            index,
            files,
            embedder=embedder,
            on_progress=on_progress,
        )
    _print_report(console, index, report)


def delete(
    *,
    index: IndexFolder,
    documents: Annotated[list[str], typer.Argument(help="Ids of documents.")],
    compact: Compacting = "now",
    quiet: Quiet = False,
) -> None:
    """Delete documents from an index, and their facts from its graph."""
    from ras_agent.tools.kg.build import delete_documents

    console = screen(quiet=quiet)
    report = delete_documents(index, documents, compact=compact)
    _print_report(console, index, report)


def stats(
    *,
    index: IndexFolder,
    entity: Annotated[
        str | None, typer.Option(help="Show this entity and its facts instead.")
    ] = None,
    best: Annotated[
        int,
        typer.Option(
            min=0, help="Number of best connected entities to list, without figures."
        ),
    ] = 5,
    as_json: AsJSON = False,
) -> None:
    """Show the numbers of an index's graph, or one of its entities."""
    from ras_agent.tools.kg.index import KGIndex
    from ras_agent.tools.kg.stats import about, counts

    graph = KGIndex.open(index)
    if entity is None:
        table = counts(graph, best)
    else:
        number = graph.entity_id(entity)
        if number is None:
            export = f"ras-agent kg export {as_argument(index)} facts.tsv"
            raise SettingsError(
                f"{index} has no entity {entity!r}; `{export}` lists all facts"
            )
        table = about(graph, number)
    if as_json:
        print_json(table, indent=2)
        return
    width = max(map(len, table))
    for name, value in table.items():
        for line in value if isinstance(value, list) else [value]:
            typer.echo(
                f"{name:<{width}}  {inert(f'{line:,}' if isinstance(line, int) else str(line))}"
            )
            name = ""


def schema(
    *,
    action: Annotated[Literal["suggest"], typer.Argument(help="suggest.")],
    index: IndexFolder,
    least: Annotated[
        int, typer.Option(min=1, help="Least facts of a relation that is suggested.")
    ] = 5,
) -> None:
    """Suggest a schema for the relations that a graph has, as TOML to edit.

    Save it, change it, and give it to `kg build`, `ask` and the others as
    --schema FILE.
    """
    from ras_agent.tools.kg.index import KGIndex
    from ras_agent.tools.kg.suggest import suggested

    written = suggested(KGIndex.open(index), least)
    for line in written.splitlines():
        typer.echo(inert(line))


def export(
    *,
    index: IndexFolder,
    out: Annotated[
        Path,
        typer.Argument(
            help=".graphml, .json, .nt, .ttl, .rdf, .jsonld, .csv, .tsv, .jsonl, .html, a folder NAME.neo4j of Neo4j's "
            "CSV, or gfm-rag's folder data/NAME."
        ),
    ],
    around: Annotated[
        list[str] | None,
        typer.Option(
            help="html: draw the neighbourhood of this entity. May be repeated."
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"html: largest number of entities drawn. If not set, {_NODES}, or {_AROUND} around an entity.",
        ),
    ] = None,
) -> None:
    """Write the graph for other programs, or as a picture."""
    from ras_agent.tools.index.store import PassageIndex
    from ras_agent.tools.kg.formats import export as formats
    from ras_agent.tools.kg.formats.gfm_csv import write_gfm_files
    from ras_agent.tools.kg.index import KGIndex

    writers: dict[str, Callable[[KGIndex, Path], None]] = {
        ".graphml": formats.write_graphml,
        ".json": formats.write_node_link,
        ".nt": formats.write_nt,
        ".ttl": formats.write_rdf,
        ".rdf": formats.write_rdf,
        ".jsonld": formats.write_rdf,
        ".tsv": formats.write_tsv,
        ".csv": formats.write_csv,
        ".jsonl": formats.write_jsonl,
        ".neo4j": formats.write_neo4j,
        ".html": lambda graph, path: _draw(
            graph, path, around or (), nodes, PassageIndex.open(index).get
        ),
        "": lambda graph, path: write_gfm_files(
            graph, path, PassageIndex.open(index).get
        ),
    }
    # an existing folder may have a dot in its name
    kind = (
        "" if out.is_dir() and out.suffix.lower() not in writers else out.suffix.lower()
    )
    writer = writers.get(kind)
    if writer is None:
        raise SettingsError(
            f"{out}: unknown format; known: {', '.join(filter(None, writers))}, or a folder, which must already exist if "
            "its name has a dot"
        )
    if (around or nodes) and out.suffix.lower() != ".html":
        raise typer.BadParameter(
            f"--around and --nodes work only for pictures, and {out} is not a picture: give a name that ends in .html"
        )
    graph = KGIndex.open(index)
    writer(graph, _writable(out, folder=kind in ("", ".neo4j")))
    typer.echo(f"{out} written")


def _writable(out: Path, *, folder: bool) -> Path:
    """Return `out` if the export can be written there.

    Raises:
        SettingsError: if it cannot; the message names the problem.
    """

    if folder:
        if out.is_file():
            raise SettingsError(
                f"cannot write files to {out}: it is a file; name a folder"
            )
    elif out.is_dir():
        raise SettingsError(f"cannot write {out}: it is a folder; name a file")
    elif not out.parent.is_dir():
        raise SettingsError(
            f"cannot write {out}: the folder {out.parent} does not exist; create it first"
        )
    return out


def _draw(
    graph: KGIndex,
    path: Path,
    around: Sequence[str],
    nodes: int | None,
    passage: Callable[[str], Passage | None],
) -> None:
    from ras_agent.tools.kg.picture import graph_page, most_connected, nearby

    def name_of(passage_id: str) -> str:
        about = passage(passage_id)
        # the passage may have been removed since the graph was built
        if about is None or not about.title:
            return passage_id
        return (
            about.title if about.page is None else f"{about.title}, page {about.page}"
        )

    start = []
    for name in around:
        number = graph.entity_id(name)
        if number is None:
            raise SettingsError(
                f"the graph has no entity {name!r}: give another --around, such as a name that `ras-agent kg export` lists"
            )
        start.append(number)
    entities = (
        nearby(graph, start, nodes or _AROUND)
        if start
        else most_connected(graph, nodes or _NODES)
    )
    title = f"Around {', '.join(around)}" if around else "Knowledge graph"
    path.write_text(
        graph_page(graph, entities, title, around=start, name_of=name_of), "utf-8"
    )


def _print_report(console: Console, index: Path, report: KGReport) -> None:
    """Print the report of a build, and each of its errors. Exits with code 3 if there are errors other than
    refused facts.
    """
    print_skipped(report.skipped)
    for failure in report.failures:
        label = "failed " if any_failed([failure]) else "refused"
        typer.echo(f"{label}  {inert(failure.message)}", err=True)
    manifest = report.graph.manifest
    of_graph = [
        f"{quantity(manifest.facts, 'fact')} of {quantity(manifest.documents, 'passage')}",
        quantity(manifest.entities, "entity", "entities"),
        quantity(manifest.equivalences, "equivalence"),
    ]
    if report.graph.database is None:
        of_graph = ["no knowledge graph"]
    counts = [
        f"{quantity(report.read, 'passage')} read",
        f"{report.imported:,} imported",
        f"{report.erased:,} erased",
        f"{quantity(report.edits_gone, 'edit')} gone with their texts",
        quantity(len(report.failures), "failure"),
        f"{len(report.skipped):,} skipped",
    ]
    print_outcome(console, index, of_graph, counts)
    if any_failed(report.failures) or any(item.error for item in report.skipped):
        raise typer.Exit(INCOMPLETE)


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[KGProgress], None]]:
    """Show a bar on an interactive terminal, and yield the function that updates it."""
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.fields[stage]}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
    )
    with progress_bar(console, *columns, stage="opening") as update:

        def on_progress(now: KGProgress) -> None:
            stage = now.stage if now.done < now.total else "building"
            update(stage=stage, total=now.total or None, completed=now.done)

        yield on_progress
