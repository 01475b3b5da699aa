"""Measures triple parsing, merging and the page against a plain loop or a named peer in the same run.

    python -m ras_agent.eval.bench.graph --json graph.jsonl

    parse   a reply of facts        | one regular expression over the same reply
    merge   five hops' facts        | the same facts as edges of networkx's MultiDiGraph, sources in a list
    page    a trace as HTML         | json.dumps of the trace

The peers do less: the regular expression drops a broken line in silence, networkx knows neither spellings of one name
nor facts that disagree, and a dumped trace cannot be looked at. Ours and the
peer take turns; a figure is the median processor time of `runs`, the ratio is of medians, its spread that of the middle
half of runs.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from ras_agent.errors import MissingExtra
from ras_agent.eval.bench.rows import BenchRow
from ras_agent.marks import OBJECT, PREDICATE, SUBJECT
from ras_agent.page import trace_html
from ras_agent.program import run_program
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage, Source, Step, Triple
from ras_agent.tools.structure.parse_triples import parse_triples
from ras_agent.trace import Trace

Job = Callable[[], object]

_HOPS = 5
_AT_MOST = {"parse": 45.0, "merge": 3.0, "page": 8.0}
_PLAIN = re.compile(
    rf"\({SUBJECT} ([^|]*) \| {PREDICATE} ([^|]*) \| {OBJECT} ([^)]*)\)"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A comparison over `size` facts: milliseconds of processor of both, their ratio and its quartiles."""

    benchmark: str
    peer: str
    size: int
    ours: float
    theirs: float
    ratio: float
    low: float
    high: float


def measure(runs: int, sizes: Sequence[int]) -> Iterator[Measured]:
    """Run every benchmark at every size. Raises MissingExtra without networkx."""
    for size in sizes:
        for name, peer, ours, theirs in _jobs(size):
            yield _compared(name, peer, size, runs, ours, theirs)


def bench_rows(runs: int = 15, size: int = 100) -> Iterator[BenchRow]:
    """Measure every benchmark at one size. Raises MissingExtra without networkx."""
    for row in measure(runs, [size]):
        name = f"{row.benchmark}, {size} facts"
        yield BenchRow(
            name,
            "ms of processor",
            row.ours,
            row.peer,
            row.theirs,
            at_most=_AT_MOST[row.benchmark],
        )


def _jobs(size: int) -> list[tuple[str, str, Job, Job]]:
    facts = _facts(size)
    hops = [facts[start::_HOPS] for start in range(_HOPS)]
    graph = _merged(hops)
    reply = "\n".join(map(str, facts))
    trace = _trace(graph)
    return [
        (
            "parse",
            "one regular expression",
            partial(parse_triples, reply),
            partial(_PLAIN.findall, reply),
        ),
        (
            "merge",
            "networkx MultiDiGraph",
            partial(_merged, hops),
            partial(_as_edges, hops),
        ),
        ("page", "json.dumps", partial(trace_html, trace), partial(_dumped, trace)),
    ]


def _compared(
    name: str, peer: str, size: int, runs: int, ours: Job, theirs: Job
) -> Measured:
    # the first two warm up
    pairs = [(_milliseconds(ours), _milliseconds(theirs)) for _ in range(runs + 2)][2:]
    low, _, high = quantiles([mine / other for mine, other in pairs], n=4)
    mine, other = (median(column) for column in zip(*pairs, strict=True))
    return Measured(name, peer, size, mine, other, mine / other, low, high)


def _milliseconds(call: Job) -> float:
    began = time.process_time()
    call()
    return 1000 * (time.process_time() - began)


def _facts(count: int) -> tuple[Triple, ...]:
    """Make `size` facts about a third as many entities, a few of them spelled in two ways; the same every time."""
    draw = random.Random(0)
    facts = []
    for number in range(count):
        subject = draw.randrange(count // 3 + 1)
        object_ = draw.randrange(count // 3 + 1)
        source = Source(f"p{number % 25}", 0, 60, extractor="bench")
        if draw.random() > 0.1:
            name = f"Entity Number {subject}"
        else:
            name = f"the entity number {subject}"
        facts.append(
            Triple(
                name, f"relation {number % 40}", f"Entity Number {object_}", (source,)
            )
        )
    return tuple(facts)


def _merged(hops: Sequence[Sequence[Triple]]) -> QuestionGraph:
    graph = QuestionGraph()
    for hop in hops:
        graph = graph.merge(hop)
    graph.conflicts  # noqa: B018 - found when they are asked for, as the loop does at each hop
    return graph


def _as_edges(hops: Sequence[Sequence[Triple]]) -> Any:
    network = _networkx().MultiDiGraph()
    for hop in hops:
        for fact in hop:
            subject = fact.subject.casefold()
            object_ = fact.object.casefold()
            if network.has_edge(subject, object_, fact.predicate):
                network[subject][object_][fact.predicate]["sources"].extend(
                    fact.sources
                )
            else:
                network.add_edge(
                    subject, object_, fact.predicate, sources=list(fact.sources)
                )
    return network


def _trace(graph: QuestionGraph) -> Trace:
    passages = {}
    for number in range(25):
        passages[f"p{number}"] = Passage(
            f"p{number}", "A sentence of some length. " * 20, f"T {number}"
        )
    ids = tuple(fact.id for fact in graph.facts)
    steps = tuple(
        Step(hop + 1, f"sub-query {hop}", (), ids[hop::_HOPS], ids[hop::_HOPS])
        for hop in range(_HOPS)
    )
    return Trace(
        "Which?",
        "Entity Number 1",
        steps=steps,
        graph=graph,
        passages=passages,
        mode="ras",
    )


def _dumped(trace: Trace) -> str:
    return json.dumps(trace.to_dict())


def _networkx() -> Any:
    try:
        import networkx
    except ImportError as error:
        raise MissingExtra("the benchmark's peer", "eval") from error
    return networkx


def report(measures: Sequence[Measured]) -> str:
    """Format a Markdown table."""
    lines = [
        "| | facts | ms | against | ms | ratio | middle half |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in measures:
        spread = f"{row.ratio:.2f} | {row.low:.2f} to {row.high:.2f}"
        lines.append(
            f"| {row.benchmark} | {row.size} | {row.ours:.3g} | {row.peer} | {row.theirs:.3g} | {spread} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m ras_agent.eval.bench.graph",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--sizes", default="100,400", help="facts, separated by commas")
    parser.add_argument("--json", type=Path, help="one JSON object a measurement")
    options = parser.parse_args(arguments)
    measures = list(
        measure(options.runs, [int(size) for size in options.sizes.split(",")])
    )
    if options.json:
        with options.json.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(row)) + "\n" for row in measures)
    print(report(measures))


if __name__ == "__main__":
    run_program(main)
