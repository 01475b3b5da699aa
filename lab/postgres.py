"""Measures an index in PostgreSQL on synthetic passages: seconds, disk, and what HNSW finds under filters.

    python -m lab.postgres --url postgresql://me@localhost/bench --sizes 10000,100000

Passages and queries are those of ras_agent.eval.bench.retrieval. Vectors have 384 numbers around a thousand centres, so
that they have near neighbours as texts have; making them takes no model. Passage n has the metadata {"half": n % 2,
"tenth": n % 10, "hundredth": n % 100, "thousandth": n % 1000}, by which filters select. Times are the clock's, of one
client beside its server, on whatever else runs there; recall@10 compares the nearest that are found with the nearest
that there are. The schema `ras_agent_bench` is made anew and dropped at the end.

With --hotpotqa FOLDER it also compares rankings over the corpus there, on its first 150 questions: BM25 in PostgreSQL
and in files, and PostgreSQL's own ts_rank and ts_rank_cd over to_tsvector('english', ...).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ras_agent.address import Address
from ras_agent.arrays import Floats
from ras_agent.eval.bench.retrieval import synthetic_passages, synthetic_queries
from ras_agent.eval.benchmarks import benchmark
from ras_agent.filters import ALL, Filter
from ras_agent.program import run_program
from ras_agent.records import Passage
from ras_agent.tools.index.postgres import PostgresIndex
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over

_SCHEMA, _AT_ONCE, _K = "ras_agent_bench", 8192, 10
_WIDTH, _CENTRES, _SPREAD = 384, 1000, 0.7
_FILTERS = {"none": ALL, **{name: Filter.of({name: 1}) for name in ("half", "tenth", "hundredth", "thousandth")}}


class Drawn:
    """An embedder whose vectors are drawn, near one of a thousand centres that the text's first word chooses."""

    name, dimension = "drawn", _WIDTH

    def __init__(self) -> None:
        self._centres = np.random.default_rng(0).standard_normal((_CENTRES, _WIDTH)).astype(np.float32)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, (len(texts), 384), the same for the same text."""
        vectors = np.stack([self._drawn(text) for text in texts])
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def _drawn(self, text: str) -> Floats:
        rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))
        noise = rng.standard_normal(_WIDTH, dtype=np.float32)
        return np.asarray(self._centres[rng.integers(_CENTRES)] + _SPREAD * noise, dtype=np.float32)


def measure(url: str, size: int, queries: int) -> Iterator[dict[str, Any]]:
    """Make one record of the index and one of each search."""
    _drop(url)
    index = PostgresIndex.create(Address(url, _SCHEMA), Drawn())
    passages = (_labelled(number, one) for number, one in enumerate(synthetic_passages(size)))
    began = time.perf_counter()
    while batch := list(islice(passages, _AT_ONCE)):
        index.add(batch)
    written = time.perf_counter()
    index.finish()
    built = time.perf_counter()
    made = {"write_seconds": written - began, "finish_seconds": built - written, **_megabytes(index)}
    yield {"size": size, "what": "index", **made}
    texts = synthetic_queries(queries)
    yield {"size": size, "what": "bm25", **_searched(index, "bm25", texts, ALL)}
    for name, filter in _FILTERS.items():
        yield {"size": size, "what": f"dense, {name}", **_searched(index, "dense", texts, filter)}
    index.close()
    _drop(url)


def compare(url: str, folder: Path, k: int = 5) -> Iterator[dict[str, Any]]:
    """Make a record of each ranking of HotpotQA's corpus: recall@k on the first 150 questions."""
    _drop(url)
    asked = benchmark("hotpotqa")
    questions, corpus = asked.load(folder / "questions.jsonl")[:150], asked.corpus(folder / "corpus.jsonl", None)
    index = PostgresIndex.create(Address(url, _SCHEMA))
    index.add(corpus)
    index.finish()
    files = PassageIndex.in_memory(corpus)
    with index.database.writing() as connection:
        words = "to_tsvector('english', title || '. ' || text) AS words"
        connection.execute(f"CREATE TABLE ranked AS SELECT row, title, {words} FROM passages".encode())

    def own_ranking(function: str) -> Callable[[str], list[str]]:
        query = (
            "SELECT title FROM ranked, (SELECT string_agg(quote_literal(word), ' | ')::tsquery AS asked FROM "
            "unnest(tsvector_to_array(to_tsvector('english', %s))) word) one WHERE words @@ asked "
            f"ORDER BY {function} DESC, row LIMIT {k}"
        ).encode()

        def search(text: str) -> list[str]:
            with index.database.reading() as connection:
                return [title for (title,) in connection.execute(query, (text,))]

        return search

    def titles(retriever: Any) -> Callable[[str], list[str]]:
        return lambda text: [hit.passage.title for hit in retriever.retrieve(text, k)]

    searches = {"bm25 in PostgreSQL": titles(retriever_over(index)), "bm25 in files": titles(retriever_over(files))}
    for function in ("ts_rank(words, asked)", "ts_rank(words, asked, 1)", "ts_rank_cd(words, asked)"):
        searches[function] = own_ranking(function)
    for name, search in searches.items():
        found = [set(search(one.question)) & set(one.supporting) for one in questions]
        shares = [len(hits) / len(set(one.supporting)) for hits, one in zip(found, questions, strict=True)]
        yield {"what": name, f"recall@{k}": 100 * sum(shares) / len(shares)}
    index.close()
    _drop(url)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a line per record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="a database that may be written to; the server has pgvector")
    parser.add_argument("--sizes", default="10000", help="numbers of passages, parted by commas")
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--hotpotqa", type=Path, help="a folder with questions.jsonl and corpus.jsonl")
    parser.add_argument("--json", type=Path, help="write the records there too, one a line")
    given = parser.parse_args(arguments)
    sizes = [int(size) for size in given.sizes.split(",") if size]
    records = (record for size in sizes for record in measure(given.url, size, given.queries))
    compared = compare(given.url, given.hotpotqa) if given.hotpotqa else ()
    for part in (records, compared):
        for record in part:
            print("  ".join(f"{name} {_shown(value)}" for name, value in record.items()), flush=True)
            if given.json:
                with given.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")


