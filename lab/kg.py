"""Measures what building a knowledge graph costs, and what is left of it after kills and deletions.

    python -m lab.kg corpus.jsonl --sizes 765 1530 3060 6119 --work /tmp/kg
    python -m lab.kg --index my.index --work /tmp/kg

Each size is built in a process of its own, which reports processor seconds of every stage, seconds on the clock, peak
memory and size on disk. The largest is then built again by processes that SIGKILL ends at the places of `--kills` (a
stage and a share of it); reported are the calls of the extractor in all, and the differences from the unbroken graph.
Documents are deleted from a copy of it and added again; reported are what was gone in between, and the same
differences. With --index, an index that has a graph is used in place of the largest build; it is not changed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lab import child_environment
from lab.graph_differences import content_differences, score_difference
from ras_agent.program import run_program
from ras_agent.records import Extraction, Passage
from ras_agent.tools.index.load import Document, load
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.build import delete_documents
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.writer import KGProgress
from ras_agent.tools.roles import resolve_extractor
from ras_agent.tools.store.schema import GRAPH
from ras_agent.tools.store.sqlite import SqliteDatabase
from ras_agent.tools.structure.build_graph import build_graph

_KILLS = ("reading:0.33", "reading:0.67", "embedding:0.5", "writing:0")
_QUERIES = 50
_LONG = 12  # characters: a name of that length is not in a file by chance


class _CountedExtractor:
    """Extracts, and writes to a file which passages, so that killed processes are counted, too; measures its time."""

    def __init__(self, spec: str, path: Path | None) -> None:
        self._inner, self._path = resolve_extractor(spec), path
        self.name, self.processor = spec, 0.0

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        if self._path:
            with self._path.open("a") as file:
                file.writelines(f"{passage.id}\n" for passage in passages)
        began = time.process_time()
        found = self._inner.extract(passages, subquery)
        self.processor += time.process_time() - began
        return found


class _Stages:
    """Measures processor time by stage, of this process and of those that it has waited for."""

    def __init__(self, die_at: str) -> None:
        stage, _, share = die_at.partition(":")
        self._die_at = (stage, float(share or 0)) if stage else None
        self._stage, self._since = "opening", _processor()
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def __call__(self, now: KGProgress) -> None:
        if now.stage != self._stage:
            self.turn(now.stage)
        if self._die_at and now.stage == self._die_at[0] and now.done >= self._die_at[1] * now.total:
            os.kill(os.getpid(), signal.SIGKILL)

    def turn(self, stage: str) -> None:
        at = _processor()
        self.seconds[self._stage] += at - self._since
        self._stage, self._since = stage, at


def _indexed(corpus: Path, folder: Path, size: int) -> None:
    """Index the corpus's first `size` passages without vectors, each as a document."""
    shutil.rmtree(folder, ignore_errors=True)
    found = (item for item in load(corpus) if isinstance(item, Document))
    passages = (Passage(item.id, item.text, item.title, item.id) for item in found)
    PassageIndex.create(folder).add(islice(passages, size))


def _without_graph(folder: Path) -> None:
    """Take the graph out of an index."""
    with SqliteDatabase(folder).writing() as connection:
        for statement in GRAPH:
            connection.execute(f"DELETE FROM {statement.split()[2]}")


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _build(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Build the graph of the index in `folder` in this process; return counts, seconds, and sizes in MB."""
    import resource

    extractor, stages = _CountedExtractor(arguments.extractor, arguments.notes), _Stages(arguments.die_at)
    began, before = time.monotonic(), _bytes_in(folder)
    graph = build_graph(
        folder,
        extractor=extractor,
        embedder=arguments.embedder,
        workers=arguments.workers,
        on_progress=stages,
    ).graph
    stages.turn("ended")
    held, times = graph.manifest, dict(stages.seconds)
    opening = times.pop("opening")
    if arguments.workers == 1:
        times = {"extracting": extractor.processor, **times, "reading": times["reading"] - extractor.processor}
    disk = _bytes_in(folder) - before
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "passages": held.documents,
        "facts": held.facts,
        "entities": held.entities,
        "relations": held.relations - 1,
        "equivalences": held.equivalences,
        "processor s": {name: round(seconds, 2) for name, seconds in {"opening": opening, **times}.items()},
        "processor s in all": round(_processor(), 1),
        "clock s": round(time.monotonic() - began, 1),
        "peak MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6),
        "disk MB": round(disk / 1e6, 1),
    }


def _killed(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Build in processes that are killed, then once to the end. Raises ValueError for a kill that did not come."""
    notes = folder.parent / "read.txt"
    notes.write_text("")
    calls = []
    for place in [*arguments.kills, ""]:
        command = _command(folder, arguments, notes, place)
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=not place, env=child_environment())
        if place and ended.returncode != -signal.SIGKILL:
            raise ValueError(f"the build was not killed at {place}: it ended with {ended.returncode}")
        calls.append(notes.read_text().count("\n"))
    read = Counter(notes.read_text().split("\n")[:-1])
    return {
        "at": arguments.kills,
        "calls of the extractor so far": calls,
        "passages read": len(read),
        "passages read twice": sum(count > 1 for count in read.values()),
    }


