"""Prepares the input of a format's writer: a run's manifest and results, or the calls of one role with their
replies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import ras_agent
from ras_agent.config.address import Address
from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import JSON, Passage
from ras_agent.eval.formats.calls import RoleCall, read_calls
from ras_agent.eval.metrics import Outcome, find_metric
from ras_agent.eval.question import Question, rest_of
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result, score_columns
from ras_agent.tools.store.durable import replace_file


@dataclass(frozen=True, slots=True)
class Exported:
    """Holds a run, or some of its results, for a format's writer."""

    manifest: JSON
    """The manifest of the run's folder, which describes task and agent."""
    results: tuple[Result, ...] = ()
    calls: tuple[RoleCall, ...] = ()
    """The calls of one role, to train a model for the role."""
    folder: Path = Path()
    """The run's folder."""
    questions: Mapping[str, Question] = field(default_factory=dict)
    """The questions of the run's data by id, if the data still exist."""

    @property
    def name(self) -> str:
        """Return the name of the run."""
        return str(self.manifest.get("name") or "ras-agent")

    @classmethod
    def read(cls, path: Path, questions: Iterable[Question] = ()) -> Self:
        """Return the run in a folder.

        Args:
            path: The folder.
            questions: The questions of the run's data; the results are put in their order.

        Raises:
            RunError: If the folder holds no run, or a run without results.
        """
        folder = RunFolder(path)
        manifest = folder.manifest()
        results = list(folder.results())
        if not results:
            raise RunError(
                f"{path}: no question of this run has ended; finish it with `ras-agent eval`"
            )
        by_id = {question.id: question for question in questions}
        places = {name: place for place, name in enumerate(by_id)}
        # in the order of the data
        results.sort(key=lambda result: places.get(result.id, len(places)))
        return cls(manifest, tuple(results), folder=path, questions=by_id)

    def question_of(self, result: Result) -> Question:
        """Return the question of a result: from the run's data, or else made from the fields of the result."""
        question = self.questions.get(result.id)
        if question is not None and question.question == result.question:
            return question
        known = Question(
            result.id,
            result.question,
            result.answers,
            result.supporting,
            by_title=result.by_title,
            type=result.type,
        )
        metadata: JSON = {}
        if result.relevance:
            metadata["relevance"] = dict(result.relevance)
        if result.gold_hops and result.gold_hops != known.hops:
            metadata["hops"] = result.gold_hops
        return replace(known, metadata=metadata)

    def rows(self, row_of: Callable[[Result], JSON]) -> list[JSON]:
        """Return the row of each result, with the fields of its question that the row's format does not have (see
        ras_agent.eval.question).
        """
        rows = []
        for result in self.results:
            rest = rest_of(self.question_of(result))
            rows.append({**row_of(result), **rest})
        return rows

    def with_calls(
        self, role: str, replies: str | Path | Address | None = None
    ) -> Self:
        """Return the run with the calls of a role; see `read_calls`.

        `replies` is the place of the cached replies, by default the run's folder.
        """
        provenance: JSON = {"run": str(self.folder)}
        for name in ("benchmark", "graph", "git_commit", "started"):
            provenance[name] = self.manifest.get(name)
        provenance["ras_agent"] = ras_agent.__version__
        place = replies or RunFolder(self.folder).replies_path
        calls = read_calls(self.results, role, place, provenance)
        return replace(self, calls=tuple(calls))

    def chosen(self, least: Mapping[str, float], *, cited: bool = False) -> Self:
        """Return the run with only some of its results.

        An answer counts as cited if a sentence that it cites supports it. A yes or a no that cites something
        counts too, because support for it cannot be judged.

        Args:
            least: The lowest score that a result needs in each metric.
            cited: Whether it also needs a cited answer.

        Raises:
            RunError: If no result has scores of a metric, or traces are missing.
        """
        for metric in least:
            if not any(metric in result.scores for result in self.results):
                known = ", ".join(score_columns(self.results))
                raise RunError(
                    f"run {self.name} has no scores of {metric!r}, only of {known or 'nothing'}"
                )
        results = []
        for result in self.results:
            scores = result.scores
            low = any(scores.get(name, -1.0) < score for name, score in least.items())
            if not low and (not cited or is_cited(result)):
                results.append(result)
        return replace(self, results=tuple(results))


def is_cited(result: Result) -> bool:
    """Tell whether a sentence that the answer cites supports it, or may do so.

    Raises:
        RunError: the result has no trace.
    """
    if result.trace is None:
        raise RunError(
            f"question {result.id!r} has no trace, so its citations are unknown; run it again with --traces"
        )
    outcome = Outcome.from_output(result.trace)
    if outcome.abstained or not outcome.answer or not outcome.citations:
        return False
    question = Question(result.id, result.trace["question"], ())
    return find_metric("citation_support").score(question, outcome) != 0.0


def passages_of(result: Result) -> tuple[Passage, ...]:
    """Return the passages retrieved for a question, in order.

    Raises:
        RunError: the run has no traces.
    """
    if result.trace is None:
        if result.error or not result.retrieved:
            return ()
        raise RunError(
            f"question {result.id!r} has no trace, so its passages' texts are unknown; run it again with --traces"
        )
    passages = result.trace.get("passages") or {}
    return tuple(map(Passage.from_dict, passages.values()))


def gold_of(result: Result) -> JSON:
    """Return a result's gold passages as a part of a row, under the key that tells titles from ids; {} without any."""
    if not result.supporting:
        return {}
    key = "supporting_ids"
    if result.by_title:
        key = "supporting_titles"
    return {key: list(result.supporting)}


def lines_of_results(
    row_of: Callable[[Result], JSON],
) -> Callable[[Exported, Path], list[Path]]:
    """Return a function that writes the row of each result of a run as a line of JSON."""
    return lambda run, path: write_lines(path, run.rows(row_of))


def lines_of_calls(
    row_of: Callable[[RoleCall], JSON],
) -> Callable[[Exported, Path], list[Path]]:
    """Return a function that writes the row of each call of a run as a line of JSON."""
    return lambda run, path: write_lines(path, map(row_of, run.calls))


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> list[Path]:
    """Write each row as a line of JSON, and return [path]. Characters that are not valid Unicode become "?"."""
    lines = []
    for row in rows:
        line = json.dumps(row, ensure_ascii=False, default=str)
        lines.append(f"{line}\n")
    return write_text(path, "".join(lines))


def write_json(path: Path, value: JSON) -> list[Path]:
    """Write one JSON document, and return [path]."""
    text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    return write_text(path, f"{text}\n")


def write_text(path: Path, text: str) -> list[Path]:
    """Write a file as a whole or not at all, and return [path]. Characters that are not valid Unicode become
    "?".
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode("utf-8", "replace")
    replace_file(path, content)
    return [path]
