"""From settings and files to an evaluation that can be run, killed and resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.app.agent_from_settings import agent_from_settings, limits_of, role_specs
from ras_agent.errors import SettingsError
from ras_agent.eval.metrics import all_recalled_at, exact_match, recall_at, token_f1
from ras_agent.eval.questions import Question, load_passages, load_questions
from ras_agent.eval.result import Result
from ras_agent.eval.run_folder import RunFolder
from ras_agent.eval.run_manifest import file_sha256, manifest_of
from ras_agent.eval.runner import System, agent_asker, evaluate, remaining, retrieval_asker
from ras_agent.eval.summarise import summarise
from ras_agent.records import JSON
from ras_agent.settings import Settings
from ras_agent.tools.roles import role_name

if TYPE_CHECKING:
    from ras_agent.tools.index.store import PassageIndex

__all__ = ["Evaluation", "prepare"]

# calls under way at one endpoint, for each question under way: hops of an LLM extractor make five at once
_CALLS_A_QUESTION = 2
# how models are asked, beside the limits; where replies are kept and how fast they come changes no figure
_ASKING = ("preset", "style", "few_shot", "temperature")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A run that is ready to be finished. `done`: results it had already when it was prepared."""

    system: System
    questions: Sequence[Question]
    folder: RunFolder
    concurrency: int
    done: tuple[Result, ...]
    headline: str
    seed: int = 0

    def finish(self, on_end: Callable[[Result], None] | None = None) -> JSON:
        """Ask what is left, write summary.json and return it."""
        results = evaluate(self.system, self.questions, self.folder, concurrency=self.concurrency, on_end=on_end)
        summary = summarise(results, seed=self.seed)
        self.folder.write_summary(summary)
        return summary


def prepare(
    benchmark: str,
    data: Path,
    out: Path,
    settings: Settings,
    *,
    corpus: Path | None = None,
    first: int = 1,
    limit: int | None = None,
    retrieval_only: bool = False,
    retry_errors: bool = False,
    traces: bool = True,
    name: str | None = None,
    seed: int = 0,
    concurrency: int = 32,
) -> Evaluation:
    """Load questions and passages, begin or resume the folder `out`, and set the agent up.

    Raises RasError children: for files that cannot be read, a folder that another configuration began, and roles that
    cannot be set up.
    """
    questions = load_questions(data)[first - 1 :][:limit]
    if not questions:
        raise SettingsError(f"{data} has no question from number {first} on; lower --first")
    index, corpus_sha256 = _corpus(settings, corpus)
    specs = {} if retrieval_only else role_specs(settings)
    roles = {**{role: role_name(spec) for role, spec in specs.items()}, "retriever": settings.retriever}
    metrics = RETRIEVAL_METRICS if retrieval_only else METRICS
    manifest = manifest_of(
        questions,
        name=name or out.name,
        benchmark=benchmark,
        data=str(data),
        data_sha256=file_sha256(data),
        corpus_sha256=corpus_sha256,
        graph="none" if retrieval_only else settings.graph,
        roles=roles,
        limits=limits_of(settings),
        metrics=metrics,
        seed=seed,
        retrieval_only=retrieval_only,
        prompts_dir=settings.prompts,
        settings=settings.model_dump(include=set(_ASKING)),
    )
    folder = RunFolder.begin(out, manifest)
    if retry_errors:
        folder.forget({result.id for result in folder.results() if result.error})
    settings = _paced(settings, folder, concurrency)

    def score(question: Question, output: Mapping[str, Any]) -> dict[str, float]:
        scores = _scores(question, output)
        return {metric: scores[metric] for metric in metrics}

    if retrieval_only:
        ask = retrieval_asker(index.retriever(settings.retriever), settings.k)
    else:
        ask = agent_asker(agent_from_settings(settings, index))
    left = {question.id for question in remaining(questions, folder)}
    return Evaluation(
        System(ask, score, settings.graph, roles, traces),
        questions,
        folder,
        concurrency,
        tuple(result for result in folder.results() if result.id not in left),
        metrics[0],
        seed,
    )


METRICS = ("f1", "em", "recall@2", "recall@5", "all_recall@5")
RETRIEVAL_METRICS = METRICS[2:]


def _scores(question: Question, output: Mapping[str, Any]) -> dict[str, float]:
    ranked = [
        passage.get("title", "") if question.by_title else passage["id"] for passage in output["passages"].values()
    ]
    return {
        "f1": token_f1(output["answer"], question.answers),
        "em": exact_match(output["answer"], question.answers),
        "recall@2": recall_at(2, ranked, question.supporting),
        "recall@5": recall_at(5, ranked, question.supporting),
        "all_recall@5": all_recalled_at(5, ranked, question.supporting),
    }


def _corpus(settings: Settings, corpus: Path | None) -> tuple[PassageIndex, str]:
    """What is searched, and a digest of it."""
    from ras_agent.tools.index.store import PassageIndex

    if corpus is not None:
        return PassageIndex.in_memory(load_passages(corpus)), file_sha256(corpus)
    if settings.index is None:
        raise SettingsError("nothing to search: give --corpus PASSAGES.jsonl or --index PATH")
    index = PassageIndex.open(settings.index)
    return index, index.snapshot.manifest.fingerprint


def _paced(settings: Settings, folder: RunFolder, concurrency: int) -> Settings:
    """Replies kept with the run, and as many calls at once as its concurrency means, where nothing else was set."""
    update: dict[str, Any] = {}
    if settings.cache is None:
        update["cache"] = folder.replies_path
    if "in_flight" not in settings.model_fields_set:
        update["in_flight"] = max(settings.in_flight, _CALLS_A_QUESTION * concurrency)
    return settings.model_copy(update=update)
