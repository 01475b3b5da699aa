"""Rows of the edits that persons made in a knowledge graph, and of the files that triples came from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ras_agent.tools.index.passages import checksum, damaged, leave_remains
from ras_agent.tools.kg.edits import Edit
from ras_agent.tools.store.database import Connection, Database


def read_edits(connection: Connection, database: Database) -> tuple[Edit, ...]:
    """Return the edits of persons, in their order. Raises IndexMismatch for a damaged one."""
    found = []
    for number, crc, data in connection.execute(
        "SELECT number, crc, data FROM kg_edits ORDER BY number"
    ):
        problem = f"edit {number:,} of its graph is not what was written"
        if crc != checksum(data, number=number):
            raise damaged(database, problem)
        try:
            found.append(
                Edit.from_dict(json.loads(data.decode("utf-8", "surrogatepass")))
            )
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
        ) as error:  # a row of another table, with its sum
            raise damaged(database, problem) from error
    return tuple(found)


def write_edits(connection: Connection, edits: Sequence[Edit]) -> None:
    """Replace the edits of persons; nothing of others is left, since a table that is emptied is overwritten whole."""
    connection.execute("DELETE FROM kg_edits")
    rows = []
    for edit in edits:
        data = json.dumps(edit.to_dict(), ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )
        rows.append((edit.number, checksum(data, number=edit.number), data))
    connection.executemany("INSERT INTO kg_edits VALUES (?, ?, ?)", rows)
    leave_remains(connection)


def origin_of(connection: Connection, file: str) -> str:
    """Return the path that a file of triples was added from, "" for another file."""
    row = connection.execute(
        "SELECT path FROM kg_files WHERE name = ?", (file,)
    ).fetchone()
    return row[0] if row else ""


def put_origins(connection: Connection, origins: Mapping[str, str]) -> None:
    """Store the paths that files of triples were added from."""
    query = "INSERT INTO kg_files VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET path = excluded.path"
    connection.executemany(query, origins.items())


def erase_origins(connection: Connection, database: Database, is_there: Any) -> None:
    """Forget the files of triples of which `is_there` says that nothing is there any more."""
    names = [name for (name,) in connection.execute("SELECT name FROM kg_files")]
    gone = [(name,) for name in names if not is_there(name)]
    if gone:
        connection.executemany("DELETE FROM kg_files WHERE name = ?", gone)
        database.rewrite(["kg_files"])