def _deleted_and_added(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Delete documents spread evenly over the corpus, look for names that only they had, and add them again."""
    index, before = PassageIndex.open(folder), KGIndex.open(folder)
    names = dict(zip(before.keys, before.entities, strict=True))
    rows = np.linspace(0, len(index) - 1, min(arguments.delete, len(index))).astype(int).tolist()
    documents = {index.passages[row].document_id for row in rows}
    passages = [passage for passage in index.passages if passage.document_id in documents]
    deleted, less = _timed(lambda: delete_documents(folder, sorted(documents)).graph)
    gone = set(names).difference(less.keys)
    # a name may be part of another that stays, in any spelling, or of two that are next to each other in a file
    staying = "".join([*less.keys, "\n", *less.arrays.relation_keys])
    staying += "\n".join(f"{one.title}. {one.text}" for one in index.passages if one.document_id not in documents)
    searched = [
        names[key].encode() for key in gone if len(key) >= _LONG and key not in staying and names[key] not in staying
    ]
    stored = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    left = sum(any(name in data for data in stored) for name in searched)
    PassageIndex.open(folder).add(passages)
    added, _ = _timed(lambda: build_graph(folder, extractor=_CountedExtractor(arguments.extractor, None)))
    return {
        "documents": len(documents),
        "passages": len(passages),
        "delete s": round(deleted, 1),
        "add s": round(added, 1),
        "entities gone in between": len(gone),
        "their names searched for in all files": len(searched),
        "of these found": left,
    }


def _compared(one: Path, other: Path) -> dict[str, Any]:
    """Compare the graphs of two indexes."""
    graphs = KGIndex.open(one), KGIndex.open(other)
    found: dict[str, Any] = {"same fingerprint": graphs[0].manifest.fingerprint == graphs[1].manifest.fingerprint}
    found["differences"] = content_differences(*graphs)
    passages = PassageIndex.open(one).passages
    rows = np.linspace(0, len(passages) - 1, min(_QUERIES, len(passages))).astype(int).tolist()
    queries = [f"What is known of {passages[row].title}?" for row in rows if passages[row].title]
    found["largest difference of PPR scores"] = score_difference(one, other, queries)
    vectors = [graph.entity_vectors for graph in graphs]
    if vectors[0] is not None and vectors[1] is not None and vectors[0].shape == vectors[1].shape:
        difference = np.abs(np.asarray(vectors[0], np.float32) - vectors[1])
        found["largest difference of vectors"] = float(difference.max(initial=0))
    return found


def _command(folder: Path, arguments: argparse.Namespace, notes: Path | None = None, die_at: str = "") -> list[str]:
    command = [sys.executable, "-P", "-m", "lab.kg", "--child", str(folder), "--die-at", die_at]
    command += ["--embedder", arguments.embedder, "--extractor", arguments.extractor]
    command += ["--workers", str(arguments.workers)]
    return [*command, "--notes", str(notes)] if notes else command


def _processor() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.monotonic()
    done = work()
    return time.monotonic() - began, done


def _report(**results: Any) -> None:
    print(json.dumps(results), flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print a JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", help="JSON Lines of id, title, text")
    parser.add_argument("--index", type=Path, help="an index with a graph, instead of a corpus")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000], help="passages; the last one the most")
    parser.add_argument("--embedder", default="minilm", help="'' for none")
    parser.add_argument("--extractor", default="offline")
    parser.add_argument("--workers", type=int, default=1, help="processes that read")
    parser.add_argument("--kills", nargs="*", help=f"places, in order ({' '.join(_KILLS)}, as far as they are passed)")
    parser.add_argument("--delete", type=int, default=200, help="documents to delete and add again (200)")
    parser.add_argument("--work", type=Path, default=Path("bench_kg"), help="a folder to work in")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--notes", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--die-at", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child:
        print(json.dumps(_build(arguments.child, arguments)))
        return
    if (arguments.corpus is None) == (arguments.index is None):
        parser.error("a corpus, or --index?")
    arguments.work.mkdir(parents=True, exist_ok=True)
    whole = arguments.index
    if whole:
        held = KGIndex.open(whole).manifest.embedder
        arguments.embedder = held.name if held else ""
    if arguments.kills is None:  # nothing is embedded without an embedder
        arguments.kills = [place for place in _KILLS if arguments.embedder or not place.startswith("embedding")]
    for size in arguments.sizes if arguments.corpus else ():
        whole = arguments.work / f"{size}.index"
        _indexed(arguments.corpus, whole, size)
        command = _command(whole, arguments)
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env=child_environment()).stdout
        _report(built=json.loads(shown))
    if whole.resolve() in {(arguments.work / name).resolve() for name in ("killed.index", "changed.index")}:
        parser.error(f"{whole} is a copy that --work overwrites; give another folder to work in")
    if arguments.kills:
        broken = arguments.work / "killed.index"
        shutil.rmtree(broken, ignore_errors=True)
        shutil.copytree(whole, broken)
        _without_graph(broken)
        _report(killed=_killed(broken, arguments), compared=_compared(whole, broken))
    if arguments.delete:
        changed = arguments.work / "changed.index"
        shutil.rmtree(changed, ignore_errors=True)
        shutil.copytree(whole, changed)
        _report(deleted=_deleted_and_added(changed, arguments), compared=_compared(whole, changed))


if __name__ == "__main__":
    run_program(main)
