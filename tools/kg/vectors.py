"""Vectors of names: those of the generation before where it has them, kept ones after a kill, embedded ones else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ras_agent.errors import IndexMismatch
from ras_agent.protocols import Embedder
from ras_agent.tools.kg.arrays import KGArrays, Vectors
from ras_agent.tools.kg.fact_store import FactStore

__all__ = ["vectors_of"]

_AT_ONCE = 1024


def vectors_of(
    names: Sequence[str],
    embedder: Embedder,
    before: KGArrays | None,
    store: FactStore,
    on_progress: Callable[[int, int], None] | None = None,
) -> Vectors:
    """Unit vectors (len(names), d) float16, in the order of `names`, which are distinct.

    What is embedded is kept in `store` as it comes, so that a killed build embeds nothing twice.
    on_progress: told how many names were embedded so far, and how many are to be. Raises IndexMismatch for an embedder
    of another width.
    """
    found = np.zeros((len(names), embedder.dimension), dtype=np.float16)
    place = {name: number for number, name in enumerate(names)}
    missing = np.ones(len(names), dtype=bool)
    if before is not None:
        for table, vectors in (
            (before.entities, before.entity_vectors),
            (before.relations, before.relation_vectors),
        ):
            if vectors is not None:
                _copy(found, missing, place, list(table), vectors)
    kept = list(store.kept_vectors())
    _copy(found, missing, place, [name for name, _ in kept], [vector for _, vector in kept])
    # texts of one length share a batch: less padding
    left = sorted(np.flatnonzero(missing).tolist(), key=lambda number: len(names[number]))
    if on_progress:
        on_progress(0, len(left))
    for start in range(0, len(left), _AT_ONCE):
        batch = left[start : start + _AT_ONCE]
        fresh = np.asarray(embedder.embed([names[number] for number in batch]), dtype=np.float16)
        if fresh.shape != (len(batch), embedder.dimension):
            raise IndexMismatch(
                f"embedder {embedder.name!r} gave an array of shape {fresh.shape} for {len(batch)} texts and says that "
                f"its vectors have {embedder.dimension} numbers: use one that keeps its word"
            )
        found[batch] = fresh
        store.keep_vectors([names[number] for number in batch], fresh)
        store.commit()
        if on_progress:
            on_progress(min(start + _AT_ONCE, len(left)), len(left))
    return found


def _copy(
    found: Vectors, missing: np.ndarray, place: dict[str, int], names: Sequence[str], vectors: Vectors | list[Vectors]
) -> None:
    rows = [(place[name], number) for number, name in enumerate(names) if name in place]
    for target, number in rows:
        found[target] = vectors[number]
        missing[target] = False
