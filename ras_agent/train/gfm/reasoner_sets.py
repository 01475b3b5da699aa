"""Reads and writes training sets for G-reasoner: a graph with a vector for the text of each node, and linked
questions.

A folder holds `nodes`, the arrays of graph and vectors; `questions.jsonl`, one {"question", "supporting", ...}
per line; and `questions.npz`, the questions' vectors, the numbers of the nodes at which they start, and the
numbers of the documents that support them. `network.json` names the encoder and the instructions with which the
vectors were made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import IndexMismatch, IndexNotFound, SettingsError
from ras_agent.eval.question import Question
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.reasoner import ReasonerConfig
from ras_agent.tools.gfm.weights import read_config, weights_folder
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.link import Linking
from ras_agent.tools.kg.linked_graph import LinkedGraph
from ras_agent.tools.retrieve.greasoner import (
    NEAREST_DOCUMENTS,
    NodeNumbers,
    NodeVectors,
    edges_of_nodes,
    encoder_of,
    start_nodes,
    text_vectors,
)
from ras_agent.tools.store.array_file import read_arrays, write_arrays
from ras_agent.tools.store.card import write_card
from ras_agent.train.gfm.batches import draw_questions
from ras_agent.train.gfm.examples import labelled_questions
from ras_agent.train.gfm.sets import LinkedQuestion, read_linked, write_questions

_NODES = "nodes"
_NETWORK = "network.json"
REMEDY = "write the set again with `ras-agent kg examples --network greasoner`"


@dataclass(frozen=True, slots=True)
class ReasonerSet:
    """Holds a graph of N nodes with their vectors, and its questions. A question's `entities` are the nodes at
    which it starts.
    """

    name: str
    config: ReasonerConfig
    edges: Ints
    """(E, 3): head, relation, tail."""
    nodes: Floats
    """The vectors of the nodes, (N, text width)."""
    relations: Floats
    """The vectors of the relations, (R, text width)."""
    inverses: Floats | None
    """The vectors of the inverse relations, (R, text width); None if they are the negated vectors of the relations."""
    documents: int
    """The number of the first document's node. The documents are the last nodes."""
    questions: Sequence[LinkedQuestion]

    @classmethod
    def read(cls, folder: Path) -> ReasonerSet:
        """Return the set that `write_reasoner_set` wrote into `folder`.

        Raises:
            IndexNotFound: If the folder is not a set.
            IngestError, IndexMismatch: If a file is damaged.
        """
        if not is_reasoner_set(folder):
            raise IndexNotFound(f"no set for G-reasoner at {folder}: {REMEDY}")
        network = folder / _NETWORK
        config = ReasonerConfig.from_dict(read_config(network), str(network))
        try:
            arrays, _ = read_arrays(folder / _NODES)
            inverses = None
            if config.inverse != "negated":
                inverses = arrays["inverses"]
            questions = []
            for of_kind in read_linked(folder).values():
                questions += of_kind
            return cls(
                name=folder.name,
                config=config,
                edges=arrays["edges"].astype(np.int64),
                nodes=arrays["nodes"],
                relations=arrays["relations"],
                inverses=inverses,
                documents=int(arrays["documents"][0]),
                questions=questions,
            )
        except (OSError, ValueError, KeyError) as error:
            raise IndexMismatch(
                f"{folder / _NODES} is damaged ({error}): {REMEDY}"
            ) from error

    def part(self, documents: Ints, starts: Ints) -> tuple[GFMGraph, Ints]:
        """Return the graph of some documents, their neighbouring nodes and other nodes.

        Args:
            documents: The documents, as indexes among the documents.
            starts: The numbers of other nodes to include.

        Returns:
            The graph, and the numbers of its nodes in the whole graph.
        """
        inside = np.zeros(len(self.nodes), dtype=bool)
        inside[documents + self.documents] = True
        head = self.edges[:, 0]
        tail = self.edges[:, 2]
        near = np.concatenate((tail[inside[head]], head[inside[tail]]))
        # neighbours that are documents are not added, so that the number of documents stays as drawn
        inside[near[near < self.documents]] = True
        inside[starts] = True
        numbers = np.flatnonzero(inside)
        edges = self.edges[inside[head] & inside[tail]]
        kinds, edges[:, 1] = np.unique(edges[:, 1], return_inverse=True)
        edges[:, [0, 2]] = np.searchsorted(numbers, edges[:, [0, 2]])
        inverses = None
        if self.inverses is not None:
            inverses = self.inverses[kinds]
        graph = GFMGraph.from_edges(
            len(numbers), edges, self.relations[kinds], inverses
        )
        return graph, numbers


def is_reasoner_set(folder: Path) -> bool:
    """Tell whether a folder holds a set that `write_reasoner_set` wrote."""
    return (folder / _NETWORK).is_file()


