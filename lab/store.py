"""Measures the cost of a change of an index at several sizes, until the first answers that see it.

    python -m lab.store --sizes 1000,10000,100000 --json store.jsonl --plot lab/store.svg
    python -m lab.store --sizes 1000,10000 --url postgresql://me@localhost/bench
    python -m lab.store --sizes 2000,5000,10000,20000 --graph --plot lab/store-graph.svg
    python -m lab.store --sizes 2000,5000 --graph vectors --corpus corpus.jsonl
    python -m lab.store --sizes 20000 --records
    python -m lab.store --sizes 1000000 --corpus corpus.jsonl --questions questions.jsonl
    python -m lab.store --sizes "" --json store.jsonl --plot lab/store.svg

The last one draws the figures of the earlier ones: a panel for each kind of index, lines of files and of PostgreSQL.

With an address, the index is made in a schema of that database, which is dropped afterwards; the server's own time is
not in the figures.

Texts are those of ras_agent.eval.bench.retrieval, or, with --corpus, real ones recombined by lab.recombined; vectors of
384 numbers are drawn and not embedded. All costs are
processor time, the embedder's left out; a change is timed with a search by `bm25` and one by `dense` over the new
commit. `add 10`, `add 1` and `forget 1` are medians.

With --records, passages are records of files that were indexed with their journal, as `ras-agent index` does, and a
change is a file of ten more, or `--forget` of one record, each with an opening and an answer by `bm25`.

With --graph, the index has a knowledge graph and no vectors, and a change is timed with the graph's making and an
answer by `ppr`; with --graph vectors, the graph has vectors of its names, and there is an answer by `gfm` too, with the
network that ships. Facts are drawn as in lab.scale, or are those of the offline extractor in --corpus, whose time is
left out.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from lab.recombined import recombined_passages
from lab.scale import drawn_facts
from ras_agent.config.address import Address
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Extraction, Passage
from ras_agent.eval.bench.dense import DrawnEmbedder
from ras_agent.eval.bench.retrieval import synthetic_passages, synthetic_queries
from ras_agent.running.program import run_program
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.roles import resolve_extractor
from ras_agent.tools.structure.build_graph import build_graph

_AT_ONCE, _K = 4096, 10
_ANSWERING = ("bm25", "dense")
_TENANTS = 50
_ADDED = "graph, add 10"
SHOWN = (
    *("add 10", "add 1", "forget 1", "open", "filter"),
    *(_ADDED, f"{_ADDED}, assembling", f"{_ADDED}, comparing", "graph, forget 1"),
    *(f"{_ADDED}, first answer of {name}" for name in ("ppr", "gfm")),
)
"""Costs in milliseconds that are drawn against size, if they were measured"""


class _Timed(DrawnEmbedder):
    """Drawn vectors, with the processor time that drawing them took."""

    seconds = 0.0

    def embed(self, texts: Sequence[str]) -> Any:
        began = time.process_time()
        vectors = super().embed(texts)
        self.seconds += time.process_time() - began
        return vectors


def measure(
    size: int,
    asked: Sequence[str],
    passages: Iterator[Passage],
    url: str = "",
    *,
    vectors: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yield a record for each cost of an index of `size` passages; milliseconds, the making in seconds, memory in MB.

    asked: the queries. passages: at least `size` + 200 of them. url: of a database to make it in; by default it is made
    in a folder. vectors: whether passages have vectors.
    """
    folder, embedder = Path(tempfile.mkdtemp()), _Timed() if vectors else None
    answering = _ANSWERING if vectors else _ANSWERING[:1]

    def spent(work: Callable[[], object]) -> float:
        began = _clock(embedder)
        work()
        return _clock(embedder) - began

    def answer(index: PassageIndex) -> None:
        for name in answering:
            retriever_over(index, name).retrieve(asked[0], _K)

    def record(what: str, value: float) -> dict[str, Any]:
        return {"size": size, "what": what, "value": value}

    try:
        place = Address(url, f"store_{size}") if url else folder / "index"
        made = PassageIndex.create(place, embedder)
        tenants = cycle([{"tenant": f"t{number}"} for number in range(_TENANTS)])
        stream = (
            replace(one, document_id=f"d{number}", metadata=next(tenants))
            for number, one in enumerate(passages)
        )
        seconds = 0.0
        with made.batch():
            for start in range(0, size, _AT_ONCE):
                some = list(islice(stream, min(_AT_ONCE, size - start)))
                seconds += spent(partial(made.upsert, some))
            began = _clock(embedder)
        yield record("make, s", seconds + _clock(embedder) - began)
        more = list(islice(stream, 200))
        made.close()
        yield record("memory while it is made, MB", _peak_mb())
        if not url:
            yield record(
                "disk, MB",
                sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
                / 1e6,
            )
        else:
            yield record("disk, MB", _database_bytes(url, f"store_{size}") / 1e6)
        del made
        gc.collect()
        opened: list[PassageIndex] = []

        def opening() -> None:
            opened.append(PassageIndex.open(place, embedder))
            retriever_over(opened[-1], "bm25").retrieve(asked[0], _K)

        yield record("open", 1000 * median(spent(opening) for _ in range(5)))
        for one in opened[:-1]:
            one.close()
        del opened[:-1]
        index = opened[-1]
        answer(index)

        def changes(change: Callable[[int], object], times: int) -> float:
            def one(number: int) -> float:
                def work() -> None:
                    change(number)
                    answer(index)

                return spent(work)

            return 1000 * median(one(number) for number in range(times))

        yield record(
            "add 10",
            changes(
                lambda number: index.upsert(more[10 * number : 10 * number + 10]), 9
            ),
        )
        yield record(
            "add 1",
            changes(lambda number: index.upsert(more[100 + number : 101 + number]), 31),
        )
        yield record(
            "forget 1",
            changes(lambda number: index.delete_document(f"d{7 * number}"), 9),
        )
        yield record(
            "filter", 1000 * spent(lambda: len(index.within({"tenant": "t7"})))
        )
        for name in answering:
            retriever = retriever_over(index, name)
            for query in asked:
                retriever.retrieve(query, _K)
            times = []
            for query in asked:
                began = time.perf_counter()
                retriever.retrieve(query, _K)
                times.append(time.perf_counter() - began)
            yield record(f"search, {name}", 1000 * median(times))
        filtering: Any = retriever_over(index, "bm25")
        filters = [{"tenant": f"t{number}"} for number in range(_TENANTS)]
        filtered = [
            spent(partial(filtering.retrieve, asked[1], _K, filter=given))
            for given in filters
        ]
        yield record(
            f"search, bm25, the first of each of {_TENANTS} tenants",
            1000 * median(filtered),
        )
        index.close()
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
            searching = child.submit(
                _searching_mb, place, bool(vectors), asked
            ).result()
        yield record("memory of a process that searches, MB", searching)
    finally:
        shutil.rmtree(folder)
        if url:
            drop_schema(url, f"store_{size}")


