"""Compares the GFM network with a pass over the whole graph, which is how the published code computes it.

The random graph has as many facts as MuSiQue's, with entities and relations drawn by Zipf's law. Relations are
phrases with their sentence vectors. Questions start at uniformly drawn entities; rarer entities get more
weight, as in the retriever. Two networks are measured: the packaged one, and the same weights widened to the
published width of 512. The bars hold for this random graph. Over real graphs, where a question reaches fewer
entities, see lab/gfm-speed.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import needs_extra
from ras_agent.eval.bench.rows import BenchRow, processor_ms
from ras_agent.tools.embed.embedders import query_vector, resolve_embedder
from ras_agent.tools.gfm.cached_rows import cache_rows
from ras_agent.tools.gfm.cpu import FastGFM
from ras_agent.tools.gfm.cpu_kernels import propagate
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import (
    layer_count,
    project_relations,
    relation_inputs,
    update,
)
from ras_agent.tools.gfm.weights import PACKAGED_NAME, load_gfm, weights_folder

if TYPE_CHECKING:
    from torch import Tensor

WIDER = 16
"""How many times wider than the packaged network the widened one is: its width is 512."""
ENTITIES = 20_000
FACTS = 21_500
_BARS = (0.18, 0.5)  # for the widened and for the packaged network
_VERBS = (
    "founded",
    "written",
    "led",
    "owned",
    "built",
    "painted",
    "composed",
    "named",
    "settled",
    "taught",
    "ruled",
)
_ENDS = (
    "by",
    "in",
    "of",
    "at",
    "for",
    "with",
    "under",
    "near",
    "after",
    "before",
    "from",
    "as",
    "against",
    "between",
)
_QUESTIONS = (
    "Who founded the city where the painter was born?",
    "Which river flows through the capital of the country that was ruled by the composer?",
    "When was the school built at which the director taught?",
    "Who married the writer of the book that was named after the settlement?",
)


def bench_rows(entities: int = ENTITIES, facts: int = FACTS) -> Iterator[BenchRow]:
    """Yield rows for both widths over random facts.

    Raises:
        MissingExtra: torch or numba is not installed.
    """
    with needs_extra("the GFM network", "gnn"):
        import numba  # noqa: F401
        import torch
    config, weights = load_gfm(weights_folder(PACKAGED_NAME))
    embedder = resolve_embedder("minilm")
    relations = []
    for verb, end in product(_VERBS, _ENDS):
        relations.append(f"was {verb} {end}")
    vectors = np.asarray(embedder.embed(relations), dtype=np.float32)
    graph = GFMGraph.from_edges(
        entities, drawn_facts(entities, len(relations), facts), vectors, None
    )
    starts = [_start(graph, seed) for seed in range(len(_QUESTIONS))]
    questions = np.stack([query_vector(embedder, question) for question in _QUESTIONS])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for width, network in (
            (config.width, weights),
            (config.width * WIDER, widened(weights, WIDER)),
        ):
            fast = FastGFM(network, graph)
            inputs = torch.from_numpy(graph.vectors)
            times = []
            for question, start in [
                (questions[0], starts[0]),
                *zip(questions, starts, strict=True),
            ]:
                mine = processor_ms(fast.scores, question[None], [start])
                with torch.inference_mode():
                    whole = processor_ms(
                        plain_pass, network, graph, inputs, question, start
                    )
                times.append((mine, whole))
            cost, other = map(fmean, zip(*times[1:], strict=True))  # the first compiles
            yield BenchRow(
                f"GFM of width {width}, {entities:,} entities",
                "ms of processor",
                cost,
                "whole graph",
                other,
                at_most=_BARS[width == config.width],
            )
    finally:
        torch.set_num_threads(threads)


def _start(graph: GFMGraph, seed: int) -> GFMStart:
    """Return a start at three entities that occur in facts; an entity with more facts gets a lower weight."""
    rng = np.random.default_rng(seed)
    entities = np.sort(rng.choice(np.unique(graph.source), 3, replace=False))
    counts = np.diff(graph.indptr)[entities]
    weights = (1 / counts).astype(np.float32)
    return GFMStart(entities, weights)


def drawn_facts(entities: int, relations: int, facts: int) -> Ints:
    """Return random facts, shape (facts, 3): their entities and relations follow Zipf's law (exponent 0.8), in
    random numbering.
    """
    rng = np.random.default_rng(0)
    ends = rng.permutation(entities)
    labels = rng.permutation(relations)

    def drawn(numbers: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
        chances = np.cumsum(np.arange(1, len(numbers) + 1) ** -0.8)
        rows: npt.NDArray[np.int64] = numbers[
            np.searchsorted(chances, rng.random(size) * chances[-1])
        ]
        return rows

    return np.column_stack(
        (drawn(ends, facts), drawn(labels, facts), drawn(ends, facts))
    )


def plain_pass(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    vectors: Tensor,
    question: Floats,
    start: GFMStart,
) -> Floats:
    """Return the entities' scores as the published code computes them: one kernel for messages, then products
    over the whole graph.
    """
    import torch
    from torch.nn.functional import linear, relu

    query = linear(
        torch.from_numpy(question),
        weights["question_mlp.weight"],
        weights["question_mlp.bias"],
    )
    initial = torch.zeros(graph.entities, len(query))
    initial[torch.from_numpy(start.entities)] = (
        torch.from_numpy(start.weights)[:, None] * query
    )
    inputs = relation_inputs(weights, vectors)
    everyone = np.arange(graph.entities)
    state = initial
    for layer in range(layer_count(weights)):
        states = cache_rows(project_relations(weights, layer, inputs), half=False)
        total = torch.empty_like(state)
        propagate(graph, everyone, everyone, state, states, total)
        state = update(weights, layer, state, total + initial)
    features = torch.cat((state, query.expand_as(state)), dim=-1)
    hidden = relu(
        linear(
            features,
            weights["entity_model.mlp.0.weight"],
            weights["entity_model.mlp.0.bias"],
        )
    )
    out = linear(
        hidden, weights["entity_model.mlp.2.weight"], weights["entity_model.mlp.2.bias"]
    )
    scores: Floats = out[:, 0].numpy()
    return scores


def widened(weights: Mapping[str, Tensor], times: int) -> dict[str, Tensor]:
    """Return the weights of a network `times` as wide that computes the same, to measure the cost of that
    width.

    Each number of a state is repeated `times` times, and the weights that read it are divided by `times`.
    """
    import torch

    def wider_inputs(matrix: Tensor, parts: int) -> Tensor:
        halves = []
        for half in matrix.chunk(parts, dim=1):
            halves.append(half.repeat_interleave(times, dim=1) / times)
        return torch.cat(halves, dim=1)

    made = {}
    for name, value in weights.items():
        if value.ndim == 2 and not name.startswith(("rel_mlp", "question_mlp")):
            value = wider_inputs(
                value,
                2
                if name.endswith((".linear.weight", "entity_model.mlp.0.weight"))
                else 1,
            )
        made[name] = (
            value
            if name.startswith("entity_model.mlp.2")
            else value.repeat_interleave(times, dim=0)
        )
    return made
