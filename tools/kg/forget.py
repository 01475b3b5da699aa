"""Deletes from a graph the part that is based on deleted passages, in the transaction that deletes the passages.

The index finds this module through the registry; see `ras_agent.tools.index.attached`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ras_agent.text.normal_form import storable
from ras_agent.tools.index.passages import Table, find_rows, hashes
from ras_agent.tools.kg import make
from ras_agent.tools.kg.edit_rows import read_edits, write_edits
from ras_agent.tools.kg.edits import Anchor, PassageLookup, edited
from ras_agent.tools.kg.facts import (
    erase_unused,
    read_facts,
)
from ras_agent.tools.kg.graph_state import read_graph_state
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction


def erase_read(
    transaction: Transaction,
    database: Database,
    passage_ids: Iterable[str],
    held: PassageLookup,
) -> int:
    """Delete everything that was read in some passages, and what is based only on it. Returns the number of passages.

    Args:
        held: returns which passages still exist with the text that an edit refers to.
    """
    listed = list(passage_ids)
    readings = transaction.readings.of_passages(map(storable, listed))
    erased = len(set(readings.values()))
    numbers = transaction.readings.forget(readings)
    state = read_graph_state(transaction, database)
    assert state
    if erased and state.published:
        transaction.graph.change_visibly()
    else:
        transaction.graph.change()
    if edits := read_edits(transaction, database):
        reading = read_facts(transaction, database)
        numbers |= reading.unused_names()
        _, stay = edited(
            reading.found, edits, held, reading.text_of(), exact=state.settings.exact
        )
        if stay != edits:
            write_edits(transaction, stay)
    erase_unused(transaction, database, numbers)
    transaction.vectors.forget_texts_of(listed)
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

    def forget(
        self, transaction: Transaction, database: Database, table: Table
    ) -> None:
        """Delete the rows of the graph about passages that are not in `table`, or that have another text there.

        This includes names and edits that are based on nothing else, and all vectors.

        Args:
            table: the passages that the index holds now.
        """
        if read_graph_state(transaction, database) is None:
            return
        transaction.edits.forget_origins()
        held = held_in(table)
        moved = [Anchor(*one) for one in transaction.readings.moved().items()]
        there = held(moved)
        lost = [one.passage_id for one in moved if one not in there]
        if lost:
            erase_read(transaction, database, lost, held)

    def keep(self, database: Database, cache: Path | None) -> None:
        """Save the graph's arrays in the cache; see `keep_graph`."""
        make.keep_graph(database, cache)


ATTACHED = AttachedGraph()
