"""Asks an agent the same task several times, and measures how much the runs agree.

    runs/mine/repeat-1, repeat-2, ...   ordinary runs, each with its own cached replies, to resume, export and compare
    runs/mine/summary.json              the summary of all of them

A question's score is its mean over the repeats, so the interval is still one over questions. The spread is that
of the repeats' means. pass^k is the probability that k repeats of a question are all right (Yao et al., 2024,
tau-bench).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import chain
from math import comb
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ras_agent.contracts.errors import RunError, SettingsError
from ras_agent.contracts.records import JSON
from ras_agent.eval.run.agent import EvalAgent
from ras_agent.eval.run.begin import Run, begin_run
from ras_agent.eval.run.folder import RunFolder, repeat_folders
from ras_agent.eval.run.prices import Prices
from ras_agent.eval.run.result import Result, mean_scores, score_columns
from ras_agent.eval.run.summarise import summarise, summed_usage
from ras_agent.eval.run.task import Task
from ras_agent.eval.run.verdicts import deciding_metric, verdict

WatchRun = Callable[[Run], AbstractContextManager[Callable[[Result], None] | None]]
"""A function that takes a run when it begins, and returns a context manager. The function that the context
manager yields is called with each result."""

_OF_QUESTIONS = (
    "questions",
    "scores",
    "by_type",
    "by_hops",
    "by_answer",
    "at_coverage",
    "confidence",
)
"""The parts of a summary that are computed over questions. All other parts are computed over all repeats."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Holds the mean of a metric over the repeats, and how much the repeats' means differ."""

    mean: float
    deviation: float
    """The standard deviation of the repeats' means; 0.0 for one repeat."""
    least: float
    """The lowest of the repeats' means."""
    most: float
    """The highest of the repeats' means."""


@dataclass(frozen=True, slots=True)
class RepeatFigures:
    """Holds how much repeats agree, over the questions that have a result in all of them."""

    count: int
    """The number of repeats."""
    by: str
    """The metric that decides whether an answer is right."""
    scores: Mapping[str, Spread]
    all_right: Mapping[int, float]
    """pass^k by k, from 1: the probability that k repeats of a question are all right."""


def ask_repeatedly(
    task: Task,
    agent: EvalAgent,
    out: Path,
    times: int,
    *,
    prices: Prices | None = None,
    mauve: str | None = None,
    watch: WatchRun | None = None,
    **options: Any,
) -> JSON:
    """Ask the questions of a task `times` times, write the summary of all repeats into `out`, and return it.

    Repeats that the folder already has are kept, so that more can be added later.

    Args:
        task: The questions.
        agent: The agent that is asked.
        out: The folder of the repeats.
        times: The number of repeats, including those that the folder already has.
        prices: The prices for the cost in the summary.
        mauve: As for `Run.finish`.
        watch: Shows each run's progress.
        options: Further arguments of `begin_run`.

    Raises:
        SettingsError: If the settings name one cache of replies, which would make all repeats equal.
        RunError: If the folder holds something else, or more repeats.
    """
    _check(agent, out, times)
    for number in range(1, times + 1):
        one = replace(agent, name=f"{agent.name} {number}")
        run = begin_run(task, one, out / f"repeat-{number}", **options)
        if watch:
            shown = watch(run)
        else:
            shown = nullcontext()
        with shown as on_end:
            run.finish(on_end, prices, mauve)
    repeats = read_repeats(out)
    summary = summarise_repeats(repeats, prices)
    summary["skipped_records"] = len(task.skipped)
    summary["without_evidence"] = task.without_evidence
    RunFolder(out).write_summary(summary)
    return summary


