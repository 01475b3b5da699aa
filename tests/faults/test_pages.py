"""Attacks on the pages: markup and scripts in every text that a page shows, in a real browser."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent import PassageIndex, build_graph
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RasError
from ras_agent.contracts.events import Planned
from ras_agent.contracts.records import (
    Call,
    Citation,
    Failure,
    Hit,
    Passage,
    Plan,
    Source,
    Step,
    Triple,
    Usage,
)
from ras_agent.eval.report.figures import Run
from ras_agent.eval.report.html_page import make_report, report_html
from ras_agent.eval.run.prices import Prices
from ras_agent.eval.run.result import Result
from ras_agent.page import trace_html
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.trace import Trace
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.picture import graph_page, most_connected
from tests.app.serve.conftest import serving
from tests.app.serve.test_page import until
from tests.faults.attack import Attack

Browser = Any  # the class of tests/conftest.py
PAYLOADS = (
    "<script>hacked=1</script>",
    "</script><script>hacked=1</script>",
    "</SCRIPT ><script>hacked=1</script>",
    "<!--<script>hacked=1</script>-->",
    "<!--</script><script>hacked=1//",
    "--><script>hacked=1</script>",
    "]]><script>hacked=1</script>",
    "</title><script>hacked=1</script>",
    "</style><script>hacked=1</script>",
    "</textarea><script>hacked=1</script>",
    "</template><script>hacked=1</script>",
    "<img src=x onerror=hacked=1>",
    '"><img src=x onerror=hacked=1>',
    "'><img src=x onerror='hacked=1'>",
    '" onmouseover="hacked=1" autofocus onfocus="hacked=1',
    "' onclick='hacked=1' x='",
    "<svg onload=hacked=1>",
    "<svg><script>hacked=1</script></svg>",
    "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "<a href='javascript:hacked=1'>go</a>",
    "javascript:hacked=1",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css><style>@import 'http://127.0.0.1:9/'</style>",
    "\u2028hacked=1\u2029//'\"`${hacked=1}",
    "\\u003cscript\\u003ehacked=1\\u003c/script\\u003e",
    "\ufeff\x00<\x00script>hacked=1</script>\ud800\u202e",
)
CLICK_EVERYTHING = """(() => {
    let count = 0
    for (const element of document.querySelectorAll('*:not(#fresh, #upload *)')) {  // no new page, no dialog
        for (const kind of ['mouseover', 'focus', 'click', 'keydown'])
            element.dispatchEvent(new MouseEvent(kind, {bubbles: true, cancelable: true}))
        count += 1
    }
    return count
})()"""


OWN_FORMS = (
    "#ask, #look, #access, #search, #upload, .correct, #threads form, #verdict form"
)
NEVER = f"a[href^=javascript], object, embed, base, form:not({OWN_FORMS})"


def _trace(evil: str) -> Trace:
    about = {"note": evil, "url": evil, "file": evil, "page": evil}
    passage = Passage(
        f"id {evil}",
        f"Text {evil}. Bell was born in Edinburgh.",
        f"Title {evil}",
        f"document {evil}",
        about,
    )
    fact = Triple(
        f"Subject {evil}",
        f"relation {evil}",
        f"Object {evil}",
        (Source(passage.id, 0, 12, 1, evil, f"extractor {evil}"),),
    )
    return Trace(
        question=f"Where? {evil}",
        answer=f"There {evil}",
        citations=(
            Citation(1, passage.id, passage.title, 0, 12, f"Quote {evil}", (fact.id,)),
        ),
        stop_reason="sufficient",
        mode=f"mode {evil}",
        roles={"planner": f"planner {evil}", f"role {evil}": "offline"},
        seconds=0.25,
        steps=(
            Step(
                1,
                f"Sub-query {evil}",
                (Hit(passage, 1.5, (f"0.5  ({evil} | {evil} | x)", evil)),),
                (fact.id,),
                (fact.id,),
            ),
        ),
        plans=(
            Planned(1, Plan("subq", f"Sub-query {evil}")),
            Planned(2, Plan("sufficient", reason=evil)),
        ),
        graph=QuestionGraph(
            (fact, Triple("Bell", evil, "x", (Source(passage.id, hop=1),)))
        ),
        usage=Usage((Call("planner", 1, f"model {evil}", 1000, 234),)),
        failures=(Failure("extractor", f"could not read {evil}", 1, evil),),
        passages={passage.id: passage},
    )


def _report(evil: str) -> str:
    results = tuple(
        Result(
            **{
                "id": f"q{number} {evil}",
                "question": f"Where? {evil}",
                "answers": (f"gold {evil}",),
            },
            **{
                "supporting": (f"title {evil}",),
                "type": f"type {evil}",
                "gold_hops": 2,
                "answer": f"answer {evil}",
            },
            **{
                "scores": {"f1": number / 2, f"metric {evil}": 1.0},
                "retrieved": (f"found {evil}",),
                "hops": 1,
            },
            **{
                "stop_reason": f"reason {evil}",
                "models": (f"model {evil}",),
                "trace": _trace(evil).to_dict(),
            },
            error={"type": f"Error{evil}", "message": evil} if number == 2 else None,
        )
        for number in range(3)
    )
    manifest = {
        "graph": evil,
        "models": {evil: evil},
        "commit": evil,
        "limits": {evil: evil},
        "benchmark": evil,
    }
    runs = [
        Run(f"run {evil}", manifest, results),
        Run(f"other {evil}", {}, results[:2]),
    ]
    return report_html(make_report(runs, Prices(), plots=False))


def _graph(evil: str) -> str:
    spokes = tuple(
        Triple(f"Hub {evil}", f"joins {evil}", f"spoke {letter} {evil}")
        for letter in "abc"
    )
    graph = KGIndex.in_memory(
        [PassageFacts(f"p {evil}", (*spokes, Triple("spoke", evil, evil)))]
    )
    return graph_page(graph, most_connected(graph, 100), f"Graph {evil}")


def _faults(browser: Browser, path: Path) -> tuple[int, list[str]]:
    """Open a page, touch every element of it and of its inner page; return how many, and all forbidden events."""
    browser.open("about:blank")
    browser.open(path.as_uri())
    return _touch(browser, path.as_uri())


def _touch(browser: Browser, address: str) -> tuple[int, list[str]]:
    touched = browser.ask(CLICK_EVERYTHING)
    faults = []
    if browser.ask("document.querySelectorAll('iframe').length"):
        touched += browser.ask_frame(CLICK_EVERYTHING)
        if browser.ask_frame("typeof hacked") != "undefined":
            faults.append("a script ran in the inner page")
    if browser.ask("typeof hacked") != "undefined":
        faults.append("a script ran")
    if browser.ask(f"document.querySelectorAll('{NEVER}').length"):
        faults.append("there is an element that no page makes")
    told = [(event["method"], event.get("params", {})) for event in browser.events]
    urls = [
        params["request"]["url"]
        for method, params in told
        if method == "Network.requestWillBeSent"
    ]
    faults += [
        f"a request to {url[:80]}"
        for url in urls
        if not url.startswith((address, "about:", "data:"))
    ]
    logged = [params["entry"] for method, params in told if method == "Log.entryAdded"]
    # a server may refuse the requests of a click on everything
    entries = [
        one["text"]
        for one in logged
        if not (one["source"] == "network" and address.startswith("http:"))
    ]
    faults += [f"the browser reports {entry[:120]}" for entry in entries]
    faults += [
        "an exception" for method, _ in told if method == "Runtime.exceptionThrown"
    ]
    return touched, faults


PAGES: dict[str, Callable[[str], str]] = {
    "trace": lambda evil: trace_html(_trace(evil)),
    "report": _report,
    "graph": _graph,
}


def test_markup_in_what_the_live_page_is_sent(
    attack: Attack, browser: Browser, tmp_path: Path, scripted_llm: Any
) -> None:
    """markup and scripts in question, plan, passages, facts, stored graph, answer and errors of the served page"""
    index = tmp_path / "evil.index"
    # the texts that an index and HTTP can hold
    texts = [evil.replace("\x00", "").replace("\ud800", "") for evil in PAYLOADS]
    passages = []
    for number, evil in enumerate(texts):
        stated = [
            [
                f"Bell {evil}",
                f"was born in {evil}",
                f"Edinburgh {evil}",
                f"place {evil}",
            ]
        ]
        about = {"url": evil, "path": evil, "page": evil, "facts": stated}
        text = f"Bell number {number} was born in Edinburgh. {evil}"
        passages.append(
            Passage(f"{number} {evil}", text, f"Title {evil}", f"d {evil}", about)
        )
    PassageIndex.create(index).add(passages)
    build_graph(index)
    settings = Settings(
        index=index,
        llm="offline",
        planner=scripted_llm.spec,
        answerer=scripted_llm.spec,
    )
    with serving(settings) as address:
        for number, told in enumerate(texts):
            scripted_llm.script(
                {"reply": f"[SUBQ] Where was Bell number {number} born? {told}"},
                {"reply": f"[SUFFICIENT] {told}"},
                {"reply": f"In Edinburgh {told} [1]"},
            )
            browser.open("about:blank")
            browser.open(f"{address}/")
            browser.ask(
                f"document.querySelector('#text').value = {json.dumps(f'Where was Bell born? {told}')}"
            )
            browser.ask("document.querySelector('#ask').requestSubmit()")
            until(
                browser,
                "now.asked && !now.running && (now.story || !$('trouble').hidden)",
            )
            touched, faults = _touch(browser, address)
            browser.ask(
                f"$('entity').value = {json.dumps(f'Bell {told}')}; $('look').requestSubmit()"
            )
            until(
                browser, "now.stored && (now.stored.story || $('nothing').textContent)"
            )
            browser.ask(
                f"$('filter').value = {json.dumps(told)}; $('text').value = 'x'; $('ask').requestSubmit()"
            )
            more, others = _touch(browser, address)
            for one in range(touched + more):
                attack.expect(
                    one > 0 or not faults + others, f"{told!r}: {faults + others}"
                )


@pytest.mark.parametrize("kind", PAGES)
def test_markup_in_every_text(
    attack: Attack, browser: Browser, tmp_path: Path, kind: str
) -> None:
    """markup and scripts in every text of a page; each element touched is a try"""
    for number, evil in enumerate(PAYLOADS):
        path = tmp_path / f"{number}.html"
        path.write_text(PAGES[kind](evil), "utf-8")
        touched, faults = _faults(browser, path)
        for one in range(touched):
            attack.expect(one > 0 or not faults, f"{evil!r}: {faults}")


def test_the_control(attack: Attack, browser: Browser, tmp_path: Path) -> None:
    """the same payload where a page does not escape: the attack notices"""
    path = tmp_path / "control.html"
    path.write_text(
        f"<html><body><p>{PAYLOADS[0]}{PAYLOADS[11]}</p></body></html>", "utf-8"
    )
    _, faults = _faults(browser, path)
    attack.expect("a script ran" in faults, str(faults))


def test_mutated_traces(attack: Attack) -> None:
    """traces with values replaced, removed or doubled at random are drawn or refused"""
    whole = json.loads(json.dumps(_trace("plain").to_dict()))
    for number in attack.times(3000):
        changed = copy.deepcopy(whole)
        for _ in range(attack.random.randint(1, 4)):
            _mutate(changed, attack.random)
        try:
            trace_html(Trace.from_dict(changed))
        except RasError:
            attack.expect(True, "")
        except Exception as error:
            attack.expect(False, f"trace {number}: {type(error).__name__}: {error}")
        else:
            attack.expect(True, "")


def _mutate(data: Any, draw: random.Random) -> None:
    """Change one value somewhere inside `data`."""
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        keys = (
            value
            if isinstance(value, dict)
            else range(len(value))
            if isinstance(value, list)
            else ()
        )
        for key in keys:
            places.append((value, key))
            walk(value[key])

    walk(data)
    if not places:
        return
    holder, key = draw.choice(places)
    choice = draw.randrange(4)
    if choice == 0 and isinstance(holder, dict):
        del holder[key]
    elif choice == 1 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    else:
        holder[key] = draw.choice(
            [
                None,
                True,
                -1,
                1e308,
                2**70,
                "",
                "\ud800",
                "x" * 1000,
                [],
                {},
                [[]],
                {"a": None},
            ]
        )
