"""Defines a task of an evaluation: questions, the index that is searched for them, the instruction, and the
metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast, get_args

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import IngestError, RasError, SettingsError, UnknownName
from ras_agent.contracts.records import JSON
from ras_agent.eval.benchmarks import Benchmark, benchmark
from ras_agent.eval.benchmarks.registry import ContextUse, corpus_file
from ras_agent.eval.metrics import find_metric
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import OnBad, plain_value
from ras_agent.eval.run.manifest import file_sha256

if TYPE_CHECKING:
    from ras_agent.eval.run.folder import RunFolder
    from ras_agent.tools.index.store import PassageIndex


@dataclass(frozen=True, slots=True)
class Task:
    """Holds the questions, index and metrics that are the same for all agents that are compared."""

    benchmark: Benchmark
    """Defines how the files are read, and how a question is asked and scored."""
    data: Path
    """The file of the questions."""
    questions: Sequence[Question]
    index: PassageIndex
    corpus_sha256: str
    corpus: Path | None = None
    """The file of the passages, if there is one."""
    embedder: str | None = None
    """The embedder of an index that was made for the task."""
    instruction: str = "answer"
    """The name of the benchmark's instruction that the answerer gets."""
    context_use: str | None = None
    """How the questions' contexts are used, in place of the benchmark's `context_use`; None for the
    benchmark's."""
    skipped: tuple[IngestError, ...] = ()
    """The errors of records that were left out because they could not be read."""
    rows: tuple[JSON, ...] = ()
    """The questions as plain JSON if they were given as rows; otherwise ()."""
    without_evidence: int = 0
    """The number of questions with a gold passage that is not in the index, so that no search can find all gold
    passages."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the names of the metrics. Reports show the first two first."""
        return self.benchmark.metrics

    @property
    def evidence_note(self) -> str:
        """Return a sentence on the effect of `without_evidence` on the scores; "" if it is 0."""
        if not self.without_evidence:
            return ""
        return (
            f"of {len(self.questions)} questions, {self.without_evidence} have a gold passage that is not in the "
            "index: no search finds all of theirs"
        )

    @property
    def instruction_text(self) -> str:
        """Return the instruction on the form of answers that the answerer gets; "" if it gets no instruction."""
        return self.benchmark.instructions.get("answer", "")

    def scored_by(self, metrics: Sequence[str]) -> Self:
        """Return the task with other metrics.

        Raises:
            UnknownName: a metric is not registered.
        """
        names = tuple(find_metric(name).name for name in metrics)
        return replace(self, benchmark=replace(self.benchmark, metrics=names))

    def for_search(self) -> Self:
        """Return the task with only those metrics that score retrieved passages, for agents that do not answer."""
        names = []
        for name in self.metrics:
            if find_metric(name).of_passages:
                names.append(name)
        return self.scored_by(names or ["answer_in_passages"])


def load_task(
    name: str,
    data: Path | str | object,
    settings: Settings,
    *,
    corpus: Path | None = None,
    embedder: str | None = None,
    instruction: str = "answer",
    context_use: str | None = None,
    first: int = 1,
    limit: int | None = None,
    metrics: Sequence[str] = (),
    strict: bool = True,
) -> Task:
    """Read the questions of a benchmark, and the passages to search.

    Args:
        name: The benchmark's name.
        data: A file, a pandas DataFrame, or a list of rows.
        settings: The settings; they name the index if neither `corpus` nor the questions have passages.
        corpus: A file of passages, or BEIR's folder; by default that of the folder `data`, if it has one and
            the questions have no passages.
        embedder: The embedder of the questions' passages or graphs, or of `corpus`; without one, only words are
            compared.
        instruction: The name of the benchmark's instruction that the answerer gets.
        context_use: How the questions' contexts are used, in place of the benchmark's `context_use`.
        first: The number of the first question to read, from 1.
        limit: The maximum number of questions.
        metrics: The names of metrics that replace the benchmark's.
        strict: Whether a record that cannot be read raises an error; otherwise it is left out, and its error
            listed in `skipped`.

    Raises:
        RasError: If a file cannot be read, or a name is unknown.
    """
    instructed = benchmark(name).instructed(instruction)
    if context_use is not None:
        instructed = replace(instructed, context_use=_context_use(context_use))
    skipped: list[IngestError] = []
    on_bad = None if strict else skipped.append
    rows: tuple[JSON, ...] = ()
    if isinstance(data, str | Path):
        data = Path(data)
        everything = instructed.load(data, on_bad=on_bad)
    else:
        rows = tuple(plain_value(row) for row in rows_of(data))
        everything = instructed.of_rows(rows)
        data = Path("rows")
    if corpus is None and settings.index is None and not rows:
        corpus = _corpus_beside(data, everything)
    if corpus is not None:
        corpus = corpus_file(corpus)
    if not everything:
        raise SettingsError(f"{data}: there are no questions; give at least one")
    questions = everything[first - 1 :][:limit]
    if not questions:
        raise SettingsError(
            f"{data} has no question number {first}, only {len(everything)}; lower --first"
        )
    if embedder and corpus is None and settings.index is not None:
        raise SettingsError(
            f"{settings.index} already has an embedder: leave --embedder out"
        )
    index, digest = _index(settings, corpus, embedder, instructed, everything, on_bad)
    lacking = count_without_evidence(questions, index)
    task = Task(
        benchmark=instructed,
        data=data,
        questions=questions,
        index=index,
        corpus_sha256=digest,
        corpus=corpus,
        embedder=embedder,
        instruction=instruction,
        context_use=context_use,
        skipped=tuple(skipped),
        rows=rows,
        without_evidence=lacking,
    )
    if metrics:
        return task.scored_by(metrics)
    return task


