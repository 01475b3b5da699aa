"""Exports a question graph as GraphML for graph tools, and as Mermaid for Markdown."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

from ras_agent.question_graph.graph import QuestionGraph
from ras_agent.question_graph.merge import first_hop
from ras_agent.text.canonical import canonical_key

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_KEYS = {
    "node": {"label": "string", "key": "string", "forms": "string", "hop": "int"},
    "edge": {
        "label": "string",
        "hop": "int",
        "support": "int",
        "conflict": "boolean",
        "sources": "string",
        "attributes": "string",
    },
}
# characters that XML 1.0 cannot hold, even escaped
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# characters that Mermaid could read as its own syntax or as Markdown; they become entity codes
_NOT_PLAIN = re.compile(r"[^\w \u00a0-\U0010ffff,.'()/:=!?-]|_|^-")
_LONGEST_LABEL = 60
_TINTS = ("#dbeafe", "#dcfce7", "#fef3c7", "#fce7f3", "#ede9fe", "#e2e8f0")


def to_graphml(graph: QuestionGraph) -> str:
    """Return the graph as GraphML: entities as nodes, facts as directed edges with their ids.

    The attributes `forms`, `sources` and `attributes` of nodes and edges hold JSON. Characters that XML cannot hold
    become U+FFFD.
    """
    root = ET.Element("graphml", {"xmlns": _NAMESPACE})
    for target, types in _KEYS.items():
        for name, kind in types.items():
            ET.SubElement(
                root,
                "key",
                {
                    "id": f"{target}-{name}",
                    "for": target,
                    "attr.name": name,
                    "attr.type": kind,
                },
            )
    body = ET.SubElement(root, "graph", {"id": "question", "edgedefault": "directed"})
    nodes = {}
    for number, (key, entity) in enumerate(graph.entities.items()):
        nodes[key] = f"n{number}"
        node = ET.SubElement(body, "node", {"id": nodes[key]})
        hop = min(map(first_hop, graph.touching(key)))
        _data(node, label=entity.label, key=key, forms=_json(entity.forms), hop=hop)
    for name, fact in graph.by_id.items():
        ends = {
            "id": name,
            "source": nodes[canonical_key(fact.subject)],
            "target": nodes[canonical_key(fact.object)],
        }
        edge = ET.SubElement(body, "edge", ends)
        sources = [source.to_dict() for source in fact.sources]
        _data(
            edge,
            label=fact.predicate,
            hop=first_hop(fact),
            support=len(fact.passage_ids),
            conflict=name in graph.disputed,
            sources=_json(sources),
        )
        if fact.attributes:
            _data(edge, attributes=_json(dict(fact.attributes)))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def to_mermaid(graph: QuestionGraph, max_facts: int = 200) -> str:
    """Return the graph as a Mermaid flowchart, left to right. Entities are tinted by the hop that found them;
    conflicts are dashed red.

    Of a larger graph, only the `max_facts` best supported facts are drawn, because GitHub draws at most 500
    edges; a note counts the others.
    """
    visible = graph
    if len(graph) > max_facts:
        visible = graph.bounded(max_facts)
    lines = ["flowchart LR"]
    nodes = {}
    hops = set()
    for number, (key, entity) in enumerate(visible.entities.items()):
        hop = min(map(first_hop, visible.touching(key)))
        nodes[key] = f"n{number}"
        hops.add(hop)
        lines.append(f'  n{number}["{_label(entity.label)}"]:::hop{hop}')
    red = []
    for number, fact in enumerate(visible.facts):
        subject = nodes[canonical_key(fact.subject)]
        object_ = nodes[canonical_key(fact.object)]
        lines.append(f'  {subject} -->|"{_label(fact.predicate)}"| {object_}')
        if fact.id in visible.disputed:
            red.append(str(number))
    if len(visible) < len(graph):
        lines.append(f'  more["... and {len(graph) - len(visible)} more facts"]')
    if red:
        lines.append(f"  linkStyle {','.join(red)} stroke:#dc2626,stroke-dasharray:4")
    for hop in sorted(hops):
        tint = _TINTS[(hop - 1) % len(_TINTS)]
        lines.append(f"  classDef hop{hop} fill:{tint},stroke:#64748b,color:#0f172a")
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    line = " ".join(text.split())
    for char in set(line):
        if not char.isprintable():
            line = line.replace(char, "\ufffd")
    if len(line) > _LONGEST_LABEL:
        line = line[: _LONGEST_LABEL - 1] + "…"
    escaped = _NOT_PLAIN.sub(_entity_code, line)
    return escaped or " "


def _entity_code(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"#{code};"


def _data(element: ET.Element, **values: str | int | float | bool) -> None:
    for name, value in values.items():
        if isinstance(value, bool):
            text = str(value).lower()
        else:
            text = NOT_XML.sub("\ufffd", str(value))
        key = f"{element.tag}-{name}"
        data = ET.SubElement(element, "data", {"key": key})
        data.text = text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
