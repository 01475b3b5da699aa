"""Checks the nodes and edges that an answer cites against the graph: G-Retriever's hallucination check
(appendix F).

A model can be asked to list nodes and edges as evidence for its answer. The answer is scored without this list.
The list is scored by whether the graph contains its nodes and edges.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Any, Literal, NamedTuple

from ras_agent.contracts.marks import NUMBER, OBJECT, PREDICATE, SUBJECT, Mark
from ras_agent.eval.metrics.registry import Outcome, metric
from ras_agent.eval.question import Question
from ras_agent.text.canonical import canonical_key
from ras_agent.text.lines import lines_of

Edge = tuple[str, str, str]
"""The texts of head, relation and tail."""
_Section = Literal["", "nodes", "edges", "both", "csv nodes", "csv edges"]

# the longest line that is read for arrows: the patterns below may take time quadratic in its length
_LONGEST = 500
_NODE_WORD = r"(?:nodes?|entity|entities|vertex|vertices)"
_EDGE_WORD = r"(?:edges?|triples?|triplets?|relations|relationships?)"
_HEADING = re.compile(
    rf"[\W_]*+(?:[a-z]+ ){{0,8}}?(?:(?P<both>{_NODE_WORD} (?:and|&) {_EDGE_WORD})|(?P<nodes>{_NODE_WORD})"
    rf"|(?P<edges>{_EDGE_WORD}))(?: [a-z]+){{0,8}}(?: ?\(\d+\))?[*_ ]*+(?::(?P<inline>.*))?",
    re.IGNORECASE,
)
# the maximum number of words of a heading such as "The nodes that support this answer are:", and of one without a colon
_MOST_HEADING_WORDS = 10
_MOST_WORDS_WITHOUT_COLON = 7
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")
_CSV: Mapping[str, _Section] = {
    "node_id,node_attr": "csv nodes",
    "src,edge_attr,dst": "csv edges",
}
_ITEM = re.compile(r"\s*+(?:[-*•–]|\d{1,3}[.)])\s++(?P<item>\S.*)")
# only marked numbers, since a bare number before a name may belong to it
_NUMBERED = re.compile(
    r"(?:node\s*+[\[(#]?\d++[\])]?|\[\d++\]|#\d++)[:,.|\s]\s*+(?=\S)", re.IGNORECASE
)
_ROW = re.compile(r"(?:node *)?[\[(#]?(?P<number>\d{1,4})[\])]?", re.IGNORECASE)
_NUMBER_BEHIND = re.compile(r"\((?:node|id|node_id)\W?+\s*+\d+\)$", re.IGNORECASE)
_EXPLANATION = re.compile(r"\s[—–]\s.*")
# (?<!\s): run over white space only once
_CITATION_NUMBER = re.compile(rf"(?<!\s)\s*+{NUMBER.live}")
_WRAPPING = " \t*_`\"'“”,;"
# from one parenthesis to the next, so a text is read once; white space and marks of the fields are stripped later
_EDGE = re.compile(r"\(([^()|;]*+)([|;])([^()|;]*+)\2([^()|;]*+)\)")
_COMMA_EDGE = re.compile(r"\(([^(),|;]*+),([^(),|;]*+),([^(),|;]*+)\)")
_ARROW = re.compile(r"-+>|=+>|[→⟶➔➜]")
# head and relation before an arrow: "mill --river", "(mill)-[:river]", "mill - river", "mill —river"
_TO_RELATION = re.compile(
    r"(?P<head>.+?)(?:\s*-{1,2}[\[(]:?|--|\s-\s|[—–])(?P<relation>.+?)[\])]?[\s—–-]*"
)
_NO_ITEM = frozenset(("", "none"))
_KEYS = {
    "nodes": ("nodes", "entities", "cited_nodes"),
    "edges": ("edges", "triples", "relations", "cited_edges"),
}
_NODE_TEXT = ("name", "label", "text", "node", "node_attr", "entity", "id")
_HEAD = ("head", "source", "src", "subject", "from")
_RELATION = ("relation", "predicate", "edge", "edge_attr", "label", "type")
_TAIL = ("tail", "target", "dst", "object", "to")
_COLUMNS = frozenset((*_NODE_TEXT, *_HEAD, *_RELATION, *_TAIL, "node_id", "#"))


class CitedGraph(NamedTuple):
    """Holds the nodes and edges that an answer cites. An edge is its (head, relation, tail) texts."""

    nodes: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphValidity:
    """Counts the nodes and edges that an answer cites, and how many of them exist in the graph."""

    nodes: int
    valid_nodes: int
    edges: int
    valid_edges: int

    @property
    def cites(self) -> bool:
        """Tell whether any node or edge is cited."""
        return bool(self.nodes or self.edges)

    @property
    def fully_valid(self) -> bool:
        """Tell whether something is cited and all of it exists in the graph."""
        all_nodes = self.nodes == self.valid_nodes
        all_edges = self.edges == self.valid_edges
        return self.cites and all_nodes and all_edges


def read_cited_graph(reply: str) -> CitedGraph:
    """Return the nodes and edges that a reply cites, each once.

    Anywhere in the reply, edges are read in parentheses, (head; relation; tail), (S> head | P> relation | O>
    tail) or (head, relation, tail), and with arrows, head --relation--> tail or head -> relation -> tail.

    After a heading such as "Nodes:", "Entities used:" or "Edges:", on its line and below, each item is a node
    or an edge: after a bullet or a number, on its own line, between commas, in a table, or in JSON.
    G-Retriever's two CSV blocks and a JSON object with `nodes` and `edges` are read, too.

    Every listed item counts. An edge that cannot be parsed gets the whole text as its head, and an empty
    relation and tail. An edge's ends count as nodes only if they are listed as nodes.
    """
    return _read(reply)[1]


def answer_apart(reply: str) -> str:
    r"""Return the answer in a reply, without lists of cited nodes and edges and without citation numbers such as
    [1].

    The answer is the text before the list, or else the text after it. A reply that is only a list is returned
    as the answer.

    >>> answer_apart("yellow [1]\n\nNodes:\n- banana")
    'yellow'
    """
    answer = _read(reply)[0] or reply
    return _CITATION_NUMBER.sub("", answer).strip()


def apart(outcome: Outcome) -> Outcome:
    """Return the outcome with the answer's whole text moved to `reply`, and `answer` reduced to the answer (see
    `answer_apart`).
    """
    answer = answer_apart(outcome.answer)
    return replace(outcome, answer=answer, reply=outcome.answer)


def graph_validity(
    cited: CitedGraph, nodes: Iterable[str], edges: Iterable[Sequence[str]]
) -> GraphValidity:
    """Count which of the cited nodes and edges the graph has.

    Texts are compared by canonical key; an edge's direction matters. A node is cited by its whole text; a node
    "name: banana; attribute: ..." of a scene graph also by its name, or its name with its attributes. A number
    before a cited node ("Node 3: mill") and an explanation after a long dash are ignored.
    """
    names: set[str] = set()
    for node in nodes:
        names.update(_names(node))
    graph_edges = set()
    for source, relation, target in edges:
        for head in _names(source):
            for tail in _names(target):
                graph_edges.add((head, canonical_key(relation), tail))
    valid_nodes = 0
    for node in cited.nodes:
        valid_nodes += not names.isdisjoint(_readings(node))
    valid_edges = 0
    for head, relation, tail in cited.edges:
        key = [canonical_key(relation)]
        readings = product(_readings(head), key, _readings(tail))
        valid_edges += not graph_edges.isdisjoint(readings)
    return GraphValidity(len(cited.nodes), valid_nodes, len(cited.edges), valid_edges)


def named_rows(cited: CitedGraph, shown: Sequence[str]) -> CitedGraph:
    """Replace row numbers in the cited graph by the nodes of these rows.

    `shown` has the texts of the nodes in the order in which the prompt numbered them.

    >>> named_rows(CitedGraph(("0", "Node 1"), (("0", "on", "1"),)), ("cup", "table"))
    CitedGraph(nodes=('cup', 'table'), edges=(('cup', 'on', 'table'),))
    """
    nodes = []
    for node in cited.nodes:
        nodes.append(_name_of_row(node, shown))
    edges = []
    for head, relation, tail in cited.edges:
        start = _name_of_row(head, shown)
        end = _name_of_row(tail, shown)
        edges.append((start, relation, end))
    return CitedGraph(tuple(nodes), tuple(edges))


def _name_of_row(text: str, shown: Sequence[str]) -> str:
    row = _ROW.fullmatch(text)
    if row is None or text in shown:
        return text
    number = int(row["number"])
    if number < len(shown):
        return shown[number]
    return text


def name_in_edges(node: str) -> str:
    """Return the name by which an edge cites a node: its text, but only the `name` of a scene graph's object.

    >>> name_in_edges("name: banana; attribute: yellow; (x,y,w,h): (1, 2, 3, 4)"), name_in_edges("mill")
    ('banana', 'mill')
    """
    if not node.startswith("name:"):
        return node
    first, _, _ = node.partition(";")
    return first.removeprefix("name:").strip()


@metric("valid_nodes")
def _valid_nodes(question: Question, outcome: Outcome) -> float | None:
    validity = _validity(question, outcome)
    if validity and validity.nodes:
        return validity.valid_nodes / validity.nodes
    return None


@metric("valid_edges")
def _valid_edges(question: Question, outcome: Outcome) -> float | None:
    validity = _validity(question, outcome)
    if validity and validity.edges:
        return validity.valid_edges / validity.edges
    return None


@metric("fully_valid")
def _fully_valid(question: Question, outcome: Outcome) -> float | None:
    validity = _validity(question, outcome)
    if validity and validity.cites:
        return float(validity.fully_valid)
    return None


def _validity(question: Question, outcome: Outcome) -> GraphValidity | None:
    """Count the citations of the reply that exist in the question's graph, or else in the graph that the agent built.

    Returns None if there is no graph.
    """
    if question.metadata.get("graph"):
        nodes = list(question.graph.nodes)
        edges = list(question.graph.triples())
    else:
        nodes = []
        edges = outcome.triples()
        for head, _, tail in edges:
            nodes += [head, tail]
        if not edges:
            return None
    reply = outcome.reply or outcome.answer
    listed = read_cited_graph(reply)
    cited = named_rows(listed, outcome.shown_nodes)
    return graph_validity(cited, nodes, edges)


def _read(reply: str) -> tuple[str, CitedGraph]:
    """Return the answer of a reply ("" if it has none) and the graph that the reply lists."""
    item = _json_object(reply)
    if item:
        return _read_object(item)
    reader = _Reader()
    before: list[str] = []
    after: list[str] = []
    has_list = False
    for line in _lines_and_headings(reply):
        if reader.reads(line):
            has_list = True
        elif has_list:
            after.append(line)
        else:
            text = _EDGE.sub("", line)
            before.append(text.rstrip())
    while has_list and before and (not before[-1] or before[-1].endswith(":")):
        before.pop()  # a line that introduces the list
    answer = "\n".join(before).strip() or "\n".join(after).strip()
    return answer, reader.graph()


def _lines_and_headings(reply: str) -> Iterator[str]:
    """Yield the lines of a reply. A heading that follows a sentence on the same line is yielded as its own
    line.
    """
    for line in lines_of(reply):
        begun = 0
        for end in _SENTENCE_END.finditer(line[:_LONGEST]):
            rest = line[end.end() :]
            heading = _heading_of(rest)
            if heading and heading["inline"]:
                yield line[begun : end.start()]
                begun = end.end()
        yield line[begun:]


def _heading_of(text: str) -> re.Match[str] | None:
    """Return the match of a line that announces nodes or edges; None for any other line."""
    heading = _HEADING.fullmatch(text[:_LONGEST])
    if heading is None:
        return None
    words = text.partition(":")[0].split()
    most = _MOST_HEADING_WORDS
    if heading["inline"] is None:
        most = _MOST_WORDS_WITHOUT_COLON
    if len(words) > most:
        return None
    return heading


def _read_object(item: Mapping[str, Any]) -> tuple[str, CitedGraph]:
    reader = _Reader()
    for section, keys in _KEYS.items():
        for key in keys:
            value = item.get(key) or []
            for part in _as_list(value):
                reader.add_value(part, is_edge=section == "edges")
    answer = item.get("answer")
    if answer is None:
        answer = item.get("final_answer")
    texts = map(str, _as_list(answer))
    return "\n".join(texts).strip(), reader.graph()


def _as_list(value: Any) -> list[Any]:
    """Return a list unchanged, an empty list for None, and any other value in a list."""
    if isinstance(value, list):
        return value
    if value is None:
        return []
    return [value]


def _text_of(item: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the text of the first of the keys that the item has; "" if it has no such key."""
    for key in keys:
        if key in item:
            return str(item[key])
    return ""


