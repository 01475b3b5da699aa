"""Reads TriviaQA, unfiltered (Joshi et al., 2017): trivia with many accepted spellings of each answer."""

from __future__ import annotations

from typing import Any

from ras_agent.eval.benchmarks.registry import Benchmark, HubDataset, registered
from ras_agent.eval.question import Question, given_passages
from ras_agent.eval.question_file import QuestionRecord


def _read(record: QuestionRecord) -> Question:
    """Return the question of an official record (Question, QuestionId, Answer), a data set hub's record, or a
    flat one.
    """
    aliases: tuple[str, ...]
    key = record.first_key("Answer", "answer")
    if key == "Answer" or isinstance(record.data.get(key), dict):
        answer = record.inside(record.data[key], key)
        aliases = (answer.text("Value", "value"), *answer.texts("Aliases", "aliases"))
    else:
        aliases = record.texts("answers", "golden_answers", "answer")
    metadata: dict[str, Any] = {}
    if "QuestionSource" in record:
        metadata["source"] = record.text("QuestionSource")
    return Question(
        id=record.identity_under("QuestionId", "question_id", "q_id", "id"),
        question=record.text("Question", "question"),
        answers=tuple(dict.fromkeys(aliases)),
        contexts=given_passages(record, "ctxs"),
        metadata=metadata,
    )


TRIVIAQA = registered(
    Benchmark(
        name="triviaqa",
        title="TriviaQA (unfiltered)",
        source="get triviaqa-unfiltered.tar.gz from nlp.cs.washington.edu/triviaqa; unfiltered-web-dev.json is what "
        "RAS reports on. The same questions with retrieved passages are triviaqa_test.jsonl of Self-RAG's evaluation "
        "data (github.com/AkariAsai/self-rag)",
        read=_read,
        metrics=("golden_match", "em", "f1", "answer_in_passages", "citation_support"),
        context_use="seed",
        files={
            "validation": "unfiltered-web-dev.json",
            "test": "triviaqa_test.jsonl",
            "test_with_passages": "triviaqa_test_w_gs.jsonl",
        },
        counts={
            "unfiltered-web-dev.json": 11313,
            "triviaqa_test.jsonl": 11313,
            "triviaqa_test_w_gs.jsonl": 11313,
        },
        under="Data",
        hub=HubDataset("mandarjoshi/trivia_qa", "unfiltered.nocontext"),
    )
)
