"""Questions linked to a knowledge graph and embedded once, so that training reads numbers alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ras_agent.errors import IngestError
from ras_agent.eval.question_file import read_records
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker
from ras_agent.tools.retrieve.gfm import start_of
from ras_agent.train.gfm.batches import Asked

__all__ = ["KINDS", "Question", "linked", "read_linked", "write_linked"]

KINDS = ("labelled", "pseudo")
_ARRAYS = ("vectors", "entities", "weights", "entity_ends", "supporting", "supporting_ends")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the ids of the passages that support its answer. kind: "labelled" or "pseudo"."""

    question: str
    supporting: tuple[str, ...]
    kind: str = "labelled"


def linked(kg: KGIndex, questions: Sequence[Question]) -> list[Asked]:
    """What the graph makes of questions. Pseudo questions, of which there are many, are linked by name alone.

    Raises ValueError for a supporting passage that the graph does not know, or a graph without vectors.
    """
    if kg.embedder is None:
        raise ValueError("the knowledge graph holds no vectors: build it with an embedder")
    linkers = {"labelled": EntityLinker(kg, kg.embedder), "pseudo": EntityLinker(kg)}
    vectors = kg.embedder.embed([one.question for one in questions])
    found = []
    for one, vector in zip(questions, vectors, strict=True):
        start = start_of(linkers[one.kind].link(one.question), kg.document_frequency)
        supporting = [kg.document_id(name) for name in one.supporting]
        known = [number for number in supporting if number is not None]
        if len(known) < len(supporting):
            raise ValueError(
                f"the knowledge graph does not know all of {one.supporting}, which support {one.question!r}"
            )
        found.append(Asked(vector, start.entities, start.weights, np.unique(np.array(known, dtype=np.int64))))
    return found


def write_linked(folder: Path, kg: KGIndex, questions: Sequence[Question]) -> None:
    """Write questions.jsonl and questions.npz into `folder`."""
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        for one in questions:
            file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
    asked = linked(kg, questions)
    arrays = {
        "vectors": np.array([one.vector for one in asked], dtype=np.float16),
        "entities": np.concatenate([one.entities for one in asked]),
        "weights": np.concatenate([one.weights for one in asked]),
        "entity_ends": np.cumsum([0, *(len(one.entities) for one in asked)]),
        "supporting": np.concatenate([one.supporting for one in asked]),
        "supporting_ends": np.cumsum([0, *(len(one.supporting) for one in asked)]),
    }
    np.savez(folder / "questions.npz", allow_pickle=False, **arrays)


def read_linked(folder: Path) -> dict[str, list[Asked]]:
    """The questions by kind. Raises OSError, or IngestError for a damaged file or two that do not fit together."""
    remedy = "write the set anew with `python -m ras_agent.train.gfm.examples`"
    kinds = [str(row.data.get("kind")) for row in read_records(folder / "questions.jsonl")]
    if strange := sorted({*kinds} - {*KINDS}):
        raise IngestError(f"{folder / 'questions.jsonl'}: no kind of question: {', '.join(strange)}; {remedy}")
    try:
        with np.load(folder / "questions.npz", allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in _ARRAYS}
    except (BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise IngestError(f"{folder / 'questions.npz'}: damaged ({error}): {remedy}") from error
    counts = {len(arrays["vectors"]), len(arrays["entity_ends"]) - 1, len(arrays["supporting_ends"]) - 1}
    if counts != {len(kinds)}:
        held = " or ".join(str(count) for count in sorted(counts))
        raise IngestError(f"{folder}: questions.jsonl tells {len(kinds)} questions, questions.npz {held}: {remedy}")
    asked: dict[str, list[Asked]] = {}
    places = pairwise(arrays["entity_ends"]), pairwise(arrays["supporting_ends"])
    for kind, vector, (low, high), (first, last) in zip(kinds, arrays["vectors"], *places, strict=True):
        start = arrays["entities"][low:high], arrays["weights"][low:high]
        one = Asked(vector.astype(np.float32), *start, arrays["supporting"][first:last])
        asked.setdefault(kind, []).append(one)
    return asked
