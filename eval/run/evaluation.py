"""From settings and files to an evaluation that can be run, killed and resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ras_agent.budget import Limits
from ras_agent.errors import IngestError, SettingsError, UnknownName
from ras_agent.eval.benchmarks import Benchmark
from ras_agent.eval.metrics import find_metric
from ras_agent.eval.metrics.mauve import mauve_of, require_mauve
from ras_agent.eval.question import Question
from ras_agent.eval.run.asking import BASELINES, asker_of, scorer_of
from ras_agent.eval.run.asking import baseline as baseline_asker
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.manifest import file_sha256, manifest_of
from ras_agent.eval.run.material import Material, load_material
from ras_agent.eval.run.prices import Prices
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.runner import AskQuestion, EvaluatedSystem, evaluate, remaining
from ras_agent.eval.run.spread import HERE, Spread
from ras_agent.eval.run.summarise import summarise
from ras_agent.graphs.registry import graph_spec
from ras_agent.graphs.resolve import role_specs
from ras_agent.records import JSON
from ras_agent.settings import Settings
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.resolve import reads_graph, resolve_retriever, retriever_options
from ras_agent.tools.retrieve.search import scoped
from ras_agent.tools.roles import role_name
from ras_agent.tools.spread.pool import Order, Pool

# how models are asked, beside the limits; where replies are kept and how fast they come changes no figure
_ASKING = ("preset", "layout", "from_memory", "style", "answer_tokens", "few_shot", "temperature", "context_window")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Holds a run that is ready to be finished.

    done: results that it had already when it was prepared, and keeps. retry_errors: ask again what ended in an error.
    skipped: what is wrong with records that were left out.
    """

    pool: Pool
    questions: Sequence[Question]
    folder: RunFolder
    concurrency: int
    done: tuple[Result, ...]
    headline: str
    seed: int = 0
    retry_errors: bool = False
    skipped: tuple[IngestError, ...] = ()

    def finish(
        self,
        on_end: Callable[[Result], None] | None = None,
        prices: Prices | None = None,
        mauve: str | None = None,
    ) -> JSON:
        """Ask what is left, write summary.json and return it.

        prices: for its cost. mauve: the language model whose vectors compare the answers with the gold ones; without
        it MAUVE is not computed. Raises MissingExtra or SettingsError before anything is asked if it cannot be.
        """
        if mauve:
            require_mauve(len(self.questions))
        results = evaluate(
            self.pool, self.questions, self.folder,
            concurrency=self.concurrency, retry_errors=self.retry_errors, on_end=on_end,
        )  # fmt: skip
        summary = {**summarise(results, seed=self.seed, prices=prices), "skipped_records": len(self.skipped)}
        if mauve:
            summary["mauve"] = asdict(mauve_of(results, mauve))
        self.folder.write_summary(summary)
        return summary


def prepare(
    name: str,
    data: Path,
    out: Path,
    settings: Settings,
    *,
    corpus: Path | None = None,
    embedder: str | None = None,
    instruction: str = "answer",
    first: int = 1,
    limit: int | None = None,
    metrics: Sequence[str] = (),
    retrieval_only: bool = False,
    baseline: str | None = None,
    retry_errors: bool = False,
    strict: bool = False,
    traces: bool = True,
    label: str | None = None,
    seed: int = 0,
    concurrency: int = 32,
    spread: Spread = HERE,
) -> Evaluation:
    """Load questions and passages, begin or resume the folder `out`, and set the agent up.

    name: the benchmark's. embedder, instruction: as `load_material` has them. baseline: a name of
    ras_agent.eval.run.asking in place of the agent. metrics: in place of the benchmark's own. label: the run's name in
    reports. spread: over what the questions are spread.
    strict: raise for a bad record of either file, which else is left out.
    Raises RasError children: for files that cannot be read, a folder that another configuration began, and roles that
    cannot be set up.
    """
    skipped: list[IngestError] = []
    on_bad = None if strict else skipped.append
    material = load_material(
        name, data, settings, corpus=corpus, embedder=embedder, instruction=instruction, first=first, limit=limit,
        on_bad=on_bad,
    )  # fmt: skip
    run = Configuration(
        label or out.name, settings, metrics=metrics, retrieval_only=retrieval_only, traces=traces, seed=seed,
        **(_baseline(baseline) if baseline else {}),
    )  # fmt: skip
    ready = prepare_run(material, out, run, retry_errors=retry_errors, concurrency=concurrency, spread=spread)
    return replace(ready, skipped=tuple(skipped))


@dataclass(frozen=True, slots=True)
class Configuration:
    """Holds the settings of a run, and how it asks.

    name: in reports. metrics: in place of the benchmark's own. asker: makes what is asked in place of the agent of
    `settings`; it is given the settings with the run's pace and cache. graph, roles, limits: what the manifest says
    instead of what `settings` say; only_roles: all the roles there are. variant: what a study changed.
    """

    name: str
    settings: Settings
    metrics: Sequence[str] = ()
    retrieval_only: bool = False
    traces: bool = True
    seed: int = 0
    asker: Callable[[Material, Settings], AskQuestion] | None = None
    graph: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    only_roles: Mapping[str, str] | None = None
    limits: Limits | None = None
    variant: Mapping[str, Any] = field(default_factory=dict)