def _clock(embedder: _Timed | None) -> float:
    """Return the processor time of this process in seconds, without the drawing of vectors."""
    return time.process_time() - (embedder.seconds if embedder else 0)


def _searching_mb(place: Path | Address, vectors: bool, asked: Sequence[str]) -> float:
    """Search an index by all that it has, in a process of its own, and return that process's peak memory in MB."""
    index = PassageIndex.open(place, _Timed() if vectors else None)
    for name in _ANSWERING if vectors else _ANSWERING[:1]:
        retriever = retriever_over(index, name)
        for query in asked:
            retriever.retrieve(query, _K)
    return _peak_mb()


def _peak_mb() -> float:
    """Return the most memory that this process has had, in MB; a child's own, which its usage would not tell."""
    if (status := Path("/proc/self/status")).exists():
        return float(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    return (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        * (1 if sys.platform == "darwin" else 1024)
        / 1e6
    )


def _database_bytes(url: str, schema: str) -> float:
    import psycopg

    tables = "FROM pg_class WHERE relkind = 'r' AND relnamespace = %s::regnamespace"
    with psycopg.connect(url) as connection:
        row = connection.execute(
            f"SELECT sum(pg_total_relation_size(oid)) {tables}".encode(), (schema,)
        ).fetchone()
    return float(row[0]) if row else 0.0


def drop_schema(url: str, schema: str) -> None:
    """Drop a schema of a PostgreSQL database with all that is in it."""
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())


