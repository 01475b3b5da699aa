"""Answers whether the graph pays: runs one agent over retrievers with and without a graph, and gives a verdict
in one sentence.

All runs have the same roles, limits and questions; only the retriever differs. Each retriever that walks the
knowledge graph is compared, question by question, with the best retriever that does not. Trying several
retrievers makes a lucky difference more likely, so a "yes" has strict conditions: the whole 95 % interval of
the difference is above zero, and the p value of the permutation test, times the number of graph retrievers
tried, is below 0.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from math import ceil, log2
from pathlib import Path
from time import perf_counter

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import Passage
from ras_agent.eval.report.markdown import difference_text, money, p_text
from ras_agent.eval.run.agent import EvalAgent
from ras_agent.eval.run.prices import Prices
from ras_agent.eval.run.result import Result, mean_scores
from ras_agent.eval.run.task import Task
from ras_agent.eval.significance import Comparison
from ras_agent.eval.study.design import Design, Shown, extended, on_task
from ras_agent.eval.study.tables import (
    RunRow,
    Unit,
    compared,
    cost_cells,
    score_cells,
    table_of,
    unit_of,
)
from ras_agent.graphs.resolve import extractor_from_settings
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.resolve import reads_graph, takes_option

RETRIEVERS = ("dense", "bm25", "hybrid", "ppr", "gfm", "kg-mix")
_OF_PASSAGES = ("recall@5", "all_recall")
_SURE = 0.05
_MOST_ERRORS = 0.02  # the share of a run's questions above which there is no verdict


@dataclass(frozen=True, slots=True)
class GraphRow(RunRow):
    """Holds the run of one retriever.

    If the retriever walks a graph, its difference is to the best run without a graph; otherwise it has none.
    """

    graph: bool = False
    """Whether the retriever walks a graph."""
    p: float | None = None
    """The p value of the difference, times the number of graph retrievers tried."""


def graph_pays_design(
    task: Task,
    settings: Settings,
    *,
    retrievers: Sequence[str] = (),
    prices: Prices | None = None,
) -> Design:
    """Return a design with a run of the settings' agent for each retriever.

    Raises:
        UnknownName: If there is no such retriever.
    """
    names = list(dict.fromkeys(retrievers)) or list(RETRIEVERS)
    walking = [name for name in names if reads_graph(name)]
    scored = task
    columns = task.metrics[:2]
    if any(question.supporting for question in task.questions):
        scored = task.scored_by(extended(task.metrics, *_OF_PASSAGES))
        columns = extended(columns, *_OF_PASSAGES)
    runs = []
    for name in names:
        runs.append(agent_over(name, settings))
    headline = task.benchmark.headline
    show = partial(
        _show,
        metrics=extended((headline,), *columns),
        headline=headline,
        walking=walking,
        prices=prices,
    )
    return Design("graph-pays", on_task(scored, runs), show, headline)


def without_unused(settings: Settings, retriever: str) -> Settings:
    """Return the settings without `weights` and `starts` if the retriever does not use them."""
    unused: dict[str, None] = {}
    if not takes_option(retriever, "weights"):
        unused["weights"] = None
    if not takes_option(retriever, "linking"):
        unused["starts"] = None
    return settings.model_copy(update=unused)


def agent_over(retriever: str, settings: Settings, name: str = "") -> EvalAgent:
    """Return the settings' agent with another retriever. `name` names its run; by default it is that of the
    retriever.
    """
    variant = {"retriever": retriever}
    own = without_unused(settings, retriever)
    searching = own.model_copy(update=variant)
    return EvalAgent(name or retriever, searching, variant=variant)


@dataclass(frozen=True, slots=True)
class Built:
    """Holds how many seconds it took to build an index and its graph; close to zero if they already existed."""

    passages: int
    index_seconds: float
    graph_seconds: float

    def __str__(self) -> str:
        return f"{self.passages:,} passages: index {self.index_seconds:.0f} s, graph {self.graph_seconds:.0f} s"


def index_with_graph(
    place: Path, corpus: Iterable[Passage], embedder: str, settings: Settings
) -> Built:
    """Build an index of the passages with vectors and a knowledge graph, or complete one whose building was
    interrupted.

    The graph is extracted by the extractor or llm of the settings, else by the offline extractor.

    Raises:
        RunError: the folder holds an index of other passages, which is left unchanged.
    """
    from ras_agent.tools.structure.build_graph import build_graph

    began = perf_counter()
    passages = {passage.id: passage for passage in corpus}
    if PassageIndex.exists(place):
        opened = PassageIndex.open(place)
    else:
        opened = PassageIndex.create(place, embedder)
    with closing(opened) as index:
        for own in index.passages:
            given = passages.get(own.id)
            if given is None or given.text != own.text:
                raise RunError(
                    f"{place} is the index of another corpus: give the study its own folder with --out"
                )
        index.upsert(passages.values())
    indexed = perf_counter()
    spec = settings.extractor or settings.llm or "offline"
    extractor = extractor_from_settings(settings, spec)
    build_graph(place, extractor=extractor, schema=settings.schema_file)
    return Built(len(passages), indexed - began, perf_counter() - indexed)


def _show(
    runs: Mapping[str, Sequence[Result]],
    *,
    metrics: Sequence[str],
    headline: str,
    walking: Sequence[str],
    prices: Prices | None,
) -> Shown:
    rows = rows_of(runs, metrics, headline, walking, prices)
    table = _table(rows, metrics, headline)
    sentence = verdict(rows, headline)
    listed = list(map(asdict, rows))
    figures = {"headline": headline, "rows": listed, "verdict": sentence}
    return Shown(f"{table}\n\n{sentence}\n", figures)


def rows_of(
    runs: Mapping[str, Sequence[Result]],
    metrics: Sequence[str],
    headline: str,
    walking: Sequence[str],
    prices: Prices | None = None,
) -> list[GraphRow]:
    """Return a row for each run. Each run in `walking` is compared with the best run that is not.

    `walking` names the runs whose retriever walks a graph.
    """
    plain = [name for name in runs if name not in walking]
    means = {name: mean_scores(runs[name]).get(headline, 0.0) for name in plain}
    base = max(plain, key=lambda name: means[name], default="")
    tried = sum(name in walking for name in runs)
    rows = []
    for row in compared(runs, metrics, headline, base, prices=prices):
        values = {item.name: getattr(row, item.name) for item in fields(row)}
        graph_row = GraphRow(**values, graph=row.name in walking)
        if not graph_row.graph:
            graph_row = replace(graph_row, difference=None)
        elif row.difference:
            p = min(1.0, tried * row.difference.permutation_p)
            graph_row = replace(graph_row, p=p)
        rows.append(graph_row)
    return rows


def verdict(rows: Sequence[GraphRow], headline: str) -> str:
    """Return a sentence that says whether the best retriever with a graph beats the best one without, and at
    which cost.
    """
    with_graph = [row for row in rows if row.difference]
    plain = [row for row in rows if not row.graph]
    if not with_graph or not plain:
        return "No verdict: it takes a retriever with a graph and one without."
    failed = []
    for row in rows:
        if row.errors > _MOST_ERRORS * row.n:
            failed.append(f"{row.errors} of {row.n} with {row.name}")
    if failed:
        return (
            f"No verdict: questions ended in an error, {', '.join(failed)}, which says nothing of a retriever; "
            "--retry-errors asks them again."
        )
    base = max(plain, key=lambda row: _estimated(row, headline))
    best = max(with_graph, key=lambda row: (_is_better(row), _estimated(row, headline)))
    assert best.difference is not None
    gap = best.difference.difference
    n = best.difference.n
    interval = f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}, p = {best.p:.3f}, {len(with_graph)} tried"
    told = f"{100 * gap.mean:+.1f} points of {headline} ({interval}) to {base.name}, the best without"
    cost = _price(best, base)
    if _is_better(best):
        return f"Yes: over {n} questions {best.name} is better by {told}{cost}."
    if gap.high < 0:
        return f"No: over {n} questions {best.name}, the best with a graph, is worse: {told}{cost}."
    hidden = _hidden(best.difference, len(with_graph))
    return f"No, not over these {n} questions: {best.name}, the best with a graph, has {told}{cost}{hidden}."


def _hidden(comparison: Comparison, tried: int) -> str:
    """Return a remark on the smallest difference that this study can detect."""
    if comparison.differing:
        gap = comparison.difference
        return f"; a difference of less than about {50 * (gap.high - gap.low):.0f} points would not show here"
    # for a significant permutation test, at least this many questions have to change, all in one direction
    least = ceil(log2(2 * tried / _SURE))
    n = comparison.n
    if least > n:
        return f"; none would show over so few, it takes {least}"
    return f"; a gain on fewer than {least} questions, {100 * least / n:.0f} points, would not show here"


def _is_better(row: GraphRow) -> bool:
    if row.difference is None or row.p is None:
        return False
    return row.difference.difference.low > 0 and row.p < _SURE


def _price(row: GraphRow, base: GraphRow) -> str:
    """Return the cost of gaining one point, in a unit known for both runs: money, else tokens, else seconds of
    a question.

    Seconds are left out if other questions were asked at the same time.
    """
    unit = unit_of((row.spent, base.spent))
    if unit == "seconds" and not (row.spent.alone and base.spent.alone):
        return ""
    more = row.spent.of(unit) - base.spent.of(unit)
    points = 0.0
    if row.difference:
        points = 100 * row.difference.difference.mean
    if points <= 0 or more <= 0:
        return f", for {_amount(abs(more), unit)} {'more' if more > 0 else 'less'} a question"
    return f", for {_amount(more, unit)} more a question, {_amount(more / points, unit)} a point"


def _amount(value: float, unit: Unit) -> str:
    texts: dict[Unit, str] = {
        "money": money(value),
        "tokens": f"{value:,.0f} tokens",
        "seconds": f"{value:.2f} s",
    }
    return texts[unit]


def _estimated(row: GraphRow, metric: str) -> float:
    score = row.scores.get(metric)
    if score:
        return score.mean
    return 0.0


def _table(rows: Sequence[GraphRow], metrics: Sequence[str], headline: str) -> str:
    has_errors = any(row.errors for row in rows)
    unit = unit_of([row.spent for row in rows])
    lines = []
    for row in rows:
        graph = "no"
        if row.graph:
            graph = "yes"
        cells = {"retriever": row.name, "graph": graph, "n": str(row.n)}
        cells |= score_cells(row, metrics)
        if has_errors:
            cells["errors"] = str(row.errors)
        cells["hops"] = f"{row.hops:.1f}"
        cells |= cost_cells(row.spent, unit)
        cells[f"{headline} − best without"] = difference_text(row.difference)
        cells["p"] = p_text(row.p)
        lines.append(cells)
    return table_of(lines)
