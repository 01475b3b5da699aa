"""Measures the speed and memory of BM25 on synthetic passages, compared with bm25s and rank-bm25 in the same
run.

    python -m ras_agent.eval.bench.retrieval --sizes 10000,100000,1000000 --json retrieval.jsonl

Passages have about 60 words of a Zipf distribution without stop words; queries have 6 words of the same. Every
job has a separate process, so that peak memory is measured for the job:

    ras-agent   builds an index on disk from passages, then another process opens it and answers text with hits
    bm25s       indexes terms in memory; queries are terms already, answers are row numbers
    rank-bm25   the same, up to 100,000 passages

Indexing is measured in processor seconds, and a query's time is the fastest of three, because other programs
disturb these figures less. The 95th percentile shows slow queries. For the ratios both systems answer the same
queries in turn, in one process, over the same arrays, and the medians are compared. ras-agent extracts the
terms from the query's text and reads the passages of the hits from disk; bm25s does neither.

The `retrieve` of bm25s spends most of its time in numpy's argpartition, which is slow if most scores are 0, as
here. So ras-agent is also compared with its `get_scores`, which only sums the scores.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.eval.bench.rows import BenchRow, processor_ms, wall_ms
from ras_agent.eval.report.markdown import markdown_table
from ras_agent.running.program import run_program
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.passages import indexed_text
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over

Job = Callable[[int, int, Path], dict[str, Any]]

_VOCABULARY = 200_000
_WORDS = 60
_QUERY_WORDS = 6
_K = 10
_PEER = "bm25s, terms given"
_AT_ONCE = 20_000
_RANK_BM25_LIMIT = 100_000
_LETTERS = str.maketrans("0123456789", "bcdfghjklm")


def synthetic_passages(count: int, seed: int = 0) -> Iterator[Passage]:
    """Yield `count` random passages; the same seed gives the same passages."""
    rng = np.random.default_rng(seed)
    words, chances = _zipf()
    for start in range(0, count, 1000):
        lengths = rng.poisson(_WORDS, min(1000, count - start)) + 1
        tokens = words[np.searchsorted(chances, rng.random(int(lengths.sum())))]
        for offset, text in enumerate(np.split(tokens, np.cumsum(lengths)[:-1])):
            yield Passage(
                f"p{start + offset}",
                " ".join(text),
                f"Title {start + offset}",
                f"d{start + offset}",
            )


def synthetic_queries(count: int) -> list[str]:
    """Return `count` random queries, the same each time."""
    words, chances = _zipf()
    drawn = np.random.default_rng(1).random((count, _QUERY_WORDS))
    tokens = np.searchsorted(chances, drawn)
    return [" ".join(row) for row in words[tokens]]


def measure(sizes: Sequence[int], queries: int) -> Iterator[dict[str, Any]]:
    """Yield a record of measurements for each size and system."""
    for size in sizes:
        yield {"size": size, "system": "ras-agent", **_own_costs(size, queries)}
        yield {"size": size, "system": "bm25s", **_in_process("bm25s", size, queries)}
        if size <= _RANK_BM25_LIMIT:
            costs = _in_process("rank_bm25", size, queries)
            yield {"size": size, "system": "rank-bm25", **costs}


def _own_costs(size: int, queries: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        built = _in_process("build", size, queries, folder)
        return built | _in_process("query", size, queries, folder)


def bench_rows(
    sizes: Sequence[int] = (10_000, 100_000), queries: int = 100
) -> Iterator[BenchRow]:
    """Yield rows that compare building and searching an index with bm25s and, for the smallest size, also with
    rank-bm25.

    Raises:
        SettingsError: If one of these packages is not installed.
    """
    if missing := [name for name in ("bm25s", "rank_bm25") if find_spec(name) is None]:
        raise SettingsError(
            f"peers of this benchmark are not installed: pip install {' '.join(missing)}"
        )
    for size in sizes:
        ours = _own_costs(size, queries)
        theirs = _in_process("bm25s", size, queries)
        passages = f"{size:,} passages"
        yield BenchRow(
            f"index {passages}",
            "s of processor",
            ours["index_seconds"],
            _PEER,
            theirs["index_seconds"],
            at_most=8,
        )
        median_ms = ours["median_ms"]
        if size == min(sizes):
            all_scored = _in_process("rank_bm25", size, queries)["median_ms"]
            name = f"bm25, {passages}, scores of all"
            yield BenchRow(name, "ms", median_ms, "rank-bm25", all_scored, at_most=0.02)
        name = f"bm25, {passages}"
        yield BenchRow(name, "ms", median_ms, _PEER, ours["bm25s_ms"], at_most=0.75)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", default="10000,100000", help="numbers of passages, parted by commas"
    )
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument(
        "--json", type=Path, help="write the records there too, one a line"
    )
    parser.add_argument(
        "--job", nargs=2, metavar=("JOB", "FOLDER"), help=argparse.SUPPRESS
    )
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.job:
        print(
            json.dumps(
                _JOBS[options.job[0]](sizes[0], options.queries, Path(options.job[1]))
            )
        )
        return
    rows = []
    for record in measure(sizes, options.queries):
        rows.append([_cell(record.get(name)) for name in _COLUMNS])
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    print(markdown_table(list(_COLUMNS.values()), rows, texts=2))


_COLUMNS = {
    "size": "passages",
    "system": "system",
    "index_seconds": "index s",
    "index_mb": "index MB",
    "query_mb": "query MB",
    "median_ms": "median ms",
    "p95_ms": "p95 ms",
    "ratio": "of bm25s",
    "ratio_to_scores": "of scores",
}
"""The columns of the table by the fields of a record."""


def _cell(value: object) -> str:
    if isinstance(value, float):
        if value < 100:
            return f"{value:.3g}"
        return f"{value:.0f}"
    if value is None:
        return ""
    return str(value)


def _zipf() -> tuple[Any, Any]:
    """Return made-up words and their cumulative probabilities.

    A probability is proportional to 1 / (50 + rank), as if the most frequent words were removed as stop words. Words
    are of letters alone, because a word with digits is found by its letters and its digits too, so that a letter before
    every number would be in every passage.
    """
    chances = np.cumsum(1 / (50 + np.arange(1, _VOCABULARY + 1)))
    words = [f"w{number}".translate(_LETTERS) for number in range(_VOCABULARY)]
    return np.array(words, dtype=object), chances / chances[-1]


def _in_process(job: str, size: int, queries: int, folder: str = ".") -> dict[str, Any]:
    command = [
        sys.executable,
        "-P",
        "-m",
        "ras_agent.eval.bench.retrieval",
        "--job",
        job,
        folder,
    ]
    command += ["--sizes", str(size), "--queries", str(queries)]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(process.stdout)
    return result


def _build(size: int, queries: int, folder: Path) -> dict[str, Any]:
    index = PassageIndex.create(folder / "bench.index")
    passages = synthetic_passages(size)
    seconds = 0.0
    with index.batch():
        while batch := list(islice(passages, _AT_ONCE)):
            seconds += processor_ms(index.add, batch) / 1e3
        began = time.process_time()
    seconds += time.process_time() - began
    return {"index_seconds": seconds, "index_mb": _peak_mb()}


def _query(size: int, queries: int, folder: Path) -> dict[str, Any]:
    index = PassageIndex.open(folder / "bench.index")
    retriever = retriever_over(index, "bm25")
    texts = synthetic_queries(queries)
    for text in texts:
        retriever.retrieve(text, _K)
    peak = _peak_mb()
    tokeniser = index.snapshot.tokeniser
    bare = _bm25s()
    bare.index(
        [tokeniser.terms(indexed_text(passage)) for passage in index.passages],
        show_progress=False,
    )
    ours = []
    theirs = []
    scores = []
    search = partial(bare.retrieve, k=_K, show_progress=False)
    for text in texts:
        terms = tokeniser.terms(text)
        theirs.append(fastest(search, [terms]))
        scores.append(fastest(bare.get_scores, terms))
        ours.append(fastest(retriever.retrieve, text, _K))
    ratios = {
        "ratio": median(ours) / median(theirs),
        "ratio_to_scores": median(ours) / median(scores),
    }
    return {
        "query_mb": peak,
        **_times(ours),
        "bm25s_ms": median(theirs),
        **ratios,
    }


def _bare_bm25s(size: int, queries: int, folder: Path) -> dict[str, Any]:
    corpus = []
    for passage in synthetic_passages(size):
        corpus.append(passage.text.split())
    bare = _bm25s()
    milliseconds = processor_ms(lambda: bare.index(corpus, show_progress=False))

    search = partial(bare.retrieve, k=_K, show_progress=False)
    return _costs(milliseconds, lambda terms: search([terms]), queries)


def _rank_bm25(size: int, queries: int, folder: Path) -> dict[str, Any]:
    from rank_bm25 import BM25Okapi

    corpus = []
    for passage in synthetic_passages(size):
        corpus.append(passage.text.split())
    began = time.process_time()
    model = BM25Okapi(corpus)
    milliseconds = 1e3 * (time.process_time() - began)

    return _costs(
        milliseconds,
        lambda terms: np.argsort(model.get_scores(terms))[::-1][:_K],
        min(queries, 50),
    )


def _costs(
    milliseconds: float, search: Callable[[list[str]], object], queries: int
) -> dict[str, Any]:
    """Return the costs of a peer: of indexing, which took `milliseconds`, and of searching."""
    costs = {"index_seconds": milliseconds / 1e3, "index_mb": _peak_mb()}
    terms = [text.split() for text in synthetic_queries(queries)]
    times = [fastest(search, query) for query in terms]
    return {**costs, "query_mb": _peak_mb(), **_times(times)}


_JOBS: dict[str, Job] = {
    "build": _build,
    "query": _query,
    "bm25s": _bare_bm25s,
    "rank_bm25": _rank_bm25,
}


def _bm25s() -> Any:
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    parameters = BM25Parameters()
    return bm25s.BM25(k1=parameters.k1, b=parameters.b, method=parameters.method)


def fastest(call: Callable[..., Any], *arguments: Any) -> float:
    """Return the milliseconds by the clock of the fastest of three calls."""
    return min(wall_ms(call, *arguments) for _ in range(3))


def _times(milliseconds: Sequence[float]) -> dict[str, float]:
    return {
        "median_ms": median(milliseconds),
        "p95_ms": float(np.quantile(milliseconds, 0.95)),
    }


def _peak_mb() -> float:
    """Return the peak memory of this process in MB."""
    import resource

    unit = 1024
    if sys.platform == "darwin":
        unit = 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    run_program(main)
