"""Reads PathQuestion (Zhou et al., 2018): template questions along two or three relations of a small knowledge base.

There is no official split; `part_of` splits questions by the entity they start from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

from ras_agent.contracts.errors import IngestError
from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.text.canonical import canonical_key
from ras_agent.text.lines import lines_of


def _read(record: QuestionRecord) -> Question:
    """Return the question of a line of the official file, or of an object with q_entity, a_entity and gold_path.

    Its number of hops is the number of relations in its path.
    """
    if "gold_path" in record:
        path = record.triples("gold_path")
        answers = record.texts("a_entity")
        start = list(record.texts("q_entity"))
    else:
        answers = _answers(record.text("answer"))
        path = _path(record)
        start = [path[0][0]]
    return Question(
        id=record.identity,
        question=record.text("question").strip(),
        answers=answers,
        type=f"{len(path)}hop",
        metadata={
            "question_entities": start,
            "answer_entities": list(answers),
            "path": path,
            "hops": len(path),
        },
    )


def _answers(text: str) -> tuple[str, ...]:
    """Return the answers in "answer(answer1/answer2/)": the first, then those in parentheses."""
    first, _, rest = text.strip().partition("(")
    others = rest.removesuffix(")").split("/")
    names = map(str.strip, (first, *others))
    return tuple(dict.fromkeys(filter(None, names)))


def _path(record: QuestionRecord) -> list[list[str]]:
    """Return the triples in "subject#relation#entity#relation#answer". An ending "#<end>#answer" is allowed."""
    steps = record.text("path").strip().partition("#<end>")[0].split("#")
    if len(steps) < 3 or len(steps) % 2 == 0 or not all(steps):
        raise record.error(
            f"'path' should be subject#relation#entity#..., found {record.text('path')!r:.80}"
        )
    return [steps[at : at + 3] for at in range(0, len(steps) - 2, 2)]


def read_knowledge_base(path: str | Path) -> list[tuple[str, str, str]]:
    """Return the (head, relation, tail) triples of a knowledge base, each once, in the order of the file.

    A line has the three texts separated by one or two tabs, or is a JSON list. Raises IngestError with the
    line's number.
    """
    triples: dict[tuple[str, str, str], None] = {}
    text = Path(path).read_text("utf-8-sig")
    for number, line in enumerate(lines_of(text), 1):
        if not line.strip():
            continue
        if line.startswith("["):
            parts = _parse_json_list(line)
        else:
            parts = [part.strip() for part in line.split("\t") if part.strip()]
        if len(parts) != 3:
            raise IngestError(
                f"{path} line {number}: expected head, relation and tail, separated by tabs, got {line!r:.80}"
            )
        triples[parts[0], parts[1], parts[2]] = None
    return list(triples)


def _parse_json_list(line: str) -> list[str]:
    try:
        return [str(part) for part in json.loads(line)]
    except ValueError:
        return []


Part = Literal["train", "dev", "test"]
_TENTHS: tuple[Part, ...] = (
    *("train", "train", "train", "train", "train", "train"),
    *("dev", "dev"),
    *("test", "test"),
)


def part_of(question: Question) -> Part:
    """Return the part that a question belongs to: train (60 % of the start entities), dev (20 %) or test (20
    %).

    The part is chosen by a hash of the first of `question_entities`, so no entity is in two parts.

    Raises:
        ValueError: if the question has no `question_entities`.
    """
    entities = question.metadata.get("question_entities") or ()
    if not entities:
        raise ValueError(
            f"question {question.id} cannot be assigned to a part: give it question_entities in its metadata"
        )
    digest = hashlib.blake2b(
        canonical_key(str(entities[0])).encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()
    return _TENTHS[int.from_bytes(digest, "little") % len(_TENTHS)]


def of_part(questions: Iterable[Question], part: str) -> list[Question]:
    """Return the questions of one part: "train", "dev" or "test".

    Raises:
        ValueError: If there is no such part.
    """
    if part not in get_args(Part):
        raise ValueError(f"unknown part {part!r}; known: {', '.join(get_args(Part))}")
    return [question for question in questions if part_of(question) == part]


PATHQUESTION = registered(
    Benchmark(
        name="pathquestion",
        title="PathQuestion",
        source="get PQ-2H.txt, PQ-3H.txt and their knowledge bases from github.com/zmtkeke/IRN (PathQuestion); there "
        "is no official split",
        read=_read,
        metrics=(
            "hr@1",
            "golden_match",
            "answer_f1",
            "entity_recall",
            "entity_f1",
            "sufficiency_precision",
        ),
        files={
            "2hop": "PQ-2H.txt",
            "3hop": "PQ-3H.txt",
            "long_2hop": "PQL-2H.txt",
            "long_3hop": "PQL-3H.txt",
        },
        counts={"PQ-2H.txt": 1908, "PQ-3H.txt": 5198},
        columns=("question", "answer", "path"),
    )
)
