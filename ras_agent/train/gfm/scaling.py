"""What width and data bring a GFM network: trainings that differ in these alone, each scored on one file of questions.

    python -m ras_agent.train.gfm.scaling --sets SETS/hotpotqa,SETS/musique --index wiki.index \\
        --questions questions.jsonl --last 150 --out STUDY --widths 8,16,32,64 --shares 0.25,0.5,1

After GFM-RAG's scaling study (arXiv:2502.01113, Table 12). Every training takes as many steps, by the settings of the
network that ships; `--completion 0,100` also compares trainings that complete facts first. A line a point goes to
STUDY/points.jsonl as it ends, and the table is printed at the end. Points that are there are skipped, so several
processes may share a study if each has points of its own; a training that was stopped goes on where it was saved.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ras_agent.errors import IndexMismatch, IngestError, SettingsError
from ras_agent.eval.bench.graph_table import Gold, gold_of, recalls
from ras_agent.eval.metrics import reciprocal_rank
from ras_agent.program import run_program
from ras_agent.tools.gfm.cpu import FastGFM
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.text_files import parse_line
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import linker_for, rows_of_documents
from ras_agent.tools.retrieve.document_ranker import PACKAGED
from ras_agent.tools.retrieve.gfm import GFMRetriever, messages_of, weights_of
from ras_agent.train.gfm.config import settings_of
from ras_agent.train.gfm.linked import read_linked
from ras_agent.train.gfm.sets import share_of
from ras_agent.train.gfm.train import Config, train

__all__ = ["Judge", "done_points", "grid", "study", "table"]

DEPTH = 100
"""How many passages MRR looks at; a question whose support lies deeper counts 0."""
SHIPPED: dict[str, Any] = {"documents": 100, "rate": 3e-3, "warmup": 30, "document": 1.0, "dropout": 0.1}
"""How the network that ships was trained, beside its width and steps."""
_Number = TypeVar("_Number", int, float)
COLUMNS = ("R@2", "R@5", "all@5", "MRR")


class Judge:
    """Scores networks on the same questions over one index and its graph; questions are linked once for all."""

    def __init__(self, index: PassageIndex, graph: KGIndex, golds: Sequence[Gold]) -> None:
        """Raises SettingsError for no questions, IndexMismatch for a graph without vectors."""
        if not golds:
            raise SettingsError("there are no questions to score: check the file, and --first and --last")
        if graph.embedder is None:
            raise IndexMismatch("the knowledge graph holds no vectors: build it with an embedder")
        self.index, self.graph, self.golds, self.embedder = index, graph, golds, graph.embedder
        self._linker, self._rows = linker_for(index, graph, None, None), rows_of_documents(index, graph)

    def scores(self, weights: Path) -> dict[str, float]:
        """R@2, R@5, all@5 and MRR, in 0..100, of retriever `gfm` with a folder's weights, ranked as those shipped."""
        config, tensors = weights_of(weights)
        network = FastGFM(tensors, messages_of(self.graph, config))
        parts = self.index.snapshot.passages, self.graph, self._rows, self._linker, network, self.embedder
        retriever = GFMRetriever(*parts, ranker=PACKAGED, toward=config.toward)
        rows = []
        for gold in self.golds:
            found = retriever.retrieve(gold.question, DEPTH)
            names = [hit.passage.id if gold.by_id else hit.passage.title for hit in found]
            rows.append((*recalls(found, gold), reciprocal_rank(names, gold.supporting)))
        means = 100 * np.array(rows, dtype=np.float64).mean(axis=0)
        return {name: round(float(mean), 2) for name, mean in zip(COLUMNS, means, strict=True)}


def grid(
    base: Config, widths: Sequence[int], shares: Sequence[float], completions: Sequence[int] = (0,)
) -> Iterator[Config]:
    """A training a point, each in a folder of its own in `base.out` that its settings name."""
    for width, share, completion in product(widths, shares, completions):
        config = replace(base, width=width, share=share, completion=completion)
        # the settings' digest keeps a point apart from one that differs in what its name does not tell
        digest = hashlib.sha256(json.dumps(settings_of(config), sort_keys=True).encode()).hexdigest()[:8]
        name = f"width{width}-share{share:g}-completion{completion}-{digest}"
        yield replace(config, out=base.out / name)