@dataclass(slots=True)
class _Reader:
    """Reads the lines of a reply, and keeps track of the heading that they stand under."""

    nodes: list[str] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)
    """The nodes of a CSV block by their numbers."""
    section: _Section = ""
    bulleted: bool | None = None
    """Whether the items of the current list have bullets; None before its first item."""

    def graph(self) -> CitedGraph:
        """Return the nodes and edges that were read, each once."""
        nodes: dict[str, str] = {}
        for node in self.nodes:
            key = canonical_key(node)
            if key not in _NO_ITEM:
                nodes.setdefault(key, node)
        edges: dict[Edge, None] = {}
        for head, relation, tail in self.edges:
            start = self.numbers.get(head, head)
            end = self.numbers.get(tail, tail)
            if canonical_key(start) not in _NO_ITEM:
                edges[start, relation, end] = None
        return CitedGraph(tuple(nodes.values()), tuple(edges))

    def reads(self, line: str) -> bool:
        """Read a line. Return whether it belongs to a list; if not, it is part of the answer."""
        text = line.strip()
        if text.startswith("```"):
            return True
        if not _has_word(text):
            if not text and self.bulleted is False:
                self._enter("")
            return bool(self.section)
        section = _CSV.get(text.lower().replace(" ", ""))
        if section:
            self._enter(section)
            return True
        if self._reads_heading(text):
            return True
        if self.section.startswith("csv") and self._reads_row(text):
            return True
        item = _ITEM.fullmatch(line)
        content = text
        if item:
            content = item["item"]
        if self.section and (item or self.bulleted is not True or text[0] in "|[\"'"):
            self.bulleted = self.bulleted or bool(item)
            self._read_item(content)
            return True
        self._enter("")
        edges = _edges_in(content)
        self.edges += edges
        rest = _without_arrows(text)
        rest = _EDGE.sub("", rest)
        rest = _COMMA_EDGE.sub("", rest)
        return bool(edges) and not _has_word(rest)

    def _reads_heading(self, text: str) -> bool:
        """Read a heading and the items after its colon. Return whether the line is a heading."""
        heading = _heading_of(text)
        if heading is None:
            return False
        inline = heading["inline"]
        if inline is None and text[0] not in "#*_" and not self.section:
            return False
        if heading["both"]:
            self._enter("both")
        elif heading["nodes"]:
            self._enter("nodes")
        else:
            self._enter("edges")
        if inline and _has_word(inline):
            self._read_inline(text.partition(":")[2])
            self._enter("")
        return True

    def add_value(self, value: object, *, is_edge: bool) -> None:
        """Add the node or edge of a JSON value: a text, an object or a list."""
        if isinstance(value, Mapping):
            named = {str(key).lower(): part for key, part in value.items()}
            head = _text_of(named, _HEAD)
            relation = _text_of(named, _RELATION)
            tail = _text_of(named, _TAIL)
            if is_edge or (head and tail):
                self.edges.append((head, relation, tail))
            else:
                self.nodes.append(_text_of(named, _NODE_TEXT))
        elif isinstance(value, list) and len(value) == 3:
            head, relation, tail = map(str, value)
            self.edges.append((head, relation, tail))
        elif isinstance(value, list):
            for part in value:
                self.add_value(part, is_edge=is_edge)
        elif is_edge:
            text = str(value)
            self.edges += _edges_of_item(text) or [(text, "", "")]
        else:
            self.nodes.append(str(value))

    def _enter(self, section: _Section) -> None:
        self.section = section
        self.bulleted = None

    def _read_inline(self, text: str) -> None:
        """Read the items after a heading's colon."""
        values = _json_list(text)
        if values is not None:
            for value in values:
                self.add_value(value, is_edge=self.section == "edges")
            return
        if self.section == "nodes":
            separator = "[,;]"
            if "name:" in text:
                separator = r"(?=\bname:)"
            for part in re.split(separator, text):
                self.nodes.append(part.strip(_WRAPPING))
            return
        edges = _edges_in(text)
        if edges:
            self.edges += edges
        else:
            self._read_item(text.strip())

    def _read_item(self, text: str) -> None:
        """Read an item of a list: a row of a table, JSON, an edge, or the text of a node."""
        if text.startswith("|"):
            self._read_table_row(text)
            return
        values = _json_list(text.rstrip(","))
        if values is not None:
            self.add_value(values, is_edge=self.section == "edges")
            return
        bare = text.strip(_WRAPPING)
        if self.section == "edges":
            self.edges += _edges_of_item(text) or [(bare, "", "")]
            return
        edges = _whole_edges(bare)
        self.edges += edges
        if not edges:
            self.nodes.append(bare)

    def _read_table_row(self, text: str) -> None:
        cells = []
        for cell in text.strip("| ").split("|"):
            cells.append(cell.strip(_WRAPPING))
        if all(cell.lower() in _COLUMNS for cell in cells):
            return
        if len(cells) in (2, 4) and cells[0].isdigit():
            cells = cells[1:]
        if len(cells) == 3 and self.section != "nodes":
            head, relation, tail = cells
            self.edges.append((head, relation, tail))
        else:
            self.nodes.append(cells[0])

    def _reads_row(self, text: str) -> bool:
        """Read a row of a CSV block. Return whether the line is such a row."""
        cells = _cells(text)
        if self.section == "csv nodes" and len(cells) >= 2 and cells[0].isdigit():
            name = ",".join(cells[1:])
            self.numbers[cells[0]] = name
            self.nodes.append(name)
            return True
        if self.section == "csv edges" and len(cells) == 3:
            head, relation, tail = cells
            self.edges.append((head, relation, tail))
            return True
        return False


