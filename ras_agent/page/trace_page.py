"""Makes the page of a run: question, answer, evidence, and the question graph as it grows hop by hop.

This module decides which boxes are drawn, with their sizes and lines; the page's script places them.
"""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from ras_agent.contracts.marks import ACTIONS
from ras_agent.contracts.records import JSON, Citation
from ras_agent.page.joins import joins_of
from ras_agent.page.self_contained import (
    filled,
    json_for_html,
    page_file,
    page_script,
    policy,
)
from ras_agent.page.sources import source_files
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.merge import first_hop
from ras_agent.question_graph.proof import proof_of
from ras_agent.running.trace import Trace
from ras_agent.text.canonical import canonical_key

# Above _CROWD facts, only the important entities are labelled: the answer, the question's and the cited entities, and
# the best connected ones, up to _LABELS.
_CROWD = 70
_LABELS = 48
# Above _MOST facts, only the best supported facts are drawn, because a larger picture shows a reader no more.
_MOST = 600
_LINE = 24  # characters per line of a node; there are at most two lines
_LINE_HEIGHT = 17.0
_DOT = 12.0


def trace_html(trace: Trace, folder: Path | None = None) -> str:
    """Return the HTML page of a run: one file in ASCII that loads nothing.

    `folder` is where the page will be stored. The evidence then links to its source files, if they are in that folder
    or in the working folder.
    """
    title = " ".join(trace.question.split())[:120]
    return trace_frame(
        title,
        trace_data(
            trace, {} if folder is None else source_files(trace.passages, folder)
        ),
    )


def trace_data(trace: Trace, files: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the data of the page as JSON that may be put into HTML.

    It is {"trace", "picture", "marks": {action: mark}, "files": {document id: link}}; see `picture` and `source_files`.
    """
    marks = {action: str(mark) for action, mark in ACTIONS.items()}
    graph_data = picture(trace.graph, trace.question, trace.answer, trace.citations)
    graph_data["hops"] = max([graph_data["hops"], *(step.hop for step in trace.steps)])
    data = {
        "trace": json.loads(trace.to_json()),
        "picture": graph_data,
        "marks": marks,
        "files": dict(files),
    }
    return json_for_html(data)


def trace_frame(title: str, data: str = "@@DATA@@") -> str:
    """Return the HTML page around `data`, the result of `trace_data`.

    By default it holds the text @@DATA@@, which the caller replaces later.
    """
    style = page_file("trace.css")
    script = trace_script()
    slots = {"POLICY": policy([script], [style]), "STYLE": style, "SCRIPT": script}
    return filled(
        page_file("trace.html"), {**slots, "TITLE": html.escape(title), "DATA": data}
    )


def trace_script() -> str:
    """Return the JavaScript of the page."""
    return page_script("elements", "layout", "drawing", "story", "trace")


def picture(
    graph: QuestionGraph,
    question: str,
    answer: str,
    citations: Iterable[Citation],
    *,
    most: int = _MOST,
) -> JSON:
    """Return the drawing of a question graph for the page's script: nodes and edges, with the sizes of labels
    in pixels.

    At most `most` facts of a larger graph are drawn. Entities are named by index, facts by id. Further keys
    are: "shown", whether a label is drawn at every scale; "left_out", the number of facts that are not drawn;
    "joins", pairs of cited entities that are one thing under two names; "chain", the cited sentences that lead
    from the question to the answer (see `proof_of`).
    """
    citations = tuple(citations)
    cited: dict[str, list[int]] = {}
    for citation in citations:
        for name in citation.triple_ids:
            cited.setdefault(name, []).append(citation.number)
    full = graph
    graph = full.bounded(most, question, cited) if len(full) > most else full

    crowded = len(graph) > _CROWD
    index = {key: number for number, key in enumerate(graph.entities)}

    roles = {key: _role(key, question, answer) for key in index}
    labelled = set(index) if not crowded else _choose_labels(graph, roles, cited)
    nodes: list[JSON] = []
    for key, entity in graph.entities.items():
        lines = _label_lines(entity.label)
        is_labelled = key in labelled
        width, height = (
            (max(map(_width, lines)) + 26, len(lines) * _LINE_HEIGHT + 13)
            if is_labelled
            else (_DOT, _DOT)
        )
        hop = min(map(first_hop, graph.touching(key)))
        nodes.append(
            {
                "key": key,
                "label": entity.label,
                "forms": list(entity.forms),
                "lines": lines,
                "role": roles[key],
            }
            | {
                "hop": hop,
                "shown": is_labelled,
                "w": round(width, 1),
                "h": round(height, 1),
            }
        )
    edges: list[JSON] = []
    for name, fact in graph.by_id.items():
        text = _shorten(fact.predicate, 34)
        edges.append(
            {
                "id": name,
                "from": index[canonical_key(fact.subject)],
                "to": index[canonical_key(fact.object)],
            }
            | {
                "text": text,
                "hop": first_hop(fact),
                "conflict": name in graph.disputed,
                "cited": cited.get(name, []),
            }
            | {"shown": not crowded or name in cited, "h": _LINE_HEIGHT}
            | {
                "w": round(
                    _width(text) * (1.0 if name in cited else 0.88)
                    + 24 * len(cited.get(name, ())),
                    1,
                )
            }
        )
    linked = [
        end for edge in edges if edge["cited"] for end in (edge["from"], edge["to"])
    ]
    linked += [number for number, node in enumerate(nodes) if node["role"] == "answer"]
    joins = joins_of({number: nodes[number]["label"] for number in linked})
    left_out = len(full) - len(graph)
    return {
        "nodes": nodes,
        "edges": edges,
        "joins": joins,
        "chain": [
            {"start": step.start, "end": step.end, "cited": step.citation}
            | {"facts": [name for name in step.facts if name in graph.by_id]}
            | {
                "nodes": [
                    index[key]
                    for key in map(canonical_key, (step.start, step.end))
                    if key in index
                ]
            }
            for step in proof_of(question, answer, citations, full.by_id)
        ],
        "hops": max([0, *(edge["hop"] for edge in edges)]),
        "crowded": crowded,
        "left_out": left_out,
    }


def _choose_labels(
    graph: QuestionGraph, roles: Mapping[str, str], cited: Collection[str]
) -> set[str]:
    """Return the keys of the entities that get labels: those with a role or a citation, then the best connected."""
    matter = {key for key, role in roles.items() if role}
    for name in cited:
        if name in graph.by_id:
            matter |= {
                canonical_key(graph.by_id[name].subject),
                canonical_key(graph.by_id[name].object),
            }
    degree = {key: len(graph.touching(key)) for key in roles}
    for least in sorted({*degree.values()} - {1}):
        joining = {key for key, facts in degree.items() if facts >= least}
        if len(joining | matter) <= _LABELS:
            return joining | matter
    return matter


def _role(key: str, question: str, answer: str) -> str:
    """Return "answer" if the entity is the answer, "asked" if the question names it, else ""."""
    if key == canonical_key(answer):
        return "answer"
    return "asked" if f" {key} " in f" {canonical_key(question)} " else ""


def _label_lines(label: str) -> list[str]:
    """Break a label into at most two lines."""
    lines = [""]
    for word in label.split():
        if lines[-1] and len(lines[-1]) + len(word) >= _LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    if len(lines) > 2:
        lines = [lines[0], " ".join(lines[1:])]
    return [_shorten(line, _LINE + 4) for line in lines]


def _shorten(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _width(text: str) -> float:
    """Return the approximate width in pixels of a text in a sans-serif face of 13 px."""
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
