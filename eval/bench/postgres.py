"""Compares `bm25` over an index in PostgreSQL with `bm25` over the same index in a folder, question by
question.

The environment variable RAS_AGENT_BENCH_POSTGRES names the server; `make bench` starts a private one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ras_agent.config.address import Address
from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.bench.retrieval import synthetic_passages, synthetic_queries
from ras_agent.eval.bench.rows import BenchRow, median_row, wall_ms
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over

SERVER = "RAS_AGENT_BENCH_POSTGRES"
"""The environment variable with the server's address."""
_K = 10


def bench_rows(size: int = 5_000, queries: int = 100) -> Iterator[BenchRow]:
    """Yield a row that compares the wall-clock times of `bm25` over both indexes.

    Raises:
        SettingsError: If no server is named.
    """
    if not (url := os.environ.get(SERVER)):
        raise SettingsError(
            f"no server to measure: set {SERVER} to its address, postgresql://user@host/database"
        )
    passages = list(synthetic_passages(size))
    with tempfile.TemporaryDirectory() as folder:
        places = Path(folder) / "bench.index", Address(url, f"bench_{os.getpid()}")
        indexes = [PassageIndex.create(place) for place in places]
        try:
            retrievers = []
            for index in indexes:
                index.add(passages)
                retrievers.append(retriever_over(index, "bm25"))
            times = []
            for query in synthetic_queries(queries):
                files, server = (wall_ms(one.retrieve, query, _K) for one in retrievers)
                times.append((server, files))
        finally:
            _drop(places[1])
    name = f"bm25 in PostgreSQL, {size:,} passages"
    yield median_row(name, "ms", "the same in a folder", times, at_most=5)


def _drop(address: Address) -> None:
    import psycopg

    with psycopg.connect(address.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {address.schema} CASCADE".encode())
