"""Stores the vectors of a graph's names and texts in its database, so that each is embedded only once.

Each combination of a use and an embedder has separate rows. Vectors of new texts are added. Those of texts that no
longer exist are deleted, also as soon as the name or passage that they are about is deleted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.errors import StoreError
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import check_not_zeros
from ras_agent.tools.index.passages import hash_of
from ras_agent.tools.store.database import Database

NAMES = "names"
"""The use of the vectors of entities and relations. They are 16-bit floats, of which a graph may have millions."""
_AT_ONCE = 1024
_SECONDS = 60.0


def stored_vectors(
    database: Database | None,
    use: str,
    embedder: Embedder,
    texts: Sequence[str],
    owners: Sequence[str] | None = None,
    *,
    seconds: float = _SECONDS,
    part: bool = False,
    kept: Collection[str] | None = None,
    report: Callable[[int, int], None] = lambda *_: None,
) -> npt.NDArray[Any]:
    """Return unit vectors of `texts`, shape (len(texts), dimension), float32, or float16 for the use NAMES. Those that
    are not stored yet are embedded.

    Args:
        database: the graph's database; None for a graph in memory, for which nothing is stored.
        use: a word under which the vectors are stored, such as "nodes".
        owners: the name or the passage id that each text is about; by default the texts are names themselves.
        seconds: new vectors are stored about this often, so that an interrupted run can continue.
        part: whether the graph has other texts whose stored vectors are kept.
        kept: the owners whose vectors are stored; by default all.
        report: receives the number of texts that were embedded, and the number of those that have to be.
    """
    kind = np.dtype("<f2" if use == NAMES else "<f4")
    maker = maker_of(use, embedder.name)
    keys = [hash_of(text) for text in texts]
    owner_of = dict(zip(keys, texts if owners is None else owners, strict=True))
    text_of = dict(zip(keys, texts, strict=True))
    stored = _read(database, maker)
    size = embedder.dimension * kind.itemsize
    # a vector of another size is of another model with the same name
    found = {key: data for key, data in stored.items() if len(data) == size}
    gone = stored.keys() - found.keys()
    if not part:
        gone |= stored.keys() - text_of.keys()
    # sorted by length, so that texts of similar length share a batch, with less padding
    missing = [key for key in text_of if key not in found]
    missing.sort(key=lambda key: len(text_of[key]))
    pending: list[int] = []
    saved = time.monotonic()
    for begin in range(0, len(missing), _AT_ONCE):
        report(begin, len(missing))
        some = missing[begin : begin + _AT_ONCE]
        embedded = _embedded(embedder, [text_of[key] for key in some], kind)
        found |= zip(some, embedded, strict=True)
        pending += [key for key in some if kept is None or owner_of[key] in kept]
        if time.monotonic() - saved >= seconds:
            rows = [(key, owner_of[key], found[key]) for key in pending]
            _store(database, maker, gone, rows)
            gone = set()
            pending = []
            saved = time.monotonic()
    if missing:
        report(len(missing), len(missing))
    rows = [(key, owner_of[key], found[key]) for key in pending]
    _store(database, maker, gone, rows)
    joined = bytearray().join([found[key] for key in keys])
    return np.frombuffer(joined, kind).reshape(-1, embedder.dimension)


def maker_of(use: str, embedder: str) -> int:
    """Return the number under which the vectors of a use are stored that the embedder with this name made."""
    return hash_of(f"{use} {embedder}")


def _embedded(embedder: Embedder, texts: list[str], kind: npt.DTypeLike) -> list[bytes]:
    vectors = np.asarray(embedder.embed(texts), dtype=kind)
    if kind != np.dtype("<f2"):  # a name may have no word that its embedder knows
        check_not_zeros(embedder, texts, vectors)
    return [vector.tobytes() for vector in vectors]


def _read(database: Database | None, maker: int) -> dict[int, bytes]:
    if database is None:
        return {}
    with database.reading() as transaction:
        return transaction.vectors.of_texts(maker)


def _store(
    database: Database | None,
    maker: int,
    gone: Collection[int],
    rows: Sequence[tuple[int, str, bytes]],
) -> None:
    """Store vectors, and delete those of texts that are gone; warn if the database cannot be written."""
    if database is None or not (gone or rows):
        return
    try:
        with database.writing(durable=False) as transaction:
            transaction.vectors.forget_texts(maker, gone)
            transaction.vectors.put_texts(maker, rows)
    except StoreError as error:
        warnings.warn(
            f"the vectors of texts cannot be stored and will be computed again next time: {error}",
            RuntimeWarning,
            stacklevel=4,
        )
