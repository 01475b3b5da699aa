"""Writes a knowledge graph for other programs: GraphML, N-Triples, tab-separated values, JSON Lines.

Each says of a fact that a person has made or corrected who that was: "person", or "person:Ada".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from ras_agent.question_graph.export import NOT_XML
from ras_agent.tools.kg.index import KGIndex

_KEYS = (
    ("label", "node", "string"),
    ("documents", "node", "int"),
    ("label", "edge", "string"),
    ("kind", "edge", "string"),
    ("weight", "edge", "double"),
    ("sources", "edge", "string"),
    ("by", "edge", "string"),
)
_BASE = "urn:ras-agent:"


def write_graphml(graph: KGIndex, path: Path) -> None:
    """Write entities with how many documents name them, facts with their passages, equivalences with their cosine.

    `kind` of an edge is fact or equivalence; `sources` is a JSON list of passage ids; `by` is a person. Written
    edge by edge: a graph may be larger than memory. Characters that XML cannot hold become U+FFFD.
    """

    def lines() -> Iterator[str]:
        yield '<?xml version="1.0" encoding="UTF-8"?>'
        yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        for name, target, kind in _KEYS:
            yield f'  <key id="{target}-{name}" for="{target}" attr.name="{name}" attr.type="{kind}"/>'
        yield '  <graph id="knowledge" edgedefault="directed">'
        for entity, name in enumerate(graph.entities):
            data = _data(
                "node", label=name, documents=int(graph.document_frequency[entity])
            )
            yield f"    <node id={quoteattr(f'n{entity}')}>{data}</node>"
        for edge in graph.facts:
            passages = list(
                dict.fromkeys(
                    source.passage_id for source in graph.triple(edge).sources
                )
            )
            yield _edge(graph, edge, "fact", float(len(passages)), passages)
        for edge, cosine in zip(
            graph.equivalences, graph.similarities.tolist(), strict=True
        ):
            yield _edge(graph, edge, "equivalence", round(cosine, 4), [])
        yield "  </graph>"
        yield "</graphml>"

    _write(path, lines)


def write_tsv(graph: KGIndex, path: Path) -> None:
    """Write head, relation, tail, passage, by: a line for each passage that states a fact, one where none does."""

    def lines() -> Iterator[str]:
        yield "head\trelation\ttail\tpassage\tby"
        for edge in graph.facts:
            triple, by = graph.triple(edge), _by(graph, edge)
            for passage in [source.passage_id for source in triple.sources] or [""]:
                fields = (triple.subject, triple.predicate, triple.object, passage, by)
                yield "\t".join(" ".join(field.split()) for field in fields)

    _write(path, lines)


def write_jsonl(graph: KGIndex, path: Path) -> None:
    """Write {"head", "relation", "tail", "sources"} per line, a source being a passage id, start and end.

    A fact of a person's has "by" too.
    """

    def lines() -> Iterator[str]:
        for edge in graph.facts:
            triple = graph.triple(edge)
            sources = [
                [source.passage_id, source.start, source.end]
                for source in triple.sources
            ]
            record = {
                "head": triple.subject,
                "relation": triple.predicate,
                "tail": triple.object,
                "sources": sources,
            }
            by = _by(graph, edge)
            yield json.dumps(record | {"by": by} if by else record, ensure_ascii=True)

    _write(path, lines)


def write_nt(graph: KGIndex, path: Path) -> None:
    """Write N-Triples: entities and relations as IRIs of their canonical keys, with their names as rdfs:label.

    A comment behind a fact names the person who made it.
    """

    def lines() -> Iterator[str]:
        for kind, keys, names in (
            ("entity", graph.arrays.keys, graph.entities),
            ("relation", graph.arrays.relation_keys, graph.relations[:-1]),
        ):
            for key, name in zip(keys, names, strict=True):
                yield f"{_iri(kind, key)} <http://www.w3.org/2000/01/rdf-schema#label> {_literal(name)} ."
        facts: list[list[int]] = graph.edges[: graph.facts.stop].tolist()
        for edge, (head, relation, tail) in zip(graph.facts, facts, strict=True):
            subject, object_ = (_iri("entity", graph.keys[end]) for end in (head, tail))
            by = _by(graph, edge)
            comment = f" # {by}" if by else ""
            yield f"{subject} {_iri('relation', graph.arrays.relation_keys[relation])} {object_} .{comment}"

    _write(path, lines)


def _write(path: Path, lines: Callable[[], Iterator[str]]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines())


def _edge(
    graph: KGIndex, edge: int, kind: str, weight: float, passages: list[str]
) -> str:
    ends: list[int] = graph.edges[edge].tolist()
    head, relation, tail = ends
    name, sources = graph.relations[relation], json.dumps(passages, ensure_ascii=False)
    by = {"by": made} if (made := _by(graph, edge)) else {}
    data = _data("edge", label=name, kind=kind, weight=weight, sources=sources, **by)
    return f'    <edge id="e{edge}" source="n{head}" target="n{tail}">{data}</edge>'


def _by(graph: KGIndex, edge: int) -> str:
    """Return the person who made a fact, on one line; "" for one that was read, and for an equivalence."""
    edit = (
        graph.made_by(graph.triple(edge))
        if graph.edits and edge in graph.facts
        else None
    )
    return " ".join(edit.by.split()) if edit else ""


def _data(target: str, **values: str | int | float) -> str:
    return "".join(
        f'<data key="{target}-{name}">{escape(NOT_XML.sub(chr(0xFFFD), str(value)))}</data>'
        for name, value in values.items()
    )


def _iri(kind: str, key: str) -> str:
    return f"<{_BASE}{kind}:{quote(key.encode('utf-8', 'replace'), safe='')}>"


def _literal(text: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(plain, escaped)
    return f'"{text}"'
