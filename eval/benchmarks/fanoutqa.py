"""Reads FanOutQA (Zhu et al., 2024): questions that need facts from many Wikipedia pages, with a tree of
sub-questions.

A record's answer is a text, a number, a list or a mapping such as {"Pat Burrell": "Right", ...}. The pages are not in
the file: give Wikipedia's pages of the data set's date with --corpus or --index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.metrics.suites import reference_text
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord


def _read(record: QuestionRecord) -> Question:
    """Return a question whose gold passages are the pages in its evidence, by title, at any depth of the tree.

    `decomposition` holds the sub-questions that a page answers, in the order of the tree;
    `metadata["reference"]` holds the record's answer unchanged. Test records have no answer, and their evidence
    is under `necessary_evidence`.
    """
    pages = []
    asked = []
    for leaf in _leaves(record):
        pages.append(leaf.inside(leaf.data["evidence"], "evidence"))
        known = reference_text(leaf.data.get("answer"))
        asked.append({"question": leaf.text("question"), "answer": known})
    pages += record.objects("necessary_evidence", default=())
    metadata: dict[str, Any] = {"decomposition": asked}
    answers = []
    answer = record.data.get("answer")
    if answer is not None:
        answers.append(reference_text(answer))
        metadata["reference"] = answer
    return Question(
        id=record.text("id"),
        question=record.text("question"),
        answers=tuple(answers),
        supporting=tuple(dict.fromkeys(page.text("title") for page in pages)),
        by_title=True,
        type=next(iter(record.texts("categories", default=())), ""),
        metadata=metadata,
    )


def _leaves(record: QuestionRecord) -> Iterator[QuestionRecord]:
    """Yield the sub-questions that are answered by a page, not by further sub-questions."""
    for part in record.objects("decomposition", default=()):
        if part.data.get("evidence"):
            yield part
        yield from _leaves(part)


FANOUTQA = registered(
    Benchmark(
        name="fanoutqa",
        title="FanOutQA",
        source="get fanout-final-dev.json from github.com/zhudotexe/fanoutqa (MIT); its pages are Wikipedia's of "
        "20 November 2023, to give with --corpus or --index",
        read=_read,
        metrics=(
            "fanout_loose",
            "fanout_strict",
            "rouge_l",
            "recall@5",
            "all_recall@5",
            "citation_support",
        ),
        answer_form="long",
        answer_tokens=400,
        instructions={
            "answer": "The question asks for a fact about each of several things. Name each thing with its fact, one a "
            "line, and nothing else."
        },
        files={"validation": "fanout-final-dev.json", "test": "fanout-final-test.json"},
        counts={"fanout-final-dev.json": 310, "fanout-final-test.json": 724},
    )
)
