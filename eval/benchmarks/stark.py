"""Reads STaRK (Wu et al., 2024): questions that ask for nodes of a knowledge base with texts and relations.

The nodes are the passages. The corpus file has one node per line, with the node's number as its id. STaRK's own
package stores its knowledge bases as pickles, which are not read here. Use it once to write the corpus file
(docs/evaluation.md shows how).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from ras_agent.eval.benchmarks.registry import Benchmark, registered
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import QuestionRecord
from ras_agent.tools.index.text_files import parse_line

_SPLITS = ("train", "val", "test")


def _read(splits: Mapping[str, str], record: QuestionRecord) -> Question:
    """Return the question of a row of stark_qa.csv: id, query, and answer_ids, a list of node numbers."""
    identity = record.text("id")
    text = record.text("answer_ids")
    try:
        nodes = parse_line(text)
    except ValueError:
        nodes = None
    if (
        not isinstance(nodes, list)
        or not nodes
        or not all(type(node) is int for node in nodes)
    ):
        raise record.error(
            f"'answer_ids' should be a list of node numbers, such as [32299, 95312], found {text!r:.80}"
        )
    return Question(
        id=identity,
        question=record.text("query"),
        answers=(),
        supporting=tuple(dict.fromkeys(map(str, nodes))),
        type=splits.get(identity, ""),
    )


def _reader(questions: Path) -> Callable[[QuestionRecord], Question]:
    """Return a function that reads a row. If ../split/ holds the official lists, a question's type is its
    split.
    """

    @cache
    def splits() -> Mapping[str, str]:
        if "human" in questions.name:
            return {}
        split_of = {}
        for name in _SPLITS:
            file = questions.parent.parent / "split" / f"{name}.index"
            if file.is_file():
                numbers = map(str.strip, file.read_text("utf-8").splitlines())
                split_of.update(dict.fromkeys(numbers, name))
        return split_of

    return lambda record: _read(splits(), record)


def _benchmark(name: str, title: str) -> Benchmark:
    return registered(
        Benchmark(
            name=f"stark-{name}",
            title=f"STaRK: {title}",
            source=f"get the folder qa/{name} of huggingface.co/datasets/snap-stanford/stark, and write the nodes with "
            "the package stark-qa to a corpus file (docs/evaluation.md)",
            reader=_reader,
            metrics=("hit@1", "hit@5", "recall@20", "mrr"),
            files={
                "all": "stark_qa/stark_qa.csv",
                "human": "stark_qa/stark_qa_human_generated_eval.csv",
            },
        )
    )


STARK_AMAZON = _benchmark("amazon", "products")
STARK_MAG = _benchmark("mag", "papers and authors")
STARK_PRIME = _benchmark("prime", "biomedicine")