def prepare_run(
    material: Material,
    out: Path,
    run: Configuration,
    *,
    retry_errors: bool = False,
    concurrency: int = 32,
    spread: Spread = HERE,
) -> Evaluation:
    """Begin or resume the folder `out`, and set up what is asked there. Raises RasError children, as `prepare` does."""
    if spread.elsewhere and run.asker:
        raise SettingsError("this run asks something that no other process can make; leave --engine away")
    asked, settings = material.asked, run.settings
    wanted = _metrics(asked, run.metrics, run.retrieval_only)
    settings = _asked_for(settings, asked)
    specs = {} if run.retrieval_only else role_specs(settings)
    roles = {**{role: role_name(spec) for role, spec in specs.items()}, "retriever": settings.retriever, **run.roles}
    roles = roles if run.only_roles is None else dict(run.only_roles)
    graph = run.graph or ("none" if run.retrieval_only else settings.graph)
    manifest = manifest_of(
        material.questions,
        name=run.name,
        benchmark=asked.name,
        data=str(material.data),
        data_sha256=file_sha256(material.data) if material.data.is_file() else None,
        corpus_sha256=material.corpus_sha256,
        graph=graph,
        roles=roles,
        limits=run.limits or settings.limits,
        metrics=wanted,
        seed=run.seed,
        retrieval_only=run.retrieval_only,
        prompts_dir=settings.prompts,
        settings=settings.model_dump(include=set(_ASKING)) | _made(material) | _chosen(settings) | _pruning(settings),
        variant=run.variant,
        knowledge_graph=_knowledge_graph(material, settings),
    )
    folder = RunFolder.begin(out, manifest)
    settings = spread.paced(_kept_beside(settings, folder), concurrency)
    asking = {"graph": graph, "roles": roles, "metrics": wanted, "retrieval_only": run.retrieval_only}
    try:
        pool = _pool(material, run, settings, spread, asking)
    except Exception:
        folder.take_back()
        raise
    left = {question.id for question in remaining(material.questions, folder)}
    return Evaluation(
        pool,
        material.questions,
        folder,
        concurrency,
        tuple(one for one in folder.results() if one.id not in left and not (retry_errors and one.error)),
        wanted[0],
        run.seed,
        retry_errors,
    )


def _pool(
    material: Material, run: Configuration, settings: Settings, spread: Spread, asking: Mapping[str, Any]
) -> Pool:
    """Return the pool that asks the questions, in this process or in others."""
    if not spread.elsewhere:
        ask = run.asker(material, settings) if run.asker else asker_of(material, settings, run.retrieval_only)
        return EvaluatedSystem(ask, scorer_of(asking["metrics"]), asking["graph"], asking["roles"], run.traces)
    order = {
        **{"name": material.asked.name, "data": _path(material.data), "corpus": _path(material.corpus)},
        **{"embedder": material.embedder, "instruction": material.instruction},
        **{"settings": settings.model_dump(mode="json"), "traces": run.traces, **asking},
    }
    kept = {"replies": (settings.cache, "replies"), "facts": (settings.triple_cache, "facts")}
    return spread.pool(
        Order("ras_agent.eval.run.asking:asks_elsewhere", order),
        {name: (path, holds) for name, (path, holds) in kept.items() if path},
    )


def _pruning(settings: Settings) -> JSON:
    """Return how facts are left out of prompts; nothing where they are not, as in runs from before there was a way."""
    return settings.model_dump(include={"prune_facts", "prune_to"}) if settings.prune_facts else {}


def _chosen(settings: Settings) -> JSON:
    """Return what else was chosen; nothing for what was not, which older runs do not name."""
    return settings.model_dump(include={"weights", "starts", "least_confidence"}, exclude_none=True, mode="json")


def _knowledge_graph(material: Material, settings: Settings) -> str | None:
    """Return the fingerprint of the index's knowledge graph; None without one or a retriever that reads it."""
    folder = material.index.path if isinstance(material.index, PassageIndex) else None
    if folder is None or not KGIndex.exists(folder) or not reads_graph(settings.retriever):
        return None
    return KGIndex.open(folder).fingerprint


def _made(material: Material) -> dict[str, str]:
    """Return what the manifest says of an index that was made for the run, and of another instruction."""
    usual = {None, "answer"}
    known = {"embedder": material.embedder, "instruction": material.instruction}
    return {name: value for name, value in known.items() if value not in usual and value is not None}


def _baseline(name: str) -> dict[str, Any]:
    """Return what differs in the configuration of a baseline."""
    if name not in BASELINES:
        raise UnknownName("baseline", name, BASELINES)

    def asker(material: Material, settings: Settings) -> AskQuestion:
        made = resolve_retriever(settings.retriever, material.index, **retriever_options(settings))
        found = scoped(made, settings.filter)
        return baseline_asker(name, found, settings.k)

    roles = {"planner": "none", "extractor": "none", "answerer": f"always {name}"}
    return {"asker": asker, "graph": "none", "roles": roles}


def _metrics(asked: Benchmark, chosen: Sequence[str], retrieval_only: bool) -> tuple[str, ...]:
    """Return the names of the metrics; for a bare search only those that need nothing but passages."""
    names = tuple(chosen) or asked.metrics
    metrics = [find_metric(name) for name in names]  # raises UnknownName before anything is asked
    if retrieval_only and not chosen:
        return tuple(metric.name for metric in metrics if metric.of_passages) or ("answer_in_passages",)
    return names


def _asked_for(settings: Settings, asked: Benchmark) -> Settings:
    """Return settings with the benchmark's form and length of the answer, where they have none.

    A graph may have a form of its own for short answers, as IRCoT's reader.
    """
    style = graph_spec(settings.graph).style if asked.style == "short" else asked.style
    chosen = {"style": settings.style or style, "answer_tokens": settings.answer_tokens or asked.answer_tokens}
    return settings.model_copy(update=chosen)


def _kept_beside(settings: Settings, folder: RunFolder) -> Settings:
    """Return settings that cache replies in the run's folder, if they name no other place."""
    return settings if settings.cache else settings.model_copy(update={"cache": folder.replies_path.resolve()})


def _path(path: Path | None) -> str | None:
    """Return a path that another process can open."""
    return str(path.resolve()) if path else None
