"""Measures graph abundance (RAS, Fig. 4): after one run of the loop, its answerer answers again from fewer
triples.

With the evidence "facts", as in RAS, the answerer is shown each sub-query with its triples and no passages,
also in the full loop. In all runs it answers from its model's knowledge if there are no triples to show.
Triples are dropped by random shuffles, or in given orders; orders show which of them puts the triples that an
answer needs first.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RunError, SettingsError
from ras_agent.contracts.records import JSON, Extraction, Hit, Passage, Plan, Step
from ras_agent.eval.question import Question
from ras_agent.eval.report.markdown import markdown_table, percent
from ras_agent.eval.run.agent import AnswerQuestion, EvalAgent
from ras_agent.eval.run.result import Result, mean_scores
from ras_agent.eval.run.task import Task
from ras_agent.eval.study.design import (
    Design,
    Shown,
    asked_anyway,
    extended,
    on_task,
    parts,
)
from ras_agent.eval.study.run import StudyFolder
from ras_agent.eval.study.tables import lines
from ras_agent.graphs.parts import AgentParts
from ras_agent.graphs.resolve import assemble_agent
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.trace import Trace
from ras_agent.tools.graph_tokens.fact_orders import FactOrder, fact_order

if TYPE_CHECKING:
    from ras_agent.graphs.agent import Agent

SHARES = tuple(tenth / 10 for tenth in range(1, 11))
FULL = "full loop"
ShownEvidence = Literal["kept", "facts", "all"]
Traces = Callable[[], Mapping[str, JSON]]


def abundance_design(
    task: Task,
    settings: Settings,
    out: Path,
    *,
    shares: Sequence[float] = (),
    shuffles: int = 5,
    orders: Sequence[str] = (),
    evidence: ShownEvidence = "facts",
    seed: int = 0,
) -> Design:
    """Return a design with the full loop, and a run for each share and shuffle, or for each share and order.

    Args:
        task: The questions.
        settings: The settings of the agent.
        out: The study's folder, which holds the traces of the full loop.
        shares: The shares of a graph's triples to keep, each above 0 and at most 1.
        shuffles: The number of random orders for each share.
        orders: The orders that replace the shuffles (ras_agent.tools.graph_tokens.fact_orders).
        evidence: The text that the answerer is shown with the remaining triples.
        seed: The seed of the shuffles.

    Raises:
        UnknownName: If there is no such order.
        SettingsError: If a share is out of range.
    """
    layout = "evidence"
    if evidence == "facts":
        layout = "chain"
    settings = settings.model_copy(update={"layout": layout})
    traces = cache(lambda: _traces(out))
    shares = tuple(sorted(set(shares))) or SHARES
    if not 0 < shares[0] <= shares[-1] <= 1:
        raise SettingsError(
            f"shares of the triples must be above 0 and at most 1, got {shares[0]:g} to {shares[-1]:g}"
        )
    metrics = extended(task.metrics, "answer_in_facts")
    scored = task.scored_by(metrics)
    runs = [
        EvalAgent(
            FULL, settings, seed=seed, make=asked_anyway(), variant={"abundance": None}
        )
    ]
    names: dict[tuple[str, float], list[str]] = {}
    order_of = {spec: fact_order(spec) for spec in dict.fromkeys(orders)}
    shuffled = []
    for number in range(1, shuffles + 1):
        shuffled.append(("", f"shuffle {number}", number))
    ordered = [(spec, f"by {spec}", 0) for spec in order_of]
    for share in shares:
        for spec, label, shuffle in ordered or shuffled:
            name = f"{100 * share:g} % of the triples, {label}"
            names.setdefault((spec, share), []).append(name)
            part = _Part(
                share, f"{seed}/{shuffle}", evidence, traces, order_of.get(spec)
            )
            if spec:
                how: JSON = {"order": spec}
            else:
                how = {"shuffle": shuffle}
            variant = {"abundance": share, **how, "evidence": evidence}
            runs.append(
                EvalAgent(
                    name, settings, seed=seed, traces=False, make=part.make, graph="replay",
                    variant=variant,
                )
            )  # fmt: skip
    columns = extended(task.metrics[:2], "answer_in_facts")
    show = partial(
        _show,
        names=names,
        metrics=columns,
        headline=task.benchmark.headline,
        evidence=evidence,
    )
    return Design(
        "abundance",
        on_task(scored, runs),
        show,
        task.benchmark.headline,
        FULL,
    )


def _traces(out: Path) -> Mapping[str, JSON]:
    """Return the traces of the study's full loop, by question id."""
    traces = {}
    for result in StudyFolder(out).runs()[FULL].results():
        if result.trace is not None:
            traces[result.id] = result.trace
    return traces


