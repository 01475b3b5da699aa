"""`ras-agent kg`: the knowledge graph beside an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ras_agent.app.cli import agent_options
from ras_agent.app.cli.exits import INCOMPLETE
from ras_agent.app.cli.options import Config, Debug, settings_from

if TYPE_CHECKING:
    from rich.console import Console

    from ras_agent.tools.kg.build import KGReport
    from ras_agent.tools.kg.index import KGIndex
    from ras_agent.tools.kg.writer import KGProgress

__all__ = ["kg"]

SAME, READY = "What counts as the same", "Ready facts"

kg = typer.Typer(
    name="kg",
    help="Make, change, look at and export the knowledge graph of an index.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Index = Annotated[Path, typer.Argument(help="The index.", show_default=False)]
NODES = 5000


def _cosine(value: float | None) -> float | None:
    if value is not None and not 0 < value <= 1:
        raise typer.BadParameter(f"{value} is not above 0 and up to 1")
    return value


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors alone.")]
Embedder = Annotated[
    str | None, typer.Option(help="minilm, st:MODEL or provider:MODEL; '' for none. The index's own, if it has one.")
]


@kg.command("build")
def build(
    index: Index,
    llm: agent_options.Llm = None,
    extractor: agent_options.Extractor = None,
    few_shot: agent_options.FewShot = None,
    prompts: agent_options.Prompts = None,
    cache: agent_options.Cache = None,
    triple_cache: agent_options.TripleCache = None,
    embedder: Embedder = None,
    openie: Annotated[
        Path | None,
        typer.Option(help="JSON Lines of id, text, triples, entities; not read again.", rich_help_panel=READY),
    ] = None,
    gfm: Annotated[
        Path | None, typer.Option(help="Folder with gfm-rag's nodes.csv and edges.csv.", rich_help_panel=READY)
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(callback=_cosine, help="Least cosine of two names for one thing.", rich_help_panel=SAME),
    ] = None,
    neighbours: Annotated[
        int | None, typer.Option(min=0, help="Most such names a name can have.", rich_help_panel=SAME)
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Passages under way at once, if a model reads them.")] = 16,
    workers: Annotated[int, typer.Option(min=1, help="Processes that read, if no model does.")] = 1,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> None:
    """Make the graph of an index, or bring it up to date.

    Reads the passages that are new or have changed and forgets those that
    are gone. The same command resumes a build that was interrupted. What
    cannot be read is listed and makes the exit code 3.
    """
    from ras_agent.app.cli.screen import screen
    from ras_agent.errors import SettingsError
    from ras_agent.graphs.from_settings import extractor_from_settings
    from ras_agent.tools.kg.build import build_graph

    settings = settings_from(
        config, llm=llm, extractor=extractor, few_shot=few_shot, prompts=prompts, cache=cache, triple_cache=triple_cache
    )
    spec = settings.extractor or settings.llm or "offline"
    computes = spec.partition(":")[0] == "offline"
    if workers > 1 and not computes:
        raise SettingsError("--workers share the reading of the offline extractor; for a model there is --concurrency")
    same: dict[str, Any] = {"threshold": threshold, "neighbours": neighbours}
    console = screen(quiet=quiet)
    with _bar(console) as on_progress:
        report = build_graph(
            index,
            extractor=extractor_from_settings(settings, spec),
            openie=openie,
            gfm=gfm,
            embedder=embedder,
            equivalence={name: value for name, value in same.items() if value is not None},
            at_once=1 if computes else concurrency,
            workers=workers,
            on_progress=on_progress,
        )
    _tell(console, index, report)


@kg.command("add")
def add(
    index: Annotated[Path, typer.Argument(help="The index; made if it is not there.", show_default=False)],
    files: Annotated[list[Path], typer.Argument(help="Files of triples: .nt, .tsv or .jsonl.", show_default=False)],
    embedder: Annotated[
        str | None,
        typer.Option(help="Of a new index and a new graph: minilm, st:MODEL or provider:MODEL; '' for none."),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Add a knowledge graph that is there already, beside the texts.

    Each file becomes a document: its passages say what there is about an
    entity, and their facts enter the question's graph with file and line.
    A file that was added before is replaced.
    """
    from ras_agent.app.cli.screen import screen
    from ras_agent.tools.kg.build import add_triples

    console = screen(quiet=quiet)
    with _bar(console) as on_progress:
        report = add_triples(index, files, embedder=embedder, on_progress=on_progress)
    _tell(console, index, report)


