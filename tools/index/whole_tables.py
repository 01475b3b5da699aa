"""Shows a table of a file as a whole: its rows, which are also separate documents, together below their header."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ras_agent.tools.index.documents import Document, Skipped
from ras_agent.tools.index.stated_facts import STATED
from ras_agent.tools.index.text_tables import TABLE, written_table

_LONGEST_TABLE = 20_000
"""The maximum number of characters in a table that is shown as a whole; nobody reads more than some rows of a longer
one."""
_LONGEST_ROW = 500


class WholeTable:
    """Collects the rows of a table, and drops them once there are too many to be shown together."""

    def __init__(self, name: str, title: str, columns: Sequence[str]) -> None:
        """Take the names of the table and its columns."""
        self._name = name
        self._title = title
        self._rows = [list(columns)]
        self._documents: list[Document] = []
        self._room = _LONGEST_TABLE

    def add(self, cells: Sequence[str], document: Document | Skipped) -> None:
        """Add a row of the table, given by its cells and its document. A row that was not loaded (Skipped) is not
        shown.
        """
        if self._room <= 0 or isinstance(document, Skipped):
            return
        length = sum(map(len, cells))
        self._room -= length
        if length > _LONGEST_ROW:
            self._room = 0
        if self._room <= 0:
            self._rows.clear()
            self._documents.clear()
            return
        self._rows.append(list(cells))
        self._documents.append(document)

    def documents(self) -> Iterator[Document]:
        """Yield the document of the whole table, unless fewer than two rows state facts or the table is too long."""
        facts = [_facts_of(row) for row in self._documents]
        stating = [row for row in self._documents if TABLE in row.metadata]
        if len(stating) < 2:
            return
        about = {**stating[0].metadata[TABLE], "rows": len(stating)}
        yield Document(
            id=f"{self._name}:table",
            text=written_table(self._rows),
            title=self._title,
            metadata={TABLE: about},
            place=self._name,
            facts_of_rows=tuple(facts),
        )


def _facts_of(row: Document) -> Sequence[Sequence[str]]:
    if TABLE not in row.metadata:
        return ()
    facts: Sequence[Sequence[str]] = row.metadata[STATED]
    return facts
