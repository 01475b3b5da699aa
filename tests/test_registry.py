"""Plug-ins are found by name: built in, registered in the process, or installed as entry points."""

import sys
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from unittest.mock import Mock

import pytest

from ras_agent.config import registry
from ras_agent.config.registry import PLUGINS, find, is_registered, names, register
from ras_agent.contracts.errors import UnknownName
from tests.messages import says

KINDS = sorted(PLUGINS)


@pytest.fixture(autouse=True)
def own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's registrations are gone after it."""
    monkeypatch.setattr(
        registry, "PLUGINS", {kind: dict(table) for kind, table in PLUGINS.items()}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_registered_plug_in_of_any_kind_is_found_by_its_name(kind: str) -> None:
    plugin = object()
    register(kind, "mine", plugin)
    assert find(kind, "mine") is plugin
    assert is_registered(kind, "mine")
    assert names(kind)[-1] == "mine"


def test_a_plug_in_may_be_registered_by_where_it_is() -> None:
    register("retriever", "mine", "json:dumps")
    assert find("retriever", "mine").__name__ == "dumps"


def test_a_name_may_be_registered_again() -> None:
    register("planner", "mine", print)
    register("planner", "mine", len)
    assert find("planner", "mine") is len


def test_a_built_in_name_is_not_replaced() -> None:
    with pytest.raises(
        ValueError, match=says("retriever 'bm25'", "built in", "another name")
    ):
        register("retriever", "bm25", object())


@pytest.mark.parametrize("name", ["", "a:b", "a b", "a+b", "-a", "a,b"])
def test_a_name_that_a_setting_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match="a retriever's name is a word of letters, digits"
    ):
        register("retriever", name, object())


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownName,
        match=says(
            "unknown kind of plug-in 'retriver'", "known: answerer", "retriever"
        ),
    ):
        register("retriver", "mine", object())


def test_an_entry_point_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = [EntryPoint("theirs", "json:loads", "ras_agent.answerer")]

    def entry_points(*, group: str, name: str | None = None) -> list[EntryPoint]:
        return [
            entry
            for entry in installed
            if entry.group == group and name in (None, entry.name)
        ]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    assert names("answerer") == ("offline", "llm", "graphllm", "graphqa", "theirs")
    assert (
        is_registered("answerer", "theirs"),
        is_registered("planner", "theirs"),
    ) == (True, False)
    assert find("answerer", "theirs").__name__ == "loads"


def test_a_package_that_is_installed_meanwhile_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    assert not is_registered("answerer", "newcomer")
    info = tmp_path / "newcomer-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(
        "[ras_agent.answerer]\nnewcomer = json:loads\n"
    )
    assert is_registered("answerer", "newcomer")
    assert "newcomer" in names("answerer")


def test_installed_packages_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # a search path that was not read before
    monkeypatch.setattr("sys.path", ["", *sys.path])
    read = Mock(side_effect=metadata.entry_points)
    monkeypatch.setattr(metadata, "entry_points", read)
    for kind in ("planner", "answerer", "retriever"):
        assert names(kind)
    assert read.call_count == 1


def test_an_unknown_name_lists_the_known_ones() -> None:
    assert not is_registered("answerer", "nobody")
    with pytest.raises(UnknownName, match=r"known: graphllm, graphqa, llm, offline$"):
        find("answerer", "nobody")


def test_plugins_are_found_by_the_names_of_earlier_versions() -> None:
    with pytest.warns(FutureWarning, match="'graph' is called kg-mix now"):
        assert find("retriever", "graph") is find("retriever", "kg-mix")
    with pytest.warns(
        FutureWarning, match="kind of plug-in 'graph' is called loop now"
    ):
        assert find("graph", "ras") is find("loop", "ras")
