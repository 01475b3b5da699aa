"""Steps' examples, drawn from sets of questions over knowledge graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import IndexMismatch, IndexNotFound, SettingsError
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.tools.kg.disk import read_kg_manifest
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.document_ranker import PACKAGED
from ras_agent.tools.retrieve.gfm import inverse_vectors
from ras_agent.train.gfm.batches import Asked, Part, part_of, picked_documents
from ras_agent.train.gfm.linked import read_linked

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Example", "Set", "completion", "load_sets", "retrieval", "share_of", "text_model_of"]


@dataclass(frozen=True, slots=True)
class Example:
    """B questions over a graph of N entities: vectors (B, text width), start and targets (B, N).

    chosen: (B, C), the entities that the loss looks at, where it does not look at all. shares: sparse (D, N), and
    wanted: (B, D), for the loss for documents.
    """

    name: str
    graph: GFMGraph
    vectors: Floats
    start: Floats
    targets: Floats
    chosen: Ints | None = None
    shares: Tensor | None = None
    wanted: Floats | None = None


class Set:
    """A knowledge graph with questions, already linked and embedded."""

    def __init__(self, name: str, kg: KGIndex, asked: dict[str, list[Asked]], config: GFMConfig) -> None:
        """asked: the questions by kind, "labelled" and "pseudo"; those without an entity are left out."""
        self.name, self.kg, self.config = name, kg, config
        self.inverse = inverse_vectors(kg, config)
        kept = {kind: [one for one in some if len(one.entities)] for kind, some in asked.items()}
        self.labelled, self.pseudo = kept.get("labelled", []), kept.get("pseudo", [])


def load_sets(folders: Sequence[Path], config: GFMConfig, share: float = 1.0) -> list[Set]:
    """The sets that ras_agent.train.gfm.examples wrote, with a share of the questions of each kind (see `share_of`).

    Raises what `read_linked` and `KGIndex.open` raise, and IndexMismatch for questions linked to another graph.
    """
    sets = []
    for folder in folders:
        asked = {kind: share_of(some, share) for kind, some in read_linked(folder).items()}
        kg = KGIndex.open(folder / "graph")
        for one in (one for some in asked.values() for one in some):
            if one.entities.max(initial=-1) >= len(kg.entities) or one.supporting.max(initial=-1) >= len(kg.documents):
                raise IndexMismatch(f"{folder}: its questions are linked to another graph: write the set anew")
        sets.append(Set(folder.name, kg, asked, config))
    return sets


def text_model_of(folders: Sequence[Path], width: int) -> str:
    """The encoder of the sets' vectors, empty without any.

    Raises IndexNotFound for a folder that is no set, IndexMismatch where vectors are not of `width` or of one encoder.
    """
    if missing := [str(folder) for folder in folders if not (folder / "questions.jsonl").is_file()]:
        raise IndexNotFound(f"no set at {', '.join(missing)}: write it with `python -m ras_agent.train.gfm.examples`")
    names = {str(folder): read_kg_manifest(folder / "graph").embedder for folder in folders}
    first, *others = dict.fromkeys(names.values())
    if others:
        told = ", ".join(f"{folder}: {embedder or 'none'}" for folder, embedder in names.items())
        raise IndexMismatch(f"the sets hold vectors of several encoders ({told}): write them with one")
    if first and first.dimension != width:
        raise IndexMismatch(f"the sets hold vectors of {first}: train with --text-width {first.dimension}")
    return first.name if first else ""


def share_of(asked: Sequence[Asked], share: float) -> list[Asked]:
    """A share of the questions, at least one, in their order; always the same, and a smaller one's are in a larger's.

    Raises SettingsError for a share that is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise SettingsError(f"the share of the questions has to be above 0 and at most 1, got {share}")
    order = np.random.default_rng(0).permutation(len(asked))
    return [asked[at] for at in np.sort(order[: math.ceil(share * len(asked))])]


