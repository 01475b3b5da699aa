"""The page of a report, in a real browser: which runs it lists, how it filters, and that nothing in it can run."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from ras_agent.eval.report.figures import Run
from ras_agent.eval.report.html_page import make_report, report_html
from ras_agent.eval.run.prices import Price, Prices
from tests.page.looks import pale, screen, small

Browser = Any  # the class of tests/conftest.py


@pytest.fixture(scope="module")
def html(runs: list[Run]) -> str:
    """The report of both runs."""
    return report_html(make_report(runs, Prices()))


@pytest.fixture
def page(browser: Browser, tmp_path: Path, html: str) -> Browser:
    """The browser at the report of both runs."""
    return opened(browser, tmp_path, html)


def opened(browser: Browser, folder: Path, html: str, fragment: str = "") -> Browser:
    file = folder / "report.html"
    file.write_text(html, encoding="utf-8")
    browser.open("about:blank")
    browser.open(file.as_uri() + fragment)
    return browser


def text(page: Browser, selector: str) -> str:
    found: str = page.ask(f"document.querySelector({json.dumps(selector)}).innerText")
    return " ".join(found.split())


def click(page: Browser, selector: str) -> None:
    page.ask(f"document.querySelector({json.dumps(selector)}).click()")


def enter(page: Browser, selector: str, value: str) -> None:
    page.ask(
        f"(() => {{ const element = document.querySelector({json.dumps(selector)}); "
        f"element.value = {json.dumps(value)}; element.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
    )


def listed(page: Browser) -> list[str]:
    """The first words of the questions that are shown, in order."""
    found: list[str] = page.ask(
        "[...document.querySelectorAll('#list li:not([hidden]) .asked')].map((one) => one.textContent.slice(0, 14))"
    )
    return found


def unpacked(page: Browser) -> None:
    """Wait for the chosen question's trace."""
    done = page.send(
        "Runtime.evaluate",
        awaitPromise=True,
        expression="new Promise((done) => { const look = () => "
        "document.querySelector('#trace')?.children.length ? done() : requestAnimationFrame(look); look(); })",
    )
    assert "exceptionDetails" not in done


Q1, Q2, Q3, Q10, Q11 = (
    "Which river fl",
    "Is this inert?",
    "Who was older?",
    "What was the d",
    "Which lamp?",
)


