"""Reads and writes gfm-rag's graph folders, in which entities and documents are both nodes.

    data/NAME/raw/documents.json             {name: text}; in version 1 dataset_corpus.json
    data/NAME/processed/stage1/nodes.csv     name or uid, type, attributes
                               relations.csv name or uid, attributes
                               edges.csv     source, relation, target, attributes
    and in version 1           kg.txt        head,relation,tail a line
                               document2entities.json   {document: [entity, ...]}

Either folder, data/NAME or the one of the tables, can be named.
"""

from __future__ import annotations

import ast
import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ras_agent.contracts import records
from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.documents import Skipped
from ras_agent.tools.kg.assemble import EQUIVALENT
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.notes import place_of, source_at
from ras_agent.tools.kg.other_nodes import (
    DOCUMENT,
    ENTITY,
    Link,
    Node,
    OtherNodes,
)
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge

MENTIONED = "is_mentioned_in"
"""The relation from an entity to a document that mentions it."""
_COLUMNS = {
    "nodes.csv": ("name", "type", "attributes"),
    "relations.csv": ("name", "attributes"),
    "edges.csv": ("source", "relation", "target", "attributes"),
}
_TABLES = Path("processed", "stage1")
_TEXTS = ("documents.json", "dataset_corpus.json")
_LONGEST_FIELD = 1 << 30
_LARGEST = 1 << 31  # the first place in a text that a graph cannot store
_MOST_OFTEN = 100_000  # limit of a mention's count, since each mention takes memory; no passage names an entity more often
_NAMED = 3  # how many of the things left out are named


@dataclass(frozen=True, slots=True)
class GFMFiles:
    """Holds the contents of a gfm-rag folder."""

    facts: list[PassageFacts] = field(default_factory=list)
    """The facts of each document, in the order of the nodes."""
    edges: list[UnstatedEdge] = field(default_factory=list)
    """The edges that no document states: equivalences, and facts whose ends share no document."""
    passages: list[Passage] = field(default_factory=list)
    """The documents that have a text."""
    graph: bool = True
    """False if the folder has only texts."""
    others: OtherNodes = field(default_factory=OtherNodes)
    """The nodes of other types, and the edges that are neither facts nor mentions, if the graph was read with `exact`.
    """


def write_gfm_files(
    graph: KGIndex, folder: Path, passage_of: Callable[[str], Passage | None]
) -> None:
    """Write a graph and the texts of its documents into `folder`, which becomes a data/NAME folder of gfm-rag.

    Args:
        passage_of: returns a document's passage by its id; a passage that is gone gets the text "".
    """
    passages = [passage_of(name) or Passage(name, "") for name in graph.documents]
    names = write_gfm_csv(graph, folder / _TABLES, passages)
    texts = [passage.text for passage in passages]
    data = json.dumps(
        dict(zip(names, texts, strict=True)), ensure_ascii=False, indent=1
    )
    raw = folder / "raw"
    raw.mkdir(exist_ok=True)
    path = raw / _TEXTS[0]
    path.write_bytes(data.encode("utf-8", "replace"))


