"""Ask the offline mode questions over eight small tables, in Markdown, HTML, CSV and TSV; all of it is invented.

    python -m lab.tables                    # 40 questions: look-up, two hops, comparison, and questions that must be refused
    python -m lab.tables --set second       # 20 more, which were written afterwards and asked once

An answer is right if it is one of those that a person would give, as a whole; a question that the tables do not answer
is right if nothing is answered.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from ras_agent import create_ras_agent
from ras_agent.eval.metrics import normalise_answer
from ras_agent.running.program import run_program
from ras_agent.tools.index.ingest import ingest

HERE = Path(__file__).parent
SETS = {"first": HERE / "questions.jsonl", "second": HERE / "second.jsonl"}


def outcome(answers: list[str] | None, answer: str, abstained: bool) -> str:
    """Return "right", "unsaid" or "wrong" for an answer. answers: None where it must be refused."""
    if abstained:
        return "right" if answers is None else "unsaid"
    if answers is None:
        return "wrong"
    accepted = {normalise_answer(one) for one in answers}
    return "right" if normalise_answer(answer) in accepted else "wrong"


def ask(
    questions: list[dict[str, Any]], documents: Path, folder: Path
) -> list[tuple[str, str]]:
    """Index the documents in a folder, and return the outcome and the answer of each question."""
    report = ingest([documents], folder)
    for problem in report.errors:
        print("not read:", problem)
    agent = create_ras_agent(index=str(folder))
    told = []
    for asked in questions:
        result = agent.invoke({"question": asked["question"]})
        said = outcome(asked["answers"], result["answer"], result["abstained"])
        told.append((said, result["answer"]))
    return told


def main() -> None:
    """Print the outcome of each question, and their counts by kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", choices=tuple(SETS), default="first")
    arguments = parser.parse_args()
    lines = SETS[arguments.set].read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as folder:
        told = ask(questions, HERE / "documents", Path(folder) / "index")
    counts: Counter[tuple[str, str]] = Counter()
    for asked, (said, answer) in zip(questions, told, strict=True):
        print(f"{said:7}{asked['kind']:12}{asked['question']}  ->  {answer[:100]}")
        counts[asked["kind"], said] += 1
        counts["all", said] += 1
    for (kind, said), count in sorted(counts.items()):
        print(f"{kind:12}{said:8}{count}")


if __name__ == "__main__":
    run_program(main)
