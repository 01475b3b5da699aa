"""Attacks on what is deleted or replaced: commands that are killed, or out of disk space, and then given again.

After the second call the index equals that of an unbroken run, no file of the past is left, and no byte of any file
holds the deleted text, its names, its vectors, or the document's own name.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ras_agent.errors import IngestError
from ras_agent.records import Extraction, Passage, Source, Triple
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.row_table import hash_of
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg import build
from ras_agent.tools.kg.build import build_graph, delete_documents
from tests.faults.attack import Attack
from tests.faults.interruptions import Ended, run

SECRET = "The door of Quuxworth | opens with | Hunterzz"
OLD, NEW = "The old gate | is named | Vexillology", "The new gate | is named | River Gate"
GONE = (b"quuxworth", b"hunterzz", b"secret", b"vexillology", b"old gate")


class Hashes:
    """Embeds a text as numbers of its digest."""

    name, dimension = "hashes", 8

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        digests = [np.frombuffer(hashlib.blake2b(text.encode()).digest()[:16], np.uint16) for text in texts]
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


@dataclass(frozen=True)
class Command:
    """Describes an attacked command: what was there before it, and the call; both get files and the index."""

    name: str
    before: Callable[[Path, Path], object]
    call: Callable[[Path, Path], object]
    changes: bool = True


def _embedder(vectors: bool) -> Any:
    return Hashes() if vectors else None


def _index(docs: Path, out: Path, *, vectors: bool = False, **options: Any) -> object:
    return ingest([docs], out, embedder=_embedder(vectors), erase_too=lambda: build.erase_gone(out), **options)


def _graph(docs: Path, out: Path, *, vectors: bool = False) -> object:
    return build_graph(out, extractor=Lines(), embedder=_embedder(vectors) or "")


def _both(docs: Path, out: Path, *, vectors: bool = False) -> None:
    _index(docs, out, vectors=vectors)
    _graph(docs, out, vectors=vectors)


def _both_then_index(docs: Path, out: Path, *, vectors: bool = False) -> None:
    """Build a graph of the old texts, then index the new ones, for a graph that has to follow."""
    _both(docs, out, vectors=vectors)
    _change(docs)
    ingest([docs], out, embedder=_embedder(vectors), prune=True)


def _nothing(docs: Path, out: Path) -> None:
    pass


def _both_with_vectors(docs: Path, out: Path) -> None:
    _both(docs, out, vectors=True)


COMMANDS = [
    Command("index", _nothing, _index, changes=False),
    Command("index, vectors", _nothing, lambda docs, out: _index(docs, out, vectors=True), changes=False),
    Command("index update --prune", _index, lambda docs, out: _index(docs, out, prune=True)),
    Command(
        "index update --prune, vectors",
        lambda docs, out: _index(docs, out, vectors=True),
        lambda docs, out: _index(docs, out, vectors=True, prune=True),
    ),
    Command("index update --prune, graph", _both_with_vectors, lambda docs, out: _both_after(docs, out)),
    Command("index --forget", _index, lambda docs, out: ingest([], out, forget=["docs/secret.txt", "docs/old.txt"])),
    Command(
        "index --forget, graph",
        _both_with_vectors,
        lambda docs, out: ingest(
            [], out, forget=["docs/secret.txt", "docs/old.txt"], erase_too=lambda: build.erase_gone(out)
        ),
    ),
    Command("kg build", _index, _graph, changes=False),
    Command(
        "kg build, vectors",
        lambda docs, out: _index(docs, out, vectors=True),
        lambda docs, out: _graph(docs, out, vectors=True),
        changes=False,
    ),
    Command(
        "kg build update, vectors",
        lambda docs, out: _both_then_index(docs, out, vectors=True),
        lambda docs, out: _graph(docs, out, vectors=True),
    ),
    Command("kg delete", _both, lambda docs, out: delete_documents(out, ["docs/secret.txt", "docs/old.txt"])),
    Command(
        "kg delete, vectors",
        _both_with_vectors,
        lambda docs, out: delete_documents(out, ["docs/secret.txt", "docs/old.txt"]),
    ),
]


def _both_after(docs: Path, out: Path) -> None:
    _index(docs, out, vectors=True, prune=True)
    _graph(docs, out, vectors=True)


def _write(docs: Path) -> None:
    docs.mkdir()
    for number in range(8):
        (docs / f"f{number}.txt").write_text(f"Town {number} | is on | River {number % 3}")
    (docs / "secret.txt").write_text(SECRET)
    (docs / "old.txt").write_text(OLD)


def _change(docs: Path) -> None:
    (docs / "secret.txt").unlink(missing_ok=True)
    (docs / "old.txt").write_text(NEW)


class Case:
    """Holds what was there before a command, and tries it: interrupted, then given again."""

    def __init__(self, command: Command, folder: Path) -> None:
        self.command, self.docs, self.before, self.folder = command, folder / "docs", folder / "before", folder
        _write(self.docs)
        command.before(self.docs, self.before)
        self.secrets = self._secrets() if command.changes else []
        if command.changes:
            _change(self.docs)
        self.count = 0
        self.whole = self._run(self._copy())
        assert not self.whole.error, self.whole.error
        self.expected = _state(folder / "out-1")
        assert not self.found(folder / "out-1")
        started = time.perf_counter()
        self._run(self._copy())
        self.seconds = time.perf_counter() - started

    def attempt(self, **interruptions: Any) -> str:
        """Interrupt the command, once or several times, and give it again; return what is wrong then, "" for nothing.

        interruptions: as `run` takes them; a list gives one for each of several calls.
        """
        out = self._copy()
        ((name, values),) = interruptions.items()
        for value in values if isinstance(values, list) else [values]:
            self._run(out, **{name: value})
        left = self.found(out)
        wrong = ""
        try:
            self.command.call(self.docs, out)
        except IngestError as error:
            # only if nothing was left to do may it say that there is nothing of that name
            wrong = f"refused, with {left[0]} left: {error}" if left else ""
        if not wrong and (found := self.found(out)):
            wrong = found[0]
        elif not wrong and (differs := _difference(self.expected, _state(out))):
            wrong = f"differs: {differs}"
        shutil.rmtree(out)
        return wrong

    def found(self, out: Path) -> list[str]:
        """Return the files that hold something that was deleted."""
        held = []
        for path in sorted(out.rglob("*")) if self.secrets else ():
            content = path.read_bytes() if path.is_file() else b""
            lower = content.lower()
            held += [f"{path.relative_to(out)}: {secret!r}" for secret in self.secrets if secret in content + lower]
        return held

    def _run(self, out: Path, **interruption: Any) -> Ended:
        return run(lambda: self.command.call(self.docs, out), **interruption)

    def _copy(self) -> Path:
        self.count += 1
        out = self.folder / f"out-{self.count}"
        if self.before.exists():
            shutil.copytree(self.before, out)
        return out

    def _secrets(self) -> list[bytes]:
        """Return what must be gone: words, hashes of texts, and vectors of texts and names."""
        texts = [SECRET, OLD]
        names = [name for text in texts for name in text.split(" | ")[::2]]
        vectors = Hashes()
        return [
            *GONE,
            *(hash_of(text).to_bytes(8, "little") for text in texts),
            *(vector.tobytes() for vector in vectors.embed(texts)),
            *(vector.astype(np.float16).tobytes() for vector in vectors.embed(names)),
        ]


def _state(out: Path) -> dict[str, Any]:
    """Return all that the index holds, whatever the numbers in its files' names."""
    index = PassageIndex.open(out, None)
    held: dict[str, Any] = {"passages": [passage.to_dict() for passage in index.passages]}
    if index.snapshot.vector_log is not None:
        table = index.snapshot.table
        held["vectors"] = index.snapshot.vector_log.take(table["vector"], table["vector_sum"]).tobytes()
    for path in sorted(out.rglob("*")):
        name = re.sub(r"-\d+", "-N", str(path.relative_to(out)))
        exact = path.is_file() and re.match(r"bm25|passages|kg/graph|vectors-N.faiss", name)
        held[name] = path.read_bytes() if exact else ""
    with closing(sqlite3.connect(out / "ingest.sqlite")) as journal:
        held["journal"] = journal.execute("SELECT id, file, place, digest FROM documents ORDER BY id").fetchall()
        held["files"] = journal.execute("SELECT label, stamp FROM files ORDER BY label").fetchall()
    if (out / "kg" / "facts.sqlite").exists():
        with closing(sqlite3.connect(out / "kg" / "facts.sqlite")) as facts:
            held["names"] = sorted(facts.execute("SELECT name FROM names").fetchall())
            held["pending"] = facts.execute("SELECT * FROM pending_vectors").fetchall()
    return held


