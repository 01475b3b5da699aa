"""Compares retrievers, and agents with them, on a public question set, in one table with published figures.

The files of a set are checked by their digests, so that two people who name the same set ask the same questions
over the same passages. `arena.json` lists the sets and the published figures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import IngestError, SettingsError
from ras_agent.contracts.records import JSON, Passage
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.benchmarks.registry import corpus_file
from ras_agent.eval.question import context_passage
from ras_agent.eval.report.markdown import markdown_table, percent
from ras_agent.eval.run.agent import EvalAgent, search_agent
from ras_agent.eval.run.manifest import file_sha256, versions
from ras_agent.eval.run.prices import Prices
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.task import Task
from ras_agent.eval.study.design import Design, Shown, extended
from ras_agent.eval.study.graph_pays import agent_over, without_unused
from ras_agent.eval.study.tables import RunRow, compared, markdown_rows

RETRIEVERS = ("dense", "bm25", "ppr", "gfm", "ppr+dense", "kg-mix")
_COLUMNS = ("recall@2", "recall@5", "all_recall@5", "mrr")
_HEADLINE = "recall@5"
_DEPTH = 5
"""The minimum number of passages that are compared."""
_ANSWERS = "answers over "
"""The beginning of the name of a run with answers."""


@dataclass(frozen=True, slots=True)
class PublicSet:
    """Describes a question set on which others report figures."""

    name: str
    title: str
    benchmark: str
    """The name of the benchmark that reads the questions."""
    source: str
    """Where to get the files, as a sentence for the user."""
    questions: str
    """The name of the file of questions."""
    corpus: str
    """The name of the file of passages."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The git object id of each file, as the repository that holds the file lists it."""
    published: Sequence[JSON] = ()
    """Published rows: system, setting, and scores in percent by metric."""


@dataclass(frozen=True, slots=True)
class SetFiles:
    """Names the files of a question set in a folder."""

    questions: Path
    corpus: Path | None
    """None if the passages come with the questions."""
    is_checked: bool
    """Whether the files were compared with their digests."""

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file, by the file's name."""
        files = [self.questions]
        if self.corpus:
            files.append(self.corpus)
        return {file.name: file_sha256(file) for file in files}


@cache
def public_sets() -> Mapping[str, PublicSet]:
    """Return the sets with known digests of their files, by name."""
    text = Path(__file__).with_name("arena.json").read_text("utf-8")
    sets = {}
    for name, described in json.loads(text).items():
        sets[name] = PublicSet(name, **described)
    return sets


def find_set(name: str, data: Path) -> PublicSet:
    """Return the public set called `name` if `data` is a folder; if it is a file, a set of that file, read by
    the benchmark `name`.

    Raises:
        UnknownName: If there is no such set or benchmark.
    """
    known = public_sets().get(name)
    if known and not data.is_file():
        return known
    own = benchmark(name)
    return PublicSet(name, own.title, name, own.source, questions="", corpus="")


def set_files(public: PublicSet, data: Path, corpus: Path | None = None) -> SetFiles:
    """Return the files of a set in a folder, or a user's file of a benchmark.

    Args:
        public: The set.
        data: The folder or the file.
        corpus: The passages for a user's file.

    Raises:
        IngestError: If a file is missing or differs from the official one.
        SettingsError: If a corpus is given for a set that has one.
    """
    if not public.digests:
        found = corpus or corpus_file(data)
        questions = benchmark(public.benchmark).file_in(data)
        return SetFiles(questions, None if found == data else found, is_checked=False)
    if corpus:
        raise SettingsError(f"{public.name} already has passages: leave --corpus out")
    for name, expected in public.digests.items():
        _check(public, data / name, expected)
    return SetFiles(data / public.questions, data / public.corpus, is_checked=True)


def _check(public: PublicSet, file: Path, expected: str) -> None:
    if not file.is_file():
        raise IngestError(f"{file}: no such file; {public.source}")
    digest = git_digest(file.read_bytes())
    if digest != expected:
        raise IngestError(
            f"{file}: this is not the file of {public.title}: `git hash-object` gives {digest}, the official file has "
            f"{expected}. {public.source[0].upper()}{public.source[1:]}, with its line ends; for questions of your own give "
            "their file to --data"
        )


def git_digest(content: bytes) -> str:
    """Return the id that git gives to a file with this content, as `git hash-object` prints it."""
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def set_passages(public: PublicSet, files: SetFiles) -> list[Passage]:
    """Return the passages of a set, each once.

    If the set has digests, a passage's id is made from its title and text, as for passages that come with
    questions.
    """
    source = benchmark(public.benchmark)
    if files.corpus is None:
        return source.corpus(files.questions)
    passages = source.corpus(files.corpus)
    if not files.is_checked:
        return passages
    named = {}
    for passage in passages:
        by_content = context_passage(passage.title, passage.text)
        named[by_content.id] = by_content
    return list(named.values())