def write_gfm_csv(
    graph: KGIndex, folder: Path, passages: Sequence[Passage] | None = None
) -> list[str]:
    """Write the three tables of gfm-rag into `folder`, which is created. Returns the names of the documents' nodes.

    Entities keep their names. Documents are named by their ids, with "document: " in front as often as it takes to
    make the name unique. The attributes of an edge say where it was read and which person made it, or how similar
    its ends are; those of a mention say how often the document names the entity. Nodes of other types are written
    as they were read.

    Args:
        passages: the documents' passages, whose titles and texts become attributes; by default these are left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken = set(graph.entities)
    others = graph.others
    document_nodes = [Node(DOCUMENT, name) for name in graph.documents]
    name_of = {node: _untaken(node, taken) for node in (*document_nodes, *others.nodes)}
    documents = [name_of[node] for node in document_nodes]

    def nodes() -> Iterator[tuple[str, ...]]:
        yield from (
            (name, ENTITY, _json(others.about.get(name, {}))) for name in graph.entities
        )
        yield from (
            (name_of[node], node.type, _json(about))
            for node, about in others.nodes.items()
        )
        for number, (name, passage_id) in enumerate(
            zip(documents, graph.documents, strict=True)
        ):
            about = {"id": passage_id}
            if passages:
                passage = passages[number]
                about["title"] = passage.title
                about["content"] = passage.text
            yield name, DOCUMENT, _json(about)

    def edges() -> Iterator[tuple[str, ...]]:
        for edge in graph.facts:
            triple = graph.triple(edge)
            edit = graph.made_by(triple)
            about: dict[str, Any] = {}
            about["sources"] = list(map(place_of, triple.sources))
            if edit:
                about["by"] = edit.by
            if triple.attributes:
                about["attributes"] = dict(triple.attributes)
            yield triple.subject, triple.predicate, triple.object, _json(about)
        for edge, similarity in zip(
            graph.equivalences, graph.similarities.tolist(), strict=True
        ):
            triple = graph.triple(edge)
            yield (
                triple.subject,
                triple.predicate,
                triple.object,
                _json({"similarity": round(similarity, 4)}),
            )
        for link in others.links:
            source = name_of.get(link.source, link.source.name)
            target = name_of.get(link.target, link.target.name)
            yield source, link.relation, target, "{}"
        joined = {(link.source, link.target) for link in others.links}
        for entity, name in enumerate(graph.entities):
            columns = graph.mentions.row(entity).tolist()
            counts = graph.mentions.row_values(entity).tolist()
            for document, count in zip(columns, counts, strict=True):
                node = document_nodes[document]
                if (Node(ENTITY, name), node) not in joined:
                    yield name, MENTIONED, name_of[node], _json({"count": count})

    _write(folder / "nodes.csv", nodes())
    # a fact may have the relation name of equivalences or mentions, and gfm-rag takes no name twice
    names = dict.fromkeys(
        [*graph.relations, MENTIONED, *(link.relation for link in others.links)]
    )
    _write(
        folder / "relations.csv",
        ((name, _json(others.relations.get(name, {}))) for name in names),
    )
    _write(folder / "edges.csv", edges())
    return documents


def _untaken(node: Node, taken: set[str]) -> str:
    """Return a node's name with its type in front as often as it takes to make it unique."""
    name = node.name
    while name in taken:
        name = f"{node.type}: {name}"
    taken.add(name)
    return name


def read_gfm_files(
    folder: Path, skipped: list[Skipped] | None = None, *, exact: bool = False
) -> GFMFiles:
    """Return the contents of a gfm-rag folder.

    A fact belongs to the documents named in its attributes, or otherwise to those that both of its ends are linked to.
    Every node that is not a document is an entity. Places that cannot exist are left out of facts, and counts that
    cannot exist are replaced by 1; both are reported in `skipped`.

    Args:
        folder: data/NAME, or the folder of the tables.
        skipped: receives reports of what could not be used.
        exact: read the graph as gfm-rag does: only nodes of the type "entity" are entities, an edge counts only if its
            ends and its relation are in the tables, and a document names an entity only if an edge leads from the
            entity to the document. Everything else is in `others`, which G-reasoner reads.

    Raises:
        IngestError: the files are not of this kind; the message names file and line.
    """
    problems: list[Skipped] = [] if skipped is None else skipped
    tables, texts = _places(folder)
    if (tables / "kg.txt").is_file() and not (tables / "nodes.csv").is_file():
        return _first_version(tables, texts, problems)
    if not (tables / "nodes.csv").is_file() and texts:
        return GFMFiles(passages=_passages({}, texts, {}), graph=False)
    nodes = list(_nodes(tables / "nodes.csv"))
    names = _names(nodes)
    contents = {node.key: node.attributes for node in nodes if node.type == DOCUMENT}
    documents = {key: names[key] for key in contents}
    described = _relations(tables / "relations.csv")
    relations = {key: name for key, (name, *_) in described.items()}
    of_type = {node.key: node.type for node in nodes}
    links: list[Link] = []
    found = _Edges(documents, problems)
    left_out = 0
    for row, place in _read(tables / "edges.csv"):
        source = row["source"]
        relation = row["relation"]
        target = row["target"]
        details = _attributes(row["attributes"], place)
        types = (of_type.get(source), of_type.get(target))
        if exact and (None in types or relation not in relations):
            left_out += 1
            continue
        ends = (
            names.get(source, source),
            relations.get(relation, relation),
            names.get(target, target),
        )
        if exact and types != (ENTITY, ENTITY):
            head = Node(str(types[0]), ends[0])
            tail = Node(str(types[1]), ends[2])
            links.append(Link(head, ends[1], tail))
            if types != (ENTITY, DOCUMENT):
                continue
        if source in documents or target in documents:
            count = details.get("count", 1)
            if target not in documents:
                found.mention(source, ends[2], count, place)
            elif source not in documents:
                found.mention(target, ends[0], count, place)
        else:
            if not all(end.strip() if exact else canonical_key(end) for end in ends):
                raise IngestError(
                    f"{place}: the source, relation or target is blank: fill it in"
                )
            found.edge(ends, relation == EQUIVALENT, details, place)
    if left_out:
        reason = (
            f"{left_out:,} edges whose ends or relation are in no table, which gfm-rag leaves "
            "out"
        )
        problems.append(Skipped(str(tables / "edges.csv"), reason, error=False))
    facts, edges = found.by_document()
    others = OtherNodes()
    if exact:
        others = _others(nodes, names, links, found.entities(), described)
    return GFMFiles(facts, edges, _passages(documents, texts, contents), others=others)


