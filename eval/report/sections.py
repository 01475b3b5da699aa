"""Writes the sections of a report's page: tables of figures with plots next to them, and the browser of questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ras_agent.eval.report.figures import (
    Group,
    Run,
    RunFigures,
    Versus,
    headline_metrics,
    kinds_of,
    models_of,
    stop_counts,
)
from ras_agent.eval.report.glossary import explained
from ras_agent.eval.report.markdown import (
    SURENESS_HEADS,
    cost_text,
    percent,
    spread_text,
    sureness_cells,
)
from ras_agent.eval.report.markup import Html, el, join, table
from ras_agent.eval.report.plots import Plot
from ras_agent.eval.run.prices import Prices
from ras_agent.eval.significance import Estimate

VERDICTS = {"right": "✓", "wrong": "✗", "abstained": "–", "error": "!"}
_SEARCH = "Search questions and answers"
_ORDERS = {
    "": "by id",
    "score": "lowest score first",
    "seconds": "slowest first",
    "hops": "most hops first",
    "tokens": "most tokens first",
}


@dataclass(frozen=True, slots=True)
class Report:
    """Holds runs with all their figures and plots."""

    runs: tuple[Run, ...]
    figures: tuple[RunFigures, ...]
    differences: tuple[Versus, ...]
    metrics: tuple[str, ...]
    metric: str
    """The metric that decides whether an answer is right."""
    prices: Prices
    plots: Mapping[str, Plot]
    """The plots by name; empty if they could not be drawn."""
    missing: str = ""
    """Why there are no plots; "" if there are plots."""


def body(report: Report) -> Html:
    """Return the content of the page's <body>: the header, the links to the sections, and the sections."""
    sections = [
        ("scores", "Scores", _scores(report)),
        ("differences", "Differences", _differences(report)),
        ("kinds", "By kind of question", _kinds(report)),
        ("retrieval", "Retrieval", _retrieval(report)),
        ("confidence", "Confidence", _confidence(report)),
        ("effort", "Time, tokens, cost", _effort(report)),
        ("repeats", "Repeats", _repeats(report)),
        ("questions", "Questions", _questions(report)),
        ("runs", "How it was run", _manifests(report)),
    ]
    links = []
    parts = []
    for name, title, content in sections:
        if not content:
            continue
        links.append(el("li", el("a", title, href=f"#{name}")))
        heading = el("h2", title, id=f"{name}-h")
        parts.append(
            el("section", heading, content, id=name, aria_labelledby=f"{name}-h")
        )
    return join(
        [
            el("a", "To the questions", href="#questions", class_="skip"),
            _header(report),
            el("nav", el("ul", *links), aria_label="Sections"),
            el("main", *parts),
            el("noscript", "The figures need no script; to look at single questions, the page runs a script of its "
               "own. It loads nothing from elsewhere."),
        ]
    )  # fmt: skip


def _header(report: Report) -> Html:
    first = report.runs[0].manifest
    benchmarks = {}
    ids: set[str] = set()
    for run in report.runs:
        benchmarks[str(run.manifest.get("benchmark") or "")] = True
        ids.update(run.by_id)
    parts = [", ".join(filter(None, benchmarks)), f"{len(ids)} questions"]
    if started := str(first.get("started") or ""):
        parts.append(started.replace("T", " ")[:16] + " UTC")
    title: list[Html] = []
    for number in [*range(2, len(report.runs) + 1), 1]:  # "run 2, run 3 against run 1"
        between = ", "
        if number == 1:
            between = " against "
        if title:
            title.append(el("span", between, class_="soft"))
        title.append(_run_name(report, number))
    return el(
        "header",
        el("h1", *title),
        el("p", " · ".join(filter(None, parts)), class_="soft"),
        *_warnings(report),
    )


