"""Attacks on what is on disk: every file of an index and its graph damaged in every way, then used.

Each use ends in the right result, or in an error of ours that names the file; the doctor tells of every damage.
"""

from __future__ import annotations

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

from ras_agent.errors import IngestError, RasError
from ras_agent.eval.benchmarks.registry import PLAIN
from ras_agent.eval.question import load_passages
from ras_agent.eval.run.result import failed_result
from ras_agent.eval.run.summarise import summarise
from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings
from ras_agent.tools.embed import embedders
from ras_agent.tools.index import checksums
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.kg.equivalence import Equivalence
from ras_agent.tools.kg.examine import examine
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.registered import retriever_over
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
QUERY = "Which river flows through the city where Alexander Graham Bell was born?"
Damage = Callable[[Path, Random], object]


def _zeroed(start: float, end: float) -> Damage:
    def damage(path: Path, random: Random) -> None:
        content = bytearray(path.read_bytes())
        first, last = int(start * len(content)), min(int(end * len(content)) + 64, len(content))
        content[first:last] = bytes(last - first)
        path.write_bytes(content)

    return damage


def _flipped(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(3 if content else 0):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def _another(path: Path, random: Random) -> None:
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    path.write_bytes(random.choice(others).read_bytes())


def _replaced(make: Callable[[Path], object]) -> Damage:
    def damage(path: Path, random: Random) -> None:
        path.unlink()
        make(path)

    return damage


DAMAGES: dict[str, Damage] = {
    "empty": lambda path, random: path.write_bytes(b""),
    "halved": lambda path, random: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "header zeroed": _zeroed(0, 0),
    "middle zeroed": _zeroed(0.4, 0.6),
    "bits flipped": _flipped,
    "random": lambda path, random: path.write_bytes(random.randbytes(path.stat().st_size)),
    "appended to": lambda path, random: path.write_bytes(path.read_bytes() + b"more\n"),
    "removed": lambda path, random: path.unlink(),
    "another file": _another,
    "a folder": _replaced(Path.mkdir),
    "unreadable": _replaced(lambda path: path.symlink_to(path.name)),  # root may read what nobody else may
}


def _found(name: str) -> Callable[[Path], Any]:
    def search(index: Path) -> Any:
        hits = retriever_over(PassageIndex.open(index), name).retrieve(QUERY, 4)
        return [(hit.passage, hit.score) for hit in hits]

    return search


def _all(index: Path) -> Any:
    """Return everything that can be asked of an index: its passages, what each way of search finds, its graph."""
    graph = KGIndex.open(index)
    passages = list(PassageIndex.open(index).passages)
    facts = [graph.triple(edge) for edge in range(len(graph.edges))]
    return passages, *(search(index) for search in READING.values()), graph.fingerprint, facts


def _updated(index: Path) -> Any:
    ingest([index.parent / "docs"], index)
    return list(PassageIndex.open(index).passages), _found("bm25")(index), _found("dense")(index)


def _built(index: Path) -> Any:
    build_graph(index, equivalence=Equivalence(0.8))
    return _all(index)


def _deleted(index: Path) -> Any:
    delete_documents(index, "docs/bell.txt")
    return _all(index)


READING = {name: _found(name) for name in ("bm25", "dense", "ppr")}
WRITING = {"index": _updated, "kg build": _built, "kg delete": _deleted}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hash_embedder: Any) -> Path:
    """A folder of an index with vectors and a graph, `docs` that have changed since, and copies to work on."""
    monkeypatch.setattr(embedders, "_named", lambda name: hash_embedder)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # thousands of them would take minutes
    docs, index = tmp_path / "docs", tmp_path / "whole"
    docs.mkdir()
    for name, text in TEXTS.items():
        (docs / f"{name}.txt").write_text(text)
    ingest([docs], index, embedder=hash_embedder)
    build_graph(index, equivalence=Equivalence(0.8))
    (docs / "leith.txt").write_text("The Water of Leith flows through Edinburgh and Leith.")
    return index


def _files(index: Path) -> list[Path]:
    return sorted(path.relative_to(index) for path in index.rglob("*") if path.is_file())


