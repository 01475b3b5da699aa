"""Reads and writes the edits that persons made, as JSON, in the database of a knowledge graph."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ras_agent.text.normal_form import storable
from ras_agent.tools.index.passages import damaged
from ras_agent.tools.kg.edits import Edit
from ras_agent.tools.store.database import Database
from ras_agent.tools.store.transaction import Transaction


def read_edits(transaction: Transaction, database: Database) -> tuple[Edit, ...]:
    """Return the edits that persons made, oldest first. Raises IndexMismatch for a damaged edit."""
    found = []
    for number, data in transaction.edits.all():
        try:
            edit = Edit.from_dict(json.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            problem = f"edit {number:,} of its graph is not what was written"
            raise damaged(database, problem) from error
        found.append(edit)
    return tuple(found)


def write_edits(transaction: Transaction, edits: Sequence[Edit]) -> None:
    """Replace the stored edits by `edits`."""
    rows = []
    for edit in edits:
        data = json.dumps(edit.to_dict(), ensure_ascii=False)
        rows.append((edit.number, storable(data)))
    transaction.edits.replace(rows)
