"""A retriever by name, and so an agent, sees its index as of the last commit, and one state of it during a run."""

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ras_agent import Plan, create_ras_agent
from ras_agent.config.filters import ALL, Filter
from ras_agent.contracts.errors import IndexMismatch, IndexNotFound
from ras_agent.contracts.records import Passage, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.retrieve.resolve import resolve_retriever

OLD = Passage(
    "head", "The head of Velmora is Anders Kvale.", "Velmora", "d", {"team": "x"}
)
NEW = Passage(
    "head", "The head of Velmora is Berta Olm.", "Velmora", "d", {"team": "x"}
)
OTHER = Passage(
    "other", "The head of Ostrell is Carla Ruiz.", "Ostrell", "e", {"team": "y"}
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PassageIndex.create(tmp_path / "i").add([OLD])
    return tmp_path / "i"


def texts(found: Any) -> list[str]:
    return [
        hit.passage.text for hit in found.retrieve("Who is the head of Velmora?", 5)
    ]


def test_it_sees_what_another_process_committed(folder: Path) -> None:
    found = resolve_retriever("bm25", folder)
    assert texts(found) == [OLD.text]
    write = "import sys; from ras_agent import *; PassageIndex.open(sys.argv[1]).upsert([Passage(*sys.argv[2:5])])"
    subprocess.run(
        [sys.executable, "-c", write, folder, NEW.id, NEW.text, NEW.title],
        check=True,
        env=os.environ,
    )
    assert texts(found) == [NEW.text]


def test_an_agent_answers_from_the_last_commit_without_restart(folder: Path) -> None:
    agent = create_ras_agent(index=folder)
    question = {"question": "Who is the head of Velmora?"}
    assert agent.invoke(question)["passages"]["head"]["text"] == OLD.text
    PassageIndex.open(folder).upsert([NEW])
    assert agent.invoke(question)["passages"]["head"]["text"] == NEW.text
    PassageIndex.open(folder).delete_document("")
    PassageIndex.open(folder).upsert([OTHER])
    assert list(asyncio.run(agent.ainvoke(question))["passages"]) == ["head", "other"]
    assert list(agent.invoke({**question, "filter": {"team": "y"}})["passages"]) == [
        "other"
    ]


class WritingPlanner:
    """Has the index written to between the first search and the second, by `passages`."""

    def __init__(self, folder: Path, *passages: Passage) -> None:
        self.folder, self.passages = folder, passages

    def plan(self, question: str, graph: Any, steps: Any) -> Plan:
        if len(steps) == 1:
            PassageIndex.open(self.folder).upsert(self.passages)
            return Plan("subq", "Ostrell head of Velmora")
        return Plan("sufficient") if steps else Plan("subq", question)


def test_a_run_sees_one_state_of_the_index_from_its_first_search_to_its_last(
    folder: Path,
) -> None:
    agent = create_ras_agent(index=folder, planner=WritingPlanner(folder, OTHER))
    question = {"question": "Who is the head of Velmora?"}
    out = agent.invoke(question)
    assert [[hit["passage_id"] for hit in step["hits"]] for step in out["steps"]] == [
        ["head"],
        ["head"],
    ]
    assert out["failures"] == []
    later = create_ras_agent(index=folder).invoke(question)
    assert list(later["passages"]) == ["head", "other"]


def test_a_run_that_meets_what_was_erased_meanwhile_goes_on_with_the_last_commit(
    folder: Path,
) -> None:
    agent = create_ras_agent(index=folder, planner=WritingPlanner(folder, NEW, OTHER))
    out = agent.invoke({"question": "Who is the head of Velmora?"})
    assert [[hit["passage_id"] for hit in step["hits"]] for step in out["steps"]] == [
        ["head"],
        ["other"],
    ]
    # another text of an id that was read
    assert [failure["detail"] for failure in out["failures"]] == [NEW.text]


def test_an_earlier_commit_is_forgotten_after_a_while_and_what_was_erased_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Any = resolve_retriever("bm25", folder)
    first = found.at("", ALL)
    PassageIndex.open(folder).upsert([NEW])
    assert found.at("", ALL).commit != first.commit
    assert found.at(first.commit, ALL) is first
    monkeypatch.setattr("ras_agent.tools.retrieve.search._SECONDS", -1.0)
    assert found.at(first.commit, ALL).commit != first.commit
    assert [
        hit.passage.text
        for hit in found.at(first.commit, ALL).retriever.retrieve("head", 5)
    ] == [NEW.text]


def test_a_run_that_goes_on_a_day_later_finds_nothing_erased_though_nobody_else_has_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=0.0)
    monkeypatch.setattr("ras_agent.tools.retrieve.search.time", clock)
    found: Any = resolve_retriever("bm25", folder)
    first = found.at("", ALL)
    PassageIndex.open(folder).upsert([NEW])
    clock.now = 600.0
    assert found.at(first.commit, ALL) is first
    clock.now = 86_400.0
    assert texts(found.at(first.commit, ALL).retriever) == [NEW.text]


