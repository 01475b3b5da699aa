"""Attacks on commands that write, delete and replace: killed, or out of disk space, and then given again.

After the second call the index equals that of an unbroken run, no file of the past is left, and no byte of any file
holds the deleted text, its names, its terms, its vectors, or the document's own name. Segments of few passages are
saved, too, so that they are attacked like those of large indexes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from ras_agent.contracts.errors import EditError, IngestError
from ras_agent.contracts.records import Extraction, Passage, Source, Triple
from ras_agent.tools.index import segment, store
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.passages import hash_of, term_hash
from ras_agent.tools.index.store import CACHE, PassageIndex
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.kg.disk import read_graph
from ras_agent.tools.kg.edit import (
    add_fact,
    merge_entities,
    remove_fact,
    replace_fact,
    undo_edit,
)
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.store.sqlite import FILE
from ras_agent.tools.structure.build_graph import build_graph
from tests.faults.attack import Attack
from tests.faults.interruptions import Ended, run

SECRET = "The door of Quuxworth | opens with | Hunterzz"
# of a person's edits
WORDS = (
    "Wobblemere | of | persons",
    "Zanderfeld | and | Quillonby",
)
OLD, NEW = (
    "The old gate | is named | Vexillology",
    "The new gate | is named | River Gate",
)


class Hashes:
    """Embeds a text as numbers of its digest."""

    name, dimension = "hashes", 8

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        digests = [
            np.frombuffer(hashlib.blake2b(text.encode()).digest()[:16], np.uint16)
            for text in texts
        ]
        vectors = np.array(digests, np.float32).reshape(-1, 8) + 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Lines:
    """Reads every line as a fact."""

    name = "lines"

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        found = [
            Triple(*line.split(" | "), (Source(passage.id),))  # type: ignore[arg-type]
            for passage in passages
            for line in passage.text.splitlines()
        ]
        return Extraction(tuple(found))


def _nothing(*_: Path) -> None:
    pass


def _index(docs: Path, out: Path, *, vectors: bool = False, **options: Any) -> None:
    ingest([docs], out, embedder=Hashes() if vectors else None, **options)


def _index_one(docs: Path, out: Path) -> None:
    ingest([docs / "f0.txt"], out)


def _forget(docs: Path, out: Path) -> None:
    ingest([], out, forget=["docs/secret.txt", "docs/old.txt"])


def _build(docs: Path, out: Path, *, vectors: bool = False) -> None:
    build_graph(out, extractor=Lines(), embedder=Hashes() if vectors else "")


def _delete(docs: Path, out: Path) -> None:
    delete_documents(out, ["docs/secret.txt", "docs/old.txt"])


def _both(docs: Path, out: Path, *, vectors: bool = False, **options: Any) -> None:
    _index(docs, out, vectors=vectors, **options)
    _build(docs, out, vectors=vectors)


def _graph_of_before(docs: Path, out: Path) -> None:
    """Build a graph of the texts as they were, and index them as they are: the graph has lost their earlier facts."""
    _both(docs, out, vectors=True)
    _change(docs)
    ingest([docs], out, embedder=Hashes(), prune=True)


def _correct(docs: Path, out: Path, *, vectors: bool = False) -> None:
    """Correct a fact of a text that stays, in words that nobody else has."""
    fact, right = ("Town 1", "is on", "River 1"), ("Town 1", "is on", "Wobblemere")
    replace_fact(out, fact, right, by="Ada", embedder=Hashes() if vectors else None)


def _undo(docs: Path, out: Path, *, vectors: bool = False) -> None:
    with suppress(EditError):  # a call that was killed may have taken it out of the log
        undo_edit(out, 1, embedder=Hashes() if vectors else None)


def _corrected(docs: Path, out: Path, *, vectors: bool = False) -> None:
    _both(docs, out, vectors=vectors)
    _correct(docs, out, vectors=vectors)


def _edited(docs: Path, out: Path, *, vectors: bool = False) -> None:
    """Edit the facts of a text that will go, in every way."""
    _both(docs, out, vectors=vectors)
    embedder = Hashes() if vectors else None
    old = ("The old gate", "is named", "Vexillology")
    replace_fact(
        out, old, ("The old gate", "was named", "Wobblemere"), embedder=embedder
    )
    add_fact(
        out,
        ("Town 1", "has", "Quillonby"),
        passage_id="docs/secret.txt",
        quote="door",
        embedder=embedder,
    )
    merge_entities(out, "Hunterzz", "Zanderfeld", embedder=embedder)
    remove_fact(out, ("Town 2", "is on", "River 2"), embedder=embedder)


def _remove(docs: Path) -> None:
    (docs / "secret.txt").unlink(missing_ok=True)


def _change(docs: Path) -> None:
    _remove(docs)
    (docs / "old.txt").write_text(NEW)


Call = Callable[[Path, Path], None]


class Command(NamedTuple):
    """Describes an attacked command: the files before it, how they changed since, the call, and the words that have
    to be gone.

    before, call: get the folder of files and that of the index.
    """

    name: str
    before: Call
    change: Callable[[Path], None]
    call: Call
    gone: tuple[str, ...] = ()


_BOTH = (SECRET, OLD)
_with_vectors: Call = partial(_index, vectors=True)
_graph_with_vectors: Call = partial(_both, vectors=True)
COMMANDS = [
    Command("index", _nothing, _nothing, _index),
    Command("index, vectors", _nothing, _nothing, _with_vectors),
    Command(
        "index update --prune", _index, _change, partial(_index, prune=True), _BOTH
    ),
    Command(
        "index update --prune, vectors",
        _with_vectors,
        _change,
        partial(_index, vectors=True, prune=True),
        _BOTH,
    ),
    Command("index --prune", _index, _remove, partial(_index, prune=True), (SECRET,)),
    Command(
        "index --prune, graph with vectors",
        _graph_with_vectors,
        _remove,
        partial(_index, vectors=True, prune=True),
        (SECRET,),
    ),
    Command("index --forget", _index, _nothing, _forget, _BOTH),
    Command("index --forget, graph", _both, _nothing, _forget, _BOTH),
    Command("kg build", _index, _nothing, _build),
    Command(
        "kg build, vectors", _with_vectors, _nothing, partial(_build, vectors=True)
    ),
    Command(
        "index update --prune, graph with vectors",
        _graph_with_vectors,
        _change,
        partial(_index, vectors=True, prune=True),
        _BOTH,
    ),
    Command(
        "kg build update, vectors",
        _graph_of_before,
        _nothing,
        partial(_build, vectors=True),
    ),
    Command("kg edit", _both, _nothing, _correct),
    Command(
        "kg edit, vectors",
        _graph_with_vectors,
        _nothing,
        partial(_correct, vectors=True),
    ),
    Command("kg edit undo", _corrected, _nothing, _undo, (WORDS[0],)),
    Command(
        "kg edit undo, vectors",
        partial(_corrected, vectors=True),
        _nothing,
        partial(_undo, vectors=True),
        (WORDS[0],),
    ),
    Command(
        "index --forget, edited graph", _edited, _nothing, _forget, (*_BOTH, *WORDS)
    ),
    Command(
        "kg delete, edited graph with vectors",
        partial(_edited, vectors=True),
        _nothing,
        _delete,
        (*_BOTH, *WORDS),
    ),
    Command("kg delete", _both, _nothing, _delete, _BOTH),
    Command("kg delete, vectors", _graph_with_vectors, _nothing, _delete, _BOTH),
]
PLAIN = [command for command in COMMANDS if "vectors" not in command.name]


def _write(docs: Path) -> None:
    docs.mkdir()
    for number in range(8):
        (docs / f"f{number}.txt").write_text(
            f"Town {number} | is on | River {number % 3}"
        )
    (docs / "secret.txt").write_text(SECRET)
    (docs / "old.txt").write_text(OLD)


class Case:
    """Holds the files before a command, and tries it: interrupted, then given again."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.command, self.docs, self.before, self.folder = (
            command,
            folder / "docs",
            folder / "before",
            folder,
        )
        _write(self.docs)
        command.before(self.docs, self.before)
        self.secrets = _traces(command.gone)
        assert not self.secrets or self.found(self.before), (
            "nothing is there that could be erased"
        )
        command.change(self.docs)
        self.count = 0
        self.whole = self._run(self._copy())
        assert not self.whole.error, self.whole.error
        self.expected = _state(folder / "out-1")
        assert not self.found(folder / "out-1")
        started = time.perf_counter()
        self._run(self._copy())
        self.seconds = time.perf_counter() - started

    def attempt(self, **interruptions: Any) -> str:
        """Interrupt the command, once or several times, and give it again; return the faults, "" for nothing.

        interruptions: as `run` takes them; a list gives one for each of several calls.
        """
        out = self._copy()
        ((name, values),) = interruptions.items()
        for value in values if isinstance(values, list) else [values]:
            self._run(out, **{name: value})
        wrong = ""
        try:
            self.command.call(self.docs, out)
        except IngestError as error:
            # only if nothing is left may it say that there is nothing of that name
            wrong = (
                f"refused, with {left[0]} left: {error}"
                if (left := self.found(out))
                else ""
            )
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        if not wrong and (found := self.found(out)):
            wrong = found[0]
        elif not wrong and (differs := _difference(self.expected, _state(out))):
            wrong = f"differs: {differs}"
        shutil.rmtree(out)
        return wrong

    def interrupted(self, number: int) -> Path:
        """Return the index after the command was killed at its file operation `number`."""
        out = self._copy()
        self._run(out, kill_at=number)
        return out

    def found(self, out: Path) -> list[str]:
        """Return the files that hold something that was deleted."""
        held = []
        for path in sorted(out.rglob("*")) if self.secrets else ():
            content = path.read_bytes() if path.is_file() else b""
            both = content + content.lower()
            held += [
                f"{path.relative_to(out)}: {secret!r}"
                for secret in self.secrets
                if secret in both
            ]
        return held

    def _run(self, out: Path, **interruption: Any) -> Ended:
        return run(lambda: self.command.call(self.docs, out), **interruption)

    def _copy(self) -> Path:
        self.count += 1
        out = self.folder / f"out-{self.count}"
        if self.before.exists():
            shutil.copytree(self.before, out)
        return out


