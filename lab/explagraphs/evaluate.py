"""Evaluate a trained model of stance as a run of the benchmark explagraphs, which `ras-agent report` compares.

python -m lab.explagraphs.evaluate --model RUN --data DATA/explagraphs/val.tsv --out FOLDER
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.explagraphs.examples import COUNTER, SUPPORT, example_of
from ras_agent.eval.question import Question
from ras_agent.eval.run.agent import NO_ANSWER, AnswerQuestion, EvalAgent
from ras_agent.eval.run.begin import begin_run
from ras_agent.eval.run.task import load_task
from ras_agent.program import run_program
from ras_agent.train.options import config_from


@dataclass(frozen=True, slots=True, kw_only=True)
class StanceEvaluation:
    """Says what is evaluated. model: the folder of a training. data: a file of ExplaGraphs. out: the run's folder."""

    model: Path
    data: Path
    out: Path


def evaluate(config: StanceEvaluation) -> dict[str, Any]:
    """Ask every question of the file, write the run's folder and return its summary.

    Raises WeightsError for a folder without a model, IngestError for a bad line.
    """
    name = config.model.name
    agent = EvalAgent.of(name, answerer(config.model), traces=False, only_roles={"answerer": f"stance:{name}"})
    task = load_task("explagraphs", config.data, agent.settings, metrics=("accuracy",))
    return begin_run(task, agent, config.out, concurrency=1).finish()


def answerer(folder: Path) -> AnswerQuestion:
    """Return what answers a question of ExplaGraphs with "support" or "counter". Raises WeightsError."""
    from lab.explagraphs.model import StanceModel
    from lab.explagraphs.train import Inputs, predict

    model, words = StanceModel.load(folder)
    inputs = Inputs(model, words)

    async def ask(question: Question) -> Mapping[str, Any]:
        logit = float(predict(model, inputs.of([example_of(question)]))[0])
        return {**NO_ANSWER, "answer": SUPPORT if logit > 0 else COUNTER, "steps": [{}], "stop_reason": "answered"}

    return ask


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate as the options say, and print the scores."""
    print(json.dumps(evaluate(config_from(StanceEvaluation, __doc__, arguments))["scores"]))


if __name__ == "__main__":
    run_program(main)
