"""The page of `ras-agent serve` in a real browser, against the server as a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ras_agent import Passage, PassageIndex, build_graph
from ras_agent.config.settings import Settings
from tests.app.serve.conftest import serving
from tests.page.looks import pale, screen, small, told

Browser = Any  # the class of tests/conftest.py
QUESTION = (
    "Which river flows through the city where the inventor of the telephone was born?"
)
PATIENCE = 60  # seconds that a page may take on a busy machine
READY = "typeof now === 'object' && now.about"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a `ras-agent serve` process over the bundled sample, offline."""
    program = "from ras_agent.app.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", "--sample", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        yield said.split()[-1]
        process.terminate()


@pytest.fixture(scope="module")
def asked(browser: Browser, address: str) -> Browser:
    """The page after the sample's question and its answer."""
    browser.open(address)
    ask(browser, QUESTION)
    until(
        browser,
        "document.querySelector('.story') && document.querySelector('.node.answer')",
    )
    return browser


def until(page: Browser, condition: str) -> None:
    """Wait until a JavaScript condition holds in the page."""
    look = (
        f"new Promise((done) => {{ const end = Date.now() + {1000 * PATIENCE};"
        f"const look = () => ({condition}) ? done('') : Date.now() > end ? done(document.body.innerText || 'empty')"
        ": setTimeout(look, 20); look() })"
    )
    answer = page.send(
        "Runtime.evaluate", expression=look, awaitPromise=True, returnByValue=True
    )
    assert "exceptionDetails" not in answer, answer
    assert answer["result"]["value"] == "", (
        f"after {PATIENCE} s it does not hold: {condition}"
    )


def ask(page: Browser, question: str) -> None:
    page.ask(f"document.querySelector('#text').value = {json.dumps(question)}")
    page.ask("document.querySelector('#ask').requestSubmit()")


def leave(page: Browser, expression: str) -> None:
    """Follow a link to another page, and wait until the browser is there."""
    page.events.clear()
    page.ask(f"setTimeout(() => {expression})")
    page.wait_for("Page.frameNavigated")


def text(page: Browser, selector: str) -> str:
    return " ".join(
        page.ask(f"document.querySelector({json.dumps(selector)}).innerText").split()
    )


def click(page: Browser, selector: str) -> None:
    page.ask(
        f"document.querySelector({json.dumps(selector)}).dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
    )


def test_a_question_is_answered_with_its_chain_its_steps_and_its_graph(
    asked: Browser,
) -> None:
    assert text(asked, "#question") == QUESTION
    assert text(asked, ".answer") == "Water of Leith 1 2 3 copy save"
    assert text(asked, ".story .end") == "Telephone is in the question"
    assert asked.ask("document.querySelectorAll('#steps .step').length") == 4
    assert asked.ask("document.querySelectorAll('.node').length") > 50
    assert text(asked, "#state") == ""


def test_the_evidence_is_in_the_light_and_the_rest_is_there_on_demand(
    asked: Browser,
) -> None:
    def lit() -> int:
        found: int = asked.ask("document.querySelectorAll('.edge:not(.dim)').length")
        return found

    assert (
        lit()
        == asked.ask("now.picture.chain.flatMap((link) => link.facts).length")
        == 3
    )
    click(asked, "#of-question")
    assert lit() > 50
    click(asked, "#of-evidence")
    assert lit() == 3


def test_the_steps_are_told_in_words_of_a_reader(asked: Browser) -> None:
    steps = text(asked, "#steps")
    assert "Read Telephone, " in steps
    assert steps.split("■ ")[1].startswith("Enough was found.")
    assert "score" not in steps


def test_a_click_on_an_edge_shows_its_sentence(asked: Browser) -> None:
    click(asked, ".story [data-show]")
    assert text(asked, "#details mark").startswith(
        "The first practical telephone was patented by"
    )
    asked.press("Escape")
    assert asked.ask("document.querySelector('#details').hidden") is True


