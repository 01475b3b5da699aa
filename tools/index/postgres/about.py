"""Reads what the database says of an index: its manifest, what was counted of its passages, what was built of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ras_agent.address import Address
from ras_agent.errors import IndexMismatch, IndexNotFound
from ras_agent.tools.index.manifest import Manifest

if TYPE_CHECKING:
    from psycopg import Connection

VERSION = 1
EXACT_UP_TO = 10_000
"""So many vectors are compared one by one; of more, a search graph is made."""
WIDEST_IN_GRAPH = 2_000
"""Wider vectors cannot be in pgvector's search graph: they are always compared one by one."""


@dataclass(frozen=True, slots=True)
class About:
    """Describes an index at one moment: what its manifest fixes, and what was counted of its passages.

    length: terms of all passages together.
    """

    manifest: Manifest
    generation: int
    passages: int
    length: int


def read_about(connection: Connection[Any], address: Address) -> About:
    """Return what the index at an address is now. Raises IndexNotFound, IndexMismatch for another version."""
    if not is_there(connection, address):
        raise IndexNotFound(f"no index at {address}: make one with `ras-agent index FILES --out '{address}'`")
    version, manifest, *counts = connection.execute(
        "SELECT version, manifest, generation, passages, length FROM about"
    ).fetchone() or (None, {})
    if version != VERSION:
        raise IndexMismatch(
            f"{address} has version {version}, this ras-agent reads version {VERSION}: index the files anew into "
            "another schema, such as ?schema=handbook"
        )
    return About(Manifest.from_json(json.dumps(manifest)), *counts)


def is_there(connection: Connection[Any], address: Address) -> bool:
    """Return whether the schema of an address holds an index."""
    return connection.execute("SELECT to_regclass(%s)", (f'"{address.schema}".about',)).fetchone() != (None,)


def has_vector_graph(connection: Connection[Any]) -> bool:
    """Return whether the search graph of vectors was built."""
    return connection.execute("SELECT to_regclass('passages_vector')").fetchone() != (None,)
