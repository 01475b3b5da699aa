"""Score a trained model that reads graphs, as a run that `ras-agent report` compares with others.

    python -m ras_agent.train.graphqa.evaluate --model FOLDER --benchmark explagraphs --data val.tsv --out runs/x

With --cite replies are asked to list the nodes and edges that they rest on, and are scored by whether these exist
(G-Retriever's check for hallucination, appendix F).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import NO_ANSWER, EvalAgent
from ras_agent.eval.run.begin import begin_run
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.eval.run.task import load_task
from ras_agent.program import run_program
from ras_agent.settings import Settings
from ras_agent.train.graphqa.examples import graph_of
from ras_agent.train.options import config_from
from ras_agent.train.ranges import COUNT, NATURAL, check_ranges

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.graph_reader import GraphReader


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQAEvaluation:
    """Options of an evaluation. model: the folder of a training. limit: of questions; 0 for all. batch: at once."""

    model: Path
    benchmark: str
    data: Path
    out: Path
    cite: bool = False
    limit: int = 0
    batch: int = 8

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
    """Ask the questions of a set's file, write the run's folder, and return each metric's score as its summary has it.

    Results are stored as each batch is answered; the same call resumes a run that was killed. folder: of the reader,
    which names it. questions: those of the file that are asked, by default all.
    """
    from ras_agent.tools.graph_tokens.graph_llm import GRAPH_WEIGHTS

    replies: dict[str, str] = {}
    left: list[Question] = []

    async def ask(question: Question) -> Mapping[str, Any]:
        if question.id not in replies:  # questions are asked in their order, one after the other
            at_once = left[left.index(question) :][:batch]
            texts = reader.replies([(one.question, graph_of(one)) for one in at_once], batch)
            replies.update((one.id, reply.text) for one, reply in zip(at_once, texts, strict=True))
        return {**NO_ANSWER, "answer": replies[question.id], "steps": [{}], "stop_reason": "answered"}

    roles, weights = {"answerer": f"graphqa:{folder.name}"}, {"weights": file_sha256(folder / GRAPH_WEIGHTS)[:16]}
    agent = EvalAgent.of(folder.name, ask, traces=False, only_roles=roles, variant=weights)
    task = load_task(name, data, Settings(), instruction="answer_citing" if cite else "answer")
    if questions:
        task = replace(task, questions=questions)
    run = begin_run(task, agent, out, concurrency=1)
    done = {result.id for result in run.done}
    left += [question for question in run.questions if question.id not in done]
    scores: Mapping[str, Any] = run.finish()["scores"]
    return scores


def citing_tokens(name: str) -> int:
    """Return how long a reply may get that lists what it rests on."""
    return benchmark(name).instructed("answer_citing").answer_tokens


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate as the options say, and print the scores."""
    from ras_agent.tools.graph_tokens.graph_reader import GraphReader

    config = config_from(GraphQAEvaluation, __doc__, arguments)
    changes = {"cite": True, "reply_tokens": citing_tokens(config.benchmark)} if config.cite else {}
    reader = GraphReader.load(config.model, **changes)
    questions = load_task(config.benchmark, config.data, Settings(), limit=config.limit or None).questions
    options: dict[str, Any] = {"questions": questions, "cite": config.cite, "batch": config.batch}
    print(json.dumps(evaluate(reader, config.model, config.benchmark, config.data, config.out, **options)))


if __name__ == "__main__":
    run_program(main)
