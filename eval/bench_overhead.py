"""What the loop itself costs a hop, models and search excluded, beside a bare four-node LangGraph hop in the same run.

    python -m ras_agent.eval.bench_overhead

Roles are instant fakes of realistic size: five hits of 600 characters and twenty facts a hop. A hop's cost is the slope
between a run of one hop and a run of five, so that what a run costs once is not counted. The bare graph has the same
four nodes and edges, and each node writes one number. Runs of all variants are interleaved.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from statistics import median, quantiles
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from ras_agent.budget import Limits
from ras_agent.graphs.ras import create_ras_agent
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Extraction, Hit, Passage, Plan, Source, Step, Triple

__all__ = ["main", "measure"]

HOPS = 5
_SENTENCE = "The company was founded in that city by an engineer who had studied there. "


class InstantRoles:
    """Planner, retriever, extractor and answerer in one, prepared beforehand: every call only looks its reply up."""

    def __init__(self, hops: int) -> None:
        self._hops = hops
        self._hits = {f"sub-query {hop}": _hits(hop) for hop in range(hops)}
        self._facts = {name: Extraction(_facts(hits)) for name, hits in self._hits.items()}

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        return Plan("subq", f"sub-query {len(steps)}") if len(steps) < self._hops else Plan("sufficient")

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return self._hits[query]

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        return self._facts[subquery]

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage]) -> Answer:
        return Answer("an answer")


class InstantAsyncRoles(InstantRoles):
    """The same with asynchronous twins, so that no worker thread is needed."""

    async def aplan(self, *args: Any) -> Plan:
        return self.plan(*args)

    async def aretrieve(self, *args: Any) -> list[Hit]:
        return self.retrieve(*args)

    async def aextract(self, *args: Any) -> Extraction:
        return self.extract(*args)

    async def aanswer(self, *args: Any) -> Answer:
        return self.answer(*args)


def _hits(hop: int) -> list[Hit]:
    return [
        Hit(Passage(f"p{hop}-{rank}", _SENTENCE * 8, f"Title {hop} {rank}", f"d{hop}-{rank}"), 10.0 - rank)
        for rank in range(5)
    ]


def _facts(hits: Sequence[Hit]) -> tuple[Triple, ...]:
    return tuple(
        Triple(hit.passage.title, f"relation {number}", f"entity {hit.passage.id} {number}", (source,))
        for hit in hits
        for number in range(4)
        for source in [Source(hit.passage.id, 0, 74, extractor="bench")]
    )


class _BareState(TypedDict):
    hop: int
    value: int


def bare_graph(hops: int, *, asynchronous: bool) -> Any:
    """plan, retrieve, structure, merge, and nothing in them."""

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
    graph.add_conditional_edges("plan", lambda state: "retrieve" if state["hop"] <= hops else END, ["retrieve", END])
    graph.add_edge("retrieve", "structure")
    graph.add_edge("structure", "merge")
    graph.add_edge("merge", "plan")
    return graph.compile().with_config(recursion_limit=1000)


def measure(runs: int) -> dict[str, list[float]]:
    """Milliseconds a hop, one figure a run, for each variant."""
    limits = Limits(max_hops=HOPS + 1)

    def ours(roles: InstantRoles) -> Any:
        named = {"planner": roles, "retriever": roles, "extractor": roles, "answerer": roles}
        return create_ras_agent(**named, limits=limits)

    asked, empty = {"question": "sub-query 0"}, {"hop": 0, "value": 0}
    graphs: dict[str, tuple[Any, Any, dict[str, Any], bool]] = {
        "bare LangGraph, sync": (*(bare_graph(n, asynchronous=False) for n in (1, HOPS)), empty, False),
        "ras-agent, sync": (*(ours(InstantRoles(n)) for n in (1, HOPS)), asked, False),
        "bare LangGraph, async": (*(bare_graph(n, asynchronous=True) for n in (1, HOPS)), empty, True),
        "ras-agent, async roles": (*(ours(InstantAsyncRoles(n)) for n in (1, HOPS)), asked, True),
        "bare LangGraph, async, sync nodes": (*(bare_graph(n, asynchronous=False) for n in (1, HOPS)), empty, True),
        "ras-agent, async, sync roles": (*(ours(InstantRoles(n)) for n in (1, HOPS)), asked, True),
    }
    figures: dict[str, list[float]] = {name: [] for name in graphs}
    with asyncio.Runner() as runner:

        def once(graph: Any, inputs: dict[str, Any], asynchronous: bool) -> float:
            async def timed() -> float:
                began = time.perf_counter()
                await graph.ainvoke(inputs)
                return time.perf_counter() - began

            if asynchronous:
                return runner.run(timed())
            began = time.perf_counter()
            graph.invoke(inputs)
            return time.perf_counter() - began

        gc.disable()  # a collection in the middle of one variant would be charged to it
        for _ in range(runs):
            for name, (short, long, inputs, asynchronous) in graphs.items():
                few, many = once(short, inputs, asynchronous), once(long, inputs, asynchronous)
                figures[name].append(1000 * (many - few) / (HOPS - 1))
            gc.collect()
        gc.enable()
    return {name: values[runs // 10 :] for name, values in figures.items()}


def report(figures: dict[str, list[float]]) -> str:
    """A Markdown table: median, quartiles, and the ratio to the bare graph measured beside it."""
    lines = ["| loop | ms a hop | quartiles | ratio to bare |", "|---|---|---|---|"]
    names = list(figures)
    for position, (name, values) in enumerate(figures.items()):
        low, _, high = quantiles(values, n=4)
        bare = figures[names[position - position % 2]]
        lines.append(f"| {name} | {median(values):.2f} | {low:.2f} to {high:.2f} | {median(values) / median(bare):.2f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m ras_agent.eval.bench_overhead", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    print(report(measure(parser.parse_args(arguments).runs)))


if __name__ == "__main__":
    main()
