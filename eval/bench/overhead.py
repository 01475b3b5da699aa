"""Measures the loop's cost per hop, without models and search, compared with a hop of a bare four-node
LangGraph.

    python -m ras_agent.eval.bench --parts overhead

Roles are fakes that reply at once with results of realistic size: five hits of 600 characters and twenty facts
per hop. The cost of a hop is the slope between a run of one hop and a run of five, so that the fixed cost of a
run does not count. The bare graph has the same four nodes and edges, and each node writes one number. Runs of
all variants are interleaved. The ratio is of processor time, which other programs disturb less than the
wall-clock time.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from ras_agent.contracts.records import (
    Answer,
    Extraction,
    Hit,
    Passage,
    Plan,
    Source,
    Step,
    Triple,
)
from ras_agent.eval.bench.rows import BenchRow, processor_ms
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Limits

HOPS = 5
_AT_MOST = 1.8
_SENTENCE = (
    "The company was founded in that city by an engineer who had studied there. "
)


class InstantRoles:
    """Plays all four roles with prepared replies, so that a call costs only a look-up."""

    def __init__(self, hops: int) -> None:
        self._hops = hops
        self._hits = {f"sub-query {hop}": _hits(hop) for hop in range(hops)}
        self._facts = {
            name: Extraction(_facts(hits)) for name, hits in self._hits.items()
        }

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the prepared plan of this hop."""
        if len(steps) < self._hops:
            return Plan("subq", f"sub-query {len(steps)}")
        return Plan("sufficient")

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return prepared hits."""
        return self._hits[query]

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return prepared facts."""
        return self._facts[subquery]

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        """Return a prepared answer."""
        return Answer("an answer")


class InstantAsyncRoles(InstantRoles):
    """Plays the same roles with asynchronous methods too, so that no worker thread is needed."""

    async def aplan(self, *args: Any) -> Plan:
        return self.plan(*args)

    async def aretrieve(self, *args: Any) -> list[Hit]:
        return self.retrieve(*args)

    async def aextract(self, *args: Any) -> Extraction:
        return self.extract(*args)

    async def aanswer(self, *args: Any) -> Answer:
        return self.answer(*args)


def _hits(hop: int) -> list[Hit]:
    hits = []
    for rank in range(5):
        name = f"p{hop}-{rank}"
        stated = [
            f"It was founded by the engineer {entity}. " for entity in _names(name)
        ]
        text = "".join(stated) + _SENTENCE * 6
        passage = Passage(name, text, f"Title {hop} {rank}", f"d{hop}-{rank}")
        hits.append(Hit(passage, 10.0 - rank))
    return hits


def _names(passage: str) -> list[str]:
    return [f"Orvena {passage} {number}" for number in range(4)]


def _facts(hits: Sequence[Hit]) -> tuple[Triple, ...]:
    """Return four facts for each hit, taken from its text."""
    facts = []
    for hit in hits:
        source = Source(hit.passage.id, 0, 74, extractor="bench")
        for entity in _names(hit.passage.id):
            fact = Triple(hit.passage.title, "was founded by", entity, (source,))
            facts.append(fact)
    return tuple(facts)


class _BareState(TypedDict):
    hop: int
    value: int


def bare_graph(hops: int, *, asynchronous: bool) -> Any:
    """Return the LangGraph graph to compare with: nodes plan, retrieve, structure and merge that each write one
    number.
    """

    def node(state: _BareState) -> dict[str, int]:
        return {"value": 1}

    def count(state: _BareState) -> dict[str, int]:
        return {"hop": state["hop"] + 1}

    async def anode(state: _BareState) -> dict[str, int]:
        return {"value": 1}

    async def acount(state: _BareState) -> dict[str, int]:
        return {"hop": state["hop"] + 1}

    graph = StateGraph(_BareState)
    graph.add_node("plan", acount if asynchronous else count)
    for name in ("retrieve", "structure", "merge"):
        graph.add_node(name, anode if asynchronous else node)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges(
        "plan",
        lambda state: "retrieve" if state["hop"] <= hops else END,
        ["retrieve", END],
    )
    graph.add_edge("retrieve", "structure")
    graph.add_edge("structure", "merge")
    graph.add_edge("merge", "plan")
    return graph.compile().with_config(recursion_limit=1000)


def measure(runs: int) -> dict[str, list[float]]:
    """Return the processor milliseconds per hop of each run, by variant. A loop is measured right after its
    bare graph.
    """

    def ours(roles: InstantRoles) -> Any:
        limits = Limits(max_hops=HOPS + 1)
        return create_ras_agent(
            planner=roles,
            retriever=roles,
            extractor=roles,
            answerer=roles,
            limits=limits,
        )

    question_input = {"question": "sub-query 0"}
    empty = {"hop": 0, "value": 0}
    variants: dict[str, tuple[Callable[[int], Any], dict[str, Any], bool]] = {
        "bare LangGraph": (partial(bare_graph, asynchronous=False), empty, False),
        "ras-agent": (lambda hops: ours(InstantRoles(hops)), question_input, False),
        "bare LangGraph, async nodes": (
            partial(bare_graph, asynchronous=True),
            empty,
            True,
        ),
        "ras-agent, async roles": (
            lambda hops: ours(InstantAsyncRoles(hops)),
            question_input,
            True,
        ),
        "bare LangGraph, async, nodes in threads": (
            partial(bare_graph, asynchronous=False),
            empty,
            True,
        ),
        "ras-agent, async, roles in threads": (
            lambda hops: ours(InstantRoles(hops)),
            question_input,
            True,
        ),
    }
    graphs = {name: (build(1), build(HOPS)) for name, (build, _, _) in variants.items()}
    costs: dict[str, list[float]] = {name: [] for name in variants}
    with asyncio.Runner() as runner:
        for number in range(-5, runs):  # the first five warm up
            for name, (_, inputs, asynchronous) in variants.items():
                own_runner = runner if asynchronous else None
                short, long = graphs[name]
                less = _without_collection(short, inputs, own_runner)
                more = _without_collection(long, inputs, own_runner)
                if number >= 0:
                    costs[name].append((more - less) / (HOPS - 1))
    return costs


def _without_collection(graph: Any, inputs: dict[str, Any], runner: Any) -> float:
    """Return the processor milliseconds of a run of `graph`, by `runner` if it is asynchronous.

    Garbage is not collected meanwhile: the collection would charge one variant for another's garbage.
    """
    gc.collect()
    gc.freeze()  # the objects alive now need not be looked at again by the next collection
    gc.disable()
    try:
        if runner is None:
            return processor_ms(graph.invoke, inputs)
        return processor_ms(lambda: runner.run(graph.ainvoke(inputs)))
    finally:
        gc.enable()


def bench_rows(runs: int = 60) -> Iterator[BenchRow]:
    """Yield rows that compare a hop of each of the package's loops with a hop of the bare graph."""
    costs = measure(runs)
    names = list(costs)
    for bare, ours in zip(names[::2], names[1::2], strict=True):
        mine = median(costs[ours])
        theirs = median(costs[bare])
        yield BenchRow(
            f"a hop, {ours}", "ms of processor", mine, bare, theirs, at_most=_AT_MOST
        )