@kg.command("delete")
def delete(
    index: Index,
    documents: Annotated[list[str], typer.Argument(help="Ids of documents.", show_default=False)],
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Delete documents from the index and what they state from its graph."""
    from ras_agent.app.cli.screen import screen
    from ras_agent.tools.kg.build import delete_documents

    console = screen(quiet=quiet)
    with _bar(console) as on_progress:
        report = delete_documents(index, documents, on_progress=on_progress)
    _tell(console, index, report)


@kg.command("stats")
def stats(
    index: Index,
    entity: Annotated[str | None, typer.Option(help="Tell about this entity instead.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Tell what the graph of an index holds."""
    import json

    from ras_agent.app.cli.inert import inert, inert_json
    from ras_agent.errors import SettingsError
    from ras_agent.tools.kg.index import KGIndex
    from ras_agent.tools.kg.stats import about, counts

    graph = KGIndex.open(index)
    if entity is None:
        found = counts(graph)
    else:
        number = graph.entity_id(entity)
        if number is None:
            raise SettingsError(
                f"{index} has no entity {entity!r}; `ras-agent kg export {index} facts.tsv` lists all facts"
            )
        found = about(graph, number)
    if as_json:
        typer.echo(inert_json(json.dumps(found, ensure_ascii=False, indent=2)))
        return
    width = max(map(len, found))
    for name, value in found.items():
        for line in value if isinstance(value, list) else [value]:
            typer.echo(f"{name:<{width}}  {inert(f'{line:,}' if isinstance(line, int) else str(line))}")
            name = ""


@kg.command("export")
def export(
    index: Index,
    out: Annotated[
        Path,
        typer.Argument(help=".graphml, .nt, .tsv, .jsonl, .html, or a folder for gfm-rag's csv.", show_default=False),
    ],
    around: Annotated[
        list[str] | None, typer.Option(help="html: draw what is near this entity. May be repeated.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help=f"html: entities drawn ({NODES}).")] = None,
    debug: Debug = False,
) -> None:
    """Write the graph for other programs, or as a picture."""
    from ras_agent.errors import SettingsError
    from ras_agent.tools.kg.formats import export as formats
    from ras_agent.tools.kg.formats.gfm_csv import write_gfm_csv
    from ras_agent.tools.kg.index import KGIndex

    writers: dict[str, Callable[[KGIndex, Path], None]] = {
        ".graphml": formats.write_graphml,
        ".nt": formats.write_nt,
        ".tsv": formats.write_tsv,
        ".jsonl": formats.write_jsonl,
        ".html": lambda graph, path: _draw(graph, path, around or (), nodes or NODES),
        "": write_gfm_csv,
    }
    writer = writers.get(out.suffix.lower())
    if writer is None:
        raise SettingsError(f"{out}: unknown format; known: {', '.join(filter(None, writers))}, or a folder")
    if (around or nodes) and out.suffix.lower() != ".html":
        raise typer.BadParameter(f"--around and --nodes are for pictures, and {out} is none: give a name in .html")
    graph = KGIndex.open(index)
    writer(graph, _writable(out))
    typer.echo(f"{out} written")


def _writable(out: Path) -> Path:
    """A place that can be written to. Raises SettingsError, naming what is in the way."""
    from ras_agent.errors import SettingsError

    if not out.suffix:
        if out.is_file():
            raise SettingsError(f"cannot write the files of gfm-rag to {out}: it is a file; name a folder")
    elif out.is_dir():
        raise SettingsError(f"cannot write {out}: it is a folder; name a file")
    elif not out.parent.is_dir():
        raise SettingsError(f"cannot write {out}: there is no folder {out.parent}; make it first")
    return out


def _draw(graph: KGIndex, path: Path, around: list[str] | tuple[str, ...], nodes: int) -> None:
    from ras_agent.errors import SettingsError
    from ras_agent.tools.kg.picture import graph_page, most_connected, nearby

    start = []
    for name in around:
        number = graph.entity_id(name)
        if number is None:
            raise SettingsError(f"the graph has no entity {name!r}")
        start.append(number)
    entities = nearby(graph, start, nodes) if start else most_connected(graph, nodes)
    title = f"Around {', '.join(around)}" if around else "Knowledge graph"
    path.write_text(graph_page(graph, entities, title), "utf-8")


def _tell(console: Console, index: Path, report: KGReport) -> None:
    """What was done; what could not be, one by one."""
    from rich.text import Text

    from ras_agent.app.cli.inert import inert
    from ras_agent.app.cli.layout import hang
    from ras_agent.app.cli.summary import counted

    for item in report.skipped:
        typer.echo(f"skipped  {inert(str(item))}", err=True)
    for failure in report.failures:
        typer.echo(f"failed   {inert(failure.message)}", err=True)
    held = report.graph.manifest
    of_graph = [
        f"{counted(held.facts, 'fact')} of {counted(held.documents, 'passage')}",
        "1 entity" if held.entities == 1 else f"{held.entities:,} entities",
        counted(held.equivalences, "equivalence"),
    ]
    if report.graph.path is None:
        of_graph = ["no knowledge graph"]
    parts = [
        *of_graph,
        f"{counted(report.read, 'passage')} read",
        f"{report.imported:,} imported",
        f"{report.erased:,} erased",
        counted(len(report.failures), "failure"),
        f"{len(report.skipped):,} skipped",
    ]
    parts = [part for part in parts if part in of_graph or not part.startswith("0 ")]
    hang(console, Text(f"{inert(str(index))} ", "bold"), Text(" · ".join(parts)), len(str(index)) + 1)
    if report.failures or any(item.error for item in report.skipped):
        raise typer.Exit(INCOMPLETE)


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[KGProgress], None] | None]:
    """A bar on an interactive terminal, nothing elsewhere."""
    if console.quiet or not console.file.isatty():
        yield None
        return
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("opening", total=None)

        def on_progress(now: KGProgress) -> None:
            stage = now.stage if now.done < now.total else "building"
            bar.update(task, description=stage, total=now.total or None, completed=now.done)

        yield on_progress
