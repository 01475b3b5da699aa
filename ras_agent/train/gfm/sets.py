"""Sets to train on: a folder with a knowledge graph, and questions that are linked to it and embedded once.

A folder holds `graph`; `questions.jsonl`, one {"question", "supporting", "kind"} a line; and `questions.npz`, what the
graph knows of these questions, so that training reads numbers alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import IndexMismatch, IndexNotFound, IngestError, SettingsError
from ras_agent.eval.question_file import read_records
from ras_agent.tools.embed.embedders import query_vector
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.tools.kg.disk import read_kg_manifest
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker, Linking
from ras_agent.tools.retrieve.gfm import inverse_vectors, start_of

_KINDS = ("labelled", "pseudo")
_ARRAYS = ("vectors", "entities", "weights", "entity_ends", "supporting", "supporting_ends")
_REMEDY = "write the set anew with `python -m ras_agent.train.gfm.examples`"


@dataclass(frozen=True, slots=True)
class GFMQuestion:
    """Holds a question and the ids of the passages that support its answer.

    kind: "labelled" or "pseudo". start: the names of the entities that it starts from, where somebody has linked it.
    """

    question: str
    supporting: tuple[str, ...]
    kind: str = "labelled"
    start: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkedQuestion:
    """Holds a question in a graph's numbers.

    vector: (text width,), its sentence vector. entities, weights: (k,), where the network starts. supporting: (g,), the
    documents that support its answer.
    """

    vector: Floats
    entities: Ints
    weights: Floats
    supporting: Ints


class GFMSet:
    """Holds a knowledge graph and the questions that are linked to it."""

    def __init__(self, name: str, kg: KGIndex, questions: dict[str, list[LinkedQuestion]], config: GFMConfig) -> None:
        """Take the questions by kind, "labelled" and "pseudo"; those without an entity are left out."""
        self.name, self.kg, self.config = name, kg, config
        self.inverse = inverse_vectors(kg, config)
        usable = {kind: [one for one in some if len(one.entities)] for kind, some in questions.items()}
        self.labelled, self.pseudo = usable.get("labelled", []), usable.get("pseudo", [])


def load_sets(folders: Sequence[Path], config: GFMConfig, share: float = 1.0) -> list[GFMSet]:
    """Read the sets that ras_agent.train.gfm.examples wrote, with a share of the questions of each kind.

    Raises what `read_linked` and `KGIndex.open` raise, and IndexMismatch for questions linked to another graph.
    """
    sets = []
    for folder in folders:
        questions = {kind: share_of(some, share) for kind, some in read_linked(folder).items()}
        kg = KGIndex.open(folder / "graph")
        for one in (one for some in questions.values() for one in some):
            if one.entities.max(initial=-1) >= len(kg.entities) or one.supporting.max(initial=-1) >= len(kg.documents):
                raise IndexMismatch(f"{folder}: its questions are linked to another graph: write the set anew")
        sets.append(GFMSet(folder.name, kg, questions, config))
    return sets


def text_model_of(folders: Sequence[Path], width: int | None = None) -> tuple[str, int | None]:
    """Return the name and the width of the encoder that made the sets' vectors, "" and `width` if they have none.

    Raises IndexNotFound for a folder that is no set, IndexMismatch where vectors are not of `width` or of one encoder.
    """
    if missing := [str(folder) for folder in folders if not (folder / "questions.jsonl").is_file()]:
        raise IndexNotFound(f"no set at {', '.join(missing)}: write it with `python -m ras_agent.train.gfm.examples`")
    encoders = {str(folder): read_kg_manifest(folder / "graph").embedder for folder in folders}
    first, *others = dict.fromkeys(encoders.values())
    if others:
        listed = ", ".join(f"{folder}: {encoder or 'none'}" for folder, encoder in encoders.items())
        raise IndexMismatch(f"the sets hold vectors of several encoders ({listed}): write them with one")
    if first and width is not None and first.dimension != width:
        raise IndexMismatch(f"the sets hold vectors of {first}: train with --text-width {first.dimension}")
    return (first.name, first.dimension) if first else ("", width)


def share_of(questions: Sequence[LinkedQuestion], share: float) -> list[LinkedQuestion]:
    """Return a share of the questions, at least one, in their order.

    The choice is always the same, and a smaller share's questions are among a larger one's. Raises SettingsError for a
    share that is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise SettingsError(f"the share of the questions has to be above 0 and at most 1, got {share}")
    order = np.random.default_rng(0).permutation(len(questions))
    return [questions[at] for at in np.sort(order[: math.ceil(share * len(questions))])]


