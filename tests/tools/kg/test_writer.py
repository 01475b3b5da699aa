"""Bringing the graph of an index up to date: which passages are read once, which are erased, and which survive a kill."""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.contracts.errors import IndexMismatch, IngestError, ModelCallError
from ras_agent.contracts.records import Extraction, Failure, Passage, Source, Triple
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg import make
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.kg.examine import examine
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts, UnstatedEdge
from ras_agent.tools.kg.writer import ReadReport, open_writer
from ras_agent.tools.store.array_file import read_arrays
from ras_agent.tools.store.graph import GraphStateRows
from tests.messages import says
from tests.tools.kg.test_build import Letters

BELL = Passage("bell", "Bell | was born in | Edinburgh\nBell | patented | telephone")
LEITH = Passage("leith", "Leith | flows through | Edinburgh")
PARIS = Passage("paris", "Paris | is capital of | France", title="Paris (city)")


class LineExtractor:
    """Every line is a fact; counts its texts."""

    name = "lines"

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.seen: list[str] = []
        self.broken = set(broken)

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        triples = []
        for passage in passages:
            self.seen.append(passage.id)
            if passage.id in self.broken:
                raise ModelCallError("no reply")
            for line in passage.text.splitlines():
                subject, predicate, object_ = line.split(" | ")
                triples.append(
                    Triple(
                        subject,
                        predicate,
                        object_,
                        (Source(passage.id, extractor=self.name),),
                    )
                )
        return Extraction(tuple(triples))


def build(
    folder: Path,
    passages: Sequence[Passage],
    extractor: LineExtractor | None = None,
    **options: Any,
) -> KGIndex:
    with open_writer(folder, **options) as writer:
        writer.read(
            passages, read_each(extractor or LineExtractor()), "lines", whole=True
        )
        return writer.write()


def arrays_in(folder: Path) -> dict[str, bytes]:
    """The content of the file of the graph's arrays, whatever the numbers of names."""
    (file,) = (
        path for path in (folder / "cache" / "graph").iterdir() if path.suffix != ".sum"
    )
    arrays, _ = read_arrays(file)
    return {name: array.tobytes() for name, array in arrays.items() if name != "names"}


def test_each_passage_is_read_once(tmp_path: Path) -> None:
    extractor = LineExtractor()
    build(tmp_path, [BELL, LEITH], extractor)
    graph = build(tmp_path, [BELL, LEITH, PARIS], extractor)
    assert extractor.seen == ["bell", "leith", "paris"]
    assert list(graph.documents) == ["bell", "leith", "paris"]


def test_a_title_names_an_entity(tmp_path: Path) -> None:
    graph = build(tmp_path, [PARIS])
    assert graph.mentions.row_values(graph.entity_id("Paris") or 0).tolist() == [2]


def test_a_changed_passage_is_read_anew_and_its_old_facts_are_gone(
    tmp_path: Path,
) -> None:
    extractor = LineExtractor()
    build(tmp_path, [BELL, LEITH], extractor)
    graph = build(
        tmp_path, [Passage("bell", "Bell | moved to | Canada"), LEITH], extractor
    )
    assert extractor.seen == ["bell", "leith", "bell"]
    assert list(graph.entities) == ["Bell", "Canada", "Edinburgh", "Leith"]


def test_another_reader_reads_everything(tmp_path: Path) -> None:
    build(tmp_path, [BELL])
    extractor = LineExtractor()
    with open_writer(tmp_path) as writer:
        report = writer.read([BELL], read_each(extractor), "another")
    assert (report, extractor.seen) == (ReadReport(read=1), ["bell"])


def test_a_fact_lives_as_long_as_a_passage_states_it(tmp_path: Path) -> None:
    again = Passage("again", "Bell | was born in | Edinburgh")
    build(tmp_path, [BELL, again])
    with open_writer(tmp_path) as writer:
        assert writer.erase(["bell"]) == 1
        graph = writer.write()
    assert [str(graph.triple(edge)) for edge in graph.facts] == [
        "(S> Bell | P> was born in | O> Edinburgh)"
    ]
    with open_writer(tmp_path) as writer:
        assert writer.erase(["again", "never there"]) == 1
        assert len(writer.write().entities) == 0


