"""Yes-no questions over two texts with opposed evidence: does an answer show both sides?

python -m lab.opposed --data conflict_osu/strategyQA-gpt4.json --limit 300
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from ras_agent import Settings, create_ras_agent
from ras_agent.contracts.records import OnConflict, Passage
from ras_agent.running.program import run_program

_SIDES = ("parametric_memory_aligned_evidence", "counter_memory_aligned_evidence")


def main() -> None:
    """Ask each question over both evidences, and over each of them, and count the answers by kind."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.opposed", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--skip", type=int, default=0)
    options = parser.parse_args()
    lines = options.data.read_text("utf-8").splitlines()
    counts: dict[str, Counter[str]] = {}
    pairs = Counter[tuple[str | None, str | None]]()
    for line in lines[options.skip :][: options.limit]:
        row = json.loads(line)
        kinds: dict[str, str] = {}
        passages = []
        for name in _SIDES:
            if row.get(name):
                file = f"{name.partition('_')[0]}.md"
                passages.append(Passage(file, row[name], metadata={"file": file}))
        for name, texts, on_conflict in (
            ("memory", passages[:1], "both"),
            ("counter", passages[1:], "both"),
        ):
            if len(passages) == len(_SIDES):
                kind = _kind(row["question"], texts, on_conflict)
                kinds[name] = kind
                counts.setdefault(name, Counter())[kind] += 1
        pairs[kinds.get("memory"), kinds.get("counter")] += 1
    for name, answers in counts.items():
        print(f"{name:8}", dict(answers.most_common()))
    print("answers over the first and over the second piece:")
    for pair, count in pairs.most_common():
        print(count, *pair)


def _kind(question: str, passages: list[Passage], on_conflict: Any) -> str:
    chosen: OnConflict = on_conflict
    settings = Settings(on_conflict=chosen)
    agent = create_ras_agent(index=passages, settings=settings)
    out = agent.invoke({"question": question})
    if out["disputes"]:
        return "both sides"
    if out["abstained"]:
        return "not said"
    return str(out["answer"]).partition(" ")[0].strip(".,").lower()


if __name__ == "__main__":
    run_program(main)
