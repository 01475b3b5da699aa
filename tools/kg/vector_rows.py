"""Vectors of a knowledge graph in the database of its index: of names, with the nearest names of each, and of texts.

They are rows, so that a killed build embeds nothing twice, and that arrays which were lost are made again without
embedding or comparing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Ints
from ras_agent.tools.index.passages import ERASED, checksum, damaged, leave_remains
from ras_agent.tools.kg.arrays import Vectors
from ras_agent.tools.store.database import Connection, Database

_NEAR = np.dtype([("name", "<i4"), ("cosine", "<f4")])
# parameters of one statement; from how many on all rows are read
_AT_ONCE = 500
_MANY = 5000


class Numbered(NamedTuple):
    """Rows of arrays by ascending numbers of names."""

    names: Ints
    rows: Any

    def at(self, names: Ints) -> Ints:
        """Return where names are, -1 for each that is not there."""
        if not len(self.names):
            return np.full(len(names), -1, dtype=np.int64)
        places = np.searchsorted(self.names, names).clip(max=len(self.names) - 1)
        return np.where(self.names[places] == names, places, -1)


def put_vectors(
    connection: Connection, maker: int, names: Sequence[int], vectors: Vectors
) -> None:
    """Store the vectors (n, d) of names."""
    rows = []
    for name, vector in zip(names, np.ascontiguousarray(vectors, "<f2"), strict=True):
        data = vector.tobytes()
        rows.append((name, maker, checksum(data, number=name ^ maker), data))
    query = """INSERT INTO kg_vectors VALUES (?, ?, ?, ?)
        ON CONFLICT (name, maker) DO UPDATE SET crc = excluded.crc, data = excluded.data"""
    connection.executemany(query, rows)


def read_vectors(
    connection: Connection, database: Database, maker: int, dimension: int, of: Ints
) -> Numbered:
    """Return the vectors that an embedder made of some names, (n, d); of others too, where many are asked for."""
    query = (
        f"SELECT name, crc, data FROM kg_vectors WHERE maker = ? AND crc <> {ERASED}"
    )
    found: list[tuple[int, int, bytes]] = []
    if len(of) > _MANY:
        found = connection.execute(query, (maker,)).fetchall()
    for start in range(0, 0 if found else len(of), _AT_ONCE):
        part = of[start : start + _AT_ONCE].tolist()
        some = f"{query} AND name IN ({', '.join('?' * len(part))})"
        found += connection.execute(some, (maker, *part)).fetchall()
    names = []
    blobs = []
    for name, crc, data in sorted(found):
        if crc != checksum(data, number=name ^ maker) or len(data) != 2 * dimension:
            raise damaged(
                database, f"the vector of name {name:,} is not what was written"
            )
        names.append(name)
        blobs.append(data)
    return Numbered(
        np.array(names, np.int64),
        np.frombuffer(b"".join(blobs), "<f2").reshape(len(names), dimension),
    )


def erase_other_vectors(connection: Connection, maker: int) -> None:
    """Delete the vectors of other embedders."""
    connection.execute("DELETE FROM kg_vectors WHERE maker <> ?", (maker,))


class NearNames(NamedTuple):
    """Nearest names of each entity's name: list `i`, of `names[i]`, is `others[starts[i]:starts[i + 1]]`, as numbers
    of names, with their cosines."""

    names: Ints
    starts: Ints
    others: Ints
    cosines: npt.NDArray[np.float32]


NO_LISTS = NearNames(
    np.empty(0, np.int64),
    np.zeros(1, np.int64),
    np.empty(0, np.int64),
    np.empty(0, np.float32),
)


def read_near(connection: Connection, database: Database) -> NearNames:
    """Return the lists that are stored."""
    names = []
    blobs = []
    for name, crc, data in connection.execute(
        "SELECT name, crc, data FROM kg_near ORDER BY name"
    ):
        if crc != checksum(data, number=name) or len(data) % _NEAR.itemsize:
            raise damaged(
                database, f"the list of name {name:,} is not what was written"
            )
        names.append(name)
        blobs.append(data)
    cells = np.frombuffer(b"".join(blobs), _NEAR)
    # where a page of another table lies in this one's place, its rows have sums of the same form
    (last,) = connection.execute("SELECT MAX(number) FROM kg_names").fetchone()
    if len(cells) and not 0 <= int(cells["name"].min()) <= int(cells["name"].max()) <= (
        last or 0
    ):
        raise damaged(database, "its graph has lists of near names that are not there")
    starts = np.zeros(len(blobs) + 1, np.int64)
    np.cumsum(
        np.fromiter(map(len, blobs), np.int64, len(blobs)) // _NEAR.itemsize,
        out=starts[1:],
    )
    return NearNames(
        np.array(names, np.int64),
        starts,
        cells["name"].astype(np.int64),
        cells["cosine"].copy(),
    )


def put_near(connection: Connection, before: NearNames | None, now: NearNames) -> None:
    """Store the lists that differ from those `before`, and delete those of names without a list now.

    before: None if the stored lists are of other settings.
    """
    if before is None:
        connection.execute("DELETE FROM kg_near")
        before = NO_LISTS
    gone = np.setdiff1d(before.names, now.names)
    connection.executemany(
        "DELETE FROM kg_near WHERE name = ?", [(name,) for name in gone.tolist()]
    )
    old = Numbered(before.names, None).at(now.names)
    known = np.where(old >= 0, _marks(before)[old] if len(before.names) else 0, 0)
    fresh = np.flatnonzero((old < 0) | (known != _marks(now)))
    cells = np.empty(len(now.others), _NEAR)
    cells["name"], cells["cosine"] = now.others, now.cosines
    rows = []
    for at in fresh.tolist():
        name = int(now.names[at])
        data = cells[now.starts[at] : now.starts[at + 1]].tobytes()
        rows.append((name, checksum(data, number=name), data))
    query = "INSERT INTO kg_near VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET crc = excluded.crc, data = excluded.data"
    connection.executemany(query, rows)


def _marks(lists: NearNames) -> npt.NDArray[np.uint64]:
    """Return a number for each list that is the same for equal lists, whatever their order."""
    mixed = lists.others.astype(np.uint64) << np.uint64(32) | lists.cosines.view(
        np.uint32
    ).astype(np.uint64)
    # splitmix64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    marks: npt.NDArray[np.uint64] = sums[lists.starts[1:]] - sums[lists.starts[:-1]]
    return marks + np.diff(lists.starts).astype(np.uint64)


# ---- texts


def read_texts(
    connection: Connection, maker: int
) -> tuple[dict[int, npt.NDArray[np.float32]], dict[int, int]]:
    """Return the vectors of one use and embedder by the hashes of their texts, and the number of each row.

    A damaged row has a number but no vector, so that it is written again.
    """
    found = {}
    numbers = {}
    query = "SELECT number, text, owner, crc, data FROM kg_texts WHERE maker = ? AND text <> ?"
    for number, text, owner, crc, data in connection.execute(query, (maker, ERASED)):
        numbers[text] = number
        if crc == checksum(data, number=text ^ owner):
            found[text] = np.frombuffer(data, "<f4")
    return found, numbers


def put_texts_of(
    connection: Connection,
    maker: int,
    rows: Iterable[tuple[int, int, npt.NDArray[np.float32]]],
) -> None:
    """Store vectors of texts: each text's hash, its owner, and the vector."""
    (last,) = connection.execute("SELECT MAX(number) FROM kg_texts").fetchone()
    first = 0 if last is None else last + 1
    listed = []
    for number, (text, owner, vector) in enumerate(rows, start=first):
        data = np.ascontiguousarray(vector, "<f4").tobytes()
        listed.append(
            (number, maker, text, owner, checksum(data, number=text ^ owner), data)
        )
    connection.executemany("INSERT INTO kg_texts VALUES (?, ?, ?, ?, ?, ?)", listed)


