"""Begins a run of a task by an agent, or resumes it from its folder after an interruption.

task = load_task("hotpotqa", Path("hotpot_dev.json"), settings, limit=100)
summary = begin_run(task, EvalAgent("mine", settings), Path("runs/mine")).finish()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ras_agent.config.settings import Settings, described_request
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import JSON
from ras_agent.eval.benchmarks import Benchmark
from ras_agent.eval.metrics.mauve import mauve_of, require_mauve
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import REMOTE_MAKERS, EvalAgent
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.manifest import RunDescription, file_sha256, manifest_of
from ras_agent.eval.run.prices import Prices
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.runner import evaluate, metric_scorer, question_work, remaining
from ras_agent.eval.run.summarise import summarise
from ras_agent.eval.run.task import Task, load_task
from ras_agent.eval.run.workers import LOCAL, WorkerPlan
from ras_agent.graphs.registry import graph_spec
from ras_agent.graphs.resolve import role_specs
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.resolve import reads_graph
from ras_agent.tools.roles import role_name
from ras_agent.tools.workers.pool import Here, Pool, Work, WorkSpec

# how models are asked, in addition to the limits; the cache and the pace are left out, since they change no figure
_ASKING = (
    "preset",
    "layout",
    "from_memory",
    "style",
    "answer_tokens",
    "few_shot",
    "temperature",
    "context_window",
)
# other choices: a manifest only has those that the user made, and older manifests lack them
_CHOICES = (
    "weights",
    "starts",
    "least_confidence",
    "calibration",
    "samples",
    "dialect",
    "filter",
    "form",
    "fallback",
    "evidence_tokens",
)


@dataclass(frozen=True, slots=True)
class Run:
    """Holds a run that has begun; `finish` asks the questions that have no result yet."""

    task: Task
    pool: Pool
    """Asks the questions, in this process or in others."""
    folder: RunFolder
    concurrency: int
    """The maximum number of questions that are asked at the same time."""
    done: tuple[Result, ...]
    """The results that the folder already had."""
    retry_errors: bool = False
    """Whether questions that ended in an error are asked again."""

    @property
    def questions(self) -> Sequence[Question]:
        """Return the questions of the task."""
        return self.task.questions

    @property
    def headline(self) -> str:
        """Return the name of the metric that is shown first."""
        return self.task.metrics[0]

    def to_pandas(self) -> Any:
        """Return the results so far as a pandas DataFrame: a row for each question, a column for each score.

        The rows are in the order of the task. Raises MissingExtra without pandas.
        """
        return self.folder.to_pandas([question.id for question in self.questions])

    def finish(
        self,
        on_end: Callable[[Result], None] | None = None,
        prices: Prices | None = None,
        mauve: str | None = None,
    ) -> JSON:
        """Ask the questions that have no result yet, write summary.json and return its content.

        Args:
            on_end: Is called with each new result.
            prices: The prices for the cost in the summary.
            mauve: The language model whose vectors are used to compare the answers with the gold answers; without it
                MAUVE is not computed.

        Raises:
            MissingExtra, SettingsError, WeightsError: If MAUVE cannot be computed; raised before the first question is
                asked.
        """
        if mauve:
            answered = [question for question in self.questions if question.answers]
            require_mauve(len(answered), mauve)
        results = evaluate(
            self.pool, self.questions, self.folder,
            concurrency=self.concurrency, retry_errors=self.retry_errors, on_end=on_end,
        )  # fmt: skip
        summary = {
            **summarise(results, prices),
            "skipped_records": len(self.task.skipped),
            "without_evidence": self.task.without_evidence,
        }
        self.folder.write_summary(summary)
        if mauve:
            summary["mauve"] = asdict(mauve_of(results, mauve))
            self.folder.write_summary(summary)
        return summary


def begin_run(
    task: Task,
    agent: EvalAgent,
    out: Path,
    *,
    retry_errors: bool = False,
    concurrency: int = 32,
    workers: WorkerPlan = LOCAL,
) -> Run:
    """Begin a run in the folder `out`, or resume it, and set up the agent.

    Args:
        task: The questions, and the index to search.
        agent: The agent to ask.
        out: The folder of the run.
        retry_errors: Whether questions that ended in an error are asked again.
        concurrency: The maximum number of questions that are asked at the same time.
        workers: The processes in which the questions are asked.

    Raises:
        RasError: If another task or agent began the folder, a role cannot be set up, or another process cannot make
            the agent.
    """
    if workers.remote and agent.make not in REMOTE_MAKERS.values():
        raise SettingsError(
            f"the agent {agent.name!r} can be made only in this process, not in those of --engine: leave --engine out"
        )
    settings = with_benchmark_defaults(agent.settings, task.benchmark)
    graph = agent.graph or settings.loop
    roles = _roles(agent, settings)
    described: RunDescription = {
        "name": agent.name,
        "benchmark": task.benchmark.name,
        "data": str(task.data),
        "data_sha256": file_sha256(task.data) if task.data.is_file() else None,
        "corpus": str(task.corpus) if task.corpus else None,
        "index": str(settings.index) if settings.index else None,
        "corpus_sha256": task.corpus_sha256,
        "graph": graph,
        "roles": roles,
        "limits": asdict(agent.limits or settings.limits),
        "metrics": list(task.metrics),
        "seed": agent.seed,
        "retrieval_only": agent.searches_only,
        "settings": _described_settings(task, settings),
        "variant": dict(agent.variant),
        "knowledge_graph": _knowledge_graph(task, settings),
    }
    asked = {}
    for question in task.questions:
        asked[question.id] = question.question
    folder = RunFolder.begin(
        out, manifest_of(task.questions, described, settings.prompts), asked
    )
    settings = workers.paced(with_default_cache(settings, folder), concurrency)
    try:
        pool = _pool(task, agent, settings, workers, graph, roles)
    except Exception:
        folder.undo_begin()
        raise
    if task.rows:
        folder.write_questions(task.rows)
    remaining_ids = {question.id for question in remaining(task.questions, folder)}
    results = []
    for result in folder.results():
        is_over = not (retry_errors and result.error)
        if is_over and result.id not in remaining_ids:
            results.append(result)
    return Run(task, pool, folder, concurrency, tuple(results), retry_errors)


def with_benchmark_defaults(settings: Settings, benchmark: Benchmark) -> Settings:
    """Return the settings with the form and length of answers that the benchmark expects, unless they set their
    own.

    A loop, such as IRCoT, may have its own form for short answers.
    """
    form = benchmark.style
    if form == "short":
        style = graph_spec(settings.loop).style
    else:
        style = form
    defaults = {
        "style": settings.style or style,
        "answer_tokens": settings.answer_tokens or benchmark.answer_tokens,
    }
    return settings.model_copy(update=defaults)


def with_default_cache(settings: Settings, folder: RunFolder) -> Settings:
    """Return the settings with model replies cached in the run's folder, unless they already name a cache."""
    if settings.cache:
        return settings
    return settings.model_copy(update={"cache": folder.replies_path.resolve()})


