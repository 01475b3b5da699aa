"""Count what a question's graph costs a prompt as CSV and as the facts that the agent's own prompts show.

    python -m lab.graph_text explagraphs DATA/train.tsv

Means over the first questions, in word pieces of the packaged MiniLM.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from statistics import fmean

from tokenizers import Tokenizer

from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.eval.run.own_graphs import graph_passages
from ras_agent.program import run_program
from ras_agent.prompts import fact_block
from ras_agent.tools.embed.packaged_minilm import packaged_minilm
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.subgraph.graph import Subgraph, textualise
from ras_agent.train.graphqa.examples import graph_of


def tokens_of(questions: Iterable[Question]) -> dict[str, float]:
    """Return the mean number of word pieces of the questions' graphs, as "csv" and as "facts"."""
    tokenizer = Tokenizer.from_file(str(packaged_minilm() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    counts = [(count(textualise(Subgraph.full(graph_of(one)))), count(_facts(one))) for one in questions]
    return {"csv": fmean(csv for csv, _ in counts), "facts": fmean(facts for _, facts in counts)}


def _facts(question: Question) -> str:
    return fact_block([fact for passage in graph_passages(question) for fact in stated_facts(passage) or ()], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", help="explagraphs, scenegraphs or graphqa-webqsp")
    parser.add_argument("data", type=Path)
    parser.add_argument("--most", type=int, default=300, help="how many questions are counted")
    options = parser.parse_args()
    questions = islice(benchmark(options.benchmark).load(options.data), options.most)
    print({form: round(mean) for form, mean in tokens_of(questions).items()})


if __name__ == "__main__":
    run_program(main)
