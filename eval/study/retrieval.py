"""Retrievers on their own: each searches for the questions themselves; its hits are compared to the gold passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ras_agent.errors import SettingsError
from ras_agent.eval.metrics import all_recalled_at, recall_at
from ras_agent.eval.run.agent import search_agent
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.task import Task
from ras_agent.eval.study.design import Design, Shown
from ras_agent.eval.study.tables import Points, lines, mean_score, side_by_side
from ras_agent.records import JSON
from ras_agent.settings import Settings
from ras_agent.tools.retrieve.resolve import takes_option

DEPTH = 20
_CUTOFFS = (1, 2, 5, 10, 20, 50, 100)
_HEADLINE = "recall@5"


def retrieval_design(
    task: Task,
    settings: Settings,
    *,
    retrievers: Sequence[str] = (),
    depth: int = DEPTH,
) -> Design:
    """Design a run for each retriever with the same k, `depth`; the others are compared to the first."""
    if not any(question.supporting for question in task.questions):
        raise SettingsError(
            f"{task.data} names no gold passages; a study of retrieval needs them"
        )
    metrics = _metrics(depth)
    if _HEADLINE in metrics:
        headline = _HEADLINE
    else:
        headline = f"recall@{depth}"
    names = list(dict.fromkeys(retrievers)) or [settings.retriever]
    scored = task.scored_by(metrics)
    runs = []
    for name in names:
        variant = {"retriever": name, "k": depth}
        of_retriever = settings
        if len(names) > 1:
            of_retriever = without_unused(settings, name)
        agent = search_agent(
            name, of_retriever.model_copy(update=variant), variant=variant
        )
        runs.append((scored, agent))
    show = partial(
        _show, metrics=metrics, headline=headline, base=names[0], depth=depth
    )
    return Design(
        "retrieval",
        tuple(runs),
        show,
        headline,
        names[0],
    )


def _metrics(depth: int) -> list[str]:
    """Return the metrics of a search of `depth` passages: at each cutoff below it, and at its end."""
    cutoffs = [k for k in _CUTOFFS if k < depth]
    cutoffs.append(depth)
    metrics = []
    for name in ("recall", "all_recall"):
        for k in cutoffs:
            metrics.append(f"{name}@{k}")
    return [*metrics, "mrr", "answer_in_passages"]


def without_unused(settings: Settings, retriever: str) -> Settings:
    """Return the settings without those that only other retrievers of the comparison use."""
    used = {
        "weights": takes_option(retriever, "weights"),
        "starts": takes_option(retriever, "linking"),
    }
    unused = [name for name, is_used in used.items() if not is_used]
    return settings.model_copy(update=dict.fromkeys(unused))


def _show(
    runs: Mapping[str, Sequence[Result]],
    *,
    metrics: Sequence[str],
    headline: str,
    base: str,
    depth: int,
) -> Shown:
    columns = [name for name in metrics if name.startswith("recall@")]
    for name in ("all_recall@5", "all_recall@10", f"all_recall@{depth}", "mrr"):
        if name in metrics and name not in columns:
            columns.append(name)
    table = side_by_side(runs, metrics, headline, base, columns=columns, loop=False)
    curves = {}
    shares = {}
    all_found = {}
    for name, results in runs.items():
        curve = _curve(results, depth)
        curves[name] = curve
        shares[name] = _points(curve, "recall")
        all_found[name] = _points(curve, "all_recall")
    title = "Gold passages among the first k"
    pictures = {
        "recall.svg": partial(lines, shares, "k", "share found, %", title),
        "all-recall.svg": partial(
            lines, all_found, "k", "questions with all of them, %", title
        ),
    }
    return Shown(table.markdown, {**table.figures, "curves": curves}, pictures)


def _curve(results: Sequence[Result], depth: int) -> list[JSON]:
    """Return for each k, with intervals: the mean share of gold passages found, and the share of questions with all."""
    answerable = [result for result in results if result.supporting]
    points = []
    for k in range(1, depth + 1):
        point: JSON = {"k": k}
        for name, rule in (("recall", recall_at), ("all_recall", all_recalled_at)):
            scores = []
            for result in answerable:
                scores.append(rule(k, result.retrieved, result.supporting))
            point[name] = None
            if score := mean_score(scores):
                point[name] = [score.mean, score.low, score.high]
        points.append(point)
    return points


def _points(curve: Sequence[JSON], name: str) -> Points:
    return [(point["k"], *point[name]) for point in curve if point[name]]