def _warnings(report: Report) -> Iterable[Html]:
    for run, figures in zip(report.runs, report.figures, strict=True):
        planned = run.manifest.get("questions")
        if isinstance(planned, int) and planned > figures.n:
            yield el(
                "p",
                f"{run.name}: {figures.n} of {planned} questions have a result so far.",
                class_="warning",
            )
        if errors := figures.verdicts["error"]:
            count = "1 question" if errors == 1 else f"{errors} questions"
            yield el("p", f"{run.name}: {count} ended in an error.", class_="warning")


def _scores(report: Report) -> Html:
    rows = []
    for metric in report.metrics:
        row: list[str | Html] = [metric]
        for run in report.figures:
            row.append(_score_cell(run.scores.get(metric), run.n))
        rows.append(row)
    names = []
    for number, run in enumerate(report.figures, 1):
        names.append(join([_run_name(report, number), el("small", f" n = {run.n}")]))
    score_table = table(
        ["metric", *names], rows, caption="Mean scores in percent, with 95 % intervals"
    )
    if report.missing:
        missing = el("p", f"No plots: {report.missing}", class_="warning")
    else:
        missing = Html("")
    words = _glossary(report)
    if len(report.runs) > 2:  # the score table takes the full width
        column = el("div", _verdicts(report), missing, class_="stack")
        return el("div", score_table, _pair(column, _figure(report, "scores")), words)
    column = el("div", score_table, _verdicts(report), missing, class_="stack")
    return join([_pair(column, _figure(report, "scores")), words])


def _glossary(report: Report) -> Html:
    return el(
        "details",
        el("summary", "What these figures mean"),
        _definitions(explained(report.metrics)),
        id="glossary",
    )


def _definitions(meanings: Mapping[str, str | Html]) -> Html:
    parts = []
    for name, meaning in meanings.items():
        parts.append(el("dt", name))
        parts.append(el("dd", meaning))
    return el("dl", *parts)


def _verdicts(report: Report) -> Html:
    """Return a bar for each run that shows how many questions were right, wrong, abstained or ended in an error."""
    bars = []
    for number, run in enumerate(report.figures, 1):
        rects = []
        labels = []
        begin = 0.0
        for name, count in run.verdicts.items():
            wide = 100 * count / run.n
            rects.append(
                el(
                    "rect",
                    class_=f"fill-{name}",
                    x=f"{begin:.3f}",
                    width=f"{wide:.3f}",
                    height=10,
                    y=0,
                )
            )
            begin += wide
            if count:
                mark = el(
                    "span", f"{VERDICTS[name]} ", class_=f"v {name}", aria_hidden="true"
                )
                labels.append(el("li", mark, f"{count} {name}"))
        bar = el(
            "svg",
            *rects,
            viewBox="0 0 100 10",
            preserveAspectRatio="none",
            class_="bar",
            aria_hidden="true",
        )
        if len(report.runs) > 1:
            name_ = _run_name(report, number)
        else:
            name_ = Html("")
        bars.append(el("li", name_, bar, el("ul", *labels)))
    note = ""
    if report.metric:
        note = f"Right: {report.metric} of at least 50 %, or no answer where there is none to give."
    return el(
        "div",
        el("ul", *bars, class_="verdicts"),
        el("p", note, class_="note"),
        class_="card",
    )


