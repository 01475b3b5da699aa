"""Reads Natural Questions, open (Kwiatkowski et al., 2019), with the passage that contains the answer (Liu et al.,
2023).
"""

from __future__ import annotations

from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.question import Question, given_passages
from ras_agent.eval.question_file import QuestionRecord


def _read(record: QuestionRecord) -> Question:
    """Return the question of a record with `question`, `answers` and `ctxs`; contexts marked `isgold` are its gold
    passages."""
    contexts = given_passages(record, "ctxs")
    return Question(
        id=record.identity,
        question=record.text("question"),
        answers=record.texts("answers"),
        supporting=tuple(
            passage.id for passage in contexts if passage.metadata.get("isgold")
        ),
        contexts=contexts,
        metadata={"hops": 1},
    )


NATURAL_QUESTIONS = registered(
    Benchmark(
        name="natural-questions",
        title="Natural Questions (open)",
        source="get nq-open-oracle.jsonl.gz from github.com/nelson-liu/lost-in-the-middle (qa_data): 2,655 questions "
        "with the paragraph that answers them",
        read=_read,
        metrics=("golden_match", "em", "f1", "answer_in_passages", "citation_support"),
        files={"oracle": "nq-open-oracle.jsonl.gz"},
        counts={"nq-open-oracle.jsonl.gz": 2655},
    )
)
