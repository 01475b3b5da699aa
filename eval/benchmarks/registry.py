"""Registers benchmarks: how their files are read, how the answerer is instructed, and how answers are scored.

A benchmark is registered where it is defined, `HOTPOTQA = registered(Benchmark(name="hotpotqa", ...))`. The
modules of this folder are imported when needed. A benchmark of another package is known once its module has
been imported, or by name if the package lists it under its entry points `ras_agent.benchmark`.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice, starmap
from pathlib import Path
from typing import Any, Literal, Self

from ras_agent.config import registry
from ras_agent.contracts.errors import (
    IngestError,
    UnknownName,
    needs_extra,
)
from ras_agent.contracts.records import AnswerStyle, Passage
from ras_agent.eval.formats import (
    find_format,
    load_passages,
    passage_format,
    question_format,
    read_question,
    read_rows,
)
from ras_agent.eval.metrics import Outcome, score
from ras_agent.eval.question import Question, union_of_contexts
from ras_agent.eval.question_file import OnBad, QuestionRecord, read_records
from ras_agent.tools.index.text_files import not_unicode

AnswerForm = Literal["short", "multiple_choice", "true_false", "long", "citing"]
ContextUse = Literal["corpus", "seed", "static"]
ReadRecord = Callable[[QuestionRecord], Question | None]
_CITING_TOKENS = 300
_STATIC = 5  # the number of static passages, as in RAS for ASQA and ELI5
_STYLES: dict[AnswerForm, AnswerStyle] = {
    "short": "short",
    "multiple_choice": "choice",
    "true_false": "boolean",
    "long": "long",
    "citing": "citing",
}
MULTI_HOP = (
    "f1",
    "em",
    "recall@2",
    "recall@5",
    "all_recall@5",
    "recall",
    "all_recall",
    "mrr",
    "citation_support",
    "sufficiency_precision",
    "sufficient_evidence",
)
"""Metrics of multi-hop questions over text: of the answer, the passages, the citations and the planner's
decision to stop. Passages are ranked hop by hop, so metrics @k mostly measure the first search; recall and
all_recall measure all hops. """


@dataclass(frozen=True, slots=True)
class HubDataset:
    """Names a benchmark's data in the `datasets` library: data set, configuration, and the split that papers
    report on.
    """

    dataset: str
    configuration: str = ""
    split: str = "validation"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Describes a question set: how it is read, asked and scored."""

    name: str
    title: str
    source: str
    """Where to get the files, as a sentence for the user."""
    metrics: tuple[str, ...]
    """The names of the metrics, the one that papers report first."""
    read: ReadRecord | None = None
    """Returns the question of an official record, or None if the task leaves the record out. Records in one of the
    formats of ras_agent.eval.formats are read by every benchmark."""
    reader: Callable[[Path], ReadRecord] | None = None
    """Returns `read` for a file that is read together with other files of its folder."""
    split_record: Callable[[QuestionRecord], Iterable[QuestionRecord]] | None = None
    """Yields a record for each question of a record that holds several."""
    answer_form: AnswerForm = "short"
    answer_tokens: int = 100
    """The maximum number of tokens of a chat model's answer, unless a setting overrides it (RAS, appendix F)."""
    instructions: Mapping[str, str] = field(default_factory=dict)
    """The task's instructions by kind of prompt: "answer" for a prompt with the retrieved graph,
    "answer_baseline" for one without it. Planner and answerer are both shown the instruction. Short-form
    questions have no instruction (RAS, Table 5)."""
    cites: bool = False
    """Whether answers can be asked to list the nodes and edges they are based on."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The official file names by split."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The number of questions by file name."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 by file name."""
    context_use: ContextUse = "corpus"
    """How RAS uses the contexts of the questions: their union is the corpus to search (`corpus`), or they are the
    passages of the first hop (`seed`), or the only passages (`static`)."""
    under: str = ""
    """The key of the array of records in a JSON file that is an object."""
    columns: tuple[str, ...] = ()
    """The columns of a text file without a header."""
    hub: HubDataset | None = None

    @property
    def headline(self) -> str:
        """Return the name of the first metric, for tables with room for only one."""
        return self.metrics[0]

    @property
    def style(self) -> AnswerStyle:
        """Return the answerer's `style`: the form of answer that the benchmark expects."""
        return _STYLES[self.answer_form]

    def instructed(self, kind: str) -> Self:
        """Return this benchmark with its instruction `kind` in place of "answer".

        With "answer_citing" the instruction stays, and the answerer is also asked to list the nodes and edges
        behind its answer.

        Raises:
            UnknownName: the benchmark has no such instruction.
        """
        if kind == "answer":
            return self
        if kind == "answer_citing" and self.cites:
            return replace(self, answer_form="citing", answer_tokens=_CITING_TOKENS)
        if kind not in self.instructions:
            names = (*self.instructions, *(["answer_citing"] if self.cites else []))
            raise UnknownName(f"instruction of {self.name}", kind, names or ("none",))
        return replace(
            self, instructions={**self.instructions, "answer": self.instructions[kind]}
        )

    def load(
        self,
        path: str | Path,
        split: str = "",
        limit: int | None = None,
        on_bad: OnBad | None = None,
    ) -> list[Question]:
        """Return the questions of a file, or of a folder that holds the official file of `split`.

        A file with an official name must have the official count and checksum, if it is read completely. A
        warning names the records that the benchmark leaves out.

        Args:
            path: The file or folder.
            split: The split, such as "validation"; by default the only one.
            limit: The maximum number of questions.
            on_bad: Is called with the error of a record that cannot be read; the record is then skipped.
                Without it the error is raised.

        Raises:
            IngestError: If a record cannot be read (the error names its line or number, and where to get the
                file), or if the file is not the official one.
        """
        file = self.file_in(Path(path), split)
        left_out: list[str] = []
        bad: list[IngestError] = []
        collect = on_bad and bad.append
        records = self._records(
            read_rows(file, self.under, self.columns, collect), collect
        )
        questions = list(
            islice(_questions(records, self._read_for(file), left_out, collect), limit)
        )
        if bad and not questions:
            raise bad[0]
        if on_bad is not None:
            for error in bad:
                on_bad(error)
        if left_out:
            warnings.warn(
                f"{len(left_out)} records are no questions of {self.name} and were left out, the first: {left_out[0]}",
                stacklevel=2,
            )
        if not questions and limit != 0:
            raise IngestError(f"{file}: no questions in it; {self.source}")
        if limit is None:
            self._check(file, len(questions))
        return questions

    def of_rows(self, rows: Iterable[Mapping[str, Any]]) -> list[Question]:
        """Return the questions of rows, such as those of `DataFrame.to_dict("records")`.

        Raises:
            IngestError: a row cannot be read; the error names it.
        """
        return list(self._of_rows(rows, "row"))

    def _of_rows(
        self, rows: Iterable[Mapping[str, Any]], place: str
    ) -> Iterator[Question]:
        """Yield the questions of rows. Error messages name a row by the word `place` and its number."""
        records = starmap(
            lambda number, row: QuestionRecord(row, f"{place} {number}", number),
            enumerate(rows, 1),
        )
        return _questions(self._records(records), self._read_for(Path()), [])

    def fetch(self, split: str = "", limit: int | None = None) -> list[Question]:
        """Return the questions from a data set hub, downloaded by the optional library `datasets`.

        Raises:
            IngestError: the benchmark is not on a hub in a form that can be read.
            MissingExtra: `datasets` is not installed.
        """
        if self.hub is None:
            raise IngestError(
                f"{self.name} cannot be fetched from a data set hub; {self.source}"
            )
        with needs_extra(f"fetching {self.name}", "datasets"):
            from datasets import load_dataset  # pyright: ignore[reportMissingImports]
        split = split or self.hub.split
        rows: Iterable[Mapping[str, Any]] = load_dataset(
            self.hub.dataset,
            self.hub.configuration or None,
            split=split,
            streaming=limit is not None,
        )
        place = f"{self.hub.dataset} {split} row"
        return list(islice(self._of_rows(rows, place), limit))

    def corpus(
        self, source: str | Path | Iterable[Question], on_bad: OnBad | None = None
    ) -> list[Passage]:
        """Return the passages to search: the union of the questions' contexts, or a file of passages (id, text, title).

        Args:
            source: questions, their file, or a file of passages.
            on_bad: as for `load`.

        Raises:
            IngestError: there are no passages.
        """
        if isinstance(source, str | Path):
            source = corpus_file(Path(source))
            first = next(
                read_records(source, self.under, self.columns, on_bad and _ignore), None
            )
            if (
                first
                and "question" not in first
                and ("text" in first or passage_format(first))
            ):
                return load_passages(source, on_bad)
            source = self.load(source, on_bad=on_bad)
        if passages := union_of_contexts(source):
            return passages
        raise IngestError(
            f"the questions of {self.name} come without passages: give a file of passages, --corpus FILE, or an index, "
            "--index PATH"
        )

    def score(self, question: Question, outcome: Outcome) -> dict[str, float]:
        """Return the score of each of the benchmark's metrics, from 0 to 1, by name.

        A metric that does not apply to the question is left out.
        """
        return score(question, outcome, self.metrics)

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the agent's input as in RAS: the question, with its own passages unless the benchmark has a
        corpus to search.
        """
        values: dict[str, Any] = {"question": question.question}
        passages = [passage.to_dict() for passage in question.contexts[:_STATIC]]
        if passages and self.context_use != "corpus":
            values[f"{self.context_use}_passages"] = passages
        return values

    def _records(
        self, records: Iterator[QuestionRecord], on_bad: OnBad | None = None
    ) -> Iterator[QuestionRecord]:
        for record in records:
            try:
                split = (
                    self.split_record is not None and question_format(record) is None
                )
                if self.split_record and split:
                    parts = tuple(self.split_record(record))
                else:
                    parts = (record,)
            except IngestError as error:
                if on_bad is None:
                    raise
                on_bad(error)
            else:
                yield from parts

    def _read_for(self, file: Path) -> ReadRecord:
        reader = self.read
        if self.reader:
            reader = self.reader(file)
        if reader is None:
            raise TypeError(
                f"benchmark {self.name!r} has neither read nor reader: give Benchmark one of them"
            )
        return reader

    def file_in(self, path: Path, split: str = "") -> Path:
        """Return the official file of `split` in a folder. A path of a file is returned unchanged.

        Raises:
            IngestError: there is no such file.
            UnknownName: the benchmark has no such split.
        """
        if split and split not in self.files:
            raise UnknownName(f"split of {self.name}", split, tuple(self.files))
        if not path.is_dir():
            if path.is_file():
                return path
            raise IngestError(f"{path}: no such file; {self.source}")
        if split:
            names = [self.files[split]]
        else:
            names = [*self.files.values(), "questions.jsonl"]
        for name in names:
            if (path / name).is_file():
                return path / name
        raise IngestError(
            f"the folder {path} has no file {' or '.join(names)}; {self.source}"
        )

    def _check(self, file: Path, count: int) -> None:
        """Raise IngestError if a file with an official name is not the official file."""
        expected = self.counts.get(file.name, count)
        if count != expected:
            raise IngestError(
                f"{file}: it has {count} questions, but the official file has {expected}; get it again, or give a "
                f"sample of it another name. {self.source}"
            )
        if (expected_digest := self.sha256.get(file.name)) and expected_digest != (
            digest := _digest(file)
        ):
            raise IngestError(
                f"{file}: its sha256 is {digest}, but that of the official file is {expected_digest}; "
                f"get it again. {self.source}"
            )


def corpus_file(path: Path) -> Path:
    """Return the file of passages in a folder, such as BEIR's corpus.jsonl. A path of a file is returned
    unchanged.
    """
    for name in ("corpus.jsonl", "corpus.jsonl.gz"):
        if (path / name).is_file():
            return path / name
    return path


def registered(benchmark: Benchmark) -> Benchmark:
    """Register a benchmark under its name, and return it."""
    registry.register("benchmark", benchmark.name, benchmark)
    return benchmark


def benchmark(name: str) -> Benchmark:
    """Return the benchmark called `name`.

    Raises:
        UnknownName: there is no such benchmark; the message lists the names.
    """
    _register_own()
    return registry.find_a(Benchmark, "benchmark", name)


def benchmark_names() -> tuple[str, ...]:
    """Return the names of all benchmarks, sorted."""
    _register_own()
    return tuple(sorted(registry.names("benchmark")))


@cache
def _register_own() -> None:
    registry.import_modules_of(__name__.rpartition(".")[0])


def _ignore(error: IngestError) -> None:
    """Ignore the error of a bad record. The file is read a second time, and the error is reported then."""


def _questions(
    records: Iterator[QuestionRecord],
    read_record: ReadRecord,
    left_out: list[str],
    on_bad: OnBad | None = None,
) -> Iterator[Question]:
    """Yield the questions of records. The places of records that the task leaves out are appended to `left_out`."""
    places: dict[str, str] = {}
    for record in records:
        try:
            if question_format(record):
                question = read_question(record)
            else:
                question = read_record(record)
            if question is not None:
                _check(question, record, places)
        except IngestError as error:
            if on_bad is None:
                raise
            on_bad(error)
            continue
        if question is None:
            left_out.append(record.where)
            continue
        if question.id in places:  # MuSiQue-Full: a question and its unanswerable twin
            question = replace(question, id=f"{question.id}#{record.number}")
        places[question.id] = record.where
        yield question


def _check(
    question: Question, record: QuestionRecord, places: Mapping[str, str]
) -> None:
    """Raise IngestError for a blank question or an unusable id."""
    if not question.question.strip():
        raise record.error("the question is blank: leave the row out")
    name = question.id
    if name in places and question_format(record):
        raise record.error(
            f"the id {name!r} is already used by {places[name]}: give each question its own id"
        )
    if reason := not_unicode(name):  # results are stored and found by id
        raise record.error(f"the id {reason}")


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


PLAIN = registered(
    Benchmark(
        name="jsonl",
        title="your own questions",
        source=(
            "write one JSON object a line: id, question, answers (a list); optional supporting_ids or "
            "supporting_titles, type, contexts (objects with text, title, id), decomposition, hops, choices, label"
        ),
        read=find_format("jsonl").read_question,
        metrics=(
            "em_text",
            "f1_text",
            "em",
            "f1",
            "recall@2",
            "recall@5",
            "all_recall@5",
            "recall",
            "all_recall",
            "mrr",
            "sufficiency_precision",
        ),
        files={"": "questions.jsonl", "beir": "queries.jsonl"},
    )
)
