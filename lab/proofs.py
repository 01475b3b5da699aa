"""Measures the proofs of evaluation runs: how many are shown, how many are whole, and whether answers rest on them.

ras-agent eval jsonl --data QUESTIONS --corpus CORPUS --least-confidence 0 --out runs/m
python -m lab.proofs runs/m --answerer offline
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ras_agent.eval.metrics import Outcome, exact_match, score
from ras_agent.eval.metrics.proofs import proof_citations
from ras_agent.eval.question import Question
from ras_agent.eval.study import removals
from ras_agent.program import run_program
from ras_agent.protocols import Answerer
from ras_agent.tools.roles import resolve_answerer
from ras_agent.trace import Trace


def main() -> None:
    """Print the counts of each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of ras-agent eval")
    parser.add_argument("--answerer", default="", help="a model that is asked again without each sentence of a proof")
    arguments = parser.parse_args()
    answerer = resolve_answerer(arguments.answerer) if arguments.answerer else None
    for run in arguments.runs:
        counts = Counter[str]()
        lines = (run / "results.jsonl").read_text("utf-8").splitlines()
        for result in map(json.loads, lines):
            if result["trace"]:
                counts += _counts(result, answerer)
        print(run, json.dumps(dict(sorted(counts.items()))))


def _counts(result: Mapping[str, Any], answerer: Answerer | None) -> Counter[str]:
    trace = Trace.from_dict(result["trace"])
    outcome = Outcome.from_output(result["trace"])
    by_title = not set(result["supporting"]) & set(trace.passages) and bool(result["supporting"])
    question = Question(result["id"], trace.question, tuple(result["answers"]), tuple(result["supporting"]), by_title)
    proof = proof_citations(trace.question, outcome)
    if proof is None:
        return Counter()
    right = " of right answers" if exact_match(trace.answer, result["answers"]) else " of wrong answers"
    whole = score(question, outcome, ["proof_complete"]).get("proof_complete") == 1.0
    counts = Counter({f"due{right}": 1, f"shown{right}": bool(proof), f"whole{right}": whole})
    if answerer:
        for one in removals(trace, answerer):
            name = "sentence of a proof" if one.in_proof else "control"
            counts += Counter({f"removed: {name}": 1, f"falls without: {name}": one.falls})
    return counts


if __name__ == "__main__":
    run_program(main)
