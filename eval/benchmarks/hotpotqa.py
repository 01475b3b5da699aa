"""Reads HotpotQA (Yang et al., 2018) and 2WikiMultihopQA (Ho et al., 2020), whose records have the same form.

HotpotQA asks two-hop questions over the introductions of Wikipedia's pages. 2WikiMultihopQA asks for
comparisons, inferences and compositions, and adds evidence triples. Contexts are lists of sentences with a
title; gold facts are (title, sentence) pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks.registry import (
    MULTI_HOP,
    Benchmark,
    HubDataset,
    registered,
)
from ras_agent.eval.question import Question, context_passage, joined_sentences
from ras_agent.eval.question_file import QuestionRecord

SUPPORTING_FACTS = ("sp_em", "sp_f1", "joint_em", "joint_f1")


def titled_sentences_question(record: QuestionRecord) -> Question:
    """Return the question of a record with `_id`, `question`, `answer`, `type`, `context` and `supporting_facts`.

    2Wiki's records also have `evidences`, and some have sub-questions with their answers (`qa_pairs`). Test records have
    no answers and no gold facts. The column form of data set hubs, {"title": [...], "sentences": [...]}, is read too.
    """
    if "supporting_facts" in record:
        gold = _pairs(record, "supporting_facts", ("title", "sent_id"))
    else:
        gold = []
    if record.data.get("answer"):
        answers = [record.text("answer")]
    else:
        answers = []
    metadata: dict[str, Any] = {
        "supporting_facts": [[title, number] for title, number in gold]
    }
    contexts = _pairs(record, "context", ("title", "sentences"))
    passages = tuple(_passage(record, *pair) for pair in contexts)
    if gold:
        metadata["sentence_ends"] = {
            str(title): _sentence_ends(sentences) for title, sentences in contexts
        }
    if "level" in record:
        metadata["level"] = record.text("level")
    if "evidences" in record:
        metadata["triples"] = record.triples("evidences")
    if "qa_pairs" in record:
        pairs = record.objects("qa_pairs")
        metadata["decomposition"] = [
            {"question": pair.text("question"), "answer": pair.text("answer")}
            for pair in pairs
        ]
    return Question(
        id=record.text("_id", "id"),
        question=record.text("question"),
        answers=tuple(answers),
        supporting=tuple(dict.fromkeys(str(title) for title, _ in gold)),
        by_title=True,
        type=record.text("type", default=""),
        contexts=passages,
        metadata=metadata,
    )


def _pairs(
    record: QuestionRecord, key: str, columns: tuple[str, str]
) -> list[tuple[Any, Any]]:
    value = record.data.get(key)
    if isinstance(value, dict):
        inner = record.inside(value, key)
        first = inner.items(columns[0])
        second = inner.items(columns[1])
        if len(first) != len(second):
            raise inner.error(
                f"it has {len(first)} items in {columns[0]!r} but {len(second)} in {columns[1]!r}: give as many in both"
            )
        return list(zip(first, second, strict=True))
    for item in (items := record.items(key)):
        if not isinstance(item, list | tuple) or len(item) != 2:
            raise record.error(
                f"{key!r} should hold [{', '.join(columns)}] pairs, found {item!r:.80}"
            )
    return [(first, second) for first, second in items]


def _sentence_ends(sentences: Sequence[str]) -> list[int]:
    """Return the end of each sentence in its passage's text, including the space after it."""
    ends: list[int] = []
    length = 0
    for sentence in sentences:
        stripped = sentence.strip()
        length += len(stripped) + 1 if stripped else 0
        ends.append(length)
    return ends


def _passage(record: QuestionRecord, title: Any, sentences: Any) -> Passage:
    if isinstance(sentences, str) or not all(
        isinstance(sentence, str) for sentence in sentences
    ):
        raise record.error(
            f"context {title!r} should have a list of sentences, found {sentences!r:.80}"
        )
    return context_passage(str(title), joined_sentences(sentences))


HOTPOTQA = registered(
    Benchmark(
        name="hotpotqa",
        title="HotpotQA",
        source="get hotpot_dev_distractor_v1.json from hotpotqa.github.io (CC BY-SA 4.0)",
        read=titled_sentences_question,
        metrics=(*MULTI_HOP, *SUPPORTING_FACTS),
        files={
            "validation": "hotpot_dev_distractor_v1.json",
            "fullwiki": "hotpot_dev_fullwiki_v1.json",
            "train": "hotpot_train_v1.1.json",
        },
        counts={
            "hotpot_dev_distractor_v1.json": 7405,
            "hotpot_dev_fullwiki_v1.json": 7405,
            "hotpot_train_v1.1.json": 90447,
        },
        # as the datasets library records them for its downloads
        sha256={
            "hotpot_dev_distractor_v1.json": "4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea",
            "hotpot_dev_fullwiki_v1.json": "2f1f3e594a3066a3084cc57950ca2713c24712adaad03af6ccce18d1846d5618",
            "hotpot_train_v1.1.json": "26650cf50234ef5fb2e664ed70bbecdfd87815e6bffc257e068efea5cf7cd316",
        },
        hub=HubDataset("hotpotqa/hotpot_qa", "distractor"),
    )
)
TWO_WIKI = registered(
    Benchmark(
        name="2wikimultihopqa",
        title="2WikiMultihopQA",
        source="get data_ids_april7.zip from github.com/Alab-NII/2wikimultihop (Apache-2.0); dev.json is what is "
        "reported",
        read=titled_sentences_question,
        # RAS reports F1 without HotpotQA's rule for yes and no (eq. 10 to 12)
        metrics=(MULTI_HOP[0], "squad_f1", *MULTI_HOP[1:], *SUPPORTING_FACTS),
        files={"validation": "dev.json", "train": "train.json"},
        counts={"dev.json": 12576, "train.json": 167454},
    )
)
