"""What it costs to build a knowledge graph, and what is left of it after kills and deletions.

    python -m ras_agent.eval.bench_kg corpus.jsonl --sizes 1500 3000 6119 --kills 6 --work /tmp/kg

Each size is built in a process of its own: seconds of reading, embedding and the rest, peak memory, bytes on disk. The
smallest is then built once more, killed with SIGKILL again and again: how many passages were read twice, and whether it
is the same graph. From the largest, documents are deleted and added again: seconds of each, and the same question.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ras_agent.records import Extraction, Passage
from ras_agent.tools.index.kg.index import FOLDER, KGIndex
from ras_agent.tools.index.kg.writer import KGProgress
from ras_agent.tools.index.load_document import USUAL_FIELDS, Document
from ras_agent.tools.index.load_jsonl import load_jsonl
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.knowledge import build_graph, delete_documents
from ras_agent.tools.roles import resolve_extractor

__all__ = ["Built", "main"]

DELETED = 10


@dataclass(frozen=True, slots=True)
class Built:
    """One build: counts of the graph, seconds by stage, peak memory and size on disk in MB."""

    passages: int
    facts: int
    entities: int
    relations: int
    equivalences: int
    reading: float
    embedding: float
    rest: float
    peak: float
    disk: float

    @property
    def seconds(self) -> float:
        return self.reading + self.embedding + self.rest


class _Noting:
    """An extractor that notes in a file what it reads, so that a process that is killed has told."""

    def __init__(self, spec: str, path: Path | None) -> None:
        self._inner, self._path = resolve_extractor(spec), path
        self.name = spec

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        found = self._inner.extract(passages, subquery)
        if self._path:
            with self._path.open("a") as file:
                file.writelines(f"{passage.id}\n" for passage in passages)
        return found


def _indexed(corpus: Path, folder: Path, size: int) -> None:
    """An index, without vectors, of the corpus's first `size` passages, each a document."""
    documents = (item for item in load_jsonl(corpus, corpus.name, USUAL_FIELDS, lambda _: None))
    passages = (Passage(item.id, item.text, item.title, item.id) for item in documents if isinstance(item, Document))
    PassageIndex.create(folder).add(islice(passages, size))


def _build(folder: Path, embedder: str, extractor: str, notes: Path | None = None) -> Built:
    """Build the graph beside the index in `folder` in this process."""
    import resource

    stages: list[tuple[float, str]] = []

    def on_progress(now: KGProgress) -> None:
        stages.append((time.monotonic(), now.stage))

    began = time.monotonic()
    report = build_graph(folder, extractor=_Noting(extractor, notes), embedder=embedder, on_progress=on_progress)
    ended = time.monotonic()
    read = max((when for when, stage in stages if stage == "reading"), default=began)
    embedded = [when for when, stage in stages if stage == "embedding"]
    start, stop = (embedded[0], embedded[-1]) if embedded else (read, read)
    held = report.graph.manifest
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    disk = sum(path.stat().st_size for path in (folder / FOLDER).rglob("*") if path.is_file())
    return Built(
        held.documents,
        held.facts,
        held.entities,
        held.relations - 1,
        held.equivalences,
        read - began,
        stop - start,
        ended - read - (stop - start),
        peak / 1e6,
        disk / 1e6,
    )


def _command(folder: Path, arguments: argparse.Namespace, notes: Path | None = None) -> list[str]:
    command = [sys.executable, "-P", "-m", "ras_agent.eval.bench_kg", "--child", str(folder)]
    command += ["--embedder", arguments.embedder, "--extractor", arguments.extractor]
    return [*command, "--notes", str(notes)] if notes else command


def _killed(folder: Path, arguments: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """Build in processes that are killed at random moments, then once to the end."""
    notes, chance = folder.parent / "read.txt", random.Random(0)
    notes.write_text("")
    kills = 0
    for _ in range(arguments.kills):
        process = subprocess.Popen(_command(folder, arguments, notes), stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=4 + chance.random() * seconds / 3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    subprocess.run(_command(folder, arguments, notes), stdout=subprocess.DEVNULL, check=True)
    read = Counter(notes.read_text().split("\n")[:-1])
    return {"kills": kills, "passages": len(read), "read twice": sum(count - 1 for count in read.values())}


def _deleted_and_added(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Delete documents, add them again, and compare."""
    import numpy as np

    index, before = PassageIndex.open(folder), KGIndex.open(folder)
    passages = [index.passages[row] for row in np.linspace(0, len(index) - 1, DELETED).astype(int).tolist()]
    vectors = None if before.entity_vectors is None else np.array(before.entity_vectors, dtype=np.float32)
    names, fingerprint = list(before.entities), before.manifest.fingerprint
    began = time.monotonic()
    less = delete_documents(folder, [passage.document_id for passage in passages]).graph
    deleted = time.monotonic()
    PassageIndex.open(folder).add(passages)
    after = build_graph(folder, extractor=arguments.extractor).graph
    added = time.monotonic()
    told: dict[str, Any] = {
        "documents": DELETED,
        "delete s": round(deleted - began, 1),
        "add s": round(added - deleted, 1),
        "entities gone": len(names) - len(less.entities),
        "same graph": after.manifest.fingerprint == fingerprint,
    }
    if vectors is not None and after.entity_vectors is not None and list(after.entities) == names:
        told["largest vector difference"] = float(np.abs(vectors - after.entity_vectors).max())
    return told


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print a JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", help="JSON Lines of id, title, text")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000])
    parser.add_argument("--embedder", default="minilm", help="'' for none")
    parser.add_argument("--extractor", default="offline")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path("bench_kg"), help="a folder to work in")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--notes", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child:
        print(json.dumps(asdict(_build(arguments.child, arguments.embedder, arguments.extractor, arguments.notes))))
        return
    if arguments.corpus is None:
        parser.error("which corpus?")
    arguments.work.mkdir(parents=True, exist_ok=True)
    sizes = sorted(arguments.sizes)
    first = 0.0
    for size in sizes:
        folder = arguments.work / f"{size}.index"
        shutil.rmtree(folder, ignore_errors=True)
        _indexed(arguments.corpus, folder, size)
        shown = subprocess.run(_command(folder, arguments), capture_output=True, text=True, check=True).stdout
        built = Built(**json.loads(shown))
        first = first or built.seconds
        told = {name: round(value, 1) for name, value in asdict(built).items()}
        print(json.dumps(told | {"minutes": round(built.seconds / 60, 2)}), flush=True)
    if arguments.kills:
        folder = arguments.work / "killed.index"
        shutil.rmtree(folder, ignore_errors=True)
        _indexed(arguments.corpus, folder, sizes[0])
        told = _killed(folder, arguments, first)
        whole, pieces = (KGIndex.open(path) for path in (arguments.work / f"{sizes[0]}.index", folder))
        same = whole.manifest.fingerprint == pieces.manifest.fingerprint
        print(json.dumps({"killed": told | {"same graph": same}}), flush=True)
    print(json.dumps({"deleted": _deleted_and_added(arguments.work / f"{sizes[-1]}.index", arguments)}), flush=True)


if __name__ == "__main__":
    main()
