"""The record that HotpotQA and 2WikiMultihopQA share: contexts as titled sentences, gold facts as (title, sentence)."""

from __future__ import annotations

from typing import Any

from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.records import Passage

__all__ = ["titled_sentences_question"]


def titled_sentences_question(record: QuestionRecord) -> Question:
    """`_id`, `question`, `answer`, `type`, `context` and `supporting_facts`; 2Wiki also `evidences`.

    A test set has no answers and no gold facts. Also reads the column form ({"title": [...], "sentences": [...]}) of
    data set hubs.
    """
    gold = _pairs(record, "supporting_facts", ("title", "sent_id")) if "supporting_facts" in record else []
    answer = (record.text("answer"),) if record.data.get("answer") else ()
    metadata: dict[str, Any] = {"supporting_facts": [[title, number] for title, number in gold]}
    if "level" in record:
        metadata["level"] = record.text("level")
    if "evidences" in record:
        metadata["triples"] = record.triples("evidences")
    return Question(
        id=record.text("_id", "id"),
        question=record.text("question"),
        answers=answer,
        supporting=tuple(dict.fromkeys(str(title) for title, _ in gold)),
        by_title=True,
        type=record.text("type") if "type" in record else "",
        contexts=tuple(_passage(record, *pair) for pair in _pairs(record, "context", ("title", "sentences"))),
        metadata=metadata,
    )


def _pairs(record: QuestionRecord, key: str, columns: tuple[str, str]) -> list[tuple[Any, Any]]:
    value = record.data.get(key)
    if isinstance(value, dict):
        inner = record.inside(value, key)
        first, second = inner.items(columns[0]), inner.items(columns[1])
        if len(first) != len(second):
            raise inner.error(f"{len(first)} x {columns[0]} but {len(second)} x {columns[1]}")
        return list(zip(first, second, strict=True))
    for item in (items := record.items(key)):
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise record.error(f"{key!r} should hold [{', '.join(columns)}] pairs, found {item!r:.80}")
    return [(first, second) for first, second in items]


def _passage(record: QuestionRecord, title: Any, sentences: Any) -> Passage:
    if isinstance(sentences, str) or not all(isinstance(sentence, str) for sentence in sentences):
        raise record.error(f"context {title!r} should have a list of sentences, found {sentences!r:.80}")
    # HotpotQA's sentences begin with their space, 2Wiki's do not
    return context_passage(str(title), " ".join(sentence.strip() for sentence in sentences if sentence.strip()))
