"""Reads ASQA (Stelmakh et al., 2022) and ELI5 (Fan et al., 2019) in ALCE's format (Gao et al., 2023): long
answers.

ASQA's questions are ambiguous, and a gold answer covers every interpretation. ELI5 asks for explanations in
simple words.
"""

from __future__ import annotations

from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.question import Question, context_passage, given_passages
from ras_agent.eval.question_file import QuestionRecord

_BASELINE = (
    "With the help of the retrieved graph information, parts of which may not matter, write a correct, lively and "
    "short answer. Keep a neutral, journalistic tone."
)


def _read_asqa(record: QuestionRecord) -> Question:
    """Return a question with the annotators' long answers. `short_answers` has a set of answers for each
    interpretation.
    """
    notes = record.objects("annotations", default=())
    references = [note.text("long_answer") for note in notes] or list(
        record.texts("answer", "answers")
    )
    readings = record.objects("qa_pairs", default=())
    return Question(
        id=record.identity_under("sample_id", "id"),
        question=record.text("question", "ambiguous_question"),
        answers=tuple(dict.fromkeys(references)),
        contexts=given_passages(record, "docs", "passages", "ctxs"),
        metadata={
            "readings": [reading.text("question") for reading in readings],
            "short_answers": [
                list(reading.texts("short_answers")) for reading in readings
            ],
        },
    )


def _read_eli5(record: QuestionRecord) -> Question:
    """Return the question of an ALCE record, which has `docs`, or of an original ELI5 record, which has one
    `document`.

    In an original record, <P> separates the document's paragraphs, and "--T--" tags are removed from the
    question.
    """
    if "document" in record:
        contexts = _paragraphs(record.text("document"))
    else:
        contexts = given_passages(record, "docs", "ctxs")
    return Question(
        id=record.identity,
        question=record.text("question").replace("--T--", "").strip(),
        answers=record.texts("answer", "answers"),
        contexts=contexts,
        metadata={"claims": list(record.texts("claims", default=()))},
    )


def _paragraphs(document: str) -> tuple[Passage, ...]:
    passages = {}
    for text in document.split("<P>"):
        if text.strip():
            passage = context_passage("", text.strip())
            passages[passage.id] = passage
    return tuple(passages.values())


ASQA = registered(
    Benchmark(
        name="asqa",
        title="ASQA",
        source="get ALCE-data.tar as github.com/princeton-nlp/ALCE says; asqa_eval_gtr_top100.json in it",
        read=_read_asqa,
        metrics=("rouge_lsum", "answer_coverage", "citation_support"),
        answer_form="long",
        answer_tokens=300,
        instructions={
            "answer": "The question may be ambiguous, with a right answer for each way to read it. Write a long answer "
            "that gives all of them. [Long Form]",
            "answer_baseline": _BASELINE,
        },
        context_use="static",
        files={"validation": "asqa_eval_gtr_top100.json"},
        counts={"asqa_eval_gtr_top100.json": 948},
    )
)
ELI5 = registered(
    Benchmark(
        name="eli5",
        title="ELI5",
        source="get ALCE-data.tar as github.com/princeton-nlp/ALCE says; eli5_eval_bm25_top100.json in it",
        read=_read_eli5,
        metrics=("rouge_lsum", "citation_support"),
        answer_form="long",
        answer_tokens=300,
        instructions={
            "answer": "Explain it in one paragraph, in words that anybody understands. [Long Form]",
            "answer_baseline": _BASELINE,
        },
        context_use="static",
        files={"validation": "eli5_eval_bm25_top100.json"},
        counts={"eli5_eval_bm25_top100.json": 1000},
    )
)