def _traces(texts: Sequence[str]) -> list[bytes]:
    """Return the words that have to be gone with the texts: words, the file's name, hashes, and vectors of texts and names."""
    if not texts:
        return []
    names = [name for text in texts for name in text.split(" | ")[::2]]
    words = [
        word.lower().encode()
        for name in names
        for word in name.split()
        if len(word) > 7
    ]
    # a file's name is its title
    indexed = [f"{'secret' if text == SECRET else 'old'}. {text}" for text in texts]
    hashes = [hash_of(text).to_bytes(8, "little") for text in indexed]
    terms = Tokeniser().terms(" ".join(word.decode() for word in words))
    hashes += [
        hash_of(f"docs/{text}.txt").to_bytes(8, "little")
        for text in ("secret",)
        if SECRET in texts
    ]
    hashes += [term_hash(term).to_bytes(8, "little") for term in terms]
    vectors = [vector.tobytes() for vector in Hashes().embed(indexed)]
    of_names = [vector.astype(np.float16).tobytes() for vector in Hashes().embed(names)]
    return [
        *([b"secret"] if SECRET in texts else []),
        *words,
        *hashes,
        *vectors,
        *of_names,
    ]


def _state(out: Path) -> dict[str, Any]:
    """Return all that the index holds, whatever the numbers in its files' names."""
    index = PassageIndex.open(out, None)
    snapshot = index.snapshot
    held: dict[str, Any] = {
        "passages": [passage.to_dict() for passage in index.passages],
        "finished": index.is_finished(),
    }
    if snapshot.manifest.embedder:
        held["vectors"] = snapshot.read_vectors(snapshot.column("cell")).tobytes()
    held |= {
        name: snapshot.column(name).tobytes()
        for name in ("id", "document", "text", "length")
    }
    for name in ("bm25", "dense") if snapshot.manifest.embedder else ("bm25",):
        found = retriever_over(
            PassageIndex.open(out, Hashes() if name == "dense" else None), name
        )
        held[name] = [
            (hit.passage.id, round(hit.score, 4))
            for hit in found.retrieve("Which town is on River 1?", 8)
        ]
    index.close()
    held |= {
        path.name: ""
        for path in out.iterdir()
        if not path.name.startswith((CACHE, f"{FILE}-"))
    }
    held["cache"] = _odd_segments(out / CACHE, snapshot.state.epoch)
    with closing(sqlite3.connect(out / FILE)) as journal:
        for table in ("documents", "files"):
            columns = {"documents": "id, file, place, digest", "files": "label, stamp"}[
                table
            ]
            held[table] = journal.execute(
                f"SELECT {columns} FROM {table} ORDER BY 1"
            ).fetchall()
        held["names"] = journal.execute(
            "SELECT name FROM kg_names ORDER BY 1"
        ).fetchall()
    if KGIndex.exists(out):
        held |= _graph(out)
    return held