def retrieval(
    sets: Sequence[Set], batch: int, documents: int, labelled: float, dropout: float, rng: np.random.Generator
) -> Example:
    """Questions of one set, asked of the part of its graph that `documents` documents state.

    Raises SettingsError where no set holds a question with an entity.
    """
    with_labels, with_pseudo = [one for one in sets if one.labelled], [one for one in sets if one.pseudo]
    if not with_labels and not with_pseudo:
        told = ", ".join(one.name for one in sets)
        raise SettingsError(f"no question of {told} names an entity of its graph: train on other --sets")
    use_labels = bool(with_labels) and (rng.random() < labelled or not with_pseudo)
    candidates = with_labels if use_labels else with_pseudo
    chances = np.array([len(one.labelled if use_labels else one.pseudo) for one in candidates], dtype=np.float64)
    chosen = candidates[int(rng.choice(len(candidates), p=chances / chances.sum()))]
    pool = chosen.labelled if use_labels else chosen.pseudo
    asked = [_thinned(pool[at], dropout, rng) for at in rng.choice(len(pool), min(batch, len(pool)), replace=False)]
    part = part_of(chosen.kg, picked_documents(chosen.kg, asked, documents, rng), chosen.inverse, chosen.config.toward)
    start, targets, wanted = part.rows(asked)
    vectors = np.stack([one.vector for one in asked])
    return Example(chosen.name, part.graph, vectors, start, targets, None, _shares(part), wanted)


def completion(sets: Sequence[Set], batch: int, documents: int, negatives: int, rng: np.random.Generator) -> Example:
    """Facts to complete: each one's relation asks, one end starts, the other is the target among `negatives` others.

    The asked facts are taken out of the graph, in both directions. Raises SettingsError for a set without any fact.
    """
    if silent := [one.name for one in sets if not one.kg.manifest.facts]:
        raise SettingsError(
            f"{', '.join(silent)}: no fact to complete; leave the set out, or train without --completion"
        )
    chosen = sets[int(rng.integers(len(sets)))]
    graph = _stated(chosen, rng.permutation(len(chosen.kg.documents))[:documents])
    if not graph.messages:
        # what was drawn states nothing: once more, among the documents that state something
        stating = np.unique(chosen.kg.arrays.sources["document"])
        graph = _stated(chosen, rng.permutation(stating)[:documents])
    kinds = len(graph.vectors) // 2
    forward = np.flatnonzero(graph.relation < kinds)
    picked = rng.choice(forward, min(batch, len(forward)), replace=False)
    hearer, source, relation = graph.target[picked], graph.source[picked], graph.relation[picked]
    # the other end of a fact is asked for by its inverse relation
    turned = rng.random(len(picked)) < 0.5
    start = np.zeros((len(picked), graph.entities), dtype=np.float32)
    targets = np.zeros_like(start)
    rows = np.arange(len(picked))
    ends = np.where(turned, source, hearer), np.where(turned, hearer, source)
    start[rows, ends[0]] = 1
    targets[rows, ends[1]] = 1
    others = rng.integers(0, graph.entities, (len(picked), negatives))
    vectors = graph.vectors[np.where(turned, relation + kinds, relation)]
    examined = np.concatenate((ends[1][:, None], others), axis=1)
    return Example(chosen.name, _without(graph, hearer, source), vectors, start, targets, examined)


def _stated(chosen: Set, documents: Ints) -> GFMGraph:
    """The graph of what some of a set's documents state."""
    return part_of(chosen.kg, np.sort(documents).astype(np.int64), chosen.inverse, chosen.config.toward).graph


def _without(graph: GFMGraph, first: Ints, second: Ints) -> GFMGraph:
    """The graph without any message between the pairs of entities given."""
    key = np.minimum(graph.target, graph.source) * graph.entities + np.maximum(graph.target, graph.source)
    kept = ~np.isin(key, np.minimum(first, second) * graph.entities + np.maximum(first, second))
    indptr = np.concatenate(([0], np.cumsum(kept)))[graph.indptr]
    return replace(graph, indptr=indptr, source=graph.source[kept], relation=graph.relation[kept])


def _thinned(asked: Asked, dropout: float, rng: np.random.Generator) -> Asked:
    kept = rng.random(len(asked.entities)) >= dropout
    if not kept.any():
        kept[rng.integers(len(kept))] = True
    return replace(asked, entities=asked.entities[kept], weights=asked.weights[kept])


def _shares(part: Part) -> Any:
    """Sparse (D, N): what an entity's probability adds to each document that names it, as PACKAGED ranks them."""
    import torch

    columns, sizes = part.mentions.columns.astype(np.int64), part.mentions.row_sizes()
    rows = np.repeat(np.arange(len(part.documents)), sizes)
    frequency = np.bincount(columns, minlength=len(part.entities)).astype(np.float32)
    shares = frequency[columns] ** -PACKAGED.power / np.repeat(sizes, sizes) ** PACKAGED.length
    values = torch.from_numpy(shares.astype(np.float32))
    shape = (len(part.documents), len(part.entities))
    return torch.sparse_coo_tensor(torch.from_numpy(np.stack((rows, columns))), values, shape, check_invariants=False)
