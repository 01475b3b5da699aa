"""ELI5 (Fan et al., 2019) in ALCE's format (Gao et al., 2023): why and how, answered in plain words."""

from __future__ import annotations

from ras_agent.eval.benchmarks.record import Benchmark
from ras_agent.eval.question import Question, context_passage, given_passages
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.records import Passage

__all__ = ["ELI5"]


def _read(record: QuestionRecord) -> Question:
    """ALCE's record with `docs`, or ELI5's own with one `document` of <P>-parted paragraphs and "--T--" tags."""
    contexts = _paragraphs(record.text("document")) if "document" in record else given_passages(record, "docs", "ctxs")
    return Question(
        id=record.text("id") if "id" in record else str(record.number),
        question=record.text("question").replace("--T--", "").strip(),
        answers=record.texts("answer", "answers"),
        contexts=contexts,
        metadata={"claims": list(record.texts("claims")) if "claims" in record else []},
    )


def _paragraphs(document: str) -> tuple[Passage, ...]:
    texts = (text.strip() for text in document.split("<P>"))
    return tuple({passage.id: passage for passage in (context_passage("", text) for text in texts if text)}.values())


ELI5 = Benchmark(
    name="eli5",
    title="ELI5",
    source="get ALCE-data.tar as github.com/princeton-nlp/ALCE says; eli5_eval_bm25_top100.json in it",
    read=_read,
    metrics=("rouge_lsum", "citation_support"),
    answer_form="long",
    answer_tokens=300,
    instructions={
        "answer": "Explain it in one paragraph, in words that anybody understands. [Long Form]",
        "answer_baseline": "With the help of the retrieved graph information, parts of which may not matter, write a "
        "correct, lively and short answer. Keep a neutral, journalistic tone.",
    },
    given="static",
    files={"validation": "eli5_eval_bm25_top100.json"},
    counts={"eli5_eval_bm25_top100.json": 1000},
)
