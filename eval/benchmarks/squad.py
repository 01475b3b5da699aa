"""Reads SQuAD 1.1 (Rajpurkar et al., 2016) and XQuAD: a question, one paragraph, and the answers' positions in
it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ras_agent.eval.benchmarks.registry import Benchmark, HubDataset, registered
from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.question_file import QuestionRecord


def _split(record: QuestionRecord) -> Iterator[QuestionRecord]:
    """Yield a record for each question of an official article, which has paragraphs with `context` and `qas`."""
    if "paragraphs" not in record:
        yield record
        return
    for paragraph in record.objects("paragraphs"):
        fields = {
            "title": record.data.get("title", ""),
            "context": paragraph.text("context"),
        }
        for question in paragraph.objects("qas"):
            yield QuestionRecord(
                {**fields, **question.data}, question.where, question.number
            )


def _read(record: QuestionRecord) -> Question:
    """Return a question with `spans`, the character spans (end exclusive) of its answers in the paragraph.

    Answers are objects with `text` and `answer_start`, or two columns of these as on data set hubs.
    """
    answers = record.data.get("answers")
    if isinstance(answers, dict):
        columns = record.inside(answers, "answers")
        places = list(
            zip(
                columns.texts("text"),
                map(int, columns.texts("answer_start")),
                strict=True,
            )
        )
    else:
        places = []
        for answer in record.objects("answers"):
            places.append((answer.text("text"), int(answer.text("answer_start"))))
    context = record.text("context")
    for text, start in places:
        if context[start : start + len(text)] != text:
            raise record.error(
                f"the answer {text!r} is not at character {start} of its context"
            )
    passage = context_passage(record.text("title", default=""), context)
    return Question(
        id=record.identity,
        question=record.text("question"),
        answers=tuple(text for text, _ in places),
        supporting=(passage.id,),
        contexts=(passage,),
        metadata={
            "spans": sorted({(start, start + len(text)) for text, start in places}),
            "hops": 1,
        },
    )


SQUAD = registered(
    Benchmark(
        name="squad",
        title="SQuAD 1.1",
        source="get dev-v1.1.json from rajpurkar.github.io/SQuAD-explorer (CC BY-SA 4.0), or its 1,190 questions in "
        "xquad.en.json from github.com/google-deepmind/xquad",
        read=_read,
        split_record=_split,
        metrics=("squad_f1", "em", "answer_in_passages"),
        files={
            "validation": "dev-v1.1.json",
            "train": "train-v1.1.json",
            "xquad": "xquad.en.json",
        },
        counts={
            "dev-v1.1.json": 10570,
            "train-v1.1.json": 87599,
            "xquad.en.json": 1190,
        },
        under="data",
        hub=HubDataset("rajpurkar/squad"),
    )
)