def _others(
    nodes: Sequence[_Node],
    names: Mapping[str, str],
    links: Sequence[Link],
    entities: Collection[str],
    relations: Mapping[str, tuple[str, str, str]],
) -> OtherNodes:
    """Return the nodes that are in no fact and are not documents, and the edges that are neither facts nor mentions."""
    own = [(node, names[node.key]) for node in nodes if node.type != DOCUMENT]
    # a pair that other edges join as well keeps its mention among those links, so that no edge counts twice
    mention = ENTITY, MENTIONED, DOCUMENT
    joined = {
        (link.source, link.target)
        for link in links
        if (link.source.type, link.relation, link.target.type) != mention
    }
    return OtherNodes(
        {
            Node(node.type, name): _plain(node.attributes)
            for node, name in own
            if node.type != ENTITY or name not in entities
        },
        tuple(link for link in links if (link.source, link.target) in joined),
        {
            name: _plain(node.attributes)
            for node, name in own
            if node.attributes and name in entities
        },
        {
            name: _plain(about)
            for name, text, place in relations.values()
            if (about := _attributes(text, place))
        },
    )


def names_of_nodes(path: Path) -> dict[str, str]:
    """Return the names of the nodes in nodes.csv by uid, where the two differ; the name of a document is its id."""
    names = _names(list(_nodes(path)))
    return {key: name for key, name in names.items() if key != name}


class _Node(NamedTuple):
    """Holds a row of nodes.csv."""

    key: str
    """The uid or name by which edges refer to the node."""
    name: str
    type: str
    attributes: dict[str, Any]


class _Edges:
    """Collects mentions and facts."""

    def __init__(self, documents: Mapping[str, str], problems: list[Skipped]) -> None:
        """Begin without facts and mentions.

        Args:
            documents: the documents' ids, by the keys of their nodes.
            problems: receives reports of what could not be used.
        """
        self._ids = documents
        self._problems = problems
        self._named: dict[str, dict[str, int]] = {
            passage_id: {} for passage_id in documents.values()
        }
        self._facts: list[Triple] = []
        self._alike: list[UnstatedEdge] = []

    def mention(self, document: str, entity: str, count: Any, place: str) -> None:
        """Add a mention; an impossible count is reported and replaced by 1."""
        if not isinstance(count, int) or not 0 < count <= _MOST_OFTEN:
            reason = f"expected a count from 1 to {_MOST_OFTEN:,}, got {count!r:.80}"
            self._problems.append(Skipped(place, reason))
            count = 1
        self._named[self._ids[document]][entity] = count

    def edge(
        self,
        ends: tuple[str, str, str],
        alike: bool,
        details: Mapping[str, Any],
        place: str,
    ) -> None:
        """Add a fact; or, if `alike` is set and no document states the edge, an equivalence.

        Args:
            alike: whether the edge has the equivalence relation.
        """
        if alike and not isinstance(details.get("sources"), list):
            similarity = details.get("similarity", 1.0)
            known = isinstance(similarity, int | float) and 0 <= similarity <= 1
            self._alike.append(UnstatedEdge(*ends, float(similarity) if known else 1.0))
            return
        listed = details.get("sources") or []
        listed = listed if isinstance(listed, list) else [listed]
        if bad := [item for item in listed if not _is_place(item)]:
            reason = f"expected [passage, start, end] as places, got {bad[0]!r:.80}"
            self._problems.append(Skipped(place, reason))
        attributes = details.get("attributes")
        if not isinstance(attributes, Mapping):
            attributes = {}
        subject, predicate, object_ = ends
        places = filter(_is_place, listed)
        triple = Triple(
            subject=subject,
            predicate=predicate,
            object=object_,
            sources=tuple(map(source_at, places)),
            attributes=records.Attributes.of_others(attributes),
        )
        self._facts.append(triple)

    def entities(self) -> set[str]:
        """Return the names of all entities in facts, equivalences and mentions."""
        ends: set[str] = set()
        for fact in self._facts:
            ends |= {fact.subject, fact.object}
        for edge in self._alike:
            ends |= {edge.subject, edge.target}
        return ends.union(*self._named.values())

    def by_document(self) -> tuple[list[PassageFacts], list[UnstatedEdge]]:
        """Return the facts and entities of each document, and the edges that no document states."""
        naming = defaultdict(set)
        for passage_id, entities in self._named.items():
            for entity in entities:
                naming[entity].add(passage_id)
        stated: dict[str, list[Triple]] = {passage_id: [] for passage_id in self._named}
        in_facts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        unstated = []
        for fact in self._facts:
            both = naming[fact.subject] & naming[fact.object]
            at = fact.sources or tuple(map(Source, sorted(both)))
            if not at:
                edge = UnstatedEdge(fact.subject, fact.predicate, fact.object)
                unstated.append(edge)
            for place in at:
                own = stated.setdefault(place.passage_id, [])
                own.append(replace(fact, sources=(place,)))
                for end in {fact.subject, fact.object}:
                    in_facts[place.passage_id][end] += 1
        facts = [
            PassageFacts(
                passage_id,
                tuple(triples),
                tuple(_beyond(self._named.get(passage_id, {}), in_facts[passage_id])),
            )
            for passage_id, triples in stated.items()
        ]
        return facts, [*unstated, *self._alike]


