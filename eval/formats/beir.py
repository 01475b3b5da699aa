"""Reads BEIR (Thakur et al., 2021): corpus.jsonl, queries.jsonl, and the judgements of each split in
qrels/SPLIT.tsv.

    {"_id": "q1", "text": "...", "metadata": {}}
    {"_id": "d1", "title": "...", "text": "...", "metadata": {}}
    query-id<TAB>corpus-id<TAB>score

Given the folder or its queries.jsonl, the queries that qrels/test.tsv judges are read; given another file of
qrels, such as qrels/dev.tsv, the queries that it judges. There are no answers, so only passages can be scored,
as with `--retrieval-only`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.eval.formats.registry import Format, Look, registered
from ras_agent.eval.question import Question
from ras_agent.eval.question_file import OnBad, QuestionRecord, read_records

_QUERIES = ("queries.jsonl", "queries.jsonl.gz")
_JUDGED = "qrels"
_COLUMNS = ("query-id", "corpus-id", "score")


def owns(path: Path) -> bool:
    """Tell whether a file is BEIR's queries or judgements."""
    return (path.name in _QUERIES and (path.parent / _JUDGED).is_dir()) or (
        path.suffix == ".tsv" and path.parent.name == _JUDGED
    )


def rows(path: Path, on_bad: OnBad | None = None) -> Iterator[QuestionRecord]:
    """Yield the judged queries with their judgements under "qrels": {passage id: grade}.

    Raises IngestError if the user has to choose a split, or if a judged query is missing.
    """
    if path.name in _QUERIES:
        judgements = _split(path.parent / _JUDGED)
        queries = path
    else:
        judgements = path
        queries = _queries(path.parent.parent)
    grades = read_judgements(judgements)
    for record in read_records(queries, on_bad=on_bad):
        if (judged := grades.pop(str(record.data.get("_id")), None)) is not None:
            yield QuestionRecord(
                {**record.data, "qrels": judged}, record.where, record.number
            )
    if grades:
        raise IngestError(
            f"{judgements}: query {next(iter(grades))!r} is not in {queries.name}; get both files from the same set"
        )


def read_judgements(path: Path) -> dict[str, dict[str, int]]:
    """Return the grades in a file with a header as {query: {passage: grade}}, in the order of the file.

    Raises:
        IngestError: If a row cannot be read.
    """
    grades: dict[str, dict[str, int]] = {}
    for record in read_records(path):
        query, passage, grade = (record.text(column) for column in _COLUMNS)
        if not grade.removeprefix("-").isdecimal():
            raise record.error(f"'score' should be a whole number, found {grade!r:.80}")
        grades.setdefault(query, {})[passage] = int(grade)
    return grades


def _split(folder: Path) -> Path:
    """Return the judgements to use: those of the test split, or else of the only split.

    Raises:
        IngestError: there are several splits and no test split, or none.
    """
    splits = sorted(folder.glob("*.tsv"))
    if (folder / "test.tsv") in splits:
        return folder / "test.tsv"
    if len(splits) == 1:
        return splits[0]
    names = ", ".join(split.name for split in splits) or "no .tsv"
    raise IngestError(f"{folder}: holds {names}; name the split's file with --data")


def _queries(folder: Path) -> Path:
    for name in _QUERIES:
        if (folder / name).is_file():
            return folder / name
    raise IngestError(
        f"{folder}: no {_QUERIES[0]} next to {_JUDGED}; get the whole set"
    )


def read_question(record: QuestionRecord) -> Question:
    """Return the query of a record with `_id`, `text` and `qrels`. Passages of grade 1 and higher are gold.

    The grades are kept in the metadata as `relevance`, best first, for nDCG.
    """
    grades = record.inside(record.data["qrels"], "qrels").data
    relevant = {}
    for name, grade in sorted(grades.items(), key=lambda item: -item[1]):
        if grade > 0:
            relevant[name] = grade
    return Question(
        id=record.text("_id"),
        question=record.text("text"),
        answers=(),
        supporting=tuple(relevant),
        metadata={
            **record.inside(record.data.get("metadata") or {}, "metadata").data,
            "relevance": relevant,
        },
    )


def read_passages(record: QuestionRecord) -> Sequence[Passage]:
    """Return the only passage of a record with `_id`, `text` and `title`, with its metadata."""
    given: Any = record.data.get("metadata")
    metadata = {}
    if isinstance(given, dict):
        for key, value in given.items():
            if value is not None:
                metadata[key] = value
    title = ""
    if record.data.get("title"):
        title = record.text("title")
    return [Passage(record.text("_id"), record.text("text"), title, metadata=metadata)]


BEIR = registered(
    Format(
        name="beir",
        title="BEIR's corpora, queries and judgements",
        question=Look.of("_id", "text", "qrels"),
        read_question=read_question,
        # with an id it is a plain passage
        passage=Look.of("_id", "text", without=("id",)),
        read_passages=read_passages,
        owns=owns,
        rows=rows,
    )
)
