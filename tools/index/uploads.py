"""Files that were sent to a server: their bytes lie in the database of the index, written with their passages.

The journal knows such a file by a path that no file on a disk has.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from ras_agent.filters import Filter
from ras_agent.tools.index.passages import leave_remains
from ras_agent.tools.store.database import Connection, Database

_ROOT = "upload:"
_LONGEST_PLAIN = 40  # characters of a part's name that are there to be read


def upload_path(*names: str) -> Path:
    """Return the path by which the journal knows an uploaded file. names: of its part of the index, and its own."""
    return Path(_ROOT, *names)


def is_upload(path: Path) -> bool:
    """Return whether a path of the journal is that of an uploaded file."""
    return path.parts[:1] == (_ROOT,)


def uploaded_as(name: str) -> Path | None:
    """Return the path of an uploaded file by its name, or part/name, or None if the text is any other path."""
    parts = tuple(name.split("/"))
    path = upload_path(*parts)
    return path if path.parts == (_ROOT, *parts) else None


def upload_part(source: object) -> str:
    """Return the name of the part of the index in which the uploads of callers with this filter are; "" without one.

    Their documents are called by it, so that no name reveals the files of others. source: as `Filter.of` takes it.
    """
    filter = Filter.of(source)
    if not filter:
        return ""
    identity: list[list[object]] = []
    for one in filter.conditions:
        test = [] if one.test == "in" else [one.test]
        identity.append([one.key, one.texts, *test])
    exact = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    plain = "".join(
        char if char.isalnum() or char in "=_" else "-"
        for char in str(filter).replace(" = ", "=")
    )
    return f"{plain[:_LONGEST_PLAIN]}~{exact[:8]}"


def name_in_part(name: str, part: str) -> str:
    """Return the name of an uploaded file with its part of the index, if it is of one and does not say so."""
    return f"{part}/{name.removeprefix(f'{part}/')}" if part else name


def put_upload(connection: Connection, path: Path, data: bytes) -> None:
    """Store the bytes of a file in place of those that it had."""
    drop_upload(connection, path)
    values = (os.fsencode(path), data)
    connection.execute("INSERT INTO uploads VALUES (?, ?)", values)


def drop_upload(connection: Connection, path: Path) -> None:
    """Delete the bytes of a file, if it has any."""
    known = (os.fsencode(path),)
    if connection.execute("SELECT 1 FROM uploads WHERE path = ?", known).fetchone():
        connection.execute("DELETE FROM uploads WHERE path = ?", known)
        leave_remains(connection)


def read_upload(database: Database, path: Path) -> bytes | None:
    """Return the bytes of an uploaded file, if there is one."""
    query = "SELECT data FROM uploads WHERE path = ?"
    with database.reading(once=True) as connection:
        row = connection.execute(query, (os.fsencode(path),)).fetchone()
    return row[0] if row else None