def _edges_in(text: str) -> list[Edge]:
    """Return the edges in a text that are written in parentheses or with arrows."""
    edges = []
    for head, _, relation, tail in _EDGE.findall(text):
        edges.append(_marked_edge(head, relation, tail))
    for parts in _COMMA_EDGE.findall(text):
        head, relation, tail = map(str.strip, parts)
        if not _is_box(head):
            edges.append((head, relation, tail))
    return list(filter(all, edges)) or _arrow_edges(text)


def _marked_edge(head: str, relation: str, tail: str) -> Edge:
    """Return the edge of three texts, each without the mark in front of it."""
    return _bare(head, SUBJECT), _bare(relation, PREDICATE), _bare(tail, OBJECT)


def _edges_of_item(text: str) -> list[Edge]:
    """Return the edges of an item in a list of edges: as in any text, or three texts separated by |, ;, tabs or
    commas.
    """
    edges = _edges_in(text)
    if edges:
        return edges
    for separator in ("|", ";", "\t"):
        parts = text.split(separator)
        if len(parts) == 3:
            return [_marked_edge(*parts)]
    cells = _cells(text)
    if len(cells) == 3 and all(cells):
        head, relation, tail = cells
        return [(head, relation, tail)]
    return []


def _cells(text: str) -> list[str]:
    """Return the fields of a CSV line; [] for a line longer than `_LONGEST`."""
    if len(text) > _LONGEST:
        return []
    cells = []
    for cell in next(csv.reader([text], skipinitialspace=True), []):
        cells.append(cell.strip())
    return cells