def test_nothing_is_loaded_from_elsewhere_and_nothing_is_refused(
    asked: Browser, address: str
) -> None:
    told = [(event["method"], event.get("params", {})) for event in asked.events]
    urls = [
        params["request"]["url"]
        for method, params in told
        if method == "Network.requestWillBeSent"
    ]
    assert {url for url in urls if not url.startswith((address, "data:"))} == set()
    assert "Runtime.exceptionThrown" not in {method for method, _ in told}
    assert [params for method, params in told if method == "Log.entryAdded"] == []


def test_what_the_server_refuses_is_said_plainly_and_can_be_tried_again(
    asked: Browser,
) -> None:
    asked.ask("document.querySelector('#filter').value = 'no equals sign'")
    ask(asked, "Where was Bell born?")
    until(asked, "!document.querySelector('#trouble').hidden")
    assert "expected name=value, got “no equals sign”" in text(asked, "#trouble")
    asked.ask("document.querySelector('#filter').value = ''")


def test_a_follow_up_is_asked_on_the_same_thread_which_a_page_opened_again_shows(
    asked: Browser, address: str
) -> None:
    thread = asked.ask("location.hash")
    ask(asked, "Where was Alexander Graham Bell born?")
    until(
        asked,
        "document.querySelector('#answer').textContent === 'Edinburgh' && !now.running",
    )
    assert asked.ask("location.hash") == thread
    assert QUESTION in text(asked, "#talk")
    asked.open("about:blank")
    asked.open(f"{address}/{thread}")
    until(
        asked,
        "document.querySelector('#talk').textContent.includes('river flows through the city')",
    )
    assert text(asked, "#answer") == "Edinburgh"


