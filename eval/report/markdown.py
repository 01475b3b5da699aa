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
from ras_agent.eval.run.repeats import RepeatFigures, Spread
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
    repeated = {run.name: run.repeats for run in runs if run.repeats}
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
    """Return the cells of a run under SURENESS_HEADS, about its confidences; dashes if it has no confidences."""
    figures = run.confidence
    if figures is None:
        return [run.name, *["–"] * (len(SURENESS_HEADS) - 1)]
    risks = [percent(figures.risk_at(coverage)) for coverage in COVERAGES]
    error = score_text(figures.error)
    area = score_text(figures.area)
    return [run.name, str(figures.n), error, area, *risks]


def percent(value: float | None) -> str:
    """Return a share in percent with one decimal, without the percent sign; a dash for None."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}"


def p_text(p: float | None) -> str:
    """Return a p value with four decimals; "" for None."""
    if p is None:
        return ""
    return f"{p:.4f}"


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
    """Return a sentence about the highest scores that any ranking can reach, as `ceilings` computes them."""
    bounds = []
    for name, bound in ceilings.items():
        bounds.append(f"{name} {percent(bound)}")
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
    if not cost.unpriced:
        return money(cost.total)
    missing = f"unknown: no price for {', '.join(cost.unpriced)}"
    if not cost.total:
        return missing
    return f"{money(cost.total)} and {missing}"


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1
) -> str:
    """Return a Markdown table. The columns after the first `texts` are aligned to the right."""
    alignment = ["---"] * texts + ["---:"] * (len(head) - texts)
    lines = []
    for row in (head, alignment, *rows):
        cells = " | ".join(map(_cell, row))
        lines.append(f"| {cells} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Escape the text of a table cell so that it cannot end the cell or begin markup: names come from users and
    files.
    """
    line = " ".join(text.split())
    line = line.replace("\\", "\\\\")
    line = line.replace("|", "\\|")
    return line.replace("<", "&lt;")


def _scores(runs: Sequence[RunFigures], metrics: Sequence[str]) -> str:
    rows = []
    for run in runs:
        row = [run.name, str(run.n)]
        for name in metrics:
            score = run.scores.get(name)
            row.append(score_text(score, run.n))
        row.append(str(run.verdicts["error"]))
        rows.append(row)
    return markdown_table(["run", "n", *metrics, "errors"], rows)


def _differences(differences: Sequence[Versus]) -> str:
    rows = []
    for difference in differences:
        name = f"{difference.name} − {difference.base}"
        gap = difference_text(difference.comparison)
        rows.append([name, *difference_cells(difference, gap)])
    heads = difference_heads(differences)
    return markdown_table(["paired difference", *heads], rows, texts=2)


def difference_heads(differences: Sequence[Versus]) -> list[str]:
    """Return the headings of the columns that `difference_cells` fills."""
    return ["metric", "n", "difference", "p", f"p of {len(differences)}, Holm"]


def difference_cells(difference: Versus, gap: str) -> list[str]:
    """Return the cells about a difference between two runs. `gap` is the cell of the difference itself."""
    comparison = difference.comparison
    p = p_text(comparison.permutation_p)
    corrected = p_text(difference.corrected_p)
    return [difference.metric, str(comparison.n), gap, p, corrected]


def at_once_text(count: int, queued: float) -> str:
    """Return a note on how many questions were asked at the same time, for a cell of seconds; "" if it was one
    or is unknown.

    Args:
        queued: the mean of the seconds that a question waited for its turn.
    """
    if count > 1:
        return f", {count} at once, {queued:.2f} s queued apart"
    return ""


def _effort(runs: Sequence[RunFigures]) -> str:
    rows = []
    for run in runs:
        seconds = f"{run.seconds.p50:.2f} / {run.seconds.p95:.2f}"
        row = [
            run.name,
            f"{run.hops.mean:.2f}",
            seconds + at_once_text(run.at_once, run.queued),
            str(run.calls),
            f"{run.tokens.p50:.0f} / {run.tokens.p95:.0f}",
            cost_text(run.cost, run.calls),
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


def _spreads(repeated: Mapping[str, RepeatFigures], metrics: Sequence[str]) -> str:
    rows = []
    for run, repeats in repeated.items():
        row = [run, str(repeats.count)]
        for name in metrics:
            spread = repeats.scores.get(name)
            row.append(spread_text(spread))
        rows.append(row)
    return markdown_table(["mean ± deviation of repeats", "repeats", *metrics], rows)


def _all_right(repeated: Mapping[str, RepeatFigures]) -> str:
    heads, cells = all_right_columns(list(repeated.values()))
    rows = []
    for (run, repeats), chances in zip(repeated.items(), cells, strict=True):
        rows.append([run, repeats.by, *chances])
    return markdown_table(["all of k repeats right", "by", *heads], rows, texts=2)


def all_right_columns(
    repeated: Sequence[RepeatFigures],
) -> tuple[list[str], list[list[str]]]:
    """Return the headings pass^1, pass^2 ..., and each repeated run's probabilities under them, in percent."""
    deepest = max(repeats.count for repeats in repeated)
    depths = range(1, deepest + 1)
    rows = []
    for repeats in repeated:
        rows.append([percent(repeats.all_right.get(k)) for k in depths])
    return [f"pass^{k}" for k in depths], rows


def _breakdown(runs: Sequence[RunFigures], kind: str, metrics: Sequence[str]) -> str:
    rows_of_group: dict[str, list[list[str]]] = {}
    for run in runs:
        for group in run.groups.get(kind, ()):
            row = [group.name, run.name, str(group.n)]
            for name in metrics:
                score = group.scores.get(name)
                row.append(score_text(score, group.n))
            rows_of_group.setdefault(group.name, []).append(row)
    rows = list(chain.from_iterable(rows_of_group.values()))
    return markdown_table([kind, "run", "n", *metrics], rows, texts=2)


def _stops(runs: Sequence[RunFigures]) -> str:
    reasons, counts = stop_counts(runs)
    rows = zip(reasons, *counts, strict=True)
    names = [run.name for run in runs]
    return markdown_table(["stopped", *names], rows)
