"""Measures what rounded products do to the packaged MiniLM's vectors and time, and how near names are searched.

    python -m lab.embedding names.txt --texts 600
    python -m lab.embedding names.txt --vectors names.npy --sizes 20000 100000 200000

The file has a name or relation a line. At first factors and results of some products are rounded in numpy, so that any
processor measures the same. With sizes, so many of the names are compared, in all pairs and in clusters; their vectors
are read from the file of --vectors, or written there. Seconds are processor time.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.program import run_program
from ras_agent.tools.embed import bert, minilm
from ras_agent.tools.embed.bert_bfloat16 import BFloat16Bert
from ras_agent.tools.kg.arrays import Vectors
from ras_agent.tools.kg.equivalence import Equivalence, comparable, mutual, near_lists

_MAPS = ("qkv", "attended", "wide", "narrow")
Round = Callable[[Floats, int], Floats]
"""Rounds an array; a scale, if it needs one, is that of each slice along an axis"""


def to_bfloat16(x: Floats, axis: int = 0) -> Floats:
    """Round to the nearest numbers of 8 binary digits, ties to even."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def to_int8(x: Floats, axis: int) -> Floats:
    """Round to 255 steps from the largest number along `axis` to its negative."""
    step = np.maximum(np.abs(x).max(axis=axis, keepdims=True), np.float32(1e-30)) / np.float32(127)
    steps: Floats = np.round(x / step) * step
    return steps


@dataclass(frozen=True, slots=True)
class _Rounded(bert._Linear):
    """Linear map of rounded factors, whose result is rounded where it stays in few digits."""

    to: Round
    result: bool

    def __call__(self, x: Floats) -> Floats:
        y: Floats = self.to(self.weight, 1) @ self.to(x, 0) + self.bias
        return self.to(y, 0) if self.result else y


def rounded(network: bert.Bert, to: Round, layers: Sequence[int], maps: Sequence[str], *, result: bool) -> bert.Bert:
    """Return the network with rounded products in some maps of some layers."""

    def of(layer: Any) -> Any:
        return replace(
            layer,
            **{name: _Rounded(getattr(layer, name).weight, getattr(layer, name).bias, to, result) for name in maps},
        )

    return replace(
        network, layers=tuple(of(layer) if at in layers else layer for at, layer in enumerate(network.layers))
    )


def _vectors(network: minilm._Network, texts: Sequence[str]) -> Floats:
    tokens = [one.ids for one in network.tokenizer.encode_batch(list(texts))]
    vectors = np.empty((len(texts), bert.WIDTH), np.float32)
    for rows in bert.panels(tokens, network.bert.columns):
        vectors[rows] = network([tokens[row] for row in rows])
    return vectors


def roundings(texts: Sequence[str]) -> Iterator[str]:
    """Yield a line of a table for each choice of products."""
    exact = minilm._network()
    assert isinstance(exact.bert, bert.Bert)
    expected = _vectors(exact, texts)
    above = np.triu_indices(len(texts), 1)
    yield "| products | distance, mean | max | cosines of two texts, mean | max |\n|---|---|---|---|---|"

    def row(name: str, network: bert.Bert | BFloat16Bert) -> str:
        vectors = _vectors(minilm._Network(exact.tokenizer, network), texts)
        apart = np.linalg.norm(vectors - expected, axis=1)
        cosines = np.abs(vectors @ vectors.T - expected @ expected.T)[above]
        return f"| {name} | {apart.mean():.4f} | {apart.max():.4f} | {cosines.mean():.4f} | {cosines.max():.4f} |"

    every = range(bert.LAYERS)
    for kind, to, result in (("bfloat16", to_bfloat16, True), ("int8", to_int8, False)):
        change = partial(rounded, exact.bert, to, result=result)
        yield row(f"{kind}, all", change(every, _MAPS))
        for layer in every:
            yield row(f"{kind}, layer {layer + 1}", change([layer], _MAPS))
        for name in _MAPS:
            yield row(f"{kind}, {name}", change(every, [name]))
    yield row("bfloat16, as it is for many texts", BFloat16Bert(exact.bert))


def searches(names: Sequence[str], vectors: Vectors, sizes: Sequence[int]) -> Iterator[str]:
    """Yield a line of a table for each number of names."""
    yield "| names | pairs | all pairs, s | in clusters, s | pairs found |\n|---|---|---|---|---|"
    for size in sizes:
        some = np.sort(np.random.default_rng(0).choice(len(names), min(size, len(names)), replace=False))
        classes, seconds, pairs = comparable([names[int(at)] for at in some]), [], []
        for kind in ("exact", "ivf"):
            began = time.process_time()
            ends = mutual(near_lists(vectors[some], classes, Equivalence(kind=kind))).entities
            seconds.append(time.process_time() - began)
            pairs.append(set(map(tuple, ends.tolist())))
        share = len(pairs[0] & pairs[1]) / max(len(pairs[0]), 1)
        yield f"| {len(some):,} | {len(pairs[0]):,} | {seconds[0]:.1f} | {seconds[1]:.1f} | {100 * share:.2f} % |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", type=Path)
    parser.add_argument("--texts", type=int, default=600, help="how many of them the first table embeds")
    parser.add_argument("--vectors", type=Path, help="a file of the names' vectors, as numpy writes it")
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="numbers of names to compare")
    arguments = parser.parse_args()
    names = list(dict.fromkeys(arguments.names.read_text("utf-8").splitlines()))
    if not arguments.sizes:
        lines = roundings(random.Random(0).sample(names, min(arguments.texts, len(names))))
    else:
        if arguments.vectors and arguments.vectors.exists():
            vectors = np.load(arguments.vectors)
        else:
            vectors = minilm.MiniLMEmbedder().embed(names).astype(np.float16)
            if arguments.vectors:
                np.save(arguments.vectors, vectors)
        lines = searches(names, vectors, arguments.sizes)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    run_program(main)
