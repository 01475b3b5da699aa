"""Measures what a GFM network learns before it is fine-tuned: how well it completes facts, and what it retrieves.

    python -m lab.completion RUN SETS/hotpotqa SETS/musique --facts 200

RUN is a folder of weights, `packaged`, or `random` for untrained ones of the first set's vectors. A set is a folder of
ras_agent.train.gfm.examples. Facts are drawn by the seed; each is asked for from both of its ends, over the whole graph
without this fact. The rank of the end that is hidden, among all entities, is filtered: others that complete the same
fact do not count. Prints for each set the mean reciprocal rank and the share among the first ten, and R@2 and R@5 of
the set's labelled questions over its documents, by the packaged ranker.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.program import run_program
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights, load_gfm, weights_folder
from ras_agent.tools.retrieve.document_ranker import PACKAGED, document_scores
from ras_agent.train.gfm.sets import GFMSet, load_sets, text_model_of

if TYPE_CHECKING:
    from torch import Tensor


def ranks(gfm_set: GFMSet, weights: Mapping[str, Tensor], facts: int, seed: int, batch: int = 8) -> list[int]:
    """Return the filtered ranks of both ends of facts that are drawn from a set's graph."""
    import torch

    from ras_agent.tools.gfm.network import GraphTensors, plain_scores
    from ras_agent.train.gfm.batches import completion_example

    found: list[int] = []
    rng = np.random.default_rng(seed)
    edges = np.asarray(gfm_set.kg.edges)
    relations = len(gfm_set.kg.relations)
    while len(found) < facts:
        # one negative is drawn and not read: all entities are ranked
        example = completion_example([gfm_set], batch, 0, 1, rng)
        vectors, start = torch.from_numpy(example.vectors), torch.from_numpy(example.start)
        with torch.inference_mode():
            logits = plain_scores(weights, GraphTensors.of(example.graph), vectors, start).numpy()
        assert example.candidates is not None
        for row, (begin, target) in enumerate(zip(example.start.argmax(1), example.candidates[:, 0], strict=True)):
            asked = np.flatnonzero((example.graph.vectors == example.vectors[row]).all(axis=1))
            forward = edges[np.isin(edges[:, 1], asked) & (edges[:, 0] == begin)][:, 2]
            backward = edges[np.isin(edges[:, 1] + relations, asked) & (edges[:, 2] == begin)][:, 0]
            others = np.setdiff1d(np.concatenate((forward, backward)), [target])
            better = logits[row] > logits[row, target]
            better[others] = False
            found.append(1 + int(better.sum()))
    return found[:facts]


def recalls(gfm_set: GFMSet, weights: Mapping[str, Tensor]) -> tuple[float, float]:
    """Return R@2 and R@5 of a set's labelled questions, each over the whole graph."""
    import torch

    from ras_agent.tools.gfm.network import GraphTensors, plain_scores
    from ras_agent.tools.retrieve.gfm import messages_of

    graph, kg = GraphTensors.of(messages_of(gfm_set.kg, gfm_set.config)), gfm_set.kg
    found = []
    for question in gfm_set.labelled:
        start = torch.zeros(1, len(kg.entities))
        start[0, torch.from_numpy(question.entities.astype(np.int64))] = torch.from_numpy(question.weights)
        with torch.inference_mode():
            logits = plain_scores(weights, graph, torch.from_numpy(question.vector)[None], start)[0]
        scores = document_scores(logits.double().sigmoid().numpy(), kg.mentions, PACKAGED)
        order = np.argsort(-scores, kind="stable")
        found.append([np.isin(question.supporting, order[:k]).mean() for k in (2, 5)])
    two, five = np.mean(found, axis=0).tolist() if found else (0.0, 0.0)
    return two, five


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--facts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=int, default=32, help="of random weights")
    options = parser.parse_args(arguments)
    if options.weights == "random":
        encoder, dimension = text_model_of(options.sets)
        config = GFMConfig(dimension or 384, options.width, 6, encoder, inverse="negated")
        weights = initial_weights(config, 0)
    else:
        config, weights = load_gfm(weights_folder(options.weights))
    for gfm_set in load_sets(options.sets, config):
        found = np.array(ranks(gfm_set, weights, options.facts, options.seed))
        two, five = recalls(gfm_set, weights)
        completed = f"MRR {(1 / found).mean():.3f}  hits@10 {(found <= 10).mean():.3f}"
        print(f"{gfm_set.name:16} {completed}  R@2 {100 * two:.1f}  R@5 {100 * five:.1f}", flush=True)


if __name__ == "__main__":
    run_program(main)
