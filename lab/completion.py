"""Measures how well a GFM network completes facts of graphs: where the end that is hidden ranks among all entities.

    python -m lab.completion RUN SETS/hotpotqa SETS/musique --facts 200

RUN is a folder of weights, `packaged`, or `random` for untrained ones of the first set's vectors. A set is a folder of
ras_agent.train.gfm.examples. Facts are drawn by the seed; each is asked for from both of its ends, over the whole graph
without this fact. The rank is filtered: other entities that complete the same fact do not count. Prints the mean
reciprocal rank and the share among the first ten for each set.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ras_agent.program import run_program
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights, load_gfm, weights_folder
from ras_agent.train.gfm.sets import GFMSet, load_sets, text_model_of


def ranks(gfm_set: GFMSet, weights: object, facts: int, seed: int, batch: int = 8) -> list[int]:
    """Return the filtered ranks of both ends of facts that are drawn from a set's graph."""
    import torch

    from ras_agent.tools.gfm.network import GraphTensors, plain_scores
    from ras_agent.train.gfm.batches import completion_example

    found: list[int] = []
    rng = np.random.default_rng(seed)
    edges = np.asarray(gfm_set.kg.edges)
    relations = len(gfm_set.inverse)
    while len(found) < facts:
        # one negative is drawn and not read: all entities are ranked
        example = completion_example([gfm_set], batch, 0, 1, rng)
        vectors, start = torch.from_numpy(example.vectors), torch.from_numpy(example.start)
        with torch.inference_mode():
            logits = plain_scores(weights, GraphTensors.of(example.graph), vectors, start).numpy()  # type: ignore[arg-type]
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
        print(f"{gfm_set.name:16} MRR {(1 / found).mean():.3f}  hits@10 {(found <= 10).mean():.3f}", flush=True)


if __name__ == "__main__":
    run_program(main)
