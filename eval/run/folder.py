"""Keeps an evaluation run on disk: a folder with a manifest, one line for each result, and a summary.

    manifest.json   which system was asked which questions; a run is resumed only under the same manifest
    results.jsonl   one `Result` a line, in the order in which the questions ended
    replies.sqlite  the models' replies, so that a question cut off halfway does not call models for them again
    summary.json    can always be computed from results.jsonl
    questions.jsonl the questions, if they were given as rows and not as a file

A question counts as done when its line is on disk. A crash may leave an incomplete last line: it is removed
when the run is resumed, and its question is asked again.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from ras_agent.contracts.errors import RunError, needs_extra
from ras_agent.contracts.records import JSON
from ras_agent.eval.run.manifest import VERSIONS, differences
from ras_agent.eval.run.result import Result, table_rows
from ras_agent.tools.store.durable import replace_file, writer_lock, writing

_QUESTIONS = ("questions", "questions_sha256")


class RunFolder:
    """Reads and writes the folder of a run. Thread safe. `writing` ensures that only one process writes at a
    time.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest_path = self.path / "manifest.json"
        self.results_path = self.path / "results.jsonl"
        self.summary_path = self.path / "summary.json"
        self.lock_path = self.path / "run.lock"
        """The file that the writing process locks."""
        self.questions_path = self.path / "questions.jsonl"
        """The questions, if they were given as rows and not as a file."""
        self.replies_path = self.path / "replies.sqlite"
        """The cache of model replies."""
        self._lock = threading.Lock()
        self._is_new = False

    @classmethod
    def begin(
        cls,
        path: str | Path,
        manifest: Mapping[str, Any],
        asked: Mapping[str, str] | None = None,
    ) -> Self:
        """Return the folder of a new run, or of a run that was begun there under the same manifest.

        Args:
            path: The folder.
            manifest: The manifest of the run.
            asked: The texts of the questions by id. If the folder's run has only some of these questions, it
                continues with all of them, and its manifest is updated.

        Raises:
            RunError: If another configuration began the folder (the message names the differences), the folder
                holds something else, or another process writes to it.
        """
        folder = cls(path)
        folder._check_content()
        folder.path.mkdir(parents=True, exist_ok=True)
        with sole_writer(folder.lock_path):
            folder._check_content()
            if folder.manifest_path.exists():
                changes = differences(folder.manifest(), manifest)
                if changes and folder._has_more_questions(changes, asked or {}):
                    counted = {name: manifest[name] for name in _QUESTIONS}
                    write_json(folder.manifest_path, {**folder.manifest(), **counted})
                elif changes:
                    raise RunError(
                        f"{folder.path} was begun with another configuration: {'; '.join(changes)}. Resume it with that "
                        "configuration, or give this run its own folder with --out"
                    )
                folder._note_sitting(manifest)
            else:
                write_json(folder.manifest_path, manifest)
                folder._is_new = True
        return folder

    def _has_more_questions(
        self, changes: Sequence[str], asked: Mapping[str, str]
    ) -> bool:
        """Tell whether the manifests differ only because questions were added to those that have a result."""
        for change in changes:
            key, _, _ = change.partition(":")
            if key not in _QUESTIONS:
                return False
        return all(asked.get(result.id) == result.question for result in self.results())

    def undo_begin(self) -> None:
        """Delete a new run that could not be set up after `begin`, so that another configuration can use the folder.

        Nothing is deleted if the run existed before, or if another process has begun it since.
        """
        if not self._is_new:
            return
        try:
            with sole_writer(self.lock_path):
                if self.results_path.exists():
                    return
                for path in (
                    self.manifest_path,
                    *self.path.glob(f"{self.replies_path.name}*"),
                ):
                    path.unlink(missing_ok=True)
                if set(self.path.iterdir()) == {self.lock_path}:
                    self.lock_path.unlink()
                    self.path.rmdir()
        except RunError:
            return

    def _check_content(self) -> None:
        """Raise RunError if the folder exists and holds something other than a run."""
        if repeat_folders(self.path):
            raise RunError(
                f"{self.path} holds repeats of a run: continue them with --repeat, or name another folder with --out"
            )
        check_content("run", self.manifest_path, {self.lock_path})

    def manifest(self) -> JSON:
        """Return the manifest, which describes task and agent.

        Raises:
            RunError: If the manifest is missing or cannot be read.
        """
        repeats = repeat_folders(self.path)
        if repeats and not self.manifest_path.exists():
            raise RunError(
                f"{self.path} holds {len(repeats)} repeats of a run: name the folder of one, such as {repeats[0]}"
            )
        remedy = "name a folder that `ras-agent eval --out FOLDER` wrote"
        return read_description("run", self.manifest_path, remedy)

    def _note_sitting(self, now: Mapping[str, Any]) -> None:
        """Add the current versions of packages and code to the manifest if they differ from those of the last
        resumption.
        """
        manifest = self.manifest()
        last = {**manifest, **(manifest.get("resumed") or [{}])[-1]}
        changed = {}
        for name in VERSIONS:
            if name in now and now[name] != last.get(name):
                changed[name] = now[name]
        if changed:
            noted: list[Any] = list(manifest.get("resumed") or ())
            noted.append({"started": now.get("started"), **changed})
            write_json(self.manifest_path, {**manifest, "resumed": noted})

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the folder's lock inside the block. A crash releases it.

        Raises:
            RunError: if another process holds it.
        """
        with sole_writer(self.lock_path):
            self._cut_off_half_a_line()
            yield

    def append(self, result: Result) -> None:
        """Write a result's line to disk, and return when it is stored there."""
        with (
            self._lock,
            writing(self.results_path),
            self.results_path.open("ab") as file,
        ):
            file.write(_line(result.to_dict()))
            file.flush()
            os.fsync(file.fileno())

    def results(self) -> Iterator[Result]:
        """Yield the results. An incomplete last line is skipped.

        Raises:
            RunError: a line is not a result; the message has its number.
        """
        if not self.results_path.exists():
            return
        with self.results_path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield Result.from_dict(json.loads(line))
                except (ValueError, TypeError) as error:
                    where = f"{self.results_path} line {number}"
                    raise RunError(
                        f"{where}: not a result ({error}); remove the line to ask it again"
                    ) from error

    def rows(self) -> list[JSON]:
        """Return the results as rows of a table, with a column for each score and lists as JSON, without
        traces.

        `ras-agent export RUN --to csv` or `--to parquet` writes them to a file.
        """
        return table_rows(tuple(self.results()))

    def to_pandas(self, order: Sequence[str] = ()) -> Any:
        """Return the results as a pandas DataFrame with a row for each question and a column for each score.

        Args:
            order: the ids of the questions in the order of the rows; by default the order in which they ended.

        Raises:
            MissingExtra: pandas is not installed.
        """
        with needs_extra("a DataFrame", "datasets"):
            import pandas  # pyright: ignore[reportMissingImports]
        rows = self.rows()
        if order:
            by_id = {row["id"]: row for row in rows}
            rows = [by_id[name] for name in order if name in by_id]
        return pandas.DataFrame(rows)

    def forget(self, ids: Collection[str]) -> None:
        """Delete the results of the questions with these ids, so that they are asked again. Call it inside `writing`."""
        lines = []
        for result in self.results():
            if result.id not in ids:
                lines.append(_line(result.to_dict()))
        replace_file(self.results_path, b"".join(lines))

    def write_questions(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace the content of the file of questions by these rows."""
        lines = map(_line, rows)
        replace_file(self.questions_path, b"".join(lines))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Replace summary.json."""
        write_json(self.summary_path, summary)

    def _cut_off_half_a_line(self) -> None:
        if not self.results_path.exists():
            return
        with self.results_path.open("rb+") as file:
            content = file.read()
            complete = content.rfind(b"\n") + 1
            if complete < len(content):
                file.truncate(complete)
                file.flush()
                os.fsync(file.fileno())


def repeat_folders(path: Path) -> list[Path]:
    """Return the folders repeat-1, repeat-2, ... in `path`, in order; [] if it holds no repeats."""
    numbered = {}
    for folder in path.glob("repeat-*"):
        number = folder.name.removeprefix("repeat-")
        if number.isdecimal() and (folder / "manifest.json").exists():
            numbered[int(number)] = folder
    return [folder for _, folder in sorted(numbered.items())]


def check_content(kind: str, described: Path, own: Collection[Path]) -> None:
    """Raise RunError if a folder exists and holds something other than a run or a study.

    Args:
        kind: "run" or "study".
        described: The file of the folder that describes the run or the study.
        own: Files that may be there before it.
    """
    folder = described.parent
    # listed only once: another process may begin at the same time
    there = set(folder.iterdir()) if folder.is_dir() else set()
    half_written = described.with_name(f"{described.name}.new")
    if described not in there and there - {half_written, *own}:
        raise RunError(
            f"{folder} holds files but no {described.name}: it is not the folder of a {kind}; name another folder"
        )


def read_description(kind: str, described: Path, remedy: str) -> JSON:
    """Return the content of the file that describes a run or a study.

    Args:
        kind: "run" or "study".
        described: The file.
        remedy: What the user can do if the file is missing.

    Raises:
        RunError: If the file is missing or cannot be read.
    """
    try:
        data: JSON = json.loads(described.read_text("utf-8"))
    except OSError as error:
        raise RunError(
            f"{described.parent} is not the folder of a {kind}: {error.strerror}: {described.name}; {remedy}"
        ) from error
    except ValueError as error:
        raise RunError(
            f"{described}: not JSON ({error}); restore it from a copy, or begin a new {kind}"
        ) from error
    return data


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace the content of a file by a value as JSON; see `as_json`."""
    replace_file(path, as_json(value, indent=2))


def _line(value: Mapping[str, Any]) -> bytes:
    return as_json(value) + b"\n"


def as_json(value: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Encode a value as JSON in UTF-8 that every parser accepts: lone surrogates become "?", NaN and infinities
    become null.
    """
    text = json.dumps(_finite(value), ensure_ascii=False, indent=indent, default=str)
    return text.encode("utf-8", "replace")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def sole_writer(lock: Path) -> Iterator[None]:
    """Hold the lock file `lock` inside the block.

    Raises:
        RunError: another process holds it.
    """
    locks = ExitStack()
    try:
        locks.enter_context(writer_lock(lock, wait=False))
    except BlockingIOError:
        raise RunError(
            f"another process is writing to {lock.parent}; wait for it, or name another folder"
        ) from None
    with locks:
        yield
