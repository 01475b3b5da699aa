"""Which relations have one object for a subject is counted in a graph; a schema that says it wins."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from ras_agent import Settings, create_ras_agent
from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.contracts.schema import Schema
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg import functional
from ras_agent.tools.kg.functional import KnownRelations, is_functional
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.structure.build_graph import build_graph

STARTS = ("Kor", "Dru", "Hal", "Tam")
ENDS = ("lin", "den", "well", "burg", "sund")
WORKS = ["".join(parts) for parts in product(STARTS, ENDS)]


def graph_of(*objects: tuple[str, str], subjects: int = 20) -> KGIndex:
    """Return a graph in which two passages give each subject an object, `objects` give the first subjects theirs."""
    facts: list[PassageFacts] = []
    for number in range(subjects):
        pair = objects[number] if number < len(objects) else ("Varn", "Varn")
        for place, object_ in enumerate(pair):
            name = f"{number}-{place}"
            fact = Triple(f"Korl {number}", "was led by", object_, (Source(name),))
            facts.append(PassageFacts(name, (fact,)))
    return KGIndex.in_memory(facts)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([], True),
        ([("Ada Brenn", "Tom Vell")], True),
        ([("Ada Brenn", "Tom Vell"), ("Jon Reed", "Sigrid Moe")], False),
        ([("Ada Brenn", "Brenn"), ("Ada", "Ada Moe")], True),
        ([("1911", "May 1911"), ("1911", "the 1910s")], True),
        ([("1911", "1912"), ("1911", "1913")], False),
    ],
)
def test_nineteen_of_twenty_subjects_have_one_object_in_a_functional_relation(
    objects: list[tuple[str, str]], expected: bool
) -> None:
    assert is_functional(graph_of(*objects), "led by") is expected


def test_with_fewer_subjects_nothing_is_known() -> None:
    assert is_functional(graph_of(subjects=19), "led by") is None
    assert is_functional(graph_of(), "led") is None


def test_of_many_subjects_evenly_spaced_ones_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # of 60 subjects each second one is looked at; the two that contradict themselves are among the first four
    monkeypatch.setattr(functional, "MOST_SUBJECTS", 30)
    unlike = [("Ada Brenn", "Tom Vell")]
    assert is_functional(graph_of(*unlike * 4, subjects=60), "led by") is False
    assert is_functional(graph_of(*unlike * 2, subjects=60), "led by") is True


def test_objects_that_a_fact_links_are_one() -> None:
    def facts() -> Iterator[PassageFacts]:
        for number in range(20):
            for place in ("Edinburgh", "Scotland"):
                name = f"{number} {place}"
                fact = Triple(f"Bell {number}", "was born in", place, (Source(name),))
                yield PassageFacts(name, (fact,))

    linked = Triple("Edinburgh", "is in", "Scotland", (Source("link"),))
    assert is_functional(KGIndex.in_memory(facts()), "born") is False
    passages = [*facts(), PassageFacts("link", (linked,))]
    assert is_functional(KGIndex.in_memory(passages), "born") is True


def test_a_schema_wins_over_counts() -> None:
    schema = Schema.of({"relations": {"was led by": {"functional": False}}})
    known = KnownRelations(None, schema)
    assert known("was led by") is False
    assert known("was founded by") is None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index in which two documents each say of twenty works who led them, and disagree on one."""
    passages = []
    for name in WORKS:
        text = f"{name} Works was led by {name}son Moe."
        other = "Tamsund Works was led by Jon Reed." if name == "Tamsund" else text
        for number, said in enumerate([text, other]):
            file = f"{name}-{number}.md"
            passages.append(Passage(file, said, metadata={"file": file}))
    folder = tmp_path_factory.mktemp("functional") / "i"
    PassageIndex.create(folder).upsert(passages)
    build_graph(folder)
    return folder


def test_names_disagree_where_their_relation_is_functional_in_the_corpus(
    place: Path, tmp_path: Path
) -> None:
    question = {"question": "Who led Tamsund Works?"}
    out = create_ras_agent(index=place).invoke(question)
    assert out["answer"] == "Tamsundson Moe (Tamsund-0.md) or Jon Reed (Tamsund-1.md)"
    file = tmp_path / "schema.toml"
    file.write_text('[relations."was led by"]\nfunctional = false\n', "utf-8")
    settings = Settings(schema_file=file)
    out = create_ras_agent(index=place, settings=settings).invoke(question)
    assert out["disputes"] == []


def test_relations_are_counted_again_after_the_index_has_changed(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "i")
    known = KnownRelations(index)
    assert known("was led by") is None
    for objects in ([], [("Ada Brenn", "Tom Vell"), ("Jon Reed", "Sigrid Moe")]):
        passages = []
        for number in range(20):
            pair = objects[number] if number < len(objects) else ("Ann Lee",) * 2
            for place, name in enumerate(pair):
                text = f"Korl{number} Works was led by {name}."
                passages.append(Passage(f"{number}-{place}", text))
        index.upsert(passages)
        build_graph(tmp_path / "i")
        index.refresh()
        assert known("was led by") is (not objects)
