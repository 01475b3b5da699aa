"""Stores a knowledge graph on disk as generations of memory-mapped arrays; kg.json names the current one.

Replacing kg.json commits a write.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ras_agent.errors import IndexMismatch, IndexNotFound
from ras_agent.tools.index.manifest import EmbedderIdentity
from ras_agent.tools.kg.arrays import SOURCE, KGArrays, SparseRows, StringTable
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.store.checksums import FileSum, check_file, file_sums, load_array, reading, sums_from_dict
from ras_agent.tools.store.durable import ManifestFile, save_array, sync_folder

NAME = "kg.json"
GRAPH_ANEW = (
    "run the `ras-agent kg build` that made the graph again: it makes the arrays anew from {folder}/facts.sqlite"
)
"""What mends damaged arrays of a graph."""
_FILE = ManifestFile(NAME, "ras-agent knowledge graph", 2, "knowledge graph", "ras-agent kg build", GRAPH_ANEW)
_GENERATION = re.compile(r"graph-\d+")
_TABLES = ("entities", "keys", "relations", "relation_keys", "documents")


@dataclass(frozen=True, slots=True)
class KGManifest:
    """Describes one generation of a graph.

    fingerprint: a digest of entities, relations, edges, similarities and mentions: equal for equal graphs.
    extractor: what read the facts; embedder: what made the vectors. texts: whether it records which texts were read.
    exact: whether names are one entity only if they are equal, instead of by their canonical keys.
    sums: of the files of arrays, by their path in the folder.
    """

    generation: int = 0
    documents: int = 0
    entities: int = 0
    relations: int = 0
    facts: int = 0
    equivalences: int = 0
    fingerprint: str = ""
    extractor: str = ""
    embedder: EmbedderIdentity | None = None
    equivalence: Equivalence = field(default_factory=Equivalence)
    texts: bool = False
    exact: bool = False
    sums: Mapping[str, FileSum] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        embedder = data.pop("embedder")
        return cls(
            embedder=EmbedderIdentity(**embedder) if embedder else None,
            equivalence=Equivalence(**data.pop("equivalence")),
            sums=sums_from_dict(data.pop("sums")),
            **data,
        )


def read_kg_manifest(folder: Path) -> KGManifest:
    """Read the manifest. Raises IndexNotFound without a graph, IndexMismatch for a layout of another version."""
    return _FILE.read(folder, KGManifest.from_dict)


def readable_kg_manifest(folder: Path) -> KGManifest | None:
    """Return the manifest in `folder`, though the arrays may be damaged; None if it cannot be read."""
    try:
        return read_kg_manifest(folder)
    except (IndexNotFound, IndexMismatch):
        return None


def write_kg_manifest(folder: Path, manifest: KGManifest) -> None:
    """Commit `manifest`: from here on readers see it."""
    _FILE.write(folder, manifest)


def save_arrays(folder: Path, graph: KGArrays) -> None:
    """Write every array as .npy into `folder`, which is created, and wait until they are on the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {f"{name}_{part}": getattr(getattr(graph, name), part) for name in _TABLES for part in ("text", "starts")}
    arrays |= {name: getattr(graph, name) for name in ("edges", "similarities", "source_starts", "sources")}
    arrays |= {f"mention_{part}": getattr(graph.mentions, part) for part in ("starts", "columns", "values")}
    if graph.entity_vectors is not None and graph.relation_vectors is not None and graph.near is not None:
        arrays |= {"entity_vectors": graph.entity_vectors, "relation_vectors": graph.relation_vectors}
        arrays |= {f"near_{part}": getattr(graph.near, part) for part in ("starts", "columns", "values")}
    if graph.texts is not None:
        arrays["texts"] = graph.texts
    for name, array in arrays.items():
        save_array(folder / f"{name}.npy", array)
    sync_folder(folder)
    sync_folder(folder.parent)


def load_arrays(folder: Path, manifest: KGManifest, *, whole: bool = False) -> KGArrays:
    """Open the arrays of `manifest` in the graph's `folder`, memory-mapped.

    whole: compare the checksums of large files too. Raises FileNotFoundError for a missing file, IndexMismatch for
    damaged ones.
    """
    remedy, place = GRAPH_ANEW.format(folder=folder), f"graph-{manifest.generation}"

    def array(name: str) -> Any:  # each has a type of its own
        path = folder / place / f"{name}.npy"
        check_file(path, manifest.sums.get(f"{place}/{name}.npy"), remedy, whole=whole)
        return load_array(path, remedy)

    tables = {name: StringTable(array(f"{name}_text"), array(f"{name}_starts")) for name in _TABLES}
    with_vectors = manifest.embedder is not None

    def rows(name: str, width: int) -> SparseRows:
        return SparseRows(array(f"{name}_starts"), array(f"{name}_columns"), array(f"{name}_values"), width)

    graph = KGArrays(
        **tables,
        edges=array("edges"),
        similarities=array("similarities"),
        mentions=rows("mention", len(tables["documents"])),
        source_starts=array("source_starts"),
        sources=array("sources"),
        entity_vectors=array("entity_vectors") if with_vectors else None,
        relation_vectors=array("relation_vectors") if with_vectors else None,
        near=rows("near", len(tables["entities"])) if with_vectors else None,
        texts=array("texts") if manifest.texts else None,
    )
    with reading(folder / place, remedy):
        _check(graph)
    return graph


