"""A report as Markdown tables, for a README, an issue or a paper's draft."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.eval.report.figures import RunFigures, Versus, headline_metrics
from ras_agent.eval.run.prices import Cost
from ras_agent.eval.significance import Estimate

__all__ = ["cost_text", "markdown", "money", "percent", "score_text"]


def markdown(runs: Sequence[RunFigures], differences: Sequence[Versus], metrics: Sequence[str], metric: str) -> str:
    """The tables; scores in percent with 95 % bootstrap intervals. `metric` decided right or wrong."""
    parts = [_scores(runs, metrics)]
    if differences:
        parts.append(_differences(differences))
    parts.append(_effort(runs))
    heads = headline_metrics(metrics, metric)
    for kind in dict.fromkeys(kind for run in runs for kind in run.groups):
        parts.append(_breakdown(runs, kind, heads))
    parts.append(_stops(runs))
    return "\n\n".join(parts) + "\n"


def percent(value: float) -> str:
    """A share as percent, with one decimal."""
    return f"{100 * value:.1f}"


def score_text(score: Estimate | None, n: int) -> str:
    """Mean and interval, in percent; how many questions have the score, if they are not all `n`."""
    if score is None:
        return "–"
    text = f"{percent(score.mean)} ({percent(score.low)} to {percent(score.high)})"
    return text if score.n == n else f"{text}, n = {score.n}"


def money(value: float) -> str:
    """A sum with as many decimals as its size needs."""
    return f"{value:.2f}" if value >= 1 or not value else f"{value:.4f}"


def cost_text(cost: Cost, calls: int) -> str:
    """The cost, or why it is not known."""
    if not calls:
        return "no model calls"
    missing = f"unknown: no price for {', '.join(cost.unknown)}" if cost.unknown else ""
    if cost.unknown and not cost.known:
        return missing
    return money(cost.known) + (f" and {missing}" if missing else "")


def _scores(runs: Sequence[RunFigures], metrics: Sequence[str]) -> str:
    rows = [
        [
            run.name,
            str(run.n),
            *(score_text(run.scores.get(name), run.n) for name in metrics),
            str(run.verdicts["error"]),
        ]
        for run in runs
    ]
    return _table(["run", "n", *metrics, "errors"], rows)


def _differences(differences: Sequence[Versus]) -> str:
    rows = []
    for one in differences:
        gap = one.found.difference
        interval = f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"
        pair = f"{one.name} − {one.base}"
        rows.append(
            [pair, one.metric, str(one.found.n), f"{100 * gap.mean:+.1f}", interval, f"{one.found.permutation_p:.4f}"]
        )
    return _table(["paired difference", "metric", "n", "mean", "95 % interval", "p"], rows)


def _effort(runs: Sequence[RunFigures]) -> str:
    rows = []
    for run in runs:
        calls = sum(used.calls for used in run.models.values())
        seconds = f"{run.seconds.p50:.2f} / {run.seconds.p95:.2f}"
        tokens = f"{run.tokens.p50:.0f} / {run.tokens.p95:.0f}"
        rows.append([run.name, f"{run.hops.mean:.2f}", seconds, str(calls), tokens, cost_text(run.cost, calls)])
    head = ["run", "hops", "seconds p50 / p95", "LLM calls", "tokens a question p50 / p95", "cost"]
    return _table(head, rows)


def _breakdown(runs: Sequence[RunFigures], kind: str, metrics: Sequence[str]) -> str:
    names = dict.fromkeys(group.name for run in runs for group in run.groups.get(kind, ()))
    rows = [
        [group.name, run.name, str(group.n), *(score_text(group.scores.get(name), group.n) for name in metrics)]
        for wanted in names
        for run in runs
        for group in run.groups.get(kind, ())
        if group.name == wanted
    ]
    return _table([kind, "run", "n", *metrics], rows)


def _stops(runs: Sequence[RunFigures]) -> str:
    reasons = dict.fromkeys(reason for run in runs for reason in run.stop_reasons)
    rows = [[reason, *(str(run.stop_reasons.get(reason, 0)) for run in runs)] for reason in reasons]
    return _table(["stopped", *(run.name for run in runs)], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    """Names come from users and files: no cell may end a cell, a line, or begin markup."""
    line = " ".join(text.split())
    return line.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
