"""Attacks on the files on disk: every file of an index and its graph damaged in every way, then used.

Each use ends in the right result, or in an error of ours that names the file; the doctor tells of every damage.
Segments are caches, here of few passages: damage in them never changes a result. The database is SQLite's: damage that
it does not notice, such as a changed letter of a text, may change a result, and ends in no other error.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError, RasError
from ras_agent.eval.benchmarks.registry import PLAIN
from ras_agent.eval.formats import load_passages
from ras_agent.eval.run.result import failed_result
from ras_agent.eval.run.summarise import summarise
from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings
from ras_agent.tools.embed import embedders
from ras_agent.tools.index import segment
from ras_agent.tools.index.find_files import SourceFile
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.uploads import upload_path
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.kg.edit import merge_entities
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.kg.examine import examine
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.store import array_file
from ras_agent.tools.store.sqlite import FILE, SqliteDatabase
from ras_agent.tools.structure.build_graph import build_graph
from tests.faults.attack import Attack

TEXTS = {
    "bell": "Alexander Graham Bell was born in Edinburgh. He invented the telephone.",
    "leith": "The Water of Leith flows through Edinburgh.",
    "graham": "Graham Bell Alexander was born in Boston.",
    "paris": "Paris is the capital of France. The Seine flows through Paris.",
    "curie": "Marie Curie was born in Warsaw. Marie Curie discovered radium.",
    "vistula": "The Vistula flows through Warsaw.",
}
UPLOAD = "forth.txt"
QUERY = "Which river flows through the city where Alexander Graham Bell was born?"
Damage = Callable[[Path, Random], object]


def _zeroed(start: float, end: float) -> Damage:
    def damage(path: Path, random: Random) -> None:
        content = bytearray(path.read_bytes())
        first, last = (
            int(start * len(content)),
            min(int(end * len(content)) + 64, len(content)),
        )
        content[first:last] = bytes(last - first)
        path.write_bytes(content)

    return damage


def _flipped(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(3 if content else 0):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def _another(path: Path, random: Random) -> None:
    others = sorted(
        other for other in path.parent.iterdir() if other.is_file() and other != path
    )
    path.write_bytes(random.choice(others).read_bytes())


def _replaced(make: Callable[[Path], object]) -> Damage:
    def damage(path: Path, random: Random) -> None:
        path.unlink()
        make(path)

    return damage


def _changed_byte(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    # where there is something: most of a database of few rows is free space
    places = (
        [at for at, byte in enumerate(content) if byte]
        if random.random() < 0.8
        else range(len(content))
    )
    for at in random.sample(places, 1) if places else ():
        content[at] = random.choice(
            [content[at] ^ 1 << random.randrange(8), random.randrange(256)]
        )
    path.write_bytes(content)


def _cut(path: Path, random: Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: random.randrange(len(content) + 1)])


def _page(path: Path, random: Random) -> None:
    """Put a page at the place of another, as a disk does that writes to the wrong place; or zeros."""
    content = bytearray(path.read_bytes())
    pages = range(0, max(len(content) - PAGE_SIZE, 0) + 1, PAGE_SIZE)
    one, other = random.choice(pages), random.choice(pages)
    page = (
        content[other : other + PAGE_SIZE]
        if random.random() < 0.5
        else bytes(PAGE_SIZE)
    )
    content[one : one + PAGE_SIZE] = page[: len(content) - one]
    path.write_bytes(content)


PAGE_SIZE = 4096
DAMAGES: dict[str, Damage] = {
    "empty": lambda path, random: path.write_bytes(b""),
    "halved": lambda path, random: path.write_bytes(
        path.read_bytes()[: path.stat().st_size // 2]
    ),
    "header zeroed": _zeroed(0, 0),
    "middle zeroed": _zeroed(0.4, 0.6),
    "bits flipped": _flipped,
    "random": lambda path, random: path.write_bytes(
        random.randbytes(path.stat().st_size)
    ),
    "appended to": lambda path, random: path.write_bytes(path.read_bytes() + b"more\n"),
    "removed": lambda path, random: path.unlink(),
    "another file": _another,
    "a folder": _replaced(Path.mkdir),
    # root may read files that nobody else may
    "unreadable": _replaced(lambda path: path.symlink_to(path.name)),
}
ANYWHERE: dict[str, Damage] = {
    "a byte changed": _changed_byte,
    "cut": _cut,
    "a page": _page,
}
"""Damages that hit another place each time."""
TIMES = 40


def _found(name: str) -> Callable[[Path], Any]:
    def search(index: Path) -> Any:
        opened = PassageIndex.open(index)
        hits = retriever_over(opened, name).retrieve(QUERY, 4)
        opened.close()
        # a healed segment may add in another order
        return [(hit.passage, round(hit.score, 5)) for hit in hits]

    return search


def _all(index: Path) -> Any:
    """Return everything that can be asked of an index: its passages, the hits of each way of search, its graph."""
    graph = KGIndex.open(index)
    passages = list(PassageIndex.open(index).passages)
    facts = [graph.triple(edge) for edge in range(len(graph.edges))]
    return (
        passages,
        *(search(index) for search in READING.values()),
        graph.fingerprint,
        facts,
    )


def _updated(index: Path) -> Any:
    ingest([index.parent / "docs"], index)
    return (
        list(PassageIndex.open(index).passages),
        _found("bm25")(index),
        _found("dense")(index),
    )


def _built(index: Path) -> Any:
    build_graph(index, equivalence=Equivalence(0.8))
    return _all(index)


def _deleted(index: Path) -> Any:
    delete_documents(index, "docs/bell.txt")
    return _all(index)


def _downloaded(index: Path) -> Any:
    return PassageIndex.open(index).uploaded(UPLOAD)


READING = {
    **{name: _found(name) for name in ("bm25", "dense", "ppr")},
    "download": _downloaded,
}
WRITING = {"index": _updated, "kg build": _built, "kg delete": _deleted}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hash_embedder: Any) -> Path:
    """A folder of an index with vectors and a graph, `docs` that have changed since, and copies to work on."""
    monkeypatch.setattr(embedders, "_embedder_of", lambda name: hash_embedder)
    # thousands of them would take minutes
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr(segment, "SAVED_FROM", 2)
    connect = SqliteDatabase._connect

    def quick(database: SqliteDatabase) -> sqlite3.Connection:
        connection = connect(database)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(SqliteDatabase, "_connect", quick)
    docs, index = tmp_path / "docs", tmp_path / "whole"
    docs.mkdir()
    for name, text in TEXTS.items():
        (docs / f"{name}.txt").write_text(text)
    ingest([docs], index, embedder=hash_embedder)
    sent = upload_path(UPLOAD)
    ingest(
        [SourceFile(sent, sent, "", UPLOAD, data=b"The Forth flows through Stirling.")],
        index,
    )
    build_graph(index, equivalence=Equivalence(0.8))
    merge_entities(
        index, "Graham Bell Alexander", "Alexander Bell", embedder=hash_embedder
    )
    gc.collect()  # closes the database
    assert {path.name for path in index.rglob("*")} >= {FILE, "arrays", "vectors"}
    (docs / "leith.txt").write_text(
        "The Water of Leith flows through Edinburgh and Leith."
    )
    return index


def _files(index: Path) -> list[Path]:
    return sorted(
        path.relative_to(index) for path in index.rglob("*") if path.is_file()
    )


def _damaged(
    whole: Path, copy: Path, file: Path, damage: Damage, random: Random
) -> bool:
    """Make `copy` from `whole` with one file damaged; return whether it is."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)
    damage(copy / file, random)
    return (
        not (copy / file).is_file()
        or (copy / file).read_bytes() != (whole / file).read_bytes()
    )


