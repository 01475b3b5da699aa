"""Measures passages, vectors and facts on one machine at several sizes: seconds, disk, memory, milliseconds.

    python -m lab.scale --sizes 10000,100000

Passages and queries are those of ras_agent.eval.bench.retrieval, vectors are ras_agent.eval.bench.dense's, drawn and
not embedded. Facts are drawn too: 18 a passage between 11 names
a passage, as the offline extractor finds in 2WikiMultihopQA, half of them names of a Zipf distribution. Each part has a
process of its own:

    bm25, flat, hnsw     an index in files: without vectors, with vectors compared one by one, in FAISS's HNSW graph
    graph                a knowledge graph without vectors of names, searched by `ppr`

Making is in processor seconds; a search is the median of the clock's times; memory is the peak of a process that opens
the result and searches.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from lab import child_environment
from ras_agent.contracts.records import Source, Triple
from ras_agent.eval.bench.dense import DrawnEmbedder
from ras_agent.eval.bench.retrieval import synthetic_passages, synthetic_queries
from ras_agent.running.program import run_program
from ras_agent.running.protocols import Retriever
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.vector_index import VectorSettings
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.retrieve.registered import retriever_over

_AT_ONCE, _K = 20_000, 10
_FACTS, _NAMES, _RELATIONS = 18, 11, 2_000
_PARTS = ("bm25", "flat", "hnsw", "graph")


def measure(size: int, queries: int, parts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Make a record of each part: made in one process, searched in another."""
    for part in parts:
        with tempfile.TemporaryDirectory() as folder:
            made = _in_process("make", part, size, queries, folder)
            yield {
                "size": size,
                "part": part,
                **made,
                **_in_process("search", part, size, queries, folder),
            }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a line per record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", default="10000", help="numbers of passages, parted by commas"
    )
    parser.add_argument(
        "--parts", default=",".join(_PARTS), help="what to measure, parted by commas"
    )
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument(
        "--json", type=Path, help="write the records there too, one a line"
    )
    parser.add_argument(
        "--job", nargs=3, metavar=("JOB", "PART", "FOLDER"), help=argparse.SUPPRESS
    )
    given = parser.parse_args(arguments)
    sizes = [int(size) for size in given.sizes.split(",")]
    if given.job:
        job, part, folder = given.job
        print(json.dumps(_JOBS[job](part, sizes[0], given.queries, Path(folder))))
        return
    for record in (
        one
        for size in sizes
        for one in measure(size, given.queries, given.parts.split(","))
    ):
        shown = (
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in record.items()
        )
        print("  ".join(shown), flush=True)
        if given.json:
            with given.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")


def _in_process(
    job: str, part: str, size: int, queries: int, folder: str
) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "lab.scale", "--job", job, part, folder]
    command += ["--sizes", str(size), "--queries", str(queries)]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=child_environment()
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _make(part: str, size: int, queries: int, folder: Path) -> dict[str, Any]:
    passages = synthetic_passages(size)
    vectors = VectorSettings("hnsw") if part == "hnsw" else None
    index = PassageIndex.create(
        folder / "an.index",
        DrawnEmbedder() if part in {"flat", "hnsw"} else None,
        vectors=vectors,
    )
    ids: list[str] = []
    drawing, before = 0.0, 0
    began = time.process_time()
    with index.batch():
        while batch := list(islice(passages, _AT_ONCE)):
            ids += [passage.id for passage in batch]
            index.add(batch)
    if part == "graph":
        began, before = time.process_time(), _bytes_in(folder)
        with open_writer(folder / "an.index", None) as writer:
            facts = drawn_facts(ids)
            while some := list(islice(facts, 1000)):
                writer.put(some)
            writer.write()
        at = time.process_time()
        sum(1 for _ in drawn_facts(ids))
        drawing = time.process_time() - at
    seconds = time.process_time() - began - 2 * drawing
    disk = _bytes_in(folder) - before
    return {"make_s": seconds, "make_mb": _peak_mb(), "disk_mb": disk / 1e6}


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _search(part: str, size: int, queries: int, folder: Path) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    index = PassageIndex.open(
        folder / "an.index", DrawnEmbedder() if part in {"flat", "hnsw"} else None
    )
    retriever = retriever_over(
        index, {"bm25": "bm25", "graph": "ppr"}.get(part, "dense")
    )
    texts = synthetic_queries(queries)
    if part == "graph":
        texts = [
            f"What did Name {number} do with Name {number + 1}?"
            for number in range(7, 7 + queries)
        ]
    retriever.retrieve(texts[0], _K)
    return {
        "search_ms": 1000 * median(_seconds(retriever, text) for text in texts),
        "search_mb": _peak_mb(),
    }


_JOBS: dict[str, Callable[[str, int, int, Path], dict[str, Any]]] = {
    "make": _make,
    "search": _search,
}


def _seconds(retriever: Retriever, text: str) -> float:
    began = time.perf_counter()
    retriever.retrieve(text, _K)
    return time.perf_counter() - began


def drawn_facts(ids: Sequence[str]) -> Iterator[PassageFacts]:
    """Draw the facts of each passage; a name is its own or, for every other, one that many passages share."""
    rng = np.random.default_rng(0)
    for number, passage in enumerate(ids):
        shared = rng.zipf(1.3, _FACTS) % (len(ids) * _NAMES // 2)
        own = number * _NAMES // 2 + rng.integers(_NAMES // 2, size=_FACTS)
        relations = rng.integers(_RELATIONS, size=_FACTS)
        yield PassageFacts(
            passage,
            tuple(
                Triple(
                    f"Name {one + len(ids) * _NAMES // 2}",
                    f"relation {two}",
                    f"Name {three}",
                    (Source(passage, 0, 9),),
                )
                for one, two, three in zip(
                    own.tolist(), relations.tolist(), shared.tolist(), strict=True
                )
            ),
        )


def _peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    run_program(main)