def _whole_edges(bare: str) -> list[Edge]:
    """Return the edge if an item in a list of nodes is nothing but an edge; [] for a node with parentheses in
    its text.
    """
    is_edge = _EDGE.fullmatch(bare) or _COMMA_EDGE.fullmatch(bare)
    if is_edge or _ARROW.search(bare):
        return _edges_in(bare)
    return []


def _arrow_edges(text: str) -> list[Edge]:
    """Return the edges on a line of nodes and arrows; [] if the line has no arrows, or has other text."""
    parts = []
    for part in _ARROW.split(text[: _LONGEST + 1]):
        parts.append(part.strip(_WRAPPING))
    if len(text) > _LONGEST or len(parts) < 2 or not all(parts):
        return []
    steps = list(filter(None, map(_TO_RELATION.fullmatch, parts[:-1])))
    nodes: list[str] = []
    relations: list[str] = []
    if len(steps) == len(parts) - 1:
        for step in steps:
            nodes.append(step["head"])
            relations.append(step["relation"])
        nodes.append(parts[-1])
    elif len(parts) % 2:
        nodes = parts[::2]
        relations = parts[1::2]
    ends = list(map(_node_of_arrow, nodes))
    edges = []
    for head, relation, tail in zip(ends, relations, ends[1:], strict=False):
        edges.append((head, relation.strip(" []():"), tail))
    return edges