def _differences(report: Report) -> Html:
    if len(report.runs) < 2:
        return Html("")
    if not report.differences:
        return el("p", "The runs have no scored question in common.", class_="note")
    numbers = {}
    for number, run in enumerate(report.runs, 1):
        numbers[run.name] = number
    rows = []
    for difference in report.differences:
        gap = difference.comparison.difference
        sure = ""
        if gap.low > 0 or gap.high < 0:
            sure = "sure"
        mean = el("span", el("b", f"{100 * gap.mean:+.1f}", class_=sure), " ",
                  el("small", f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"), class_="score")  # fmt: skip
        rows.append(
            [
                _run_name(report, numbers[difference.name]),
                difference.metric,
                str(difference.comparison.n),
                mean,
                f"{difference.comparison.permutation_p:.4f}",
                f"{difference.corrected_p:.4f}",
            ]
        )
    caption = f"Against {report.runs[0].name}, in points, on common questions; 95 % paired intervals"
    note = (
        "p: paired permutation test, two-sided, of one comparison; beside it the same, corrected for all of them by "
        "Holm's method. A question is the same in two runs where its id and its text are."
    )
    heads = ["run", "metric", "n", "difference", "p", f"p of {len(rows)}, Holm"]
    difference_table = table(heads, rows, caption=caption, texts=2)
    return _pair(
        el("div", difference_table, el("p", note, class_="note"), class_="stack"),
        _figure(report, "differences"),
    )


def _kinds(report: Report) -> Html:
    heads = headline_metrics(report.metrics, report.metric)
    several = len(report.runs) > 1
    parts = []
    for kind in kinds_of(report.figures):
        by_name: dict[str, list[tuple[int, Group]]] = {}
        for number, run in enumerate(report.figures, 1):
            for group in run.groups.get(kind, ()):
                by_name.setdefault(group.name, []).append((number, group))
        rows: list[list[str | Html | None]] = []
        for name, groups in sorted(by_name.items(), key=lambda item: _natural(item[0])):
            for place, (number, group) in enumerate(groups):
                spans = None
                if place == 0:
                    spans = el("th", name, rowspan=len(groups), scope="rowgroup")
                if several:
                    run_cell = [_run_name(report, number)]
                else:
                    run_cell = []
                scores = []
                for head in heads:
                    scores.append(_score_cell(group.scores.get(head), group.n))
                rows.append(
                    [
                        spans,
                        *run_cell,
                        str(group.n),
                        str(group.verdicts["right"]),
                        *scores,
                    ]
                )
        columns = [kind, *(["run"] if several else []), "n", "right", *heads]
        kind_table = table(
            columns, rows, caption=f"By {kind}", texts=2 if several else 1
        )
        parts.append(_pair(kind_table, _figure(report, kind)))
    return join(parts)


def _natural(name: str) -> tuple[bool, int, str]:
    """Return a sort key that puts numbers first, in numeric order, then names, then "not given"."""
    return name == "not given", int(name) if name.isdecimal() else 0, name


def _retrieval(report: Report) -> Html:
    if not any(run.recall for run in report.figures):
        return Html("")
    deepest = max(len(run.recall) for run in report.figures)
    depths = [k for k in (1, 2, 3, 5, 10, 20, 50) if k <= deepest]
    rows: list[list[str | Html | None]] = []
    for number, run in enumerate(report.figures, 1):
        if run.recall:
            count = el("small", f" n = {run.with_gold}")
            name = el(
                "th", _run_name(report, number), count, rowspan=2, scope="rowgroup"
            )
            rows.append([name, "share", *(_depth(run, k, "share") for k in depths)])
            rows.append([None, "all", *(_depth(run, k, "all") for k in depths)])
    caption = "Gold passages among the first k, in percent: mean share found, and questions with all of them"
    rank_table = table(
        ["run", "found", *(f"k = {k}" for k in depths)], rows, caption=caption, texts=2
    )
    return _pair(rank_table, _figure(report, "recall"))


def _confidence(report: Report) -> Html:
    rows = []
    for number, run in enumerate(report.figures, 1):
        if run.confidence:
            rows.append([_run_name(report, number), *sureness_cells(run)[1:]])
    if not rows:
        return Html("")
    caption = "How far confidences are off, and how many of the surest answers are wrong, in percent, 95 % intervals"
    sureness = table(SURENESS_HEADS, rows, caption=caption)
    return _pair(sureness, _figure(report, "risk"))


def _depth(run: RunFigures, k: int, what: str) -> str:
    point = run.recall[min(k, len(run.recall)) - 1]
    return percent(point.recall if what == "share" else point.all)


def _manifests(report: Report) -> Html:
    parts = []
    for number, run in enumerate(report.runs, 1):
        values = {}
        for key, value in run.manifest.items():
            is_empty = value in (None, {}, [], "")
            if not is_empty and key not in ("schema", "version", "name"):
                values[key.replace("_", " ")] = _manifest_value(value)
        inside = el("p", "This run has no manifest.", class_="note")
        if values:
            inside = _definitions(values)
        parts.append(
            el(
                "details",
                el("summary", _run_name(report, number)),
                inside,
                open=len(report.runs) == 1,
            )
        )
    return join(parts)


def _manifest_value(value: Any) -> Html | str:
    """Return a value of the manifest as text; a mapping of more than 8 entries, such as the hashes of all prompts, is
    folded."""
    if not isinstance(value, Mapping) or len(value) <= 8:
        return _plain(value)
    plain = {str(key): _plain(item) for key, item in value.items()}
    return el("details", el("summary", f"{len(value)} entries"), _definitions(plain))


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_plain, value))
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _repeats(report: Report) -> Html:
    """Return tables of how far the repeats of runs agree; empty if no run was repeated."""
    rows: list[list[str | Html | None]] = []
    deepest = 0
    for number, run in enumerate(report.figures, 1):
        if run.repeats is None:
            continue
        deepest = max(deepest, run.repeats.count)
        for metric in report.metrics:
            spread = run.repeats.scores.get(metric)
            rows.append(
                [
                    _run_name(report, number),
                    metric,
                    str(run.repeats.count),
                    spread_text(spread),
                ]
            )
    if not rows:
        return Html("")
    spreads = table(
        ["run", "metric", "repeats", "mean ± deviation"],
        rows,
        caption="Means of the repeats in percent: their mean, standard deviation, least and most",
        texts=2,
    )
    return el("div", spreads, _all_right(report, deepest), class_="stack")