def _difference(expected: dict[str, Any], found: dict[str, Any]) -> str:
    names = sorted(expected.keys() | found.keys())
    return ", ".join(name for name in names if expected.get(name) != found.get(name))


@pytest.fixture(params=COMMANDS, ids=lambda command: command.name)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(request.param, tmp_path)


def test_killed_at_each_file_operation(attack: Attack, case: Case) -> None:
    """kill -9 at each file operation, then again: as unbroken, nothing deleted left."""
    for number in range(case.whole.operations):
        wrong = case.attempt(kill_at=number)
        attack.expect(not wrong, f"operation {number}: {wrong}")


def test_killed_at_random_moments(attack: Attack, case: Case) -> None:
    """kill -9 at one to three random moments, then again: as unbroken, nothing deleted left."""
    for _ in attack.times(50):
        moments = [attack.random.uniform(0, case.seconds) for _ in range(attack.random.randint(1, 3))]
        wrong = case.attempt(kill_after=moments)
        attack.expect(not wrong, f"after {moments} s: {wrong}")


def test_out_of_disk_space_from_each_file_operation_on(attack: Attack, case: Case) -> None:
    """Disk full from each file operation on, then again: as unbroken, nothing deleted left."""
    for number in range(case.whole.operations):
        wrong = case.attempt(fail_from=number)
        attack.expect(not wrong, f"operation {number}: {wrong}")
