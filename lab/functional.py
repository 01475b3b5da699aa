"""Relations counted as functional over documents whose relations are known and true: whatever disagrees is a false alarm.

python -m lab.functional --data redocred_train500.jsonl
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from ras_agent.program import run_program
from ras_agent.records import Source, Triple
from ras_agent.tools.kg.functional import (
    LEAST_SUBJECTS,
    functional_relations,
    have_one_object,
)
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts


def main() -> None:
    """Print for each relation how many subjects have several readings, and how many of them disagree."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.functional",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument("--data", type=Path, required=True)
    path = parser.parse_args().data
    passages = []
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        passages.append(_facts_of(str(number), json.loads(line)))
    graph = KGIndex.in_memory(passages)
    functional = functional_relations(graph)
    subjects: Counter[str] = Counter()
    disagreeing: Counter[str] = Counter()
    for frame, has_one in have_one_object(graph):
        subjects[frame] += 1
        disagreeing[frame] += not has_one
    flagged = 0
    for frame, count in subjects.most_common():
        if count < LEAST_SUBJECTS:
            continue
        print(f"{frame:8} {count:5} {disagreeing[frame]:5}  {functional[frame]}")
        if functional[frame]:
            flagged += disagreeing[frame]
    total = subjects.total()
    print(
        f"{total} subjects in {len(subjects)} relations, {disagreeing.total()} with several objects; "
        f"{flagged} of them in relations that are taken as functional"
    )


def _facts_of(name: str, row: dict[str, Any]) -> PassageFacts:
    names = []
    for mentions in row["vertexSet"]:
        forms = [mention["name"] for mention in mentions]
        names.append(max(forms, key=len))
    facts = []
    for label in row["labels"]:
        subject = names[label["h"]]
        object_ = names[label["t"]]
        facts.append(Triple(subject, label["r"], object_, (Source(name),)))
    return PassageFacts(name, tuple(facts))


if __name__ == "__main__":
    run_program(main)
