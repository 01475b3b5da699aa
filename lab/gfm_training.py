"""Measure a step of GFM's training on the CPU beside a step by the plain network's autograd, and their gradients.

    python -m lab.gfm_training --index my.index --questions questions.jsonl --width 32 --batch 8

The graph is the whole one of an index with MiniLM's vectors, the loss the binary cross entropy of one target a
question, the optimiser AdamW; the weights are those of the network that ships, each number several times for a larger
width. Steps take turns. Times are medians of processor seconds on one thread; differences are of gradients, each by
the largest of its weight.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.gfm_cases import real_case
from ras_agent.eval.bench.gfm import widened
from ras_agent.program import run_program
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import GraphTensors, plain_scores
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.retrieve.gfm import weights_of

if TYPE_CHECKING:
    from torch import Tensor

Scores = Callable[[dict[str, "Tensor"]], "Tensor"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True, help="an index with a knowledge graph")
    parser.add_argument("--questions", type=Path, required=True, help="JSON lines with question")
    parser.add_argument("--width", type=int, default=32, help="a multiple of the width of the network that ships (32)")
    parser.add_argument("--batch", type=int, default=8, help="questions of a step (8)")
    parser.add_argument("--steps", type=int, default=5, help="steps of each that are measured (5)")
    given = parser.parse_args(arguments)
    kg = KGIndex.open(given.index)
    print(json.dumps(compare(kg, given.questions, given.width, given.batch, given.steps)))


def compare(kg: KGIndex, questions: Path, width: int, batch: int, steps: int) -> dict[str, Any]:
    """Return the median seconds of a step of each, and the largest difference of their gradients."""
    import torch

    from ras_agent.train.gfm.scores import batch_scores

    case = real_case(kg, questions, batch, 0, trained=True)
    graph = GFMGraph.from_edges(int(case["entities"]), case["edges"], case["vectors"], None)
    start = np.zeros((len(case["indptr"]) - 1, graph.entities), dtype=np.float32)
    for row, part in enumerate(zip(case["indptr"][:-1], case["indptr"][1:], strict=True)):
        start[row, case["starts"][slice(*part)]] = case["weights"][slice(*part)]
    config, shipped = weights_of()
    weights, vectors = widened(shipped, width // config.width), torch.from_numpy(case["questions"])
    tensors, starts = GraphTensors.of(graph), torch.from_numpy(start)
    ways: dict[str, Scores] = {
        "ours": lambda leaves: batch_scores(leaves, graph, vectors, start),
        "plain": lambda leaves: plain_scores(leaves, tensors, vectors, starts),
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        trainings = {name: _Training(weights, scores) for name, scores in ways.items()}
        gradients = {name: training.step()[1] for name, training in trainings.items()}  # the first compiles
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(steps):
            for name, training in trainings.items():
                seconds[name].append(training.step()[0])
    finally:
        torch.set_num_threads(threads)
    ours, theirs = gradients["ours"], gradients["plain"]
    differences = [
        float((ours[name] - one).abs().max() / one.abs().max().clamp(min=1e-12)) for name, one in theirs.items()
    ]
    middle = {name: median(times) for name, times in seconds.items()}
    return {
        "entities": graph.entities,
        "messages": graph.messages,
        "width": width,
        "batch": len(start),
        **{f"{name}_s": round(one, 4) for name, one in middle.items()},
        "ratio": round(middle["plain"] / middle["ours"], 2),
        "gradients": max(differences),
    }


class _Training:
    """Weights that are trained by one way to the scores."""

    def __init__(self, weights: dict[str, Tensor], scores: Scores) -> None:
        import torch

        self._leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
        self._scores = scores
        self._optimiser = torch.optim.AdamW(list(self._leaves.values()), lr=1e-5)

    def step(self) -> tuple[float, dict[str, Tensor]]:
        """Take a step, and return its seconds of processor time and the gradients."""
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits

        began = time.process_time()
        logits = self._scores(self._leaves)
        targets = torch.zeros_like(logits)
        targets[:, 0] = 1
        loss = binary_cross_entropy_with_logits(logits, targets)
        self._optimiser.zero_grad()
        torch.autograd.backward(loss)
        self._optimiser.step()
        seconds = time.process_time() - began
        return seconds, {name: leaf.grad.clone() for name, leaf in self._leaves.items() if leaf.grad is not None}


if __name__ == "__main__":
    run_program(main)
