"""Reads PopQA (Mallen et al., 2023): questions about Wikidata facts; the "long tail" asks about rarely viewed
pages.
"""

from __future__ import annotations

import json
from typing import Any

from ras_agent.eval.benchmarks.registry import Benchmark, HubDataset, registered
from ras_agent.eval.question import Question, given_passages
from ras_agent.eval.question_file import QuestionRecord


def _read(record: QuestionRecord) -> Question:
    """Return a question whose type is the property that it asks for.

    `possible_answers` is a list, or a list as JSON text (popQA.tsv).
    """
    contexts = given_passages(record, "ctxs", "paragraphs")
    metadata: dict[str, Any] = {}
    for key in ("subj", "prop", "obj"):
        if key in record:
            metadata[key] = record.text(key)
    if "s_pop" in record:
        metadata["popularity"] = int(record.text("s_pop"))
    return Question(
        id=record.text("id"),
        question=record.text("question"),
        answers=_answers(record),
        supporting=tuple(
            passage.id for passage in contexts if passage.metadata.get("is_supporting")
        ),
        type=metadata.get("prop", ""),
        contexts=contexts,
        metadata={**metadata, "hops": 1},
    )


def _answers(record: QuestionRecord) -> tuple[str, ...]:
    value = record.data.get("possible_answers")
    if isinstance(value, str):
        try:
            record = QuestionRecord(
                {"possible_answers": json.loads(value)}, record.where
            )
        except ValueError as error:
            raise record.error(
                f"'possible_answers' should be a JSON list, found {value!r:.80}"
            ) from error
    return record.texts("possible_answers", "answers")


POPQA = registered(
    Benchmark(
        name="popqa",
        title="PopQA",
        source="get popQA.tsv from github.com/AlexTMallen/adaptive-retrieval, or its 1,399 long-tail questions with "
        "passages, popqa_longtail_w_gs.jsonl, from Self-RAG's evaluation data (github.com/AkariAsai/self-rag); "
        "RAS reports on those",
        read=_read,
        metrics=("golden_match", "em", "f1", "answer_in_passages", "citation_support"),
        context_use="seed",
        files={"test": "popqa_longtail_w_gs.jsonl", "all": "popQA.tsv"},
        counts={"popqa_longtail_w_gs.jsonl": 1399},
        hub=HubDataset("akariasai/PopQA", split="test"),
    )
)