def measure_records(
    size: int,
    question: str,
    passages: Iterator[Passage],
    *,
    times: int = 5,
    url: str = "",
) -> Iterator[dict[str, Any]]:
    """Yield a record for each cost of an index of `size` records and their journal, in milliseconds."""
    folder = Path(tempfile.mkdtemp())
    place = Address(url, f"store_{size}") if url else folder / "index"

    def file_of(name: str, first: int, count: int) -> Path:
        path = folder / f"{name}.jsonl"
        records = (
            {"id": f"d{first + at}", "text": one.text}
            for at, one in enumerate(islice(passages, count))
        )
        path.write_text(
            "".join(json.dumps(one) + "\n" for one in records), encoding="utf-8"
        )
        return path

    def cost(change: Callable[[], object]) -> float:
        began = time.process_time()
        change()
        index = PassageIndex.open(place)
        retriever_over(index, "bm25").retrieve(question, _K)
        spent = time.process_time() - began
        index.close()
        return 1000 * spent

    try:
        ingest([file_of("corpus", 0, size)], place)
        cost(lambda: None)  # imports the modules that answers need
        more = [
            file_of(f"more{number}", size + 10 * number, 10) for number in range(times)
        ]
        changes: dict[str, list[Callable[[], object]]] = {
            "add 10": [partial(ingest, [path], place) for path in more],
            "forget 1": [
                partial(ingest, [], place, forget=[f"d{7 * number}"])
                for number in range(times)
            ],
        }
        for what, made in changes.items():
            yield {
                "size": size,
                "what": what,
                "value": median(cost(change) for change in made),
            }
    finally:
        shutil.rmtree(folder)
        if url:
            drop_schema(url, f"store_{size}")


class _Given:
    """Extractor that has read all passages before."""

    name = "given"

    def __init__(self, facts: Iterable[PassageFacts]) -> None:
        self._facts = {one.passage_id: one.triples for one in facts}

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        return Extraction(
            tuple(triple for passage in passages for triple in self._facts[passage.id])
        )


