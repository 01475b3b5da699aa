"""Removes what rests on deleted passages from a graph, in the transaction that deletes the passages from the index.

The index finds this module through the registry; see `ras_agent.tools.index.attached`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ras_agent.tools.index.passages import Table, find_rows, hashes
from ras_agent.tools.kg import make
from ras_agent.tools.kg.edit_rows import erase_origins, read_edits, write_edits
from ras_agent.tools.kg.edits import Anchor, PassageLookup, edited
from ras_agent.tools.kg.facts import (
    erase_passages,
    erase_unused,
    passages_moved,
    read_facts,
)
from ras_agent.tools.kg.graph_state import changed, read_graph_state
from ras_agent.tools.kg.vector_rows import erase_texts
from ras_agent.tools.store.database import Connection, Database


def forget_passages(connection: Connection, database: Database, table: Table) -> None:
    """Erase what the graph holds of passages that are not in `table` or have another text there.

    That is their facts, the names and edits that rest on nothing else, and the vectors of both. table: the passages
    that the index holds now.
    """
    if read_graph_state(connection, database) is None:
        return
    erase_origins(connection)
    held = held_in(table)
    moved = passages_moved(connection)
    there = held(moved)
    lost = [one.passage_id for one in moved if one not in there]
    if lost:
        erase_read(connection, database, lost, held)


def erase_read(
    connection: Connection,
    database: Database,
    passage_ids: Iterable[str],
    held: PassageLookup,
) -> int:
    """Erase everything that was read in some passages, and what rests only on it; return how many passages there were.

    held: tells which passages still exist with the text that an edit refers to.
    """
    listed = list(passage_ids)
    erased, numbers = erase_passages(connection, listed)
    state = read_graph_state(connection, database)
    assert state
    changed(connection, visible=bool(erased) and state.published > 0)
    if edits := read_edits(connection, database):
        reading = read_facts(connection, database)
        numbers |= reading.unused_names()
        _, stay = edited(
            reading.found, edits, held, reading.text_of(), exact=state.settings.exact
        )
        if stay != edits:
            write_edits(connection, stay)
    erase_unused(connection, database, numbers)
    erase_texts(connection, listed)
    return erased


def held_in(table: Table) -> PassageLookup:
    """Return a lookup of the passages that an index still holds with the text that an edit refers to."""

    def held(anchors: Iterable[Anchor]) -> set[Anchor]:
        asked = list(anchors)
        ids = [one.passage_id for one in asked]
        rows = find_rows(table["id"], hashes(ids))
        texts = table["text"]
        return {
            one
            for one, row in zip(asked, rows.tolist(), strict=True)
            if row >= 0 and (not one.text or int(texts[row]) == one.text)
        }

    return held


class AttachedGraph:
    """The graph of an index, as seen by the index: how to forget deleted passages, and how to keep the graph's
    arrays."""

    folder = make.CACHE

    def forget(self, connection: Connection, database: Database, table: Table) -> None:
        forget_passages(connection, database, table)

    def keep(self, database: Database, cache: Path | None) -> None:
        make.keep_graph(database, cache)


ATTACHED = AttachedGraph()
