"""Scores a trained model that reads graphs, in a run that `ras-agent report` can compare with others.

    python -m ras_agent.train.graphqa.evaluate --model FOLDER --benchmark explagraphs --data val.tsv --out runs/x

With --cite the model is asked to list the nodes and edges behind its reply, and is also scored by whether these
exist (G-Retriever's check for hallucination, appendix F).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ras_agent.config.settings import Settings
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import NO_ANSWER, EvalAgent
from ras_agent.eval.run.begin import begin_run
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.eval.run.task import load_task
from ras_agent.running.program import run_program
from ras_agent.tools.subgraph.graph import textualise
from ras_agent.train.graphqa.examples import graph_of
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, NATURAL, check_ranges

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.graph_reader import GraphPrompts, GraphReader


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQAEvaluation:
    """Holds the options of an evaluation."""

    model: Path
    """The folder of a training."""
    benchmark: str
    """The set, as in the training."""
    data: Path
    """The set's file."""
    out: Path
    """The run's folder, which ras-agent report reads; the same command resumes a run in it."""
    cite: bool = False
    """Ask for the nodes and edges that a reply is based on, and also score by these."""
    limit: int = 0
    """Questions that are asked; 0 for all."""
    batch: int = 8
    """Questions at once."""

    def __post_init__(self) -> None:
        check_ranges(self, {"limit": NATURAL, "batch": COUNT})


def evaluate(
    reader: GraphReader,
    folder: Path,
    name: str,
    data: Path,
    out: Path,
    *,
    questions: Sequence[Question] = (),
    cite: bool = False,
    batch: int = 8,
) -> Mapping[str, Any]:
    """Ask the questions of a set, write the folder of the run, and return its summary.

    Results are stored after each batch; the same call resumes a killed run.

    Args:
        reader: The trained model.
        folder: Its folder, by whose name the run names it.
        name: The set.
        data: The set's file.
        out: The folder of the run.
        questions: The questions that are asked; by default all of the file.
        cite: Whether replies list the nodes and edges that they are based on, and are scored by these too.
        batch: The number of questions at once.
    """
    replies: dict[str, str] = {}
    shown: dict[str, Sequence[str]] = {}
    left: list[Question] = []

    async def ask(question: Question) -> Mapping[str, Any]:
        # questions are asked one at a time, in order
        if question.id not in replies:
            at_once = left[left.index(question) :][:batch]
            inputs = []
            for other in at_once:
                graph = graph_of(other)
                item = reader.prompts.input(other.question, graph)
                shown[other.id] = item.nodes
                inputs.append(item)
            written = reader.replies_to(inputs, batch)
            for other, reply in zip(at_once, written, strict=True):
                replies[other.id] = reply.text
        return {
            **NO_ANSWER,
            "answer": replies[question.id],
            "shown_nodes": shown[question.id],
            "steps": [{}],
            "stop_reason": "answered",
        }

    agent = EvalAgent.of(
        folder.name,
        ask,
        traces=False,
        roles=_roles(folder),
        variant=_variant(folder),
    )
    task = load_task(
        name, data, Settings(), instruction="answer_citing" if cite else "answer"
    )
    if questions:
        task = replace(task, questions=questions)
    run = begin_run(task, agent, out, concurrency=1)
    done = {result.id for result in run.done}
    left += [question for question in run.questions if question.id not in done]
    return run.finish()


def graph_sizes(
    prompts: GraphPrompts, questions: Sequence[Question]
) -> dict[str, float]:
    """Return two means over questions: the nodes of the graph that the reader is shown, and the tokens of its
    complete text.
    """
    nodes = []
    tokens = []
    for question in questions:
        part = prompts.subgraph(question.question, graph_of(question))
        nodes.append(len(part.nodes))
        tokens.append(prompts.count(textualise(part)))
    return {"nodes": fmean(nodes), "tokens": fmean(tokens)}


def forget_other_weights(out: Path, folder: Path) -> None:
    """Delete the run at `out` if it was made with other weights than those now in `folder`, as after more
    training.

    A run of the current weights stays, and is resumed.

    Raises:
        RunError: if the manifest cannot be read.
    """
    run = RunFolder(out)
    if not run.manifest_path.exists():
        return
    manifest = run.manifest()
    if manifest["roles"] == _roles(folder) and manifest["variant"] != _variant(folder):
        shutil.rmtree(out)


def _roles(folder: Path) -> dict[str, str]:
    """Return the roles of a run with the reader in `folder`, which is named by its folder."""
    return {"answerer": f"graphqa:{folder.name}"}


def _variant(folder: Path) -> dict[str, str]:
    """Return a digest of the weights in a folder, which distinguishes runs of different weights."""
    from ras_agent.tools.graph_tokens.graph_llm import GRAPH_WEIGHTS

    return {"weights": file_sha256(folder / GRAPH_WEIGHTS)[:16]}


def citing_tokens(name: str) -> int:
    """Return the largest number of tokens of a reply to the set `name` that lists its evidence."""
    return benchmark(name).instructed("answer_citing").answer_tokens


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate with the options of the command line, and print the scores."""
    from ras_agent.tools.graph_tokens.graph_reader import GraphReader

    config = config_from(GraphQAEvaluation, __doc__, arguments)
    changes: dict[str, Any] = {}
    if config.cite:
        changes = {"cite": True, "reply_tokens": citing_tokens(config.benchmark)}
    task = load_task(
        config.benchmark, config.data, Settings(), limit=config.limit or None
    )
    summary = evaluate(
        GraphReader.load(config.model, **changes),
        config.model,
        config.benchmark,
        config.data,
        config.out,
        questions=task.questions,
        cite=config.cite,
        batch=config.batch,
    )
    print(json.dumps(summary["scores"]))


if __name__ == "__main__":
    run_program(main)