def _all_right(report: Report, deepest: int) -> Html:
    depths = range(1, deepest + 1)
    rows: list[list[str | Html | None]] = []
    for number, run in enumerate(report.figures, 1):
        if run.repeats is None:
            continue
        row: list[str | Html | None] = [_run_name(report, number)]
        for k in depths:
            chance = run.repeats.all_right.get(k)
            row.append("–" if chance is None else percent(chance))
        rows.append(row)
    heads = [f"pass^{k}" for k in depths]
    caption = f"The chance that k repeats of a question are all right, in percent, by {report.metric}"
    return table(["run", *heads], rows, caption=caption)


def _effort(report: Report) -> Html:
    rows = []
    for number, run in enumerate(report.figures, 1):
        calls = sum(used.calls for used in run.models.values())
        calls_text = f"{calls:,}"
        if run.replayed:
            calls_text += f" ({run.replayed:,} replayed)"
        row = [
            _run_name(report, number),
            f"{run.hops.mean:.2f}",
            f"{run.seconds.p50:.2f}",
            f"{run.seconds.p95:.2f}",
            f"{run.seconds.mean:.2f}",
            f"{run.queued:.2f}",
            str(run.at_once or "unknown"),
            calls_text,
            f"{run.tokens.p50:,.0f}",
            f"{run.tokens.p95:,.0f}",
            "–" if run.right.tokens is None else f"{run.right.tokens:,.0f}",
            el(
                "span",
                cost_text(run.cost, calls),
                data_cost=number - 1,
                data_right=run.right.count,
            ),
        ]
        rows.append(row)
    head = [
        "run",
        "hops",
        "s p50",
        "s p95",
        "s mean",
        "s queued",
        "at once",
        "LLM calls",
        "tokens p50",
        "tokens p95",
        "tokens per right answer",
        "cost",
    ]
    caption = "Per question: hops, seconds less those queued, questions at once, tokens; for the run: calls and cost"
    efforts = table(head, rows, caption=caption)
    heads, counts = stop_counts(report.figures)
    stops = []
    for number, row_counts in enumerate(counts, 1):
        stops.append([_run_name(report, number), *row_counts])
    stopped = table(["run", *heads], stops, caption="Why the loop stopped")
    return join(
        [efforts, _pair(stopped, _figure(report, "seconds")), _price_table(report)]
    )


