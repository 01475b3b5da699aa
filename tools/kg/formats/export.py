"""Writes a knowledge graph for other programs: RDF, GraphML, node-link JSON, CSV, tab-separated values, JSON Lines.

`kg add` can read each of these files again and gets the same entities and facts; their places are then lines of the
file. Each format has the attributes of facts, and the person who made or corrected a fact: "person", or
"person:Ada".
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from ras_agent.contracts.errors import needs_extra
from ras_agent.contracts.records import Triple
from ras_agent.question_graph.export import NOT_XML
from ras_agent.tools.kg.formats.graph_files import ATTRIBUTES, EQUIVALENCE, FACT
from ras_agent.tools.kg.formats.reified import ABOUT, BY, reified
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.notes import place_of

_KEYS = (
    ("label", "node", "string"),
    ("documents", "node", "int"),
    ("label", "edge", "string"),
    ("kind", "edge", "string"),
    ("weight", "edge", "double"),
    ("sources", "edge", "string"),
    ("by", "edge", "string"),
    (ATTRIBUTES, "edge", "string"),
)
_BASE = "urn:ras-agent:"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
# the length of a place without further details: passage, start and end
_PLAIN_PLACE = 3


def write_graphml(graph: KGIndex, path: Path) -> None:
    """Write a graph as GraphML: entities with their document frequency, facts with their passages, equivalences with
    cosines.

    The `kind` of an edge is fact or equivalence; `sources` is a JSON list of passage ids; `by` is a person. The
    file is written edge by edge, since a graph may be larger than memory. Characters that XML cannot hold become
    U+FFFD.
    """

    def lines() -> Iterator[str]:
        yield '<?xml version="1.0" encoding="UTF-8"?>'
        yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        for name, target, kind in _KEYS:
            yield f'  <key id="{target}-{name}" for="{target}" attr.name="{name}" attr.type="{kind}"/>'
        yield '  <graph id="knowledge" edgedefault="directed">'
        for entity, name in enumerate(graph.entities):
            documents = int(graph.document_frequency[entity])
            data = _data("node", label=name, documents=documents)
            yield f"    <node id={quoteattr(f'n{entity}')}>{data}</node>"
        for number, link in enumerate(_links(graph)):
            yield _edge(number, link, float(len(link["sources"])))
        similarities = graph.similarities.tolist()
        for number, cosine in zip(graph.equivalences, similarities, strict=True):
            link = _link(graph, number, EQUIVALENCE, [])
            yield _edge(number, link, round(cosine, 4))
        yield "  </graph>"
        yield "</graphml>"

    _write(path, lines)


def write_tsv(graph: KGIndex, path: Path) -> None:
    """Write the columns head, relation, tail, passage, by and attributes, separated by tabs.

    There is a line for each passage that states a fact, and at least one for each fact.
    """

    def lines() -> Iterator[str]:
        for row in _rows(graph):
            yield "\t".join(row)

    _write(path, lines)


def write_csv(graph: KGIndex, path: Path) -> None:
    """Write the rows of `write_tsv` as comma-separated values."""

    with _table(path) as table:
        table.writerows(_rows(graph))


def _rows(graph: KGIndex) -> Iterator[list[str]]:
    yield ["head", "relation", "tail", "passage", "by", ATTRIBUTES]
    for edge in graph.facts:
        triple = graph.triple(edge)
        by = _by(graph, edge)
        for passage in _passages(triple) or [""]:
            fields = [
                triple.subject,
                triple.predicate,
                triple.object,
                passage,
                by,
                _attributes_text(triple),
            ]
            yield list(map(_in_one_line, fields))


def write_neo4j(graph: KGIndex, folder: Path) -> None:
    """Write nodes.csv and relationships.csv, which Neo4j imports: entities with their names, and facts with the
    relation as type.
    """
    folder.mkdir(exist_ok=True)
    with _table(folder / "nodes.csv") as nodes:
        nodes.writerow([":ID", "name"])
        for number, name in enumerate(graph.entities):
            nodes.writerow([number, _in_one_line(name)])
    with _table(folder / "relationships.csv") as relationships:
        relationships.writerow(
            [":START_ID", ":END_ID", ":TYPE", "kind", "sources", "by", ATTRIBUTES]
        )
        for link in _links(graph):
            attributes = link.get(ATTRIBUTES)
            relationships.writerow(
                [
                    link["source"],
                    link["target"],
                    _in_one_line(link["label"]),
                    link["kind"],
                    json.dumps(link["sources"]),
                    link.get("by", ""),
                    json.dumps(attributes) if attributes else "",
                ]
            )


@contextmanager
def _table(path: Path) -> Iterator[Any]:
    """Open a CSV file and yield its writer."""
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        yield csv.writer(file, lineterminator="\n")


def write_jsonl(graph: KGIndex, path: Path) -> None:
    """Write {"head", "relation", "tail", "sources"} for each fact, one a line; a source is a list of passage id, start
    and end.

    A fact that a person made also has "by", and a fact with attributes "attributes". A source that is unchecked or
    has attributes ends with an object of these.
    """

    def lines() -> Iterator[str]:
        for edge in graph.facts:
            triple = graph.triple(edge)
            record: dict[str, Any] = {
                "head": triple.subject,
                "relation": triple.predicate,
                "tail": triple.object,
                "sources": list(map(place_of, triple.sources)),
            }
            if triple.attributes:
                record["attributes"] = dict(triple.attributes)
            by = _by(graph, edge)
            if by:
                record["by"] = by
            yield json.dumps(record)

    _write(path, lines)


def write_node_link(graph: KGIndex, path: Path) -> None:
    """Write entities and facts as node-link JSON, which NetworkX's `node_link_graph` and D3 read; no equivalences."""

    def lines() -> Iterator[str]:
        yield '{"directed": true, "multigraph": true, "nodes": ['
        yield from _separated(_nodes(graph))
        yield '], "links": ['
        yield from _separated(_links(graph))
        yield "]}"

    _write(path, lines)


