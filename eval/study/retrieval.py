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
    cutoffs = [k for k in _CUTOFFS if k < depth] + [depth]
    metrics = [f"{name}@{k}" for name in ("recall", "all_recall") for k in cutoffs] + [
        "mrr",
        "answer_in_passages",
    ]
    if _HEADLINE in metrics:
        headline = _HEADLINE
    else:
        headline = f"recall@{depth}"
    names = list(dict.fromkeys(retrievers)) or [settings.retriever]
    if len(names) > 1:
        settings_of = {name: without_unused(settings, name) for name in names}
    else:
        settings_of = {names[0]: settings}
    runs = tuple(
        search_agent(
            name,
            settings_of[name].model_copy(update={"retriever": name, "k": depth}),
            variant={"retriever": name, "k": depth},
        )
        for name in names
    )
    show = partial(
        _show, metrics=metrics, headline=headline, base=names[0], depth=depth
    )
    return Design(
        "retrieval",
        tuple((task.scored_by(metrics), run) for run in runs),
        show,
        headline,
        names[0],
    )


def without_unused(settings: Settings, retriever: str) -> Settings:
    """Return the settings without those that only other retrievers of the comparison use."""
    used = {
        "weights": takes_option(retriever, "weights"),
        "starts": takes_option(retriever, "linking"),
    }
    return settings.model_copy(
        update={name: None for name, is_used in used.items() if not is_used}
    )


def _show(
    runs: Mapping[str, Sequence[Result]],
    *,
    metrics: Sequence[str],
    headline: str,
    base: str,
    depth: int,
) -> Shown:
    columns = [name for name in metrics if name.startswith("recall@")]
    columns += [
        name
        for name in ("all_recall@5", "all_recall@10", f"all_recall@{depth}", "mrr")
        if name in metrics
    ]
    table = side_by_side(
        runs, metrics, headline, base, columns=list(dict.fromkeys(columns)), loop=False
    )
    curves = {}
    for name, results in runs.items():
        curves[name] = _curve(results, depth)
    title = "Gold passages among the first k"
    pictures = {
        "recall.svg": partial(lines, {name: _points(curve, "recall") for name, curve in curves.items()}, "k",
                              "share found, %", title),
        "all-recall.svg": partial(lines, {name: _points(curve, "all_recall") for name, curve in curves.items()}, "k",
                                  "questions with all of them, %", title),
    }  # fmt: skip
    return Shown(table.markdown, {**table.figures, "curves": curves}, pictures)


def _curve(results: Sequence[Result], depth: int) -> list[JSON]:
    """Return for each k, with intervals: the mean share of gold passages found, and the share of questions with all."""
    answerable = [result for result in results if result.supporting]
    points = []
    for k in range(1, depth + 1):
        point: JSON = {"k": k}
        for name, rule in (("recall", recall_at), ("all_recall", all_recalled_at)):
            score = mean_score(
                [rule(k, result.retrieved, result.supporting) for result in answerable]
            )
            point[name] = [score.mean, score.low, score.high] if score else None
        points.append(point)
    return points


def _points(curve: Sequence[JSON], name: str) -> Points:
    return [(point["k"], *point[name]) for point in curve if point[name]]