def _graph(out: Path) -> dict[str, Any]:
    """Return the graph of an index, which has to be saved as it is in the database, and by itself."""
    (saved,) = (
        path for path in (out / CACHE / "graph").iterdir() if path.suffix != ".sum"
    )
    as_saved = read_graph(saved, "").manifest
    shutil.rmtree(out / CACHE / "graph")
    graph = KGIndex.open(out, Hashes() if as_saved.embedder else None)
    vectors = (
        ()
        if graph.entity_vectors is None
        else (np.asarray(graph.entity_vectors), graph.relation_vectors)
    )
    return {
        "graph": as_saved,
        "made again": graph.manifest == as_saved,
        "vectors of names": [np.asarray(one).tobytes() for one in vectors],
        "edits": [(str(edit), edit.anchors) for edit in graph.edits],
    }


def _odd_segments(cache: Path, epoch: int) -> list[str]:
    """Return the parts of a cache that should not be there: other epochs, half a segment, two of the same cells, damage."""
    folders = [path.name for path in cache.iterdir()] if cache.exists() else []
    odd = [name for name in folders if name not in (str(epoch), "graph")]
    folder = cache / str(epoch)
    odd += (
        [name for name in os.listdir(folder) if name.endswith(".new")]
        if folder.exists()
        else []
    )
    odd += [
        f"{path.name}: {problem}"
        for path, problem in segment.check_saved(folder)
        if problem
    ]
    spans = sorted(
        (first, end)
        for first, ends in segment.saved_segments(folder).items()
        for end in ends
    )
    return odd + [
        f"{one} and {other}" for one, other in pairwise(spans) if one[1] > other[0]
    ]


