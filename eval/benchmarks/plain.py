"""A question set of one's own."""

from ras_agent.eval.benchmarks.record import Benchmark
from ras_agent.eval.question import plain_question

__all__ = ["PLAIN"]

PLAIN = Benchmark(
    name="jsonl",
    title="your own questions",
    source=(
        "write one JSON object a line: id, question, answers (a list); optional supporting_ids or supporting_titles, "
        "type, contexts (objects with text, title, id), decomposition, hops, choices, label"
    ),
    read=plain_question,
    metrics=("em", "f1", "recall@2", "recall@5", "all_recall@5", "mrr", "sufficiency_precision"),
    files={"": "questions.jsonl"},
)
