"""Trains a GraphLLM to answer questions that each come with a graph, as G-Retriever and Align-GRAG do, and scores it.

    python -m ras_agent.train.graphqa.train --benchmark explagraphs --data train.tsv --test val.tsv \\
        --language-model meta-llama/Llama-2-7b-hf --tuning lora --out explagraphs-lora

A prize-collecting Steiner tree selects the question's part of the graph (with the paper's prizes for the set), an
aligner may prune it (--aligner, --n-seed), the prompt shows it as CSV, and a graph encoder reads it. The same command
resumes a killed one; if more steps are trained, the test begins again. Under torchrun several processors share the
work.

In --out: the files of a GraphReader, training.json, training/ (metrics.jsonl, where to go on) and, with --test, the
folder test/ of an evaluation, which `ras-agent report` compares. docs/training-graphqa.md has recipes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.running.program import run_program
from ras_agent.train.data import digest
from ras_agent.train.graphllm.options import GraphLLMOptions
from ras_agent.train.graphllm.train import Start, begin, train_on
from ras_agent.train.graphqa.evaluate import (
    citing_tokens,
    evaluate,
    forget_other_weights,
    graph_sizes,
)
from ras_agent.train.graphqa.examples import GraphQAExample, example_of
from ras_agent.train.graphqa.parts import (
    PUBLISHED_PRIZES,
    Learnt,
    PartsOptions,
    read_parts,
)
from ras_agent.train.options import config_from
from ras_agent.train.ranges import (
    COUNT,
    NATURAL,
    check_choices,
    check_ranges,
)

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.features import GraphVectors
    from ras_agent.tools.graph_tokens.graph_reader import GraphReader, GraphView

_RANGES = {
    **dict.fromkeys(("n_seed", "limit", "graph_text_tokens"), NATURAL),
    "reply_tokens": COUNT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQATrainingConfig(GraphLLMOptions, PartsOptions):
    """Holds the options of a training on questions with graphs. The defaults are G-Retriever's."""

    benchmark: str = "explagraphs"
    data: Path
    """The set's file."""
    test: Path | None = None
    """The file that is scored in the end; if not set, a share of --data."""
    limit: int = 0
    """Questions of each part; 0 for all."""
    n_seed: int = 0
    """The number of nodes, with their neighbours, to which --aligner prunes the tree; 0 for no pruning."""
    graph_text: bool = True
    """Show the graph's text in the prompt."""
    graph_text_tokens: int = 512
    """The maximum number of tokens of the graph's text."""
    task: bool = True
    """Show the set's instruction in the prompt."""
    cite: bool = False
    """Learn to list the nodes and edges that an answer is based on; the test is also scored by these."""
    reply_tokens: int = 32
    """The maximum number of tokens of a reply."""
    text_tokens: int = 1024
    batch: int = 4
    epochs: int = 10
    rate: float = 1e-5
    decay: float = 0.05
    beta2: float = 0.95
    clip: float = 0.1
    warmup: float = 0.1
    lowest_rate: float = 0.5
    patience: int = 2

    def __post_init__(self) -> None:
        GraphLLMOptions.__post_init__(self)
        PartsOptions.__post_init__(self)
        check_ranges(self, _RANGES)
        check_choices(self, {"benchmark": tuple(PUBLISHED_PRIZES)})
        if self.n_seed and not self.aligner:
            raise SettingsError(
                "--n-seed needs an aligner to prune with: add --aligner FOLDER"
            )
        if (
            self.aligner
            and not self.n_seed
            and (self.start_from or self.encoder == "none")
        ):
            raise SettingsError(
                "--aligner has no use here, since --start-from has an encoder or --encoder is none: add --n-seed N to "
                "prune with it, or leave it out"
            )

    def refuse_learnt(self, learnt: Learnt, source: Path) -> None:
        """Raise SettingsError if an aligner was made from questions of the test or the validation.

        `learnt` has the questions from which the aligner in the folder `source` was made.
        """
        parts = read_parts(self.benchmark, self.data, self)
        if self.test is not None:
            parts["test"] = benchmark(self.benchmark).load(self.test)
        learnt.refuse(parts, source)

    def view(self) -> GraphView:
        """Return how a graph is selected and shown to the model."""
        from ras_agent.tools.graph_tokens.graph_reader import GraphView

        nodes, edges, cost = self.prizes()
        reply_tokens = self.reply_tokens
        if self.cite:
            reply_tokens = citing_tokens(self.benchmark)
        task = ""
        if self.task:
            task = benchmark(self.benchmark).instructions.get("answer", "")
        return GraphView(
            top_nodes=nodes,
            top_edges=edges,
            edge_cost=cost,
            n_seed=self.n_seed,
            text=self.graph_text,
            graph_text_tokens=self.graph_text_tokens,
            task=task,
            cite=self.cite,
            reply_tokens=reply_tokens,
        )


