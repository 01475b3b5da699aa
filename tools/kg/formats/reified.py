"""Reads and writes statements about statements (RDF reification): who made a fact, and its attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ras_agent.contracts.records import NO_ATTRIBUTES, Attributes
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.kg.formats.named import written_attributes

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_TYPE = f"{_RDF}type"
_STATEMENT = f"{_RDF}Statement"
_PARTS = tuple(f"{_RDF}{part}" for part in ("subject", "predicate", "object"))
_UNSTATED = "describes a statement that the file does not contain: add that statement"
BY = "urn:ras-agent:by"
"""The property for the person who made a fact, in an export of this package."""
ABOUT = "urn:ras-agent:attributes"
"""The property for the attributes of a fact as JSON, in an export of this package."""


class Term(NamedTuple):
    """Holds an IRI, a blank node ("_:b1") or a literal."""

    value: str
    kind: str
    """"iri", "blank" or "literal"."""
    language: str = ""
    """The language tag of a literal."""


class Statement(NamedTuple):
    """Holds the three terms of an RDF statement."""

    subject: Term
    predicate: Term
    object: Term


def reified(node: str, parts: Sequence[str], about: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of N-Triples that say something about a statement.

    Args:
        node: the blank node that stands for the statement.
        parts: the three terms of the statement.
        about: literals, by the IRIs of their properties.
    """
    yield f"{node} <{_TYPE}> <{_STATEMENT}> ."
    for name, part in zip(_PARTS, parts, strict=True):
        yield f"{node} <{name}> {part} ."
    for name, value in about.items():
        yield f"{node} <{name}> {value} ."


class Notes:
    """Collects statements in a file that are about other statements of the file: who made a fact, and its attributes.

    `seen` has to read all statements before `takes` is called.
    """

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, Term]] = {}
        self._about: dict[str, dict[str, str]] = {}
        self._nodes: dict[tuple[str, ...], str] = {}
        self._unstated: set[str] = set()

    def seen(
        self, statements: Iterable[tuple[Statement, str] | Skipped]
    ) -> Iterator[Statement]:
        """Yield the statements, and remember which subjects stand for other statements."""
        for item in statements:
            if isinstance(item, Skipped):
                continue
            statement = item[0]
            predicate = statement.predicate.value
            if predicate in _PARTS:
                node = statement.subject.value
                parts = self._parts.setdefault(node, {})
                parts[predicate] = statement.object
            yield statement

    def is_about(self, statement: Statement) -> bool:
        """Return whether a statement is about another statement."""
        parts = self._parts.get(statement.subject.value, {})
        return len(parts) == len(_PARTS)

    def takes(self, statement: Statement) -> bool:
        """Collect a statement that is about another statement, and return True; return False for any other."""
        if not self.is_about(statement):
            return False
        node, predicate, value = statement
        parts = self._parts[node.value]
        key = [parts[name].value for name in _PARTS]
        self._nodes[tuple(key)] = node.value
        self._unstated.add(node.value)
        if predicate.value not in (*_PARTS, _TYPE):
            about = self._about.setdefault(node.value, {})
            about[predicate.value] = value.value
        return True

    def unstated(self, label: str) -> list[Skipped]:
        """Return reports of the statements that have notes but are not stated in the file."""
        reports = []
        for node in sorted(self._unstated):
            report = Skipped(f"{label} {node}", _UNSTATED)
            reports.append(report)
        return reports

    def of(self, statement: Statement) -> tuple[str, Attributes]:
        """Return the person who made the fact of a statement, or "", and the fact's attributes."""
        key = tuple(term.value for term in statement)
        node = self._nodes.get(key)
        if node is None:
            return "", NO_ATTRIBUTES
        self._unstated.discard(node)
        about: dict[str, Any] = dict(self._about.get(node, {}))
        by = about.pop(BY, "")
        written = about.pop(ABOUT, "")
        attributes: dict[str, Any] = dict(written_attributes(written))
        for name, value in about.items():
            end = name.rpartition("#")[2]
            end = end.rpartition("/")[2]
            attributes[end] = value
        return by, Attributes.of_others(attributes)