@dataclass(frozen=True, slots=True)
class _Part:
    """Makes an agent that answers from a share of the facts that the full loop has read."""

    share: float
    seed: str
    evidence: ShownEvidence
    traces: Traces
    order: FactOrder | None = None

    def make(self, task: Task, settings: Settings) -> AnswerQuestion:
        roles = parts(task, settings, asks_anyway=True)
        traces = self.traces()

        async def ask(question: Question) -> Mapping[str, Any]:
            if question.id not in traces:
                raise RunError(
                    "the full loop ended in an error for this question: ask it again with --retry-errors"
                )
            trace = Trace.from_dict(traces[question.id], question.id)
            if self.order is None:
                seed = f"{self.seed}/{question.id}"
                facts = kept_facts(trace.graph, self.share, seed)
            else:
                questions = tuple(step.subquery for step in trace.steps)
                ordered = self.order(question.question, trace.graph, questions)
                facts = _first(ordered, self.share)
            graph = kept_graph(trace.graph, facts)
            evidence = self.evidence
            if evidence == "facts":
                evidence = "all"
            passages = kept_passages(graph, trace.passages, evidence)
            agent = _again(roles, trace, graph, passages)
            out = await agent.ainvoke({"question": question.question})
            return {**out, "stop_reason": trace.stop_reason}

        return ask


def _again(
    roles: AgentParts, trace: Trace, graph: QuestionGraph, passages: Sequence[Passage]
) -> Agent:
    """Return an agent that repeats the hops of `trace`, but finds only the given passages and the facts of
    `graph`.
    """
    replay = _Replay(trace, graph, passages)
    most = max((len(step.hits) for step in trace.steps), default=1)
    limits = replace(roles.limits, max_hops=len(trace.steps) + 1, k=max(most, 1))
    from_memory = trace.stop_reason == "no_retrieval"
    preset = replace(
        roles.preset, early_stops=False, bounded=False, from_memory=from_memory
    )
    return assemble_agent(
        replace(
            roles,
            graph="ras",
            planner=replay,
            retriever=replay,
            extractor=replay,
            limits=limits,
            preset=preset,
        )
    )


