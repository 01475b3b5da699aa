"""Stores the vectors of a graph's texts in its database, so that each text is embedded only once.

Each combination of a use and an embedder has separate rows. Vectors of new texts are added. Those of texts that no
longer exist are deleted, also as soon as the name or passage that they are about is deleted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import StoreError
from ras_agent.running.protocols import Embedder
from ras_agent.tools.embed.embedders import check_not_zeros
from ras_agent.tools.index.passages import hash_of
from ras_agent.tools.store.database import Database

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
) -> Floats:
    """Return unit vectors of `texts`, shape (len(texts), dimension), float32. Those that are not stored yet are
    embedded.

    Args:
        database: the graph's database; None for a graph in memory, for which nothing is stored.
        use: a word under which the vectors are stored, such as "nodes".
        owners: the name or the passage id that each text is about; by default the texts are names themselves.
        seconds: new vectors are stored about this often, so that an interrupted run can continue.
        part: whether the graph has other texts whose stored vectors are kept.
    """
    maker = hash_of(f"{use} {embedder.name}")
    keys = [hash_of(text) for text in texts]
    owner_of = dict(zip(keys, texts if owners is None else owners, strict=True))
    stored = _read(database, maker)
    found = dict(stored)
    lacking = set(keys) - found.keys()
    if lacking and any(len(one) != embedder.dimension for one in found.values()):
        found = {}  # the vectors are of another model with the same name
    text_of = dict(zip(keys, texts, strict=True))
    missing = {key: text for key, text in text_of.items() if key not in found}
    gone = stored.keys() - found.keys()
    if not part:
        gone |= stored.keys() - text_of.keys()
    pending: list[int] = []
    saved = time.monotonic()

    def store() -> None:
        nonlocal gone
        _store(
            database,
            maker,
            gone,
            [(key, owner_of[key], found[key]) for key in pending],
        )
        gone = set()
        pending.clear()

    for key, vector in _embedded(embedder, missing):
        found[key] = vector
        pending.append(key)
        if len(pending) >= _AT_ONCE and time.monotonic() - saved >= seconds:
            store()
            saved = time.monotonic()
    store()
    if not texts:
        return np.empty((0, embedder.dimension), dtype=np.float32)
    return np.stack([found[key] for key in keys])


def _embedded(
    embedder: Embedder, missing: dict[int, str]
) -> Iterator[tuple[int, Floats]]:
    """Yield the hash and the vector of each of the `missing` texts."""
    keys = list(missing)
    for begin in range(0, len(keys), _AT_ONCE):
        some = keys[begin : begin + _AT_ONCE]
        texts = [missing[key] for key in some]
        embedded = embedder.embed(texts)
        vectors = np.asarray(embedded, dtype=np.float32)
        check_not_zeros(embedder, texts, vectors)
        yield from zip(some, vectors, strict=True)


def _read(database: Database | None, maker: int) -> dict[int, Floats]:
    if database is None:
        return {}
    with database.reading() as transaction:
        return transaction.vectors.of_texts(maker)


def _store(
    database: Database | None,
    maker: int,
    gone: Collection[int],
    rows: Iterable[tuple[int, str, Floats]],
) -> None:
    """Store vectors, and delete those of texts that are gone; warn if the database cannot be written."""
    listed = list(rows)
    if database is None or not (gone or listed):
        return
    try:
        with database.writing() as transaction:
            transaction.vectors.forget_texts(maker, gone)
            transaction.vectors.put_texts(maker, listed)
    except StoreError as error:
        warnings.warn(
            f"the vectors of texts cannot be stored and will be computed again next time: {error}",
            RuntimeWarning,
            stacklevel=4,
        )
