"""Saves a knowledge graph's arrays in one file: as the cache of an index's graph, or as training data of a network."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Ints
from ras_agent.contracts.errors import IndexMismatch, IndexNotFound
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.kg.arrays import SOURCE, KGArrays, SparseRows, StringTable
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.store.array_file import DAMAGE, read_arrays, write_arrays
from ras_agent.tools.store.durable import sync_folder, writing

_TABLES = ("entities", "keys", "relations", "relation_keys", "documents", "notes")
_PARTS_OF_ROWS = ("starts", "columns", "values")
_ARRAYS = (
    "edges",
    "similarities",
    "source_starts",
    "entity_vectors",
    "relation_vectors",
    "texts",
)
_DIGESTED = (
    *(f"{name}_{part}" for name in _TABLES for part in ("text", "starts")),
    "edges",
    "similarities",
    *(f"mention_{part}" for part in _PARTS_OF_ROWS),
    "source_starts",
    "sources",
)
_ABOUT = "ras-agent knowledge graph, version 4"


@dataclass(frozen=True, slots=True)
class KGManifest:
    """Describes a graph: its size, and how it was made."""

    documents: int = 0
    entities: int = 0
    relations: int = 0
    facts: int = 0
    equivalences: int = 0
    fingerprint: str = ""
    """A digest of names, edges, similarities, mentions and sources; equal for equal graphs."""
    extractor: str = ""
    """The names of the extractors that read the facts, separated by commas."""
    embedder: EmbedderIdentity | None = None
    """The embedder that made the vectors; None for a graph without vectors."""
    equivalence: Equivalence = field(default_factory=Equivalence)
    texts: bool = False
    """Whether the graph records the hash of each document's text."""
    exact: bool = False
    """Whether names are one entity only if they are equal; otherwise if their canonical keys are equal."""

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the manifest that `asdict` turned into a dictionary. The dictionary is changed."""
        embedder = data.pop("embedder")
        return cls(
            embedder=EmbedderIdentity(**embedder) if embedder else None,
            equivalence=Equivalence(**data.pop("equivalence")),
            **data,
        )


class SavedGraph(NamedTuple):
    """Holds a graph, its manifest, and the numbers of its names in the database."""

    arrays: KGArrays
    manifest: KGManifest
    names: Ints = np.empty(0, np.int64)
    """(N + R,), the number of each entity's and then of each relation's name; -1 for a name without a number. Empty
    for a graph from a file.
    """


def write_graph(path: Path, graph: SavedGraph) -> None:
    """Write a graph into the file `path`. If writing is interrupted, the file stays as it was."""
    fresh = path.with_name(f"{path.name}.new")
    about = {_ABOUT: json.dumps(asdict(graph.manifest), ensure_ascii=False)}
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(fresh, _parts(graph.arrays), about)
        os.replace(
            fresh.with_name(f"{fresh.name}.sum"), path.with_name(f"{path.name}.sum")
        )
        os.replace(fresh, path)
        sync_folder(path.parent)


def read_graph(path: Path, remedy: str) -> SavedGraph:
    """Open the graph in a file, memory-mapped.

    Args:
        remedy: ends the messages of errors, such as "delete it".

    Raises:
        IndexNotFound: if the file is missing.
        IndexMismatch: if it is damaged or of another version.
    """
    try:
        arrays, about = read_arrays(path)
        if _ABOUT not in about:
            raise ValueError("it is not a graph that this ras-agent reads")
        manifest = KGManifest.from_dict(json.loads(about[_ABOUT]))
        graph = _graph(arrays)
        if not all(_fits(graph)):
            raise ValueError("its arrays do not fit together")
        counted = (
            len(graph.documents),
            len(graph.entities),
            len(graph.relations),
            graph.facts,
        )
        stated = (
            manifest.documents,
            manifest.entities,
            manifest.relations,
            manifest.facts,
        )
        if counted != stated:
            raise ValueError(
                f"it does not hold the {manifest.facts} facts that its manifest states"
            )
        return SavedGraph(graph, manifest)
    except FileNotFoundError:
        raise IndexNotFound(f"no knowledge graph at {path}: {remedy}") from None
    except DAMAGE as error:
        raise IndexMismatch(f"{path} is damaged ({error}): {remedy}") from error


def read_kg_manifest(path: Path, remedy: str) -> KGManifest:
    """Return the manifest of the graph in a file. Raises as `read_graph` does."""
    return read_graph(path, remedy).manifest


def described(
    graph: KGArrays,
    embedder: EmbedderIdentity | None,
    extractor: str,
    equivalence: Equivalence,
    *,
    exact: bool = False,
) -> KGManifest:
    """Return the manifest of a graph, with its counts and its fingerprint."""
    return KGManifest(
        documents=len(graph.documents),
        entities=len(graph.entities),
        relations=len(graph.relations),
        facts=graph.facts,
        equivalences=len(graph.similarities),
        fingerprint=digest_of(graph),
        extractor=extractor,
        embedder=embedder,
        equivalence=equivalence,
        texts=graph.texts is not None,
        exact=exact,
    )


def digest_of(graph: KGArrays) -> str:
    """Return a digest of all arrays but the vectors and the hashes of texts; equal for equal graphs."""
    digest = hashlib.blake2b(digest_size=16)
    parts = _parts(graph)
    for name in _DIGESTED:
        array = np.ascontiguousarray(parts[name])
        digest.update(array.view(np.uint8).data)
    return digest.hexdigest()


def _parts(graph: KGArrays) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a graph by the names that they have in a file."""
    arrays = {}
    for name in _TABLES:
        table = getattr(graph, name)
        arrays[f"{name}_text"] = table.text
        arrays[f"{name}_starts"] = table.starts
    for part in _PARTS_OF_ROWS:
        arrays[f"mention_{part}"] = getattr(graph.mentions, part)
    for name in _ARRAYS:
        arrays[name] = getattr(graph, name)
    sources = np.ascontiguousarray(graph.sources)
    numbers = sources.view("<i4")
    arrays["sources"] = numbers.reshape(-1, len(SOURCE.names or ()))
    return {name: array for name, array in arrays.items() if array is not None}