def _difference(expected: dict[str, Any], found: dict[str, Any]) -> str:
    names = sorted(expected.keys() | found.keys())
    return ", ".join(name for name in names if expected.get(name) != found.get(name))


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save segments of few passages, and forget few cells of deleted ones."""
    monkeypatch.setattr(segment, "SAVED_FROM", 2)
    monkeypatch.setattr(store, "_RENUMBER_FROM", 1)


@pytest.fixture(params=COMMANDS, ids=lambda command: command.name)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(request.param, tmp_path)


def test_killed_at_each_file_operation(attack: Attack, case: Case) -> None:
    """kill -9 at each file operation, then again: as unbroken, nothing deleted left."""
    for number in _some(attack, case.whole.operations):
        wrong = case.attempt(kill_at=number)
        attack.expect(not wrong, f"operation {number}: {wrong}")


def test_killed_at_random_moments(attack: Attack, case: Case) -> None:
    """kill -9 at one to three random moments, then again: as unbroken, nothing deleted left."""
    for _ in attack.times(50):
        moments = [
            attack.random.uniform(0, case.seconds)
            for _ in range(attack.random.randint(1, 3))
        ]
        wrong = case.attempt(kill_after=moments)
        attack.expect(not wrong, f"after {moments} s: {wrong}")


_REMOVING = [
    command
    for command in COMMANDS
    if command.name in ("index --forget, graph", "kg delete")
]


@pytest.mark.parametrize(
    "case", _REMOVING, ids=lambda command: command.name, indirect=True
)
@pytest.mark.parametrize("other", [_build, _index_one], ids=["kg build", "index"])
def test_another_command_after_a_kill(attack: Attack, case: Case, other: Call) -> None:
    """kill -9 at each file operation, then another command: a text that is gone from the index is gone from every file."""
    for number in _some(attack, case.whole.operations):
        out = case.interrupted(number)
        other(case.docs, out)
        there = PassageIndex.open(out).document_ids()
        # the name may be there still if the command was killed before it was noted that the text is gone
        left = (
            []
            if "docs/secret.txt" in there
            else [name for name in case.found(out) if "b'secret'" not in name]
        )
        attack.expect(not left, f"operation {number}: {left[:1]}")
        shutil.rmtree(out)


@pytest.mark.parametrize("case", PLAIN, ids=lambda command: command.name, indirect=True)
def test_out_of_disk_space_from_each_file_operation_on(
    attack: Attack, case: Case
) -> None:
    """Disk full from each file operation on, then again: as unbroken, nothing deleted left."""
    for number in _some(attack, case.whole.operations):
        wrong = case.attempt(fail_from=number)
        attack.expect(not wrong, f"operation {number}: {wrong}")


def _some(attack: Attack, operations: int) -> list[int]:
    """Return all numbers of operations, or as many as the command line asks for."""
    return sorted(
        attack.random.sample(range(operations), len(attack.times(operations)))
    )