def test_nothing_of_a_deleted_passage_is_left_in_any_file(
    tmp_path: Path, hash_embedder: Any
) -> None:
    build(tmp_path, [BELL, PARIS], embedder=hash_embedder)
    with open_writer(tmp_path, hash_embedder) as writer:
        writer.erase(["bell"])
        writer.write()
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"telephone" not in path.read_bytes().lower()


def test_nothing_of_a_deleted_passage_is_left_where_rows_were_moved(
    tmp_path: Path,
) -> None:
    chance = random.Random(0)
    lines = [
        f"thing {n} | is called | <{''.join(chance.choices('abcdef', k=chance.randint(4, 8)))}>"
        for n in range(6000)
    ]
    build(
        tmp_path,
        [
            Passage(f"passage {n}", "\n".join(lines[n : n + 40]))
            for n in range(0, 6000, 40)
        ],
    )
    with open_writer(tmp_path) as writer:
        writer.erase([f"passage {n}" for n in range(0, 6000, 120)])
        there = set(writer.write().entities)
    content = b"".join(
        path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )
    found = {name.decode() for name in re.findall(rb"<[a-f]+>", content)}
    assert len(found) > 3000
    assert found <= there


def test_deleting_and_adding_again_gives_the_same_arrays(
    tmp_path: Path, hash_embedder: Any
) -> None:
    passages = [BELL, LEITH, PARIS]
    build(tmp_path, passages, embedder=hash_embedder, equivalence=Equivalence(0.5))
    before = arrays_in(tmp_path)
    with open_writer(tmp_path, hash_embedder) as writer:
        writer.erase(["leith"])
        writer.write()
    assert arrays_in(tmp_path) != before
    build(tmp_path, passages, embedder=hash_embedder)
    assert arrays_in(tmp_path) == before


def test_only_new_names_are_embedded(tmp_path: Path, hash_embedder: Any) -> None:
    build(tmp_path, [BELL], embedder=hash_embedder)
    first = len(hash_embedder.texts)
    graph = build(tmp_path, [BELL, LEITH], embedder=hash_embedder)
    assert sorted(hash_embedder.texts[first:]) == ["Leith", "flows through"]
    assert graph.entity_vectors is not None
    expected = hash_embedder.embed(list(graph.entities)).astype(np.float16)
    assert np.array_equal(graph.entity_vectors, expected)


def test_near_names_that_stay_keep_their_nearest_when_others_are_added(
    tmp_path: Path,
) -> None:
    # the last name, and one before it
    near = Passage("ring", "Tin | makes | Ring\nOak | makes | Rings")
    build(tmp_path / "twice", [near], embedder=Letters())
    graph = build(tmp_path / "twice", [near, BELL], embedder=Letters())
    pairs = {
        tuple(graph.entities[at] for at in edge[[0, 2]])
        for edge in graph.edges[graph.arrays.facts :]
    }
    assert ("Ring", "Rings") in pairs
    build(tmp_path / "once", [near, BELL], embedder=Letters())
    assert arrays_in(tmp_path / "twice") == arrays_in(tmp_path / "once")


def test_a_passage_that_cannot_be_read_is_reported_and_tried_again(
    tmp_path: Path,
) -> None:
    with open_writer(tmp_path) as writer:
        report = writer.read([BELL, LEITH], read_each(LineExtractor(["bell"])), "lines")
        assert report == ReadReport(
            read=1, failures=(Failure("extractor", "no reply (passage bell)"),)
        )
        assert list(writer.write().documents) == ["leith"]
    extractor = LineExtractor()
    build(tmp_path, [BELL, LEITH], extractor)
    assert extractor.seen == ["bell"]


def test_facts_of_a_text_that_cannot_be_read_any_more_are_erased(
    tmp_path: Path,
) -> None:
    build(tmp_path, [BELL, LEITH])
    with open_writer(tmp_path) as writer:
        changed = Passage("bell", "Bell | moved to | Canada")
        writer.read([changed, LEITH], read_each(LineExtractor(["bell"])), "lines")
        assert list(writer.write().documents) == ["leith"]


