"""Files that were sent to a server: their bytes lie in the database of the index, written with their passages.

The journal knows such a file by a path that no file on a disk has. Bytes are written once, under a number that is not
used again, and overwritten where they lie: rows that move would leave copies of themselves in the database's file.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from ras_agent.filters import Filter
from ras_agent.tools.index.passages import ERASED, checksum, damaged, leave_remains
from ras_agent.tools.store.database import Connection, Database

_ROOT = "upload:"
_LONGEST_PLAIN = 40  # characters of a part's name that are there to be read
COMPACT_FROM = 64 << 20
"""Bytes of overwritten uploads that are always left; more are taken out once they are more than those of others."""
_WASTED = "SELECT coalesce(sum(size), 0) FROM uploads WHERE path IS NULL"


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
    """Store the bytes of a file, and overwrite those that it had."""
    drop_upload(connection, path)
    (number,) = connection.execute(
        "SELECT coalesce(max(number), 0) + 1 FROM upload_data"
    ).fetchone()
    connection.execute(
        "INSERT INTO upload_data VALUES (?, ?, ?)",
        (number, checksum(data, number=number), data),
    )
    connection.execute(
        "INSERT INTO uploads VALUES (?, ?, ?)", (number, os.fsencode(path), len(data))
    )


def drop_upload(connection: Connection, path: Path) -> None:
    """Overwrite the bytes of a file, if it has any."""
    row = connection.execute(
        "SELECT number FROM uploads WHERE path = ?", (os.fsencode(path),)
    ).fetchone()
    if row:
        blank = f"UPDATE upload_data SET crc = {ERASED}, data = zeroblob(length(data)) WHERE number = ?"
        connection.execute(blank, row)
        connection.execute("UPDATE uploads SET path = NULL WHERE number = ?", row)
        leave_remains(connection)


def read_upload(database: Database, path: Path) -> bytes | None:
    """Return the bytes of an uploaded file, if there is one. Raises IndexMismatch for damaged or missing bytes."""
    query = "SELECT number, crc, data FROM uploads NATURAL LEFT JOIN upload_data WHERE path = ?"
    with database.reading() as connection:
        row = connection.execute(query, (os.fsencode(path),)).fetchone()
    if row is None:
        # a page of another table may lie in this one's place, and have no such row
        database.check(("uploads",))
        return None
    return _checked(database, *row)


def check_uploads(database: Database) -> None:
    """Read all uploaded files. Raises IndexMismatch for one that differs from the bytes that were written."""
    with database.reading() as connection:
        for number, crc, data in connection.execute(
            "SELECT number, crc, data FROM upload_data"
        ):
            if crc != ERASED:
                _checked(database, number, crc, data)


def is_wasteful(connection: Connection) -> bool:
    """Return whether overwritten bytes take more room than those of files that are there."""
    (wasted,) = connection.execute(_WASTED).fetchone()
    if wasted <= COMPACT_FROM:
        return False
    (held,) = connection.execute(
        "SELECT coalesce(sum(size), 0) FROM uploads WHERE path IS NOT NULL"
    ).fetchone()
    return bool(wasted > held)


def take_out_overwritten(connection: Connection) -> None:
    """Delete the rows of overwritten bytes."""
    connection.execute(
        "DELETE FROM upload_data WHERE number IN (SELECT number FROM uploads WHERE path IS NULL)"
    )


def _checked(
    database: Database, number: int, crc: int | None, data: bytes | None
) -> bytes:
    if data is None or crc != checksum(data, number=number):
        raise damaged(database, f"the uploaded file {number:,} is not what was written")
    return data