def remote_questions(
    *,
    task: Mapping[str, Any],
    agent: Mapping[str, Any],
    replies: str | None = None,
    facts: str | None = None,
) -> Work:
    """Set up the agent in a worker process as `begin_run` does in this one, with its own index and clients.

    All arguments are plain values that can be sent to another process.

    Args:
        task: The arguments of `load_task`.
        agent: The maker's name, settings, metrics, loop, roles and traces.
        replies: The file in which model replies are cached, unless the settings name another.
        facts: The file in which extracted facts are cached, unless the settings name another.
    """
    caches = {}
    for name, place in (("cache", replies), ("triple_cache", facts)):
        if place:
            caches[name] = place
    settings = Settings.model_validate({**agent["settings"], **caches})
    corpus = None
    if task["corpus"]:
        corpus = Path(task["corpus"])
    # the process that sends the questions has reported bad records
    loaded = load_task(**{**task, "corpus": corpus}, settings=settings, strict=False)
    answer = REMOTE_MAKERS[agent["make"]](loaded, settings)
    scorer = metric_scorer(agent["metrics"], cites=settings.style == "citing")
    return question_work(
        answer,
        scorer,
        mode=agent["graph"],
        roles=agent["roles"],
        traces=agent["traces"],
    )


def _pool(
    task: Task,
    agent: EvalAgent,
    settings: Settings,
    workers: WorkerPlan,
    graph: str,
    roles: Mapping[str, str],
) -> Pool:
    """Return the pool that asks the questions, in this process or in other processes."""
    if not workers.remote:
        answer = agent.make(task, settings)
        scorer = metric_scorer(task.metrics, cites=settings.style == "citing")
        return Here(
            question_work(answer, scorer, mode=graph, roles=roles, traces=agent.traces)
        )
    makers = {make: name for name, make in REMOTE_MAKERS.items()}
    spec = WorkSpec(
        "ras_agent.eval.run.begin:remote_questions",
        {
            "task": {
                "name": task.benchmark.name,
                "data": list(task.rows) or str(task.data.resolve()),
                "corpus": str(task.corpus.resolve()) if task.corpus else None,
                "embedder": task.embedder,
                "instruction": task.instruction,
                "context_use": task.context_use,
            },
            "agent": {
                "make": makers[agent.make],
                "settings": settings.model_dump(mode="json"),
                "metrics": list(task.metrics),
                "graph": graph,
                "roles": dict(roles),
                "traces": agent.traces,
            },
        },
    )
    return workers.pool(
        spec, {"replies": settings.cache, "facts": settings.triple_cache}
    )


def _roles(agent: EvalAgent, settings: Settings) -> dict[str, str]:
    """Return a mapping from each role to the name of its model or rule, without secrets."""
    if agent.only_roles is not None:
        return dict(agent.only_roles)
    if agent.searches_only:
        specs = {}
    else:
        specs = role_specs(settings)
    return {
        **{role: role_name(spec) for role, spec in specs.items()},
        "retriever": settings.retriever,
        **agent.roles,
    }


def _described_settings(task: Task, settings: Settings) -> JSON:
    """Return the settings for a manifest: how models are asked, and the options that the user chose."""
    described = settings.model_dump(include=set(_ASKING))
    if task.embedder is not None:
        described["embedder"] = task.embedder
    if task.instruction != "answer":
        described["instruction"] = task.instruction
    if task.context_use is not None:
        described["context_use"] = task.context_use
    described |= settings.model_dump(
        include=set(_CHOICES), exclude_none=True, mode="json"
    )
    described |= described_request(settings)
    if not settings.thinking:
        described["thinking"] = False
    if settings.prune_facts:
        described |= settings.model_dump(include={"prune_facts", "prune_to"})
    return described


def _knowledge_graph(task: Task, settings: Settings) -> str | None:
    """Return the fingerprint of the index's knowledge graph; None if there is no graph, or the retriever does
    not use it.
    """
    if not reads_graph(settings.retriever) or not KGIndex.exists(task.index):
        return None
    return KGIndex.open(task.index).fingerprint