def new_reader(start: Start, config: GraphQATrainingConfig) -> GraphReader:
    """Return a reader of graphs with the model of `start`. It shows graphs as the options say."""
    from ras_agent.tools.graph_tokens.aligner import GraphAligner
    from ras_agent.tools.graph_tokens.graph_reader import GraphPrompts, GraphReader

    model = start.model
    aligner = None
    if config.aligner and config.n_seed:
        aligner = GraphAligner.load(config.aligner)
    return GraphReader(
        model, GraphPrompts(config.view(), model.vectors, model.count_tokens, aligner)
    )


def train(
    config: GraphQATrainingConfig, vectors: GraphVectors | None = None
) -> Mapping[str, Any]:
    """Train a model, write its folder, score the test, and return the outcome and the scores.

    Args:
        config: The options.
        vectors: The vectors of another training with the same embedder, so that texts are embedded only once.

    Raises:
        RasError: If a file cannot be read, or the options do not fit.
    """
    if config.aligner and config.n_seed:
        learnt = Learnt.read(config.aligner)
        config.refuse_learnt(learnt, config.aligner)
    of_file = read_parts(config.benchmark, config.data, config)
    parts: dict[str, list[Question]] = {}
    for part, of_part in of_file.items():
        parts[part] = of_part[: config.limit or None]
    start = begin(config)
    start.model.vectors = vectors or start.model.vectors
    reader = new_reader(start, config)
    questions = [question for part in parts.values() for question in part]
    set_ = benchmark(config.benchmark)
    made: dict[str, GraphQAExample] = {}

    def example(question: Question) -> GraphQAExample:
        if question.id not in made:
            made[question.id] = example_of(
                question, set_, reader.prompts, cite=config.cite
            )
        return made[question.id]

    view = config.view()
    if reader.model.config.encoder or view.top_nodes or view.top_edges:
        # all at once: batches are faster
        reader.model.vectors.of_texts(_texts(questions))
    facts: dict[str, Any] = {
        "data": config.data.name,
        "questions": {part: len(of_part) for part, of_part in parts.items()},
    }
    if any(
        weight.requires_grad and weight.numel() for weight in reader.model.parameters()
    ):
        digests = {"questions_sha256": digest(map(asdict, questions))}
        if config.aligner and config.n_seed:
            from ras_agent.tools.graph_tokens.aligner import WEIGHTS

            digests["pruned_by_sha256"] = file_sha256(config.aligner / WEIGHTS)
        result = train_on(start, example, parts, config, digests)
        facts |= {**digests, "result": asdict(result)}
        if not result.main:
            return facts
    reader.save(config.out, config.aligner)
    asked = parts["test"]
    if config.test is not None:
        asked = benchmark(config.benchmark).load(config.test)
    if asked:
        folder = config.out / "test"
        forget_other_weights(folder, config.out)
        summary = evaluate(
            reader,
            config.out,
            config.benchmark,
            config.test or config.data,
            folder,
            questions=asked,
            cite=config.cite,
            batch=2 * config.batch,
        )
        facts["scores"] = summary["scores"]
        facts["costs"] = {
            **graph_sizes(reader.prompts, asked),
            **_seconds(facts.get("result"), summary),
        }
    start.write_card(
        "a GraphLLM that answers questions about a graph each",
        "ras_agent.train.graphqa.train",
        config,
        facts,
    )
    return facts


def _seconds(
    result: Mapping[str, Any] | None, summary: Mapping[str, Any]
) -> dict[str, float]:
    """Return the seconds of a training step (if there was a training) and of a reply to a test question."""
    seconds = {"s a reply": summary["seconds"]["mean"]}
    if result and result["steps"]:
        seconds["s a step"] = result["seconds"] / result["steps"]
    return seconds


def _texts(questions: Sequence[Question]) -> list[str]:
    """Return the texts of the nodes and edges of all questions' graphs, without repeats."""
    texts = dict[str, None]()
    for question in questions:
        texts |= dict.fromkeys(question.graph.nodes)
        texts |= dict.fromkeys(text for _, text, _ in question.graph.edges)
    return list(texts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the options of the command line, and train."""
    facts = train(config_from(GraphQATrainingConfig, __doc__, arguments))
    print(json.dumps(facts, default=str))


if __name__ == "__main__":
    run_program(main)
