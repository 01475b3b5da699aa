"""Deletes from a graph the part that is based on deleted passages, in the transaction that deletes the passages.

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
    """Delete what the graph has read in passages that are not in `table`, or that have another text there.

    This includes names and edits that are based on nothing else, and all vectors.

    Args:
        table: the passages that the index holds now.
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
    """Delete everything that was read in some passages, and what is based only on it. Returns the number of passages.

    Args:
        held: returns which passages still exist with the text that an edit refers to.
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
    """Return a function that returns which passages an index still holds with the text that an edit refers to."""

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
    """Implements the index's interface to parts that are attached to it, for the graph."""

    folder = make.CACHE

    def forget(self, connection: Connection, database: Database, table: Table) -> None:
        """Delete what the graph has read in passages that the index no longer has; see `forget_passages`."""
        forget_passages(connection, database, table)

    def keep(self, database: Database, cache: Path | None) -> None:
        """Save the graph's arrays in the cache; see `keep_graph`."""
        make.keep_graph(database, cache)


ATTACHED = AttachedGraph()
