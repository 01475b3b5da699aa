"""What a benchmark is: how to read its files, what to tell the answerer, how to score it."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from ras_agent.errors import IngestError, MissingExtra, UnknownName
from ras_agent.eval.metrics.registry import Outcome, score
from ras_agent.eval.question import Question, is_plain, load_passages, plain_question, union_of_contexts
from ras_agent.eval.question_file import QuestionRecord, read_records
from ras_agent.records import Passage

__all__ = ["AnswerForm", "Benchmark", "Given", "Hub", "Read"]

AnswerForm = Literal["short", "multiple_choice", "true_false", "long"]
Given = Literal["corpus", "seed", "static"]
Read = Callable[[QuestionRecord], Question | None]
_STATIC = 5  # passages, as RAS fixes them for ASQA and ELI5
_STYLES: dict[AnswerForm, Literal["short", "choice", "boolean", "long"]] = {
    "short": "short",
    "multiple_choice": "choice",
    "true_false": "boolean",
    "long": "long",
}


@dataclass(frozen=True, slots=True)
class Hub:
    """Where the `datasets` library finds a benchmark: data set, configuration, and its split that papers report on."""

    dataset: str
    configuration: str = ""
    split: str = "validation"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A question set.

    source: where to get the files, for a reader.
    read: one official record to one question, or to None where the task leaves it out. Records in the plain form of
    one's own JSONL are read by every benchmark. reader: makes `read` for a file that needs others beside it.
    metrics: names of `ras_agent.eval.metrics.registry`. headline: the one that papers report.
    instructions: the task's own instruction by kind of prompt: "answer" beside the retrieved graph, "answer_baseline"
    for a model without one, "answer_citing" to have nodes and edges of the graph listed. Short-form questions have
    none (RAS, Table 5).
    files: official file names by split. counts: how many questions a file of that name holds. sha256: its digest.
    answer_tokens: how long an answer may get, in tokens (RAS, appendix F).
    given: what RAS does with the questions' contexts: the corpus to search is their union, or they are the first hop's
    passages (`seed`), or all the passages there are (`static`).
    gold_by: how gold passages are named; a plain file may differ, `Question.by_title` has the last word.
    under: the key of the array in a JSON file that is an object. columns: those of a file of lines without a header.
    """

    name: str
    title: str
    source: str
    metrics: tuple[str, ...]
    read: Read | None = None
    reader: Callable[[Path], Read] | None = None
    answer_form: AnswerForm = "short"
    answer_tokens: int = 100
    instructions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)
    gold_by: Literal["title", "id", "none"] = "none"
    given: Given = "corpus"
    under: str = ""
    columns: tuple[str, ...] = ()
    hub: Hub | None = None

    @property
    def headline(self) -> str:
        """The metric that a table of results shows if it shows one."""
        return self.metrics[0]

    @property
    def style(self) -> Literal["short", "choice", "boolean", "long"]:
        """The answerer's `style` for this answer form."""
        return _STYLES[self.answer_form]

    def load(self, path: str | Path, split: str = "", limit: int | None = None) -> list[Question]:
        """The questions of a file, or of a folder that holds the official file of `split`.

        A whole official file is held to its known count and checksum. Warns of records that the task leaves out.
        Raises IngestError, which names the line or record that cannot be read and where to get the file.
        """
        file = self._file(Path(path), split)
        left_out: list[str] = []
        records = read_records(file, self.under, self.columns)
        questions = list(islice(_questions(records, self._read_for(file), left_out), limit))
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

    def fetch(self, split: str = "", limit: int | None = None) -> list[Question]:
        """The questions from a data set hub, through the optional `datasets` library. Needs the network."""
        if self.hub is None:
            raise IngestError(f"{self.name} is on no data set hub in a form that is read here; {self.source}")
        try:
            from datasets import load_dataset
        except ImportError as error:
            raise MissingExtra(f"fetching {self.name}", "datasets") from error
        split = split or self.hub.split
        rows: Iterable[Mapping[str, Any]] = load_dataset(
            self.hub.dataset, self.hub.configuration or None, split=split, streaming=limit is not None
        )
        records = (QuestionRecord(row, f"{self.hub.dataset} {split} row {n}", n) for n, row in enumerate(rows, 1))
        return list(islice(_questions(records, self._read_for(Path()), []), limit))

    def corpus(self, source: str | Path | Iterable[Question]) -> list[Passage]:
        """The passages to search: the union of the questions' contexts, or a file of passages (id, text, title).

        `source`: questions, their file, or a file of passages. Raises IngestError where there are none.
        """
        if isinstance(source, str | Path):
            first = next(read_records(source, self.under, self.columns), None)
            if first and "text" in first and "question" not in first:
                return load_passages(source)
            source = self.load(source)
        if passages := union_of_contexts(source):
            return passages
        raise IngestError(
            f"{self.name}: these questions come without passages; give a corpus file or an index to search"
        )

    def score(self, question: Question, outcome: Outcome) -> dict[str, float]:
        """This benchmark's metrics, each in 0..1; one that does not apply to the question is left out."""
        return score(question, outcome, self.metrics)

    def inputs(self, question: Question) -> dict[str, Any]:
        """What an agent is given in RAS's setting: the question, and the passages that come with it unless searched."""
        asked: dict[str, Any] = {"question": question.question}
        if question.contexts and self.given == "seed":
            asked["seed_passages"] = [passage.to_dict() for passage in question.contexts[:_STATIC]]
        elif question.contexts and self.given == "static":
            asked["static_passages"] = [passage.to_dict() for passage in question.contexts[:_STATIC]]
        return asked

    def _read_for(self, file: Path) -> Read:
        read = self.reader(file) if self.reader else self.read
        if read is None:
            raise TypeError(f"benchmark {self.name!r} has neither read nor reader")
        return read

    def _file(self, path: Path, split: str) -> Path:
        if split and split not in self.files:
            raise UnknownName(f"split of {self.name}", split, tuple(self.files))
        if not path.is_dir():
            if path.is_file():
                return path
            raise IngestError(f"{path}: no such file; {self.source}")
        names = [self.files[split]] if split else [*self.files.values(), "questions.jsonl"]
        for name in names:
            if (path / name).is_file():
                return path / name
        raise IngestError(f"{path}: holds none of {', '.join(names)}; {self.source}")

    def _check(self, file: Path, found: int) -> None:
        """Raises IngestError if a file with an official name is not the official file."""
        wanted = self.counts.get(file.name, found)
        if found != wanted:
            raise IngestError(
                f"{file}: {found} questions, the official file of that name has {wanted}; get it again, or give a "
                f"sample of it another name. {self.source}"
            )
        if (known := self.sha256.get(file.name)) and known != (digest := _digest(file)):
            raise IngestError(f"{file}: its sha256 is {digest}, that of the official file is {known}; {self.source}")


def _questions(records: Iterator[QuestionRecord], read: Read, left_out: list[str]) -> Iterator[Question]:
    """The records' questions; the places of records that are none go to `left_out`."""
    seen: dict[str, str] = {}
    for record in records:
        question = plain_question(record) if is_plain(record) else read(record)
        if question is None:
            left_out.append(record.where)
            continue
        if question.id in seen and is_plain(record):
            raise record.error(f"id {question.id!r} is that of {seen[question.id]} too; ids are unique in a file")
        if question.id in seen:  # MuSiQue-Full: a question and its unanswerable twin
            question = replace(question, id=f"{question.id}#{record.number}")
        seen[question.id] = record.where
        yield question


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
