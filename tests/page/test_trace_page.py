"""The page of a run in a real browser: which steps it shows, how it grows, and that no text in it can run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

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
from ras_agent.page import trace_html
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.trace import Trace

Browser = Any  # the class of tests/conftest.py
ATTACK = "</script><script>window.hacked=1</script><img src=x onerror='hacked=1'>\u2028'\"`${hacked=1}<!--"
PASSAGES = {
    "tel": Passage(
        "tel", "It rang. 😀 The telephone was patented by Bell.", "Telephone"
    ),
    "bell": Passage("bell", "Bell was born in Edinburgh in 1847.", "Bell"),
    "bell2": Passage("bell2", "Bell was born in 1850.", "Bell again"),
    "evil": Passage("evil", f"Evil text {ATTACK}", f"Evil title {ATTACK}"),
}
FACTS = (
    Triple(
        "Telephone",
        "was patented by",
        "Bell",
        (Source("tel", 11, 46, 1, "Who invented it?", "offline"),),
    ),
    Triple(
        "Bell",
        "was born in",
        "Edinburgh",
        (Source("bell", 0, 35, 2, "Where was Bell born?", "offline"),),
    ),
    Triple(
        "Bell",
        "was born in",
        "1847",
        (Source("bell", 0, 35, 2, "Where was Bell born?", "offline"),),
    ),
    Triple(
        "Bell",
        "was born in",
        "1850",
        (Source("bell2", 0, 22, 2, "Where was Bell born?", "offline"),),
    ),
    Triple(
        f"Evil {ATTACK}",
        f"says {ATTACK}",
        "Bell",
        (Source("evil", 0, 9, 2, ATTACK, "offline"),),
    ),
)
TELEPHONE, BORN, _, CONFLICT, EVIL = (fact.id for fact in FACTS)
REASONS = (
    f"0.75  (Telephone | {ATTACK} | Bell)",
    "0.5  (Edinburgh | was born in^-1 | Bell) → (Bell | was patented by^-1 | Telephone)",
    "0.25  Telephone → was patented by → Bell → is → tall",
    "it rang",
)
TRACE = Trace(
    question=f"Where was the inventor of the telephone born? {ATTACK}",
    answer="Edinburgh",
    grounded=True,
    citations=(
        Citation(
            1,
            "tel",
            "Telephone",
            11,
            46,
            "The telephone was patented by Bell.",
            (TELEPHONE,),
        ),
        Citation(
            2, "bell", "Bell", 0, 35, "Bell was born in Edinburgh in 1847.", (BORN,)
        ),
    ),
    stop_reason="sufficient",
    mode="ras",
    roles={"planner": f"offline {ATTACK}"},
    seconds=0.25,
    steps=(
        Step(
            1,
            "Who invented it?",
            (Hit(PASSAGES["tel"], 2.5),),
            (TELEPHONE,),
            (TELEPHONE,),
        ),
        Step(
            2,
            "Where was Bell born?",
            (Hit(PASSAGES["bell"], 2.25, REASONS), Hit(PASSAGES["evil"], 1.0)),
            (BORN,),
            (BORN,),
        ),
    ),
    plans=(
        Planned(1, Plan("subq", "Who invented it?")),
        Planned(3, Plan("sufficient", reason=ATTACK)),
    ),
    graph=QuestionGraph(FACTS),
    usage=Usage((Call("planner", 1, "m", 1000, 234),)),
    failures=(Failure("extractor", f"could not read {ATTACK}", 2, ATTACK),),
    passages=PASSAGES,
)


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Browser:
    """The browser at the page of TRACE."""
    return opened(browser, tmp_path, trace_html(TRACE))


def opened(browser: Browser, folder: Path, html: str, fragment: str = "") -> Browser:
    file = folder / "trace.html"
    file.write_text(html, encoding="utf-8")
    browser.open(file.as_uri() + fragment)
    return browser


def shown_facts(page: Browser) -> set[str]:
    found: list[str] = page.ask(
        "[...document.querySelectorAll('.edge:not(.off)')].map((edge) => edge.dataset.fact)"
    )
    return set(found)


def text(page: Browser, selector: str) -> str:
    found: str = page.ask(f"document.querySelector({json.dumps(selector)}).innerText")
    return " ".join(found.split())


def click(page: Browser, selector: str) -> None:
    page.ask(
        f"document.querySelector({json.dumps(selector)}).dispatchEvent(new MouseEvent('click', {{bubbles: true}}))"
    )


class TestSource:
    HTML = trace_html(TRACE)

    def test_hostile_text_is_inert_everywhere(self) -> None:
        assert "<img" not in self.HTML
        assert "hacked=1<" not in self.HTML
        assert "\u2028" not in self.HTML
        assert self.HTML.count("<script") == self.HTML.count("</script>") == 2

    def test_nothing_is_fetched_and_only_its_own_script_may_run(self) -> None:
        policy = re.search(
            r'http-equiv="Content-Security-Policy" content="([^"]*)"', self.HTML
        )
        assert policy is not None
        assert re.fullmatch(
            r"default-src 'none'; script-src 'sha256-[\w+/]{43}='; style-src 'sha256-[\w+/]{43}='; "
            r"base-uri 'none'; form-action 'none'",
            policy[1],
        )

    def test_the_page_carries_the_whole_trace(self) -> None:
        data = re.search(
            r'<script type="application/json" id="data">(.*?)</script>', self.HTML
        )
        assert data is not None
        assert Trace.from_dict(json.loads(data[1])["trace"]) == TRACE

    def test_the_same_trace_gives_the_same_page(self) -> None:
        assert trace_html(TRACE) == self.HTML


class TestShows:
    def test_question_answer_and_numbers(self, page: Browser) -> None:
        assert text(page, "h1").startswith(
            "Where was the inventor of the telephone born?"
        )
        assert text(page, ".answer") == "Edinburgh 1 2 copy save"
        assert (
            text(page, "#stats")
            == "5 facts 6 entities 1 conflict 2 hops 1 LLM call 1,234 tokens 0.3 s time"
        )

    def test_the_evidence_with_its_quotes(self, page: Browser) -> None:
        assert text(page, "[data-citation='2'] h3") == "2 Bell"
        assert (
            text(page, "[data-citation='2'] blockquote")
            == "Bell was born in Edinburgh in 1847."
        )

    def test_the_steps(self, page: Browser) -> None:
        steps = text(page, "#steps")
        assert (
            "Who invented it? Telephone score 2.5 1 fact read in these passages; it is new."
            in steps
        )
        assert "[SUFFICIENT]" in steps

    def test_why_a_passage_was_found_is_drawn_as_chains_of_facts(
        self, page: Browser
    ) -> None:
        assert text(page, "#steps .why summary") == "Bell score 2.25"
        chains = page.ask(
            "[...document.querySelectorAll('#steps .chain')].map((chain) => chain.innerText)"
        )
        assert "</script>" in chains[0]
        assert (
            "".join(chains[1].split())
            == "0.5Edinburgh←wasborninBell←waspatentedbyTelephone"
        )
        assert "".join(chains[2].split()) == "0.25Telephonewaspatentedby→Bellis→tall"
        assert text(page, "#steps .why p") == "it rang"

    def test_a_click_on_a_chain_highlights_its_facts_in_the_graph(
        self, page: Browser
    ) -> None:
        def clear() -> set[str]:
            return set(
                page.ask(
                    "[...document.querySelectorAll('.edge:not(.dim)')].map((edge) => edge.dataset.fact)"
                )
            )

        page.ask("document.querySelectorAll('#steps .chain')[1].click()")
        assert clear() == {TELEPHONE, BORN}
        page.ask("document.querySelectorAll('#steps .chain')[2].click()")
        assert clear() == {TELEPHONE}
        page.ask("document.querySelectorAll('#steps .chain')[2].click()")
        assert clear() == {fact.id for fact in FACTS}

    def test_a_link_opens_a_chain(self, browser: Browser, tmp_path: Path) -> None:
        linked = opened(browser, tmp_path, trace_html(TRACE), "#why=2.1.3")
        assert (
            linked.ask("document.querySelector('.chain.chosen b').innerText")
            == "Telephone"
        )
        assert (
            linked.ask("[...document.querySelectorAll('.edge:not(.dim)')].length") == 1
        )

    def test_what_went_wrong(self, page: Browser) -> None:
        assert "extractor, hop 2: could not read" in text(page, "#rest")

    def test_the_answer_the_cited_and_the_conflicting_are_marked(
        self, page: Browser
    ) -> None:
        assert (
            page.ask("document.querySelector('.node.answer').dataset.node")
            == "edinburgh"
        )
        assert (
            page.ask("document.querySelector('.node.asked').dataset.node")
            == "telephone"
        )
        assert page.ask("[...document.querySelectorAll('.edge.cited')].length") == 2
        assert page.ask("[...document.querySelectorAll('.edge.conflict')].length") == 2


class TestGrows:
    def test_all_hops_are_shown_at_first(self, page: Browser) -> None:
        assert shown_facts(page) == {fact.id for fact in FACTS}

    def test_the_first_hop_shows_only_its_facts(self, page: Browser) -> None:
        click(page, "[data-hop='1']")
        assert shown_facts(page) == {TELEPHONE}
        assert (
            text(page, "#caption")
            == "Hop 1 Who invented it? 1 fact added, 1 in the graph"
        )

    def test_the_start_shows_none(self, page: Browser) -> None:
        click(page, "[data-hop='0']")
        assert shown_facts(page) == set()
        assert page.ask("[...document.querySelectorAll('.node:not(.off)')].length") == 0

    def test_arrow_keys_step(self, page: Browser) -> None:
        page.press("ArrowLeft")
        assert shown_facts(page) == {TELEPHONE}
        page.press("ArrowRight")
        assert len(shown_facts(page)) == 5

    def test_the_slider_steps(self, page: Browser) -> None:
        page.ask("document.querySelector('#hop').focus()")
        page.press("Home", code=36)
        assert shown_facts(page) == set()

    def test_playing_begins_at_the_start(self, page: Browser) -> None:
        click(page, "#play")
        assert shown_facts(page) == set()
        assert (
            page.ask("document.querySelector('#play').getAttribute('aria-label')")
            == "Pause"
        )

    def test_a_link_opens_a_hop(self, browser: Browser, tmp_path: Path) -> None:
        assert shown_facts(opened(browser, tmp_path, trace_html(TRACE), "#hop=1")) == {
            TELEPHONE
        }


class TestDetails:
    def test_a_fact_shows_its_sentence_in_its_passage(self, page: Browser) -> None:
        click(page, f"[data-fact='{TELEPHONE}']")
        assert text(page, "#details h3") == "Telephone was patented by Bell"
        assert text(page, "#details mark") == "The telephone was patented by Bell."
        assert text(page, "#details .text").startswith("It rang. 😀")

    def test_a_conflicting_fact_names_the_other(self, page: Browser) -> None:
        click(page, f"[data-fact='{CONFLICT}']")
        assert "cannot be true together with" in text(page, "#details")
        assert "Bell was born in 1847" in text(page, "#details .facts")

    def test_an_entity_lists_its_facts_and_leads_to_them(self, page: Browser) -> None:
        click(page, "[data-node='telephone']")
        assert text(page, "#details .facts") == "Telephone was patented by Bell"
        click(page, "#details [data-show]")
        assert (
            page.ask("document.querySelector('.edge.chosen').dataset.fact") == TELEPHONE
        )

    def test_keys_choose_and_escape_clears_the_choice(self, page: Browser) -> None:
        page.ask("document.querySelector('[data-node=edinburgh]').focus()")
        page.press("Enter", "\r")
        assert text(page, "#details h3") == "Edinburgh"
        page.press("Escape")
        assert page.ask("document.querySelector('#details').hidden") is True

    def test_evidence_leads_to_its_fact(self, page: Browser) -> None:
        click(page, "[data-hop='0']")
        click(page, ".mark")
        assert shown_facts(page) == {TELEPHONE}
        assert (
            page.ask("document.querySelector('.edge.chosen').dataset.fact") == TELEPHONE
        )


class TestIsSafe:
    def test_hostile_text_is_shown_as_text_and_does_not_run(
        self, page: Browser
    ) -> None:
        click(page, f"[data-fact='{EVIL}']")
        assert "</script><script>window.hacked=1</script>" in text(page, "#details h3")
        assert page.ask("typeof window.hacked") == "undefined"
        assert (
            page.ask(
                "document.images.length + document.querySelectorAll('a, iframe, object, form').length"
            )
            == 0
        )

    def test_no_error_no_blocked_content_and_no_request_but_its_own(
        self, page: Browser
    ) -> None:
        click(page, f"[data-fact='{EVIL}']")
        methods = [event["method"] for event in page.events]
        assert "Runtime.exceptionThrown" not in methods
        assert "Log.entryAdded" not in methods
        assert methods.count("Network.requestWillBeSent") == 1

    def test_the_policy_stops_an_injected_script(
        self, browser: Browser, tmp_path: Path
    ) -> None:
        html = trace_html(TRACE).replace(
            "<main>", "<script>hacked=1</script><img src=x onerror='hacked=1'><main>"
        )
        page = opened(browser, tmp_path, html)
        assert page.ask("typeof window.hacked") == "undefined"
        assert len(shown_facts(page)) == 5


class TestFits:
    def test_a_narrow_screen_needs_no_sideways_scrolling(
        self, browser: Browser, tmp_path: Path
    ) -> None:
        browser.send(
            "Emulation.setDeviceMetricsOverride",
            width=360,
            height=740,
            deviceScaleFactor=1,
            mobile=True,
        )
        page = opened(browser, tmp_path, trace_html(TRACE))
        assert page.ask("document.documentElement.scrollWidth") == 360
        browser.send("Emulation.clearDeviceMetricsOverride")

    def test_no_facts_at_all(self, browser: Browser, tmp_path: Path) -> None:
        page = opened(
            browser,
            tmp_path,
            trace_html(Trace("Hello?", "Hello.", stop_reason="no_retrieval")),
        )
        assert text(page, "#nothing") == "No facts were read for this answer."
        assert page.ask("document.querySelector('.time').hidden") is True

    def test_facts_too_many_to_draw_are_counted(
        self, browser: Browser, tmp_path: Path
    ) -> None:
        facts = tuple(
            Triple("Hub", "is linked to", f"Leaf {n}", (Source("tel", hop=1),))
            for n in range(605)
        )
        cited = Citation(1, "tel", triple_ids=(facts[-1].id,))
        trace = Trace(
            "Which hub?",
            "?",
            citations=(cited,),
            graph=QuestionGraph(facts),
            passages=PASSAGES,
        )
        page = opened(browser, tmp_path, trace_html(trace))
        assert len(shown_facts(page)) == 600
        assert facts[-1].id in shown_facts(page)
        assert text(page, ".left-out") == "5 facts more, not drawn"

    def test_only_important_entities_of_a_crowd_are_labelled(
        self, browser: Browser, tmp_path: Path
    ) -> None:
        facts = tuple(
            Triple(
                f"Hub {n % 9}",
                "is linked to",
                f"Leaf {n}",
                (Source("tel", hop=1 + n // 100),),
            )
            for n in range(300)
        )
        trace = Trace(
            "Which hub?", "Leaf 7", graph=QuestionGraph(facts), passages=PASSAGES
        )
        page = opened(browser, tmp_path, trace_html(trace))
        assert len(shown_facts(page)) == 300
        labelled = page.ask(
            "[...document.querySelectorAll('.node:not(.minor)')].map((node) => node.dataset.node)"
        )
        assert sorted(labelled) == [*(f"hub {n}" for n in range(9)), "leaf 7"]
