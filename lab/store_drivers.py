"""Compares the hits of every retriever over one index in a folder and in PostgreSQL.

    python -m lab.store_drivers my.index --url postgresql://me@localhost/bench --questions questions.jsonl

The rows of the index are copied into a schema of that database, which is dropped afterwards: both hold the same
passages, vectors and graph, and each driver makes its own arrays of them. Two lists are the same if they have the same
passages in the same order.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from lab.store import drop_schema
from ras_agent.address import Address
from ras_agent.program import run_program
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.store.postgres import PostgresDatabase, make_tables
from ras_agent.tools.store.schema import GRAPH, JOURNAL, PASSAGES, UPLOADS
from ras_agent.tools.store.sqlite import SqliteDatabase

RETRIEVERS = "bm25,dense,hybrid,ppr,ppr+dense,gfm,graph,paths,pcst"
_SCHEMA = "drivers"
_AT_ONCE = 500  # rows
_TABLES = (*PASSAGES, *JOURNAL, *UPLOADS, *GRAPH)


def copy_rows(folder: Path, to: Address) -> None:
    """Make a copy in PostgreSQL of the index in a folder, row by row."""
    make_tables(to, [(statement, ()) for statement in _TABLES])
    source, target = SqliteDatabase(folder), PostgresDatabase(to)
    try:
        with source.reading() as reading, target.writing() as writing:
            for table in (statement.split()[2] for statement in _TABLES if statement.startswith("CREATE TABLE")):
                rows = reading.execute(f"SELECT * FROM {table}")
                insert = f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows.description))})"
                while some := rows.fetchmany(_AT_ONCE):
                    writing.executemany(insert, some)
    finally:
        source.close()
        target.close()


def compare(here: PassageIndex, there: PassageIndex, name: str, questions: Sequence[str], k: int) -> tuple[int, float]:
    """Return for how many questions both indexes give the same list, and the largest difference of a passage's score.

    name: of a registered retriever. The difference is of passages that both lists have.
    """
    same, apart = 0, 0.0
    one, other = retriever_over(here, name), retriever_over(there, name)
    for question in questions:
        scores = [{hit.passage.id: hit.score for hit in retriever.retrieve(question, k)} for retriever in (one, other)]
        same += list(scores[0]) == list(scores[1])
        both = scores[0].keys() & scores[1].keys()
        apart = max([apart, *(abs(scores[0][name] - scores[1][name]) for name in both)])
    return same, apart


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each retriever."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path, help="folder of an index")
    parser.add_argument("--url", required=True, help="of a PostgreSQL database")
    parser.add_argument("--questions", type=Path, required=True, help="JSON lines with question")
    parser.add_argument("--count", type=int, default=100, help="how many of the questions are asked (100)")
    parser.add_argument("--retrievers", default=RETRIEVERS, help="parted by commas")
    parser.add_argument("--k", type=int, default=20, help="hits of a list (20)")
    given = parser.parse_args(arguments)
    lines = given.questions.read_text("utf-8").splitlines()[: given.count]
    questions = [json.loads(line)["question"] for line in lines]
    there = Address(given.url, _SCHEMA)
    with ExitStack() as held:
        copy_rows(given.index, there)
        held.callback(drop_schema, there.url, there.schema)
        here, copied = PassageIndex.open(given.index), PassageIndex.open(there)
        held.callback(copied.close)
        held.callback(here.close)
        print(f"{len(questions)} questions, {len(here):,} passages, {given.k} hits a list", flush=True)
        for name in given.retrievers.split(","):
            same, apart = compare(here, copied, name, questions, given.k)
            share = 100 * same / len(questions)
            print(
                f"{name:<10} {share:5.1f} % of the lists are the same, scores differ by at most {apart:.1e}", flush=True
            )


if __name__ == "__main__":
    run_program(main)
