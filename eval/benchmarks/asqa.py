"""ASQA (Stelmakh et al., 2022) in ALCE's format (Gao et al., 2023): ambiguous questions, answered in full."""

from __future__ import annotations

from ras_agent.eval.benchmarks.record import Benchmark
from ras_agent.eval.question import Question, given_passages
from ras_agent.eval.question_file import QuestionRecord

__all__ = ["ASQA"]


def _read(record: QuestionRecord) -> Question:
    """References are the annotators' long answers; `short_answers` has one set of strings a reading."""
    notes = record.objects("annotations") if "annotations" in record else []
    references = [note.text("long_answer") for note in notes] or list(record.texts("answer", "answers"))
    readings = record.objects("qa_pairs") if "qa_pairs" in record else []
    identity = next((record.text(key) for key in ("sample_id", "id") if key in record), "")
    return Question(
        id=identity or str(record.number),
        question=record.text("question", "ambiguous_question"),
        answers=tuple(dict.fromkeys(references)),
        contexts=given_passages(record, "docs", "passages", "ctxs"),
        metadata={
            "readings": [reading.text("question") for reading in readings],
            "short_answers": [list(reading.texts("short_answers")) for reading in readings],
        },
    )


ASQA = Benchmark(
    name="asqa",
    title="ASQA",
    source="get ALCE-data.tar as github.com/princeton-nlp/ALCE says; asqa_eval_gtr_top100.json in it",
    read=_read,
    metrics=("rouge_lsum", "answer_coverage", "citation_support"),
    answer_form="long",
    answer_tokens=300,
    instructions={
        "answer": "The question may be ambiguous, with a right answer for each way to read it. Write a long answer "
        "that gives all of them. [Long Form]",
        "answer_baseline": "With the help of the retrieved graph information, parts of which may not matter, write a "
        "correct, lively and short answer. Keep a neutral, journalistic tone.",
    },
    given="static",
    files={"validation": "asqa_eval_gtr_top100.json"},
    counts={"asqa_eval_gtr_top100.json": 948},
)