def _context_use(name: str) -> ContextUse:
    """Check the name of a use of contexts, and return it.

    Raises:
        UnknownName: there is no such use.
    """
    uses = get_args(ContextUse)
    if name not in uses:
        raise UnknownName("use of a question's contexts", name, uses)
    return cast(ContextUse, name)


def _corpus_beside(data: Path, questions: Iterable[Question]) -> Path | None:
    """Return the corpus in the folder of the questions, as in BEIR's format; None if a question has passages or
    a graph.
    """
    found = corpus_file(data)
    if found == data:
        return None
    for question in questions:
        if question.contexts or question.metadata.get("graph"):
            return None
    return found


def questions_of(folder: RunFolder) -> list[Question]:
    """Return the questions of a run's data, in order; [] if the data cannot be read any more."""
    manifest = folder.manifest()
    data = folder.questions_path
    if not data.exists():
        data = Path(str(manifest.get("data") or ""))
    if not manifest.get("benchmark") or not data.exists():
        return []
    try:
        return benchmark(str(manifest["benchmark"])).load(
            data, on_bad=lambda error: None
        )
    except (RasError, OSError):
        return []


def rows_of(data: object) -> Iterable[Mapping[str, Any]]:
    """Return the rows of a pandas or polars data frame, of an Arrow table, or of an iterable of rows.

    A row is a mapping, a dataclass or a pydantic model, such as LangSmith's examples, Inspect's samples and DeepEval's
    goldens.

    Raises:
        SettingsError: If the data is something else.
    """
    frame: Any = data
    for method in ("to_dicts", "to_pylist"):  # of polars, of Arrow
        convert = getattr(frame, method, None)
        if callable(convert):
            return list(cast("Iterable[Mapping[str, Any]]", convert()))
    if hasattr(frame, "to_dict") and hasattr(frame, "columns"):
        index = getattr(frame, "index", None)
        names = getattr(index, "names", None) or [getattr(index, "name", None)]
        if any(names):  # columns too, such as the id
            frame = frame.reset_index()
        return list(frame.to_dict("records"))
    if isinstance(data, Iterable) and not isinstance(data, Mapping):
        given: Iterable[Any] = data
        return [_row(row, number) for number, row in enumerate(given, 1)]
    raise SettingsError(
        f"questions are a file, a DataFrame or a list of rows, not {type(data).__name__}"
    )


def _row(row: Any, number: int) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if callable(dump := getattr(row, "model_dump", None)):
        return cast("Mapping[str, Any]", dump())
    if is_dataclass(row) and not isinstance(row, type):
        return asdict(row)
    raise SettingsError(
        f"row {number} should be a mapping such as a dict, found {row!r:.80}"
    )


def count_without_evidence(questions: Sequence[Question], index: PassageIndex) -> int:
    """Return the number of questions with a gold passage that is not in the index. All passages of the index
    are read once.

    Questions with their own graph are not counted, because the index is not searched for them.
    """
    searched = []
    for question in questions:
        if question.supporting and not question.metadata.get("graph"):
            searched.append(question)
    if not searched:
        return 0
    there = set()
    for passage in index.passages:
        there.add((True, passage.title))
        there.update(((False, passage.id), (False, passage.document_id)))
    lacking = 0
    for question in searched:
        gold = {(question.by_title, name) for name in question.supporting}
        lacking += not gold <= there
    return lacking


def _index(
    settings: Settings,
    corpus: Path | None,
    embedder: str | None,
    source: Benchmark,
    questions: Sequence[Question],
    on_bad: OnBad | None,
) -> tuple[PassageIndex, str]:
    """Return the index and its digest. The index is made from `corpus`, opened, or made from the questions'
    passages or graphs.
    """
    from ras_agent.eval.run.own_graphs import OwnGraphs, bring_graphs, digest_of_graphs
    from ras_agent.tools.index.store import PassageIndex

    if corpus is not None:
        return PassageIndex.in_memory(
            source.corpus(corpus, on_bad), embedder
        ), file_sha256(corpus)
    if settings.index is not None:
        stored = PassageIndex.open(settings.index)
        return stored, stored.fingerprint
    if bring_graphs(questions):
        return OwnGraphs.embedded_by(embedder), digest_of_graphs(questions)
    index = PassageIndex.in_memory(source.corpus(questions), embedder)
    return index, index.fingerprint
