"""Reads files of triples, by their suffix: N-Triples (W3C, 2014), tab-separated values, JSON Lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from ras_agent.errors import IngestError
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.load import Skipped
from ras_agent.tools.index.text_files import not_unicode, parse_line, read_lines

_ROLES = (("head", "subject", "s"), ("relation", "predicate", "p"), ("tail", "object", "o"))
_HEADERS = {frozenset(name) for name in zip(*_ROLES, strict=True)}

_TERM = r"<([^<>\"{}|^`\x00-\x20]*)>|(_:[^\s<>\".]+(?:\.+[^\s<>\".]+)*)"
_LITERAL = r'"((?:[^"\\\n\r]|\\.)*)"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*)|\^\^<([^<>\"]*)>)?'
_STATEMENT = re.compile(rf"\s*(?:{_TERM})\s*<([^<>\"\x00-\x20]*)>\s*(?:{_TERM}|{_LITERAL})\s*\.\s*(?:#.*)?$")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_CHARACTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class PlacedTriple:
    """Holds a fact of a file, and its line there ("films.nt line 3")."""

    subject: str
    predicate: str
    object: str
    place: str


def load_triples(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    """Yield the file's facts, and a Skipped for each line that could not be read, with their places.

    .nt: N-Triples; names are rdfs:label if the file has them, else the ends of IRIs; a blank node without a label gets
    the file's name. .tsv: head, relation, tail; a header of these words may come first, further columns are ignored.
    .jsonl: [head, relation, tail], or objects with the keys head, relation, tail or subject, predicate, object. Raises
    IngestError for another suffix.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise IngestError(f"{path}: unknown kind of triple file; known: {', '.join(TRIPLE_SUFFIXES)}")
    return reader(path, label)


def _lines(path: Path, label: str) -> Iterator[tuple[str, str] | Skipped]:
    """Yield lines that are not blank, with their places."""
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

    # labels are collected first: one may come after the statements that need it
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


class Term(NamedTuple):
    """Holds an IRI, a blank node ("_:b1") or a literal (`kind`: "iri", "blank", "literal") with its language."""

    value: str
    kind: str
    language: str = ""


class Statement(NamedTuple):
    """Holds the three terms of one N-Triples line."""

    subject: Term
    predicate: Term
    object: Term


def parse_statement(line: str) -> Statement:
    """Return the statement of one line. Raises ValueError saying what is wrong."""
    found = _STATEMENT.match(line)
    if found is None:
        raise ValueError(f"expected <subject> <predicate> <object> or a literal, and a full stop: {line.strip()!r:.90}")
    iri, blank, predicate, object_iri, object_blank, literal, language, _ = found.groups()
    subject = Term(_unescaped(iri), "iri") if iri is not None else Term(blank, "blank")
    if literal is not None:
        object_ = Term(_unescaped(literal), "literal", (language or "").lower())
    else:
        object_ = Term(_unescaped(object_iri), "iri") if object_iri is not None else Term(object_blank, "blank")
    return Statement(subject, Term(_unescaped(predicate), "iri"), object_)


def labels_of(statements: Iterable[Statement], language: str = "en") -> dict[str, str]:
    """Return the rdfs:label of each term: in `language`, else without one, else in any; of several the first."""
    ranked: dict[str, tuple[int, str]] = {}
    for subject, predicate, object_ in statements:
        if predicate.value == _LABEL and object_.kind == "literal" and object_.value.strip():
            own = object_.language.partition("-")[0]
            rank = 0 if own == language else 1 if not own else 2
            if rank < ranked.get(subject.value, (3, ""))[0]:
                ranked[subject.value] = (rank, object_.value)
    return {name: label for name, (_, label) in ranked.items()}


def names_of(statement: Statement, labels: Mapping[str, str], file: str) -> tuple[str, str, str] | None:
    """Return the statement in words; None for one that only gives a label.

    The name of a blank node without a label includes its `file`: another file's `_:b1` is another entity.
    """
    if statement.predicate.value == _LABEL:
        return None
    predicate = labels.get(statement.predicate.value)
    if predicate is None:
        predicate = "is a" if statement.predicate.value == _TYPE else _HUMP.sub(" ", _end(statement.predicate.value))
    return _name(statement.subject, labels, file), predicate, _name(statement.object, labels, file)


def _name(term: Term, labels: Mapping[str, str], file: str) -> str:
    if term.kind == "literal":
        return term.value
    return labels.get(term.value) or (_end(term.value) if term.kind == "iri" else f"{term.value} of {file}")


def _end(iri: str) -> str:
    """Return the last part of an IRI, as words."""
    end = re.split(r"[/#]", iri.rstrip("/#"))[-1]
    return unquote(end).replace("_", " ").strip() or iri


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code is not None and int(code, 16) <= sys.maxunicode:
            return chr(int(code, 16))
        if code is not None:
            raise ValueError(f"no character {found[0]}")
        if found[3] not in _CHARACTERS:
            raise ValueError(f"unknown escape \\{found[3]}")
        return _CHARACTERS[found[3]]

    return _ESCAPE.sub(character, text) if "\\" in text else text


_READERS: dict[str, Callable[[Path, str], Iterator[PlacedTriple | Skipped]]] = {
    ".nt": _n_triples,
    ".tsv": _tab_separated,
    ".jsonl": _json_lines,
}
TRIPLE_SUFFIXES: Iterable[str] = tuple(_READERS)
