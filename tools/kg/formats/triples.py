"""Reads files of triples and graphs; the suffix decides the format.

This module reads N-Triples (W3C, 2014), tab-separated values and JSON Lines itself, and Turtle, RDF/XML and JSON-LD
through pyoxigraph. Files of nodes and edges are read in graph_files.py.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ras_agent.contracts.errors import IngestError, needs_extra
from ras_agent.contracts.records import Attributes
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.stated_facts import FACT_KEYS, attributes_of
from ras_agent.tools.index.text_files import not_unicode, parse_line, read_lines
from ras_agent.tools.kg.formats.graph_files import (
    ATTRIBUTES,
    columns_of_facts,
    graph_of,
    read_csv,
    read_graphml,
    read_node_link,
)
from ras_agent.tools.kg.formats.named import (
    ALSO_CALLED,
    Edge,
    PlacedTriple,
    named_facts,
    place_by,
    placed,
    written_attributes,
)
from ras_agent.tools.kg.formats.reified import Notes, Statement, Term

_OWN_KEYS = ("sources", "by")

_TERM = r"<([^<>\"{}|^`\x00-\x20]*)>|(_:[^\s<>\".]+(?:\.+[^\s<>\".]+)*)"
_LITERAL = (
    r'"((?:[^"\\\n\r]|\\.)*)"(?:@([A-Za-z]+(?:-[A-Za-z0-9]+)*)|\^\^<([^<>\"]*)>)?'
)
_STATEMENT = re.compile(
    rf"\s*(?:{_TERM})\s*<([^<>\"\x00-\x20]*)>\s*(?:{_TERM}|{_LITERAL})\s*\.\s*(?:#.*)?$"
)
_ENTITY = re.compile(rb"<!ENTITY\s+[^\s\"'>]+\s+[\"']([^\"']*)")
_ELEMENT = re.compile(rb"<[A-Za-z_]")
_LONGEST_HEAD = 1 << 20
_LONGEST_ENTITY = 300
"""The maximum length of an XML entity in bytes; usual entities are the beginnings of IRIs."""
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_CHARACTERS = {
    "t": "\t",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "f": "\f",
    '"': '"',
    "'": "'",
    "\\": "\\",
}
_ANY_LANGUAGE = ("mul", "und", "zxx")
"""The language tags of a name that is the same in all languages, or in an unknown one."""
LABELS = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)
ALSO_LABELS = ("http://www.w3.org/2004/02/skos/core#altLabel",)
_GLOSSES = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#type": "is a",
    ALSO_LABELS[0]: ALSO_CALLED,
    "http://schema.org/description": "is described as",
    "https://schema.org/description": "is described as",
}
_DIRECT = re.compile(r"/prop/(?:direct|direct-normalized|statement|qualifier)/")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def load_triples(
    path: Path, label: str, others: Sequence[Path] = ()
) -> Iterator[PlacedTriple | Skipped]:
    """Yield the facts of a file, and a Skipped with its place for each line that could not be read.

    The suffix decides the format. Raises IngestError for any other suffix.

    - RDF (.nt, and with the extra `rdf` .ttl, .rdf, .jsonld): names are the labels in the file, else the last parts
      of the IRIs. IRIs with the same label are distinguished by a fact. A blank node without a label gets the
      file's name.
    - .tsv: head, relation, tail. A header of these words may come first; further columns are ignored.
    - .jsonl: [head, relation, tail], or objects with the keys head, relation, tail or subject, predicate, object.
    - .csv: columns of these names, or a file that Neo4j imports, whose nodes may be in one of `others`.
    - .graphml and .json: nodes and edges.

    Args:
        label: names the file in the places of facts and reports.
        others: the files that are added together with this one.
    """
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return read_csv(path, label, others)
    reader = _READERS.get(suffix)
    if reader is None:
        raise IngestError(
            f"{path}: unknown kind of triple file: give one with a suffix of {', '.join(TRIPLE_SUFFIXES)}"
        )
    return reader(path, label)


def placed_lines(path: Path, label: str) -> Iterator[tuple[str, str] | Skipped]:
    """Yield the lines that are not blank, each with its place; a Skipped for a line that is not Unicode."""
    for number, line in enumerate(read_lines(path), start=1):
        place = f"{label} line {number}"
        if reason := not_unicode(line):
            yield Skipped(place, reason)
        elif line.strip():
            yield line.rstrip("\r\n"), place


def _n_triples(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    def statements() -> Iterator[tuple[Statement, str] | Skipped]:
        for item in placed_lines(path, label):
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

    return facts_of_statements(statements(), label)


def _rdf(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    with needs_extra(f"{path.suffix} files", "rdf"):
        import pyoxigraph
    kind = pyoxigraph.RdfFormat.from_extension(path.suffix.lower().lstrip("."))
    if kind == pyoxigraph.RdfFormat.RDF_XML:
        _check_entities(path, label)

    def statements() -> Iterator[tuple[Statement, str] | Skipped]:
        number = 0
        blank: dict[str, str] = {}
        try:
            with path.open("rb") as file:
                # relative names need a base; nothing is fetched from it
                parser = pyoxigraph.parse(
                    file, format=kind, base_iri=f"urn:file:{quote(label)}"
                )
                for number, quad in enumerate(parser, start=1):
                    yield _statement_of(quad, blank), f"{label} statement {number}"
        except (SyntaxError, ValueError) as error:
            after = f"{label} statement {number + 1}"
            reason = f"cannot be read, nor what comes behind it: {error}"
            if "remote context" in reason:
                reason = (
                    "names a context elsewhere, and nothing is fetched: write the context "
                    "into the file"
                )
            yield Skipped(after, reason)

    return facts_of_statements(statements(), label)


def _check_entities(path: Path, label: str) -> None:
    """Raise IngestError for an XML file whose entities could fill the memory, since the library expands them all."""
    with path.open("rb") as file:
        head = file.read(_LONGEST_HEAD)
    begin = head.find(b"<!DOCTYPE")
    if begin < 0:
        return
    # the elements of the document begin at the first tag that is neither a declaration nor an instruction
    elements = _ELEMENT.search(head, begin)
    declared = head[begin : elements.start()] if elements else b""
    values = [found[1] for found in _ENTITY.finditer(declared)]
    longest = max(map(len, values), default=0)
    nested = any(b"&" in value.replace(b"&#", b"") for value in values)
    if elements is None or nested or longest > _LONGEST_ENTITY:
        raise IngestError(
            f"{label}: the document type has entities that refer to others or are long, which are not read, for "
            "safety: write their values into the text"
        )


def _statement_of(quad: Any, blank: dict[str, str]) -> Statement:
    """Return a statement of the library as a Statement.

    Args:
        blank: the names of blank nodes, numbered in order, since the library gives them different names in each
            run.
    """
    return Statement(
        subject=_term_of(quad.subject, blank),
        predicate=_term_of(quad.predicate, blank),
        object=_term_of(quad.object, blank),
    )


def _term_of(term: Any, blank: dict[str, str]) -> Term:
    kind = type(term).__name__
    if kind == "Literal":
        return Term(term.value, "literal", (term.language or "").lower())
    if kind == "BlankNode":
        name = blank.setdefault(term.value, f"_:b{len(blank) + 1}")
        return Term(name, "blank")
    return Term(getattr(term, "value", str(term)), "iri")


def facts_of_statements(
    statements: Iterable[tuple[Statement, str] | Skipped],
    label: str,
    language: str = "en",
) -> Iterator[PlacedTriple | Skipped]:
    """Yield the facts of RDF statements, with the names of their terms in `language`.

    Args:
        statements: statements with their places.
        label: names the file in reports.
    """
    items = list(statements)
    # labels are collected first: a label may come after the statements that need it
    notes = Notes()
    labels = labels_of(notes.seen(items), language)
    names: dict[str, str] = {}
    for item in items:
        if isinstance(item, Skipped) or notes.takes(item[0]):
            continue
        if relation_of(item[0], labels, language) is None:
            continue
        subject, _, object_ = item[0]
        for term in (subject, object_):
            if term.kind != "literal":
                names[term.value] = _name(term, labels, label)
    edges: list[Edge | Skipped] = []
    for item in items:
        if isinstance(item, Skipped):
            edges.append(item)
            continue
        statement, place = item
        relation = relation_of(statement, labels, language)
        if relation is None or notes.is_about(statement):
            continue
        by, attributes = notes.of(statement)
        edge = Edge(
            head=statement.subject.value,
            relation=relation,
            tail=statement.object.value,
            place=place_by(place, by),
            is_attribute=statement.object.kind == "literal",
            attributes=attributes,
        )
        edges.append(edge)
    return named_facts(names, [*edges, *notes.unstated(label)])


def _tab_separated(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    columns: list[str] = []
    places = [0, 1, 2]
    for number, item in enumerate(placed_lines(path, label)):
        if isinstance(item, Skipped):
            yield item
            continue
        line, place = item
        fields = line.split("\t")
        if len(fields) < 3:
            yield Skipped(
                place,
                f"expected head, relation and tail between tabs, found {len(fields)}: {line!r:.80}",
            )
        elif number == 0 and (found := columns_of_facts(fields)):
            columns = fields
            places = [fields.index(name) for name in found]
        elif len(fields) <= max(places):
            yield Skipped(
                place,
                f"expected {len(columns)} fields, found {len(fields)}: {line!r:.80}",
            )
        else:
            values = dict(zip(columns, fields, strict=False))
            place = place_by(place, values.get("by", ""))
            written = values.get(ATTRIBUTES, "")
            attributes = written_attributes(written)
            yield placed([fields[at] for at in places], place, attributes)


def _json_lines(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    if graph := _neo4j_lines(path):
        yield from graph_of(graph, label, place="line")
        return
    yield from _facts_of_records(placed_records(path, label))


def _json(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    """Yield the facts in a JSON file: a list of facts, or an object of nodes and edges."""
    text = "".join(read_lines(path))
    if not text.lstrip().startswith("["):
        yield from read_node_link(path, label)
        return
    try:
        listed = parse_line(text)
    except ValueError as error:
        raise IngestError(f"{path}: {error}") from error
    numbered = enumerate(listed, start=1)
    yield from _facts_of_records(
        (record, f"{label} fact {number}") for number, record in numbered
    )


def placed_records(path: Path, label: str) -> Iterator[tuple[Any, str] | Skipped]:
    """Yield the values of the lines of a JSON Lines file, with their places."""
    for item in placed_lines(path, label):
        if isinstance(item, Skipped):
            yield item
            continue
        line, place = item
        try:
            yield parse_line(line), place
        except ValueError as error:
            yield Skipped(place, str(error))


def _facts_of_records(
    items: Iterable[tuple[Any, str] | Skipped],
) -> Iterator[PlacedTriple | Skipped]:
    for item in items:
        if isinstance(item, Skipped):
            yield item
            continue
        record, place = item
        fields = _fields(record)
        if fields is None:
            written = json.dumps(record, ensure_ascii=False)
            yield Skipped(
                place,
                f"expected [head, relation, tail] or an object with these keys, got {written!r:.80}",
            )
        elif isinstance(record, Mapping):
            by = str(record.get("by"))
            place = place_by(place, by)
            others = attributes_of(record, _OWN_KEYS)
            attributes = Attributes.of_others(others)
            yield placed(fields, place, attributes)
        else:
            yield placed(fields, place)


def _neo4j_lines(path: Path) -> dict[str, dict[int, Any]]:
    """Return the nodes and relationships that Neo4j's APOC exported, by line number; {} for a file of another kind."""
    found: dict[str, dict[int, Any]] = {"nodes": {}, "relationships": {}}
    for number, line in enumerate(read_lines(path), start=1):
        record: Any = None
        with suppress(ValueError):
            record = parse_line(line) if line.strip() else {}
        kind = record.get("type") if isinstance(record, dict) else None
        listed = found.get(f"{kind}s")
        if listed is not None and "id" in record:
            listed[number] = {key: record[key] for key in record if key != "type"}
        elif record or not isinstance(record, dict):
            return {}
    return found if found["nodes"] else {}


