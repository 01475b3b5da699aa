"""Registers the file formats of other tools: how they are read as questions and passages, and how a run is
written.

A format is registered where it is defined, `FLASHRAG = registered(Format(name="flashrag", ...))`. The modules
of this folder are imported when needed. A format of another package is known once its module has been imported,
or by name if the package lists it under its entry points `ras_agent.format`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from ras_agent.config import registry
from ras_agent.contracts.errors import IngestError, UnknownName
from ras_agent.contracts.records import Passage
from ras_agent.eval.formats.exported import Exported
from ras_agent.eval.question import REST, Question, with_rest
from ras_agent.eval.question_file import OnBad, QuestionRecord, read_records

Write = Callable[[Exported, Path], Sequence[Path]]
"""A function that writes results or calls to a path, as a file, as several files next to it, or as a folder. It
returns the paths that it wrote."""


@dataclass(frozen=True, slots=True)
class Look:
    """Recognises a record by its keys: it has all of `keys` and none of `without`."""

    keys: frozenset[str]
    without: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *keys: str, without: Sequence[str] = ()) -> Look:
        """Make a Look from the keys that a record has, and those that it must not have."""
        return cls(frozenset(keys), frozenset(without))

    def fits(self, record: QuestionRecord) -> bool:
        """Tell whether a record has these keys."""
        keys = record.data.keys()
        return self.keys <= keys and keys.isdisjoint(self.without)


@dataclass(frozen=True, slots=True)
class Format:
    """Describes a file format of questions, passages or runs."""

    name: str
    title: str
    question: Look | None = None
    """The keys that identify a record of a question; None if the format has no questions."""
    read_question: Callable[[QuestionRecord], Question] | None = None
    """Returns the question of a record. Raises `record.error(...)` for a wrong record."""
    passage: Look | None = None
    """The keys that identify a record of passages; None if the format has no passages."""
    read_passages: Callable[[QuestionRecord], Sequence[Passage]] | None = None
    """Returns the passages of a record. Raises `record.error(...)` for a wrong record."""
    owns: Callable[[Path], bool] | None = None
    """Tells whether a file is read together with other files of its folder."""
    rows: Callable[[Path, OnBad | None], Iterator[QuestionRecord]] | None = None
    """Yields the records of such a file, read together with the others."""
    write_results: Write | None = None
    """Writes the results of a run."""
    write_calls: Write | None = None
    """Writes the calls of a role with their replies."""
    pairs: bool = False
    """Whether `write_calls` also takes calls with a rejected reply."""
    trains_every_turn: bool = False
    """Whether the trainer that reads the calls trains on all assistant turns of a prompt, and not only on the reply."""


def registered(form: Format) -> Format:
    """Register a format under its name, and return it."""
    registry.register("format", form.name, form)
    formats.cache_clear()
    return form


def find_format(name: str) -> Format:
    """Return the format called `name`.

    Raises:
        UnknownName: there is no such format; the message lists the names.
    """
    _register_own()
    return registry.find_a(Format, "format", name)


@cache
def formats() -> tuple[Format, ...]:
    """Return all formats, sorted by name."""
    _register_own()
    names = sorted(registry.names("format"))
    return tuple(map(find_format, names))


def writers(*, calls: bool = False, pairs: bool = False) -> dict[str, Write]:
    """Return the functions that write results, by the name of the format.

    With `calls`, return those that write the calls of a role; with `pairs`, those that write pairs of calls.
    """
    written = {}
    for form in formats():
        write = form.write_results
        if calls or pairs:
            write = form.write_calls
        if write and (form.pairs or not pairs):
            written[form.name] = write
    return written


def format_to_write(name: str, *, calls: bool = False, pairs: bool = False) -> Write:
    """Return the function that writes the format `name`; `calls` and `pairs` are as for `writers`.

    Raises:
        UnknownName: If the format cannot be written; the message lists those that can.
    """
    table = writers(calls=calls, pairs=pairs)
    if name in table:
        return table[name]
    written = "results"
    if pairs:
        written = "pairs"
    elif calls:
        written = "calls"
    raise UnknownName(f"format of {written}", name, tuple(table))


def question_format(record: QuestionRecord) -> Format | None:
    """Return the format of questions whose keys a record has; of several, the one with the most keys. None if no
    format fits.
    """
    return _closest(record, "question")


def passage_format(record: QuestionRecord) -> Format | None:
    """Return the format of passages whose keys a record has; of several, the one with the most keys. None if no format
    fits.
    """
    return _closest(record, "passage")


def _closest(
    record: QuestionRecord, kind: Literal["question", "passage"]
) -> Format | None:
    closest = None
    most = 0
    for form in formats():
        look: Look | None = getattr(form, kind)
        if look and len(look.keys) > most and look.fits(record):
            closest = form
            most = len(look.keys)
    return closest


def read_rows(
    path: str | Path,
    under: str = "",
    columns: Sequence[str] = (),
    on_bad: OnBad | None = None,
) -> Iterator[QuestionRecord]:
    """Yield the records of a file. The arguments are those of `read_records`.

    If a format needs other files of the same folder, these are read too.
    """
    path = Path(path)
    for form in formats():
        if form.owns and form.rows and form.owns(path):
            return form.rows(path, on_bad)
    return read_records(path, under, columns, on_bad)


def read_question(record: QuestionRecord) -> Question | None:
    """Return the question of a record, or None if its keys are not those of any format."""
    form = question_format(record)
    if form is None or form.read_question is None:
        return None
    question = form.read_question(record)
    rest = record.data.get(REST)
    if not isinstance(rest, str):
        return question
    try:
        return with_rest(question, rest)
    except (ValueError, KeyError, TypeError) as error:
        raise record.error(
            f"{REST!r} was not written by an export ({error}): leave the key out"
        ) from error


def load_questions(path: str | Path) -> list[Question]:
    """Return the questions of a file in any format.

    Raises:
        IngestError: a record cannot be read; the message names its place.
    """
    return list(map(_question, read_rows(path)))


def _question(record: QuestionRecord) -> Question:
    question = read_question(record)
    if question:
        return question
    plain = find_format("jsonl")
    assert plain.read_question
    # raises an error that says which field is missing
    return plain.read_question(record)


def load_passages(path: str | Path, on_bad: OnBad | None = None) -> list[Passage]:
    """Return the passages of a file in any format: text, optional id and title; id and contents; _id, text and title.

    Args:
        on_bad: is called with the error of a record that is left out. Without it the error is raised.

    Raises:
        IngestError: a record cannot be read, or two passages have the same id; with `on_bad`, only if all records are
            bad.
    """
    passages: dict[str, Passage] = {}
    places: dict[str, str] = {}
    bad: list[IngestError] = []
    for record in read_records(path, on_bad=on_bad and bad.append):
        try:
            read = _passages(record)
            for passage in read:
                if passage.id in places:
                    raise record.error(
                        f"the id {passage.id!r} is already used by {places[passage.id]}: give each passage its own id"
                    )
        except IngestError as error:
            if on_bad is None:
                raise
            bad.append(error)
        else:
            for passage in read:
                passages[passage.id] = passage
                places[passage.id] = record.where
    if bad and not passages:
        raise bad[0]
    if on_bad is not None:
        for problem in bad:
            on_bad(problem)
    return list(passages.values())


def _passages(record: QuestionRecord) -> Sequence[Passage]:
    form = passage_format(record)
    if form is None or form.read_passages is None:
        keys = ", ".join(record.data)
        raise record.error(
            f"no format of passages has the keys of this record, {keys}; "
            "give it a key 'text', and 'id' and 'title' if it has them"
        )
    return form.read_passages(record)


@cache
def _register_own() -> None:
    folder, _, _ = __name__.rpartition(".")
    registry.import_modules_of(folder)
