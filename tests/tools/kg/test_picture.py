"""The picture of a graph, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.contracts.records import Triple
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.picture import graph_page, most_connected, nearby
from tests.page.looks import pale, screen, small, told

pytest.importorskip("rustworkx")
ATTACK = "</script><script>window.hacked=1</script><img src=x onerror='hacked=1'>"


def star(*more: Triple) -> KGIndex:
    spokes = tuple(Triple("hub", "joins", f"spoke {letter}") for letter in "abcde")
    return KGIndex.in_memory(
        [PassageFacts("p", (*spokes, Triple("spoke a", "leads to", "end"), *more))]
    )


def names(graph: KGIndex, entities: Any) -> list[str]:
    return [graph.entities[entity] for entity in entities]


def test_the_best_connected_are_chosen() -> None:
    graph = star()
    assert names(graph, most_connected(graph, 2)) == ["hub", "spoke a"]


def test_what_is_near_an_entity_is_chosen_step_by_step() -> None:
    graph = star()
    assert names(graph, nearby(graph, [graph.entity_id("end") or 0], 3)) == [
        "end",
        "hub",
        "spoke a",
    ]


def test_the_page_shows_an_entity_s_facts_and_runs_nothing_of_its_names(
    browser: Any, tmp_path: Path
) -> None:
    graph = star(Triple("hub", f"says {ATTACK}", ATTACK))
    path = tmp_path / "graph.html"
    path.write_text(graph_page(graph, most_connected(graph, 100), ATTACK), "utf-8")
    browser.open(path.as_uri())
    assert (
        browser.ask("document.getElementById('stats').textContent")
        == "8 entities · 7 edges"
    )
    assert browser.ask("document.getElementById('title').textContent") == ATTACK
    find(browser, "Hub")
    assert browser.ask("document.getElementById('name').textContent") == "hub"
    facts = browser.ask("document.getElementById('facts').textContent")
    assert "joins spoke c" in facts
    assert f"says {ATTACK}" in facts
    assert browser.ask("window.hacked") is None


def find(browser: Any, text: str) -> None:
    browser.ask(f"document.getElementById('find').value = {text!r}")
    browser.ask("document.getElementById('search').requestSubmit()")


def shown(browser: Any, name: str) -> str:
    return " ".join(browser.ask(f"document.getElementById({name!r}).innerText").split())


def test_an_entity_is_found_by_the_beginning_of_its_name_and_its_passages_are_named(
    browser: Any, tmp_path: Path
) -> None:
    graph = star()
    path = tmp_path / "graph.html"
    path.write_text(
        graph_page(
            graph, most_connected(graph, 100), name_of=lambda name: f"Passage {name}"
        ),
        "utf-8",
    )
    browser.open(path.as_uri())
    browser.ask(
        "(() => { const f = document.getElementById('find'); f.value = 'SPO'; f.dispatchEvent(new Event('input')) })()"
    )
    assert shown(browser, "found").startswith("spoke a 2 edges spoke b 1 edge")
    find(browser, "SPO")
    assert shown(browser, "name") == "spoke a"
    assert shown(browser, "named") == "Named in 1 passage: Passage p"
    assert shown(browser, "facts") == "hub joins · Passage p leads to end Passage p"
    find(browser, "nobody")
    assert shown(browser, "none") == "No entity in this picture has that in its name."
    assert "hub and 4 more" in shown(browser, "key")


@pytest.mark.parametrize(("wide", "high"), [(1440, 900), (390, 844)])
def test_the_entity_that_a_picture_is_around_is_in_the_middle_and_marked(
    browser: Any, tmp_path: Path, wide: int, high: int
) -> None:
    graph = star()
    end = graph.entity_id("end") or 0
    path = tmp_path / "graph.html"
    path.write_text(graph_page(graph, nearby(graph, [end], 100), around=[end]), "utf-8")
    browser.send(
        "Emulation.setDeviceMetricsOverride",
        width=wide,
        height=high,
        deviceScaleFactor=1,
        mobile=wide < 600,
    )
    try:
        browser.open(path.as_uri())
        row = (
            "(() => { const c = document.getElementById('graph'); return [...c.getContext('2d').getImageData("
            "Math.round(c.width / 2), Math.round(c.height / 2), 60, 1).data].filter((_, at) => at % 4 === 0) })()"
        )
        reds = browser.ask(row)  # from the middle to the right
        assert reds[0] == 217  # of the second group's colour
        assert min(reds) < 30  # the ring around it
        assert browser.ask("document.documentElement.scrollWidth") == wide
        assert "end" in browser.ask("document.getElementById('legend').textContent")
    finally:
        browser.send("Emulation.clearDeviceMetricsOverride")


def test_a_title_that_is_no_whole_text_is_shown_as_far_as_it_is() -> None:
    graph = star()
    assert (
        "<title>old ?</title>"
        in graph_page(graph, most_connected(graph, 3), "old \ud800").encode().decode()
    )


def test_the_same_graph_gives_the_same_page() -> None:
    random = np.random.default_rng(0)
    triples = tuple(
        Triple(f"e{a}", "r", f"e{b}")
        for a, b in random.integers(80, size=(300, 2)).tolist()
    )
    graph = KGIndex.in_memory([PassageFacts("p", triples)])
    entities = most_connected(graph, 80)
    assert graph_page(graph, entities) == graph_page(graph, entities)
    assert graph_page(graph, entities, seed=2) != graph_page(graph, entities)


def test_five_thousand_nodes_are_drawn(browser: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    triples = tuple(
        Triple(f"e{a}", "r", f"e{b}")
        for a, b in random.integers(5000, size=(15000, 2)).tolist()
    )
    graph = KGIndex.in_memory([PassageFacts("p", triples)])
    path = tmp_path / "graph.html"
    path.write_text(graph_page(graph, most_connected(graph, 5000)), "utf-8")
    assert path.stat().st_size < 1_000_000
    browser.open(path.as_uri())
    shown = browser.ask("document.getElementById('stats').textContent")
    assert shown.startswith(f"{len(graph.entities):,} entities · ")
    seen = "document.getElementById('graph').getContext('2d').getImageData(0, 0, 800, 500).data"
    assert browser.ask(f"new Set(new Uint32Array({seen}.buffer)).size > 50")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the picture around the hub of a star."""
    graph = star()
    path = tmp_path_factory.mktemp("picture") / "graph.html"
    path.write_text(
        graph_page(
            graph, most_connected(graph, 100), around=[graph.entity_id("hub") or 0]
        ),
        "utf-8",
    )
    return path.as_uri()


