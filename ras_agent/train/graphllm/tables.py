r"""Trains and scores the rows of RAS's tables of trainings, once for each seed, and writes the tables.

    python -m ras_agent.train.subq.build --musique train.jsonl --texts --out subq.jsonl
    python -m ras_agent.train.graphllm.tables --data subq.jsonl --benchmark 2wikimultihopqa --test dev.json \
        --language-model meta-llama/Llama-2-7b-hf --seeds 0,1,2 --out tables

All options of ras_agent.train.graphllm.train hold for every row, except those that the row sets. A row's models
plan and answer in the loop as published (preset paper), over the contexts of --test or --corpus. A stopped
command continues when it is given again. In --out: tables.md, tables.json, and a folder for each row and seed.

    training   Table 2: whole; without graph encoder, LoRA, text-to-triples (the passages' texts in place of their facts,
               for which the samples need --texts) and multi-task (one model that plans, and one that answers)
    volume     Fig. 5: shares of the samples
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import JSON
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.run.agent import EvalAgent
from ras_agent.eval.run.begin import begin_run
from ras_agent.eval.run.task import load_task
from ras_agent.eval.study.ablations import without_triples
from ras_agent.eval.study.design import asked_anyway
from ras_agent.running.program import run_program
from ras_agent.train.graphllm.train import (
    GraphLLMTrainingConfig,
    digest_of_weights,
    train,
)
from ras_agent.train.graphqa.parts import key_of
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, NATURAL, check_ranges
from ras_agent.train.subq import read_samples
from ras_agent.train.tables import TEXT, TableRow, TablesOptions, fill_tables, slug

_OF_TEXTS = "chain-of-text"


@dataclass(frozen=True, slots=True)
class Row(TableRow):
    """Describes a row of a table by the trainings that it needs."""

    roles: Mapping[str, str] = field(default_factory=lambda: _ONE_MODEL)
    """The tasks that the model of each role is trained for."""


_ONE_MODEL: Mapping[str, str] = {"planner": "both", "answerer": "both"}
_TWO_MODELS: Mapping[str, str] = {"planner": "plan", "answerer": "answer"}
TABLES: Mapping[str, tuple[Row, ...]] = {
    "training": (
        Row("whole"),
        Row("without graph encoder", TEXT),
        Row("without LoRA", {"tuning": "frozen"}),
        Row("without text-to-triples", {"layout": _OF_TEXTS, **TEXT}),
        Row("without multi-task", roles=_TWO_MODELS),
    ),
    "volume": tuple(
        Row(f"{share:.0%} of the samples", {"share": share})
        for share in (0.05, 0.1, 0.25, 0.5, 1.0)
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLLMTablesConfig(GraphLLMTrainingConfig, TablesOptions):
    """Holds the options of the tables, and of every training."""

    tables: tuple[str, ...] = ("training",)
    """Which tables: training, volume."""
    benchmark: str = "2wikimultihopqa"
    """The set that scores the rows."""
    test: Path
    """The set's file; no training sample may be of its questions."""
    corpus: Path | None = None
    """Passages to search, as --corpus of ras-agent eval; if not set, the contexts of --test."""
    retriever: str = "bm25"
    """The retriever."""
    extractor: str = "offline"
    """The extractor of the facts, as --extractor of ras-agent."""
    limit: int = 0
    """Questions of --test; 0 for all."""
    max_hops: int = 5
    """The maximum number of hops of a question; the published code takes 3."""

    def __post_init__(self) -> None:
        GraphLLMTrainingConfig.__post_init__(self)
        check_ranges(self, {"max_hops": COUNT, "limit": NATURAL})
        self.check_tables(TABLES)

    def training(self, row: Row, tasks: str, seed: int) -> GraphLLMTrainingConfig:
        """Return the options for training a row's model for `tasks`: "plan", "answer" or "both"."""
        options = self.options_for(GraphLLMTrainingConfig)
        options |= row.changes
        options["tasks"] = tasks
        options["seed"] = seed
        options["out"] = self.out / slug(row.name) / f"seed-{seed}" / tasks
        return GraphLLMTrainingConfig(**options)


def write_tables(config: GraphLLMTablesConfig) -> JSON:
    """Train and score all rows, write the tables, and return their figures.

    Raises:
        RasError: If a file cannot be read, or the options do not fit.
    """
    _refuse_learnt(config)

    def card_of(_: str, row: Row, seed: int) -> JSON:
        return _card(config, row, seed)

    return fill_tables(
        config.out,
        config.benchmark,
        config.test,
        config.seeds,
        config.chosen(TABLES),
        card_of,
    )


def _refuse_learnt(config: GraphLLMTablesConfig) -> None:
    """Raise SettingsError if a question of the test is also a question of the samples."""
    taught = {key_of(sample.question) for sample in read_samples(config.data)}
    for question in benchmark(config.benchmark).load(config.test):
        if key_of(question.question) in taught:
            raise SettingsError(
                f"{config.data} holds samples of {question.question!r:.80}, which is also a question of --test: build "
                "the samples from questions that --test does not have"
            )


def _card(config: GraphLLMTablesConfig, row: Row, seed: int) -> JSON:
    """Train the models of a row, ask them the test questions, and return their scores and costs."""
    models: dict[str, Path] = {}
    result: JSON = {}
    for tasks in dict.fromkeys(row.roles.values()):
        training = config.training(row, tasks, seed)
        result = asdict(train(training))
        models[tasks] = training.out
    players = {role: models[tasks] for role, tasks in row.roles.items()}
    summary = _ask(config, row, seed, players)
    costs = {
        "hops": summary["hops"],
        "s a question": summary["seconds"]["mean"],
        "s a step": result["seconds"] / result["steps"],
    }
    return {"scores": summary["scores"], "costs": costs, "result": result}


def _ask(
    config: GraphLLMTablesConfig, row: Row, seed: int, players: Mapping[str, Path]
) -> JSON:
    """Ask the models of a row the test questions, and return the summary of the run."""
    roles = {role: f"graphllm:{folder}" for role, folder in players.items()}
    layout = row.changes.get("layout", config.layout)
    settings = Settings(
        planner=roles["planner"],
        answerer=roles["answerer"],
        extractor=config.extractor,
        retriever=config.retriever,
        preset="paper",
        max_hops=config.max_hops,
        layout=layout,
        prune_facts=config.prune_facts or None,
        prune_to=config.prune_to,
    )
    weights = {role: digest_of_weights(folder) for role, folder in players.items()}
    described: dict[str, Any] = {"variant": weights, "seed": seed}
    if layout == _OF_TEXTS:
        described["roles"] = {"extractor": "none"}
        described["make"] = asked_anyway(without_triples)
    task = load_task(
        config.benchmark,
        config.test,
        settings,
        corpus=config.corpus,
        limit=config.limit or None,
    )
    out = config.out / slug(row.name) / f"seed-{seed}" / "test"
    return begin_run(task, EvalAgent(row.name, settings, **described), out).finish()


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and write the tables."""
    write_tables(config_from(GraphLLMTablesConfig, __doc__, arguments))


if __name__ == "__main__":
    run_program(main)