def _graph(arrays: Mapping[str, npt.NDArray[Any]]) -> KGArrays:
    fields: dict[str, Any] = {name: arrays.get(name) for name in _ARRAYS}
    for name in _TABLES:
        fields[name] = StringTable(arrays[f"{name}_text"], arrays[f"{name}_starts"])
    starts, columns, values = (arrays[f"mention_{part}"] for part in _PARTS_OF_ROWS)
    mentions = SparseRows(starts, columns, values, len(fields["documents"]))
    sources = arrays["sources"].view(SOURCE).reshape(-1)
    return KGArrays(**fields, mentions=mentions, sources=sources)


def _fits(graph: KGArrays) -> Iterator[bool]:
    """Yield whether no number points outside its array, check by check; each check relies on those before it.

    Everything except texts and vectors is read.
    """
    entities = len(graph.entities)
    relations = len(graph.relations)
    documents = len(graph.documents)
    edges = graph.edges
    yield edges.ndim == 2 and edges.shape[1] == 3
    yield graph.sources.dtype == SOURCE
    for name in _TABLES:
        table = getattr(graph, name)
        yield _ascends(table.starts, table.text)
    yield len(graph.keys) == entities
    yield len(graph.relation_keys) == relations - 1
    yield _within(edges[:, [0, 2]], entities)
    yield _within(edges[:, 1], relations)
    yield len(graph.source_starts) == len(edges) + 1
    yield _ascends(graph.source_starts, graph.sources)
    yield _within(graph.sources["document"], documents)
    yield _within(graph.sources["note"], len(graph.notes))
    rows = graph.mentions
    yield rows.shape[0] == entities
    yield _ascends(rows.starts, rows.columns, rows.values)
    yield _within(rows.columns, rows.width)
    for vectors, count in (
        (graph.entity_vectors, entities),
        (graph.relation_vectors, relations),
    ):
        if vectors is not None:
            yield vectors.ndim == 2 and len(vectors) == count
    if graph.texts is not None:
        yield graph.texts.shape == (documents,)
        yield graph.texts.dtype == np.uint64


def _ascends(starts: npt.NDArray[np.int64], *parts: npt.NDArray[Any]) -> bool:
    """Return whether the offsets `starts` never decrease, begin at 0 and end at the length of each of `parts`."""
    if starts[0] != 0 or any(starts[-1] != len(part) for part in parts):
        return False
    return bool((np.diff(starts) >= 0).all())


def _within(numbers: npt.NDArray[np.int32], count: int) -> bool:
    lowest = numbers.min(initial=0)
    highest = numbers.max(initial=-1)
    return bool(lowest >= 0 and highest < count)
