"""Measures what a change of an index costs at several sizes, until the first answers that see it.

    python -m lab.store --sizes 1000,10000,100000 --json store.jsonl --plot lab/store.svg
    python -m lab.store --sizes 1000,10000 --url postgresql://me@localhost/bench

With an address, the index is made in a schema of that database, which is dropped afterwards; the server's own time is
not in the figures.

Texts are those of ras_agent.eval.bench.retrieval, vectors of 384 numbers are drawn and not embedded. All costs are
processor time, the embedder's left out; a change is timed with a search by `bm25` and one by `dense` over the new
commit. `add 10`, `add 1` and `forget 1` are medians.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from lab.scale import Drawn
from ras_agent.address import Address
from ras_agent.eval.bench.retrieval import synthetic_passages, synthetic_queries
from ras_agent.program import run_program
from ras_agent.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over

_AT_ONCE, _K = 4096, 10
_ANSWERING = ("bm25", "dense")
_TENANTS = 50
SHOWN = ("add 10", "add 1", "forget 1", "open", "filter")
"""Costs in milliseconds that are drawn against size"""


class _Timed(Drawn):
    """Drawn vectors, with the processor time that drawing them took."""

    seconds = 0.0

    def embed(self, texts: Sequence[str]) -> Any:
        began = time.process_time()
        vectors = super().embed(texts)
        self.seconds += time.process_time() - began
        return vectors


def measure(size: int, queries: int, url: str = "") -> Iterator[dict[str, Any]]:
    """Yield a record for each cost of an index of `size` passages; milliseconds, the making in seconds.

    url: of a database to make it in; by default it is made in a folder.
    """
    folder, embedder = Path(tempfile.mkdtemp()), _Timed()
    asked = synthetic_queries(queries)

    def spent(work: Callable[[], object]) -> float:
        began, drawn = time.process_time(), embedder.seconds
        work()
        return time.process_time() - began - (embedder.seconds - drawn)

    def answer(index: PassageIndex) -> None:
        for name in _ANSWERING:
            retriever_over(index, name).retrieve(asked[0], _K)

    def record(what: str, value: float) -> dict[str, Any]:
        return {"size": size, "what": what, "value": value}

    try:
        place = Address(url, f"store_{size}") if url else folder / "index"
        made = PassageIndex.create(place, embedder)
        passages = [
            Passage(one.id, one.text, one.title, f"d{number}", {"tenant": f"t{number % _TENANTS}"})
            for number, one in enumerate(synthetic_passages(size + 200))
        ]
        first, more = passages[:size], passages[size:]

        def make() -> None:
            with made.batch():
                for start in range(0, size, _AT_ONCE):
                    made.upsert(first[start : start + _AT_ONCE])

        yield record("make, s", spent(make))
        made.close()
        opened: list[PassageIndex] = []

        def opening() -> None:
            opened.append(PassageIndex.open(place, embedder))
            retriever_over(opened[-1], "bm25").retrieve(asked[0], _K)

        yield record("open", 1000 * median(spent(opening) for _ in range(5)))
        index = opened[-1]
        answer(index)

        def changes(change: Callable[[int], object], times: int) -> float:
            def one(number: int) -> float:
                def work() -> None:
                    change(number)
                    answer(index)

                return spent(work)

            return 1000 * median(one(number) for number in range(times))

        yield record("add 10", changes(lambda number: index.upsert(more[10 * number : 10 * number + 10]), 9))
        yield record("add 1", changes(lambda number: index.upsert(more[100 + number : 101 + number]), 31))
        yield record("forget 1", changes(lambda number: index.delete_document(f"d{7 * number}"), 9))
        yield record("filter", 1000 * spent(lambda: len(index.within({"tenant": "t7"}))))
        for name in _ANSWERING:
            retriever = retriever_over(index, name)
            for query in asked:
                retriever.retrieve(query, _K)
            times = []
            for query in asked:
                began = time.perf_counter()
                retriever.retrieve(query, _K)
                times.append(time.perf_counter() - began)
            yield record(f"search, {name}", 1000 * median(times))
        tenants = [{"tenant": f"t{number}"} for number in range(_TENANTS)]
        filtering: Any = retriever_over(index, "bm25")
        filtered = [spent(partial(filtering.retrieve, asked[1], _K, filter=given)) for given in tenants]
        yield record(f"search, bm25, the first of each of {_TENANTS} tenants", 1000 * median(filtered))
    finally:
        shutil.rmtree(folder)
        if url:
            import psycopg

            with psycopg.connect(url) as connection:
                connection.execute(f"DROP SCHEMA IF EXISTS store_{size} CASCADE".encode())


def draw(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw costs against size, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    for what, marker in zip(SHOWN, "osD^v", strict=True):
        points = sorted((one["size"], one["value"]) for one in records if one["what"] == what)
        axes.plot(*np.array(points).T, marker=marker, label=what)
    axes.set(xscale="log", yscale="log", xlabel="passages", ylabel="processor milliseconds until the first answers")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line per cost, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000", help="numbers of passages, parted by commas")
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--url", default="", help="make the index in this PostgreSQL database")
    parser.add_argument("--json", type=Path, help="write the records there too, one a line")
    parser.add_argument("--plot", type=Path, help="draw the costs of changes there")
    given = parser.parse_args(arguments)
    records = []
    for size in map(int, given.sizes.split(",")):
        for one in measure(size, given.queries, given.url):
            records.append(one)
            print(f"{one['size']:>9,}  {one['what']:<50} {one['value']:10.3f}", flush=True)
            if given.json:
                with given.json.open("a") as out:
                    out.write(json.dumps(one) + "\n")
    if given.plot:
        draw(records, given.plot)


if __name__ == "__main__":
    run_program(main)
