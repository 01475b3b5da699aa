"""The report's section on time, tokens and cost, and the price table that its reader fills in."""

from __future__ import annotations

from ras_agent.eval.report.markdown import cost_text
from ras_agent.eval.report.markup import Html, el, join, table
from ras_agent.eval.report.pieces import Report, figure, pair, run_name

__all__ = ["effort"]


def effort(report: Report) -> Html:
    rows = []
    for number, run in enumerate(report.figures, 1):
        calls = sum(used.calls for used in run.models.values())
        seconds = (f"{value:.2f}" for value in (run.seconds.p50, run.seconds.p95, run.seconds.mean))
        tokens = (f"{value:,.0f}" for value in (run.tokens.p50, run.tokens.p95))
        asked = f"{calls:,}" + (f" ({run.replayed:,} replayed)" if run.replayed else "")
        cost = el("span", cost_text(run.cost, calls), data_cost=number - 1)
        rows.append([run_name(report, number), f"{run.hops.mean:.2f}", *seconds, asked, *tokens, cost])
    head = ["run", "hops", "s p50", "s p95", "s mean", "LLM calls", "tokens p50", "tokens p95", "cost"]
    caption = "A question: hops taken, seconds, tokens; and the whole run's calls and cost"
    efforts = table(head, rows, caption=caption)
    reasons = dict.fromkeys(reason for run in report.figures for reason in run.stop_reasons)
    stops = [
        [run_name(report, number), *(str(run.stop_reasons.get(reason, 0)) for reason in reasons)]
        for number, run in enumerate(report.figures, 1)
    ]
    heads = ["run", *(reason.replace("_", " ") for reason in reasons)]
    stopped = table(heads, stops, caption="Why the loop stopped")
    return join([efforts, pair(stopped, figure(report, "seconds")), _price_table(report)])


def _price_table(report: Report) -> Html:
    """Models with their tokens and a price to fill in; the page's script sums it up."""
    models = dict.fromkeys(model for run in report.figures for model in run.models)
    if not models:
        return Html("")
    rows = []
    for model in models:
        price = report.prices.of(model)
        used = [run.models[model] for run in report.figures if model in run.models]
        tokens = [f"{sum(getattr(one, kind) for one in used):,}" for kind in ("input", "cached", "output")]
        asked = [
            el("input", type="number", min=0, step="any", inputmode="decimal", data_model=model, data_kind=kind,
               aria_label=f"{model}: price of {kind}", value=None if price is None else f"{getattr(price, kind):g}")
            for kind in ("input", "cached", "output")
        ]  # fmt: skip
        rows.append([model, *tokens, *asked])
    head = ["model", "tokens in", "of them cached", "tokens out", "price in", "price cached", "price out"]
    caption = "Prices per million tokens, in your currency. None are built in: fill them in, or give --prices"
    kept = el("details", el("summary", "As a file for --prices"), el("pre", id="prices", tabindex=0))
    return el("div", table(head, rows, caption=caption), kept, id="price-table")
