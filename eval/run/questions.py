"""Questions with gold answers and gold passages: one record for all benchmarks, and its plain JSON Lines form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ras_agent.eval.run.question_file import Record, read_records
from ras_agent.records import Passage

__all__ = [
    "Question",
    "context_passage",
    "is_plain",
    "load_passages",
    "load_questions",
    "plain_question",
    "union_of_contexts",
]


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    question: as it is asked; a multiple-choice question holds its options, one a line ("A. ...").
    supporting: ids of the gold passages, or their titles if `by_title`.
    contexts: passages that the benchmark hands out with the question, distractors among them.
    metadata: plain JSON, what else a benchmark knows. Read here: `hops`, `decomposition` ({"question", "answer"} a
    hop, the answers of earlier hops as #1, #2), `choices` ({label: text}), `label` (the right one), `triples`
    (a gold graph), `claims` and `short_answers` (of a long answer).
    """

    id: str
    question: str
    answers: tuple[str, ...]
    supporting: tuple[str, ...] = ()
    by_title: bool = False
    type: str = ""
    contexts: tuple[Passage, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def decomposition(self) -> tuple[Mapping[str, str], ...]:
        """The gold sub-questions with their answers; empty where unknown."""
        return tuple(self.metadata.get("decomposition", ()))

    @property
    def hops(self) -> int | None:
        """How many hops the question needs: told, or gold sub-questions, or distinct gold passages; None if unknown."""
        told = self.metadata.get("hops")
        return int(told) if told else len(self.decomposition) or len(set(self.supporting)) or None

    @property
    def choices(self) -> Mapping[str, str]:
        """Options by label; empty if the question has none."""
        choices: Mapping[str, str] = self.metadata.get("choices", {})
        return choices

    @property
    def label(self) -> str:
        """The right option's label, or "true" / "false"; empty where a question has none."""
        return str(self.metadata.get("label", ""))


def context_passage(title: str, text: str, **metadata: Any) -> Passage:
    """A benchmark's paragraph. Its id is the same wherever the paragraph occurs: title and a digest of the text."""
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return Passage(f"{title}#{digest}", text, title, metadata=metadata)


def union_of_contexts(questions: Iterable[Question]) -> list[Passage]:
    """Every paragraph that comes with any of the questions, once, in the order of first appearance."""
    found: dict[str, Passage] = {}
    for question in questions:
        for passage in question.contexts:
            found.setdefault(passage.id, passage)
    return list(found.values())


def load_questions(path: str | Path) -> list[Question]:
    """Read one JSON object a line, as `plain_question` has it. Raises IngestError with the line's number."""
    return [plain_question(record) for record in read_records(path)]


def load_passages(path: str | Path) -> list[Passage]:
    """Read one JSON object a line: id, text, optional title. Raises IngestError with the line's number."""
    passages = []
    for record in read_records(path):
        if not {"id", "text"} <= record.data.keys():
            raise record.error(f"expected keys id and text, found {', '.join(record.data)}")
        passages.append(Passage.from_dict({key: record.data[key] for key in ("id", "text", "title") if key in record}))
    return passages


def is_plain(record: Record) -> bool:
    """Whether a record has the plain form rather than a benchmark's own."""
    return {"id", "question", "answers"} <= record.data.keys() and "ctxs" not in record


def plain_question(record: Record) -> Question:
    """A question from id, question and answers.

    Optional: supporting_ids or supporting_titles, type, contexts (objects with text, title, id), metadata, and any of
    metadata's keys (decomposition, hops, choices, label, ...) beside them.
    """
    if missing := [key for key in ("id", "question", "answers") if key not in record]:
        raise record.error(f"no key {missing[0]!r}; a question has id, question, answers")
    by_id = "supporting_ids" in record
    gold = "supporting_ids" if by_id else "supporting_titles"
    metadata = {key: value for key, value in record.data.items() if key not in _OWN and value is not None}
    for key in ("metadata", "choices"):
        if key in record:
            record.inside(record.data[key], key)
    return Question(
        id=record.text("id"),
        question=record.text("question"),
        answers=record.texts("answers"),
        supporting=record.texts(gold) if gold in record else (),
        by_title=not by_id,
        type=record.text("type") if "type" in record else "",
        contexts=tuple(map(_context, record.objects("contexts"))) if "contexts" in record else (),
        metadata={**(record.data.get("metadata") or {}), **metadata},
    )


_OWN = frozenset({"id", "question", "answers", "supporting_ids", "supporting_titles", "type", "contexts", "metadata"})


def _context(record: Record) -> Passage:
    title, text = record.text("title") if "title" in record else "", record.text("text")
    return Passage(record.text("id"), text, title) if "id" in record else context_passage(title, text)
