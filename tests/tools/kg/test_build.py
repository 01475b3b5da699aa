"""An index and its graph stay in step."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import IndexMismatch, IngestError
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg import build as knowledge
from ras_agent.tools.kg import writer as writer_module
from ras_agent.tools.kg.build import add_triples, delete_documents
from ras_agent.tools.kg.facts import records
from ras_agent.tools.kg.formats.gfm_csv import write_gfm_csv
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.kg.writer import KGWriter, open_writer
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.structure.build_graph import build_graph
from tests.messages import says

PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh.",
        "Alexander Graham Bell",
        "bell.txt",
    ),
    Passage(
        "leith",
        "The Water of Leith flows through Edinburgh.",
        "Water of Leith",
        "leith.txt",
    ),
]
PARIS = Passage("paris", "Paris is the capital of France.", "Paris", "paris.txt")


class Letters:
    """Embeds a text as the unit vector of its letter counts."""

    name, dimension = "letters", 26

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        counts = np.array(
            [
                [text.lower().count(chr(97 + at)) + 1 for at in range(26)]
                for text in texts
            ],
            np.float32,
        )
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = tmp_path / "i"
    PassageIndex.create(path).add(PASSAGES)
    return path


def test_a_build_follows_the_index(index: Path) -> None:
    assert build_graph(index).read == 2
    store = PassageIndex.open(index)
    store.delete_document("leith.txt")
    store.add([PARIS])
    report = build_graph(index)
    # deleted passages were erased at once
    assert (report.read, report.unchanged, report.erased) == (
        1,
        1,
        0,
    )
    assert list(report.graph.documents) == ["bell", "paris"]


def test_a_deleted_document_is_gone_from_both(index: Path) -> None:
    build_graph(index)
    report = delete_documents(index, ["leith.txt"])
    assert report.erased == 1
    assert report.graph.entity_id("Water of Leith") is None
    assert [passage.id for passage in PassageIndex.open(index).passages] == ["bell"]
    with pytest.raises(IngestError, match=r"no document 'leith\.txt'"):
        delete_documents(index, ["leith.txt"])


def test_ready_openie_makes_an_index_and_is_not_read_again(tmp_path: Path) -> None:
    record = {
        "id": "bell",
        "title": "Bell",
        "text": PASSAGES[0].text,
        "triples": [["Bell", "invented", "telephone"]],
    }
    (tmp_path / "openie.jsonl").write_text(json.dumps(record) + "\n")
    report = build_graph(tmp_path / "i", openie=tmp_path / "openie.jsonl")
    assert (report.imported, report.read) == (1, 0)
    assert list(report.graph.entities) == ["Bell", "telephone"]
    assert build_graph(tmp_path / "i").graph.fingerprint == report.graph.fingerprint


def test_ready_facts_of_passages_that_are_not_there_are_reported(
    index: Path, tmp_path: Path
) -> None:
    record = {"id": "x", "title": "X", "text": "X.", "triples": [["a", "b", "c"]]}
    (tmp_path / "openie.jsonl").write_text(json.dumps(record) + "\n")
    report = build_graph(index, openie=tmp_path / "openie.jsonl")
    assert [item.reason for item in report.skipped] == [
        "facts of 'x', which is not a passage of the index"
    ]


def test_facts_of_a_file_join_the_graph_of_the_texts(
    index: Path, tmp_path: Path
) -> None:
    build_graph(index)
    (tmp_path / "rivers.tsv").write_text(
        "Water of Leith\tlength\t35 km\nWater of Leith\tmouth\tFirth of Forth\n"
    )
    report = add_triples(index, [tmp_path / "rivers.tsv"])
    assert report.imported == 1
    graph = report.graph
    assert graph.neighbours(graph.entity_id("Water of Leith") or 0).tolist() == sorted(
        graph.entity_id(name) or 0 for name in ("35 km", "Edinburgh", "Firth of Forth")
    )
    (edge,) = (edge for edge in graph.facts if graph.triple(edge).predicate == "mouth")
    assert [source.passage_id for source in graph.triple(edge).sources] == [
        "rivers.tsv#water of leith"
    ]
    assert build_graph(index).graph.fingerprint == graph.fingerprint


def test_a_file_of_triples_that_is_added_again_is_replaced(
    index: Path, tmp_path: Path
) -> None:
    file = tmp_path / "rivers.tsv"
    file.write_text("Tay\tmouth\tNorth Sea\nWater of Leith\tlength\t35 km\n")
    add_triples(index, [file])
    file.write_text("Water of Leith\tlength\t36 km\n")
    report = add_triples(index, [file])
    assert report.erased == 1
    assert list(report.graph.entities) == ["36 km", "Water of Leith"]
    assert PassageIndex.open(index).get("rivers.tsv#tay") is None


def test_a_file_without_triples_changes_nothing(index: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text("only one field\n")
    with pytest.raises(
        IngestError, match=r"bad\.tsv has no usable triple: bad\.tsv line 1"
    ):
        add_triples(index, [tmp_path / "bad.tsv"])
    assert not KGIndex.exists(index)
    assert len(PassageIndex.open(index)) == 2


def test_a_graph_instead_of_texts_answers_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "bell.nt").write_text(
        "<http://x/Alexander_Graham_Bell> <http://x/was_born_in> <http://x/Edinburgh> .\n"
        "<http://x/Paris> <http://x/is_capital_of> <http://x/France> .\n"
    )
    add_triples(tmp_path / "i", [tmp_path / "bell.nt"])
    agent = create_ras_agent(index=tmp_path / "i", retriever="ppr")
    out = agent.invoke({"question": "Where was Alexander Graham Bell born?"})
    assert out["answer"] == "Edinburgh"
    (fact,) = (
        out["graph"].facts if hasattr(out["graph"], "facts") else out["graph"]["facts"]
    )
    assert "bell.nt line 1" in str(fact)


def openie_line(**fields: object) -> str:
    record = {
        "id": "bell",
        "title": "Bell",
        "text": PASSAGES[0].text,
        "triples": [["Bell", "invented", "telephone"]],
    }
    return json.dumps({**record, **fields}) + "\n"


def test_ready_openie_fills_an_index_that_a_killed_build_left_empty(
    tmp_path: Path,
) -> None:
    (tmp_path / "openie.jsonl").write_text(openie_line())
    PassageIndex.create(tmp_path / "i")
    report = build_graph(tmp_path / "i", openie=tmp_path / "openie.jsonl")
    assert (report.imported, report.skipped) == (1, ())
    assert [passage.id for passage in PassageIndex.open(tmp_path / "i").passages] == [
        "bell"
    ]


def test_of_ready_passages_with_the_same_id_the_first_counts_and_the_other_is_reported(
    tmp_path: Path,
) -> None:
    (tmp_path / "openie.jsonl").write_text(
        openie_line() + openie_line(text="Other.", triples=[["a", "b", "c"]])
    )
    report = build_graph(tmp_path / "i", openie=tmp_path / "openie.jsonl")
    assert [str(item) for item in report.skipped] == [
        "openie.jsonl line 2: id 'bell' is already taken by openie.jsonl line 1"
    ]
    assert list(report.graph.entities) == ["Bell", "telephone"]


def test_ready_facts_of_another_text_are_reported(index: Path, tmp_path: Path) -> None:
    (tmp_path / "openie.jsonl").write_text(
        openie_line(text=PASSAGES[0].text + " He invented the telephone.")
    )
    report = build_graph(index, openie=tmp_path / "openie.jsonl")
    assert [item.reason for item in report.skipped] == [
        "facts of 'bell', which has another text in the index"
    ]
    assert (report.imported, report.read) == (0, 2)
    assert report.graph.entity_id("telephone") is None


def test_deleting_makes_no_graph_where_there_is_none(index: Path) -> None:
    report = delete_documents(index, ["leith.txt"])
    assert (report.erased, report.graph.database) == (1, None)
    assert not KGIndex.exists(index)


def test_one_document_may_be_named_alone(index: Path) -> None:
    assert delete_documents(index, "leith.txt").erased == 1


def test_the_offline_extractor_reads_no_index_of_another_language(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("Frau Müller.")
    ingest([tmp_path / "a.txt"], tmp_path / "i", language="german")
    with pytest.raises(
        IndexMismatch,
        match=says("texts in German", "offline extractor", "only English"),
    ):
        build_graph(tmp_path / "i")


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_a_deleted_document_is_there_again_when_its_file_is(
    name: str, tmp_path: Path
) -> None:
    lines = {
        "a.txt": "One.",
        "a.jsonl": '{"id": "a.txt", "text": "One."}\n{"id": "b", "text": "Two."}\n',
    }
    (tmp_path / name).write_text(lines[name])
    ingest([tmp_path / name], tmp_path / "i")
    build_graph(tmp_path / "i")
    delete_documents(tmp_path / "i", ["a.txt"])
    assert "a.txt" not in [
        passage.id for passage in PassageIndex.open(tmp_path / "i").passages
    ]
    assert ingest([tmp_path / name], tmp_path / "i").documents_written == 1
    title = "a" if name == "a.txt" else ""
    assert PassageIndex.open(tmp_path / "i").get("a.txt") == Passage(
        "a.txt", "One.", title, "a.txt", {"file": name}
    )


def test_a_file_of_which_all_is_deleted_is_not_missed(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in "ab":
        (docs / f"{name}.txt").write_text(name)
    ingest([docs], tmp_path / "i")
    delete_documents(tmp_path / "i", ["docs/a.txt"])
    (docs / "a.txt").unlink()
    assert ingest([docs], tmp_path / "i").vanished == ()


def test_another_file_of_the_same_name_is_refused_until_the_first_is_deleted(
    index: Path, tmp_path: Path
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f.tsv").write_text(f"Tay\tis in\t{folder}\n")
    add_triples(index, [tmp_path / "a" / "f.tsv"])
    with pytest.raises(
        IngestError,
        match=says("already has a file f.tsv", "/a/f.tsv", "ras-agent kg delete"),
    ):
        add_triples(index, [tmp_path / "b" / "f.tsv"])
    assert KGIndex.open(index).entity_id("a") is not None
    delete_documents(index, ["f.tsv"])
    assert add_triples(index, [tmp_path / "b" / "f.tsv"]).graph.entity_id("a") is None


def test_nothing_is_added_while_another_process_writes_the_graph(
    index: Path, tmp_path: Path
) -> None:
    (tmp_path / "f.tsv").write_text("Tay\tis in\tScotland\n")
    with (
        open_writer(index),
        pytest.raises(IngestError, match="another run is writing this graph"),
    ):
        add_triples(index, [tmp_path / "f.tsv"])
    assert len(PassageIndex.open(index)) == 2


def test_an_empty_embedder_takes_the_vectors_away(index: Path) -> None:
    assert build_graph(index, embedder=Letters()).graph.entity_vectors is not None
    assert build_graph(index, embedder="").graph.entity_vectors is None
    assert build_graph(index).graph.embedder is None


def test_paths_may_be_strings(tmp_path: Path) -> None:
    (tmp_path / "openie.jsonl").write_text(openie_line())
    (tmp_path / "f.tsv").write_text("Tay\tis in\tScotland\n")
    path = str(tmp_path / "i")
    graph = build_graph(path, openie=str(tmp_path / "openie.jsonl")).graph
    write_gfm_csv(graph, tmp_path / "gfm")
    assert build_graph(path, gfm=str(tmp_path / "gfm")).imported == 1
    assert add_triples(path, [str(tmp_path / "f.tsv")]).imported == 1
    assert add_triples(path, str(tmp_path / "f.tsv")).imported == 1


def test_a_file_that_is_not_there_is_named(index: Path, tmp_path: Path) -> None:
    with pytest.raises(
        IngestError, match=r"none\.tsv does not exist: give the path of a file"
    ):
        add_triples(index, [tmp_path / "none.tsv"])
    with pytest.raises(IngestError, match=r"is not a file: give the path of a file"):
        build_graph(index, openie=tmp_path)


def found_by(retriever: str, index: Path, query: str) -> list[str]:
    return [
        hit.passage.text
        for hit in retriever_over(PassageIndex.open(index), retriever).retrieve(query)
    ]


@pytest.mark.parametrize("retriever", ["ppr", "paths"])
def test_a_passage_with_another_text_is_not_found_by_its_old_one(
    retriever: str, index: Path
) -> None:
    build_graph(index)
    query = "Where was Alexander Graham Bell born?"
    assert found_by(retriever, index, query)[0] == PASSAGES[0].text
    edited = Passage(
        "bell",
        "Alexander Graham Bell taught in Boston.",
        "Alexander Graham Bell",
        "bell.txt",
    )
    PassageIndex.open(index).upsert([edited])
    warning = (
        r"1 of 2 passages are not in the knowledge graph .*`ras-agent kg build .*`"
    )
    with pytest.warns(UserWarning, match=warning):
        found = found_by(retriever, index, query)
    assert [text for text in found if "born in" in text or "Boston" in text] == []
    build_graph(index)
    assert edited.text in found_by(retriever, index, query)


def test_facts_of_a_passage_that_is_gone_are_not_written_out(index: Path) -> None:
    build_graph(index)
    PassageIndex.open(index).delete_document("bell.txt")
    assert not [
        text
        for text in found_by("paths", index, "Where was Alexander Graham Bell born?")
        if "born" in text
    ]


def test_texts_that_a_graph_lacks_of_some_passages_are_learnt(index: Path) -> None:
    with open_writer(
        index
    ) as writer:  # facts that came without the texts that they were read in
        writer.put([PassageFacts(passage.id) for passage in PASSAGES])
        half = writer.write().arrays.texts
    assert half is not None
    assert not half.any()
    texts = build_graph(index).graph.arrays.texts
    assert texts is not None
    assert texts.all()


def test_given_facts_that_cannot_be_leave_those_that_were_read(
    index: Path, tmp_path: Path
) -> None:
    read = build_graph(index).graph
    (tmp_path / "nodes.csv").write_text("name,type,attributes\nbell,document,{}\n")
    (tmp_path / "relations.csv").write_text("name,attributes\n")
    (tmp_path / "edges.csv").write_text(
        'source,relation,target,attributes\nBell,won,a prize,"{""sources"": [[""bell"", 440, 460]]}"\n'
    )
    report = build_graph(index, gfm=tmp_path)
    assert (report.imported, report.unchanged, len(report.skipped)) == (0, 2, 1)
    assert report.graph.fingerprint == read.fingerprint


def test_facts_that_two_files_give_count_once(tmp_path: Path) -> None:
    (tmp_path / "openie.jsonl").write_text(openie_line(entities=["Bell"]))
    once = build_graph(tmp_path / "i", openie=tmp_path / "openie.jsonl").graph
    write_gfm_csv(once, tmp_path / "gfm")
    both = build_graph(
        tmp_path / "i", openie=tmp_path / "openie.jsonl", gfm=tmp_path / "gfm"
    ).graph
    assert both.fingerprint == once.fingerprint


def test_a_folder_of_texts_alone_is_indexed_and_read(tmp_path: Path) -> None:
    (tmp_path / "bells" / "raw").mkdir(parents=True)
    texts = {"Bell": "Alexander Graham Bell was born in Edinburgh.", "Blank": " "}
    (tmp_path / "bells" / "raw" / "documents.json").write_text(json.dumps(texts))
    report = build_graph(tmp_path / "i", gfm=tmp_path / "bells")
    assert (report.read, report.imported) == (2, 0)
    assert [
        (one.id, one.text) for one in PassageIndex.open(tmp_path / "i").passages
    ] == [
        ("Bell", texts["Bell"]),
        ("Blank", "Blank"),
    ]
    assert report.graph.entity_id("Edinburgh") is not None


def test_a_graph_without_texts_needs_an_index(tmp_path: Path) -> None:
    write_gfm_csv(
        KGIndex.in_memory([PassageFacts("p", (), ("Bell",))]), tmp_path / "gfm"
    )
    with pytest.raises(
        IngestError,
        match=says(
            "no text of a document", "index the documents first", "`ras-agent index`"
        ),
    ):
        build_graph(tmp_path / "i", gfm=tmp_path / "gfm")


def files_with(name: str, folder: Path) -> list[str]:
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and name.encode() in path.read_bytes()
    ]


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_is_deleted_is_gone_where_a_first_build_was_killed(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(KGWriter, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            build_graph(index)
    assert delete_documents(index, "leith.txt").erased == 1
    assert files_with("Leith", index) == []
    assert not KGIndex.exists(index)


@pytest.mark.parametrize(
    "at",
    [
        "kg.forget.erase_unused",
        "store.journal.Journal.commit",
        "kg.make.keep_graph",
        "index.store.PassageIndex.finish",
    ],
)
def test_a_killed_deletion_is_made_or_not_and_ends_when_called_again(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bell.txt").write_text(PASSAGES[0].text)
    (tmp_path / "leith.txt").write_text(PASSAGES[1].text)
    index = tmp_path / "i"
    ingest([tmp_path / "bell.txt", tmp_path / "leith.txt"], index)
    build_graph(index)
    with monkeypatch.context() as patch:
        patch.setattr(f"ras_agent.tools.{at}", killed)
        with pytest.raises(KeyboardInterrupt):
            delete_documents(index, "leith.txt")
    there = [passage.id for passage in PassageIndex.open(index).passages]
    assert list(KGIndex.open(index).documents) == there
    with suppress(IngestError):  # it is gone, and its bytes are now
        delete_documents(index, "leith.txt")
    assert files_with("Leith", index) == []
    assert list(KGIndex.open(index).documents) == ["bell.txt"]


@pytest.mark.parametrize(
    "call", [build_graph, lambda index: PassageIndex.open(index).add([PARIS])]
)
def test_a_killed_deletion_ends_with_whatever_is_written_next(
    call: Callable[[Path], object], index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_graph(index)
    with monkeypatch.context() as patch:
        patch.setattr("ras_agent.tools.index.store.PassageIndex.finish", killed)
        with pytest.raises(KeyboardInterrupt):
            delete_documents(index, "bell.txt")
    assert not PassageIndex.open(index).is_finished()
    call(index)
    assert files_with("Graham", index) == []


def test_what_the_index_forgets_is_gone_from_the_graph_without_its_embedder(
    tmp_path: Path,
) -> None:
    for passage in PASSAGES:
        (tmp_path / passage.document_id).write_text(passage.text)
    index = tmp_path / "i"
    ingest([tmp_path / "bell.txt", tmp_path / "leith.txt"], index)
    build_graph(index, embedder=Letters())  # which no name brings back
    ingest([], index, forget=["leith.txt"])
    assert files_with("eith", index) == []
    assert list(KGIndex.open(index).documents) == ["bell.txt"]


def test_facts_go_in_the_commit_that_takes_their_passage_out(index: Path) -> None:
    build_graph(index)
    passages = PassageIndex.open(index)

    def taken_back() -> None:
        with passages.database.writing() as connection:
            passages.delete_document("leith.txt")
            assert list(records(connection)) == ["bell"]
            raise RuntimeError("taken back")

    with pytest.raises(RuntimeError, match="taken back"):
        taken_back()
    assert list(KGIndex.open(index).documents) == ["bell", "leith"]
    passages.delete_document("leith.txt")
    assert list(KGIndex.open(index).documents) == ["bell"]
    assert files_with("Leith", index) == []


def test_no_id_of_a_deleted_document_is_left(index: Path, tmp_path: Path) -> None:
    (tmp_path / "rivers.tsv").write_text("Tay\tmouth\tNorth Sea\n")
    add_triples(index, [tmp_path / "rivers.tsv"])
    assert files_with("rivers", index)
    delete_documents(index, ["rivers.tsv", "leith.txt"])
    assert files_with("rivers", index) + files_with("leith", index) == []


@pytest.mark.parametrize("embedder", ["", None, Letters()])
def test_adding_leaves_the_vectors_of_a_graph_that_is_there(
    embedder: object, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not embedder:  # an object is not loaded by its name
        monkeypatch.setattr(writer_module, "resolve_embedder", lambda _: Letters())
    build_graph(index, embedder=Letters())
    (tmp_path / "f.tsv").write_text("Tay\tis in\tScotland\n")
    graph = add_triples(index, tmp_path / "f.tsv", embedder=embedder).graph
    assert graph.entity_vectors is not None
    assert graph.entity_id("Tay") is not None


def test_a_file_that_another_process_adds_at_the_last_moment_is_seen(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f.tsv").write_text(f"Tay\tis in\t{folder}\n")

    def late(*arguments: Any) -> AbstractContextManager[KGWriter]:
        monkeypatch.undo()
        add_triples(index, tmp_path / "a" / "f.tsv")
        return open_writer(*arguments)

    monkeypatch.setattr(knowledge, "open_writer", late)
    with pytest.raises(IngestError, match=r"already has a file f\.tsv"):
        add_triples(index, tmp_path / "b" / "f.tsv")


def test_a_passage_of_which_a_model_says_nothing_readable_is_left_to_the_offline_extractor(
    index: Path, scripted_model: Callable[..., Any]
) -> None:
    replies = [("Edinburgh", "(S> 贝尔 | P> 出生于爱丁堡)")]
    stopped = build_graph(index, extractor=scripted_model(*replies), fallback="stop")
    assert "was born in" not in stopped.graph.relations
    assert len(stopped.failures) == 2
    built = build_graph(index, extractor=scripted_model(*replies))
    said = [failure.message for failure in built.failures]
    assert any(
        "fallback = stop" in message and "(passage bell)" in message for message in said
    )
    assert built.read == 2  # as a failed passage is read again
    assert "was born in" in built.graph.relations
