"""Reads GraphRAG-Bench (Xiang et al., 2025): four kinds of questions over one long text, medical guidelines or novels.

The benchmark measures fact retrieval and complex reasoning by ROUGE-L. Its other figures, answer correctness, coverage
and faithfulness, need a judge model and are not computed here.
"""

from __future__ import annotations

from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.formats.registry import Format, Look
from ras_agent.eval.formats.registry import registered as registered_format
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord


def _read(record: QuestionRecord) -> Question:
    """Return a question. The sentences that are its evidence are in the metadata as `facts`, if the record has
    any.
    """
    evidence = record.texts("evidence", default=())
    return Question(
        id=record.text("id"),
        question=record.text("question"),
        answers=(record.text("answer"),),
        type=record.text("question_type"),
        metadata={
            "source": record.text("source"),
            **({"facts": list(evidence)} if evidence else {}),
        },
    )


def _passages(record: QuestionRecord) -> list[Passage]:
    """Return the passages of a text, split as `ras-agent index` splits a document."""
    from ras_agent.tools.index.chunk import passages_of
    from ras_agent.tools.index.documents import Document

    name = record.text("corpus_name")
    return list(passages_of(Document(name, record.text("context"), name)))


TEXTS = registered_format(
    Format(
        name="graphrag-bench",
        title="GraphRAG-Bench's texts",
        passage=Look.of("corpus_name", "context"),
        read_passages=_passages,
    )
)
GRAPHRAG_BENCH = registered(
    Benchmark(
        name="graphrag-bench",
        title="GraphRAG-Bench",
        source="get Datas/Questions/medical_questions.json and Datas/Corpus/medical.json, to give with --corpus, or "
        "those of the novels, from github.com/GraphRAG-Bench/GraphRAG-Benchmark",
        read=_read,
        metrics=("rouge_l", "squad_f1", "citation_support"),
        answer_form="long",
        answer_tokens=300,
        instructions={
            "answer": "Answer in one or a few complete sentences, with nothing but what the text says."
        },
        files={"medical": "medical_questions.json", "novel": "novel_questions.json"},
    )
)