def _damaged(whole: Path, copy: Path, file: Path, damage: str, random: Random) -> bool:
    """Make `copy` from `whole` with one file damaged; return whether it is."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)
    DAMAGES[damage](copy / file, random)
    return not (copy / file).is_file() or (copy / file).read_bytes() != (whole / file).read_bytes()


def _ended(work: Callable[[Path], Any], copy: Path, file: Path, right: Any) -> str:
    """Return what is wrong with how a use of a damaged index ended, "" for nothing."""
    try:
        found = work(copy)
    except RasError as error:
        # a folder without its manifest is no index, and a checksum stands for the file it is of
        gone = file.name in ("index.json", "kg.json") and "no " in str(error)
        return "" if gone or file.name.removesuffix(".sum") in str(error) else f"no file named: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if found == right else f"another result, {found} instead of {right}"[:300]


def _tries(attack: Attack, whole: Path) -> Iterator[tuple[Path, str, Path]]:
    """Yield each file with each damage, and a copy of the folder that has it."""
    copy = whole.parent / "copy"
    tries = [(file, damage) for file in _files(whole) for damage in DAMAGES]
    attack.random.shuffle(tries)
    for number in attack.times(len(tries)):
        file, damage = tries[number]
        if _damaged(whole, copy, file, damage, attack.random):
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


def test_searching_large_files(attack: Attack, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged large file, of which a search compares the size alone: any result, or an error of ours."""
    monkeypatch.setattr(checksums, "SMALL", 0)
    for file, damage, copy in _tries(attack, folder):
        for use, search in READING.items() if file.suffix != ".faiss" else ():  # FAISS reads its own files
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
    harmless = ("writer.lock", "ingest.sqlite.sum", "facts.sqlite.sum")
    assert not any(report.problem for report in examine(folder))
    for file, damage, copy in _tries(attack, folder):
        # more at the end of a log is what an interrupted write leaves, and nobody reads it
        if file.name in harmless or (damage == "appended to" and file.suffix in (".jsonl", ".f32")):
            continue
        told = [report.problem for report in examine(copy) if report.problem]
        attack.expect(any(file.name in problem for problem in told), f"{file} {damage}: told {told}")


REPLY = '{"text": "Answer: Edinburgh [1]", "truncated": false, "input_tokens": 12, "output_tokens": 5}'
VALUES = (None, True, 5, -1, 1.5, "", "many", "\ud800", "a\x01b", [], [1], ["x"], [None], [{}], {}, {"a": 1}, [["x"]])


def _mangled(text: str, random: Random) -> str:
    """Return `text` cut, with another character, or with a value of another kind."""
    at = random.randrange(len(text))
    return random.choice(
        (
            text[:at],
            text[:at] + chr(random.randrange(1, 0xD800)) + text[at + 1 :],
            text.replace(random.choice(text.split()), json.dumps(random.choice(VALUES)), 1),
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
            file.execute("UPDATE replies SET reply = ?", (row,))
        try:
            attack.expect(isinstance(chat.complete(request).text, str), f"{row}: no text")
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
    path, good = tmp_path / "records.jsonl", QUESTION if kind == "questions" else PASSAGE
    for _ in attack.times(500):
        bad = {**good, attack.random.choice(list(good)): attack.random.choice(VALUES)}
        path.write_text(json.dumps({**good, "id": "good"}) + "\n" + json.dumps(bad) + "\n")
        left_out: list[IngestError] = []
        try:
            if kind == "questions":
                found = PLAIN.load(path, on_bad=left_out.append)
                ids = [(one.id, one.hops, one.decomposition, one.choices, one.label)[0] for one in found]
                results = [failed_result(one, ValueError("x"), seconds=0) for one in found]
                assert summarise(results)
            else:
                ids = [one.id for one in load_passages(path, left_out.append)]
            named = all("line 2" in str(error) for error in left_out)
            attack.expect(named and len(ids) + len(left_out) == 2, f"{bad}: {ids} and {left_out}")
        except Exception as error:
            attack.expect(False, f"{bad}: {type(error).__name__}: {error}")
