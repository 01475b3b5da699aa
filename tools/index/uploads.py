"""Stores files that were sent to a server, in the database of the index, together with their passages.

The journal identifies such a file by a path that no file on a disk has.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ras_agent.config.filters import Filter
from ras_agent.tools.store.database import Database

_ROOT = "upload:"
_LONGEST_PLAIN = 40  # how many characters of a part's name are for human readers


def upload_path(*names: str) -> Path:
    """Return the path that identifies an uploaded file in the journal.

    Args:
        names: the name of its part of the index, if it has one, and its own name.
    """
    return Path(_ROOT, *names)


def is_upload(path: Path) -> bool:
    """Return whether a path in the journal is that of an uploaded file."""
    return path.parts[:1] == (_ROOT,)


def uploaded_as(name: str) -> Path | None:
    """Return the path of an uploaded file from its name, or part/name; None if the text is any other path."""
    parts = tuple(name.split("/"))
    path = upload_path(*parts)
    return path if path.parts == (_ROOT, *parts) else None


def upload_part(source: object) -> str:
    """Return the name of the part of the index for uploads of callers with a filter; "" for callers without one.

    The name is put before the names of their documents, so that no name reveals the files of others.

    Args:
        source: a filter in any form that `Filter.of` takes.
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
    """Return the name of an uploaded file, with its part of the index in front if it has one and the name lacks it."""
    return f"{part}/{name.removeprefix(f'{part}/')}" if part else name


def read_upload(database: Database, path: Path) -> bytes | None:
    """Return the bytes of an uploaded file, or None if there is none."""
    with database.reading(once=True) as transaction:
        return transaction.uploads.read(path)
