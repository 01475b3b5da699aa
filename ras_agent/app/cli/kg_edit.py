"""Implements `ras-agent kg edit`, by which a person corrects the stored knowledge graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ras_agent.app.cli.options import IndexFolder, Quiet
from ras_agent.app.cli.terminal import inert, print_json, print_line, quantity, screen
from ras_agent.config.address import as_argument
from ras_agent.contracts.errors import SettingsError

if TYPE_CHECKING:
    from ras_agent.tools.kg.edit import EditReport, Fact
    from ras_agent.tools.kg.edits import Edit

_WORDS = {
    "remove": ("SUBJECT", "PREDICATE", "OBJECT"),
    "replace": (
        "SUBJECT",
        "PREDICATE",
        "OBJECT",
        "NEW_SUBJECT",
        "NEW_PREDICATE",
        "NEW_OBJECT",
    ),
    "add": ("SUBJECT", "PREDICATE", "OBJECT"),
    "merge": ("NAME", "INTO"),
    "split": ("NAME", "NEW_NAME"),
    "undo": ("[NUMBER]",),
    "list": (),
}


def edit(
    *,
    index: IndexFolder,
    action: Annotated[str, typer.Argument(help=f"One of {', '.join(_WORDS)}.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="remove, add: SUBJECT PREDICATE OBJECT; replace: these, and the three that are right; "
            "merge: NAME INTO; split: NAME NEW_NAME; undo: a number of the list, else the last."
        ),
    ] = None,
    passage: Annotated[
        list[str] | None,
        typer.Option(
            help="add: the id of the passage that states the fact; split: a passage or document in which the name "
            "means the other entity. May be repeated."
        ),
    ] = None,
    quote: Annotated[
        str | None, typer.Option(help="add: the words in that passage.")
    ] = None,
    by: Annotated[
        str, typer.Option(help="Your name, which is stored with the edit.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="list: print JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Correct the graph of an index: remove, replace or add a fact, merge or split entities, list or undo edits.

    Every retriever uses the edit at once, and so does every later build. If
    the text that an edit is about is removed, the edit is removed too.
    """
    words = words or []
    parameters = _WORDS.get(action)
    if parameters is None:
        raise SettingsError(f"unknown edit {action!r}; known: {', '.join(_WORDS)}")
    least = sum(not word.startswith("[") for word in parameters)
    if not least <= len(words) <= len(parameters):
        usage = (
            f"ras-agent kg edit {as_argument(index)} {' '.join((action, *parameters))}"
        )
        raise SettingsError(
            f"{action} takes {quantity(len(parameters), 'word')}, got {len(words)}: {usage}"
        )
    if quote and action != "add":
        raise SettingsError("--quote works only with `add`: leave it out")
    if passage and action not in ("add", "split"):
        raise SettingsError("--passage works only with `add` and `split`: leave it out")
    if action == "add" and len(passage or ()) > 1:
        raise SettingsError("a fact is added to one passage: give --passage once")
    if action == "list":
        _print(index, as_json=as_json)
        return
    report = _apply(index, action, words, passage or [], quote or "", by)
    outcome = (
        f"took back edit {_line(report.edit)}"
        if action == "undo"
        else f"edit {_line(report.edit)}"
    )
    console = screen(quiet=quiet)
    print_line(console, outcome)
    for fact in report.left_out:
        said = f"{fact.subject} | {fact.predicate} | {fact.object}"
        line = f"left out, since both ends are one entity now: ({said})"
        print_line(console, inert(line))
    manifest = report.graph.manifest
    entities = quantity(manifest.entities, "entity", "entities")
    print_line(
        console,
        f"{inert(str(index))} {quantity(manifest.facts, 'fact')} · {entities}",
        "dim",
    )


def _apply(
    index: Path, action: str, words: list[str], passages: list[str], quote: str, by: str
) -> EditReport:
    from ras_agent.tools.kg import edit as edits

    match action:
        case "remove":
            return edits.remove_fact(index, _fact(words), by=by)
        case "replace":
            return edits.replace_fact(index, _fact(words[:3]), _fact(words[3:]), by=by)
        case "add":
            return edits.add_fact(
                index, _fact(words), passage_id="".join(passages), quote=quote, by=by
            )
        case "merge":
            return edits.merge_entities(index, words[0], words[1], by=by)
        case "split":
            name, new_name = words
            return edits.split_entity(index, name, new_name, passages, by=by)
    if words and not words[0].isdecimal():
        listing = f"ras-agent kg edit {as_argument(index)} list"
        raise SettingsError(
            f"undo takes the number of an edit, got {words[0]!r}: {listing}"
        )
    return edits.undo_edit(index, int(words[0]) if words else None)


def _fact(words: list[str]) -> Fact:
    subject, predicate, object_ = words
    return subject, predicate, object_


def _print(index: Path, *, as_json: bool) -> None:

    from ras_agent.tools.kg.edit import edits_of
    from ras_agent.tools.kg.edits import shown

    edits = edits_of(index)
    if as_json:
        print_json([shown(edit) for edit in edits], indent=2)
    elif not edits:
        typer.echo(f"{inert(str(index))} has no edits")
    else:
        for edit in edits:
            typer.echo(_line(edit))


def _line(edit: Edit) -> str:
    """Return a line about an edit: its number, author, date, and how many passages state the fact."""
    places = f", {quantity(len(edit.anchors), 'passage')}" if edit.anchors else ""
    return inert(f"{edit.number}: {edit} · {edit.by}, {edit.at[:10]}{places}")
