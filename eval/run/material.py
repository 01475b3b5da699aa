"""What an evaluation asks and searches, read from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ras_agent.errors import SettingsError
from ras_agent.eval.benchmarks import Benchmark, benchmark
from ras_agent.eval.metrics import find_metric
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import OnBad
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.settings import Settings

if TYPE_CHECKING:
    from ras_agent.tools.index.postgres import PostgresIndex
    from ras_agent.tools.index.store import PassageIndex


@dataclass(frozen=True, slots=True)
class Material:
    """Holds what is asked and what is searched, which is the same for all runs that are compared.

    embedder: of an index that was made for the run. instruction: which of the benchmark's the answerer is given.
    """

    asked: Benchmark
    data: Path
    questions: Sequence[Question]
    index: PassageIndex | PostgresIndex
    corpus_sha256: str
    corpus: Path | None = None
    embedder: str | None = None
    instruction: str = "answer"


def load_material(
    name: str,
    data: Path,
    settings: Settings,
    *,
    corpus: Path | None = None,
    embedder: str | None = None,
    instruction: str = "answer",
    first: int = 1,
    limit: int | None = None,
    metrics: Sequence[str] = (),
    on_bad: OnBad | None = None,
) -> Material:
    """Read questions `first` (from 1) and on, at most `limit`, and the passages to search. Raises RasError children.

    embedder: of the passages or graphs that come with the questions, or of `corpus`; without one, words alone are
    compared. instruction: which of the benchmark's the answerer is given. metrics: what is measured in place of the
    benchmark's own metrics. on_bad: given what is wrong with a record of either file, which is then left out.
    """
    asked = benchmark(name).instructed(instruction)
    if metrics:
        asked = replace(asked, metrics=tuple(find_metric(metric).name for metric in metrics))
    everything = asked.load(data, on_bad=on_bad)
    questions = everything[first - 1 :][:limit]
    if not questions:
        raise SettingsError(f"{data} has no question number {first}, only {len(everything)}; lower --first")
    if embedder and corpus is None and settings.index is not None:
        raise SettingsError(f"{settings.index} has its own embedder; leave --embedder away")
    found = _corpus(settings, corpus, embedder, asked, everything, on_bad)
    return Material(asked, data, questions, *found, corpus, embedder, instruction)


def _corpus(
    settings: Settings,
    corpus: Path | None,
    embedder: str | None,
    asked: Benchmark,
    questions: Sequence[Question],
    on_bad: OnBad | None,
) -> tuple[PassageIndex | PostgresIndex, str]:
    """Return what is searched and a digest of it: a file, an index, or the passages or graphs of the questions."""
    from ras_agent.eval.run.own_graphs import OwnGraphs, bring_graphs, digest_of_graphs
    from ras_agent.tools.index.open_index import open_index
    from ras_agent.tools.index.store import PassageIndex

    if corpus is not None:
        return PassageIndex.in_memory(asked.corpus(corpus, on_bad), embedder), file_sha256(corpus)
    if settings.index is not None:
        opened = open_index(settings.index)
        return opened, opened.fingerprint
    if bring_graphs(questions):
        return OwnGraphs.embedded_by(embedder), digest_of_graphs(questions)
    index = PassageIndex.in_memory(asked.corpus(questions), embedder)
    return index, index.fingerprint