def _labelled(number: int, passage: Passage) -> Passage:
    about = {"half": number % 2, "tenth": number % 10, "hundredth": number % 100, "thousandth": number % 1000}
    return replace(passage, metadata=about)


def _searched(index: PostgresIndex, name: str, texts: Sequence[str], filter: Filter) -> dict[str, float]:
    """Return how long searches take, and for vectors what share of the nearest they find."""
    retriever: Any = retriever_over(index, name)
    retriever.retrieve(texts[0], _K, filter=filter)
    seconds, found = [], []
    for text in texts:
        began = time.perf_counter()
        found.append({hit.passage.id for hit in retriever.retrieve(text, _K, filter=filter)})
        seconds.append(time.perf_counter() - began)
    times = {"median_ms": 1000 * median(seconds), "p95_ms": 1000 * float(np.percentile(seconds, 95))}
    if name == "bm25":
        return times
    shares = []
    exact: Any = retriever_over(index, "dense", exact=True)
    for text, ids in zip(texts[:50], found, strict=False):
        nearest = {hit.passage.id for hit in exact.retrieve(text, _K, filter=filter)}
        shares.append(len(ids & nearest) / max(len(nearest), 1))
    return {**times, "recall@10": 100 * sum(shares) / len(shares)}


def _megabytes(index: PostgresIndex) -> dict[str, float]:
    """Return the disk of the tables and of each index, in MB."""
    query = "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relnamespace = %s::regnamespace"
    whole = (
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
    )
    with index.database.reading() as connection:
        sizes: dict[str, int] = dict(connection.execute(query, (_SCHEMA,)).fetchall())
        (everything,) = connection.execute(whole, (_SCHEMA,)).fetchone() or (0,)
    shown = {"all": int(everything), "rows": sizes["passages"], "words": sizes["passages_terms"]}
    shown["hnsw"] = sizes.get("passages_vector", 0)
    return {f"{name}_mb": size / 2**20 for name, size in shown.items()}


def _drop(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE".encode())


def _shown(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    run_program(main)
