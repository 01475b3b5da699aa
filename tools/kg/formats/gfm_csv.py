"""Reads and writes gfm-rag's graph files, in which entities and documents are both nodes.

nodes.csv has the columns name, type, attributes; relations.csv name, attributes; edges.csv source, relation, target,
attributes.
"""

from __future__ import annotations

import ast
import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ras_agent.errors import IngestError
from ras_agent.records import Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.load import Skipped
from ras_agent.tools.kg.assemble import EQUIVALENT
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts

MENTIONED = "is_mentioned_in"
"""The relation from an entity to a document that names it."""
_COLUMNS = {
    "nodes.csv": ("name", "type", "attributes"),
    "relations.csv": ("name", "attributes"),
    "edges.csv": ("source", "relation", "target", "attributes"),
}
_LONGEST_FIELD = 1 << 30
_LARGEST = 1 << 31  # what a graph can store as a place in a text
_MOST_OFTEN = 100_000  # no passage names an entity more often, and each mention takes memory


def write_gfm_csv(graph: KGIndex, folder: Path) -> None:
    """Write the three files into `folder`, which is created.

    Entities have their own names, documents their ids, with "document: " in front as often as it takes to make the name
    unique. An edge's attributes say where it was read, or how similar its ends are; those of a mention say how often.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken = set(graph.entities)
    documents = []
    for name in graph.documents:
        while name in taken:
            name = f"document: {name}"
        taken.add(name)
        documents.append(name)

    def nodes() -> Iterator[tuple[str, ...]]:
        yield from ((name, "entity", "{}") for name in graph.entities)
        for name, passage_id in zip(documents, graph.documents, strict=True):
            yield name, "document", _json({"id": passage_id})

    def edges() -> Iterator[tuple[str, ...]]:
        for edge in graph.facts:
            triple = graph.triple(edge)
            places = [[source.passage_id, source.start, source.end] for source in triple.sources]
            yield triple.subject, triple.predicate, triple.object, _json({"sources": places})
        for edge, similarity in zip(graph.equivalences, graph.similarities.tolist(), strict=True):
            triple = graph.triple(edge)
            yield triple.subject, triple.predicate, triple.object, _json({"similarity": round(similarity, 4)})
        for entity, name in enumerate(graph.entities):
            columns, counts = graph.mentions.row(entity), graph.mentions.row_values(entity)
            for document, count in zip(columns.tolist(), counts.tolist(), strict=True):
                yield name, MENTIONED, documents[document], _json({"count": count})

    _write(folder / "nodes.csv", nodes())
    _write(folder / "relations.csv", ((name, "{}") for name in [*graph.relations, MENTIONED]))
    _write(folder / "edges.csv", edges())


def read_gfm_csv(folder: Path, skipped: list[Skipped] | None = None) -> list[PassageFacts]:
    """Return what each document states, in the order of nodes.csv.

    A fact belongs to the documents its attributes name, else to those that both of its ends are linked to, else to a
    document with the file's name. Equivalences, which no document states, are left out: a graph finds its own.
    Impossible places and counts are added to `skipped`, and their facts and mentions are read without them.
    Raises IngestError, naming file and line, for files that are not of this kind.
    """
    problems: list[Skipped] = [] if skipped is None else skipped
    documents = {
        name: _id(_attributes(attributes, place).get("id"), name)
        for (name, kind, attributes), place in _read(folder / "nodes.csv")
        if kind == "document"
    }
    named: dict[str, dict[str, int]] = {passage_id: {} for passage_id in documents.values()}
    facts: list[tuple[tuple[str, str, str], list[Source]]] = []
    for (source, relation, target, attributes), place in _read(folder / "edges.csv"):
        details = _attributes(attributes, place)
        ends = [end for end in (source, target) if end in documents]
        if ends:
            entity = target if source in documents else source
            if entity not in documents:
                count = details.get("count", 1)
                if not isinstance(count, int) or not 0 < count <= _MOST_OFTEN:
                    problems.append(Skipped(place, f"expected a count from 1 to {_MOST_OFTEN:,}, got {count!r:.80}"))
                    count = 1
                named[documents[ends[0]]][entity] = count
        elif relation != EQUIVALENT or isinstance(details.get("sources"), list):
            if not all(map(canonical_key, (source, relation, target))):
                raise IngestError(f"{place}: a blank source, relation or target")
            listed = details.get("sources") or []
            listed = listed if isinstance(listed, list) else [listed]
            if bad := [item for item in listed if not _is_place(item)]:
                problems.append(Skipped(place, f"expected [passage, start, end] as places, got {bad[0]!r:.80}"))
            facts.append(((source, relation, target), [Source(*item) for item in listed if _is_place(item)]))
    return _by_document(facts, named, f"{folder.name}/edges.csv")


def _by_document(
    facts: Iterable[tuple[tuple[str, str, str], list[Source]]], named: Mapping[str, Mapping[str, int]], elsewhere: str
) -> list[PassageFacts]:
    naming = defaultdict(set)
    for passage_id, entities in named.items():
        for entity in entities:
            naming[entity].add(passage_id)
    stated: dict[str, list[Triple]] = {passage_id: [] for passage_id in named}
    in_facts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (subject, predicate, object_), places in facts:
        if not places:
            both = sorted(naming[subject] & naming[object_]) or [elsewhere]
            places = [Source(passage_id) for passage_id in both]
        for place in places:
            stated.setdefault(place.passage_id, []).append(Triple(subject, predicate, object_, (place,)))
            for end in {subject, object_}:
                in_facts[place.passage_id][end] += 1
    return [
        PassageFacts(passage_id, tuple(triples), tuple(_beyond(named.get(passage_id, {}), in_facts[passage_id])))
        for passage_id, triples in stated.items()
    ]


def _beyond(named: Mapping[str, int], in_facts: Mapping[str, int]) -> Iterator[str]:
    """Yield the mentions that no fact of the document accounts for."""
    for entity, count in named.items():
        yield from [entity] * (count - in_facts.get(entity, 0))


def _id(given: Any, name: str) -> str:
    return str(given) if isinstance(given, str | int) else name


def _is_place(item: Any) -> bool:
    if not isinstance(item, list) or len(item) != 3 or not isinstance(item[0], str):
        return False
    return all(isinstance(number, int) for number in item[1:]) and 0 <= item[1] <= item[2] < _LARGEST


def _write(path: Path, rows: Iterable[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS[path.name])
        writer.writerows(rows)


def _read(path: Path) -> Iterator[tuple[list[str], str]]:
    """Yield rows with their places."""
    columns = _COLUMNS[path.name]
    csv.field_size_limit(_LONGEST_FIELD)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file, strict=True)
            if tuple(next(rows, ())) != columns:
                raise IngestError(f"{path} line 1: expected the columns {', '.join(columns)}")
            for row in rows:
                place = f"{path} line {rows.line_num}"
                if len(row) != len(columns):
                    raise IngestError(f"{place}: expected {len(columns)} fields, found {len(row)}: {row!r:.80}")
                yield row, place
    except (FileNotFoundError, NotADirectoryError):
        raise IngestError(f"no {path.name} in {path.parent}: gfm-rag's graphs have {', '.join(_COLUMNS)}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise IngestError(f"{path}: not CSV in UTF-8: {error}") from error


def _attributes(text: str, place: str) -> dict[str, Any]:
    """Parse JSON, or a Python literal, which is what gfm-rag writes."""
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text or "{}")
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, dict):
            return found
    raise IngestError(f"{place}: expected attributes such as {{}}, got {text!r:.80}")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