def test_a_narrow_screen_needs_no_sideways_scrolling(asked: Browser) -> None:
    asked.send(
        "Emulation.setDeviceMetricsOverride",
        width=360,
        height=740,
        deviceScaleFactor=1,
        mobile=True,
    )
    try:
        assert asked.ask("document.documentElement.scrollWidth") == 360
    finally:
        asked.send("Emulation.clearDeviceMetricsOverride")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two documents with a knowledge graph."""
    folder = tmp_path_factory.mktemp("page") / "my.index"
    PassageIndex.create(folder).add(
        [
            Passage(
                "bell",
                "Alexander Graham Bell was born in Edinburgh.",
                "Alexander Graham Bell",
                "bell.md",
            ),
            Passage(
                "leith",
                "The Water of Leith flows through Edinburgh.",
                "Water of Leith",
                "docs/leith.md",
            ),
        ]
    )
    build_graph(folder)
    return folder


def test_a_run_waits_for_decisions_at_plan_facts_and_answer(
    browser: Browser, index: Path
) -> None:
    with serving(Settings(index=index)) as address:
        browser.open(address)
        browser.ask(
            "document.querySelectorAll('input[name=review]').forEach((one) => { one.checked = true })"
        )
        ask(browser, "Where was the inventor born?")
        until(
            browser,
            "document.querySelector('#review h2')?.textContent === 'Plan of hop 1'",
        )
        browser.ask(
            "document.querySelector('#review input').value = 'Where was Alexander Graham Bell born?'"
        )
        click(browser, "#review .main")
        until(
            browser,
            "document.querySelector('#review h2')?.textContent === 'Facts of hop 1'",
        )
        assert text(browser, "[data-step='1']").endswith(
            "Where was Alexander Graham Bell born?"
        )
        rows = "[...document.querySelectorAll('#review li')].filter((row) => row.innerText.includes('flows through'))"
        browser.ask(
            f"{rows}.forEach((row) => row.querySelectorAll('button')[1].click())"
        )
        click(browser, "#review .main")
        until(
            browser,
            "document.querySelector('#review h2')?.textContent === 'Plan of hop 2'",
        )
        if browser.ask(
            "document.querySelector('#review .main').textContent === 'Search'"
        ):
            click(browser, "#review .row button:nth-child(2)")
        else:
            click(browser, "#review .main")
        until(
            browser,
            "document.querySelector('#review h2')?.textContent === 'The answer'",
        )
        browser.ask("document.querySelector('#review textarea').value = 'In Edinburgh'")
        click(browser, "#review .main")
        until(browser, "document.querySelector('#review').hidden && !now.running")
        assert text(browser, "#answer") == "In Edinburgh"
        assert "flows through" not in browser.ask(
            "document.querySelector('#rest').textContent"
        )


def test_a_decision_that_is_quicker_than_the_end_of_the_connection_counts(
    browser: Browser, index: Path
) -> None:
    with serving(Settings(index=index)) as address:
        browser.open(address)
        browser.ask(
            "(() => { const real = eventsOf; const held = new Promise((done) => { window.release = done });"
            "eventsOf = async function* (...all) { yield* real(...all); await held } })()"
        )
        browser.ask("document.querySelector('input[value=plan]').checked = true")
        ask(browser, "Where was Alexander Graham Bell born?")
        until(browser, "!document.querySelector('#review').hidden")
        browser.ask(
            "window.first = now.running; document.querySelector('#review .main').click(); release()"
        )
        until(
            browser,
            "now.running !== first && document.querySelector('#review h2').textContent === 'Plan of hop 2'",
        )


def test_the_stored_graph_is_drawn_around_an_entity_found_by_its_beginning(
    browser: Browser, index: Path
) -> None:
    with serving(Settings(index=index)) as address:
        browser.open(address)
        click(browser, "#of-index")
        until(browser, "document.querySelectorAll('.node').length > 2")
        browser.ask("document.querySelector('#entity').value = 'edin'")
        browser.ask("document.querySelector('#look').requestSubmit()")
        until(
            browser,
            "document.querySelector('#caption').textContent.startsWith('Around Edinburgh')",
        )
        assert (
            browser.ask("document.querySelector('.node.asked').dataset.node")
            == "edinburgh"
        )
        # who types a name may go on
        assert browser.ask("document.activeElement.id") == "entity"
        click(browser, "#details [data-show]")
        until(browser, "document.querySelector('#details mark')")
        assert text(browser, "#details .source") == "bell.md"
        browser.ask("document.querySelector('#entity').value = 'Nobody'")
        browser.ask("document.querySelector('#look').requestSubmit()")
        until(
            browser,
            "document.querySelector('#nothing').textContent.includes('is called “Nobody”')",
        )


def test_a_server_that_wants_a_token_says_so_at_once_and_is_given_one(
    browser: Browser, index: Path
) -> None:
    def give(token: str) -> None:
        browser.ask(f"document.querySelector('#token').value = {token!r}")
        browser.ask("document.querySelector('#access').requestSubmit()")

    with serving(
        Settings(index=index), tokens={"a token of some length": None}
    ) as address:
        browser.open(address)
        until(browser, "!document.querySelector('#trouble').hidden")
        assert text(browser, "#trouble b") == "The server wants a token"
        assert browser.ask("document.activeElement.id") == "token"
        give("another")
        until(
            browser,
            "document.querySelector('#trouble p').textContent.includes('does not know this token')",
        )
        give("a token of some length")
        until(
            browser,
            "document.querySelector('#searched').textContent.includes('2 documents')",
        )
        assert browser.ask("document.querySelector('#trouble').hidden") is True
        browser.ask("document.querySelector('#token').value = 'another'")
        ask(browser, "Where was Alexander Graham Bell born?")
        until(browser, "!document.querySelector('#trouble').hidden")
        give("a token of some length")
        until(
            browser,
            "document.querySelector('#answer').textContent === 'Edinburgh' && !now.running",
        )
        assert browser.ask("document.querySelector('.sheet #token') !== null") is True


def test_the_first_screen_says_what_is_searched_and_what_may_be_asked(
    browser: Browser, address: str
) -> None:
    browser.open("about:blank")
    browser.open(address)
    until(browser, "document.querySelectorAll('#examples button').length === 4")
    assert text(browser, "#brand") == "ras-agent The bundled sample offline"
    assert text(browser, "#examples").startswith(
        "Where was the inventor of Dynamite born?"
    )
    assert text(browser, "#searched").startswith("Searched: 96 documents (telephone, ")
    assert browser.ask("document.querySelector('#stage').checkVisibility()") is False
    with screen(browser):
        assert pale(browser) == []
    click(browser, "#examples li:last-child button")
    until(
        browser,
        "document.querySelector('#answer').textContent === 'Mary Shelley' && !now.running",
    )
    assert browser.ask("document.querySelector('#first').checkVisibility()") is False
    before = browser.ask("location.hash")
    leave(browser, "document.querySelector('#fresh').click()")
    until(
        browser,
        "location.hash === '' && document.querySelectorAll('#examples button').length === 4",
    )
    leave(browser, "history.back()")
    until(browser, "document.querySelector('#answer')?.textContent === 'Mary Shelley'")
    assert browser.ask("location.hash") == before


def test_a_server_without_documents_says_how_it_gets_some(
    browser: Browser, tmp_path: Path
) -> None:
    PassageIndex.create(tmp_path / "empty.index")
    with serving(Settings(index=tmp_path / "empty.index")) as address:
        browser.open(address)
        until(
            browser,
            "document.querySelector('#searched').textContent.includes('ras-agent index FOLDER')",
        )
        click(browser, "#of-index")
        until(
            browser,
            "document.querySelector('#nothing').textContent.includes('has no knowledge graph')",
        )


def test_a_connection_that_is_lost_in_the_middle_of_a_run_is_said_to_be(
    browser: Browser, address: str
) -> None:
    browser.open("about:blank")
    browser.open(address)
    browser.ask(
        "window.fetch = async () => new Response(new ReadableStream({"
        "start: (events) => events.error(new TypeError('network error')) }))"
    )
    ask(browser, "Where was Bell born?")
    until(
        browser,
        "!document.querySelector('#trouble').hidden && !document.querySelector('#go-on').hidden",
    )
    assert text(browser, "#trouble p").startswith(
        "The connection to the server was lost. Continue takes up"
    )


def test_a_conversation_that_the_server_has_forgotten_is_said_to_be(
    browser: Browser, address: str
) -> None:
    browser.open("about:blank")
    browser.open(f"{address}/#thread=nobody-has-it")
    until(
        browser,
        "document.querySelector('#state').textContent.includes('does not know the conversation')",
    )
    assert browser.ask("location.hash") == ""
    assert browser.ask("document.querySelector('#first').checkVisibility()") is True


def test_the_page_is_read_out_pressed_and_seen_by_everybody(
    browser: Browser, address: str
) -> None:
    browser.open("about:blank")
    browser.open(address)
    browser.ask(
        "(() => { window.said = []; new MutationObserver((all) => all.forEach(({ target }) =>"
        "{ const live = (target.nodeType === 1 ? target : target.parentElement)?.closest('[aria-live], [role=status]');"
        "if (live?.textContent) said.push(live.textContent) }))"
        ".observe(document.body, { subtree: true, childList: true, characterData: true }) })()"
    )
    ask(browser, QUESTION)
    until(
        browser,
        "document.querySelector('.story') && document.querySelector('.node.answer') && !now.running",
    )
    said = browser.ask("said")
    assert said[0] == "Working …"
    assert said[-1] == "Answer: Water of Leith"
    # three hops, a search and a reading each, and "Answering"
    assert len(said) <= 2 + 2 * 3 + 1
    found = told(browser)
    assert ("heading", QUESTION) in found
    assert {
        ("StaticText", "Water of Leith"),
        ("button", "Copy the answer"),
        ("button", "Evidence 3"),
    } <= set(found)
    assert (
        "button",
        "Telephone first practical telephone was patented by Alexander Graham Bell",
    ) in found
    # in the graph
    assert any(
        role == "button" and name.startswith("Water of Leith, ") for role, name in found
    )
    assert (
        browser.ask("document.querySelectorAll('#graph [tabindex=\"0\"]').length") == 1
    )
    browser.ask(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    for dark in (False, True):
        with screen(browser, dark=dark):
            assert pale(browser) == []
    with screen(browser, 390, 844):
        assert small(browser) == []
        assert browser.ask("document.documentElement.scrollWidth") == 390
    with screen(browser, 640, 450):  # a window of 1280 pixels at 200 %
        wide = browser.ask(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert wide == 0


def test_a_run_is_paused_and_goes_on_where_it_stopped(
    browser: Browser, index: Path, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"reply": "[SUBQ] Where was Alexander Graham Bell born?"}, {"hang": True}
    )
    settings = Settings(
        index=index,
        planner=scripted_llm.spec,
        extractor="offline",
        least_confidence=0.0,
    )
    with serving(settings) as address:
        browser.open(address)
        ask(browser, "Where was the inventor born?")
        until(browser, "document.querySelectorAll('.node').length > 1")
        click(browser, "#pause")
        until(browser, "!document.querySelector('#go-on').hidden")
        assert text(browser, "#state").startswith("Paused.")
        thread = browser.ask("location.hash")
        browser.open("about:blank")
        browser.open(f"{address}/{thread}")
        until(browser, "document.querySelectorAll('.node').length > 1")
        assert (
            text(browser, "#state")
            == "This run has not ended. Continue takes up where it stopped."
        )
        assert browser.ask("document.querySelector('#go-on').checkVisibility()") is True
        scripted_llm.script({"reply": "[SUFFICIENT]", "repeat": True})
        click(browser, "#go-on")
        until(
            browser,
            "document.querySelector('#answer').textContent === 'Edinburgh' && !now.running",
        )
        assert browser.ask("document.querySelectorAll('#steps .step').length") == 2


@pytest.fixture
def own(browser: Browser, index: Path, tmp_path: Path) -> Iterator[Browser]:
    """The page of a server whose conversations are stored, over an index of its own."""
    copy = shutil.copytree(index, tmp_path / "own.index")
    with serving(
        Settings(index=copy, checkpoint=f"sqlite:{tmp_path / 'threads.sqlite'}")
    ) as address:
        browser.open("about:blank")
        browser.open(address)
        until(browser, READY)
        yield browser


def test_after_a_lost_token_there_is_one_button(browser: Browser, index: Path) -> None:
    with serving(
        Settings(index=index), tokens={"a token of some length": None}
    ) as address:
        browser.open("about:blank")
        browser.open(address)
        until(browser, "!document.querySelector('#trouble').hidden")
        buttons = "[...document.querySelectorAll('button, summary')].filter((one) => one.checkVisibility())"
        assert browser.ask(f"{buttons}.map((one) => one.textContent)") == ["Go on"]
        browser.ask("document.querySelector('#token').value = 'a token of some length'")
        click(browser, "#trouble button")
        until(
            browser,
            "document.querySelector('#searched').textContent.includes('2 documents')",
        )
        assert browser.ask(f"{buttons}.length") > 3


def test_documents_are_added_with_a_status_each_found_and_removed(own: Browser) -> None:
    own.ask("document.querySelector('#documents').open = true")
    until(own, "document.querySelectorAll('#library li').length === 2")
    files = (
        "(() => { const all = new DataTransfer();"
        "all.items.add(new File(['The Clyde flows through Glasgow.'], 'clyde.txt'));"
        "all.items.add(new File(['x'], 'picture.bmp'));"
        "document.querySelector('#files').files = all.files;"
        "document.querySelector('#files').dispatchEvent(new Event('change')) })()"
    )
    own.ask(files)
    until(own, "document.querySelectorAll('#library li').length === 3")
    said = own.ask(
        "[...document.querySelectorAll('#uploads li')].map((one) => one.innerText)"
    )
    assert said[0].startswith("clyde.txt 1 passage added; the stored graph follows")
    assert said[1].startswith(
        "picture.bmp 'picture.bmp': files of this kind cannot be read"
    )
    own.ask("document.querySelector('#containing').value = 'clyde'")
    own.ask("document.querySelector('#containing').dispatchEvent(new Event('input'))")
    until(own, "document.querySelectorAll('#library li').length === 1")
    click(own, "#library button")
    assert text(own, "#library button") == "Remove it?"
    click(own, "#library button")
    until(
        own,
        "document.querySelector('#library').innerText === 'No document is called that.'",
    )


def test_conversations_are_listed_named_opened_and_deleted(own: Browser) -> None:
    ask(own, "Where was Alexander Graham Bell born?")
    until(
        own,
        "document.querySelector('#answer').textContent === 'Edinburgh' && !now.running",
    )
    thread = own.ask("now.thread")
    own.ask("document.querySelector('#conversations').open = true")
    until(own, "document.querySelector('#threads .open')")
    assert text(own, "#threads .open") == "Where was Alexander Graham Bell born?"
    click(own, "#threads button:nth-child(2)")
    own.ask("document.querySelector('#threads input').value = 'Bell'")
    own.ask("document.querySelector('#threads form').requestSubmit()")
    until(own, "document.querySelector('#threads .open')?.textContent === 'Bell'")
    leave(own, "document.querySelector('#fresh').click()")
    until(own, f"{READY} && !now.asked")
    own.ask("document.querySelector('#conversations').open = true")
    until(own, "document.querySelector('#threads .open')")
    leave(own, "document.querySelector('#threads .open').click()")
    until(own, "document.querySelector('#answer')?.textContent === 'Edinburgh'")
    assert own.ask("now.thread") == thread
    own.ask("document.querySelector('#conversations').open = true")
    until(own, "document.querySelector('#threads .open')")
    click(own, "#threads button:nth-child(3)")
    leave(own, "document.querySelector('#threads button:nth-child(3)').click()")
    until(own, f"{READY} && !now.asked")
    own.ask("document.querySelector('#conversations').open = true")
    until(
        own, "document.querySelector('#threads').innerText === 'No conversations yet.'"
    )


def test_what_a_reader_says_of_an_answer_becomes_a_question_of_an_evaluation(
    own: Browser, cli: Any, tmp_path: Path
) -> None:
    ask(own, "Where was Alexander Graham Bell born?")
    until(own, "!document.querySelector('#verdict').hidden")
    click(own, "#verdict button:nth-of-type(2)")
    until(own, "document.querySelector('#verdict form')")
    own.ask("document.querySelector('#verdict input').value = 'In Edinburgh, Scotland'")
    # it may come while somebody types
    own.send("Runtime.evaluate", expression="drawGraph(true)", awaitPromise=True)
    own.ask("document.querySelector('#verdict form').requestSubmit()")
    until(
        own,
        "document.querySelector('#verdict').innerText.includes('with the right answer')",
    )
    ask(own, "Who is the mayor of Atlantis?")
    until(own, "now.trace.abstained && !now.running")
    assert own.ask("document.querySelector('#verdict').hidden")
    written = cli(
        "threads",
        "export",
        f"sqlite:{tmp_path / 'threads.sqlite'}",
        tmp_path / "said.jsonl",
    )
    assert written.stdout.endswith("said.jsonl 1 question\n")
    (row,) = (tmp_path / "said.jsonl").read_text("utf-8").splitlines()
    assert json.loads(row) == {
        "id": "feedback-1",
        "question": "Where was Alexander Graham Bell born?",
        "answers": ["In Edinburgh, Scotland"],
    }


def test_a_fact_of_the_stored_graph_is_corrected_on_the_page(own: Browser) -> None:
    click(own, "#of-index")
    until(
        own,
        "document.querySelector('#caption').textContent.startsWith('The best connected')",
    )
    own.ask("around('Water of Leith')")
    until(
        own,
        "document.querySelector('#caption').textContent.startsWith('Around Water of Leith')",
    )
    flows = "[...document.querySelectorAll('#details [data-show]')].find((one) => one.innerText.includes('flows'))"
    until(own, flows)
    own.ask(f"{flows}.click()")
    until(own, "document.querySelector('.correct')")
    own.ask("document.querySelectorAll('.correct input')[2].value = 'Leith'")
    own.ask("now.stored.trace.passages = {}")
    # or while somebody types
    own.send(
        "Runtime.evaluate", expression="fetchPassages(view.chosen)", awaitPromise=True
    )
    own.ask("document.querySelector('.correct').requestSubmit()")
    until(
        own,
        "[...document.querySelectorAll('.node')].some((one) => one.dataset.node === 'leith')",
    )
