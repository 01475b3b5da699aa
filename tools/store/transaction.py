"""Gives access to the rows of a store in one transaction, in the index's terms instead of SQL."""

from __future__ import annotations

from ras_agent.tools.store.graph import (
    EditRows,
    FactRows,
    GraphStateRows,
    NameRows,
    ReadingRows,
    VectorRows,
)
from ras_agent.tools.store.passages import IndexState, PassageRows, UploadRows
from ras_agent.tools.store.statements import Connection


class Transaction:
    """Gives access to the rows that are read and written together, by concern.

    `execute` and `executemany` run SQL; only modules of this folder use them.
    """

    def __init__(self, connection: Connection) -> None:
        """Take the connection."""
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.state = IndexState(connection)
        self.passages = PassageRows(connection)
        self.uploads = UploadRows(connection)
        self.graph = GraphStateRows(connection)
        self.names = NameRows(connection)
        self.readings = ReadingRows(connection)
        self.facts = FactRows(connection)
        self.edits = EditRows(connection)
        self.vectors = VectorRows(connection)