def _ended(work: Callable[[Path], Any], copy: Path, file: Path, right: Any) -> str:
    """Return the faults in the end of a use of a damaged index, "" for nothing."""
    try:
        found = work(copy)
    except RasError as error:
        told = str(error)
        # a folder without its database is no index; rows are named by their index; a checksum stands for
        # the file it is of
        gone = file.name == FILE and "no " in told
        of_index = file.name == FILE and f"{copy} " in told
        if gone or of_index or file.name.removesuffix(".sum") in told:
            return "" if ": " in told else f"no remedy: {error}"
        return f"no file named: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        gc.collect()
    if found == right or file.name == FILE:
        return ""
    pairs = (
        zip(found, right, strict=False)
        if isinstance(found, tuple)
        else [(found, right)]
    )
    one, other = next((one, other) for one, other in pairs if one != other)
    if isinstance(one, list) and isinstance(other, list):
        one, other = (
            [row for row in one if row not in other],
            [row for row in other if row not in one],
        )
    return f"another result, {one} instead of {other}"[:900]


def _is_cache(file: Path) -> bool:
    return file.parts[0] == "cache"


def _tries(attack: Attack, whole: Path) -> Iterator[tuple[Path, str, Path]]:
    """Yield each file with each damage, and a copy of the folder that has it."""
    copy = whole.parent / "copy"
    tries = [(file, damage) for file in _files(whole) for damage in DAMAGES]
    tries += [
        (file, damage)
        for file in _files(whole)
        if file.name == FILE or _is_cache(file)
        for damage in ANYWHERE
        for _ in range(TIMES if file.name == FILE else TIMES // 4)
    ]
    attack.random.shuffle(tries)
    for number in attack.times(len(tries)):
        file, damage = tries[number]
        if _damaged(whole, copy, file, {**DAMAGES, **ANYWHERE}[damage], attack.random):
            yield file, damage, copy


@pytest.mark.parametrize("use", WRITING)
def test_writing(attack: Attack, folder: Path, use: str) -> None:
    """A damaged file and a write: the right result, or an error that names the file."""
    shutil.copytree(folder, folder.parent / "copy")
    right = WRITING[use](folder.parent / "copy")
    for file, damage, copy in _tries(attack, folder):
        wrong = _ended(WRITING[use], copy, file, right)
        attack.expect(not wrong, f"{file} {damage}: {wrong}")


def test_searching(attack: Attack, folder: Path) -> None:
    """A damaged file and three ways of search: the right result, or an error that names the file."""
    right = {use: search(folder) for use, search in READING.items()}
    for file, damage, copy in _tries(attack, folder):
        for use, search in READING.items():
            wrong = _ended(search, copy, file, right[use])
            attack.expect(not wrong, f"{use}, {file} {damage}: {wrong}")


def test_searching_without_segments(
    attack: Attack, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged database without segments, and three ways of search: the right result, or an error that names it."""
    shutil.rmtree(folder / "cache")
    monkeypatch.setattr(segment, "SAVED_FROM", 1000)
    right = {use: search(folder) for use, search in READING.items()}
    for file, damage, copy in _tries(attack, folder):
        for use, search in READING.items():
            wrong = _ended(search, copy, file, right[use])
            attack.expect(not wrong, f"{use}, {file} {damage}: {wrong}")


TABLES = ("passages", "vectors", "uploads")


def _values(path: Path) -> Iterator[tuple[str, int, str, Any]]:
    """Yield each value of passages, vectors and uploads: its table, its row, its column and itself."""
    with closing(sqlite3.connect(path)) as database:
        for table in TABLES:
            cursor = database.execute(f"SELECT rowid, * FROM {table}")
            columns = [column[0] for column in cursor.description]
            for row, *values in cursor.fetchall():
                yield from (
                    (table, row, column, value)
                    for column, value in zip(columns[1:], values, strict=True)
                )


def _other(value: Any, random: Random) -> Any:
    """Return a value that differs in one bit, as long as it was."""
    if isinstance(value, int):
        bits = max(value.bit_length(), 3)
        return value ^ 1 << random.randrange(bits)
    content = bytearray(value if isinstance(value, bytes) else value.encode())
    if not content:
        return "x" if isinstance(value, str) else b"x"
    content[random.randrange(len(content))] ^= 1 << random.randrange(7)
    return (
        bytes(content) if isinstance(value, bytes) else content.decode(errors="replace")
    )


_USES = {**READING, **WRITING}


@pytest.mark.parametrize("segments", [True, False], ids=["segments", "no segments"])
def test_values(
    attack: Attack, folder: Path, monkeypatch: pytest.MonkeyPatch, segments: bool
) -> None:
    """A bit changed in each value of passages, vectors, uploads: a result, or an error of ours."""
    ingest([folder.parent / "docs"], folder)  # now a passage has been replaced
    (folder.parent / "docs" / "curie.txt").write_text(
        "Marie Curie discovered radium in Paris."
    )
    if not segments:
        shutil.rmtree(folder / "cache")
        monkeypatch.setattr(segment, "SAVED_FROM", 1000)
    copy, right = folder.parent / "copy", dict[str, Any]()
    for use, work in _USES.items():
        shutil.copytree(folder, copy)
        right[use] = work(copy)
        gc.collect()
        shutil.rmtree(copy)
    values = list(_values(folder / FILE))
    attack.random.shuffle(values)
    for number in attack.times(len(values)):
        table, row, column, value = values[number]
        changed = _other(value, attack.random)
        shutil.copytree(folder, copy)
        with closing(sqlite3.connect(copy / FILE, isolation_level=None)) as database:
            try:
                database.execute(
                    f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, row)
                )
            except (
                sqlite3.IntegrityError
            ):  # no disk can make that of it: the index of the column tells
                shutil.rmtree(copy)
                continue
        examine(copy)
        for use, work in _USES.items():
            if use in WRITING:
                shutil.rmtree(copy)
                shutil.copytree(folder, copy)
                with closing(
                    sqlite3.connect(copy / FILE, isolation_level=None)
                ) as database:
                    database.execute(
                        f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
                        (changed, row),
                    )
            wrong = _ended(work, copy, Path(FILE), right[use])
            attack.expect(
                not wrong,
                f"{use}: {table} {row} {column}: {value!r} -> {changed!r}: {wrong}",
            )
        shutil.rmtree(copy)


def test_searching_large_files(
    attack: Attack, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged large file, of which a search compares only the size: any result, or an error of ours."""
    monkeypatch.setattr(array_file, "SMALL", 0)
    for file, damage, copy in _tries(attack, folder):
        # FAISS reads its own files
        for use, search in READING.items() if file.name != "vectors" else ():
            wrong = ""
            try:
                search(copy)
            except RasError:
                pass
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            attack.expect(not wrong, f"{use}, {file} {damage}: {wrong}")


def test_the_doctor(attack: Attack, folder: Path) -> None:
    """A damaged file: the doctor names it."""
    harmless = ("graph.lock", "ingest.lock")
    assert not any(report.problem for report in examine(folder))
    right = _all(folder)
    for file, damage, copy in _tries(attack, folder):
        if file.name in harmless:
            continue
        told = [report.problem for report in examine(copy) if report.problem]
        named = any(
            file.name.removesuffix(".sum") in problem or f"{copy} " in problem
            for problem in told
        )
        # parts that nothing reads, such as free space, may be damaged without harm; and so may a segment
        free = file.name == FILE or _is_cache(file)
        wrong = "" if named or not free else _ended(_all, copy, file, right)
        attack.expect(
            named or (free and not wrong), f"{file} {damage}: told {told}, {wrong}"
        )


REPLY = '{"text": "Answer: Edinburgh [1]", "truncated": false, "input_tokens": 12, "output_tokens": 5}'
VALUES = (
    None,
    True,
    5,
    -1,
    1.5,
    "",
    "many",
    "\ud800",
    "a\x01b",
    [],
    [1],
    ["x"],
    [None],
    [{}],
    {},
    {"a": 1},
    [["x"]],
)


def _mangled(text: str, random: Random) -> str:
    """Return `text` cut, with another character, or with a value of another kind."""
    at = random.randrange(len(text))
    return random.choice(
        (
            text[:at],
            text[:at] + chr(random.randrange(1, 0xD800)) + text[at + 1 :],
            text.replace(
                random.choice(text.split()), json.dumps(random.choice(VALUES)), 1
            ),
        )
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_cached_replies(attack: Attack, tmp_path: Path, scripted_model: Any) -> None:
    """A mangled row of the reply cache: a reply, cached or asked for."""
    request = Request((Turn("user", "Where was Bell born?"),))
    path, model = tmp_path / "replies.sqlite", scripted_model(("Bell", "Edinburgh"))
    Chat(model, settings=ChatSettings(cache=path)).complete(request)
    chat = Chat(model, settings=ChatSettings(cache=path))
    for _ in attack.times(500):
        row = _mangled(REPLY, attack.random)
        with closing(sqlite3.connect(path)) as file, file:
            file.execute(
                "UPDATE cache SET value = ?", (row.encode(errors="surrogatepass"),)
            )
        try:
            attack.expect(
                isinstance(chat.complete(request).text, str), f"{row}: no text"
            )
        except Exception as error:
            attack.expect(False, f"{row}: {type(error).__name__}: {error}")


QUESTION = {
    "id": "q", "question": "Who?", "answers": ["Bell"], "supporting_ids": ["bell"], "type": "bridge", "hops": 2,
    "contexts": [{"id": "bell", "text": "Bell was born.", "title": "Bell"}], "choices": {"A": "Bell"}, "metadata": {},
    "decomposition": [{"question": "Who?", "answer": "Bell"}], "triples": [["Bell", "is", "he"]], "label": "A",
}  # fmt: skip
PASSAGE = {"id": "p", "text": "Bell was born in Edinburgh.", "title": "Bell"}


@pytest.mark.parametrize("kind", ["questions", "corpus"])
def test_records(attack: Attack, tmp_path: Path, kind: str) -> None:
    """A record with one wrong value: read, or left out with its line."""
    path, good = (
        tmp_path / "records.jsonl",
        QUESTION if kind == "questions" else PASSAGE,
    )
    for _ in attack.times(500):
        bad = {**good, attack.random.choice(list(good)): attack.random.choice(VALUES)}
        path.write_text(
            json.dumps({**good, "id": "good"}) + "\n" + json.dumps(bad) + "\n"
        )
        left_out: list[IngestError] = []
        try:
            if kind == "questions":
                found = PLAIN.load(path, on_bad=left_out.append)
                ids = [
                    (one.id, one.hops, one.decomposition, one.choices, one.label)[0]
                    for one in found
                ]
                results = [
                    failed_result(one, ValueError("x"), seconds=0) for one in found
                ]
                assert summarise(results)
            else:
                ids = [one.id for one in load_passages(path, left_out.append)]
            named = all("line 2" in str(error) for error in left_out)
            attack.expect(
                named and len(ids) + len(left_out) == 2, f"{bad}: {ids} and {left_out}"
            )
        except Exception as error:
            attack.expect(False, f"{bad}: {type(error).__name__}: {error}")
