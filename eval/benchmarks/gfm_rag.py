"""Questions in gfm-rag's layout: raw/test.json or processed/stage1/test.json, with the names of what supports them."""

from __future__ import annotations

from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord


def _read(record: QuestionRecord) -> Question:
    """Return the question of a record with `id`, `question`, `answer`, `answer_aliases` and `supporting_documents`.

    The nodes that it starts from, where somebody has linked it, are its metadata `start_nodes`: names by type of node.
    """
    targets = record.data.get("target_nodes")
    if targets:
        documents = record.inside(targets, "target_nodes")
    else:
        documents = QuestionRecord({}, record.where)
    if "supporting_documents" in record:
        supporting = record.texts("supporting_documents")
    else:
        if "document" in documents:
            supporting = documents.texts("document")
        else:
            supporting = ()
    if "answer" in record:
        answers = record.texts("answer")
    else:
        answers = ()
    if "answer_aliases" in record:
        aliases = record.texts("answer_aliases")
    else:
        aliases = ()
    if "start_nodes" in record:
        starts = record.inside(record.data["start_nodes"], "start_nodes")
    else:
        starts = None
    if starts:
        nodes = {kind: list(starts.texts(kind)) for kind in starts.data}
    else:
        nodes = {}
    return Question(
        id=record.text("id") if "id" in record else str(record.number),
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
        gold_by="id",
    )
)
