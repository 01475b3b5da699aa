"""Stores the edits that persons made in a knowledge graph, and the paths of the files of triples that were added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ras_agent.text.normal_form import storable
from ras_agent.tools.index.passages import damaged, leave_remains
from ras_agent.tools.kg.edits import Edit
from ras_agent.tools.store.database import Connection, Database


def read_edits(connection: Connection, database: Database) -> tuple[Edit, ...]:
    """Return the edits that persons made, oldest first. Raises IndexMismatch for a damaged edit."""
    found = []
    query = "SELECT number, edit FROM kg_edits ORDER BY number"
    for number, data in connection.execute(query).fetchall():
        try:
            edit = Edit.from_dict(json.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            problem = f"edit {number:,} of its graph is not what was written"
            raise damaged(database, problem) from error
        found.append(edit)
    return tuple(found)


def write_edits(connection: Connection, edits: Sequence[Edit]) -> None:
    """Replace the stored edits by `edits`."""
    connection.execute("DELETE FROM kg_edits")
    rows = []
    for edit in edits:
        data = json.dumps(edit.to_dict(), ensure_ascii=False)
        rows.append((edit.number, storable(data)))
    connection.executemany("INSERT INTO kg_edits VALUES (?, ?)", rows)
    leave_remains(connection)


def origin_of(connection: Connection, file: str) -> str:
    """Return the path from which a file of triples was added, by its name; "" if no file of this name was added."""
    row = connection.execute(
        "SELECT path FROM kg_files WHERE name = ?", (file,)
    ).fetchone()
    return row[0] if row else ""


def put_origins(connection: Connection, origins: Mapping[str, str]) -> None:
    """Store the paths from which files of triples were added, by file name."""
    query = "INSERT INTO kg_files VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET path = excluded.path"
    connection.executemany(query, origins.items())


def erase_origins(connection: Connection) -> None:
    """Delete the paths of files of triples that have no passages in the index any longer."""
    query = "DELETE FROM kg_files WHERE name NOT IN (SELECT document FROM passages)"
    if connection.execute(query).rowcount:
        leave_remains(connection)