def test_further_commits_do_not_keep_an_earlier_one_for_longer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=0.0)
    monkeypatch.setattr("ras_agent.tools.retrieve.search.time", clock)
    found: Any = resolve_retriever("bm25", folder)
    first = found.at("", ALL)
    PassageIndex.open(folder).upsert([NEW])
    clock.now = 300.0
    second = found.at("", ALL)
    PassageIndex.open(folder).upsert([OTHER])
    clock.now = 601.0
    third = found.at("", ALL)
    assert found.at(first.commit, ALL) is third
    assert found.at(second.commit, ALL) is second


def test_nothing_is_opened_again_while_nobody_writes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Any = resolve_retriever("bm25", folder)
    first = found.at("", ALL)
    monkeypatch.setattr("ras_agent.tools.index.store.take_snapshot", None)
    assert found.at("", ALL) is first
    within = found.at("", Filter.of({"team": "x"}))
    assert within is not first
    assert found.at(first.commit, Filter.of({"team": ["x"]})) is within


def test_an_index_in_memory_is_followed_without_a_file() -> None:
    index = PassageIndex.in_memory([OLD])
    found = resolve_retriever("bm25", index)
    index.upsert([NEW])
    assert texts(found) == [NEW.text]


def test_a_retriever_that_the_index_made_stays_as_it_was_without_what_is_erased(
    folder: Path,
) -> None:
    index = PassageIndex.open(folder)
    made = retriever_over(index, "bm25")
    PassageIndex.open(folder).add([OTHER])
    index.refresh()
    assert (texts(made), len(texts(retriever_over(index, "bm25")))) == ([OLD.text], 2)
    PassageIndex.open(folder).upsert([NEW])
    index.refresh()
    assert (texts(made), texts(retriever_over(index, "bm25"))) == (
        [],
        [NEW.text, OTHER.text],
    )


def test_a_rebuilt_knowledge_graph_is_seen_too(folder: Path) -> None:
    def build(head: str) -> None:
        with open_writer(folder) as writer:
            writer.put([PassageFacts("head", (Triple("Velmora", "is led by", head),))])
            writer.write()

    build("Anders Kvale")
    found: Any = resolve_retriever(
        "paths", folder, composition="ego+bm25>complete>bm25"
    )
    why = lambda: (
        found.retrieve("Who is Velmora led by?", 1)[0].why[0].partition("  ")[2]
    )
    first = why()
    build("Berta Olm")
    assert ("Anders Kvale" in first, "Berta Olm" in why()) == (True, True)


def test_an_index_that_is_gone_is_an_error_and_one_made_anew_is_taken(
    folder: Path,
) -> None:
    found = resolve_retriever("bm25", folder)
    shutil.rmtree(folder)
    with pytest.raises(
        IndexNotFound, match="holds no index any more: index its files again"
    ):
        texts(found)
    PassageIndex.create(folder).add([NEW])
    assert texts(found) == [NEW.text]


def test_an_index_made_anew_without_vectors_cannot_be_searched_by_them(
    tmp_path: Path, hash_embedder: Any
) -> None:
    PassageIndex.create(tmp_path / "i", hash_embedder).add([OLD])
    index = PassageIndex.open(tmp_path / "i", hash_embedder)
    found = resolve_retriever("dense", index)
    shutil.rmtree(tmp_path / "i")
    PassageIndex.create(tmp_path / "i").add([NEW])
    with pytest.raises(IndexMismatch, match="the index holds no vectors"):
        texts(found)


def test_threads_that_search_while_another_writes_see_whole_commits_alone(
    folder: Path,
) -> None:
    found: Any = resolve_retriever("bm25", folder)
    seen: set[frozenset[str]] = set()
    stop = threading.Event()

    def search() -> None:
        while not stop.is_set():
            hits = found.retrieve("head of Velmora", 5, {"team": ["x"]})
            seen.add(frozenset(hit.passage.text for hit in hits))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    pairs = [
        [
            f"Velmora's head in {year} is number {year}.",
            f"{year} has a head of Velmora.",
        ]
        for year in range(12)
    ]
    for pair in pairs:
        PassageIndex.open(folder).upsert(
            [
                Passage("head", pair[0], metadata={"team": "x"}),
                Passage("too", pair[1], metadata={"team": "x"}),
            ]
        )
    stop.set()
    for thread in threads:
        thread.join()
    assert seen <= {frozenset([OLD.text]), *map(frozenset, pairs)}
    assert set(texts(found)) == set(pairs[-1])
