"""The page of a run whose answer is a chain of four facts: its sentence, where it leads, and how it fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.records import Citation, Hit, Passage, Source, Step, Triple
from ras_agent.page import trace_html
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.trace import Trace

Browser = Any  # the class of tests/conftest.py
EVIL, WEB = {"url": "javascript:evil=1"}, {"url": "https://example.org/?a=1&b=2"}
SAID = (
    (
        "company.md",
        "It was founded by Ines Brandl.",
        ("Velmora", "was founded by", "Ines Brandl"),
        {},
    ),
    (
        "brandl.md",
        "Brandl was born in Ostrell.",
        ("Ines Brandl", "was born in", "Ostrell"),
        EVIL,
    ),
    (
        "a b/towns.pdf",
        "Ostrell lies on the river Dorve.",
        ("Ostrell", "lies on", "river Dorve"),
        {"page": 3},
    ),
    (
        "rivers.md",
        "The Dorve flows into the Quenne at Mittenau.",
        ("Dorve", "flows into", "Quenne at Mittenau"),
        WEB,
    ),
    (
        "rivers.md",
        "The Quenne rises in Austria.",
        ("Quenne", "rises in", "Austria"),
        {},
    ),
)
PASSAGES = tuple(
    Passage(f"p{n}", quote, f"Title {n}", document, about)
    for n, (document, quote, _, about) in enumerate(SAID, 1)
)
FACTS = tuple(
    Triple(*fact, (Source(f"p{n}", 0, len(quote), min(n, 3)),))
    for n, (_, quote, fact, _) in enumerate(SAID, 1)
)
TRACE = Trace(
    question="Into which river flows the river on which the founder of Velmora was born?",
    answer="the Quenne",
    confidence=0.42,
    grounded=True,
    citations=tuple(
        Citation(
            n, passage.id, passage.title, 0, len(passage.text), passage.text, (fact.id,)
        )
        for n, (passage, fact) in enumerate(zip(PASSAGES[:4], FACTS, strict=False), 1)
    ),
    steps=tuple(
        Step(
            n,
            f"Sub-query {n}?",
            (Hit(PASSAGES[n - 1], 0.5),),
            (FACTS[n - 1].id,),
            (FACTS[n - 1].id,),
        )
        for n in (1, 2, 3)
    ),
    graph=QuestionGraph(FACTS),
    passages={passage.id: passage for passage in PASSAGES},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("story")
    (folder / "a b").mkdir()
    (folder / "a b" / "towns.pdf").write_bytes(b"%PDF")
    (folder / "trace.html").write_text(trace_html(TRACE, folder), "utf-8")
    return folder


@pytest.fixture
def page(browser: Browser, folder: Path) -> Browser:
    browser.open((folder / "trace.html").as_uri())
    return browser


def text(page: Browser, selector: str) -> str:
    return " ".join(page.ask(f"document.querySelector({selector!r}).innerText").split())


def test_the_answer_is_told_as_a_chain_of_sentences(page: Browser) -> None:
    rows = page.ask(
        "[...document.querySelectorAll('.story > li')].map((row) => row.innerText.replace(/\\s+/g, ' '))"
    )
    assert rows[0] == "Velmora is in the question"
    assert rows[1].startswith(
        "Velmora was founded by Ines Brandl It was founded by Ines Brandl. 1 Title 1 company.md"
    )
    assert rows[3].startswith(
        "Ostrell lies on river Dorve Ostrell lies on the river Dorve. 3 Title 3"
    )
    assert rows[4].startswith(
        "Dorve flows into Quenne at Mittenau The Dorve flows into the Quenne at Mittenau. 4 Title 4"
    )
    assert rows[5:] == ["the Quenne is the answer"]
    assert page.ask("document.querySelectorAll('#graph .join').length") == 2


def test_no_chain_goes_through_a_word_that_is_no_name(
    browser: Browser, tmp_path: Path
) -> None:
    said = (("Ombrel", "is", "river"), ("Ashcombe", "is town on river", "Ombrel"))
    text = "Ashcombe is a town on the river Ombrel."
    facts = tuple(Triple(*fact, (Source("a", 0, len(text), 1),)) for fact in said)
    cited = (
        Citation(
            1, "a", "Ashcombe", 0, len(text), text, tuple(fact.id for fact in facts)
        ),
    )
    passages = {"a": Passage("a", text, "Ashcombe")}
    trace = Trace(
        "Which river flows there?",
        "Ombrel",
        citations=cited,
        graph=QuestionGraph(facts),
        passages=passages,
    )
    path = tmp_path / "river.html"
    path.write_text(trace_html(trace), "utf-8")
    browser.open(path.as_uri())
    assert browser.ask("document.querySelector('.story')") is None
    assert text_of_evidence(browser) == text


def text_of_evidence(page: Browser) -> str:
    found: str = page.ask("document.querySelector('#evidence blockquote').textContent")
    return found


def test_evidence_names_and_links_its_file_and_page_and_never_a_script(
    page: Browser,
) -> None:
    links = page.ask(
        "[...document.querySelectorAll('.source a')].map((a) => [a.innerText, a.getAttribute('href')])"
    )
    assert links == [
        ["a b/towns.pdf, page 3", "a%20b/towns.pdf#page=3"],
        ["https://example.org/?a=1&b=2", "https://example.org/?a=1&b=2"],
    ]
    assert page.ask(
        "[...document.querySelectorAll('a')].every((a) => a.rel === 'noopener noreferrer')"
    )
    assert [event["method"] for event in page.events].count(
        "Network.requestWillBeSent"
    ) == 1


def test_evidence_is_copied_with_its_source(page: Browser) -> None:
    page.ask("navigator.clipboard.writeText = async (text) => { window.held = text }")
    page.ask("document.querySelector('[data-citation=\"3\"] .copy').click()")
    assert (
        page.ask("held")
        == "“Ostrell lies on the river Dorve.” (Title 3, a b/towns.pdf, page 3)"
    )


def test_the_answer_is_copied_with_its_citations(page: Browser) -> None:
    page.ask("navigator.clipboard.writeText = async (text) => { window.held = text }")
    page.ask("document.querySelector('.answer .copy').click()")
    lines = page.ask("held").split("\n")
    assert lines[:3] == [
        "the Quenne [1] [2] [3] [4]",
        "",
        "[1] “It was founded by Ines Brandl.” (Title 1, company.md)",
    ]
    assert (
        lines[4]
        == "[3] “Ostrell lies on the river Dorve.” (Title 3, a b/towns.pdf, page 3)"
    )


def test_a_hop_that_is_chosen_after_a_fact_is_seen_whole(page: Browser) -> None:
    before = page.ask("document.querySelector('#world').style.transform")
    page.ask("document.querySelector('#closer').click()")
    page.ask(
        f"document.querySelector('[data-fact={FACTS[0].id}]').dispatchEvent(new MouseEvent('click'))"
    )
    page.ask("document.querySelector('[data-hop=\"2\"]').click()")
    assert page.ask("document.querySelector('#world').style.transform") == before
    assert page.ask("document.querySelector('#details').hidden") is True


def test_the_confidence_is_explained_and_not_among_the_figures(page: Browser) -> None:
    assert "confidence" not in text(page, "#stats")
    assert "not the chance that the answer is right" in page.ask(
        "document.querySelector('#rest').textContent"
    )


def test_a_phone_shows_the_evidence_before_the_graph_and_a_graph_that_can_be_read(
    browser: Browser, folder: Path
) -> None:
    browser.send(
        "Emulation.setDeviceMetricsOverride",
        width=390,
        height=844,
        deviceScaleFactor=1,
        mobile=True,
    )
    try:
        browser.open((folder / "trace.html").as_uri())
        tops = "['#evidence', '#stage', '#steps'].map((id) => document.querySelector(id).getBoundingClientRect().top)"
        assert browser.ask(tops) == sorted(browser.ask(tops))
        assert browser.ask("document.documentElement.scrollWidth") == 390
        # of 30
        assert (
            browser.ask(
                "document.querySelector('.node rect').getBoundingClientRect().height"
            )
            > 18
        )
    finally:
        browser.send("Emulation.clearDeviceMetricsOverride")


def test_print_shows_the_whole_graph_on_the_paper(
    browser: Browser, folder: Path
) -> None:
    browser.send(
        "Emulation.setDeviceMetricsOverride",
        width=700,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    browser.send("Emulation.setEmulatedMedia", media="print")
    try:
        browser.open((folder / "trace.html").as_uri())
        assert browser.ask(
            "(() => { const boxOf = (element) => element.getBoundingClientRect();"
            "const paper = boxOf(document.querySelector('#stage'));"
            "return [...document.querySelectorAll('.node')].map(boxOf).every((box) => box.left >= paper.left"
            "&& box.right <= paper.right && box.top >= paper.top && box.bottom <= paper.bottom)})()"
        )
    finally:
        browser.send("Emulation.setEmulatedMedia", media="")
        browser.send("Emulation.clearDeviceMetricsOverride")


def test_labels_of_a_crowd_do_not_lie_over_each_other(
    browser: Browser, tmp_path: Path
) -> None:
    facts = tuple(
        Triple(
            f"Hub {n % 3}",
            "is linked to",
            f"a rather long name {n}",
            (Source("p1", hop=1),),
        )
        for n in range(90)
    )
    trace = Trace(
        "Which hub?", "Hub 1", graph=QuestionGraph(facts), passages=TRACE.passages
    )
    path = tmp_path / "crowd.html"
    path.write_text(trace_html(trace), "utf-8")
    browser.open(path.as_uri() + "#entity=hub%201")
    browser.send(
        "Runtime.evaluate",
        expression="new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
        awaitPromise=True,
    )
    shown = (
        "[...document.querySelectorAll('.node text')].filter((one) => getComputedStyle(one).visibility === 'visible')"
        ".map((one) => { const box = one.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom] })"
    )
    boxes = browser.ask(shown)
    assert len(boxes) > 8
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            apart = (
                one[2] <= other[0] + 2
                or other[2] <= one[0] + 2
                or one[3] <= other[1] + 4
                or other[3] <= one[1] + 4
            )
            assert apart, (one, other)
