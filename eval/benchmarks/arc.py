"""Reads ARC-Challenge (Clark et al., 2018): school science questions, mostly with four options."""

from __future__ import annotations

from ras_agent.eval.benchmarks.registry import Benchmark, HubDataset, registered
from ras_agent.eval.question import Question, given_passages
from ras_agent.eval.question_file import QuestionRecord

_LETTERS = "ABCDEFGH"


def _read(record: QuestionRecord) -> Question:
    """Return a question with its options in the text, one a line. Options 1, 2, 3, ... are renamed A, B, C, ..."""
    official = isinstance(record.data.get("question"), dict)
    if official:
        inner = record.inside(record.data["question"], "question")
    else:
        inner = record
    options = {}
    for label, text in _options(inner).items():
        options[_letter(label)] = text
    key = _letter(record.text("answerKey", "answer_key"))
    if key not in options:
        raise record.error(
            f"the answer {key!r} is not one of the options {', '.join(options)}"
        )
    stem = inner.text("stem", "question")
    return Question(
        id=record.identity,
        question="\n".join(
            [stem, *(f"{label}. {text}" for label, text in options.items())]
        ),
        answers=(options[key],),
        contexts=given_passages(record, "ctxs"),
        metadata={"choices": options, "label": key, "stem": stem},
    )


def _options(record: QuestionRecord) -> dict[str, str]:
    """Return the options' texts by label. They can be objects (official), columns of labels and texts (hubs),
    or one object.
    """
    value = record.data.get("choices")
    if isinstance(value, list):
        options = {}
        for option in record.objects("choices"):
            options[option.text("label")] = option.text("text")
        return options
    choices = record.inside(value, "choices")
    if "label" in choices and "text" in choices:
        labels = choices.texts("label")
        texts = choices.texts("text")
        if len(labels) != len(texts):
            raise choices.error(f"{len(labels)} labels but {len(texts)} texts")
        return dict(zip(labels, texts, strict=True))
    return {label: choices.text(label) for label in choices.data}


def _letter(label: str) -> str:
    if label.isdigit() and 1 <= int(label) <= len(_LETTERS):
        return _LETTERS[int(label) - 1]
    return label


ARC_CHALLENGE = registered(
    Benchmark(
        name="arc-challenge",
        title="ARC-Challenge",
        source="get ARC-V1-Feb2018 from allenai.org/data/arc (ARC-Challenge-Test.jsonl), or its questions with "
        "retrieved passages, arc_challenge_processed.jsonl, from Self-RAG's evaluation data "
        "(github.com/AkariAsai/self-rag)",
        read=_read,
        metrics=("accuracy", "citation_support"),
        answer_form="multiple_choice",
        answer_tokens=50,
        instructions={
            "answer": "Which option is right? Reply with its letter, A, B, C or D.",
            "answer_baseline": "Of the answers A, B, C and D, pick the best one. Reply with its capital letter alone: "
            "no other words, no full stop.",
        },
        files={
            "test": "ARC-Challenge-Test.jsonl",
            "test_with_passages": "arc_challenge_processed.jsonl",
            "validation": "ARC-Challenge-Dev.jsonl",
            "train": "ARC-Challenge-Train.jsonl",
        },
        counts={
            "ARC-Challenge-Test.jsonl": 1172,
            "arc_challenge_processed.jsonl": 1172,
            "ARC-Challenge-Dev.jsonl": 299,
            "ARC-Challenge-Train.jsonl": 1119,
        },
        hub=HubDataset("allenai/ai2_arc", "ARC-Challenge", "test"),
    )
)