def _node_of_arrow(text: str) -> str:
    """Return the text of the node at an arrow, without parentheses around it."""
    bare = text.strip(_WRAPPING)
    inner = bare[1:-1]
    if bare.startswith("(") and bare.endswith(")") and "(" not in inner:
        return inner.strip(_WRAPPING)
    return bare


def _without_arrows(text: str) -> str:
    if _arrow_edges(text) and not _EDGE.search(text):
        return ""
    return text


def _json_object(reply: str) -> dict[str, Any] | None:
    """Return the reply's JSON object that lists nodes or edges, with its keys in lower case; None without one."""
    try:
        value, _ = json.JSONDecoder().raw_decode(reply, max(0, reply.find("{")))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    item = {str(key).lower(): part for key, part in value.items()}
    if item.keys().isdisjoint(chain.from_iterable(_KEYS.values())):
        return None
    return item


def _json_list(text: str) -> list[Any] | None:
    """Return the list in a JSON text; None for any other text."""
    if not text.lstrip().startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        return value
    return None


def _names(node: str) -> Iterator[str]:
    """Yield the canonical keys under which a graph's node may be cited."""
    yield canonical_key(node)
    if node.startswith("name:"):
        name = name_in_edges(node)
        yield canonical_key(name)
        parts = node.split("; ")
        for count in range(1, len(parts)):
            beginning = "; ".join(parts[:count])
            yield canonical_key(beginning)


def _readings(node: str) -> Iterator[str]:
    """Yield the canonical keys that a cited text may stand for: of the whole text, and without a number or an
    explanation.
    """
    yield canonical_key(node)
    for bare in (
        _NUMBERED.sub("", node, count=1),
        _NUMBER_BEHIND.sub("", node),
        _EXPLANATION.sub("", node),
    ):
        key = canonical_key(bare)
        if key and bare != node:
            yield key


def _bare(text: str, mark: Mark) -> str:
    """Return a part of an edge without the mark in front of it."""
    plain = text.strip(_WRAPPING)
    return plain.removeprefix(str(mark)).strip()


def _has_word(text: str) -> bool:
    """Tell whether a text has a letter or a digit."""
    return any(map(str.isalnum, text))


def _is_box(head: str) -> bool:
    """Tell whether a triple separated by commas is the box (x,y,w) of a scene graph's object, and no edge."""
    return head == "x" or head.lstrip("-").isdigit()
