"""Reads run folders and computes the figures of a report from their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ras_agent.contracts.errors import RunError
from ras_agent.eval.metrics import all_recalled_at, recall_at
from ras_agent.eval.metrics.confidences import ConfidenceFigures
from ras_agent.eval.run.folder import RunFolder, repeat_folders
from ras_agent.eval.run.prices import Cost, Prices, Tokens, cost_of, model_tokens
from ras_agent.eval.run.repeats import RepeatFigures, figures_of_repeats, merge_repeats
from ras_agent.eval.run.result import Result, estimates, score_columns
from ras_agent.eval.run.summarise import summed_usage
from ras_agent.eval.run.verdicts import (
    RightAnswers,
    confidence_of,
    right_answers,
    verdict,
)
from ras_agent.eval.significance import (
    Comparison,
    Distribution,
    Estimate,
    compare,
    distribution,
    holm,
)

_MOST_K = 50


@dataclass(frozen=True, slots=True)
class Run:
    """Holds a run: its name, its manifest, and its results so far."""

    name: str
    """Unique within a report."""
    manifest: Mapping[str, Any]
    results: tuple[Result, ...]
    """One result of each question. If the run was repeated, this is one of its results."""
    repeats: tuple[tuple[Result, ...], ...] = ()
    """The results of each repeat; () if the run was not repeated."""

    @property
    def asked(self) -> tuple[Result, ...]:
        """Return the results of all repeats, or `results` if the run was not repeated."""
        if not self.repeats:
            return self.results
        return tuple(chain.from_iterable(self.repeats))

    @property
    def by_id(self) -> dict[str, Result]:
        """Return the results by the id of the question."""
        return {result.id: result for result in self.results}


@dataclass(frozen=True, slots=True)
class Group:
    """Holds the figures of the questions of one kind."""

    name: str
    n: int
    """The number of questions."""
    scores: Mapping[str, Estimate]
    verdicts: Mapping[str, int]
    """The number of questions by verdict: right, wrong, abstained, error."""


@dataclass(frozen=True, slots=True)
class RecallPoint:
    """Holds recall among the first `k` retrieved passages."""

    k: int
    recall: float
    """The mean share of a question's gold passages among the first `k`."""
    all: float
    """The share of the questions with all their gold passages among the first `k`."""


@dataclass(frozen=True, slots=True)
class RunFigures:
    """Holds the figures of one run."""

    name: str
    n: int
    """The number of questions."""
    scores: Mapping[str, Estimate]
    verdicts: Mapping[str, int]
    """The number of questions by verdict: right, wrong, abstained, error."""
    groups: Mapping[str, tuple[Group, ...]]
    """The figures by "type", "gold hops" and "hops taken". A kind is left out if all questions are in one group."""
    stop_reasons: Mapping[str, int]
    """The number of questions by the reason why the loop stopped."""
    seconds: Distribution
    """The seconds that a question took."""
    queued: float
    """The mean of the seconds that a question waited for its turn."""
    at_once: int
    """The maximum number of questions that were asked at the same time; 0 if unknown."""
    hops: Distribution
    tokens: Distribution
    models: Mapping[str, Tokens]
    """The tokens of each model."""
    replayed: int
    """The number of model calls that were replayed."""
    cost: Cost
    recall: tuple[RecallPoint, ...]
    """The recall curve, from k = 1."""
    with_gold: int
    """The number of questions that name gold passages."""
    right: RightAnswers
    """The number of right answers, and the cost of one."""
    repeats: RepeatFigures | None = None
    """How much the repeats agree; None if the run was not repeated."""
    confidence: ConfidenceFigures | None = None
    """How well confidences separate right answers from wrong ones; None if there are no confidences."""

    @property
    def calls(self) -> int:
        """Return the number of model calls of the run."""
        return sum(used.calls for used in self.models.values())


@dataclass(frozen=True, slots=True)
class Versus:
    """Compares run `name` with run `base` in one metric, on the questions that both have scored."""

    name: str
    base: str
    metric: str
    comparison: Comparison
    corrected_p: float = 1.0
    """The p value of the permutation test, corrected by Holm's method for all differences that were tested."""