def test_imported_facts_are_not_extracted_again(tmp_path: Path) -> None:
    extractor = LineExtractor()
    with open_writer(tmp_path) as writer:
        writer.put(
            [
                PassageFacts(
                    "bell", (Triple("Bell", "invented", "telephone"),), ("Scotland",)
                )
            ],
            {"bell": BELL},
        )
        writer.read([BELL, LEITH], read_each(extractor), "lines", whole=True)
        graph = writer.write()
    assert extractor.seen == ["leith"]
    assert list(graph.entities) == [
        "Bell",
        "Edinburgh",
        "Leith",
        "Scotland",
        "telephone",
    ]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with (
        open_writer(tmp_path),
        pytest.raises(IngestError, match="another run"),
        open_writer(tmp_path),
    ):
        pass


def commit_of(folder: Path) -> str:
    return PassageIndex.open(folder).commit


def test_nothing_new_writes_nothing(tmp_path: Path) -> None:
    build(tmp_path, [BELL])
    before = commit_of(tmp_path)
    build(tmp_path, [BELL])
    assert commit_of(tmp_path) == before
    build(tmp_path, [LEITH])
    assert commit_of(tmp_path) != before


def refuse(*_: object) -> None:
    raise AssertionError("this was done before")


@pytest.mark.parametrize("lost", ["deleted", "damaged"])
def test_lost_arrays_are_made_anew_without_embedding_or_comparing(
    lost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hash_embedder: Any
) -> None:
    whole = build(
        tmp_path, [BELL, LEITH], embedder=hash_embedder, equivalence=Equivalence(0.5)
    )
    expected = arrays_in(tmp_path)
    if lost == "deleted":
        shutil.rmtree(tmp_path / "cache")
    else:
        for path in (tmp_path / "cache" / "graph").iterdir():
            path.write_bytes(path.read_bytes()[:-1])
    embedded = len(hash_embedder.texts)
    monkeypatch.setattr(make, "near_lists", refuse)
    again = KGIndex.open(tmp_path, hash_embedder)
    assert again.fingerprint == whole.fingerprint
    assert again.entity_vectors is not None
    assert again.entity_vectors.tobytes() == expected["entity_vectors"]
    PassageIndex.open(tmp_path, None).finish()
    assert arrays_in(tmp_path) == expected
    assert len(hash_embedder.texts) == embedded


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE kg_facts SET subject = 70", "names that are not there"),
        ("DELETE FROM kg_names WHERE name = 'Edinburgh'", "names that are not there"),
        ("UPDATE kg_facts SET attributes = 'no JSON'", "attributes of a fact"),
        # as a page makes it that lies in another's place
        ("UPDATE kg_names SET key = CAST(key AS BLOB)", "kg_names.key holds no text"),
    ],
)
def test_a_row_that_is_not_what_was_written_is_told(
    damage: str, told: str, tmp_path: Path
) -> None:
    build(tmp_path, [BELL, LEITH, PARIS])
    shutil.rmtree(tmp_path / "cache")
    with PassageIndex.open(tmp_path).database.writing() as connection:
        connection.execute(damage)
    with pytest.raises(
        IndexMismatch, match=says(str(tmp_path), "damaged", told, "delete the folder")
    ):
        KGIndex.open(tmp_path)
    assert [report.path.name for report in examine(tmp_path) if report.problem] == [
        "index.sqlite"
    ]


def test_an_edge_that_no_document_states_goes_with_the_last_that_names_one_of_its_ends(
    tmp_path: Path,
) -> None:
    edges = [
        UnstatedEdge("Nobody", "knew", "Leith"),
        UnstatedEdge("Paris", "is far from", "Nobody"),
    ]
    with open_writer(tmp_path) as writer:
        writer.read([LEITH, PARIS], read_each(LineExtractor()), "lines")
        writer.put_edges(edges)
        assert facts_of(writer.write()) >= {
            ("Nobody", "knew", "Leith"),
            ("Paris", "is far from", "Nobody"),
        }
        writer.erase(["leith"])
        assert facts_of(writer.write()) == {
            ("Paris", "is capital of", "France"),
            ("Paris", "is far from", "Nobody"),
        }
        writer.erase(["paris"])
        assert facts_of(writer.write()) == set()


