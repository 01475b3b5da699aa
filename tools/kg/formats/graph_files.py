"""Reads graphs of nodes and edges: GraphML, node-link JSON, CSV with headers, and the CSV files that Neo4j imports."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Attributes
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.index.tables import Rows
from ras_agent.tools.index.text_files import not_unicode, parse_line, read_lines
from ras_agent.tools.kg.formats.named import (
    Edge,
    PlacedTriple,
    named_facts,
    place_by,
    placed,
    written_attributes,
)

_NAMES = ("label", "name", "title", "rdfs:label", "caption")
_RELATIONS = (
    "label",
    "relation",
    "type",
    "predicate",
    "relationship",
    "interaction",
    "name",
    "key",
    "labels",
)
_HEAD = ("head", "subject", "s", "source", "from", "start")
_RELATION = (
    "relation",
    "predicate",
    "p",
    "type",
    "relationship",
    "edge",
    "property",
    "label",
)
_TAIL = ("tail", "object", "o", "target", "to", "end")
_LINKS = ("links", "edges", "relationships")
_STARTS = ("source", "startNode", "start", "from")
_ENDS = ("target", "endNode", "end", "to")
_APOC = {
    "_id": ":ID",
    "_labels": ":LABEL",
    "_start": ":START_ID",
    "_end": ":END_ID",
    "_type": ":TYPE",
}
"""Columns of the single file that Neo4j's APOC exports, and the same columns in the files that Neo4j imports."""
FACT = "fact"
"""The value of `kind` of a fact in an export of this package."""
EQUIVALENCE = "equivalence"
"""The value of `kind` of an equivalence in an export of this package; it is not imported, since a graph computes its
own."""
ATTRIBUTES = "attributes"
"""The column or key that holds a fact's attributes as JSON in an export of this package."""
_RELATED = "is related to"
# a count in exports of this package, which is not a fact
_OWN_KEYS = frozenset(("node-documents",))


@dataclass(slots=True)
class NodesAndEdges:
    """Holds the contents of a file of nodes and edges: labels of nodes by id, edges, and reports of unreadable parts."""

    labels: dict[str, str] = field(default_factory=dict)
    edges: list[Edge | Skipped] = field(default_factory=list)

    def facts(self) -> Iterator[PlacedTriple | Skipped]:
        """Return the edges as facts, in which ids are replaced by names."""
        return named_facts(self.labels, self.edges)

    def add_node(self, entity: str, values: Mapping[str, str], place: str) -> None:
        """Add a node. One of its values is its name; each other value becomes a fact."""
        name_key = _first_key(values, _NAMES)
        self.labels[entity] = values[name_key] if name_key else entity
        for key, value in values.items():
            if key == name_key or not value.strip():
                continue
            self.add_value(entity, key, value, place)

    def add_value(self, entity: str, key: str, value: str, place: str) -> None:
        """Add a fact that an entity has a value under a key, such as "population" and "500,000"."""
        edge = Edge(
            head=entity,
            relation=key.replace("_", " "),
            tail=value,
            place=place,
            is_attribute=True,
        )
        self.edges.append(edge)

    def add_edge(
        self, head: str, tail: str, values: Mapping[str, Any], place: str
    ) -> None:
        """Add an edge as a fact.

        The first value whose key may name a relation is the relation; other values become attributes.
        """
        texts = texts_of(values)
        kind = texts.get("kind")
        if kind == EQUIVALENCE:
            return
        key = _first_key(texts, _RELATIONS)
        relation = texts[key] if key else _RELATED
        if kind == FACT:
            place = place_by(place, texts.get("by", ""))
            attributes = written_attributes(texts.get(ATTRIBUTES, ""))
        else:
            relation = _words(relation)
            attributes = other_values(values, (key,))
        edge = Edge(
            head=head,
            relation=relation,
            tail=tail,
            place=place,
            attributes=attributes,
        )
        self.edges.append(edge)


