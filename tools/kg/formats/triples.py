"""Files of triples, by their suffix: N-Triples, tab-separated values, JSON Lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.errors import IngestError
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.load import Skipped
from ras_agent.tools.index.text_files import not_unicode, parse_line, read_lines
from ras_agent.tools.kg.formats.n_triples import Statement, labels_of, names_of, parse_statement

__all__ = ["TRIPLE_SUFFIXES", "PlacedTriple", "load_triples"]

_ROLES = (("head", "subject", "s"), ("relation", "predicate", "p"), ("tail", "object", "o"))
_HEADERS = {frozenset(name) for name in zip(*_ROLES, strict=True)}


@dataclass(frozen=True, slots=True)
class PlacedTriple:
    """A fact of a file, and its line there ("films.nt line 3")."""

    subject: str
    predicate: str
    object: str
    place: str


def load_triples(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    """The file's facts, and what could not be read, each with its place.

    .nt: N-Triples; names are rdfs:label where the file has them, else the ends of IRIs; a blank node without a label is
    one of its file. .tsv: head, relation, tail; a header of these words may stand first, further columns are left out.
    .jsonl: [head, relation, tail], or objects with the keys head, relation, tail or subject, predicate, object. Raises
    IngestError for another suffix.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise IngestError(f"{path}: unknown kind of triple file; known: {', '.join(TRIPLE_SUFFIXES)}")
    return reader(path, label)


def _lines(path: Path, label: str) -> Iterator[tuple[str, str] | Skipped]:
    """Lines that are not blank, with their places."""
    for number, line in enumerate(read_lines(path), start=1):
        place = f"{label} line {number}"
        if reason := not_unicode(line):
            yield Skipped(place, reason)
        elif line.strip():
            yield line.rstrip("\r\n"), place


def _n_triples(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    def statements() -> Iterator[tuple[Statement, str] | Skipped]:
        for item in _lines(path, label):
            if isinstance(item, Skipped):
                yield item
                continue
            line, place = item
            if line.lstrip().startswith("#"):
                continue
            try:
                yield parse_statement(line), place
            except ValueError as error:
                yield Skipped(place, f"not an N-Triples statement: {error}")

    # names come first: a label may stand after the statements that need it
    labels = labels_of(item[0] for item in statements() if not isinstance(item, Skipped))
    for item in statements():
        if isinstance(item, Skipped):
            yield item
        elif names := names_of(item[0], labels, label):
            yield _placed(names, item[1])


def _tab_separated(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    for number, item in enumerate(_lines(path, label)):
        if isinstance(item, Skipped):
            yield item
            continue
        line, place = item
        fields = line.split("\t")
        if len(fields) < 3:
            yield Skipped(place, f"expected head, relation and tail between tabs, found {len(fields)}: {line!r:.80}")
        elif number or frozenset(field.strip().lower() for field in fields[:3]) not in _HEADERS:
            yield _placed(fields[:3], place)


def _json_lines(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    for item in _lines(path, label):
        if isinstance(item, Skipped):
            yield item
            continue
        line, place = item
        try:
            record = parse_line(line)
        except ValueError as error:
            yield Skipped(place, str(error))
            continue
        fields = _fields(record)
        if fields is None:
            yield Skipped(place, f"expected [head, relation, tail] or an object with these keys, got {line!r:.80}")
        else:
            yield _placed(fields, place)


def _fields(record: Any) -> list[str] | None:
    if isinstance(record, Mapping):
        record = [next((record[name] for name in names if name in record), None) for names in _ROLES]
    texts = isinstance(record, list) and len(record) == 3 and all(isinstance(field, str) for field in record)
    return record if texts else None


def _placed(fields: Sequence[str], place: str) -> PlacedTriple | Skipped:
    head, relation, tail = (" ".join(field.split()) for field in fields)
    if not all(map(canonical_key, (head, relation, tail))):
        return Skipped(place, f"a blank head, relation or tail: {list(fields)!r:.80}")
    return PlacedTriple(head, relation, tail, place)


_READERS: dict[str, Callable[[Path, str], Iterator[PlacedTriple | Skipped]]] = {
    ".nt": _n_triples,
    ".tsv": _tab_separated,
    ".jsonl": _json_lines,
}
TRIPLE_SUFFIXES: Iterable[str] = tuple(_READERS)
