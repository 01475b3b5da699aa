"""ExplaGraphs in GraphQA (Saha et al., 2021; He et al., 2024): do two arguments agree, given a common-sense graph?"""

from __future__ import annotations

import re

from ras_agent.eval.benchmarks.citing_graphs import CITING, VALIDITY
from ras_agent.eval.benchmarks.record import Benchmark
from ras_agent.eval.question import Question, TextualGraph
from ras_agent.eval.question_file import QuestionRecord

__all__ = ["EXPLAGRAPHS", "parse_explanation"]

_CLASSES = ("support", "counter")
_EDGE = re.compile(r"\(([^;]*);([^;]*);([^;]*)\)(?=\s*(?:\(|$))")


def parse_explanation(text: str, record: QuestionRecord) -> list[tuple[str, str, str]]:
    """The edges of "(head; relation; tail)(head; relation; tail)...". Raises the record's error for anything else."""
    edges, end = [], 0
    for found in _EDGE.finditer(text):
        if text[end : found.start()].strip():
            break
        edges.append((found[1].strip(), found[2].strip(), found[3].strip()))
        end = found.end()
    if text[end:].strip() or not edges:
        raise record.error(f"'graph' should be (head; relation; tail)..., found {text[end:].strip()!r:.80}")
    return edges


def _read(record: QuestionRecord) -> Question:
    label = record.text("label")
    if label not in _CLASSES:
        raise record.error(f"'label' should be {' or '.join(_CLASSES)}, found {label!r}")
    graph = TextualGraph.from_triples(parse_explanation(record.text("graph"), record))
    return Question(
        id=record.text("id") if "id" in record else str(record.number),
        question=f"Argument 1: {record.text('arg1')}\nArgument 2: {record.text('arg2')}\n"
        "Does the second argument support or counter the first?",
        answers=(label,),
        type=label,
        metadata={"label": label, "classes": list(_CLASSES), "graph": graph.to_dict()},
    )


EXPLAGRAPHS = Benchmark(
    name="explagraphs",
    title="GraphQA: ExplaGraphs",
    source="get train_dev.tsv from github.com/XiaoxinHe/G-Retriever (dataset/expla_graphs): arg1, arg2, label, graph",
    read=_read,
    metrics=("accuracy", *VALIDITY),
    instructions={"answer": "Reply with one word: support or counter.", "answer_citing": CITING},
    files={"all": "train_dev.tsv"},
    counts={"train_dev.tsv": 2766},
)
