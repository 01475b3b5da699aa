"""The page of a run by keyboard, to a screen reader, in both colour schemes, enlarged and on a phone."""

from __future__ import annotations

from typing import Any

import pytest

from ras_agent.page import trace_html
from tests.page.looks import pale, screen, small, told
from tests.page.test_trace_page import TRACE

Browser = Any  # the class of tests/conftest.py


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("reach") / "trace.html"
    path.write_text(trace_html(TRACE), "utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Browser:
    """The browser at the page of TRACE."""
    browser.open("about:blank")
    browser.open(address)
    return browser


def focused(page: Browser) -> str:
    """The entity that has the focus, or the id or the text of the element that has it."""
    found: str = page.ask(
        "(() => { const at = document.activeElement; return at.dataset.node ?? (at.id || at.textContent.trim()) })()"
    )
    return found


def tab(page: Browser) -> None:
    page.press("Tab", code=9)


def test_the_graph_is_one_stop_of_the_tab_key(page: Browser) -> None:
    page.ask("document.querySelector('#fit').focus()")
    tab(page)
    assert focused(page) == "edinburgh"  # the answer
    tab(page)
    assert (
        page.ask("document.querySelector('#graph').contains(document.activeElement)")
        is False
    )


def test_arrow_keys_lead_to_every_entity(page: Browser) -> None:
    page.ask("document.querySelector('[data-node=edinburgh]').focus()")
    there, ways = (
        {"edinburgh"},
        [
            ("edinburgh", key)
            for key in ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft")
        ],
    )
    while ways:
        start, key = ways.pop()
        page.ask(
            f"[...document.querySelectorAll('.node')].find((one) => one.dataset.node === {start!r}).focus()"
        )
        page.press(key)
        if (found := focused(page)) not in there:
            there.add(found)
            ways += [
                (found, key)
                for key in ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft")
            ]
    assert len(there) == page.ask("document.querySelectorAll('.node').length") == 6
    assert page.ask("document.querySelectorAll('#graph [tabindex=\"0\"]').length") == 1
    # the hop is as it was
    assert page.ask("document.querySelectorAll('.edge:not(.off)').length") == 5


def test_enter_leads_into_an_entity_s_facts_and_escape_back_and_out(
    page: Browser,
) -> None:
    page.ask("document.querySelector('[data-node=telephone]').focus()")
    page.press("Enter", "\r")
    assert focused(page) == "Telephone"
    tab(page)
    tab(page)
    assert focused(page) == "Telephone was patented by Bell"
    page.press("Enter", "\r", 13)
    assert focused(page) == "Telephone was patented by Bell"
    assert page.ask("document.activeElement.tagName") == "H3"
    page.press("Escape")
    assert focused(page) == "telephone"
    page.press("Escape")
    assert page.ask("document.activeElement === document.body") is True


def test_an_entity_that_is_not_there_yet_is_no_stop(page: Browser) -> None:
    page.ask("document.querySelector('[data-hop=\"1\"]').click()")
    assert (
        page.ask("document.querySelector('#graph [tabindex=\"0\"]').dataset.node")
        == "telephone"
    )


def test_a_screen_reader_finds_the_answer_its_evidence_and_the_entities(
    page: Browser,
) -> None:
    found = told(page)
    headings = {name.lower() for role, name in found if role == "heading"}
    assert {
        "how the answer follows",
        "1 telephone",
        "2 bell",
        "steps",
        "what went wrong",
    } <= headings
    assert ("StaticText", "Edinburgh") in found
    assert [name for role, name in found if name.startswith("Evidence ")] == [
        "Evidence 1",
        "Evidence 2",
    ]
    assert ("application", "Graph of 6 entities and 5 facts") in found
    entities = [
        name
        for role, name in found
        if role == "button" and ", " in name and "fact" in name
    ]
    assert "Edinburgh, 1 fact, the answer" in entities
    assert "Telephone, 1 fact, in the question" in entities
    assert len(entities) == 6
    story = [
        name
        for role, name in found
        if role == "button" and name == "Telephone was patented by Bell"
    ]
    assert len(story) == 1  # in the chain, and not again in the drawing


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read_in_both_colour_schemes(
    page: Browser, dark: bool
) -> None:
    page.ask(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    page.ask("document.querySelector('.story [data-show], [data-show]').click()")
    with screen(page, dark=dark):
        assert pale(page) == []
        page.ask("document.querySelector('[data-hop=\"1\"]').click()")
        assert pale(page) == []


def test_what_the_tab_key_reaches_can_be_seen_to_have_the_focus(page: Browser) -> None:
    page.ask(
        "document.querySelectorAll('details').forEach((one) => { one.open = true })"
    )
    seen = (
        "(() => { const at = document.activeElement, box = at.querySelector('rect:not(.ring)');"
        "return at === document.body ? null : box ? parseFloat(getComputedStyle(box).strokeWidth)"
        ": getComputedStyle(at).outlineStyle === 'none' ? 0 : parseFloat(getComputedStyle(at).outlineWidth) })()"
    )
    tab(page)
    found = []
    while (width := page.ask(seen)) is not None:
        found.append(width)
        tab(page)
    assert len(found) > 20
    assert min(found) >= 2


def test_who_wants_no_motion_gets_none(page: Browser) -> None:
    with screen(page):
        page.ask("document.querySelector('[data-hop=\"1\"]').click()")
        page.ask("document.querySelector('[data-hop=\"2\"]').click()")
        page.ask("document.querySelector('.mark').click()")
        assert page.ask("document.getAnimations().length") == 0


def test_fingers_find_what_they_press(page: Browser) -> None:
    with screen(page, 390, 844):
        page.ask(
            "document.querySelectorAll('details').forEach((one) => { one.open = true })"
        )
        assert small(page) == []


@pytest.mark.parametrize("media", ["", "print"])
def test_on_a_narrow_page_the_legend_lies_over_no_entity(
    page: Browser, media: str
) -> None:
    with screen(page, 390, 844, media=media):
        page.ask("document.querySelector('#fit').click()")
        assert page.ask("document.querySelector('.legend').checkVisibility()") is True
        assert page.ask(
            "(() => { const legend = document.querySelector('.legend').getBoundingClientRect();"
            "return [...document.querySelectorAll('.node')].map((one) => one.getBoundingClientRect())"
            ".every((one) => one.bottom <= legend.top || one.right <= legend.left) })()"
        )


def test_enlarged_to_twice_its_size_nothing_is_cut_off(page: Browser) -> None:
    with screen(page, 640, 450):  # a window of 1280 pixels at 200 %
        page.ask(
            "document.querySelectorAll('details').forEach((one) => { one.open = true })"
        )
        assert (
            page.ask(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            == 0
        )