def erase_texts(connection: Connection, owners: Iterable[int]) -> None:
    """Overwrite the vectors of texts about some names and passages."""
    wanted = set(owners)
    found = connection.execute(
        f"SELECT number, owner FROM kg_texts WHERE owner <> {ERASED}"
    )
    erase_text_rows(connection, [number for number, owner in found if owner in wanted])


def erase_text_rows(connection: Connection, numbers: Sequence[int]) -> None:
    """Overwrite some rows of vectors of texts."""
    connection.executemany(
        f"""UPDATE kg_texts SET text = {ERASED}, owner = {ERASED}, crc = {ERASED}, data = zeroblob(length(data))
        WHERE number = ?""",
        [(number,) for number in numbers],
    )
    if numbers:
        leave_remains(connection)


def check_vectors(connection: Connection, database: Database) -> None:
    """Read all vectors and lists. Raises IndexMismatch for a row that is not as it was written."""
    read_near(connection, database)
    for name, maker, crc, data in connection.execute(
        "SELECT name, maker, crc, data FROM kg_vectors"
    ):
        if crc not in (ERASED, checksum(data, number=name ^ maker)):
            raise damaged(
                database, f"the vector of name {name:,} is not what was written"
            )
    for number, text, owner, crc, data in connection.execute(
        "SELECT number, text, owner, crc, data FROM kg_texts"
    ):
        if crc not in (ERASED, checksum(data, number=text ^ owner)):
            raise damaged(
                database,
                f"the vector of text {number:,} of its graph is not what was written",
            )
