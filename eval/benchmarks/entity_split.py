"""A split of questions by the entity they start from, for sets without an official one: no entity is in two parts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal, get_args

from ras_agent.eval.question import Question
from ras_agent.text.canonical import canonical_key

__all__ = ["Part", "of_part", "part_of"]

Part = Literal["train", "dev", "test"]
_PARTS: tuple[Part, ...] = ("train",) * 6 + ("dev",) * 2 + ("test",) * 2


def part_of(question: Question) -> Part:
    """60 % train, 20 % dev, 20 % test of the entities, by a hash of the first of `question_entities`.

    Raises ValueError for a question that does not say what it starts from.
    """
    entities = question.metadata.get("question_entities") or ()
    if not entities:
        raise ValueError(f"question {question.id} has no question_entities to split by")
    digest = hashlib.blake2b(canonical_key(str(entities[0])).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return _PARTS[int.from_bytes(digest, "little") % len(_PARTS)]


def of_part(questions: Iterable[Question], part: str) -> list[Question]:
    """The questions of one part. Raises ValueError for a part that is none."""
    if part not in get_args(Part):
        raise ValueError(f"unknown part {part!r}; known: {', '.join(get_args(Part))}")
    return [question for question in questions if part_of(question) == part]
