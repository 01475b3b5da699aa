"""Reads and writes training sets for the GFM network: a folder with a knowledge graph, and questions linked to
it.

A folder holds `graph`, its arrays; `questions.jsonl`, one {"question", "supporting", "kind"} per line; and
`questions.npz`, the links of these questions to the graph, so that training reads only numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import (
    IndexMismatch,
    IndexNotFound,
    IngestError,
)
from ras_agent.eval.question_file import read_records
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.tools.kg.disk import read_kg_manifest
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, Linking
from ras_agent.tools.retrieve.gfm import inverse_vectors, start_of
from ras_agent.train.data import write_rows

GRAPH = "graph"
_KINDS = ("labelled", "pseudo")
_ARRAYS = (
    "vectors",
    "entities",
    "weights",
    "entity_ends",
    "supporting",
    "supporting_ends",
)
REMEDY = "write the set again with `ras-agent kg examples`"


@dataclass(frozen=True, slots=True)
class GFMQuestion:
    """Holds a question with the ids of the passages that support its answer."""

    question: str
    supporting: tuple[str, ...]
    kind: str = "labelled"
    """"labelled" or "pseudo"."""
    start: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The names of the nodes at which it starts, by type of node, if it is already linked to the graph."""


@dataclass(frozen=True, slots=True)
class LinkedQuestion:
    """Holds a question as numbers: its vector, and its links to a graph."""

    vector: Floats
    """Its sentence vector, (text width,)."""
    entities: Ints
    """The numbers of the entities at which the network starts, (k,)."""
    weights: Floats
    """The weights of these entities, (k,)."""
    supporting: Ints
    """The numbers of the documents that support its answer, (g,)."""


class GFMSet:
    """Holds a knowledge graph, and the questions that are linked to it."""

    def __init__(
        self,
        name: str,
        kg: KGIndex,
        questions: dict[str, list[LinkedQuestion]],
        config: GFMConfig,
    ) -> None:
        """Store the questions by kind, "labelled" and "pseudo". Questions without an entity are left out."""
        self.name = name
        self.kg = kg
        self.config = config
        self.inverse = inverse_vectors(kg, config)
        self.labelled = _usable(questions, "labelled")
        self.pseudo = _usable(questions, "pseudo")


def _usable(
    questions: Mapping[str, Sequence[LinkedQuestion]], kind: str
) -> list[LinkedQuestion]:
    return [question for question in questions.get(kind, ()) if len(question.entities)]


def load_sets(
    folders: Sequence[Path], config: GFMConfig, share: float = 1.0
) -> list[GFMSet]:
    """Read the sets in `folders`, with a share of the questions of each kind.

    Args:
        folders: Folders that ras_agent.train.gfm.examples wrote.
        config: The network that will read them.
        share: The share of the questions, above 0 and at most 1 (see `share_of`).

    Raises:
        IndexMismatch: If questions are linked to another graph.
        RasError, OSError: As `read_linked` and `KGIndex.of_file` raise it.
    """
    sets = []
    for folder in folders:
        kg = KGIndex.of_file(folder / GRAPH, REMEDY)
        questions = {}
        for kind, of_kind in read_linked(folder).items():
            questions[kind] = share_of(of_kind, share)
            for question in questions[kind]:
                entity = question.entities.max(initial=-1)
                document = question.supporting.max(initial=-1)
                if entity >= len(kg.entities) or document >= len(kg.documents):
                    raise IndexMismatch(
                        f"{folder}: its questions are linked to another graph: {REMEDY}"
                    )
        sets.append(GFMSet(folder.name, kg, questions, config))
    return sets


def text_model_of(
    folders: Sequence[Path], width: int | None = None
) -> tuple[str, int | None]:
    """Return the name of the encoder that made the sets' vectors, and the length of the vectors.

    If no set has vectors, the name is "" and the length is `width`.

    Raises:
        IndexNotFound: If a folder is not a set.
        IndexMismatch: If the vectors are of different encoders or do not have `width` numbers.
    """
    if missing := [
        str(folder) for folder in folders if not (folder / "questions.jsonl").is_file()
    ]:
        raise IndexNotFound(
            f"no set at {', '.join(missing)}: write it with `ras-agent kg examples`"
        )
    encoders = {
        str(folder): read_kg_manifest(folder / GRAPH, REMEDY).embedder
        for folder in folders
    }
    first, *others = dict.fromkeys(encoders.values())
    if others:
        listed = ", ".join(
            f"{folder}: {encoder or 'no vectors'}"
            for folder, encoder in encoders.items()
        )
        raise IndexMismatch(
            f"the sets have vectors of several encoders ({listed}): write all sets with one encoder"
        )
    if first and width is not None and first.dimension != width:
        raise IndexMismatch(
            f"--text-width is {width}, but the sets have vectors of {first}: train with --text-width {first.dimension}"
        )
    if first:
        return (first.name, first.dimension)
    return ("", width)


