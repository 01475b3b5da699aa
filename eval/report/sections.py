"""The sections of a report's page, as markup: figures in tables, plots beside them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ras_agent.eval.report.effort import effort
from ras_agent.eval.report.figures import Group, RunFigures, headline_metrics
from ras_agent.eval.report.markdown import percent
from ras_agent.eval.report.markup import Html, el, join, table
from ras_agent.eval.report.pieces import VERDICTS, Report, figure, pair, run_name, score_cell
from ras_agent.eval.report.questions import questions

__all__ = ["body"]


def body(report: Report) -> Html:
    """Everything between <body> and the scripts."""
    sections = [
        ("scores", "Scores", _scores(report)),
        ("differences", "Differences", _differences(report)),
        ("kinds", "By kind of question", _kinds(report)),
        ("retrieval", "Retrieval", _retrieval(report)),
        ("effort", "Time, tokens, cost", effort(report)),
        ("questions", "Questions", questions(report)),
        ("runs", "How it was run", _manifests(report)),
    ]
    shown = [(name, title, content) for name, title, content in sections if content]
    links = el("ul", *(el("li", el("a", title, href=f"#{name}")) for name, title, _ in shown))
    return join(
        [
            el("a", "To the questions", href="#questions", class_="skip"),
            _header(report),
            el("nav", links, aria_label="Sections"),
            el(
                "main",
                *(
                    el("section", el("h2", title, id=f"{name}-h"), content, id=name, aria_labelledby=f"{name}-h")
                    for name, title, content in shown
                ),
            ),
            el("noscript", "The figures stand here as they are; to look at single questions, the page runs a script of "
               "its own. It loads nothing from elsewhere."),
        ]
    )  # fmt: skip


def _header(report: Report) -> Html:
    first = report.runs[0].manifest
    benchmarks = dict.fromkeys(str(run.manifest.get("benchmark") or "") for run in report.runs)
    said = [", ".join(filter(None, benchmarks)), f"{len({r.id for run in report.runs for r in run.results})} questions"]
    if started := str(first.get("started") or ""):
        said.append(started.replace("T", " ")[:16] + " UTC")
    title: list[Html] = []
    for number in [*range(2, len(report.runs) + 1), 1]:  # the others against the first
        title += [el("span", " against " if number == 1 else ", ", class_="soft")] if title else []
        title.append(run_name(report, number))
    return el("header", el("h1", *title), el("p", " · ".join(filter(None, said)), class_="soft"), *_warnings(report))


def _warnings(report: Report) -> Iterable[Html]:
    for run, figures in zip(report.runs, report.figures, strict=True):
        planned = run.manifest.get("questions")
        if isinstance(planned, int) and planned > figures.n:
            yield el("p", f"{run.name}: {figures.n} of {planned} questions have a result so far.", class_="warning")
        if errors := figures.verdicts["error"]:
            count = f"{errors} question ended" if errors == 1 else f"{errors} questions ended"
            yield el("p", f"{run.name}: {count} in an error.", class_="warning")


def _scores(report: Report) -> Html:
    rows = [
        [metric, *(score_cell(run.scores.get(metric), run.n) for run in report.figures)] for metric in report.metrics
    ]
    names = [
        join([run_name(report, number), el("small", f" n = {run.n}")]) for number, run in enumerate(report.figures, 1)
    ]
    made = table(["metric", *names], rows, caption="Mean scores in percent, with 95 % bootstrap intervals")
    missing = el("p", f"No plots: {report.missing}", class_="warning") if report.missing else Html("")
    if len(report.runs) > 2:  # as wide as the page
        return el("div", made, pair(el("div", _verdicts(report), missing, class_="stack"), figure(report, "scores")))
    return pair(el("div", made, _verdicts(report), missing, class_="stack"), figure(report, "scores"))


def _verdicts(report: Report) -> Html:
    """How many were right, for each run a bar."""
    bars = []
    for number, run in enumerate(report.figures, 1):
        rects, labels, begin = [], [], 0.0
        for name, count in run.verdicts.items():
            wide = 100 * count / run.n
            rects.append(el("rect", class_=f"fill-{name}", x=f"{begin:.3f}", width=f"{wide:.3f}", height=10, y=0))
            begin += wide
            if count:
                mark = el("span", f"{VERDICTS[name]} ", class_=f"v {name}", aria_hidden="true")
                labels.append(el("li", mark, f"{count} {name}"))
        bar = el("svg", *rects, viewBox="0 0 100 10", preserveAspectRatio="none", class_="bar", aria_hidden="true")
        name_ = run_name(report, number) if len(report.runs) > 1 else Html("")
        bars.append(el("li", name_, bar, el("ul", *labels)))
    note = (
        f"Right: {report.metric} of at least 50 %, or no answer where there is none to give." if report.metric else ""
    )
    return el("div", el("ul", *bars, class_="verdicts"), el("p", note, class_="note"), class_="card")


def _differences(report: Report) -> Html:
    if len(report.runs) < 2:
        return Html("")
    if not report.differences:
        return el("p", "The runs have no scored question in common.", class_="note")
    numbers = {run.name: number for number, run in enumerate(report.runs, 1)}
    rows = []
    for one in report.differences:
        gap = one.found.difference
        sure = "sure" if gap.low > 0 or gap.high < 0 else ""
        mean = el("span", el("b", f"{100 * gap.mean:+.1f}", class_=sure), " ",
                  el("small", f"{100 * gap.low:+.1f} to {100 * gap.high:+.1f}"), class_="score")  # fmt: skip
        rows.append(
            [run_name(report, numbers[one.name]), one.metric, str(one.found.n), mean, f"{one.found.permutation_p:.4f}"]
        )
    caption = f"Against {report.runs[0].name}, in points, on common questions; 95 % intervals by paired bootstrap"
    note = "p: paired permutation test, two-sided, not corrected for the number of comparisons."
    made = table(["run", "metric", "n", "difference", "p"], rows, caption=caption, texts=2)
    return pair(el("div", made, el("p", note, class_="note"), class_="stack"), figure(report, "differences"))


def _kinds(report: Report) -> Html:
    heads = headline_metrics(report.metrics, report.metric)
    several = len(report.runs) > 1
    parts = []
    for kind in dict.fromkeys(kind for run in report.figures for kind in run.groups):
        by_name: dict[str, list[tuple[int, Group]]] = {}
        for number, run in enumerate(report.figures, 1):
            for group in run.groups.get(kind, ()):
                by_name.setdefault(group.name, []).append((number, group))
        rows: list[list[str | Html | None]] = []
        for name, groups in sorted(by_name.items(), key=lambda item: _natural(item[0])):
            for place, (number, group) in enumerate(groups):
                spans = el("th", name, rowspan=len(groups), scope="rowgroup") if place == 0 else None
                right = str(group.verdicts["right"])
                own = [run_name(report, number)] if several else []
                rows.append(
                    [spans, *own, str(group.n), right, *(score_cell(group.scores.get(head), group.n) for head in heads)]
                )
        columns = [kind, *(["run"] if several else []), "n", "right", *heads]
        made = table(columns, rows, caption=f"By {kind}", texts=2 if several else 1)
        parts.append(pair(made, figure(report, kind)))
    return join(parts)


def _natural(name: str) -> tuple[bool, int, str]:
    """Numbers in their order, then names, then what has none."""
    return name == "not given", int(name) if name.isdecimal() else 0, name


def _retrieval(report: Report) -> Html:
    if not any(run.recall for run in report.figures):
        return Html("")
    deepest = max(len(run.recall) for run in report.figures)
    depths = [k for k in (1, 2, 3, 5, 10, 20, 50) if k <= deepest]
    rows: list[list[str | Html | None]] = []
    for number, run in enumerate(report.figures, 1):
        if run.recall:
            name = el("th", run_name(report, number), el("small", f" n = {run.with_gold}"), rowspan=2, scope="rowgroup")
            rows.append([name, "share", *(_depth(run, k, "share") for k in depths)])
            rows.append([None, "all", *(_depth(run, k, "all") for k in depths)])
    caption = "Gold passages among the first k, in percent: mean share found, and questions with all of them"
    made = table(["run", "found", *(f"k = {k}" for k in depths)], rows, caption=caption, texts=2)
    return pair(made, figure(report, "recall"))


def _depth(run: RunFigures, k: int, what: str) -> str:
    point = run.recall[min(k, len(run.recall)) - 1]
    return percent(point.recall if what == "share" else point.all)


def _manifests(report: Report) -> Html:
    parts = []
    for number, run in enumerate(report.runs, 1):
        pairs = [
            pair
            for key, value in run.manifest.items()
            if key not in ("schema", "version", "name") and value not in (None, {}, [], "")
            for pair in (el("dt", key.replace("_", " ")), el("dd", _told(value)))
        ]
        inside = el("dl", *pairs) if pairs else el("p", "This run has no manifest.", class_="note")
        parts.append(el("details", el("summary", run_name(report, number)), inside, open=len(report.runs) == 1))
    return join(parts)


def _told(value: Any) -> Html | str:
    """A value of the manifest; a long list, such as the hashes of all prompts, is folded."""
    if not isinstance(value, Mapping) or len(value) <= 8:
        return _plain(value)
    pairs = (pair for key, item in value.items() for pair in (el("dt", str(key)), el("dd", _plain(item))))
    return el("details", el("summary", f"{len(value)} entries"), el("dl", *pairs))


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_plain, value))
    return value if isinstance(value, str) else json.dumps(value)