def with_facts(
    size: int, corpus: Sequence[Path] = ()
) -> tuple[list[Passage], _Given, str]:
    """Return `size` passages, each a document, an extractor that knows their facts, and a question about them.

    Facts are drawn, or read in the passages of JSON lines with id, title and text.
    """
    if not corpus:
        texts = [(one.text, one.title) for one in synthetic_passages(size)]
        passages = [
            Passage(f"p{number}", *one, f"d{number}")
            for number, one in enumerate(texts)
        ]
        question = "What did Name 7 do with Name 8?"
        return (
            passages,
            _Given(drawn_facts([passage.id for passage in passages])),
            question,
        )
    lines = [
        json.loads(line)
        for path in corpus
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    texts = list({(line["text"], line["title"]): None for line in lines})[:size]
    if len(texts) < size:
        raise SettingsError(
            f"the corpus has {len(texts):,} passages, and {size:,} are asked for: give more files"
        )
    passages = [
        Passage(f"p{number}", *one, f"d{number}") for number, one in enumerate(texts)
    ]
    extractor = resolve_extractor("offline")
    facts = _Given(
        PassageFacts(one.id, extractor.extract([one]).triples) for one in passages
    )
    return (
        passages,
        facts,
        f"What do {passages[0].title} and {passages[1].title} have in common?",
    )


def measure_graph(
    size: int,
    passages: Sequence[Passage],
    facts: _Given,
    question: str,
    *,
    vectors: bool = False,
    times: int = 5,
    url: str = "",
) -> Iterator[dict[str, Any]]:
    """Yield a record for each cost of an index of `size` passages with a knowledge graph, in milliseconds.

    vectors: of the names in the graph. times: how often each change is made, of which the median counts.
    """
    folder, embedder = Path(tempfile.mkdtemp()), _Timed()
    embedder.name = "minilm"  # whose vectors the network that ships reads
    place = Address(url, f"store_{size}") if url else folder / "index"
    stages: dict[str, float] = {}

    def spent() -> float:
        return time.process_time() - embedder.seconds

    def build() -> None:
        stage, since = "reading", spent()

        def turn(now: object) -> None:
            nonlocal stage, since
            if (name := getattr(now, "stage", "")) != stage:
                stages[stage] = stages.get(stage, 0) + spent() - since
                stage, since = name, spent()

        build_graph(
            place,
            extractor=facts,
            embedder=embedder if vectors else "",
            on_progress=turn,
        )
        turn(None)

    def costs(change: Callable[[], object]) -> dict[str, float]:
        stages.clear()
        began = spent()
        change()
        done = spent()
        known = {"graph": KGIndex.open(place, embedder)} if vectors else {}
        index = PassageIndex.open(place)
        answered = {}
        for name in ("ppr", "gfm") if vectors else ("ppr",):
            at = spent()
            retriever_over(index, name, **known).retrieve(question, _K)
            answered[f"first answer of {name}"] = spent() - at
        return {"": spent() - began, "change": done - began, **stages, **answered}

    def record(what: str, value: float) -> dict[str, Any]:
        return {"size": size, "what": what, "value": 1000 * value}

    def add(some: Sequence[Passage]) -> None:
        PassageIndex.open(place).upsert(some)
        build()

    try:
        with PassageIndex.create(place, None).batch() as batch:
            batch.upsert(passages[:size])
        build()
        costs(lambda: None)  # imports the modules that answers need
        more = passages[size:]
        changes: dict[str, list[Callable[[], object]]] = {
            "add 10": [
                partial(add, more[10 * number : 10 * number + 10])
                for number in range(times)
            ],
            "forget 1": [
                partial(delete_documents, place, f"d{7 * number}")
                for number in range(times)
            ],
        }
        for what, made in changes.items():
            records = [costs(change) for change in made]
            for part in records[0]:
                yield record(
                    f"graph, {what}" + f", {part}" * bool(part),
                    median(one[part] for one in records),
                )
        yield {"size": size, "what": "memory, MB", "value": _peak_mb()}
    finally:
        shutil.rmtree(folder)
        if url:
            drop_schema(url, f"store_{size}")


def exponents(records: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the power of the size that each cost grows with: the slope of a line through the logarithms."""
    powers = {}
    for what in dict.fromkeys(one["what"] for one in records):
        sizes, values = np.log(
            [(one["size"], one["value"]) for one in records if one["what"] == what]
        ).T
        powers[what] = float(np.polyfit(sizes, values, 1)[0])
    return powers


def draw(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw costs against size, both axes logarithmic: a panel for each kind of index, PostgreSQL's lines dashed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    kinds = list(dict.fromkeys(one["kind"] for one in records))
    figure, panels = pyplot.subplots(
        1,
        len(kinds),
        figsize=(2.4 + 4 * len(kinds), 5.2),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    for kind, axes in zip(kinds, panels[0], strict=True):
        drawn = [one for one in records if one["kind"] == kind and one["what"] in SHOWN]
        there = [what for what in SHOWN if any(one["what"] == what for one in drawn)]
        for number, (what, marker) in enumerate(
            zip(there, cycle("osD^vP"), strict=False)
        ):
            for place, style in (("files", "-"), ("PostgreSQL", "--")):
                points = sorted(
                    (r["size"], r["value"])
                    for r in drawn
                    if (r["what"], r["in"]) == (what, place)
                )
                label = what.removeprefix("graph, ") + ", PostgreSQL" * (
                    place != "files"
                )
                if points:
                    axes.plot(
                        *np.array(points).T,
                        style,
                        marker=marker,
                        color=f"C{number}",
                        label=label,
                    )
        axes.set(xscale="log", yscale="log", xlabel="passages", title=kind)
        axes.grid(alpha=0.3)
        # so long that dashes show, and below, where they hide no line
        axes.legend(
            fontsize="x-small",
            handlelength=4,
            ncols=2,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.15),
        )
    panels[0][0].set_ylabel("processor milliseconds until the first answers")
    figure.savefig(path)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a line per cost, and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", default="1000,10000", help="numbers of passages, parted by commas"
    )
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument(
        "--url", default="", help="make the index in this PostgreSQL database"
    )
    parser.add_argument(
        "--graph",
        nargs="?",
        const="facts",
        choices=("facts", "vectors"),
        help="measure a graph",
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        nargs="+",
        default=(),
        help="JSON lines with title and text, recombined but for --graph",
    )
    parser.add_argument(
        "--records",
        action="store_true",
        help="measure records of files, with their journal",
    )
    parser.add_argument(
        "--times",
        type=int,
        default=5,
        help="how often each change of a graph or of records is made (5)",
    )
    parser.add_argument(
        "--json", type=Path, help="add the records to this file too, one a line"
    )
    parser.add_argument(
        "--plot",
        type=Path,
        help="draw the costs of changes there, with all that --json holds",
    )
    parser.add_argument(
        "--questions", type=Path, help="JSON lines with question, to search with"
    )
    parser.add_argument("--no-vectors", action="store_true", help="measure bm25 alone")
    given = parser.parse_args(arguments)
    asked = synthetic_queries(given.queries)
    if given.questions:
        lines = given.questions.read_text(encoding="utf-8").splitlines()[
            : given.queries
        ]
        asked = [json.loads(line)["question"] for line in lines]
    sizes, records = [int(size) for size in given.sizes.split(",") if size], []
    passages, facts, question = (
        with_facts(max(sizes) + 10 * given.times, given.corpus)
        if given.graph
        else ([], None, "")
    )
    kind = {"facts": "graph", "vectors": "graph with vectors"}.get(
        given.graph or "", ""
    )
    kind = kind or (
        "records"
        if given.records
        else "BM25"
        if given.no_vectors
        else "BM25 and vectors"
    )

    def measured(size: int) -> Iterator[dict[str, Any]]:
        if facts is None:
            count = size + 200
            made = (
                recombined_passages(given.corpus, count)
                if given.corpus
                else synthetic_passages(count)
            )
            if given.records:
                return measure_records(
                    size, asked[0], made, times=given.times, url=given.url
                )
            return measure(size, asked, made, given.url, vectors=not given.no_vectors)
        vectors = given.graph == "vectors"
        return measure_graph(
            size,
            passages,
            facts,
            question,
            vectors=vectors,
            times=given.times,
            url=given.url,
        )

    for size in sizes:
        for made in measured(size):
            one = {**made, "kind": kind, "in": "PostgreSQL" if given.url else "files"}
            records.append(one)
            print(
                f"{one['size']:>9,}  {one['what']:<50} {one['value']:10.3f}", flush=True
            )
            if given.json:
                with given.json.open("a") as out:
                    out.write(json.dumps(one) + "\n")
    if len(sizes) > 1:
        for what, power in exponents(records).items():
            print(f"{what:<50} grows with the size to the power of {power:.2f}")
    if given.plot:
        if given.json:
            records = [
                json.loads(line)
                for line in given.json.read_text(encoding="utf-8").splitlines()
            ]
        draw(records, given.plot)


if __name__ == "__main__":
    run_program(main)
