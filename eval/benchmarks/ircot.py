"""Reads IRCoT's annotated training questions (Trivedi et al., 2023), with contexts, answer, and a chain of
thought that cites them.

They come from HotpotQA, 2WikiMultihopQA, MuSiQue and IIRC; a question's type is the name of its source.
"""

from __future__ import annotations

from ras_agent.eval.benchmarks.registry import MULTI_HOP, Benchmark, registered
from ras_agent.eval.question import Question, given_passages
from ras_agent.eval.question_file import QuestionRecord


def _read(record: QuestionRecord) -> Question:
    """Return a question whose gold passages are those that the chain of thought names by title."""
    contexts = given_passages(record, "contexts")
    thought = record.text("cot")
    return Question(
        id=record.text("id"),
        question=record.text("question"),
        answers=record.texts("answer"),
        supporting=tuple(
            passage.id
            for passage in contexts
            if passage.title.split(" (")[0] in thought
        ),
        type=record.text("dataset", default=""),
        contexts=contexts,
        metadata={"thought": thought},
    )


IRCOT = registered(
    Benchmark(
        name="ircot",
        title="IRCoT's annotated questions",
        source="take them from github.com/StonyBrookNLP/ircot (prompt_generator/data_annotations, Apache-2.0) and "
        "write one JSON object a line: dataset, id, question, contexts (objects with title, text), cot, answer",
        read=_read,
        metrics=MULTI_HOP,
    )
)
