"""Attacks by several processes at once on one index, graph, run, study or cache: nothing is lost, nothing is "damaged".

A second writer waits or is refused with a message; readers see one whole generation after another.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ras_agent.contracts.errors import IngestError, RunError
from ras_agent.contracts.records import Passage
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import NO_ANSWER
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.runner import evaluate, question_work
from ras_agent.eval.study.design import Design, Shown
from ras_agent.eval.study.run import StudyFolder, run_study
from ras_agent.tools.index import segment, store
from ras_agent.tools.index.ingest import ingest
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.registered import retriever_over
from ras_agent.tools.store.cache import StoredCache
from ras_agent.tools.structure.build_graph import build_graph
from ras_agent.tools.workers.pool import Here
from tests.faults.attack import Attack

Work = Callable[[], Iterator[str]]
"""Does one operation after another, and yields what went wrong in each, "" for nothing."""
BUSY = ("another run is writing", "another process is writing")


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


def together(attack: Attack, *works: Work) -> None:
    """Work each of `works` in a process of its own, all at once, and count their operations."""
    pipes = []
    for number, work in enumerate(works):
        reading, writing = os.pipe()
        if not os.fork():
            told: list[str] = []
            try:
                told += work()
            except BaseException:
                told.append(f"process {number}: {traceback.format_exc()}")
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                json.dump(told, pipe)
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    for reading in pipes:
        with os.fdopen(reading, encoding="utf-8") as pipe:
            for what in json.load(pipe):
                attack.expect(not what, what)
    for _ in works:
        os.wait()


def until_free(work: Callable[[], object]) -> Iterator[str]:
    """Do `work`, again and again while it is refused because another process writes; every refusal is an operation."""
    while True:
        try:
            work()
        except (IngestError, RunError) as error:
            yield (
                ""
                if any(words in str(error) for words in BUSY)
                else f"refused with {error}"
            )
            time.sleep(0.005)
        else:
            yield ""
            return


def _write(folder: Path, texts: Mapping[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_two_runs_into_one_index(attack: Attack, tmp_path: Path) -> None:
    """two `index` runs of folders of one name into one index: every file of both is there."""

    def run(folder: Path, out: Path) -> Iterator[str]:
        return until_free(lambda: ingest([folder], out))

    folders = [
        _write(tmp_path / name / "docs", {f"f{at}": f"{name} {at}" for at in range(40)})
        for name in "ab"
    ]
    first = _write(tmp_path / "first", {"x": "first"})
    for round_ in attack.times(10):
        out = tmp_path / f"i{round_}"
        ingest([first], out)
        together(attack, *(partial(run, folder, out) for folder in folders))
        texts = sorted(passage.text for passage in PassageIndex.open(out).passages)
        wanted = sorted(
            ["first", *(f"{name} {at}" for name in "ab" for at in range(40))]
        )
        attack.expect(
            texts == wanted, f"round {round_}: {len(texts)} of {len(wanted)} texts"
        )


def test_two_builds_of_one_graph(attack: Attack, tmp_path: Path) -> None:
    """two `kg build` of one index: the graph is that of one."""

    def build(out: Path) -> Iterator[str]:
        return until_free(lambda: build_graph(out, embedder=""))

    docs = _write(
        tmp_path / "docs",
        {f"f{at}": f"Bell {at} was born in Edinburgh." for at in range(40)},
    )
    for round_ in attack.times(5):
        out = tmp_path / f"i{round_}"
        ingest([docs], out)
        together(attack, partial(build, out), partial(build, out))
        graph = KGIndex.open(out)
        attack.expect(
            len(graph.documents) == 40,
            f"round {round_}: {len(graph.documents)} of 40 passages",
        )
        attack.expect(
            build_graph(out, embedder="").read == 0,
            f"round {round_}: something is read again",
        )


def test_writers_of_one_cache(attack: Attack, tmp_path: Path) -> None:
    """four processes write one cache of replies or facts: every value is there."""
    for holds in ("replies", "facts"):
        path = tmp_path / f"{holds}.sqlite"

        def fill(number: int, path: Path = path, holds: str = holds) -> Iterator[str]:
            cache = StoredCache(path, holds)
            for at in range(200):
                cache.put(f"{number} {at}", b"x")
                cache.put(f"shared {at}", b"y")
                there = cache.get(f"{number} {at}") == b"x"
                yield "" if there else f"{holds}: value {at} of {number} is not there"

        together(attack, *(lambda number=number: fill(number) for number in range(4)))  # type: ignore[misc]
        attack.expect(
            len(StoredCache(path, holds)) == 1000, f"not all {holds} are there"
        )


QUESTIONS = [
    Question(f"q{number}", f"Question {number}?", ("yes",)) for number in range(60)
]


async def _answer(question: Question) -> Mapping[str, Any]:
    return {**NO_ANSWER, "answer": "yes", "stop_reason": "sufficient"}


SYSTEM = Here(question_work(_answer, lambda question, out: {"em": 1.0}))


def test_errors_are_retried_while_another_process_writes(
    attack: Attack, tmp_path: Path
) -> None:
    """`eval --retry-errors` on a folder that another process writes to: no finished result is lost."""
    for round_ in attack.times(3):
        path = tmp_path / f"run{round_}"
        RunFolder.begin(path, {"name": "r"})

        def write(path: Path = path) -> Iterator[str]:
            folder = RunFolder(path)
            while True:
                try:
                    with folder.writing():
                        for number in range(400):
                            folder.append(Result(f"old{number}", "x" * 2000))
                            yield ""
                    return
                except RunError:
                    continue

        def retry(path: Path = path) -> Iterator[str]:
            while not (path / "results.jsonl").exists():
                time.sleep(0.001)
            for _ in until_free(lambda: RunFolder.begin(path, {"name": "r"})):
                yield ""
            yield from until_free(
                lambda: evaluate(SYSTEM, QUESTIONS, RunFolder(path), retry_errors=True)
            )

        together(attack, write, retry)
        ids = [result.id for result in RunFolder(path).results()]
        attack.expect(
            len(ids) == len(set(ids)) == 460,
            f"round {round_}: {len(set(ids))} of 460 results",
        )


def test_two_evaluations_of_one_folder(attack: Attack, tmp_path: Path) -> None:
    """three `eval` begin and finish one run: each question has one result, one manifest is written."""
    for round_ in attack.times(5):
        path = tmp_path / f"run{round_}"

        def run(path: Path = path) -> Iterator[str]:
            yield from until_free(
                lambda: evaluate(
                    SYSTEM,
                    QUESTIONS,
                    RunFolder.begin(path, {"name": "r"}),
                    concurrency=4,
                )
            )

        together(attack, run, run, run)
        ids = sorted(result.id for result in RunFolder(path).results())
        attack.expect(
            ids == sorted(question.id for question in QUESTIONS),
            f"round {round_}: {len(ids)} results",
        )


def test_two_studies_of_one_folder(attack: Attack, tmp_path: Path) -> None:
    """two `study` in one folder: the second is refused while the first runs."""
    for round_ in attack.times(5):
        path = tmp_path / f"study{round_}"
        StudyFolder.begin(path, "roles", {})
        inside = path / "inside"

        def show(_: object, inside: Path = inside) -> Shown:
            inside.mkdir()  # fails if another is here
            time.sleep(0.02)
            inside.rmdir()
            return Shown("", {})

        def study(design: Design, path: Path = path) -> Iterator[str]:
            return until_free(lambda: run_study(design, path))

        design = Design("roles", (), show, "f1")
        together(attack, partial(study, design), partial(study, design))


@pytest.mark.parametrize("vectors", [False, True], ids=["bm25", "vectors"])
def test_nine_processes_on_one_index_and_its_graph(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: bool
) -> None:
    """nine processes on one index and graph: two ingests, upserts, deletions, `kg build` and four readers."""
    monkeypatch.setattr(segment, "SAVED_FROM", 4)
    monkeypatch.setattr(store, "_RENUMBER_FROM", 20)
    if vectors:
        pytest.importorskip("faiss")
    out, embedder = tmp_path / "i", Hashes() if vectors else None
    fixed = {
        f"f{at}": f"Fixed text {at} about Bell, who was born in Edinburgh."
        for at in range(40)
    }
    ingest([_write(tmp_path / "fixed", fixed)], out, embedder=embedder)
    build_graph(out, embedder="")
    end = time.monotonic() + max(1.0, len(attack.times(20)))

    def ingests(name: str) -> Iterator[str]:
        folder = tmp_path / name / "docs"
        for turn in count():
            if time.monotonic() > end:
                return
            _write(folder, {f"f{turn % 10}": f"Text {turn} of {name}."})
            yield from until_free(lambda: ingest([folder], out, embedder=embedder))

    def upserts() -> Iterator[str]:
        index = PassageIndex.open(out, embedder)
        for turn in count():
            if time.monotonic() > end:
                return
            index.upsert(
                [
                    Passage(
                        f"u{turn % 7}", f"Upserted {turn}.", document_id=f"u{turn % 7}"
                    )
                ]
            )
            yield ""

    def deletes() -> Iterator[str]:
        index = PassageIndex.open(out, embedder)
        for turn in count():
            if time.monotonic() > end:
                return
            index.delete_document(f"u{turn % 7}")
            yield ""

    def builds() -> Iterator[str]:
        while time.monotonic() < end:
            yield from until_free(lambda: build_graph(out, embedder=""))

    def reads() -> Iterator[str]:
        while time.monotonic() < end:
            index = PassageIndex.open(out, embedder)
            hits = retriever_over(index, "dense" if vectors else "bm25").retrieve(
                "Who was born in Edinburgh?", 5
            )
            texts = [passage.text for passage in index.passages]
            found = sum(text.startswith("Fixed text") for text in texts)
            graph = KGIndex.open(out)
            whole = len(hits) == 5 and found == 40 and len(graph.documents) >= 40
            yield (
                ""
                if whole
                else f"a reader found {len(hits)} hits, {found} fixed texts, {len(graph.documents)} in graph"
            )

    together(
        attack,
        lambda: ingests("a"),
        lambda: ingests("b"),
        upserts,
        deletes,
        builds,
        reads,
        reads,
        reads,
        reads,
    )
    for name in "ab":
        ingest([tmp_path / name / "docs"], out, embedder=embedder)
    index = PassageIndex.open(out, embedder)
    ids = [passage.id for passage in index.passages]
    wanted = sorted(
        path.read_text()
        for name in "ab"
        for path in (tmp_path / name / "docs").iterdir()
    )
    texts = sorted(
        passage.text for passage in index.passages if passage.text.startswith("Text ")
    )
    attack.expect(texts == wanted, f"{len(texts)} of {len(wanted)} texts at the end")
    attack.expect(len(ids) == len(set(ids)), "an id is there twice")


def test_a_child_of_a_process_that_has_the_index_open(
    attack: Attack, tmp_path: Path
) -> None:
    """a process that has an index open forks, closes it, and both write: every passage of both is there."""
    for round_ in attack.times(20):
        out = tmp_path / f"i{round_}"
        parent = PassageIndex.create(out)
        parent.add([Passage("first", "First text.")])
        ready, closed = os.pipe(), os.pipe()

        def writes(
            out: Path = out,
            ready: tuple[int, int] = ready,
            closed: tuple[int, int] = closed,
        ) -> Iterator[str]:
            index = PassageIndex.open(out)
            os.write(ready[1], b"x")
            os.read(closed[0], 1)
            for number in range(5):
                index.add([Passage(f"child{number}", f"Text {number} of the child.")])
                yield ""

        def closes(
            parent: PassageIndex = parent,
            ready: tuple[int, int] = ready,
            closed: tuple[int, int] = closed,
        ) -> Iterator[str]:
            os.read(ready[0], 1)
            parent.close()
            os.write(closed[1], b"x")
            for number in range(5):
                parent.add(
                    [Passage(f"parent{number}", f"Text {number} of the parent.")]
                )
                yield ""

        together(attack, writes, closes)
        found = len(PassageIndex.open(out))
        attack.expect(found == 11, f"round {round_}: {found} of 11 passages")
        for end in (*ready, *closed):
            os.close(end)