def _fields(record: Any) -> list[str] | None:
    if isinstance(record, Mapping):
        record = [
            next((record[name] for name in names if name in record), None)
            for names in FACT_KEYS
        ]
    if not isinstance(record, list) or len(record) != 3:
        return None
    *names, value = record
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = json.dumps(value)
    texts = [*names, value]
    if not all(isinstance(text, str) for text in texts):
        return None
    return texts


def parse_statement(line: str) -> Statement:
    """Return the N-Triples statement in a line. Raises ValueError, with the reason, for any other line."""
    found = _STATEMENT.match(line)
    if found is None:
        raise ValueError(
            f"expected <subject> <predicate>, then <object> or a literal, and a full stop, found {line.strip()!r:.90}"
        )
    iri, blank, predicate, object_iri, object_blank, literal, language, _ = (
        found.groups()
    )
    subject = Term(_unescaped(iri), "iri") if iri is not None else Term(blank, "blank")
    if literal is not None:
        object_ = Term(_unescaped(literal), "literal", (language or "").lower())
    else:
        object_ = (
            Term(_unescaped(object_iri), "iri")
            if object_iri is not None
            else Term(object_blank, "blank")
        )
    return Statement(subject, Term(_unescaped(predicate), "iri"), object_)


def labels_of(statements: Iterable[Statement], language: str = "en") -> dict[str, str]:
    """Return the label of each term: preferably in `language`, else without a language, else in any; the first of
    several.

    rdfs:label takes precedence over the other properties that give names.
    """
    ranked: dict[str, tuple[int, str]] = {}
    for statement in statements:
        subject, _, object_ = statement
        if not _is_label(statement) or not object_.value.strip():
            continue
        rank = 2
        if _is_in(object_, language):
            rank = 0 if object_.language else 1
        rank += 3 * LABELS.index(statement.predicate.value)
        before = ranked.get(subject.value)
        if before is None or rank < before[0]:
            ranked[subject.value] = (rank, object_.value)
    return {name: label for name, (_, label) in ranked.items()}


