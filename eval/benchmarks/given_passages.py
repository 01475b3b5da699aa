"""Passages that a record brings along: what a published retriever found for the question."""

from __future__ import annotations

from ras_agent.eval.run.question_file import Record
from ras_agent.eval.run.questions import context_passage
from ras_agent.records import Passage

__all__ = ["given_passages"]


def given_passages(record: Record, *keys: str) -> tuple[Passage, ...]:
    """The passages under the first of `keys` that is there, best first, each once; none without such a key.

    A passage is an object with `text` (or `paragraph_text`, `content`) and optional `title` (`wikipage`), or a string.
    """
    for key in keys:
        if key in record:
            read = (_passage(record, item, f"{key} {number}") for number, item in enumerate(record.items(key), 1))
            return tuple({passage.id: passage for passage in read}.values())
    return ()


def _passage(record: Record, item: object, place: str) -> Passage:
    if isinstance(item, str):
        return context_passage("", item)
    inner = record.inside(item, place)
    title = next((inner.text(key) for key in ("title", "wikipage") if key in inner), "")
    kept = {key: inner.data[key] for key in ("id", "score", "is_supporting") if key in inner}
    return context_passage(title, inner.text("text", "paragraph_text", "content"), **kept)