def _places(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the folder of the tables, and the texts of the documents by name, {} if there are none.

    Raises IngestError for damaged texts.
    """
    tables = folder / _TABLES if (folder / _TABLES).is_dir() else folder
    roots = [folder, *(tables.parents[1:2] if tables.name == _TABLES.name else ())]
    for path in (root / "raw" / name for root in roots for name in _TEXTS):
        if path.is_file():
            texts = _object(path)
            if bad := [
                name for name, text in texts.items() if not isinstance(text, str)
            ]:
                raise IngestError(
                    f"{path}: expected the text of each document, got {texts[bad[0]]!r:.80}"
                )
            return tables, texts
    return tables, {}


def _first_version(
    tables: Path, texts: Mapping[str, str], problems: list[Skipped]
) -> GFMFiles:
    """Read kg.txt and document2entities.json; entities that are not in kg.txt are ignored."""
    path = tables / "kg.txt"
    entities = set()
    seen = set()
    triples: list[tuple[str, str, str]] = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            parts = tuple(line.strip().split(","))
            if len(parts) != 3 or not all(part.strip() for part in parts):
                problems.append(
                    Skipped(
                        f"{path} line {number}",
                        f"expected head,relation,tail, got {line!r:.80}",
                    )
                )
            elif parts not in seen:
                seen.add(parts)
                triples.append(parts)
                entities |= {parts[0], parts[2]}
    listed = _object(tables / "document2entities.json")
    found = _Edges({name: name for name in listed}, problems)
    for document, named in listed.items():
        if not isinstance(named, list):
            raise IngestError(
                f"{tables / 'document2entities.json'}: expected a list of entities, got {named!r:.80}"
            )
        for entity in named:
            if entity in entities:
                found.mention(document, entity, 1, str(path))
    for triple in triples:
        found.edge(triple, triple[1] == EQUIVALENT, {}, str(path))
    facts, edges = found.by_document()
    return GFMFiles(facts, edges, _passages({name: name for name in listed}, texts, {}))


def _passages(
    documents: Mapping[str, str],
    texts: Mapping[str, str],
    contents: Mapping[str, Mapping[str, Any]],
) -> list[Passage]:
    """Return the documents as passages, with the texts of raw/documents.json or the `content` of their nodes.

    Each has its node's title or its id as title. A document without a text gets its title as text, so that it can be
    found; if no document has a text, the list is empty.
    """
    passages = {}
    found = False
    for name, passage_id in (documents or {name: name for name in texts}).items():
        about = contents.get(name, {})
        text = texts.get(name, about.get("content"))
        title = about.get("title")
        title = title if isinstance(title, str) and title.strip() else passage_id
        has_text = isinstance(text, str) and bool(text.strip())
        found = found or has_text
        passages[passage_id] = Passage(
            passage_id, str(text) if has_text else title, title, document_id=passage_id
        )
    return list(passages.values()) if found else []


def _beyond(named: Mapping[str, int], in_facts: Mapping[str, int]) -> Iterator[str]:
    """Yield the mentions of a document that its facts do not account for."""
    for entity, count in named.items():
        yield from [entity] * (count - in_facts.get(entity, 0))


def _nodes(path: Path) -> Iterator[_Node]:
    for row, place in _read(path):
        name = row["name"] or row["uid"]
        yield _Node(
            row["uid"] or name, name, row["type"], _attributes(row["attributes"], place)
        )


def _names(nodes: Sequence[_Node]) -> dict[str, str]:
    """Return the name of each node by its key. The name of a document is its id; other nodes that share a name get their
    key added in parentheses.
    """
    counts = Counter(node.name for node in nodes)
    names = {}
    # a document comes last, so that it wins over another node with its key
    for node in sorted(nodes, key=lambda node: node.type == DOCUMENT):
        name = node.name
        given = node.attributes.get("id")
        if node.type == DOCUMENT:
            name = str(given) if isinstance(given, str | int) else name
        elif counts[name] > 1 and node.key != name:
            name = f"{name} ({node.key})"
        names[node.key] = name
    return names


def _relations(path: Path) -> dict[str, tuple[str, str, str]]:
    """Return the relations by the ids or names that edges use, each with its name, its attributes as they are written, and
    its place; {} without the table.
    """
    if not path.is_file():
        return {}
    relations = {}
    for row, place in _read(path):
        name = row["name"] or row["uid"]
        relations[row["uid"] or name] = (name, row["attributes"], place)
    return relations


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return attributes in a form that JSON can hold: keys, and values such as sets in Python literals, become text."""
    return {
        str(key): value
        if value is None or isinstance(value, str | int | float)
        else str(value)
        for key, value in attributes.items()
    }


def _is_place(item: Any) -> bool:
    if not isinstance(item, list) or len(item) not in (3, 4):
        return False
    passage_id, start, end = item[:3]
    if not isinstance(passage_id, str):
        return False
    if not isinstance(start, int) or not isinstance(end, int):
        return False
    return 0 <= start <= end < _LARGEST and all(map(_is_about_place, item[3:]))


def _is_about_place(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    unchecked = value.get("unchecked", False)
    attributes = value.get("attributes", {})
    return isinstance(unchecked, bool) and isinstance(attributes, dict)


def _write(path: Path, rows: Iterable[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS[path.name])
        writer.writerows(rows)


def _read(path: Path) -> Iterator[tuple[defaultdict[str, str], str]]:
    """Yield rows by column, each with its place (file and line); a column that the table lacks is ""."""
    columns = _COLUMNS[path.name]
    csv.field_size_limit(_LONGEST_FIELD)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            known = {*header, *(("name",) if "uid" in header else ()), "attributes"}
            if not known.issuperset(columns):
                raise IngestError(
                    f"{path} line 1: expected the columns {', '.join(columns)}"
                )
            for row in rows:
                place = f"{path} line {rows.line_num}"
                if len(row) != len(header):
                    raise IngestError(
                        f"{place}: expected {len(header)} fields, found {len(row)}: {row!r:.80}"
                    )
                yield defaultdict(str, zip(header, row, strict=True)), place
    except (FileNotFoundError, NotADirectoryError):
        raise IngestError(
            f"no {path.name} in {path.parent}: give the folder of a gfm-rag graph, with {', '.join(_COLUMNS)}"
        ) from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise IngestError(f"{path}: not CSV in UTF-8: {error}") from error


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise IngestError(
            f"no {path.name} in {path.parent}: put it next to kg.txt, as gfm-rag's first version does"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise IngestError(f"{path}: not JSON that can be read: {error}") from error
    if not isinstance(found, dict):
        raise IngestError(f"{path}: expected an object of documents, got {found!r:.80}")
    return found


def _attributes(text: str, place: str) -> dict[str, Any]:
    """Parse attributes written as JSON or, as gfm-rag does, as a Python literal. Raises IngestError for other text."""
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text or "{}")
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, dict):
            return found
    raise IngestError(
        f'{place}: the attributes should be an object such as {{"born": 1847}}, got {text!r:.80}'
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
