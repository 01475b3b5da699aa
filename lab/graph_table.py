"""Compares retrievers over one index and its knowledge graph: recall, time, paired differences.

    python -m lab.graph_table wiki.index questions.jsonl --first 151 --last 300

Questions are JSON Lines with `question` and `supporting_titles` or `supporting_ids` (these count where both are there).
All graph retrievers share the index, its graph and the linking of questions to it; a name with "+dense" is the mix of
the graph's and dense search, and "graph" that of gfm, ppr and dense. A difference's 95 % interval and p value are of
the paired bootstrap over questions. With --seeds, networks trained from other seeds are scored, too: their mean and
spread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.errors import IngestError
from ras_agent.eval.significance import paired_bootstrap
from ras_agent.program import run_program
from ras_agent.protocols import Retriever
from ras_agent.records import Hit
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.dense import dense
from ras_agent.tools.retrieve.document_ranker import PACKAGED
from ras_agent.tools.retrieve.gfm import gfm
from ras_agent.tools.retrieve.mix import MixedRetriever
from ras_agent.tools.retrieve.ppr import ppr
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.retrieve.rerank import Reranker

RETRIEVERS = ("bm25", "dense", "hybrid", "ppr", "gfm", "ppr+dense", "gfm+dense", "graph")
PAIRS = (
    ("ppr", "dense"),
    ("gfm", "dense"),
    ("gfm", "ppr"),
    ("ppr+dense", "dense"),
    ("gfm+dense", "dense"),
    ("gfm+dense", "ppr+dense"),
    ("graph", "dense"),
    ("graph", "ppr+dense"),
)
GRAPH = ("ppr", "gfm", "paths", "pcst", "graph")


@dataclass(frozen=True, slots=True)
class Gold:
    """Holds a question and its supporting titles, or passage ids if `by_id`."""

    question: str
    supporting: frozenset[str]
    by_id: bool


def gold_of(row: dict[str, Any]) -> Gold:
    """Read a line of a question file. Raises IngestError for one without supporting passages."""
    by_id = "supporting_ids" in row
    supporting = frozenset(row.get("supporting_ids" if by_id else "supporting_titles") or ())
    if not supporting or not row.get("question"):
        raise IngestError(f"not a question with supporting_ids or supporting_titles: {json.dumps(row)[:120]}")
    return Gold(row["question"], supporting, by_id)


def recalls(hits: Sequence[Hit], gold: Gold) -> tuple[float, float, float]:
    """Compute R@2, R@5 and whether all supporting passages are in the first five hits; each in 0..1."""
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
    parser.add_argument("--seeds", default="", help="folders of more weights, parted by commas")
    parser.add_argument("--first", type=int, default=1, help="first line of the questions (1)")
    parser.add_argument("--last", type=int, help="last line")
    given = parser.parse_args(arguments)
    lines = given.questions.read_text("utf-8").splitlines()[given.first - 1 : given.last]
    golds = [gold_of(json.loads(line)) for line in lines if line.strip()]
    if not golds:
        parser.error(f"{given.questions}: no question in lines {given.first} to {given.last or 'the end'}")
    index = PassageIndex.open(given.index)
    graph = KGIndex.open(given.graph or given.index)
    print(
        f"{len(golds)} questions, {len(index):,} passages, {len(graph.entities):,} entities, {len(graph.edges):,} edges"
    )
    if unknown := _unknown(index, golds):
        print(f"{unknown} questions are supported by passages that the index does not hold: they cannot be found")
    print(f"{'retriever':<12}{'R@2':>8}{'R@5':>8}{'all@5':>8}{'ms':>9}{'CPU ms':>9}")
    scores: dict[str, npt.NDArray[np.float64]] = {}
    for name in given.retrievers.split(","):
        options: dict[str, Any] = {"graph": graph} if name.partition("+")[0] in GRAPH else {}
        if name.startswith(("gfm", "graph")) and given.weights:
            options |= {"weights": given.weights, "ranker": PACKAGED}
        retriever = retriever_over(index, name, **options)
        scores[name], clock, processor = _asked(retriever, golds)
        print(f"{name:<12}{_figures(scores[name])}{clock:>9.1f}{processor:>9.1f}", flush=True)
    if given.seeds:
        folders = [Path(folder) for folder in given.seeds.split(",")]
        _show_seeds([scores, *(_of_weights(index, graph, folder, golds) for folder in folders)])
    for one, other in PAIRS:
        if one in scores and other in scores:
            for column, measure in enumerate(("R@2", "R@5")):
                gap = paired_bootstrap(scores[one][:, column].tolist(), scores[other][:, column].tolist())
                interval = f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"
                print(f"{measure}  {one} - {other}: {100 * gap.mean:+.1f} ({interval}, p {gap.p_value:.3f})")


def _unknown(index: PassageIndex, golds: Sequence[Gold]) -> int:
    """Count the questions with a supporting passage that is not in the index."""
    ids, titles = zip(*((passage.id, passage.title) for passage in index.passages), strict=True) if index else ((), ())
    known = {True: frozenset(ids), False: frozenset(titles)}
    return sum(not gold.supporting <= known[gold.by_id] for gold in golds)


def _figures(scores: npt.NDArray[np.float64]) -> str:
    return "".join(f"{100 * value:>8.1f}" for value in scores.mean(axis=0))


def _show_seeds(seeds: Sequence[Mapping[str, npt.NDArray[np.float64]]]) -> None:
    """Print each seed's means, numbered from 1, then the mean and standard deviation over seeds."""
    for name in ("gfm", "gfm+dense", "graph"):
        means = {at: 100 * scores[name].mean(axis=0) for at, scores in enumerate(seeds, 1) if name in scores}
        for at, row in means.items():
            print(f"{f'{name}, {at}':<12}" + "".join(f"{value:>8.1f}" for value in row))
        if len(means) > 1:
            all_seeds = np.array(list(means.values()))
            spread = zip(all_seeds.mean(axis=0), all_seeds.std(axis=0, ddof=1), strict=True)
            figures = "".join(f"{mean:>7.1f} ± {gap:.1f}" for mean, gap in spread)
            print(f"{name}, mean ± standard deviation of {len(means)} seeds:{figures}", flush=True)


def _of_weights(
    index: PassageIndex, graph: KGIndex, folder: Path, golds: Sequence[Gold]
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the recalls (questions, 3) of other weights, alone and mixed; the network runs once per question."""
    alone = gfm(index, graph=graph, weights=folder, ranker=PACKAGED)
    rankers, reranker = (alone, dense(index), ppr(index, graph=graph)), Reranker(index)
    retrievers: dict[str, Retriever] = {
        "gfm": alone,
        "gfm+dense": MixedRetriever(rankers[:2], reranker=reranker),
        "graph": MixedRetriever(rankers, reranker=reranker),
    }
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in retrievers}
    for gold in golds:
        for name, retriever in retrievers.items():
            found[name].append(recalls(retriever.retrieve(gold.question, 5), gold))
    return {name: np.array(rows) for name, rows in found.items()}


def _asked(retriever: Retriever, golds: Sequence[Gold]) -> tuple[npt.NDArray[np.float64], float, float]:
    """Return recalls (questions, 3), and the median milliseconds per question by the clock and of processor time."""
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
    run_program(main)
