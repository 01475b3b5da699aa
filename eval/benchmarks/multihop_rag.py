"""Reads MultiHop-RAG (Tang and Yang, 2024): comparisons, inferences and temporal questions over dated news,
some without an answer.
"""

from __future__ import annotations

from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.formats.registry import Format, Look
from ras_agent.eval.formats.registry import registered as registered_format
from ras_agent.eval.question import Question, context_passage
from ras_agent.eval.question_file import QuestionRecord

_ABOUT = ("author", "source", "category", "published_at", "url")


def _read(record: QuestionRecord) -> Question:
    """Return a question whose gold passages are the articles of its evidence, by title; the evidence is in the
    metadata as facts.

    The contexts are these facts, each with its article's title, source and date. They serve runs without the
    articles, and together are an easier corpus than the articles, which --corpus names.
    """
    titles = []
    facts = []
    contexts = []
    for part in record.objects("evidence_list"):
        title = part.text("title")
        fact = part.text("fact")
        titles.append(title)
        facts.append(fact)
        contexts.append(context_passage(title, fact, **_about(part)))
    return Question(
        id=record.identity,
        question=record.text("question", "query"),
        answers=(record.text("answer"),),
        supporting=tuple(dict.fromkeys(titles)),
        by_title=True,
        type=record.text("question_type"),
        contexts=tuple(contexts),
        metadata={"facts": facts, "hops": len(facts)},
    )


def _about(record: QuestionRecord) -> dict[str, str]:
    return {key: record.text(key) for key in _ABOUT if key in record}


def _passage(record: QuestionRecord) -> list[Passage]:
    """Return the passages of an article of corpus.json, split as `ras-agent index` splits a document."""
    from ras_agent.tools.index.chunk import passages_of
    from ras_agent.tools.index.documents import Document

    identity = record.text("url", "title")
    return list(
        passages_of(
            Document(
                identity, record.text("body"), record.text("title"), _about(record)
            )
        )
    )


ARTICLES = registered_format(
    Format(
        name="multihop-rag",
        title="MultiHop-RAG's articles",
        passage=Look.of("title", "body"),
        read_passages=_passage,
    )
)
MULTIHOP_RAG = registered(
    Benchmark(
        name="multihop-rag",
        title="MultiHop-RAG",
        source="get MultiHopRAG.json and corpus.json, to give with --corpus, from github.com/yixuantt/MultiHop-RAG "
        "(ODC-BY)",
        read=_read,
        metrics=(
            *(
                "multihop_accuracy",
                "em",
                "f1",
                "fact_hit@4",
                "fact_hit@10",
                "fact_map@10",
                "fact_mrr@10",
            ),
            *("recall@5", "all_recall@5"),
        ),
        instructions={
            "answer": 'Answer in a word or a name, "Yes" or "No". Say "Insufficient information" where the articles do '
            "not tell."
        },
        files={"": "MultiHopRAG.json"},
        counts={"MultiHopRAG.json": 2556},
    )
)
