"""RAGAS (0.4): a row a question, of which `EvaluationDataset.from_jsonl` makes a SingleTurnSample.

{"user_input": "...", "retrieved_contexts": ["..."], "response": "...", "reference": "...",
 "retrieved_context_ids": ["..."], "reference_context_ids": ["..."]}

Where the gold passages are named by titles, `"by_title": true` says so.
A row of a test set that RAGAS has generated has `reference_contexts`, the texts that the answer rests on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ras_agent.eval.formats.exported import Exported, passages_of, write_lines
from ras_agent.eval.formats.registry import Format, Look, registered
from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.eval.run.result import Result
from ras_agent.records import JSON

_REFERENCES = ("references", "reference", "ground_truth")
_READ = frozenset(
    {
        *_REFERENCES,
        "id",
        "user_input",
        "reference_contexts",
        "reference_context_ids",
        "by_title",
    }
)
_OUTCOME = frozenset({"response", "retrieved_contexts", "retrieved_context_ids"})


def read_question(record: QuestionRecord) -> Question:
    """Return the question of a row with `user_input`, a text.

    Gold passages are the texts of `reference_contexts`, which come with the question, or named by
    `reference_context_ids`. A response and the contexts retrieved for it are another system's, and left out.
    """
    if isinstance(record.data["user_input"], list):
        raise record.error(
            "'user_input' is a conversation; a question set has one text in it"
        )
    if record.data.get("reference_contexts"):
        texts = record.texts("reference_contexts")
    else:
        texts = ()
    contexts = tuple(context_passage("", text) for text in texts)
    if record.data.get("reference_context_ids"):
        ids = record.texts("reference_context_ids")
    else:
        ids = ()
    references: tuple[str, ...] = ()
    if record.first_key(*_REFERENCES):
        references = record.answers(*_REFERENCES)
    metadata = {}
    for key, value in record.data.items():
        if key not in _READ | _OUTCOME and value is not None:
            metadata[key] = value
    return Question(
        id=record.identity,
        question=record.text("user_input"),
        answers=references,
        supporting=ids or tuple(dict.fromkeys(passage.id for passage in contexts)),
        by_title=bool(ids and record.data.get("by_title")),
        contexts=contexts,
        type=str(metadata.get("synthesizer_name", "")),
        metadata=metadata,
    )


def row_of(result: Result) -> JSON:
    """Return a result as a row. RAGAS reads one `reference`, and ignores `id`, `references` and `by_title`."""
    row: dict[str, Any] = {
        "id": result.id,
        "user_input": result.question,
        "retrieved_contexts": [passage.text for passage in passages_of(result)],
        "retrieved_context_ids": list(result.retrieved),
        "reference_context_ids": list(result.supporting),
        "response": result.response,
        "references": list(result.answers),
    }
    if result.by_title:
        row["by_title"] = True
    if result.answers:
        return {**row, "reference": result.answers[0]}
    return row


def _write(run: Exported, path: Path) -> Sequence[Path]:
    return write_lines(
        path, ({**row_of(result), **run.rest_of(result)} for result in run.results)
    )


RAGAS = registered(
    Format(
        name="ragas",
        title="RAGAS rows",
        question=Look.of("user_input"),
        read_question=read_question,
        write_results=_write,
    )
)
