"""Measures triple parsing, merging and the trace page, each compared with a simpler program in the same run.

    python -m ras_agent.eval.bench --parts graph

    parse   a reply of facts        | one regular expression over the same reply
    merge   five hops' facts        | the same facts as edges of networkx's MultiDiGraph, sources in a list
    page    a trace as HTML         | json.dumps of the trace

The peers do less: the regular expression silently drops a broken line, networkx neither merges spellings of a
name nor finds conflicting facts, and dumped JSON is not a page. We and the peer run in turn; a figure is the
median processor time of `runs`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ras_agent.contracts.errors import needs_extra
from ras_agent.contracts.marks import OBJECT, PREDICATE, SUBJECT
from ras_agent.contracts.records import Passage, Source, Step, Triple
from ras_agent.eval.bench.rows import BenchRow, median_row, processor_ms
from ras_agent.page import trace_html
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.trace import Trace
from ras_agent.tools.structure.parse_triples import parse_triples

Job = Callable[[], object]

_HOPS = 5
_WARM_UP = 2  # the first runs, which are not counted
_AT_MOST = {"parse": 45.0, "merge": 3.0, "page": 8.0}
_PLAIN = re.compile(
    rf"\({SUBJECT} ([^|]*) \| {PREDICATE} ([^|]*) \| {OBJECT} ([^)]*)\)"
)


def bench_rows(runs: int = 15, size: int = 100) -> Iterator[BenchRow]:
    """Yield a row for each benchmark at one size.

    Raises:
        MissingExtra: networkx is not installed.
    """
    for name, peer, ours, theirs in _jobs(size):
        times = []
        for _ in range(_WARM_UP + runs):
            times.append((processor_ms(ours), processor_ms(theirs)))
        yield median_row(
            f"{name}, {size} facts",
            "ms of processor",
            peer,
            times[_WARM_UP:],
            at_most=_AT_MOST[name],
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


def _facts(count: int) -> tuple[Triple, ...]:
    """Return `count` facts about a third as many entities, some spelled in two ways. Every call returns the
    same.
    """
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
    with needs_extra("the benchmark's peer", "eval"):
        import networkx
    return networkx
