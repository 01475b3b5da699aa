"""Reads RAGBench (Friel et al., 2024): the seven sets that GFM-RAG uses to test transfer to other domains (its
Table 11).
"""

from __future__ import annotations

from ras_agent.eval.benchmarks.registry import Benchmark, HubDataset, registered
from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.question_file import QuestionRecord

_SETS = {
    "pubmedqa": "PubMedQA",
    "delucionqa": "DelucionQA",
    "techqa": "TechQA",
    "expertqa": "ExpertQA",
    "emanual": "EManual",
    "msmarco": "MS MARCO",
    "hagrid": "HAGRID",
}


def _read(record: QuestionRecord) -> Question:
    """Return a question whose gold passages are the documents with a relevant sentence.

    A sentence's key, such as "1c", begins with its document's number. There is no gold answer: `response` was
    written by a model, and is kept in the metadata.
    """
    passages = []
    for text in record.texts("documents"):
        passages.append(context_passage("", text))
    relevant = set()
    for key in record.texts("all_relevant_sentence_keys"):
        number = key.rstrip("abcdefghijklmnopqrstuvwxyz")
        if not number.isdecimal() or int(number) >= len(passages):
            raise record.error(
                f"the sentence key {key!r} should begin with the number of one of the {len(passages)} documents"
            )
        relevant.add(int(number))
    return Question(
        id=record.identity,
        question=record.text("question"),
        answers=(),
        supporting=tuple(
            dict.fromkeys(passages[number].id for number in sorted(relevant))
        ),
        contexts=tuple({passage.id: passage for passage in passages}.values()),
        metadata={"response": record.data.get("response", "")},
    )


RAGBENCH = tuple(
    registered(
        Benchmark(
            name=f"ragbench-{name}",
            title=f"{title} (RAGBench)",
            source=f"write the rows of galileo-ai/ragbench, configuration {name}, split test, as JSON Lines",
            read=_read,
            metrics=("recall@5", "recall@2", "all_recall@5", "mrr"),
            hub=HubDataset("galileo-ai/ragbench", name, "test"),
        )
    )
    for name, title in _SETS.items()
)
