"""Sums messages on the CPU, with gradients: each message is added as soon as it is computed, and is never
stored.

A sum of messages and its two gradients are all sums of products, grouped by the messages' target, source or
relation. So each of the three is one pass over memory, in which each thread writes only the rows of its own
groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from ras_agent.contracts.arrays import offsets_of
from ras_agent.tools.gfm.cpu_kernels import CpuLoop
from ras_agent.tools.gfm.graph import GFMGraph, OutgoingMessages
from ras_agent.tools.gfm.network import GraphTensors


@dataclass(frozen=True, slots=True)
class FusedGraph(GraphTensors):
    """Sums messages of a graph on the CPU by compiled loops. Needs numba, and states in float32."""

    graph: GFMGraph

    @classmethod
    def of_graph(cls, graph: GFMGraph) -> FusedGraph:
        """Return the graph with its arrays as tensors that share their memory."""
        tensors = GraphTensors.of(graph)
        return cls(
            entities=tensors.entities,
            source=tensors.source,
            relation=tensors.relation,
            target=tensors.target,
            vectors=tensors.vectors,
            graph=graph,
        )

    def sums(self, initial: Tensor, states: Tensor, factors: Tensor) -> Tensor:
        """Return each entity's initial state plus the messages that it receives; see GraphTensors.sums."""
        add: Callable[..., Tensor] = _MessageSums.apply
        return add(self.graph, initial, states.contiguous(), factors)


class _MessageSums(Function):
    """Adds the sums of messages of states (N, B, d) and relation states (R, d) to the initial states (N, B, d)."""

    @staticmethod
    def forward(
        ctx: Any, graph: GFMGraph, initial: Tensor, states: Tensor, factors: Tensor
    ) -> Tensor:
        sums = initial.clone(memory_format=torch.contiguous_format)
        _add_products.share(
            graph.entities,
            graph.indptr,
            graph.source,
            graph.relation,
            states,
            factors,
            sums,
        )
        ctx.graph = graph
        ctx.save_for_backward(states, factors)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        graph: GFMGraph = ctx.graph
        states, factors = (saved.detach() for saved in ctx.saved_tensors)
        gradient = gradient.contiguous()
        outgoing = OutgoingMessages.of(graph)
        of_states = torch.zeros_like(states)
        _add_products.share(
            graph.entities,
            outgoing.indptr,
            outgoing.target,
            outgoing.relation,
            gradient,
            factors,
            of_states,
        )
        order = np.argsort(graph.relation, kind="stable")
        counts = np.bincount(graph.relation, minlength=len(factors))
        of_factors = torch.zeros_like(factors)
        _add_pairs.share(
            len(factors),
            offsets_of(counts),
            graph.source[order],
            graph.target[order],
            states,
            gradient,
            of_factors,
        )
        return None, gradient, of_states, of_factors


@CpuLoop
def _add_products(
    indptr: Any,
    sender: Any,
    relation: Any,
    states: Any,
    factors: Any,
    sums: Any,
    begin: int,
    end: int,
) -> None:
    """Add to `sums` (N, B, d), for the entities from `begin` to `end`, the products of states and relation
    states.

    Args:
        indptr: the start of each entity's messages.
        sender, relation: (M,), the rows of `states` (N, B, d) and of `factors` (R, d) that each message
            multiplies.
    """
    for entity in range(begin, end):
        for message in range(indptr[entity], indptr[entity + 1]):
            factor = factors[relation[message]]
            for question in range(states.shape[1]):
                state = states[sender[message], question]
                total = sums[entity, question]
                for column in range(len(factor)):
                    total[column] += state[column] * factor[column]


@CpuLoop
def _add_pairs(
    indptr: Any,
    source: Any,
    target: Any,
    states: Any,
    gradient: Any,
    sums: Any,
    begin: int,
    end: int,
) -> None:
    """Add to `sums` (R, d), for the relations from `begin` to `end`, the products of the states at both ends of
    messages.

    Args:
        indptr: the start of each relation's messages.
        source, target: (M,), the rows of `states` and of `gradient`, both (N, B, d), that each message
            multiplies; products are added over all questions.
    """
    for relation in range(begin, end):
        total = sums[relation]
        for message in range(indptr[relation], indptr[relation + 1]):
            for question in range(states.shape[1]):
                state = states[source[message], question]
                given = gradient[target[message], question]
                for column in range(len(total)):
                    total[column] += state[column] * given[column]