class TestSource:
    def test_the_page_names_nothing_outside_itself(self, html: str) -> None:
        markup = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
        markup = re.sub(r"'sha256-[^']*'", "", markup)  # of the page's own scripts
        assert (
            re.findall(r"https?://|//[a-z]|\bsrc=(?!x)|@import|url\((?!#)", markup)
            == []
        )
        assert set(re.findall(r' href="(.)', markup)) == {"#"}

    def test_hostile_text_is_inert_wherever_it_stands(self, html: str) -> None:
        assert "<img" not in html
        assert html.count("<script") == html.count("</script>")

    def test_the_same_runs_give_the_same_page(self, runs: list[Run], html: str) -> None:
        assert report_html(make_report(runs, Prices())) == html

    def test_without_matplotlib_the_page_says_what_is_missing(
        self, runs: list[Run], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        html = report_html(make_report(runs, Prices()))
        assert "No plots: plots needs an extra: pip install 'ras-agent[eval]'" in html
        assert "<figure" not in html

    def test_a_trace_that_cannot_be_read_leaves_the_others(
        self, runs: list[Run]
    ) -> None:
        broken = {"schema": "ras-agent/trace", "version": 99}
        results = tuple(
            type(one)(**{**{name: getattr(one, name) for name in one.__slots__}, "trace": broken})
            if one.id == "q1" else one for one in runs[0].results
        )  # fmt: skip
        html = report_html(make_report([Run("r", {}, results)], Prices()))
        assert re.findall(r'id="trace-(\d-\d)"', html) == ["0-1"]


class TestFigures:
    def test_scores_of_both_runs(self, page: Browser) -> None:
        rows = page.ask(
            "[...document.querySelectorAll('#scores tbody tr')].map((row) => row.innerText)"
        )
        assert [" ".join(row.split()) for row in rows] == [
            "em 25.0 4.6 – 69.9 n = 4 50.0 15.0 – 85.0 n = 4",
            "f1 37.5 6.9 – 83.0 n = 4 62.5 17.0 – 93.1 n = 4",
            "recall@2 50.0 25.8 – 74.2 n = 4 50.0 25.8 – 74.2 n = 4",
        ]

    def test_verdicts(self, page: Browser) -> None:
        bars = page.ask(
            "[...document.querySelectorAll('.verdicts ul')].map((bar) => bar.innerText)"
        )
        assert [" ".join(bar.split()) for bar in bars] == [
            "✓ 2 right ✗ 1 wrong – 1 abstained ! 1 error",
            "✓ 3 right ✗ 1 wrong ! 1 error",
        ]

    def test_differences(self, page: Browser) -> None:
        assert text(page, "#differences tbody tr").startswith(
            "run two em 4 +25.0 -32.6 to +72.6"
        )

    def test_errors_are_told(self, page: Browser) -> None:
        assert text(page, ".warning") == "run one: 1 question ended in an error."

    def test_plots_take_their_colours_from_the_page(self, page: Browser) -> None:
        assert page.ask("document.querySelectorAll('figure svg.plot').length") == 7
        assert page.ask("document.querySelectorAll('[style]').length") == 0
        colours = [
            page.send(
                "Emulation.setEmulatedMedia",
                features=[{"name": "prefers-color-scheme", "value": theme}],
            )
            or page.ask(
                "getComputedStyle(document.querySelector('svg .fill-ink')).fill"
            )
            for theme in ("light", "dark")
        ]
        page.send("Emulation.setEmulatedMedia", features=[])
        assert colours == ["rgb(22, 27, 36)", "rgb(232, 237, 244)"]

    def test_a_price_typed_in_gives_the_cost(self, page: Browser) -> None:
        assert (
            text(page, "[data-cost='0']") == "unknown: no price for openai:small, big"
        )
        for model, price_in, price_out in (
            ("openai:small", "100", "200"),
            ("big", "0", "1000"),
        ):
            enter(page, f"[data-model='{model}'][data-kind='input']", price_in)
            enter(page, f"[data-model='{model}'][data-kind='output']", price_out)
        # 3,200 in at 100, 400 out at 200; 200 out at 1,000 per million
        assert text(page, "[data-cost='0']") == "0.6000, 0.3000 per right answer"
        assert json.loads(
            page.ask("document.querySelector('#prices').textContent")
        ) == {
            "openai:small": {"input": 100, "output": 200, "cached": 100},
            "big": {"input": 0, "output": 1000, "cached": 0},
        }

    def test_prices_given_stand_in_the_table(
        self, browser: Browser, tmp_path: Path, runs: list[Run]
    ) -> None:
        prices = Prices({"small": Price(1.5, 2.0, 0.5), "big": Price(0.0, 0.0, 0.0)})
        page = opened(browser, tmp_path, report_html(make_report(runs, prices)))
        assert (
            page.ask(
                "document.querySelector('[data-model=\"openai:small\"][data-kind=cached]').value"
            )
            == "0.5"
        )
        # 1,600 fresh at 1.5, 1,600 cached at 0.5, 400 out at 2 per million
        assert text(page, "[data-cost='0']") == "0.0040, 0.0020 per right answer"


class TestFinds:
    def test_all_questions_are_listed_in_the_order_of_their_ids(
        self, page: Browser
    ) -> None:
        assert listed(page) == [Q1, Q2, Q3, Q10, Q11]
        assert text(page, "#count") == "5 questions"

    @pytest.mark.parametrize(
        ("verdict", "found"),
        [("right", [Q1, Q10]), ("wrong", [Q2]), ("abstained", [Q3]), ("error", [Q11])],
    )
    def test_by_what_became_of_them(
        self, page: Browser, verdict: str, found: list[str]
    ) -> None:
        assert text(page, f"[data-verdict={verdict}] small") == str(len(found))
        click(page, f"[data-verdict={verdict}]")
        assert listed(page) == found
        assert (
            page.ask(
                f"document.querySelector('[data-verdict={verdict}]').getAttribute('aria-pressed')"
            )
            == "true"
        )
        click(page, f"[data-verdict={verdict}]")
        assert len(listed(page)) == 5

    def test_by_several_verdicts_at_once(self, page: Browser) -> None:
        click(page, "[data-verdict=wrong]")
        click(page, "[data-verdict=error]")
        assert listed(page) == [Q2, Q11]
        assert text(page, "#count") == "2 of 5 questions"

    @pytest.mark.parametrize(
        ("words", "found"),
        [
            ("river BELL", [Q1]),
            ("arc", [Q11]),
            ("dead", [Q11]),
            ("q3", [Q3]),
            ("nothing", []),
        ],
    )
    def test_by_words_of_question_answers_and_errors(
        self, page: Browser, words: str, found: list[str]
    ) -> None:
        enter(page, "#search", words)
        assert listed(page) == found

    def test_by_type(self, page: Browser) -> None:
        enter(page, "#type", "bridge")
        assert listed(page) == [Q1, Q10, Q11]
        assert text(page, "[data-verdict=right] small") == "2"

    def test_by_where_the_runs_disagree(self, page: Browser) -> None:
        click(page, "#disagree")
        assert listed(page) == [Q3]

    def test_another_run_has_other_verdicts(self, page: Browser) -> None:
        enter(page, "#run", "1")
        click(page, "[data-verdict=right]")
        assert listed(page) == [Q1, Q3, Q10]

    def test_the_slowest_first(self, page: Browser) -> None:
        enter(page, "#order", "seconds")
        assert listed(page) == [Q2, Q1, Q3, Q10, Q11]


class TestTells:
    def test_gold_against_predicted(self, page: Browser) -> None:
        click(page, "#list li:nth-child(1) button")
        assert text(page, "#detail h3") == "Which river flows through Bell's city?"
        assert text(page, ".answer .what") == "Water of Leith"
        assert page.ask("[...document.querySelectorAll('[data-run=\"0\"] mark')].map((one) => one.textContent)") == [
            "Water", "of", "Leith",
        ]  # fmt: skip
        assert text(page, "[data-run='0'] .note") == (
            "em 100 · f1 100 · recall@2 50 · 2 hops · sufficient · 2.00 s · 2 LLM calls, 1,150 tokens"
        )

    def test_hops_with_their_hits_and_facts(self, page: Browser) -> None:
        click(page, "#list li:nth-child(1) button")
        unpacked(page)
        assert text(page, ".hop2 .subquery") == "Which river?"
        assert text(page, ".hop2 .hits") == "Water of Leith 2.25 gold"
        assert text(page, ".hop1 .facts summary") == "+1 new fact of 1"
        click(page, ".hop1 .facts summary")
        assert text(page, ".hop1 .facts li") == "Bell was born in Edinburgh"
        assert "extractor, hop 2: could not read" in text(page, ".hops .warning")

    def test_what_was_retrieved_and_what_was_missed(self, page: Browser) -> None:
        click(page, "#list li:nth-child(1) button")
        assert text(page, ".retrieved .note") == "2 of 2 gold passages among 3"
        assert (
            page.ask("[...document.querySelectorAll('.retrieved li.gold')].length") == 2
        )
        click(page, "#list li:nth-child(5) button")
        assert text(page, ".missed") == "Not found: lamp"

    def test_the_graph_is_the_traces_own_page_in_a_frame_that_reaches_nothing(
        self, page: Browser
    ) -> None:
        click(page, "#list li:nth-child(1) button")
        unpacked(page)
        assert (
            page.ask("document.querySelector('.graph iframe').getAttribute('sandbox')")
            == "allow-scripts"
        )
        assert (
            page.ask("document.querySelector('.graph iframe').contentDocument") is None
        )
        assert drawn(page) == {"nodes": 3, "edges": 2, "header": "none"}

    def test_the_whole_trace_opens_over_the_page_and_closes(
        self, page: Browser
    ) -> None:
        unpacked(page)
        click(page, ".graph .look")
        assert page.ask("document.querySelector('dialog').open") is True
        click(page, ".shut")
        assert page.ask("document.querySelector('dialog[open]')") is None

    def test_an_error_and_a_missing_trace_are_said(self, page: Browser) -> None:
        click(page, "#list li:nth-child(5) button")
        assert text(page, "[data-run='0'] .what").startswith(
            "ConnectionError: the line is dead"
        )
        assert text(page, "#trace") == "No trace of this question is in this page."

    def test_another_runs_trace_is_shown_on_demand(self, page: Browser) -> None:
        click(page, "#list li:nth-child(3) button")
        assert text(page, "[data-run='0'] .what") == "no answer"
        click(page, "[data-run='1'] .look")
        assert (
            page.ask(
                "document.querySelector('[data-run=\"1\"] .look').getAttribute('aria-pressed')"
            )
            == "true"
        )
        assert page.ask("location.hash") == "#q=q3&run=1"

    def test_a_link_leads_to_a_question(
        self, browser: Browser, tmp_path: Path, html: str
    ) -> None:
        page = opened(browser, tmp_path, html, "#q=q11")
        assert text(page, "#detail h3") == "Which lamp?"


class TestKeys:
    def test_arrows_walk_the_list(self, page: Browser) -> None:
        page.ask("document.querySelector('#list button').focus()")
        page.press("ArrowDown")
        assert text(page, "#detail h3").startswith("Is this inert?")
        page.press("End")
        assert text(page, "#detail h3") == "Which lamp?"
        page.press("ArrowUp")
        assert (
            page.ask("document.activeElement.querySelector('.asked').textContent")
            == "What was the dog's name?"
        )

    def test_one_question_of_the_list_is_reached_by_tab(self, page: Browser) -> None:
        click(page, "[data-verdict=error]")
        assert page.ask(
            "[...document.querySelectorAll('#list button[tabindex=\"0\"] .asked')].map((one) => one.textContent)"
        ) == ["Which lamp?"]

    def test_a_slash_leads_to_the_search(self, page: Browser) -> None:
        page.press("/")
        assert page.ask("document.activeElement.id") == "search"

    def test_on_a_narrow_screen_a_question_fills_it_and_escape_leads_back(
        self, browser: Browser, tmp_path: Path, html: str
    ) -> None:
        browser.send(
            "Emulation.setDeviceMetricsOverride",
            width=360,
            height=740,
            deviceScaleFactor=1,
            mobile=True,
        )
        page = opened(browser, tmp_path, html)
        assert page.ask("document.documentElement.scrollWidth") == 360
        assert (
            page.ask("getComputedStyle(document.querySelector('#detail')).display")
            == "none"
        )
        click(page, "#list li:nth-child(2) button")
        assert (
            page.ask("document.querySelector('#detail').getBoundingClientRect().width")
            == 360
        )
        page.press("Escape")
        assert (
            page.ask("getComputedStyle(document.querySelector('#detail')).display")
            == "none"
        )
        assert page.ask(
            "document.activeElement.querySelector('.asked').textContent"
        ).startswith("Is this inert?")
        browser.send("Emulation.clearDeviceMetricsOverride")


class TestIsRead:
    def test_the_figures_are_explained(self, page: Browser) -> None:
        words = page.ask("document.querySelector('#glossary').textContent")
        assert (
            "emExact match: the share of questions whose answer equals a gold answer"
            in words
        )
        assert "95 % interval" in words
        names = page.ask(
            "[...document.querySelectorAll('#glossary dt')].map((one) => one.textContent)"
        )
        metrics = page.ask(
            "[...document.querySelectorAll('#scores tbody th')].map((one) => one.textContent)"
        )
        assert set(metrics) <= set(names)

    @pytest.mark.parametrize("dark", [False, True])
    def test_every_text_can_be_read_in_both_colour_schemes(
        self, page: Browser, dark: bool
    ) -> None:
        unpacked(page)
        page.ask(
            "document.querySelectorAll('details').forEach((one) => { one.open = true })"
        )
        with screen(page, dark=dark):
            assert pale(page) == []

    def test_fingers_find_what_they_press(self, page: Browser) -> None:
        with screen(page, 390, 844):
            assert small(page) == []
            click(page, "#list li:nth-child(2) button")
            unpacked(page)
            assert small(page) == []

    def test_printed_it_lists_the_questions_shows_one_with_its_graph_and_how_the_runs_were_made(
        self, page: Browser
    ) -> None:
        unpacked(page)
        drawn(page)
        with screen(page, 700, 990, dark=True, media="print"):
            assert pale(page) == []  # dark ink on white paper
            high = "[...document.querySelectorAll({!r})].every((one) => one.getBoundingClientRect().height > 10)"
            for selector in (
                "#list li",
                "#detail h3",
                "#detail iframe",
                "#runs dl",
                "#glossary dl",
            ):
                assert page.ask(high.format(selector)), selector
            inside = (
                "[...document.querySelectorAll('.box')].every((box) =>"
                "box.querySelector('table').getBoundingClientRect().right <= box.getBoundingClientRect().right + 1)"
            )
            assert page.ask(inside)  # no table is cut off
            assert page.ask_frame(
                "[...document.querySelectorAll('.node')].every((one) => {"
                "const box = one.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight })"
            )


class TestIsSafe:
    def test_hostile_text_is_shown_as_text_and_does_not_run(
        self, page: Browser, attack: str
    ) -> None:
        click(page, "#list li:nth-child(2) button")
        unpacked(page)
        assert (
            page.ask("document.querySelector('#detail h3').textContent")
            == f"Is this inert? {attack}"
        )
        assert attack in page.ask("document.querySelector('header').textContent")
        click(page, ".graph .look")
        assert drawn(page)["edges"] == 2
        assert page.ask("typeof window.hacked") == "undefined"
        assert (
            page.ask(
                "document.images.length + document.querySelectorAll('object, form, base').length"
            )
            == 0
        )
        assert not page.ask_frame(
            "typeof window.hacked !== 'undefined' || document.images.length > 0"
        )

    def test_no_error_no_refusal_and_no_request_but_for_itself(
        self, page: Browser
    ) -> None:
        click(page, "#list li:nth-child(2) button")
        unpacked(page)
        drawn(page)
        methods = [event["method"] for event in page.events]
        assert "Runtime.exceptionThrown" not in methods
        assert "Log.entryAdded" not in methods
        urls = [
            event["params"]["request"]["url"]
            for event in page.events
            if "request" in event.get("params", {})
        ]
        assert {url.partition("#")[0].rpartition("/")[2] for url in urls} <= {
            "report.html",
            "blank",
            "srcdoc",
        }

    def test_the_policy_stops_a_script_that_got_in_after_all(
        self, browser: Browser, tmp_path: Path, html: str
    ) -> None:
        html = html.replace(
            "<main>", "<script>hacked=1</script><img src=x onerror='hacked=1'><main>"
        )
        page = opened(browser, tmp_path, html)
        assert page.ask("typeof window.hacked") == "undefined"
        assert len(listed(page)) == 5


def drawn(page: Browser) -> dict[str, Any]:
    """The words of the graph's frame, once it does."""
    found: dict[str, Any] = page.ask_frame(
        "new Promise((done) => { const look = () => document.querySelectorAll('.node').length ? done({"
        "nodes: document.querySelectorAll('.node').length, edges: document.querySelectorAll('.edge').length, "
        "header: getComputedStyle(document.querySelector('header')).display}) : setTimeout(look, 10); look(); })",
    )
    return found