def facts_of(graph: KGIndex) -> set[tuple[str, str, str]]:
    triples = map(graph.triple, graph.facts)
    return {(triple.subject, triple.predicate, triple.object) for triple in triples}


def test_settings_that_are_named_change_those_of_the_graph_that_is_there(
    tmp_path: Path,
) -> None:
    build(tmp_path, [BELL], equivalence=Equivalence(0.5))
    assert build(
        tmp_path, [BELL], equivalence={"neighbours": 3}
    ).manifest.equivalence == Equivalence(0.5, 3)
    assert build(tmp_path, [BELL], equivalence={}).manifest.equivalence == Equivalence(
        0.5, 3
    )


def test_vectors_of_deleted_names_are_gone_where_a_first_build_was_killed(
    tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(GraphStateRows, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            build(tmp_path, [BELL, LEITH], embedder=hash_embedder)
    vector = hash_embedder.embed(["telephone"])[0].astype(np.float16).tobytes()
    assert (
        len(files_with(tmp_path, b"telephone"))
        == len(files_with(tmp_path, vector))
        == 1
    )
    with open_writer(tmp_path, hash_embedder) as writer:
        writer.erase(["bell"])
        writer.index.finish()
    assert files_with(tmp_path, b"telephone") == files_with(tmp_path, vector) == []
    embedded = len(hash_embedder.texts)
    build(tmp_path, [LEITH], embedder=hash_embedder)
    # no passage names it; all other vectors were stored
    assert hash_embedder.texts[embedded:] == ["equivalent"]


def files_with(folder: Path, content: bytes) -> list[str]:
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and content in path.read_bytes()
    ]


def test_readers_see_the_last_graph_that_was_written_whole(tmp_path: Path) -> None:
    before = build(tmp_path, [LEITH])
    with open_writer(tmp_path) as writer:
        changed = Passage("leith", "Leith | is near | Granton")
        writer.read([BELL, changed], read_each(LineExtractor()), "lines")
        shutil.rmtree(tmp_path / "cache")
        assert KGIndex.open(tmp_path).fingerprint == before.fingerprint
        writer.write()
    assert list(KGIndex.open(tmp_path).documents) == ["bell", "leith"]


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.tools.kg import test_writer as tests
from ras_agent.tools.kg import make
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.store.graph import GraphStateRows

folder, stage = Path(sys.argv[1]), sys.argv[3]
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

class Killed(tests.LineExtractor):
    def extract(self, passages, subquery=""):
        if stage == "reading" and passages[0].id == "paris":
            kill()
        return super().extract(passages, subquery)

if stage == "arrays":
    make.write_graph = kill
if stage == "commit":
    GraphStateRows.publish = kill
with open_writer(folder) as writer:
    writer.read([tests.BELL, tests.LEITH, tests.PARIS], read_each(Killed()), "lines", whole=True)
    writer.write()
"""


@pytest.mark.slow("kills")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize(
    ("stage", "left"), [("reading", ["paris"]), ("arrays", []), ("commit", [])]
)
def test_a_killed_build_loses_nothing_and_reads_nothing_twice(
    stage: str, left: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "kg"
    build(folder, [LEITH])
    command = [
        sys.executable,
        "-P",
        "-c",
        _KILLED,
        str(folder),
        str(Path(__file__).parents[3]),
        stage,
    ]
    killed = subprocess.run(command, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list(KGIndex.open(folder).documents) == ["leith"]
    extractor = LineExtractor()
    after = build(folder, [BELL, LEITH, PARIS], extractor)
    assert extractor.seen == left
    assert (
        after.fingerprint == build(tmp_path / "fresh", [BELL, LEITH, PARIS]).fingerprint
    )