def _nodes(graph: KGIndex) -> Iterator[dict[str, Any]]:
    for number, name in enumerate(graph.entities):
        yield {"id": number, "label": name}


def _links(graph: KGIndex) -> Iterator[dict[str, Any]]:
    for edge in graph.facts:
        triple = graph.triple(edge)
        link = _link(graph, edge, FACT, _passages(triple))
        places = list(map(place_of, triple.sources))
        if any(len(place) > _PLAIN_PLACE for place in places):
            link["places"] = places
        if triple.attributes:
            link[ATTRIBUTES] = dict(triple.attributes)
        if by := _by(graph, edge):
            link["by"] = by
        yield link


def _link(graph: KGIndex, edge: int, kind: str, passages: list[str]) -> dict[str, Any]:
    head, relation, tail = graph.edges[edge].tolist()
    label = graph.relations[relation]
    return {
        "source": head,
        "target": tail,
        "label": label,
        "kind": kind,
        "sources": passages,
    }


def _separated(items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line of JSON for each item, with a comma before all but the first."""
    comma = ""
    for item in items:
        yield comma + json.dumps(item)
        comma = ","


def write_nt(graph: KGIndex, path: Path) -> None:
    """Write N-Triples: entities and relations are IRIs of their canonical keys, with their names as rdfs:label.

    A fact that a person made or that has attributes is also described by an rdf:Statement with these details.
    """
    _write(path, lambda: _statements(graph))


def write_rdf(graph: KGIndex, path: Path) -> None:
    """Write the statements of `write_nt` as Turtle, RDF/XML or JSON-LD, by the suffix of `path`.

    Raises MissingExtra without pyoxigraph.
    """
    with needs_extra(f"{path.suffix} files", "rdf"):
        import pyoxigraph
    extension = path.suffix.lower().lstrip(".")
    kind = pyoxigraph.RdfFormat.from_extension(extension)
    n_triples = pyoxigraph.RdfFormat.N_TRIPLES
    lines = "\n".join(_statements(graph))
    written = lines.encode("utf-8", "replace")
    statements = pyoxigraph.parse(written, format=n_triples)
    triples = (one.triple for one in statements)
    pyoxigraph.serialize(triples, str(path), format=kind)


def _statements(graph: KGIndex) -> Iterator[str]:
    """Yield the lines of N-Triples."""
    arrays = graph.arrays
    yield from _labels("entity", arrays.keys, graph.entities)
    yield from _labels("relation", arrays.relation_keys, graph.relations[:-1])
    for edge in graph.facts:
        ends: list[int] = graph.edges[edge].tolist()
        head, relation, tail = ends
        subject = _iri("entity", graph.keys[head])
        predicate = _iri("relation", arrays.relation_keys[relation])
        object_ = _iri("entity", graph.keys[tail])
        yield f"{subject} {predicate} {object_} ."
        about = {}
        if by := _by(graph, edge):
            about[BY] = _literal(by)
        if attributes := _attributes_text(graph.triple(edge)):
            about[ABOUT] = _literal(attributes)
        if about:
            node = f"_:fact{edge}"
            parts = (subject, predicate, object_)
            yield from reified(node, parts, about)


def _labels(kind: str, keys: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    for key, name in zip(keys, names, strict=True):
        yield f"{_iri(kind, key)} <http://www.w3.org/2000/01/rdf-schema#label> {_literal(name)} ."


def _write(path: Path, lines: Callable[[], Iterator[str]]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines())


def _edge(number: int, link: Mapping[str, Any], weight: float) -> str:
    """Return an edge in GraphML."""
    values = {
        "label": link["label"],
        "kind": link["kind"],
        "weight": weight,
        "sources": json.dumps(link["sources"], ensure_ascii=False),
    }
    if "by" in link:
        values["by"] = link["by"]
    if ATTRIBUTES in link:
        values[ATTRIBUTES] = json.dumps(link[ATTRIBUTES])
    data = _data("edge", **values)
    ends = f'source="n{link["source"]}" target="n{link["target"]}"'
    return f'    <edge id="e{number}" {ends}>{data}</edge>'


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _attributes_text(triple: Triple) -> str:
    """Return the attributes of a fact as JSON, or "" if it has none."""
    if not triple.attributes:
        return ""
    return json.dumps(dict(triple.attributes))


def _passages(triple: Triple) -> list[str]:
    """Return the ids of the passages that state a fact, each once."""
    passages = [source.passage_id for source in triple.sources]
    return list(dict.fromkeys(passages))


def _by(graph: KGIndex, edge: int) -> str:
    """Return the person who made a fact, on one line; "" for a fact that was read."""
    if not graph.edits:
        return ""
    triple = graph.triple(edge)
    edit = graph.made_by(triple)
    return _in_one_line(edit.by) if edit else ""


def _data(target: str, **values: str | int | float) -> str:
    parts = []
    for name, value in values.items():
        text = NOT_XML.sub("\ufffd", str(value))
        parts.append(f'<data key="{target}-{name}">{escape(text)}</data>')
    return "".join(parts)


def _iri(kind: str, key: str) -> str:
    return f"<{_BASE}{kind}:{quote(key.encode('utf-8', 'replace'), safe='')}>"


def _literal(text: str) -> str:
    escaped = text.translate(_ESCAPES)
    return f'"{escaped}"'