def _check(agent: EvalAgent, out: Path, times: int) -> None:
    if agent.settings.cache is not None:
        raise SettingsError(
            "with one --cache every repeat would have the replies of the first: leave --cache out, "
            "so that each repeat has its own"
        )
    if RunFolder(out).manifest_path.exists():
        raise RunError(
            f"{out} holds one run without repeats; name another folder with --out"
        )
    there = len(repeat_folders(out))
    if there > times:
        raise RunError(
            f"{out} already holds {there} repeats: give --repeat {there} or more, or name another folder with --out"
        )


def read_repeats(path: Path) -> list[list[Result]]:
    """Return the results of each repeat in a folder."""
    return [list(RunFolder(folder).results()) for folder in repeat_folders(path)]


def summarise_repeats(
    repeats: Sequence[Sequence[Result]], prices: Prices | None = None
) -> JSON:
    """Return the content of summary.json: scores by question, costs over all repeats, and how much the repeats
    agree.
    """
    merged = merge_repeats(repeats)
    asked = list(chain.from_iterable(repeats))
    summary = summarise(asked, prices)
    of_questions = summarise(merged, prices)
    for name in _OF_QUESTIONS:
        summary[name] = of_questions[name]
    figures = figures_of_repeats(repeats)
    summary["repeats"] = asdict(figures)
    return summary


def merge_repeats(repeats: Sequence[Sequence[Result]]) -> list[Result]:
    """Return one result for each question that has a result in all repeats.

    Scores and seconds are means over the repeats, calls are summed, and the error is the first one of any
    repeat. The other fields are those of the first repeat.
    """
    merged = []
    for group in _groups(repeats):
        errors = [result.error for result in group if result.error]
        one = replace(
            group[0],
            scores=mean_scores(group),
            usage=summed_usage(group),
            seconds=fmean(result.seconds for result in group),
            queued=fmean(result.queued for result in group),
            error=errors[0] if errors else None,
        )
        merged.append(one)
    return merged


def figures_of_repeats(
    repeats: Sequence[Sequence[Result]], metric: str = ""
) -> RepeatFigures:
    """Return how much the repeats agree.

    `metric` decides whether an answer is right; by default the best suited one of the run.
    """
    groups = _groups(repeats)
    names = list(score_columns(chain.from_iterable(groups)))
    by = metric or deciding_metric(names)
    scores = {}
    for name in names:
        if spread := _spread(groups, name):
            scores[name] = spread
    right = []
    for group in groups:
        verdicts = [verdict(result, by) for result in group]
        right.append(verdicts.count("right"))
    return RepeatFigures(
        count=len(repeats),
        by=by,
        scores=scores,
        all_right=all_right(right, len(repeats)),
    )


def all_right(right: Sequence[int], times: int) -> dict[int, float]:
    """Return pass^k for k from 1 to `times`; {} without questions.

    pass^k is the probability that k randomly drawn repeats of a question are all right, averaged over the
    questions.

    Args:
        right: For each question, the number of its repeats that are right.
        times: The number of repeats.
    """
    if not right:
        return {}
    chances = {}
    for k in range(1, times + 1):
        drawn = comb(times, k)
        chances[k] = fmean(comb(count, k) / drawn for count in right)
    return chances


def _groups(repeats: Sequence[Sequence[Result]]) -> list[list[Result]]:
    """Return the results of each question that has a result in all repeats, in the order of the first repeat."""
    by_id = []
    for results in repeats:
        by_id.append({result.id: result for result in results})
    if not by_id:
        return []
    groups = []
    for name in by_id[0]:
        group = [results[name] for results in by_id if name in results]
        if len(group) == len(by_id):
            groups.append(group)
    return groups


def _spread(groups: Sequence[Sequence[Result]], metric: str) -> Spread | None:
    """Return the spread of the repeats' means; None if a repeat has no score in the metric."""
    means = []
    for repeat in zip(*groups, strict=True):
        scores = mean_scores(repeat)
        if metric not in scores:
            return None
        means.append(scores[metric])
    return Spread(
        mean=fmean(means),
        deviation=stdev(means) if len(means) > 1 else 0.0,
        least=min(means),
        most=max(means),
    )
