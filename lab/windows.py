"""Whole runs of five hops in small context windows: how many tokens they take, and what is left out.

    python -m lab.windows

Every role asks a loopback server (ras_agent.eval.bench.loopback_model) that refuses prompts longer than its window.
Each of five searches finds five new passages of a thousand characters, made of the packaged sample, and ten facts are
read in each. The table is markdown; lab/windows.md shows it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import cycle
from typing import Any

from ras_agent import create_ircot_agent, create_ras_agent
from ras_agent.config.settings import Settings
from ras_agent.contracts.records import Hit, Passage
from ras_agent.eval.bench.loopback_model import Loopback, serving
from ras_agent.running.budget import Limits

QUESTION = (
    "Which river flows through the city where the inventor of the telephone was born?"
)
LENGTH, HOPS, K = 1000, 5, 5


@dataclass(frozen=True, slots=True)
class Run:
    """Holds a run's output and the server's counts."""

    out: dict[str, Any]
    counts: dict[str, int]

    @property
    def left_out(self) -> list[str]:
        """List what each role left out, in the words of its failure, and at which hop."""
        told = (
            failure
            for failure in self.out["failures"]
            if "did not fit" in failure["message"]
        )
        return [
            f"{one['role']} {one['hop']}: {one['message'].partition(' did not fit')[0]}"
            for one in told
        ]


class New:
    """Retrieves passages that no search has found yet."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._left = list(passages)

    def retrieve(self, query: str, k: int = K) -> list[Hit]:
        """Return the next k passages."""
        found, self._left = self._left[:k], self._left[k:]
        return [Hit(passage, 1 / rank) for rank, passage in enumerate(found, start=1)]


def passages(count: int = HOPS * K) -> Iterator[Passage]:
    """Yield passages of LENGTH characters: texts of the sample, one behind the other."""
    lines = (
        (files("ras_agent.data") / "sample_passages.jsonl")
        .read_text("utf-8")
        .splitlines()
    )
    texts = cycle(map(json.loads, lines))
    for number in range(count):
        first = next(texts)
        text = first["text"]
        while len(text) < LENGTH:
            text += " " + next(texts)["text"]
        yield Passage(f"p{number}", text[:LENGTH], f"{first['title']} {number}")


def ras(
    model: Loopback, preset: str | None = None, settings: Settings | None = None
) -> Run:
    """Answer the question by RAS."""
    agent = create_ras_agent(
        planner=model.spec("explorer"),
        extractor=model.spec("scribe"),
        answerer=model.spec("answerer"),
        retriever=New(tuple(passages())),
        limits=Limits(max_hops=HOPS, k=K),
        preset=preset,
        settings=settings,
    )
    return Run(dict(agent.invoke({"question": QUESTION})), model.counts())


def ircot(model: Loopback) -> Run:
    """Answer the question by IRCoT."""
    agent = create_ircot_agent(
        planner=model.spec("reasoner"),
        answerer=model.spec("answerer"),
        retriever=New(tuple(passages())),
        limits=Limits(max_hops=HOPS, k=K),
    )
    return Run(dict(agent.invoke({"question": QUESTION})), model.counts())


def row(name: str, window: int | None, run: Run) -> str:
    """Return a line of the table."""
    steps, calls = len(run.out["steps"]), run.out["usage"]["llm_calls"]
    ending = run.out["failed"] or "answered"
    told = "; ".join(run.left_out) or "nothing"
    counts = run.counts
    size = f"{window:,}" if window else "none"
    return f"| {name} | {size} | {ending} | {steps} | {calls} | {counts['refused']} | {counts['longest']:,} | {told} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.windows", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--windows",
        default="0,32768,8192,4096",
        help="tokens, with commas between them; 0: no limit",
    )
    windows = [
        int(size) or None for size in parser.parse_args(arguments).windows.split(",")
    ]
    print(
        "| loop | window | ended | hops | calls | refused | longest prompt | left out (role and hop) |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, make in (
        ("RAS", ras),
        ('RAS, preset "paper"', partial(ras, preset="paper")),
        ("IRCoT", ircot),
    ):
        for window in windows:
            with serving(window=window) as model:
                print(row(name, window, make(model)), flush=True)


if __name__ == "__main__":
    main()
