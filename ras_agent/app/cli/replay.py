"""The events of a run that is over, told once more from its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ras_agent.events import Answered, Event, Failed, GraphDelta, Hits, Thought
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Step
from ras_agent.trace import Trace

__all__ = ["replayed"]

BEFORE_SEARCH = ("planner", "reasoner")


def replayed(trace: Trace) -> Iterator[Event]:
    """What was said live, in the same order, but for facts that the graph has put aside since."""
    for step in trace.steps:
        yield from _decided(trace, step.hop)
        yield Hits(step.hop, step.subquery, step.hits)
        yield from _failed(trace, step.hop, "retriever", "extractor")
        yield _growth(trace.graph, step)
    last = trace.steps[-1].hop if trace.steps else 0
    yield from _decided(trace, last + 1)
    yield from _failed(trace, last, "answerer")
    answer = Answer(trace.answer, trace.citations, trace.abstained, trace.confidence, failed=trace.failed)
    yield Answered(answer, trace.stop_reason)


def _decided(trace: Trace, hop: int) -> Iterator[Event]:
    """What came before the search of `hop`: failures, and a plan, or IRCoT's sentence in its place."""
    yield from _failed(trace, hop, *BEFORE_SEARCH)
    for planned in trace.plans:
        if planned.hop != hop:
            continue
        if trace.mode == "ircot":
            yield Thought(hop, planned.plan.subquery or planned.plan.reason)
        else:
            yield planned


def _failed(trace: Trace, hop: int, *roles: str) -> Iterator[Failed]:
    return (Failed(failure) for failure in trace.failures if failure.hop == hop and failure.role in roles)


def _growth(graph: QuestionGraph, step: Step) -> GraphDelta:
    """The graph as it was after the step: what was read by then."""
    readings = [
        replace(reading, sources=sources)
        for reading in graph.readings
        if (sources := tuple(source for source in reading.sources if source.hop <= step.hop))
    ]
    then = QuestionGraph(tuple(readings), graph.shelf)
    added = tuple(graph.by_id[name] for name in step.new_triple_ids if name in graph.by_id)
    return GraphDelta(step.hop, added, len(then), len(then.entities), len(then.conflicts))
