"""Open rows of text by the name of a file, or of an actor on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ras_agent.tools.spread.kept_rows import REMOTE, KeptRows, Rows


def open_rows(place: str | Path, columns: Sequence[str], holds: str) -> Rows:
    """The rows in a file, or behind "ray:NAME", an actor that keeps them for a Ray cluster.

    columns: the key's first. holds: the name of the table, and of what is kept, for errors.
    Raises SettingsError for a file of another kind, or an actor that is not there.
    """
    if str(place).startswith(REMOTE):
        from ras_agent.tools.spread.cluster import RowsElsewhere

        return RowsElsewhere(str(place).removeprefix(REMOTE))
    return KeptRows(place, columns, holds)