def write_generation(folder: Path, graph: KGArrays, manifest: KGManifest) -> None:
    """Commit `graph` as what `folder` holds, and delete other generations."""
    name = f"graph-{manifest.generation}"
    if (folder / name).exists():  # left by a write that was interrupted
        shutil.rmtree(folder / name)
    save_arrays(folder / name, graph)
    write_kg_manifest(folder, replace(manifest, sums=file_sums(folder, [name])))
    clear_away(folder, manifest.generation)


def clear_away(folder: Path, current: int | None) -> None:
    """Delete all generations but that of the number `current`; readers that have mapped them can still read."""
    (folder / f"{NAME}.new").unlink(missing_ok=True)
    for path in folder.iterdir():
        if _GENERATION.fullmatch(path.name) and path.name != f"graph-{current}":
            try:
                shutil.rmtree(path)
            except PermissionError:
                continue  # in use, where files in use cannot be deleted: the next write tries again


def next_generation(folder: Path) -> int:
    """Return a number that no generation in `folder` has, whole, damaged or half written."""
    taken = [int(path.name.removeprefix("graph-")) for path in folder.iterdir() if _GENERATION.fullmatch(path.name)]
    return max(taken, default=-1) + 1


def open_generation(folder: Path, *, whole: bool = False) -> tuple[KGManifest, KGArrays]:
    """Open the current generation. Raises IndexNotFound, or IndexMismatch if it is damaged or of another version.

    whole: compare the checksums of large files too.
    """
    while True:
        manifest = read_kg_manifest(folder)
        try:
            graph = load_arrays(folder, manifest, whole=whole)
        except FileNotFoundError as error:
            if read_kg_manifest(folder).generation == manifest.generation:
                raise IndexMismatch(f"{error.filename} is missing: {GRAPH_ANEW.format(folder=folder)}") from error
            continue  # a writer committed and deleted the old files between our two reads: take its generation
        counted = (len(graph.documents), len(graph.entities), len(graph.relations), graph.facts)
        if counted != (manifest.documents, manifest.entities, manifest.relations, manifest.facts):
            raise IndexMismatch(
                f"{folder} does not hold the {manifest.facts} facts it says: {GRAPH_ANEW.format(folder=folder)}"
            )
        return manifest, graph


def digest_of(graph: KGArrays) -> str:
    """Return a digest of everything but vectors and texts: equal for equal graphs."""
    digest = hashlib.blake2b(digest_size=16)
    tables = [part for name in _TABLES for part in (getattr(graph, name).text, getattr(graph, name).starts)]
    rest = [graph.edges, graph.similarities, graph.mentions.starts, graph.mentions.columns, graph.mentions.values]
    for array in [*tables, *rest, graph.source_starts, graph.sources]:
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _check(graph: KGArrays) -> None:
    """Raise ValueError if a number points out of its array. Reads everything but text and vectors."""
    entities, relations, edges, documents = len(graph.entities), len(graph.relations), graph.edges, len(graph.documents)
    fits = edges.ndim == 2 and edges.shape[1] == 3 and graph.sources.dtype == SOURCE
    fits = fits and all(_ascends(table.starts, table.text) for table in (getattr(graph, name) for name in _TABLES))
    fits = fits and (len(graph.keys), len(graph.relation_keys)) == (entities, relations - 1)
    fits = fits and _within(edges[:, [0, 2]], entities) and _within(edges[:, 1], relations)
    fits = fits and len(graph.source_starts) == len(edges) + 1 and _ascends(graph.source_starts, graph.sources)
    fits = fits and _within(graph.sources["document"], documents)
    for rows in (graph.mentions, graph.near):
        if fits and rows is not None:
            fits = rows.shape[0] == entities and _ascends(rows.starts, rows.columns, rows.values)
            fits = fits and _within(rows.columns, rows.width)
    for vectors, count in ((graph.entity_vectors, entities), (graph.relation_vectors, relations)):
        fits = fits and (vectors is None or (vectors.ndim == 2 and len(vectors) == count))
    fits = fits and (graph.texts is None or (graph.texts.shape == (documents,) and graph.texts.dtype == np.uint64))
    if not fits:
        raise ValueError("its arrays do not fit together")


def _ascends(starts: npt.NDArray[np.int64], *parts: npt.NDArray[Any]) -> bool:
    """Return whether rows that begin at `starts` cover each of `parts` from its first to its last number."""
    whole = starts[0] == 0 and all(starts[-1] == len(part) for part in parts)
    return bool(whole and (starts[1:] >= starts[:-1]).all())


def _within(numbers: npt.NDArray[np.int32], count: int) -> bool:
    return not numbers.size or (int(numbers.min()) >= 0 and int(numbers.max()) < count)
