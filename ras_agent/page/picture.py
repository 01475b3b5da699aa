"""The geometry of a trace's graph: every box, line break and place, so that the page only has to draw."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping

from ras_agent.page.layout import placed
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.merge import first_hop
from ras_agent.records import JSON
from ras_agent.text.canonical import canonical_key
from ras_agent.trace import Trace

__all__ = ["picture"]

# With more facts than _CROWD only what matters is labelled: the answer, the question's entities, what is cited, and the
# best connected, up to _LABELS.
_CROWD = 70
_LABELS = 48
# More than this are not drawn at all, only the most supported: the layout takes seconds there.
_MOST = 600
_LINE = 24  # characters of a node's line; there are at most two
_LINE_HEIGHT = 17.0
_DOT = 12.0


def picture(trace: Trace) -> JSON:
    """Return nodes and edges with their places, in units of a pixel at scale 1, for the page's script.

    Nodes and edges name entities by index and facts by id. `shown` at a node or edge: whether its label is drawn
    at every scale. An edge bends through its (x, y). `left_out`: how many facts are not drawn.
    """
    cited: dict[str, list[int]] = {}
    for citation in trace.citations:
        for name in citation.triple_ids:
            cited.setdefault(name, []).append(citation.number)
    whole = trace.graph
    graph = whole.bounded(_MOST, trace.question, cited) if len(whole) > _MOST else whole
    disputed = {fact.id for group in graph.conflicts for fact in group}
    crowded = len(graph) > _CROWD
    index = {key: number for number, key in enumerate(graph.entities)}

    roles = {key: _role(key, trace) for key in index}
    labelled = set(index) if not crowded else _labelled(graph, roles, cited)
    nodes: list[JSON] = []
    for key, entity in graph.entities.items():
        lines, shown = _wrapped(entity.label), key in labelled
        width, height = (max(map(_width, lines)) + 26, len(lines) * _LINE_HEIGHT + 13) if shown else (_DOT, _DOT)
        hop = min(map(first_hop, graph.touching(key)))
        nodes.append(
            {"key": key, "label": entity.label, "forms": list(entity.forms), "lines": lines, "role": roles[key]}
            | {"hop": hop, "shown": shown, "w": round(width, 1), "h": round(height, 1)}
        )
    edges: list[JSON] = []
    for name, fact in graph.by_id.items():
        text = _cut(fact.predicate, 34)
        edges.append(
            {"id": name, "from": index[canonical_key(fact.subject)], "to": index[canonical_key(fact.object)]}
            | {"text": text, "hop": first_hop(fact), "conflict": name in disputed, "cited": cited.get(name, [])}
            | {"shown": not crowded or name in cited}
        )
    _place(nodes, edges)
    hops = max([0, *(step.hop for step in trace.steps), *(edge["hop"] for edge in edges)])
    left_out = len(whole) - len(graph)
    return {"nodes": nodes, "edges": edges, "hops": hops, "crowded": crowded, "left_out": left_out}


def _place(nodes: list[JSON], edges: list[JSON]) -> None:
    """Give nodes and edges their x and y. Each label is a box of its own, linked to both ends of its edge."""
    sizes = [(node["w"], node["h"]) for node in nodes]
    links = []
    for edge in edges:
        if edge["shown"]:
            links += [(edge["from"], len(sizes)), (len(sizes), edge["to"])]
            sizes.append((_width(edge["text"]) * 0.88 + 22 * len(edge["cited"]), _LINE_HEIGHT))
        elif edge["from"] != edge["to"]:
            links.append((edge["from"], edge["to"]))
    places = placed(sizes, links).round(1).tolist()
    for node, (x, y) in zip(nodes, places, strict=False):
        node["x"], node["y"] = x, y
    labels = iter(places[len(nodes) :])
    between: dict[tuple[int, int], int] = {}
    for edge in edges:
        if edge["shown"]:
            edge["x"], edge["y"] = next(labels)
            continue
        one, other = nodes[edge["from"]], nodes[edge["to"]]
        # facts between the same two entities fan out
        pair = min(edge["from"], edge["to"]), max(edge["from"], edge["to"])
        fan = between[pair] = between.get(pair, -1) + 1
        edge["x"] = round((one["x"] + other["x"]) / 2 + 9 * fan, 1)
        edge["y"] = round((one["y"] + other["y"]) / 2 - (14 * fan if edge["from"] != edge["to"] else 34), 1)


def _labelled(graph: QuestionGraph, roles: Mapping[str, str], cited: Collection[str]) -> set[str]:
    """Which entities of a crowd are labelled: those that matter, then those that join the most others."""
    matter = {key for key, role in roles.items() if role}
    for name in cited:
        if name in graph.by_id:
            matter |= {canonical_key(graph.by_id[name].subject), canonical_key(graph.by_id[name].object)}
    degree = {key: len(graph.touching(key)) for key in roles}
    for least in sorted({*degree.values()} - {1}):
        joining = {key for key, facts in degree.items() if facts >= least}
        if len(joining | matter) <= _LABELS:
            return joining | matter
    return matter


def _role(key: str, trace: Trace) -> str:
    """Whether an entity is the answer, or named in the question."""
    if key == canonical_key(trace.answer):
        return "answer"
    return "asked" if f" {key} " in f" {canonical_key(trace.question)} " else ""


def _wrapped(label: str) -> list[str]:
    """At most two lines."""
    lines = [""]
    for word in label.split():
        if lines[-1] and len(lines[-1]) + len(word) >= _LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    if len(lines) > 2:
        lines = [lines[0], " ".join(lines[1:])]
    return [_cut(line, _LINE + 4) for line in lines]


def _cut(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _width(text: str) -> float:
    """Pixels in a sans-serif face of 13 px, roughly."""
    return sum(_advances(text))


def _advances(text: str) -> Iterable[float]:
    for char in text:
        if unicodedata.combining(char):
            yield 0.0
        elif unicodedata.east_asian_width(char) in "WF":
            yield 13.0
        elif char in "iljtfrI.,:;'’|!()[] ":
            yield 4.6
        elif char in "mwMW@%…":
            yield 11.2
        else:
            yield 8.8 if char.isupper() else 7.3
