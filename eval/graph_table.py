"""Retrievers over one index and its knowledge graph, beside each other: recall, time, paired differences.

    python -m ras_agent.eval.graph_table wiki.index questions.jsonl --first 151 --last 300

Questions are JSON Lines with `question` and `supporting_titles` or `supporting_ids` (these count where both are there).
All graph retrievers share the index, its graph and the linking of questions to it; a name with "+dense" is the mean of
the graph's and the dense scores, each brought to 0..1. A difference's 95 % interval and p value are of the paired
bootstrap over questions.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.eval.significance import paired_bootstrap
from ras_agent.protocols import Retriever
from ras_agent.records import Hit
from ras_agent.tools.index.kg.index import KGIndex
from ras_agent.tools.index.store import PassageIndex

__all__ = ["Gold", "gold_of", "main", "recalls"]

RETRIEVERS = ("bm25", "dense", "hybrid", "ppr", "gfm", "ppr+dense", "gfm+dense")
PAIRS = (("gfm", "ppr"), ("gfm+dense", "ppr+dense"), ("gfm+dense", "dense"))
GRAPH = ("ppr", "gfm", "paths")


@dataclass(frozen=True, slots=True)
class Gold:
    """A question and what supports its answer: titles, or passage ids where `by_id`."""

    question: str
    supporting: frozenset[str]
    by_id: bool


def gold_of(row: dict[str, Any]) -> Gold:
    """From a line of a question file. Raises KeyError where nothing supports."""
    by_id = "supporting_ids" in row
    return Gold(row["question"], frozenset(row["supporting_ids" if by_id else "supporting_titles"]), by_id)


def recalls(hits: Sequence[Hit], gold: Gold) -> tuple[float, float, float]:
    """R@2, R@5 and whether all is in the top 5, of the first five hits; in 0..1."""
    found = [hit.passage.id if gold.by_id else hit.passage.title for hit in hits]
    share = [len(gold.supporting & set(found[:k])) / len(gold.supporting) for k in (2, 5)]
    return share[0], share[1], float(share[1] == 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table and the differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--graph", type=Path, help="folder of the knowledge graph; by default the one in the index")
    parser.add_argument("--retrievers", default=",".join(RETRIEVERS), help="parted by commas")
    parser.add_argument("--weights", type=Path, help="folder of GFM weights; by default the packaged ones")
    parser.add_argument("--first", type=int, default=1, help="first line of the questions (1)")
    parser.add_argument("--last", type=int, help="last line")
    given = parser.parse_args(arguments)
    lines = given.questions.read_text("utf-8").splitlines()[given.first - 1 : given.last]
    golds = [gold_of(json.loads(line)) for line in lines if line.strip()]
    index = PassageIndex.open(given.index)
    graph = KGIndex.open(given.graph or given.index)
    print(
        f"{len(golds)} questions, {len(index):,} passages, {len(graph.entities):,} entities, {len(graph.edges):,} edges"
    )
    print(f"{'retriever':<12}{'R@2':>8}{'R@5':>8}{'all@5':>8}{'ms':>9}{'CPU ms':>9}")
    scores: dict[str, npt.NDArray[np.float64]] = {}
    for name in given.retrievers.split(","):
        options: dict[str, Any] = {"graph": graph} if name.partition("+")[0] in GRAPH else {}
        if name.startswith("gfm") and given.weights:
            options["weights"] = given.weights
        retriever = index.retriever(name, **options)
        scores[name], clock, processor = _asked(retriever, golds)
        means = "".join(f"{100 * value:>8.1f}" for value in scores[name].mean(axis=0))
        print(f"{name:<12}{means}{clock:>9.1f}{processor:>9.1f}", flush=True)
    for one, other in PAIRS:
        if one in scores and other in scores:
            for column, measure in enumerate(("R@2", "R@5")):
                gap = paired_bootstrap(scores[one][:, column].tolist(), scores[other][:, column].tolist())
                interval = f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"
                print(f"{measure}  {one} - {other}: {100 * gap.mean:+.1f} ({interval}, p {gap.p_value:.3f})")


def _asked(retriever: Retriever, golds: Sequence[Gold]) -> tuple[npt.NDArray[np.float64], float, float]:
    """(questions, 3) recalls, and the median milliseconds a question by the clock and of processor time."""
    retriever.retrieve(golds[0].question, 5)  # what is built at the first question is no question's time
    rows, clock, processor = [], [], []
    for gold in golds:
        began, used = time.perf_counter(), time.process_time()
        found = retriever.retrieve(gold.question, 5)
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
        rows.append(recalls(found, gold))
    return np.array(rows), 1e3 * float(np.median(clock)), 1e3 * float(np.median(processor))


if __name__ == "__main__":
    main()