def _is_label(statement: Statement) -> bool:
    return statement.predicate.value in LABELS and statement.object.kind == "literal"


def relation_of(
    statement: Statement, labels: Mapping[str, str], language: str = "en"
) -> str | None:
    """Return the name of a statement's relation; None if the statement gives the label, or a gloss in another
    language.

    A further label in `language` is another name of the entity (ALSO_CALLED). A direct property of Wikidata has the
    label of the property itself.
    """
    predicate = statement.predicate.value
    if _is_label(statement):
        name = statement.object.value
        label = labels.get(statement.subject.value)
        is_other = bool(name.strip()) and name != label
        if is_other and _is_in(statement.object, language):
            return ALSO_CALLED
        return None
    if predicate in _GLOSSES:
        is_read = _is_in(statement.object, language)
        return _GLOSSES[predicate] if is_read else None
    label = labels.get(predicate) or labels.get(direct_property(predicate))
    if label is not None:
        return label
    return _HUMP.sub(" ", _end(predicate))


def _is_in(term: Term, language: str) -> bool:
    """Return whether a literal has the given language, in the form of any country, or no particular language."""
    own = term.language.partition("-")[0]
    return own in ("", *_ANY_LANGUAGE, language)


def direct_property(predicate: str) -> str:
    """Return the entity of Wikidata that describes one of its direct properties: for .../prop/direct/P19, .../entity/P19.

    Any other predicate is returned unchanged.
    """
    return _DIRECT.sub("/entity/", predicate)