def link_questions(kg: KGIndex, questions: Sequence[GFMQuestion]) -> list[LinkedQuestion]:
    """Link questions to a graph. Pseudo questions, of which there are many, are linked by name alone.

    Raises ValueError for a supporting passage that the graph does not know, or a graph without vectors.
    """
    if kg.embedder is None:
        raise ValueError("the knowledge graph holds no vectors: build it with an embedder")
    known_starts = {one.question: one.start for one in questions if one.start}
    linkers = {
        "labelled": EntityLinker(kg, kg.embedder, linking=Linking(starts=known_starts)),
        "pseudo": EntityLinker(kg),
    }
    linked = []
    for one in questions:
        vector = query_vector(kg.embedder, one.question)
        start = start_of(linkers[one.kind].link(one.question), kg.document_frequency)
        supporting = [kg.document_id(name) for name in one.supporting]
        known = [number for number in supporting if number is not None]
        if len(known) < len(supporting):
            raise ValueError(
                f"the knowledge graph does not know all of {one.supporting}, which support {one.question!r}"
            )
        linked.append(LinkedQuestion(vector, start.entities, start.weights, np.unique(np.array(known, dtype=np.int64))))
    return linked


def write_linked(folder: Path, kg: KGIndex, questions: Sequence[GFMQuestion]) -> None:
    """Write questions.jsonl and questions.npz into `folder`."""
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        for one in questions:
            file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
    linked = link_questions(kg, questions)
    arrays = {
        "vectors": np.array([one.vector for one in linked], dtype=np.float16),
        "entities": np.concatenate([one.entities for one in linked]),
        "weights": np.concatenate([one.weights for one in linked]),
        "entity_ends": np.cumsum([0, *(len(one.entities) for one in linked)]),
        "supporting": np.concatenate([one.supporting for one in linked]),
        "supporting_ends": np.cumsum([0, *(len(one.supporting) for one in linked)]),
    }
    np.savez(folder / "questions.npz", allow_pickle=False, **arrays)


def read_linked(folder: Path) -> dict[str, list[LinkedQuestion]]:
    """Read the questions by kind. Raises OSError, or IngestError for a damaged file or two that do not fit together."""
    kinds = [str(row.data.get("kind")) for row in read_records(folder / "questions.jsonl")]
    if unknown := sorted({*kinds} - {*_KINDS}):
        raise IngestError(f"{folder / 'questions.jsonl'}: no kind of question: {', '.join(unknown)}; {_REMEDY}")
    try:
        with np.load(folder / "questions.npz", allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in _ARRAYS}
    except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise IngestError(f"{folder / 'questions.npz'}: damaged ({error}): {_REMEDY}") from error
    counts = {len(arrays["vectors"]), len(arrays["entity_ends"]) - 1, len(arrays["supporting_ends"]) - 1}
    if counts != {len(kinds)}:
        held = " or ".join(str(count) for count in sorted(counts))
        raise IngestError(f"{folder}: questions.jsonl holds {len(kinds)} questions, questions.npz {held}: {_REMEDY}")
    linked: dict[str, list[LinkedQuestion]] = {}
    places = pairwise(arrays["entity_ends"]), pairwise(arrays["supporting_ends"])
    for kind, vector, (low, high), (first, last) in zip(kinds, arrays["vectors"], *places, strict=True):
        start = arrays["entities"][low:high], arrays["weights"][low:high]
        one = LinkedQuestion(vector.astype(np.float32), *start, arrays["supporting"][first:last])
        linked.setdefault(kind, []).append(one)
    return linked
