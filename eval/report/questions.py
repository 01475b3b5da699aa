"""The frame of the report's browser for single questions, which ras_agent/page/report.js fills."""

from __future__ import annotations

from ras_agent.eval.report.markup import Html, el
from ras_agent.eval.report.pieces import VERDICTS, Report

__all__ = ["questions"]

_SEARCH = "Search questions and answers"
_ORDERS = {
    "": "by id",
    "score": "lowest score first",
    "seconds": "slowest first",
    "hops": "most hops first",
    "tokens": "most tokens first",
}


def questions(report: Report) -> Html:
    types = sorted({result.type for run in report.runs for result in run.results if result.type})
    several = len(report.runs) > 1
    chips = [
        el("button", el("span", mark, class_=f"v {name}", aria_hidden="true"), f" {name} ", el("small"), type="button",
           class_="chip", data_verdict=name, aria_pressed="false")
        for name, mark in VERDICTS.items()
        if any(run.verdicts[name] for run in report.figures)
    ]  # fmt: skip
    picked = [el("option", run.name, value=number) for number, run in enumerate(report.runs)]
    kinds = [el("option", one) for one in types]
    orders = [el("option", text, value=value) for value, text in _ORDERS.items()]
    controls = [
        el("input", type="search", id="search", placeholder=_SEARCH, aria_label=_SEARCH),
        el("label", "run ", el("select", *picked, id="run"), hidden=not several),
        el("div", *chips, class_="chips", role="group", aria_label="Filter by what became of it"),
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
