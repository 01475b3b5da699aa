"""Opens an index wherever it is: in a folder, or at the address of a database."""

from __future__ import annotations

from pathlib import Path

from ras_agent.address import Address, place_of
from ras_agent.tools.index.postgres import PostgresIndex
from ras_agent.tools.index.store import PassageIndex


def open_index(place: str | Path | Address, embedder: object = None) -> PassageIndex | PostgresIndex:
    """Open the index at a place. Raises what `PassageIndex.open` and `PostgresIndex.open` raise."""
    place = place_of(place)
    return PostgresIndex.open(place, embedder) if isinstance(place, Address) else PassageIndex.open(place, embedder)