def load_runs(folders: Sequence[Path], *, traces: bool = True) -> list[Run]:
    """Read the runs in `folders`. Runs with equal names get a number added.

    Args:
        folders: The folders of the runs.
        traces: Whether the traces of the results are kept.

    Raises:
        RunError: If a folder holds no run, a line is not a result, or a run has no result yet.
    """
    runs: list[Run] = []
    for path in folders:
        run = _read_run(path, traces)
        names = [other.name for other in runs]
        runs.append(replace(run, name=numbered(run.name, names)))
    return runs


def numbered(name: str, names: Container[str]) -> str:
    """Return the name, with a number from 2 in parentheses if `names` has it already."""
    unique = name
    number = 2
    while unique in names:
        unique = f"{name} ({number})"
        number += 1
    return unique


def _read_run(path: Path, traces: bool) -> Run:
    """Return the run in a folder, or all its repeats as one run."""
    places = repeat_folders(path) or [path]
    repeats = []
    for place in places:
        results = _read_results(RunFolder(place), traces)
        repeats.append(results)
    manifest = RunFolder(places[0]).manifest()
    if places == [path]:
        name = str(manifest.get("name") or path.resolve().name)
        return Run(name, manifest, repeats[0])
    merged = merge_repeats(repeats)
    if not merged:
        raise RunError(
            f"{path}: no question has ended in all {len(repeats)} repeats; finish them with --repeat"
        )
    return Run(
        name=path.resolve().name,
        manifest={**manifest, "repeats": len(repeats)},
        results=tuple(merged),
        repeats=tuple(repeats),
    )


def _read_results(folder: RunFolder, traces: bool) -> tuple[Result, ...]:
    folder.manifest()  # raises if there is none
    results: dict[str, Result] = {}
    for result in folder.results():
        if not traces:
            result = replace(result, trace=None)
        results[result.id] = (
            result  # if a question is there twice, the later result counts
        )
    if not results:
        raise RunError(
            f"{folder.results_path}: no question has ended yet; run it with `ras-agent eval`"
        )
    return tuple(results.values())


def metric_names(runs: Iterable[Run]) -> list[str]:
    """Return all metrics that the runs' results have scores for, in the order of their manifests, then of their
    results."""
    names: dict[str, None] = {}
    for run in runs:
        scored = score_columns(run.results)
        for name in (*(run.manifest.get("metrics") or ()), *scored):
            if name in scored:
                names[name] = None
    return list(names)


def headline_metrics(names: Sequence[str], deciding: str) -> list[str]:
    """Return the one or two metrics for narrow tables: `deciding`, and another one of `names`, preferably an
    F1.
    """
    others = [name for name in names if name != deciding]
    others.sort(key=lambda name: "f1" not in name.lower())
    return list(filter(None, [deciding, *others[:1]]))


def figures_of(run: Run, metric: str, prices: Prices) -> RunFigures:
    """Compute the figures of a run. `metric` decides whether an answer is right."""
    results = run.results
    models = model_tokens(summed_usage(results))
    with_gold = [result for result in results if result.supporting]
    cost = cost_of(models, prices)
    asked = run.asked
    reasons = Counter(result.stop_reason or "error" for result in asked)
    repeats = None
    if run.repeats:
        repeats = figures_of_repeats(run.repeats, metric)
    return RunFigures(
        name=run.name,
        n=len(results),
        scores=estimates(results, metric_names([run])),
        verdicts=_verdicts(results, metric),
        groups=_groups(results, metric),
        stop_reasons=dict(reasons.most_common()),
        seconds=distribution([result.seconds for result in asked]),
        queued=fmean(result.queued for result in asked),
        at_once=max((result.at_once for result in asked), default=0),
        hops=distribution([result.hops for result in asked]),
        tokens=distribution([result.tokens for result in asked]),
        models=models,
        replayed=sum(result.usage.get("replayed", 0) for result in results),
        cost=cost,
        recall=_recall(with_gold),
        with_gold=len(with_gold),
        right=right_answers(asked, metric, cost),
        repeats=repeats,
        confidence=confidence_of(results, metric),
    )