def _price_table(report: Report) -> Html:
    """Return a table of the models with their tokens and fields for their prices; the page's script computes the
    costs."""
    models = models_of(report.figures)
    if not models:
        return Html("")
    rows = []
    for model in models:
        price = report.prices.of(model)
        tokens: list[str] = []
        fields = []
        for kind in ("input", "cached", "output"):
            used = models[model]
            tokens.append(f"{getattr(used, kind):,}")
            known = None
            if price is not None:
                known = f"{getattr(price, kind):g}"
            fields.append(
                el("input", type="number", min=0, step="any", inputmode="decimal", data_model=model, data_kind=kind,
                   aria_label=f"{model}: price of {kind}", value=known)
            )  # fmt: skip
        rows.append([model, *tokens, *fields])
    head = [
        "model",
        "tokens in",
        "of them cached",
        "tokens out",
        "price in",
        "price cached",
        "price out",
    ]
    caption = "Prices per million tokens, in your currency. None are built in: fill them in, or give --prices"
    as_file = el(
        "details",
        el("summary", "As a file for --prices"),
        el("pre", id="prices", tabindex=0),
    )
    return el("div", table(head, rows, caption=caption), as_file, id="price-table")


def _questions(report: Report) -> Html:
    several = len(report.runs) > 1
    picked = []
    types: set[str] = set()
    for number, run in enumerate(report.runs):
        picked.append(el("option", run.name, value=number))
        types.update(result.type for result in run.results)
    types.discard("")
    kinds = [el("option", kind) for kind in sorted(types)]
    chips = []
    for name, sign in VERDICTS.items():
        if any(run.verdicts[name] for run in report.figures):
            mark = el("span", sign, class_=f"v {name}", aria_hidden="true")
            chips.append(
                el("button", mark, f" {name} ", el("small"), type="button", class_="chip", data_verdict=name,
                   aria_pressed="false")
            )  # fmt: skip
    orders = []
    for value, text in _ORDERS.items():
        orders.append(el("option", text, value=value))
    controls = [
        el("input", type="search", id="search", placeholder=_SEARCH, aria_label=_SEARCH),
        el("label", "run ", el("select", *picked, id="run"), hidden=not several),
        el("div", *chips, class_="chips", role="group", aria_label="Filter by result"),
        el("label", "type ", el("select", el("option", "all", value=""), *kinds, id="type"), hidden=not types),
        el("label", "order ", el("select", *orders, id="order")),
        el("label", el("input", type="checkbox", id="disagree"), " runs disagree", hidden=not several),
    ]  # fmt: skip
    return el(
        "div",
        el("div", el("div", *controls, class_="controls"), el("p", id="count", class_="note", aria_live="polite"),
           el("ul", id="list", aria_label="Questions"), class_="finder"),
        el("article", el("p", "Choose a question to see its answers, hops and graph.", class_="note"), id="detail",
           tabindex=-1, aria_label="The chosen question"),
        class_="browser",
    )  # fmt: skip


def _run_name(report: Report, number: int) -> Html:
    """Return the name of run `number` (counted from 1), with its colour if there are several runs."""
    name = report.runs[number - 1].name
    if len(report.runs) > 1:
        key = el("i", class_=f"key run{(number - 1) % 8 + 1}")
    else:
        key = Html("")
    return el("span", key, name, class_="run")


def _score_cell(score: Estimate | None, n: int) -> Html:
    """Return the mean and its interval in percent, with the number of scored questions if it is not `n`."""
    if score is None:
        return Html("–")
    interval = el("small", f"{percent(score.low)} – {percent(score.high)}")
    fewer = Html("")
    if score.n != n:
        fewer = el("small", f" n = {score.n}")
    return el(
        "span", el("b", percent(score.mean)), " ", interval, fewer, class_="score"
    )


def _figure(report: Report, name: str) -> Html:
    plot = report.plots.get(name)
    if plot:
        return el("figure", Html(plot.svg), el("figcaption", plot.caption))
    return Html("")


def _pair(first: Html, second: Html) -> Html:
    """Return two elements side by side where there is room. An empty element is left out."""
    return el("div", *filter(None, (first, second)), class_="pair")