def _name(term: Term, labels: Mapping[str, str], file: str) -> str:
    if term.kind == "literal":
        return term.value
    return labels.get(term.value) or (
        _end(term.value) if term.kind == "iri" else f"{term.value} of {file}"
    )


def _end(iri: str) -> str:
    """Return the last part of an IRI, as words."""
    *_, end = re.split(r"[/#]", iri.rstrip("/#"))
    words = unquote(end).replace("_", " ")
    return words.strip() or iri


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if code is not None and int(code, 16) <= sys.maxunicode:
            return chr(int(code, 16))
        if code is not None:
            raise ValueError(f"{found[0]} is not a character")
        if found[3] not in _CHARACTERS:
            raise ValueError(f"unknown escape \\{found[3]}")
        return _CHARACTERS[found[3]]

    return _ESCAPE.sub(character, text) if "\\" in text else text


_READERS: dict[str, Callable[[Path, str], Iterator[PlacedTriple | Skipped]]] = {
    ".nt": _n_triples,
    ".tsv": _tab_separated,
    ".jsonl": _json_lines,
    ".ttl": _rdf,
    ".rdf": _rdf,
    ".jsonld": _rdf,
    ".graphml": read_graphml,
    ".json": _json,
}
TRIPLE_SUFFIXES: Iterable[str] = (*_READERS, ".csv")