def study(configs: Sequence[Config], judge: Judge, out: Path, asked: str, minutes: float = 0.0) -> list[dict[str, Any]]:
    """Train and score the points that `out`/points.jsonl does not hold yet; all points of `configs` that are there.

    asked: what the questions are called; other questions make other points. minutes: begin no point after so long.
    """
    out.mkdir(parents=True, exist_ok=True)
    began, file = time.monotonic(), out / "points.jsonl"
    for config in configs:
        late = bool(minutes) and time.monotonic() - began > 60 * minutes
        # read anew for each, since another process may share the study
        if late or _find(done_points(file), config, asked) is not None:
            continue
        progress = train(config)
        used = time.process_time()
        point = {
            **settings_of(config),
            "asked": asked,
            "parameters": GFMConfig(config.text_width, config.width, config.layers).parameters(),
            "questions": _question_count(config),
            **judge.scores(config.out),
            "train_seconds": round(progress["processor_seconds"], 1),
            "score_seconds": round(time.process_time() - used, 1),
        }
        # a line that a kill cut short stays by itself
        start = "\n" if file.is_file() and not file.read_text("utf-8").endswith("\n") else ""
        with file.open("a", encoding="utf-8") as lines:
            lines.write(f"{start}{json.dumps(point)}\n")
    points = done_points(file)
    return [found for config in configs if (found := _find(points, config, asked)) is not None]


def done_points(file: Path) -> list[dict[str, Any]]:
    """The points in a file; none where there is no file. A line that was cut short is no point."""
    points = []
    for line in file.read_text("utf-8").splitlines() if file.is_file() else ():
        try:
            points.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return points


def table(points: Sequence[dict[str, Any]]) -> str:
    """The points as Markdown; seconds are of processor time, for training and for scoring."""
    head = ("width", "parameters", "questions", "completion", "steps", *COLUMNS, "train s", "score s")
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for point in points:
        questions = f"{point['questions']:,} ({100 * point['share']:g} %)"
        cells = [str(point["width"]), f"{point['parameters']:,}", questions, str(point["completion"])]
        cells += [str(point["steps"]), *(f"{point[name]:.1f}" for name in COLUMNS)]
        cells += [f"{point['train_seconds']:.0f}", f"{point['score_seconds']:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _find(points: Sequence[dict[str, Any]], config: Config, asked: str) -> dict[str, Any] | None:
    wanted = {**settings_of(config), "asked": asked}
    return next((point for point in points if all(point.get(name) == wanted[name] for name in wanted)), None)


def _question_count(config: Config) -> int:
    return sum(len(share_of(some, config.share)) for folder in config.sets for some in read_linked(folder).values())


def _numbers(kind: Callable[[str], _Number], option: str, text: str) -> list[_Number]:
    try:
        return [kind(word) for word in text.split(",")]
    except ValueError:
        raise SettingsError(f"{option} takes numbers, parted by commas, got {text!r}") from None


def _gold(file: Path, number: int, line: str) -> Gold:
    """Raises IngestError with the line."""
    try:
        return gold_of(parse_line(line))
    except (AttributeError, TypeError, ValueError) as error:
        raise IngestError(f"{file} line {number}: {error}") from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a study and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", required=True, help="folders of ras_agent.train.gfm.examples, parted by commas")
    parser.add_argument("--index", type=Path, required=True, help="an index with a knowledge graph")
    parser.add_argument(
        "--questions", type=Path, required=True, help="JSON Lines, as of ras_agent.eval.bench.graph_table"
    )
    parser.add_argument("--first", type=int, default=1, help="first line of the questions (1)")
    parser.add_argument("--last", type=int, help="last line")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--widths", default="8,16,32,64")
    parser.add_argument("--shares", default="0.25,0.5,1", help="of the training questions")
    parser.add_argument("--completion", default="0", help="steps that complete facts first, one or several numbers")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0.0, help="begin no point after so many")
    given = parser.parse_args(arguments)
    if given.first < 1:
        raise SettingsError(f"--first has to be at least 1, got {given.first}")
    widths, completions = (_numbers(int, f"--{name}", getattr(given, name)) for name in ("widths", "completion"))
    shares = _numbers(float, "--shares", given.shares)
    lines = given.questions.read_text("utf-8").splitlines()
    golds = [
        _gold(given.questions, number, line)
        for number, line in enumerate(lines[given.first - 1 : given.last], given.first)
        if line.strip()
    ]
    sets = tuple(Path(one) for one in given.sets.split(","))
    graph = KGIndex.open(given.index)
    # other questions, or another graph, make other points
    content = hashlib.sha256("\n".join([graph.manifest.fingerprint, *(gold.question for gold in golds)]).encode())
    asked = f"{given.questions.name} {given.first}-{given.last or len(lines)} {content.hexdigest()[:12]}"
    judge = Judge(PassageIndex.open(given.index), graph, golds)
    width = 0 if graph.relation_vectors is None else int(graph.relation_vectors.shape[1])
    base = Config(sets, given.out, text_width=width, steps=given.steps, seed=given.seed, save_every=50, **SHIPPED)
    configs = list(grid(base, widths, shares, completions))
    print(table(study(configs, judge, given.out, asked, given.minutes)))


if __name__ == "__main__":
    run_program(main)