def share_of(questions: Sequence[LinkedQuestion], share: float) -> list[LinkedQuestion]:
    """Return a share of the questions, at least one, in their order.

    The choice is always the same, and the questions of a smaller share are among those of a larger one.
    """
    order = np.random.default_rng(0).permutation(len(questions))
    return [
        questions[place]
        for place in np.sort(order[: math.ceil(share * len(questions))])
    ]


def link_questions(
    kg: KGIndex, questions: Sequence[GFMQuestion]
) -> list[LinkedQuestion]:
    """Return the questions linked to a graph. Pseudo questions, of which there are many, are linked only by
    name.

    Raises:
        ValueError: if a supporting passage is not in the graph, or the graph has no vectors.
    """
    if kg.embedder is None:
        raise ValueError(
            "the knowledge graph holds no vectors: build it again with `ras-agent kg build INDEX --embedder minilm`"
        )
    starts = {
        question.question: question.start for question in questions if question.start
    }
    linkers = {
        "labelled": EntityLinker(kg, kg.embedder, linking=Linking(starts=starts)),
        "pseudo": EntityLinker(kg),
    }
    linked_questions = []
    for question in questions:
        linked = linkers[question.kind].link(question.question)
        start = start_of(linked, kg.document_frequency)
        numbers = [kg.document_id(name) for name in question.supporting]
        documents = [number for number in numbers if number is not None]
        if len(documents) < len(numbers):
            raise ValueError(
                f"the knowledge graph lacks some of the passages {question.supporting}, which support {question.question!r}: "
                "add them to the index, and build the graph again"
            )
        linked_question = LinkedQuestion(
            vector=query_vector(kg.embedder, question.question),
            entities=start.entities,
            weights=start.weights,
            supporting=np.unique(np.array(documents, dtype=np.int64)),
        )
        linked_questions.append(linked_question)
    return linked_questions


def write_linked(folder: Path, kg: KGIndex, questions: Sequence[GFMQuestion]) -> None:
    """Link questions to the graph `kg`, and write questions.jsonl and questions.npz into `folder`."""
    write_questions(folder, questions, link_questions(kg, questions))


def write_questions(
    folder: Path,
    questions: Sequence[GFMQuestion],
    linked_questions: Sequence[LinkedQuestion],
) -> None:
    """Write questions.jsonl and questions.npz into `folder`.

    `linked_questions` are the same questions, linked to the graph, in the same order.
    """
    write_rows(folder / "questions.jsonl", map(asdict, questions))
    vectors = []
    entities = []
    weights = []
    supporting = []
    for linked in linked_questions:
        vectors.append(linked.vector)
        entities.append(linked.entities)
        weights.append(linked.weights)
        supporting.append(linked.supporting)
    np.savez(
        folder / "questions.npz",
        allow_pickle=False,
        vectors=np.array(vectors, dtype=np.float16),
        entities=_joined(entities, np.int64),
        weights=_joined(weights, np.float32),
        entity_ends=_ends(entities),
        supporting=_joined(supporting, np.int64),
        supporting_ends=_ends(supporting),
    )


def _joined(
    arrays: Sequence[npt.NDArray[Any]], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays])


def _ends(arrays: Sequence[npt.NDArray[Any]]) -> Ints:
    """Return the start of each of the joined arrays, followed by the end of the last."""
    return np.cumsum([0, *map(len, arrays)])


def read_linked(folder: Path) -> dict[str, list[LinkedQuestion]]:
    """Return the linked questions of a set's folder, by kind: "labelled" and "pseudo".

    Raises:
        OSError: If a file cannot be opened.
        IngestError: If a file is damaged, or the two files do not fit together.
    """
    kinds = [
        str(row.data.get("kind")) for row in read_records(folder / "questions.jsonl")
    ]
    unknown = sorted({*kinds} - {*_KINDS})
    if unknown:
        raise IngestError(
            f"{folder / 'questions.jsonl'}: unknown kinds of questions: {', '.join(unknown)}; {REMEDY}"
        )
    try:
        with np.load(folder / "questions.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in _ARRAYS}
    except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise IngestError(
            f"{folder / 'questions.npz'}: damaged ({error}): {REMEDY}"
        ) from error
    counts = {
        len(arrays["vectors"]),
        len(arrays["entity_ends"]) - 1,
        len(arrays["supporting_ends"]) - 1,
    }
    if counts != {len(kinds)}:
        numbers = " or ".join(str(count) for count in sorted(counts))
        raise IngestError(
            f"{folder}: questions.jsonl holds {len(kinds)} questions, questions.npz {numbers}: {REMEDY}"
        )
    questions: dict[str, list[LinkedQuestion]] = {}
    for place, kind in enumerate(kinds):
        low, high = arrays["entity_ends"][place : place + 2]
        first, last = arrays["supporting_ends"][place : place + 2]
        question = LinkedQuestion(
            vector=arrays["vectors"][place].astype(np.float32),
            entities=arrays["entities"][low:high],
            weights=arrays["weights"][low:high],
            supporting=arrays["supporting"][first:last],
        )
        questions.setdefault(kind, []).append(question)
    return questions
