"""Reads and writes this package's plain format of questions (id, question, answers, metadata) and passages (id,
text, title).

    {"id": "q1", "question": "Where was Bell born?", "answers": ["Edinburgh"], "supporting_ids": ["bell"]}
    {"id": "bell", "text": "Bell was born in Edinburgh.", "title": "Bell"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ras_agent.contracts.records import JSON, Passage
from ras_agent.eval.formats.exported import gold_of, lines_of_results
from ras_agent.eval.formats.registry import Format, Look, registered
from ras_agent.eval.question import (
    REST,
    Question,
    context_items,
    context_of_item,
    gold_titles,
    read_grades,
)
from ras_agent.eval.question_file import QuestionRecord, unpacked
from ras_agent.eval.run.result import Result

_OWN = frozenset(
    {
        REST,
        "id",
        "_id",
        "question",
        "answers",
        "supporting_ids",
        "supporting_titles",
        "type",
        "contexts",
        "metadata",
    }
)

_STRUCTURED = ("decomposition", "choices", "triples", "graph", "supporting_facts")
_ANSWERS = ("answers", "ground_truths", "ground_truth", "answer")
"""Keys of gold answers. In a record with a ground truth, `answer` is a system's answer."""


def plain_question(record: QuestionRecord) -> Question:
    """Return the question of a plain record, which has id, question and answers.

    Without an id, the row's number is used. Optional are supporting_ids or supporting_titles, type, contexts
    (objects with text, title, id) and metadata. Keys of the metadata (decomposition, hops, choices, label, ...)
    may also be keys of the record itself.
    """
    answers_key = record.first_key(*_ANSWERS)
    answers = _answers(record, answers_key)
    metadata = {}
    for key, value in record.data.items():
        if key not in _OWN and key != answers_key and value is not None:
            metadata[key] = value
    if "metadata" in record:
        nested = record.inside(record.data["metadata"], "metadata")
        metadata = {**nested.data, **metadata}
    for key in _STRUCTURED:
        if key in metadata:
            metadata[key] = unpacked(metadata[key])
    known = QuestionRecord(metadata, record.where)
    _check_known(record, known)
    if "hops" in known:
        metadata["hops"] = known.whole("hops")
    gold = record.first_key("supporting_ids", "supporting_titles")
    if gold:
        supporting = record.texts(gold)
    else:
        supporting = gold_titles(known, "supporting_facts")
    return Question(
        id=record.identity,
        question=record.text("question"),
        answers=answers,
        supporting=supporting,
        by_title=gold != "supporting_ids",
        type=record.text("type", default=""),
        contexts=_contexts(record),
        metadata=metadata,
    )


def _answers(record: QuestionRecord, key: str) -> tuple[str, ...]:
    """Return the gold answers; () for an empty list.

    Raises:
        IngestError: the answers or the question are missing.
    """
    answers: tuple[str, ...] = ()
    if key:
        answers = record.answers(key)
    is_known = answers or (key and record.data[key] in ([], "[]"))
    for name, is_there in (("question", "question" in record), ("answers", is_known)):
        if not is_there:
            raise record.error(
                f"no key {name!r}, found {record.listed_keys}; a question has question and answers, and may have an id"
            )
    return answers


def _check_known(record: QuestionRecord, first: QuestionRecord) -> None:
    """Raise IngestError for metadata that the properties of a Question or the metrics cannot read."""
    for step in first.objects("decomposition", default=()):
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
    """Raise IngestError for a graph that is not {"nodes": [text], "edges": [[node number, text, node number]]}."""
    count = len(graph.texts("nodes"))
    for number, edge in enumerate(graph.items("edges"), 1):
        if not isinstance(edge, list) or len(edge) != 3 or not isinstance(edge[1], str):
            raise record.error(
                f"edge {number} of 'graph' should be [node, text, node], with the nodes' numbers, found {edge!r:.80}"
            )
        if not all(
            isinstance(end, int) and 0 <= end < count for end in (edge[0], edge[2])
        ):
            raise record.error(
                f"edge {number} of 'graph' should join nodes from 0 to {count - 1}, found {edge!r:.80}"
            )


def _contexts(record: QuestionRecord) -> tuple[Passage, ...]:
    """Return the passages under `contexts`. A passage without an id gets one made from its content."""
    passages = []
    for place, item in context_items(record, "contexts"):
        passage = context_of_item(record, item, place)
        if isinstance(item, Mapping) and "id" in item:
            name = record.inside(item, place).text("id")
            passage = Passage(name, passage.text, passage.title)
        passages.append(passage)
    return tuple(passages)


def plain_passage(record: QuestionRecord) -> Sequence[Passage]:
    """Return the passage of a record, in a list: its text, and its title and id if it has them.

    Without an id, the row's number is used.
    """
    for key in ("text", "title"):
        if key in record and not isinstance(record.data[key], str):
            raise record.error(
                f"{key!r} should be text, found {record.data[key]!r:.80}"
            )
    return [
        Passage(record.identity, record.text("text"), record.text("title", default=""))
    ]


def plain_row(result: Result) -> JSON:
    """Return a result's question in the plain format."""
    row = {
        "id": result.id,
        "question": result.question,
        "answers": list(result.answers),
        **gold_of(result),
        "type": result.type,
    }
    if result.gold_hops:
        row["hops"] = result.gold_hops
    return row


PLAIN = registered(
    Format(
        name="jsonl",
        title="plain questions and passages",
        # a benchmark's record may have these keys too, but names its contexts otherwise
        question=Look.of("id", "question", "answers", without=("ctxs", "context")),
        read_question=plain_question,
        passage=Look.of("text"),
        read_passages=plain_passage,
        write_results=lines_of_results(plain_row),
    )
)
