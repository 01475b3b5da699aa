"""Builds the error for a place without an index, with advice."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from ras_agent.config.address import Address
from ras_agent.contracts.errors import IndexNotFound

_NEIGHBOURS = 1_000
"""How many entries of a folder are searched for a similar name."""


def index_not_found(
    place: Path | Address, remedy: str = "make one with `ras-agent index`"
) -> IndexNotFound:
    """Return the error for a place without an index.

    It suggests an index in the same folder with a similar name, or says how to index a folder that contains documents.
    """
    problem = f"no index at {place}"
    if isinstance(place, Address):
        return IndexNotFound(f"{problem}: {remedy}")
    if place.is_dir() and any(place.iterdir()):
        command = f"ras-agent index {place} --out {place.name}.index"
        return IndexNotFound(
            f"{problem}, a folder of other files: make an index of its documents by `{command}`"
        )
    meant = _nearly_named(place)
    if meant:
        return IndexNotFound(f"{problem}: did you mean {meant}? Else {remedy}")
    return IndexNotFound(f"{problem}: {remedy}")


def _nearly_named(place: Path) -> Path | None:
    """Return the folder next to `place` whose name is most similar, or None."""
    names: list[str] = []
    try:
        for number, neighbour in enumerate(place.absolute().parent.iterdir()):
            if number == _NEIGHBOURS:
                break
            if neighbour.is_dir():
                names.append(neighbour.name)
    except OSError:
        return None
    for name in get_close_matches(place.name, names, n=1):
        return place.with_name(name)
    return None
