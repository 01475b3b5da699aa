"""N-Triples (W3C, 2014): one statement a line, and the names that people would give to what it is about."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

__all__ = ["Statement", "Term", "labels_of", "names_of", "parse_statement"]

_TERM = r"<([^<>\"{}|^`\x00-\x20]*)>|(_:[^\s<>\".]+(?:\.+[^\s<>\".]+)*)"
_LITERAL = r'"((?:[^"\\\n\r]|\\.)*)"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*)|\^\^<([^<>\"]*)>)?'
_STATEMENT = re.compile(rf"\s*(?:{_TERM})\s*<([^<>\"\x00-\x20]*)>\s*(?:{_TERM}|{_LITERAL})\s*\.\s*(?:#.*)?$")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_CHARACTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Term(NamedTuple):
    """An IRI, a blank node ("_:b1") or a literal (`kind`: "iri", "blank", "literal") with its language, if any."""

    value: str
    kind: str
    language: str = ""


class Statement(NamedTuple):
    subject: Term
    predicate: Term
    object: Term


def parse_statement(line: str) -> Statement:
    """The statement of one line. Raises ValueError saying what is wrong."""
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
    """What rdfs:label calls things: in `language`, else without one, else in any; of several the first."""
    ranked: dict[str, tuple[int, str]] = {}
    for subject, predicate, object_ in statements:
        if predicate.value == _LABEL and object_.kind == "literal" and object_.value.strip():
            own = object_.language.partition("-")[0]
            rank = 0 if own == language else 1 if not own else 2
            if rank < ranked.get(subject.value, (3, ""))[0]:
                ranked[subject.value] = (rank, object_.value)
    return {name: label for name, (_, label) in ranked.items()}


def names_of(statement: Statement, labels: Mapping[str, str], file: str) -> tuple[str, str, str] | None:
    """The statement in words; None for one that only names a thing.

    A blank node without a label is called after its `file`, too: another file's `_:b1` is another thing.
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
    """The last part of an IRI, as words."""
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
