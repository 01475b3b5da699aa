"""Questions with gold answers and gold passages, from JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ras_agent.errors import IngestError
from ras_agent.records import Passage

__all__ = ["Question", "load_passages", "load_questions"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `supporting` holds passage ids, or titles where the file names gold passages by title."""

    id: str
    question: str
    answers: tuple[str, ...]
    supporting: tuple[str, ...] = ()
    by_title: bool = False
    type: str = ""


def load_questions(path: str | Path) -> list[Question]:
    """Read one JSON object a line: id, question, answers, and supporting_ids or supporting_titles, type.

    Raises IngestError with the line's number for a line that is not such an object.
    """
    return [_question(record, where) for record, where in _records(path)]


def load_passages(path: str | Path) -> list[Passage]:
    """Read one JSON object a line: id, text, optional title. Raises IngestError with the line's number."""
    passages = []
    for record, where in _records(path):
        if not {"id", "text"} <= record.keys():
            raise IngestError(f"{where}: expected keys id and text, found {', '.join(record)}")
        passages.append(Passage.from_dict({key: record[key] for key in ("id", "text", "title") if key in record}))
    return passages


def _records(path: str | Path) -> Iterator[tuple[dict[str, Any], str]]:
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path} line {number}"
            try:
                record = json.loads(line)
            except ValueError as error:
                raise IngestError(f"{where}: not JSON ({error})") from error
            if not isinstance(record, dict):
                raise IngestError(f"{where}: expected a JSON object, found {type(record).__name__}")
            yield record, where


def _question(record: dict[str, Any], where: str) -> Question:
    try:
        ids, titles = record.get("supporting_ids"), record.get("supporting_titles", ())
        return Question(
            id=str(record["id"]),
            question=record["question"],
            answers=tuple(record["answers"]),
            supporting=tuple(ids if ids is not None else titles),
            by_title=ids is None,
            type=record.get("type", ""),
        )
    except KeyError as missing:
        raise IngestError(f"{where}: no key {missing}; a question has id, question, answers") from missing
