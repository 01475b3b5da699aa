"""Score the offline mode on 240 questions about two things, written for this over training passages of two sets.

    python -m lab.two_things --data DATA                 # the first half, which chose things, question by question
    python -m lab.two_things --data DATA --half second   # the half that is scored: only counts

Half of the questions are to be answered with yes or no, a quarter choose one of the two, a quarter ask for the
common part of both, often in other words than the texts. The passages are those of HotpotQA's training sample and of
2WikiMultihopQA; everything is said (least_confidence 0), searched for by BM25.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from ras_agent import Limits, PassageIndex
from ras_agent.config.settings import Settings
from ras_agent.contracts.records import Passage
from ras_agent.eval.metrics import token_f1
from ras_agent.graphs.resolve import create_agent
from ras_agent.running.program import run_program
from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE
from ras_agent.train.data import passages_in

QUESTIONS = Path(__file__).with_suffix(".jsonl")
KINDS = ("yesno", "choice", "shared")


def questions(half: str) -> list[dict[str, Any]]:
    """Return the 120 questions of a half, "first" or "second"."""
    with QUESTIONS.open(encoding="utf-8") as lines:
        every = [json.loads(line) for line in lines]
    middle = len(every) // 2
    return every[:middle] if half == "first" else every[middle:]


def passages(data: Path) -> list[Passage]:
    """Return the passages of both sets, one a title, numbered."""
    found: dict[str, Passage] = {}
    for file in ("hotpotqa_train/corpus.jsonl", "2wikimultihopqa/corpus.jsonl"):
        for passage in passages_in(data / file):
            found.setdefault(
                passage.title, Passage(str(len(found)), passage.text, passage.title)
            )
    return list(found.values())


def main() -> None:
    """Print F1 by kind, of all answers and of the sure ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--half", choices=("first", "second"), default="first")
    parser.add_argument("--retriever", default="bm25")
    arguments = parser.parse_args()
    index = PassageIndex.in_memory(passages(arguments.data))
    agent = create_agent(
        "ras",
        index=index,
        retriever=arguments.retriever,
        llm="offline",
        settings=Settings(least_confidence=0.0),
    )
    scores: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for asked in questions(arguments.half):
        out = agent.invoke({"question": asked["question"]}, context=Limits())
        f1 = token_f1(out["answer"], asked["answers"])
        scores[asked["kind"]].append((f1, out["confidence"] or 0.0))
        if arguments.half == "first":
            print(
                f"{f1:.2f} {asked['question']}\n     {out['answer']!r} ({out['confidence']})"
            )
    for kind in KINDS:
        sure = [f1 for f1, confidence in scores[kind] if confidence >= LEAST_CONFIDENCE]
        of_sure = f"{100 * sum(sure) / len(sure):.1f}" if sure else "-"
        f1 = 100 * sum(f1 for f1, _ in scores[kind]) / len(scores[kind])
        print(
            f"{kind}: F1 {f1:.1f} of {len(scores[kind])}; {len(sure)} sure ones, {of_sure}"
        )


if __name__ == "__main__":
    run_program(main)
