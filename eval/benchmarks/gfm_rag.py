"""Reads questions in gfm-rag's layout: raw/test.json or processed/stage1/test.json, with supporting documents
by name.
"""

from __future__ import annotations

from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord


def _read(record: QuestionRecord) -> Question:
    """Return the question of a record with `id`, `question`, `answer`, `answer_aliases` and
    `supporting_documents`.

    If the record has nodes of the graph from which the search starts, their names by type are in the metadata
    as `start_nodes`.
    """
    targets = record.data.get("target_nodes") or {}
    documents = record.inside(targets, "target_nodes")
    supporting = record.texts(
        "supporting_documents", default=documents.texts("document", default=())
    )
    answers = record.texts("answer", default=())
    aliases = record.texts("answer_aliases", default=())
    starts = record.inside(record.data.get("start_nodes") or {}, "start_nodes")
    nodes = {kind: list(starts.texts(kind)) for kind in starts.data}
    return Question(
        id=record.identity,
        question=record.text("question"),
        answers=tuple(dict.fromkeys((*answers, *aliases))),
        supporting=tuple(dict.fromkeys(supporting)),
        metadata={"start_nodes": nodes} if nodes else {},
    )


GFM_RAG = registered(
    Benchmark(
        name="gfm-rag",
        title="gfm-rag's layout",
        source="write an array of objects: id, question, answer, supporting_documents; `ras-agent kg build INDEX --gfm "
        "DATA/NAME` makes the index that their names are of",
        read=_read,
        metrics=(
            "em",
            "f1",
            "recall@2",
            "recall@5",
            "all_recall@5",
            "mrr",
            "sufficiency_precision",
        ),
        files={"test": "test.json", "train": "train.json"},
    )
)