def summed_tokens(parts: Iterable[Mapping[str, Tokens]]) -> dict[str, Tokens]:
    """Return the tokens of each model, summed over the parts."""
    total: dict[str, Tokens] = {}
    for part in parts:
        for model, tokens in part.items():
            total[model] = total.get(model, Tokens()) + tokens
    return total


def kinds_of(runs: Iterable[RunFigures]) -> list[str]:
    """Return the kinds by which questions are grouped in at least one run, such as "type"."""
    kinds: dict[str, None] = {}
    for run in runs:
        kinds.update(dict.fromkeys(run.groups))
    return list(kinds)


def stop_counts(runs: Sequence[RunFigures]) -> tuple[list[str], list[list[str]]]:
    """Return the reasons for which loops stopped, and for each run how often each reason occurred, as texts."""
    reasons: dict[str, None] = {}
    for run in runs:
        reasons.update(dict.fromkeys(run.stop_reasons))
    rows = []
    for run in runs:
        counts = [run.stop_reasons.get(reason, 0) for reason in reasons]
        rows.append(list(map(str, counts)))
    return [reason.replace("_", " ") for reason in reasons], rows


def comparisons(runs: Sequence[Run], metrics: Sequence[str]) -> list[Versus]:
    """Compare each later run with the first in each metric, on their common questions.

    A question is common if its id, text, gold answers and gold passages are equal in both runs. With other gold
    data the scores would differ even if the runs did not.
    """
    rows: list[Versus] = []
    for run in runs[1:]:
        for metric in metrics:
            ours = _column(run, metric)
            theirs = _column(runs[0], metric)
            if ours.keys().isdisjoint(theirs):
                continue
            comparison = compare(ours, theirs)
            rows.append(Versus(run.name, runs[0].name, metric, comparison))
    corrected = holm([row.comparison.permutation_p for row in rows])
    return [replace(row, corrected_p=p) for row, p in zip(rows, corrected, strict=True)]


def _column(run: Run, metric: str) -> dict[Hashable, float]:
    column: dict[Hashable, float] = {}
    for result in run.results:
        if metric in result.scores:
            answers = frozenset(result.answers)
            supporting = frozenset(result.supporting)
            key = (result.id, result.question, answers, supporting)
            column[key] = result.scores[metric]
    return column


def _verdicts(results: Iterable[Result], metric: str) -> dict[str, int]:
    counts = Counter(verdict(result, metric) for result in results)
    return {name: counts[name] for name in ("right", "wrong", "abstained", "error")}


def _groups(results: Sequence[Result], metric: str) -> dict[str, tuple[Group, ...]]:
    keys: dict[str, Callable[[Result], str | int | None]] = {
        "type": lambda result: result.type or None,
        "gold hops": lambda result: result.gold_hops,
        "hops taken": lambda result: result.hops,
    }
    names = list(score_columns(results))
    groups = {}
    for kind, key in keys.items():
        parts: dict[str | int | None, list[Result]] = {}
        for result in results:
            parts.setdefault(key(result), []).append(result)
        if len(parts) < 2:
            continue  # a single group would repeat the figures of the whole run
        listed = []
        for name in sorted(parts, key=lambda name: (name is None, name)):
            label = str(name)
            if name is None:
                label = "not given"
            part = parts[name]
            scores = estimates(part, names)
            verdicts = _verdicts(part, metric)
            listed.append(Group(label, len(part), scores, verdicts))
        groups[kind] = tuple(listed)
    return groups


def _recall(results: Sequence[Result]) -> tuple[RecallPoint, ...]:
    """Return the recall curve for k up to the length of the longest ranked list, at most 50."""
    longest = 0
    for result in results:
        longest = max(longest, len(result.retrieved))
    curves = []
    for k in range(1, min(_MOST_K, longest) + 1):
        shares = []
        all_found = []
        for result in results:
            ranked = result.retrieved
            shares.append(recall_at(k, ranked, result.supporting))
            all_found.append(all_recalled_at(k, ranked, result.supporting))
        share = float(np.mean(shares))
        all_share = float(np.mean(all_found))
        curves.append(RecallPoint(k, share, all_share))
    return tuple(curves)
