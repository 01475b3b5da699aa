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
    stop_counts,
    summed_tokens,
)
from ras_agent.eval.report.glossary import explained
from ras_agent.eval.report.markdown import (
    SURENESS_HEADS,
    all_right_columns,
    cost_text,
    difference_cells,
    difference_heads,
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
    benchmarks: dict[str, None] = {}
    ids: set[str] = set()
    for run in report.runs:
        benchmark = str(run.manifest.get("benchmark") or "")
        benchmarks[benchmark] = None
        ids.update(run.by_id)
    named = ", ".join(filter(None, benchmarks))
    parts = [named, f"{len(ids)} questions"]
    started = str(report.runs[0].manifest.get("started") or "")
    if started:
        minute = started.replace("T", " ")[:16]
        parts.append(f"{minute} UTC")
    title: list[Html] = []
    for number in [*range(2, len(report.runs) + 1), 1]:  # "run 2, run 3 against run 1"
        between = ", "
        if number == 1:
            between = " against "
        if title:
            title.append(el("span", between, class_="soft"))
        title.append(_run_name(report, number))
    line = " · ".join(filter(None, parts))
    return el(
        "header",
        el("h1", *title),
        el("p", line, class_="soft"),
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
        errors = figures.verdicts["error"]
        if errors:
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
        count = el("small", f" n = {run.n}")
        names.append(join([_run_name(report, number), count]))
    score_table = table(
        ["metric", *names], rows, caption="Mean scores in percent, with 95 % intervals"
    )
    missing = Html("")
    if report.missing:
        missing = el("p", f"No plots: {report.missing}", class_="warning")
    words = _glossary(report)
    verdicts = _verdicts(report)
    plot = _figure(report, "scores")
    if len(report.runs) > 2:  # the score table takes the full width
        column = el("div", verdicts, missing, class_="stack")
        return el("div", score_table, _pair(column, plot), words)
    column = el("div", score_table, verdicts, missing, class_="stack")
    return join([_pair(column, plot), words])


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
    """Return a bar for each run that shows how many answers were right, wrong, abstentions or errors."""
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
    names = {}
    for number, run in enumerate(report.runs, 1):
        names[run.name] = _run_name(report, number)
    rows = []
    for difference in report.differences:
        gap = difference.comparison.difference
        sure = ""
        if gap.low > 0 or gap.high < 0:
            sure = "sure"
        mean = el("b", f"{100 * gap.mean:+.1f}", class_=sure)
        interval = el("small", f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}")
        cell = el("span", mean, " ", interval, class_="score")
        rows.append([names[difference.name], *difference_cells(difference, cell)])
    caption = f"Against {report.runs[0].name}, in points, on common questions; 95 % paired intervals"
    note = (
        "p: paired permutation test, two-sided, of one comparison; beside it the same, corrected for all of them by "
        "Holm's method. A question is the same in two runs where its id and its text are."
    )
    heads = ["run", *difference_heads(report.differences)]
    difference_table = table(heads, rows, caption=caption, texts=2)
    noted = el("p", note, class_="note")
    column = el("div", difference_table, noted, class_="stack")
    return _pair(column, _figure(report, "differences"))


def _kinds(report: Report) -> Html:
    heads = headline_metrics(report.metrics, report.metric)
    parts = []
    for kind in kinds_of(report.figures):
        by_name: dict[str, list[tuple[int, Group]]] = {}
        for number, run in enumerate(report.figures, 1):
            for group in run.groups.get(kind, ()):
                by_name.setdefault(group.name, []).append((number, group))
        rows: list[list[str | Html | None]] = []
        for name in sorted(by_name, key=_natural):
            groups = by_name[name]
            first: Html | None = el("th", name, rowspan=len(groups), scope="rowgroup")
            for number, group in groups:
                row: list[str | Html | None] = [first]
                if len(report.runs) > 1:
                    row.append(_run_name(report, number))
                row += [str(group.n), str(group.verdicts["right"])]
                for head in heads:
                    score = group.scores.get(head)
                    row.append(_score_cell(score, group.n))
                rows.append(row)
                first = None
        texts = [kind]
        if len(report.runs) > 1:
            texts.append("run")
        columns = [*texts, "n", "right", *heads]
        kind_table = table(columns, rows, caption=f"By {kind}", texts=len(texts))
        parts.append(_pair(kind_table, _figure(report, kind)))
    return join(parts)


def _natural(name: str) -> tuple[bool, int, str]:
    """Return a sort key for the kinds of questions: numbers first, in numeric order, then names, then "not
    given".
    """
    number = 0
    if name.isdecimal():
        number = int(name)
    return name == "not given", number, name


def _retrieval(report: Report) -> Html:
    deepest = max(len(run.recall) for run in report.figures)
    if not deepest:
        return Html("")
    depths = [k for k in (1, 2, 3, 5, 10, 20, 50) if k <= deepest]
    rows: list[list[str | Html | None]] = []
    for number, run in enumerate(report.figures, 1):
        if not run.recall:
            continue
        name = _run_name(report, number)
        count = el("small", f" n = {run.with_gold}")
        heading = el("th", name, count, rowspan=2, scope="rowgroup")
        shares: list[str | Html | None] = [heading, "share"]
        complete: list[str | Html | None] = [None, "all"]
        for k in depths:
            last = min(k, len(run.recall))
            point = run.recall[last - 1]
            shares.append(percent(point.recall))
            complete.append(percent(point.all))
        rows += [shares, complete]
    caption = "Gold passages among the first k, in percent: mean share found, and questions with all of them"
    heads = ["run", "found"]
    for k in depths:
        heads.append(f"k = {k}")
    rank_table = table(heads, rows, caption=caption, texts=2)
    return _pair(rank_table, _figure(report, "recall"))


def _confidence(report: Report) -> Html:
    rows = []
    for number, run in enumerate(report.figures, 1):
        if run.confidence:
            figures = sureness_cells(run)[1:]
            rows.append([_run_name(report, number), *figures])
    if not rows:
        return Html("")
    caption = "How far confidences are off, and how many of the surest answers are wrong, in percent, 95 % intervals"
    sureness = table(SURENESS_HEADS, rows, caption=caption)
    return _pair(sureness, _figure(report, "risk"))


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
    """Return a value of the manifest as text. A mapping of more than 8 entries, such as the prompts' hashes,
    can be unfolded.
    """
    if not isinstance(value, Mapping) or len(value) <= 8:
        return _plain(value)
    entries = {}
    for key, item in value.items():
        entries[str(key)] = _plain(item)
    summary = el("summary", f"{len(value)} entries")
    return el("details", summary, _definitions(entries))


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_plain, value))
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _repeats(report: Report) -> Html:
    """Return tables that show how much the repeats of runs agree; empty if no run was repeated."""
    rows = []
    names = []
    repeated = []
    for number, run in enumerate(report.figures, 1):
        if run.repeats is None:
            continue
        name = _run_name(report, number)
        names.append(name)
        repeated.append(run.repeats)
        for metric in report.metrics:
            spread = spread_text(run.repeats.scores.get(metric))
            rows.append([name, metric, str(run.repeats.count), spread])
    if not rows:
        return Html("")
    spreads = table(
        ["run", "metric", "repeats", "mean ± deviation"],
        rows,
        caption="Means of the repeats in percent: their mean, standard deviation, least and most",
        texts=2,
    )
    heads, cells = all_right_columns(repeated)
    chances = []
    for name, row in zip(names, cells, strict=True):
        chances.append([name, *row])
    caption = f"The chance that k repeats of a question are all right, in percent, by {report.metric}"
    all_right = table(["run", *heads], chances, caption=caption)
    return el("div", spreads, all_right, class_="stack")


