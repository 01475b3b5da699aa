"""Writes a report as Markdown tables, and scores, differences and sums of money as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from ras_agent.eval.metrics.confidences import COVERAGES
from ras_agent.eval.report.figures import (
    RunFigures,
    Versus,
    headline_metrics,
    kinds_of,
    stop_counts,
)
from ras_agent.eval.run.prices import Cost
from ras_agent.eval.run.repeats import Spread
from ras_agent.eval.run.verdicts import RightAnswers
from ras_agent.eval.significance import Comparison, Estimate


def report_markdown(
    runs: Sequence[RunFigures],
    differences: Sequence[Versus],
    metrics: Sequence[str],
    metric: str,
) -> str:
    """Return the tables of a report, with scores in percent and 95 % intervals.

    Args:
        runs: The figures of the runs.
        differences: The differences of the later runs to the first.
        metrics: The metrics that are shown.
        metric: The metric that decides whether an answer is right.
    """
    parts = [_scores(runs, metrics)]
    if differences:
        parts.append(_differences(differences))
    sure = [run for run in runs if run.confidence]
    if sure:
        parts.append(markdown_table(SURENESS_HEADS, map(sureness_cells, sure)))
    parts.append(_effort(runs))
    repeated = [run for run in runs if run.repeats]
    if repeated:
        parts.append(_spreads(repeated, metrics))
        parts.append(_all_right(repeated))
    heads = headline_metrics(metrics, metric)
    for kind in kinds_of(runs):
        parts.append(_breakdown(runs, kind, heads))
    parts.append(_stops(runs))
    return "\n\n".join(parts) + "\n"


SURENESS_HEADS = (
    *("confidence of", "answers", "ECE", "AURC"),
    *(f"wrong of the surest {coverage:.0%}" for coverage in COVERAGES),
)


def sureness_cells(run: RunFigures) -> list[str]:
    """Return the cells of a run in the columns SURENESS_HEADS, about its confidences; dashes if it has none."""
    figures = run.confidence
    if figures is None:
        return [run.name, *["–"] * (len(SURENESS_HEADS) - 1)]
    risks = [percent(figures.risk_at(coverage)) for coverage in COVERAGES]
    error = score_text(figures.error)
    area = score_text(figures.area)
    return [run.name, str(figures.n), error, area, *risks]


def percent(value: float) -> str:
    """Return a share as percent with one decimal, without the sign."""
    return f"{100 * value:.1f}"


def score_text(score: Estimate | None, n: int | None = None) -> str:
    """Return the mean and its interval in percent, with the number of scored questions if it is not `n`."""
    if score is None:
        return "–"
    text = f"{percent(score.mean)} ({percent(score.low)} to {percent(score.high)})"
    if n is None or score.n == n:
        return text
    return f"{text}, n = {score.n}"


def difference_text(comparison: Comparison | None) -> str:
    """Return a paired difference in points with its interval; "" if there is no comparison."""
    if comparison is None:
        return ""
    gap = comparison.difference
    return f"{100 * gap.mean:+.1f} ({100 * gap.low:+.1f} to {100 * gap.high:+.1f})"


def ceiling_note(ceilings: Mapping[str, float]) -> str:
    """Return a sentence on the highest scores that any ranking can reach, as `ceilings` computes them."""
    bounds = [f"{name} {percent(bound)}" for name, bound in ceilings.items()]
    return f"At most {', '.join(bounds)}: some questions have more gold passages than that."


def money(value: float) -> str:
    """Return a sum of money as text: two decimals, or four if it is below 1."""
    if value >= 1 or not value:
        return f"{value:.2f}"
    return f"{value:.4f}"


def cost_text(cost: Cost, calls: int) -> str:
    """Return the cost as text, or the reason why it is unknown."""
    if not calls:
        return "no model calls"
    missing = ""
    if cost.unpriced:
        missing = f"unknown: no price for {', '.join(cost.unpriced)}"
    if cost.unpriced and not cost.total:
        return missing
    return money(cost.total) + (f" and {missing}" if missing else "")


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1
) -> str:
    """Return a Markdown table. The columns after the first `texts` are aligned to the right."""
    alignment = ["---"] * texts + ["---:"] * (len(head) - texts)
    return "\n".join(
        "| " + " | ".join(map(_cell, line)) + " |" for line in (head, alignment, *rows)
    )


def _cell(text: str) -> str:
    """Return the text of a cell, escaped so that it cannot end the cell or begin markup: names come from users and
    files."""
    return (
        " ".join(text.split())
        .replace("\\", "\\\\")
        .replace("|", "\\|")
        .replace("<", "&lt;")
    )


def _scores(runs: Sequence[RunFigures], metrics: Sequence[str]) -> str:
    rows = []
    for run in runs:
        scores = [score_text(run.scores.get(name), run.n) for name in metrics]
        rows.append([run.name, str(run.n), *scores, str(run.verdicts["error"])])
    return markdown_table(["run", "n", *metrics, "errors"], rows)


def _differences(differences: Sequence[Versus]) -> str:
    rows = []
    for difference in differences:
        gap = difference_text(difference.comparison)
        rows.append(
            [
                f"{difference.name} − {difference.base}",
                difference.metric,
                str(difference.comparison.n),
                gap,
                f"{difference.comparison.permutation_p:.4f}",
                f"{difference.corrected_p:.4f}",
            ]
        )
    return markdown_table(
        [
            "paired difference",
            "metric",
            "n",
            "difference",
            "p",
            _of_all(len(differences)),
        ],
        rows,
        texts=2,
    )


def _of_all(count: int) -> str:
    """Return the heading of the p values that are corrected for `count` differences."""
    return f"p of {count}, Holm"


def at_once_text(count: int, queued: float) -> str:
    """Return a note on how many questions were asked at the same time, for a cell of seconds; "" for one or if unknown.

    Args:
        queued: the mean of the seconds that a question waited for its turn.
    """
    if count > 1:
        return f", {count} at once, {queued:.2f} s queued apart"
    return ""


def _effort(runs: Sequence[RunFigures]) -> str:
    rows = []
    for run in runs:
        calls = sum(used.calls for used in run.models.values())
        row = [
            run.name,
            f"{run.hops.mean:.2f}",
            f"{run.seconds.p50:.2f} / {run.seconds.p95:.2f}{at_once_text(run.at_once, run.queued)}",
            str(calls),
            f"{run.tokens.p50:.0f} / {run.tokens.p95:.0f}",
            cost_text(run.cost, calls),
            right_text(run.right),
        ]
        rows.append(row)
    head = [
        "run",
        "hops",
        "seconds p50 / p95",
        "LLM calls",
        "tokens per question p50 / p95",
        "cost",
        "per right answer",
    ]
    return markdown_table(head, rows)


def right_text(right: RightAnswers) -> str:
    """Return the cost of a right answer, in tokens, and in money if it is known."""
    if right.tokens is None:
        return "–"
    text = f"{right.tokens:,.0f} tokens"
    if right.cost is not None:
        text += f", {money(right.cost)}"
    return text


def spread_text(spread: Spread | None) -> str:
    """Return the mean over repeats with its standard deviation, and the lowest and highest repeat, in percent."""
    if spread is None:
        return "–"
    ends = f"{percent(spread.least)} to {percent(spread.most)}"
    return f"{percent(spread.mean)} ± {percent(spread.deviation)} ({ends})"


def _spreads(runs: Sequence[RunFigures], metrics: Sequence[str]) -> str:
    rows = []
    for run in runs:
        assert run.repeats is not None
        spreads = []
        for name in metrics:
            spreads.append(spread_text(run.repeats.scores.get(name)))
        rows.append([run.name, str(run.repeats.count), *spreads])
    return markdown_table(["mean ± deviation of repeats", "repeats", *metrics], rows)


def _all_right(runs: Sequence[RunFigures]) -> str:
    deepest = 0
    for run in runs:
        assert run.repeats is not None
        deepest = max(deepest, run.repeats.count)
    depths = range(1, deepest + 1)
    rows = []
    for run in runs:
        assert run.repeats is not None
        row = [run.name, run.repeats.by]
        for k in depths:
            chance = run.repeats.all_right.get(k)
            row.append("–" if chance is None else percent(chance))
        rows.append(row)
    heads = [f"pass^{k}" for k in depths]
    return markdown_table(["all of k repeats right", "by", *heads], rows, texts=2)


def _breakdown(runs: Sequence[RunFigures], kind: str, metrics: Sequence[str]) -> str:
    rows_of_group: dict[str, list[list[str]]] = {}
    for run in runs:
        for group in run.groups.get(kind, ()):
            row = [group.name, run.name, str(group.n)]
            for name in metrics:
                row.append(score_text(group.scores.get(name), group.n))
            rows_of_group.setdefault(group.name, []).append(row)
    rows = list(chain.from_iterable(rows_of_group.values()))
    return markdown_table([kind, "run", "n", *metrics], rows, texts=2)


def _stops(runs: Sequence[RunFigures]) -> str:
    reasons, counts = stop_counts(runs)
    rows = list(zip(reasons, *counts, strict=True))
    return markdown_table(["stopped", *(run.name for run in runs)], rows)