def write_reasoner_set(
    index: PassageIndex,
    questions: Sequence[Question],
    folder: Path,
    *,
    encoder: object = None,
    weights: str | Path | None = None,
    nearest: int = NEAREST_DOCUMENTS,
) -> tuple[int, tuple[str, ...]]:
    """Write a set of the graph of `index` and of `questions` into `folder`.

    The supporting passages of a question are named as for `write_set_of`.

    Args:
        index: An index with a knowledge graph.
        questions: Questions with their supporting passages.
        folder: The folder to write.
        encoder: Embeds the texts; by default the encoder of the graph.
        weights: The weights from which a training will start; the set then uses their encoder and instructions.
        nearest: The number of documents at which a question starts, unless it is already linked.

    Returns:
        The number of questions, and the reasons why questions were left out.

    Raises:
        IndexMismatch: If the index has no graph, or there is no encoder, or it is not the encoder of the weights.
    """
    known = set(LinkedGraph.of(index).graph.documents)
    labelled, skipped = labelled_questions(questions, index, known)
    starts = {
        question.question: question.start for question in labelled if question.start
    }
    linked = LinkedGraph.of(index, linking=Linking(starts=starts))
    graph = linked.graph
    config = ReasonerConfig(text_model="")
    if weights is not None:
        path = weights_folder(weights) / "config.json"
        config = ReasonerConfig.from_dict(read_config(path), str(path))
    embedder = encoder_of(linked, encoder, config)
    if weights is None:
        config = replace(
            config, text_width=embedder.dimension, text_model=embedder.name
        )
    vectors = NodeVectors.of(
        graph, index.snapshot.passages, linked.rows, embedder, config
    )
    numbers = NodeNumbers(graph)
    documents = vectors.nodes[numbers.documents :]
    asked = []
    for question in labelled:
        text = config.query_instruct + question.question
        [vector] = text_vectors(None, "query", embedder, [text], config)
        nodes = start_nodes(
            question.question, linked.linker, numbers, documents, vector, nearest
        )
        rows = [graph.document_id(name) for name in question.supporting]
        known_rows = [row for row in rows if row is not None]
        linked_question = LinkedQuestion(
            vector=vector,
            entities=nodes,
            weights=np.ones(len(nodes), dtype=np.float32),
            supporting=np.unique(np.array(known_rows, dtype=np.int64)),
        )
        asked.append(linked_question)
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, npt.NDArray[Any]] = {
        "edges": edges_of_nodes(graph).astype(np.int32),
        "documents": np.array([numbers.documents], dtype=np.int64),
        "nodes": vectors.nodes.astype(np.float16),
        "relations": vectors.relations.astype(np.float16),
    }
    if vectors.inverses is not None:
        arrays["inverses"] = vectors.inverses.astype(np.float16)
    write_arrays(folder / _NODES, arrays)
    write_questions(folder, labelled, asked)
    write_card(folder / _NETWORK, config.to_dict())
    return len(labelled), tuple(skipped)


@dataclass(frozen=True, slots=True)
class ReasonerExample:
    """Holds B questions over a graph of n nodes, the last of which are the documents."""

    graph: GFMGraph
    nodes: Floats
    """The vectors of the nodes, (n, text width)."""
    documents: int
    """The number of the first document's node."""
    vectors: Floats
    """The vectors of the questions, (B, text width)."""
    start: Floats
    """The weights of the nodes at which the questions start, (B, n)."""
    targets: Floats
    """1 for each supporting document, else 0, (B, documents)."""


def reasoner_example(
    sets: Sequence[ReasonerSet], batch: int, documents: int, rng: np.random.Generator
) -> ReasonerExample:
    """Draw `batch` questions of one set, and the part of its graph around `documents` documents; 0 for the
    whole graph.

    Raises:
        SettingsError: if no set has a question.
    """
    usable = [reasoner_set for reasoner_set in sets if reasoner_set.questions]
    if not usable:
        names = ", ".join(reasoner_set.name for reasoner_set in sets)
        raise SettingsError(f"{names} have no questions: train on other --sets")
    pools = [reasoner_set.questions for reasoner_set in usable]
    chosen, questions = draw_questions(pools, batch, rng)
    drawn = usable[chosen]
    starts = np.unique(np.concatenate([question.entities for question in questions]))
    supporting = np.concatenate([question.supporting for question in questions])
    needed = np.union1d(supporting, starts[starts >= drawn.documents] - drawn.documents)
    count = len(drawn.nodes) - drawn.documents
    others = rng.permutation(np.setdiff1d(np.arange(count), needed))
    if documents:
        others = others[: max(0, documents - len(needed))]
    graph, numbers = drawn.part(np.union1d(needed, others), starts)
    first = int(np.searchsorted(numbers, drawn.documents))
    start = np.zeros((len(questions), len(numbers)), dtype=np.float32)
    targets = np.zeros_like(start)
    for row, question in enumerate(questions):
        start[row, np.searchsorted(numbers, question.entities)] = 1
        targets[
            row, np.searchsorted(numbers, question.supporting + drawn.documents)
        ] = 1
    return ReasonerExample(
        graph=graph,
        nodes=drawn.nodes[numbers].astype(np.float32),
        documents=first,
        vectors=np.stack([question.vector for question in questions]),
        start=start,
        targets=targets[:, first:],
    )