class _Replay:
    """Plays planner, retriever and extractor by repeating a finished run, with only some of its facts and
    passages.
    """

    name = "replay"

    def __init__(
        self, trace: Trace, graph: QuestionGraph, passages: Sequence[Passage]
    ) -> None:
        self._steps = trace.steps
        self._graph = graph
        self._remaining = iter(trace.steps)
        # without metadata, which may hold all facts of a passage
        self._passages = {
            passage.id: replace(passage, metadata={}) for passage in passages
        }

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        """Return the run's next sub-query."""
        if not self._steps:
            return Plan("no_retrieval")
        more = len(steps) < len(self._steps)
        if more:
            return Plan("subq", self._steps[len(steps)].subquery)
        return Plan("sufficient")

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        """Return the hits of the run's next hop, without passages that were not kept."""
        step = next(self._remaining, None)
        if step is None:
            return []
        kept = []
        for hit in step.hits:
            passage = self._passages.get(hit.passage.id)
            if passage:
                kept.append(Hit(passage, hit.score))
        return kept

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the kept facts that were read in `passages`."""
        ids = {passage.id for passage in passages}
        read = []
        for reading in self._graph.readings:
            sources = [one for one in reading.sources if one.passage_id in ids]
            if sources:
                read.append(replace(reading, sources=tuple(sources)))
        return Extraction(tuple(read))


def _show(
    runs: Mapping[str, Sequence[Result]],
    *,
    names: Mapping[tuple[str, float], Sequence[str]],
    metrics: Sequence[str],
    headline: str,
    evidence: str,
) -> Shown:
    """Return a table with a row for each order and share: the mean over its shuffles, and their lowest and
    highest score.
    """
    rows: list[JSON] = []
    for (order, share), shuffles in sorted(names.items(), key=lambda item: item[0][0]):
        row: JSON = {
            "order": order,
            "share": share,
            "shuffles": len(shuffles),
            "scores": {},
        }
        for metric in metrics:
            means = []
            for name in shuffles:
                scores = mean_scores(runs[name])
                if metric in scores:
                    means.append(scores[metric])
            if means:
                row["scores"][metric] = {
                    "mean": fmean(means),
                    "low": min(means),
                    "high": max(means),
                }
        row["abstained"] = fmean(_abstained(runs[name]) for name in shuffles)
        rows.append(row)
    scored = set(chain.from_iterable(row["scores"] for row in rows))
    columns = [metric for metric in metrics if metric in scored]
    full_scores = mean_scores(runs[FULL])
    full = [percent(full_scores.get(metric)) for metric in columns]
    label = f"Mean over {len(next(iter(names.values())))} shuffles (lowest–highest), %"
    if any(order for order, _ in names):
        label = "The best triples by each order, %"
    body = []
    for row in rows:
        kept = f"{100 * row['share']:g} %"
        if row["order"]:
            kept += f", {row['order']}"
        cells = [_spread(row["scores"].get(metric)) for metric in columns]
        body.append([kept, *cells, f"{row['abstained']:.1f}"])
    shown_there = "all triples and passages"
    if evidence == "facts":
        shown_there = "all triples"
    abstained = str(_abstained(runs[FULL]))
    body.append([f"{FULL} ({shown_there})", *full, abstained])
    text = (
        f"{label}; evidence beside the triples: {evidence}; {len(runs[FULL])} questions\n\n"
        f"{markdown_table(['triples', *columns, 'abstained'], body)}\n"
    )
    points: dict[str, list[tuple[float, float, float, float]]] = {}
    for row in rows:
        for metric, score in row["scores"].items():
            name = metric
            if row["order"]:
                name = f"{metric}, {row['order']}"
            point = (100 * row["share"], score["mean"], score["low"], score["high"])
            points.setdefault(name, []).append(point)
    picture = partial(
        lines, points, "triples kept, %", "%", "Answers from a part of the graph"
    )
    return Shown(
        text,
        {"rows": rows, "evidence": evidence, "headline": headline},
        {"abundance.svg": picture},
    )


def _abstained(results: Sequence[Result]) -> int:
    return sum(result.abstained for result in results)


def _spread(scores: Mapping[str, float] | None) -> str:
    if not scores:
        return percent(None)
    mean = percent(scores["mean"])
    if scores["low"] == scores["high"]:
        return mean
    return f"{mean} ({percent(scores['low'])}–{percent(scores['high'])})"


def kept_facts(graph: QuestionGraph, share: float, seed: str) -> list[str]:
    """Return the ids of the first `share` (above 0, at most 1) of the graph's facts, in an order shuffled by
    `seed`.

    Their number is rounded up. With the same seed, the facts of a smaller share are always among those of a
    larger one. The order in which the facts were found does not matter.
    """
    if not 0 < share <= 1:
        raise ValueError(
            f"a share of the triples must be above 0 and at most 1, got {share}"
        )
    names = sorted(graph.by_id)
    random.Random(seed).shuffle(names)
    return _first(names, share)


def _first(names: list[str], share: float) -> list[str]:
    # rounded, since 0.1 * 30 is a little over 3
    count = round(share * len(names), 9)
    return names[: math.ceil(count)]


def kept_graph(graph: QuestionGraph, ids: Sequence[str]) -> QuestionGraph:
    """Return a graph with only the facts whose ids are in `ids`, each with all its readings."""
    id_set = frozenset(ids)
    readings = [reading for reading in graph.readings if reading.id in id_set]
    return QuestionGraph(tuple(readings))


def kept_passages(
    graph: QuestionGraph, passages: Mapping[str, Passage], evidence: ShownEvidence
) -> list[Passage]:
    """Return the passages that an answerer is shown together with `graph`, in order.

    Args:
        graph: The graph that is left.
        passages: All passages of the run, by id.
        evidence: "facts" for no passages, as in RAS, whose answerer reads only triples. "all" for all passages,
            including those of facts that are not in the graph. "kept" for the passages in which facts of the
            graph were read, with all other sentences blanked, so that the positions of the facts stay the same.
    """
    if evidence == "facts":
        return []
    if evidence == "all":
        return list(passages.values())
    spans: dict[str, list[tuple[int, int]]] = {}
    for fact in graph.facts:
        for source in fact.sources:
            spans.setdefault(source.passage_id, []).append((source.start, source.end))
    kept = []
    for name, passage in passages.items():
        if name in spans:
            kept.append(_blank(passage, spans[name]))
    return kept


def _blank(passage: Passage, spans: Sequence[tuple[int, int]]) -> Passage:
    # a fact without a position may come from anywhere in the passage
    if any(end <= start for start, end in spans):
        return passage
    characters = [" "] * len(passage.text)
    for start, end in spans:
        characters[start:end] = passage.text[start:end]
    return replace(passage, text="".join(characters))
