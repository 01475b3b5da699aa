"""Reads MuSiQue (Trivedi et al., 2022): questions of two to four hops with their decompositions."""

from __future__ import annotations

from typing import Any

from ras_agent.eval.benchmarks.registry import MULTI_HOP, Benchmark, registered
from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.question_file import QuestionRecord


def _read(record: QuestionRecord) -> Question:
    """Return a question with gold passages by id, because several paragraphs may have the same title.

    The type is the first part of the question's id. `decomposition` names the passage that supports each hop.
    """
    paragraphs = record.objects("paragraphs")
    contexts = []
    gold = []
    by_index = {}
    for number, paragraph in enumerate(paragraphs):
        text = paragraph.text("paragraph_text", "text")
        passage = context_passage(paragraph.text("title"), text)
        contexts.append(passage)
        by_index[paragraph.data.get("idx", number)] = passage.id
        if paragraph.data.get("is_supporting"):
            gold.append(passage.id)
    metadata: dict[str, Any] = {
        "answerable": record.data.get("answerable", True) is not False
    }
    if "question_decomposition" in record:
        hops = []
        for hop in record.objects("question_decomposition"):
            place = hop.data.get("paragraph_support_idx")
            asked = {"question": hop.text("question")}
            asked["answer"] = hop.text("answer", default="")
            hops.append({**asked, "supporting_id": by_index.get(place, "")})
        metadata["decomposition"] = hops
    identity = record.text("id")
    answers: list[str] = []
    if "answer" in record:
        answers.append(record.text("answer"))
    if "answer_aliases" in record:
        answers += record.texts("answer_aliases")
    return Question(
        id=identity,
        question=record.text("question"),
        answers=tuple(dict.fromkeys(answers)),
        supporting=tuple(dict.fromkeys(gold)),
        type=identity.partition("__")[0],
        contexts=tuple(contexts),
        metadata=metadata,
    )


MUSIQUE = registered(
    Benchmark(
        name="musique",
        title="MuSiQue",
        source="get musique_v1.0.zip as github.com/StonyBrookNLP/musique says (CC BY 4.0); musique_ans_v1.0_dev.jsonl "
        "is what is reported",
        read=_read,
        # the official F1 has no rule for yes and no
        metrics=("squad_f1", *MULTI_HOP, "support_f1"),
        files={
            "validation": "musique_ans_v1.0_dev.jsonl",
            "train": "musique_ans_v1.0_train.jsonl",
            "full_validation": "musique_full_v1.0_dev.jsonl",
        },
        counts={
            "musique_ans_v1.0_dev.jsonl": 2417,
            "musique_ans_v1.0_train.jsonl": 19938,
            "musique_full_v1.0_dev.jsonl": 4834,
        },
    )
)
