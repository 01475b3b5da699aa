"""Pairs of texts of which two thirds disagree on the answer to a question: are both claims stated, and only then?

    python -m lab.disputes

disputes.jsonl has twenty pairs that name something else, twenty with another date or quantity, and twenty that may both
be true. All were written before the rule that is tried on them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from ras_agent import create_ras_agent
from ras_agent.contracts.records import Passage
from ras_agent.running.program import run_program

_PAIRS = Path(__file__).with_suffix(".jsonl")


def main() -> None:
    """Ask each pair's question and count by kind how many answers state both claims."""
    argparse.ArgumentParser(
        prog="python -m lab.disputes",
        description=(__doc__ or "").partition("\n")[0],
    ).parse_args()
    pairs: Counter[str] = Counter()
    disputed: Counter[str] = Counter()
    for line in _PAIRS.read_text("utf-8").splitlines():
        pair = json.loads(line)
        kind = pair["kind"]
        passages = []
        for number, text in enumerate(pair["texts"], start=1):
            file = f"{number}.md"
            passages.append(Passage(file, text, metadata={"file": file}))
        out = create_ras_agent(index=passages).invoke({"question": pair["question"]})
        pairs[kind] += 1
        if out["disputes"]:
            disputed[kind] += 1
        print(f"{kind:10}  {bool(out['disputes'])!s:5}  {out['answer']}")
    for kind, count in pairs.items():
        print(f"{kind}: both claims in {disputed[kind]} of {count}")


if __name__ == "__main__":
    run_program(main)