def _effort(report: Report) -> Html:
    rows = []
    for number, run in enumerate(report.figures, 1):
        calls = f"{run.calls:,}"
        if run.replayed:
            calls += f" ({run.replayed:,} replayed)"
        for_a_right_one = "–"
        if run.right.tokens is not None:
            for_a_right_one = f"{run.right.tokens:,.0f}"
        cost = el(
            "span",
            cost_text(run.cost, run.calls),
            data_cost=number - 1,
            data_right=run.right.count,
        )
        row = [
            _run_name(report, number),
            f"{run.hops.mean:.2f}",
            f"{run.seconds.p50:.2f}",
            f"{run.seconds.p95:.2f}",
            f"{run.seconds.mean:.2f}",
            f"{run.queued:.2f}",
            str(run.at_once or "unknown"),
            calls,
            f"{run.tokens.p50:,.0f}",
            f"{run.tokens.p95:,.0f}",
            for_a_right_one,
            cost,
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
    timed = _pair(stopped, _figure(report, "seconds"))
    return join([efforts, timed, _price_table(report)])


def _price_table(report: Report) -> Html:
    """Return a table of the models with their tokens, and input fields for prices from which the page's script
    computes costs.
    """
    models = summed_tokens(run.models for run in report.figures)
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
    kinds = [el("option", "all", value="")]
    for kind in sorted(types):
        kinds.append(el("option", kind))
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
        el("label", "type ", el("select", *kinds, id="type"), hidden=not types),
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
    if len(report.runs) == 1:
        return el("span", name, class_="run")
    key = el("i", class_=f"key run{(number - 1) % 8 + 1}")
    return el("span", key, name, class_="run")


def _score_cell(score: Estimate | None, n: int) -> Html:
    """Return the mean and its interval in percent, with the number of scored questions if it is not `n`."""
    if score is None:
        return Html("–")
    mean = el("b", percent(score.mean))
    interval = el("small", f"{percent(score.low)} – {percent(score.high)}")
    fewer = Html("")
    if score.n != n:
        fewer = el("small", f" n = {score.n}")
    return el("span", mean, " ", interval, fewer, class_="score")


def _figure(report: Report, name: str) -> Html:
    plot = report.plots.get(name)
    if plot is None:
        return Html("")
    caption = el("figcaption", plot.caption)
    return el("figure", Html(plot.svg), caption)


def _pair(first: Html, second: Html) -> Html:
    """Return two elements that are shown side by side if there is room. An empty element is left out."""
    elements = filter(None, (first, second))
    return el("div", *elements, class_="pair")