def arena_design(
    task: Task,
    settings: Settings,
    public: PublicSet,
    files: SetFiles,
    *,
    retrievers: Sequence[str] = (),
    answers: bool = False,
    prices: Prices | None = None,
    built: Mapping[str, Any] | None = None,
) -> Design:
    """Return a design with a search by each retriever and, with `answers`, the settings' agent over each retriever.

    Args:
        task: The questions.
        settings: The settings of the agent.
        public: The set, with its published figures.
        files: The files of the set.
        retrievers: The names of the retrievers; the first is the base of the comparison.
        answers: Whether the agent answers, too.
        prices: The prices of model calls.
        built: What it took to build the index, if it was built for this comparison.

    Raises:
        SettingsError: If nothing can be measured.
        UnknownName: If there is no such retriever.
    """
    names = list(dict.fromkeys(retrievers)) or list(RETRIEVERS)
    depth = max(settings.k, _DEPTH)
    found_metrics = extended(_COLUMNS, f"recall@{depth}", f"all_recall@{depth}")
    runs: list[tuple[Task, EvalAgent]] = []
    has_gold = any(question.supporting for question in task.questions)
    if not has_gold and not answers:
        raise SettingsError(
            f"{task.data} names no gold passages, so that only answers can be scored: add --answers"
        )
    if has_gold:
        scored = task.scored_by(extended(found_metrics, "answer_in_passages"))
        for name in names:
            variant = {"retriever": name, "k": depth}
            own = without_unused(settings, name).model_copy(update=variant)
            runs.append((scored, search_agent(name, own, variant=variant)))
    if answers:
        for name in names:
            runs.append((task, agent_over(name, settings, _ANSWERS + name)))
    figures = {
        "set": public.name,
        "title": public.title,
        "files": files.digests(),
        "checked": files.is_checked,
        "passages": len(task.index.passages),
        "built": built,
        "published": public.published,
        "versions": versions(),
    }
    show = partial(
        _show,
        base=names[0],
        found_metrics=found_metrics,
        answer_metrics=extended(task.metrics[:3], "all_recall"),
        prices=prices,
        figures=figures,
    )
    return Design("arena", tuple(runs), show, _HEADLINE, names[0])


def _show(
    runs: Mapping[str, Sequence[Result]],
    *,
    base: str,
    found_metrics: Sequence[str],
    answer_metrics: Sequence[str],
    prices: Prices | None,
    figures: JSON,
) -> Shown:
    searches = {}
    answers = {}
    for name, results in runs.items():
        if name.startswith(_ANSWERS):
            answers[name.removeprefix(_ANSWERS)] = results
        else:
            searches[name] = results
    parts = [_heading(runs, figures)]
    rows: list[RunRow] = []
    if searches:
        rows = compared(searches, found_metrics, _HEADLINE, base)
        table = markdown_rows(
            rows, found_metrics, _HEADLINE, base, loop=False, costs=True
        )
        parts.append(f"## Passages found, %\n\n{table}")
    answer_rows: list[RunRow] = []
    if answers:
        headline = answer_metrics[0]
        answer_rows = compared(answers, answer_metrics, headline, base, prices=prices)
        table = markdown_rows(answer_rows, answer_metrics, headline, base, costs=True)
        parts.append(f"## Answers, %\n\n{table}")
    ceilings: Mapping[str, float] = {}
    if rows:
        ceilings = rows[0].ceilings
    if figures["published"]:
        parts.append(_published(figures["published"], ceilings))
    parts.append(_made_with(figures))
    shown = {
        **figures,
        "ceilings": dict(ceilings),
        "retrieval": [asdict(row) for row in rows],
        "answers": [asdict(row) for row in answer_rows],
    }
    return Shown("\n\n".join(parts) + "\n", shown)


def _heading(runs: Mapping[str, Sequence[Result]], figures: JSON) -> str:
    asked = max(len(results) for results in runs.values())
    checked = "known by their digests"
    if not figures["checked"]:
        checked = "whose digests are listed below and known to nobody else"
    return (
        f"# {figures['title']}\n\n{asked:,} questions over {figures['passages']:,} passages, files {checked}. Scores are "
        "in percent with 95 % intervals; differences are paired, in points."
    )


def _published(published: Sequence[JSON], ceilings: Mapping[str, float]) -> str:
    metrics = extended((), *chain.from_iterable(row["scores"] for row in published))
    lines = []
    for row in published:
        cells = [row["system"], row["setting"]]
        for metric in metrics:
            cells.append(_published_score(row["scores"].get(metric), ceilings, metric))
        lines.append(cells)
    table = markdown_table(["system", "setting", *metrics], lines, texts=2)
    return f"## Published by others, not measured here, %\n\n{table}"


def _published_score(
    score: float | None, ceilings: Mapping[str, float], metric: str
) -> str:
    """Return a published score as text. It says so if no search over these questions can reach that score."""
    if score is None:
        return "–"
    ceiling = ceilings.get(metric, 1.0)
    if score <= 100 * ceiling:
        return f"{score:.1f}"
    return f"{score:.1f}, above the {percent(ceiling)} that these questions allow"


def _made_with(figures: JSON) -> str:
    lines = ["## Made with", ""]
    for name, digest in figures["files"].items():
        lines.append(f"- {name}: sha256 {digest}")
    if figures["built"]:
        index = figures["built"]["index_seconds"]
        graph = figures["built"]["graph_seconds"]
        lines.append(f"- index made in {index:.0f} s, its graph in {graph:.0f} s")
    made = figures["versions"]
    packages = ", ".join(f"{name} {at}" for name, at in made["packages"].items())
    lines.append(f"- {packages}, Python {made['python']}")
    if made["git_commit"]:
        lines.append(f"- commit {made['git_commit']}")
    return "\n".join(lines)