@pytest.mark.parametrize(("wide", "high"), [(1280, 800), (390, 844)])
def test_the_legend_and_the_facts_lie_beside_the_graph_and_not_over_it(
    browser: Any, drawn: str, wide: int, high: int
) -> None:
    with screen(browser, wide, high):
        browser.open(drawn)
        find(browser, "hub")
        browser.ask("document.getElementById('key').open = true")
        assert browser.ask(
            "(() => { const [graph, ...others] = ['graph', 'key', 'panel'].map((id) => document.getElementById(id)"
            ".getBoundingClientRect()); return others.every((one) => one.width > 100 && (one.left >= graph.right"
            " || one.top >= graph.bottom || one.bottom <= graph.top)) })()"
        )
        assert browser.ask("document.documentElement.scrollWidth") == wide


def test_arrow_keys_choose_entities_enter_leads_to_the_facts_and_escape_leaves(
    browser: Any, drawn: str
) -> None:
    browser.open(drawn)
    browser.ask("document.getElementById('graph').focus()")
    browser.press("Home")
    assert shown(browser, "name") == "hub"
    found = set()
    for key in ("ArrowUp", "ArrowRight", "ArrowDown", "ArrowLeft"):
        browser.press("Home")
        browser.press(key)
        found.add(browser.ask("document.getElementById('said').textContent"))
    assert len(found) >= 3
    assert found <= {
        "hub, 5 edges",
        "spoke a, 2 edges",
        *(f"spoke {letter}, 1 edge" for letter in "bcde"),
    }
    browser.press("Home")
    browser.press("Enter", "\r")
    assert browser.ask("document.activeElement.id") == "name"
    browser.press("Escape")
    browser.press("Escape")
    assert browser.ask("document.getElementById('panel').hidden") is True
    browser.press("Escape")
    assert browser.ask("document.activeElement === document.body") is True


def test_a_screen_reader_finds_the_graph_and_an_entity_s_facts(
    browser: Any, drawn: str
) -> None:
    browser.open(drawn)
    find(browser, "hub")
    found = told(browser)
    assert ("application", "Graph of 7 entities and 6 edges") in found
    assert ("heading", "hub") in found
    assert {name for role, name in found if role == "button"} >= {
        f"spoke {letter}" for letter in "abcde"
    }
    # search and choice
    assert (
        browser.ask("document.querySelectorAll('[aria-live], [role=status]').length")
        == 2
    )


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_around_the_graph_can_be_read_and_pressed(
    browser: Any, drawn: str, dark: bool
) -> None:
    with screen(browser, 390, 844, dark=dark):
        browser.open(drawn)
        find(browser, "hub")
        assert pale(browser) == []
        assert small(browser) == []