def read_graphml(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    """Yield the facts of a GraphML file: its edges, and the values of its nodes.

    A file with a document type is refused, since that may refer to other files or expand until it fills the memory.

    Args:
        label: names the file in the places of facts and reports.
    """
    reader = _GraphML(label)
    try:
        with path.open("rb") as file:
            reader.parser.ParseFile(file)
    except expat.ExpatError as error:
        reader.graph.edges.append(
            Skipped(f"{label} line {error.lineno}", f"not XML: {error}")
        )
    return reader.graph.facts()


class _GraphML:
    """Parses GraphML, and keeps the line of each node and edge."""

    def __init__(self, label: str) -> None:
        self.graph = NodesAndEdges()
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype
        self._label = label
        self._keys: dict[str, str] = {}
        self._attributes: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._key = ""
        self._place = ""

    def _doctype(self, *_: object) -> None:
        raise IngestError(
            f"{self._label}: a file with a document type is not read, for safety: remove the <!DOCTYPE ...>"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        kind = tag.rpartition(" ")[2]
        if kind == "key":
            key = attributes.get("id", "")
            # yEd has its labels inside drawing data
            is_drawing = "yfiles.type" in attributes
            name = "label" if is_drawing else attributes.get("attr.name")
            self._keys[key] = name or key
        elif kind in ("node", "edge"):
            self._attributes = attributes
            self._values = {}
            self._place = f"{self._label} line {self.parser.CurrentLineNumber}"
        elif kind == "data" and attributes.get("key") not in _OWN_KEYS:
            key = attributes.get("key", "")
            self._key = self._keys.get(key, key)
            self._values[self._key] = ""

    def _text(self, text: str) -> None:
        if self._key:
            self._values[self._key] += text

    def _end(self, tag: str) -> None:
        kind = tag.rpartition(" ")[2]
        if kind == "data" and self._key:
            self._values[self._key] = self._values[self._key].strip()
            self._key = ""
        elif kind == "node":
            self.graph.add_node(
                self._attributes.get("id", ""), self._values, self._place
            )
        elif kind == "edge":
            head = self._attributes.get("source", "")
            tail = self._attributes.get("target", "")
            self.graph.add_edge(head, tail, self._values, self._place)


def read_node_link(path: Path, label: str) -> Iterator[PlacedTriple | Skipped]:
    """Yield the facts of node-link JSON, as NetworkX, D3 and Cytoscape write it. Raises IngestError for other JSON.

    Args:
        label: names the file in the places of facts and reports.
    """
    text = "".join(read_lines(path))
    try:
        found = parse_line(text)
    except ValueError as error:
        raise IngestError(f"{path}: {error}") from error
    # the form of Cytoscape
    if isinstance(found, dict) and isinstance(found.get("elements"), dict):
        found = found["elements"]
    # the form of JSON Graph Format
    if isinstance(found, dict) and "nodes" not in found:
        found = found.get("graph")
    if isinstance(found, dict) and isinstance(found.get("nodes"), dict):
        found = {**found, "nodes": _with_ids(found["nodes"])}
    if not isinstance(found, dict) or not isinstance(found.get("nodes"), list):
        raise IngestError(
            f'{path}: no object with "nodes" and "links" or "edges": give node-link JSON'
        )
    numbered = {
        key: dict(enumerate(value, start=1))
        for key, value in found.items()
        if isinstance(value, list)
    }
    return graph_of(numbered, label)


def graph_of(
    found: Mapping[str, Mapping[int, Any]], label: str, place: str = ""
) -> Iterator[PlacedTriple | Skipped]:
    """Yield the facts of nodes and of the edges between them.

    Args:
        found: lists of nodes and edges by name, each as a mapping from number to item.
        place: names the unit that the numbers count, such as "line".
    """
    graph = NodesAndEdges()
    _add_nodes(found["nodes"], graph, f"{label} {place or 'node'}")
    for name in _LINKS:
        if name in found:
            _add_links(found[name], graph, f"{label} {place or 'edge'}")
            break
    return graph.facts()


def _with_ids(nodes: Mapping[str, Any]) -> list[Any]:
    """Return a list of nodes from an object that maps their ids to them."""
    made: list[Any] = []
    for name, node in nodes.items():
        about = node if isinstance(node, Mapping) else {}
        made.append({**about, "id": name})
    return made


def _add_nodes(nodes: Mapping[int, Any], graph: NodesAndEdges, begin: str) -> None:
    by_place = not any(_id_of(node, "id") for node in nodes.values())
    for number, node in nodes.items():
        place = f"{begin} {number}"
        entity = _id_of(node, "id")
        if by_place and _data_of(node):
            entity = str(number - 1)
        if entity is None:
            problem = f'expected an object with "id", got {node!r:.80}'
            graph.edges.append(Skipped(place, problem))
            continue
        data = dict(_data_of(node))
        labels = data.get("labels")
        kinds = data.pop("labels") if isinstance(labels, list) else []
        values = texts_of(data)
        values.pop("id", None)
        graph.add_node(entity, values, place)
        for kind in kinds:
            graph.add_value(entity, "is a", str(kind), place)


def _add_links(links: Mapping[int, Any], graph: NodesAndEdges, begin: str) -> None:
    for number, link in links.items():
        place = f"{begin} {number}"
        head = _end_of(link, _STARTS)
        tail = _end_of(link, _ENDS)
        if head is None or tail is None:
            problem = f'expected an object with "source" and "target", got {link!r:.80}'
            graph.edges.append(Skipped(place, problem))
            continue
        data = _data_of(link)
        values = {key: data[key] for key in data if key not in (*_STARTS, *_ENDS)}
        graph.add_edge(head, tail, values, place)


def _end_of(link: Any, keys: Sequence[str]) -> str | None:
    """Return the id of the node at one end of an edge, which is under one of `keys`, or None."""
    for key in keys:
        end = _id_of(link, key)
        if end is not None:
            return end
    return None


def _id_of(item: Any, key: str) -> str | None:
    """Return an id in an object, or None. Cytoscape puts ids under "data"."""
    data = _data_of(item)
    value = data.get(key)
    if isinstance(value, Mapping):
        return _id_of(value, "id")
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int):
        return str(value)
    return None


def _data_of(item: Any) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        return {}
    data = item.get("data")
    if isinstance(data, Mapping):
        return data
    inner = item.get("properties")
    if not isinstance(inner, Mapping):
        return item
    others = {key: value for key, value in item.items() if key != "properties"}
    return {**others, **inner}


def other_values(values: Mapping[str, Any], used: Sequence[str | None]) -> Attributes:
    """Return, as attributes, the values that are not blank and whose keys are not in `used`."""
    others = {}
    for key, value in values.items():
        if key not in used and value is not None and str(value).strip():
            others[key] = value
    return Attributes.of_others(others)


def texts_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values as texts, without nulls; lists, objects and booleans become JSON."""
    texts = {}
    for key, value in values.items():
        if isinstance(value, (list, tuple, dict, bool)):
            texts[key] = json.dumps(value, ensure_ascii=False, default=str)
        elif value is not None:
            texts[key] = str(value)
    return texts


@dataclass(frozen=True, slots=True)
class _Table:
    """Holds the header of a CSV file, its rows with their places, and reports of unreadable rows."""

    header: list[str]
    rows: list[tuple[str, dict[str, str]]]
    skipped: list[Skipped]


def read_csv(
    path: Path, label: str, others: Sequence[Path] = ()
) -> Iterator[PlacedTriple | Skipped]:
    """Yield the facts of a CSV file with a header: head, relation, tail, or the columns of a file that Neo4j imports.

    Args:
        label: names the file in the places of facts and reports.
        others: the files that are read together with it, which may contain the nodes, and so the names, of Neo4j's
            edges.
    """
    table = _table(path, label)
    if not _is_neo4j(table.header):
        return _plain_facts(table, path)
    graph = NodesAndEdges()
    for other in others or (path,):
        if other == path:
            _read_neo4j(table, graph)
        elif other.suffix.lower() == path.suffix.lower():
            other_table = _table(other, other.name)
            _read_neo4j(other_table, graph)
    graph.edges.extend(table.skipped)
    return _facts_at(graph, label)


def _facts_at(graph: NodesAndEdges, label: str) -> Iterator[PlacedTriple | Skipped]:
    """Yield the facts of the file `label` only; the names of its entities depend on the edges of all files."""
    beginning = f"{label} line "
    for fact in graph.facts():
        if fact.place.startswith(beginning):
            yield fact


def _table(path: Path, label: str) -> _Table:
    header: list[str] = []
    rows = []
    skipped = []
    for number, row in Rows(read_lines(path)):
        place = f"{label} line {number}"
        problem = _problem_of(row, header)
        if problem or isinstance(row, csv.Error):
            skipped.append(Skipped(place, problem))
        elif not header:
            header = list(map(str.strip, row))
            if {"_id", "_start", "_end"} <= set(header):
                header = [_APOC.get(name, name) for name in header]
        elif any(map(str.strip, row)):
            values = dict(zip(header, row, strict=True))
            rows.append((place, values))
    return _Table(header=header, rows=rows, skipped=skipped)


def _problem_of(row: list[str] | csv.Error, header: Sequence[str]) -> str:
    """Return why a row cannot be used, or ""."""
    if isinstance(row, csv.Error):
        return f"not CSV: {row}"
    reason = not_unicode("".join(row))
    if reason:
        return reason
    is_blank = not any(map(str.strip, row))
    if is_blank or not header or len(row) == len(header):
        return ""
    return f"expected {len(header)} fields, found {len(row)}: {row!r:.80}"


def _plain_facts(table: _Table, path: Path) -> Iterator[PlacedTriple | Skipped]:
    columns = columns_of_facts(table.header)
    for names in (_HEAD, _RELATION, _TAIL):
        if not columns and not columns_of_facts(table.header, (names,)):
            raise IngestError(
                f"{path} line 1: no column holds the {names[0]} of the facts: name the column {' or '.join(names)}; "
                "or give a file that Neo4j imports, with :ID, or :START_ID, :END_ID and :TYPE"
            )
    yield from table.skipped
    is_ours = ATTRIBUTES in table.header
    for place, row in table.rows:
        fields = [row[column] for column in columns]
        if is_ours:
            attributes = written_attributes(row[ATTRIBUTES])
        else:
            attributes = other_values(row, (*columns, "passage", "by"))
        yield placed(fields, place_by(place, row.get("by", "")), attributes)


def columns_of_facts(
    header: Sequence[str], parts: Sequence[Sequence[str]] = (_HEAD, _RELATION, _TAIL)
) -> list[str]:
    """Return the columns of a header that hold the parts of a fact; [] if a part is missing.

    Args:
        parts: the possible names of each column, best first.
    """
    filled = {name: name for name in header}
    columns = []
    for names in parts:
        column = _first_key(filled, names)
        if not column:
            return []
        columns.append(column)
    return columns


def _is_neo4j(header: Sequence[str]) -> bool:
    kinds = set(map(_kind_of, header))
    return "ID" in kinds or {"START_ID", "END_ID"} <= kinds


def _kind_of(column: str) -> str:
    """Return the type in a column's name: "ID" for "personId:ID(Person)", "string[]" for "names:string[]", "" without
    one."""
    _, colon, kind = column.rpartition(":")
    if not colon:
        return ""
    return kind.partition("(")[0]


def _space_of(column: str) -> str:
    """Return the space of ids in a column's name: "Person" for "personId:ID(Person)", "" without one."""
    return column.partition("(")[2].rstrip(")")


def _read_neo4j(table: _Table, graph: NodesAndEdges) -> None:
    """Add the nodes or relationships in a table to a graph."""
    for place, row in table.rows:
        ends: dict[str, str] = {}
        values: dict[str, str] = {}
        labels = ""
        for column, value in row.items():
            kind = _kind_of(column)
            if kind in ("ID", "START_ID", "END_ID") and value:
                space = _space_of(column)
                ends[kind] = f"{space}:{value}" if space else value
            elif kind == "LABEL":
                labels = value
            elif kind == "TYPE":
                values["label"] = value
            elif kind != "IGNORE":
                name = column.partition(":")[0]
                values[name] = value
        if "ID" in ends:
            graph.add_node(ends["ID"], values, place)
            kinds = labels.replace(":", ";").split(";")
            for one in filter(None, kinds):
                graph.add_value(ends["ID"], "is a", one, place)
        elif "START_ID" in ends and "END_ID" in ends:
            graph.add_edge(ends["START_ID"], ends["END_ID"], values, place)


def _first_key(values: Mapping[str, str], keys: Sequence[str]) -> str | None:
    """Return the key whose value is not blank and that comes first in `keys`, ignoring case; None if there is none."""
    lowered = {}
    for key, value in values.items():
        if value.strip():
            lowered[key.lower()] = key
    for key in keys:
        if key in lowered:
            return lowered[key]
    return None


def _words(name: str) -> str:
    """Return the name of a relation as words: "works at" for works_at and for Neo4j's WORKS_AT."""
    if name.isupper():
        name = name.lower()
    return name.replace("_", " ")
