"""An extractor alone, on texts with gold triples: each text is a run's question, its facts are the run's answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ras_agent.budget import Ledger, metered
from ras_agent.calling import acall
from ras_agent.errors import ModelCallError
from ras_agent.eval.benchmarks.registry import Benchmark
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.eval.run.runner import Ask
from ras_agent.marks import OBJECT, PREDICATE, SUBJECT
from ras_agent.protocols import Extractor
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage, Usage

__all__ = ["GOLD_TRIPLES", "bare_triples", "counted_tokens", "extraction_asker"]

_MARKS = re.compile(rf"^\({SUBJECT} | \| {PREDICATE} | \| {OBJECT} |\)$", re.MULTILINE)
_TOKEN = re.compile(r"\w+|[^\w\s]")


def _read(record: QuestionRecord) -> Question:
    """`text` and `triples`; optional `id` and `title`, the heading that the text stands under.

    Annotations by models hold lists of two or four parts too: these are left out, and counted as `unusable`.
    """
    found = record.items("triples")
    triples = [item for item in found if isinstance(item, list) and len(item) == 3]
    usable = replace(record, data={**record.data, "triples": triples})
    return Question(
        id=record.text("id") if "id" in record else str(record.number),
        question=record.text("text"),
        answers=(),
        metadata={
            "triples": usable.triples("triples"),
            "unusable": len(found) - len(triples),
            "title": record.text("title") if "title" in record else "",
        },
    )


GOLD_TRIPLES = Benchmark(
    name="gold-triples",
    title="texts with gold triples",
    source="write one JSON object a line: text, triples (lists of subject, predicate, object); optional id, title",
    read=_read,
    metrics=tuple(
        f"{name}_{part}" for name in ("triple", "triple_ends", "triple_soft") for part in ("precision", "recall", "f1")
    ),
)


def extraction_asker(extractor: Extractor) -> Ask:
    """Has the extractor read each question's text, under its title. Its failures stay in the output."""

    async def ask(question: Question) -> Mapping[str, Any]:
        passage = Passage(question.id, question.question, str(question.metadata.get("title", "")))
        with metered(Ledger(role="extractor", hop=1)) as ledger:
            extraction = await acall(extractor, "extract", [passage], "")
        if extraction.failures and not extraction.triples:
            raise ModelCallError("; ".join(failure.message for failure in extraction.failures))
        return {
            "answer": "\n".join(map(str, extraction.triples)),
            "graph": QuestionGraph(extraction.triples).to_dict(),
            "passages": {},
            "steps": [],
            "usage": Usage(tuple(ledger.calls)).to_dict(),
            "failures": [failure.to_dict() for failure in extraction.failures],
            "stop_reason": "extraction",
        }

    return ask


def bare_triples(answer: str) -> str:
    """The words of triples, without the marks that set them apart."""
    return _MARKS.sub(" ", answer)


def counted_tokens(text: str) -> int:
    """Words and punctuation marks: one count for all extractors, whatever their own tokens are."""
    return len(_TOKEN.findall(text))
