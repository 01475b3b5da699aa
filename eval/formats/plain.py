"""The plain form, our own: id, question, answers and other facts about a question; id, text and title of a passage.

{"id": "q1", "question": "Where was Bell born?", "answers": ["Edinburgh"], "supporting_ids": ["bell"]}
{"id": "bell", "text": "Bell was born in Edinburgh.", "title": "Bell"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ras_agent.eval.formats.exported import Exported, write_lines
from ras_agent.eval.formats.registry import Format, Look, registered
from ras_agent.eval.question import REST, Question, context_passage, read_grades
from ras_agent.eval.question_file import QuestionRecord, unpacked
from ras_agent.eval.run.result import Result
from ras_agent.records import JSON, Passage

_OWN = frozenset(
    {
        REST,
        "id",
        "question",
        "answers",
        "supporting_ids",
        "supporting_titles",
        "type",
        "contexts",
        "metadata",
    }
)

_STRUCTURED = ("contexts", "metadata", "decomposition", "choices", "triples", "graph")


def plain_question(record: QuestionRecord) -> Question:
    """Return the question of a plain record, which has id, question and answers. Without an id it is the row's number.

    Optional: supporting_ids or supporting_titles, type, contexts (objects with text, title, id), metadata, and any of
    metadata's keys (decomposition, hops, choices, label, ...) next to them.
    """
    record = _completed(record)
    by_id = "supporting_ids" in record
    gold = "supporting_titles"
    if by_id:
        gold = "supporting_ids"
    metadata = {}
    for key, value in record.data.items():
        if key not in _OWN and value is not None:
            metadata[key] = value
    if "metadata" in record:
        metadata = {
            **record.inside(record.data["metadata"], "metadata").data,
            **metadata,
        }
    known = QuestionRecord(metadata, record.where)
    _check_known(record, known)
    if "hops" in known:
        metadata["hops"] = known.whole("hops")
    return Question(
        id=record.text("id"),
        question=record.text("question"),
        answers=record.texts("answers"),
        supporting=record.texts(gold) if gold in record else (),
        by_title=not by_id,
        type=record.text("type", default=""),
        contexts=tuple(map(_context, record.objects("contexts")))
        if "contexts" in record
        else (),
        metadata=metadata,
    )


def _completed(record: QuestionRecord) -> QuestionRecord:
    """Return a record with its lists and objects read, one answer as `answers`, and an id. Raises IngestError."""
    data = dict(record.data)
    for key in _STRUCTURED:
        if key in record:
            data[key] = unpacked(data[key])
    if "answer" in record and "answers" not in record:
        data["answers"] = data.pop("answer")
    if data.get("id") is None:
        data["id"] = record.number
    for key in ("question", "answers"):
        if data.get(key) is None:
            keys = ", ".join(record.data)
            raise record.error(
                f"no key {key!r}, found {keys}; a question has question and answers, and may have an id"
            )
    return replace(record, data=data)


def _check_known(record: QuestionRecord, first: QuestionRecord) -> None:
    """Raise IngestError for metadata that the properties of a Question or the metrics could not read."""
    for step in first.objects("decomposition") if "decomposition" in first else ():
        step.text("question")
        step.text("answer")
    read_grades(first.data, record.where)
    if "choices" in first:
        first.inside(first.data["choices"], "choices")
    if "triples" in first:
        first.triples("triples")
    if "graph" in first and isinstance(first.data["graph"], Mapping):
        _check_graph(record, first.inside(first.data["graph"], "graph"))
    elif "graph" in first:
        first.triples("graph")


def _check_graph(record: QuestionRecord, graph: QuestionRecord) -> None:
    """Raise IngestError for a graph that is not {"nodes": [text], "edges": [[place, text, place]]}."""
    count = len(graph.texts("nodes"))
    for number, edge in enumerate(graph.items("edges"), 1):
        if not isinstance(edge, list) or len(edge) != 3 or not isinstance(edge[1], str):
            raise record.error(
                f"edge {number} of 'graph' should be [place, text, place], found {edge!r:.80}"
            )
        if not all(
            isinstance(end, int) and 0 <= end < count for end in (edge[0], edge[2])
        ):
            raise record.error(
                f"edge {number} of 'graph' should join places from 0 to {count - 1}, found {edge!r:.80}"
            )


def _context(record: QuestionRecord) -> Passage:
    title = record.text("title", default="")
    text = record.text("text")
    if "id" in record:
        return Passage(record.text("id"), text, title)
    return context_passage(title, text)


def plain_passage(record: QuestionRecord) -> Sequence[Passage]:
    """Return the one passage of a record with text, and optional id and title; without an id it has its number."""
    for key in ("text", "title"):
        if key in record and not isinstance(record.data[key], str):
            raise record.error(
                f"{key!r} should be text, found {record.data[key]!r:.80}"
            )
    return [
        Passage(record.identity, record.text("text"), record.text("title", default=""))
    ]


def plain_row(result: Result) -> JSON:
    """Return a result's question in the plain form."""
    gold = {
        "supporting_titles" if result.by_title else "supporting_ids": list(
            result.supporting
        )
    }
    if result.gold_hops:
        hops = {"hops": result.gold_hops}
    else:
        hops = {}
    row = {
        "id": result.id,
        "question": result.question,
        "answers": list(result.answers),
    }
    return {**row, **(gold if result.supporting else {}), "type": result.type, **hops}


def _write(run: Exported, path: Path) -> Sequence[Path]:
    return write_lines(
        path, ({**plain_row(result), **run.rest_of(result)} for result in run.results)
    )


PLAIN = registered(
    Format(
        name="jsonl",
        title="plain questions and passages",
        # a benchmark's own record may have these keys too, and its contexts under another
        question=Look.of("id", "question", "answers", without=("ctxs", "context")),
        read_question=plain_question,
        passage=Look.of("text"),
        read_passages=plain_passage,
        write_results=_write,
    )
)
