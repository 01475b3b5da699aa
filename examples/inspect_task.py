"""Our agent in an evaluation of Inspect: its models, log and viewer, our loop and metrics.

    pip install 'ras-agent[inspect]'
    inspect eval examples/inspect_task.py --model openai/gpt-4o-mini \\
        -T data=$PWD/questions.jsonl -T corpus=$PWD/passages.jsonl

Without -T it asks the bundled sample's questions. Every call of the planner and the answerer is Inspect's: any of its
providers can play them, its log has each call, and its limits hold. Facts are read by the offline extractor here.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from inspect_ai import Task, task  # pyright: ignore[reportMissingImports]

from ras_agent import Settings
from ras_agent.eval.inspect_task import inspect_task
from ras_agent.eval.run import load_task

_SAMPLE = files("ras_agent") / "data"


@task  # type: ignore[untyped-decorator,unused-ignore]  # where inspect-ai is not installed
def multi_hop(
    data: str = "", corpus: str = "", benchmark: str = "jsonl", limit: int | None = None
) -> Task:
    """Return the questions of a file, in any format, over the passages of another."""
    settings = Settings(extractor="offline", k=3)
    questions = Path(data or str(_SAMPLE / "sample_questions.jsonl"))
    passages = Path(corpus or str(_SAMPLE / "sample_passages.jsonl"))
    return inspect_task(
        load_task(benchmark, questions, settings, corpus=passages, limit=limit),
        settings,
    )


if __name__ == "__main__":
    print(
        len(multi_hop().dataset),
        "samples; run it: inspect eval examples/inspect_task.py --model ...",
    )
