"""Computes the network's scores on a torch device, above all CUDA: every entity at every layer, several questions at
once.

A GPU computes all entities in less time than the host needs to find out which ones a question reaches, as
ras_agent.tools.gfm.cpu does, so nothing is skipped here. The steps are those of the reference
(ras_agent.tools.gfm.network), for one block of target entities at a time, so that messages take bounded memory. The
relation states are computed once; weights, graph and relation states stay on the device. Each sum of messages is
computed separately and in the order of the graph, so the same question always gets the same scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.tools.gfm.cached_rows import CachedRows
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import (
    RELATIONS_AT_ONCE,
    entity_logits,
    layer_count,
    message,
    project_relations_in_blocks,
    relation_inputs,
    update,
)

if TYPE_CHECKING:
    from torch import Tensor, device

BATCH_BYTES = 4_000_000_000  # for the states of questions that are computed together
# entities and messages, times questions; enough to keep a device busy
ROWS_PER_BLOCK = 131_072


class DeviceGFM:
    """Scores the entities of one graph on a device. Safe for use by several threads, whose calls run one after
    another.
    """

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        graph: GFMGraph,
        on: str | device,
        *,
        batch_bytes: int = BATCH_BYTES,
        rows: int = ROWS_PER_BLOCK,
    ) -> None:
        """Copy weights and graph to the device and compute the relation states. Raises torch's OutOfMemoryError.

        Args:
            on: a torch device, "cuda", "cuda:1", "cpu".
            batch_bytes: the bytes for the states of questions that are computed together; one question is computed
                in any case.
            rows: entities and messages in a block, times questions; a block takes about 12 * rows * width bytes.
        """
        import torch

        self.device = torch.device(on)
        self.graph = graph
        self._batch_bytes = batch_bytes
        self._rows = rows
        self._turn = Lock()
        # the number of entities and messages before each entity
        self._work = graph.indptr + np.arange(len(graph.indptr))
        self._source = torch.from_numpy(graph.source).to(self.device)
        self._relation = torch.from_numpy(graph.relation).to(self.device)
        self._counts = torch.from_numpy(np.diff(graph.indptr)).to(self.device)
        # not in inference mode, as explanations take gradients through them
        self.weights = {
            name: tensor.detach().to(self.device, torch.float32)
            for name, tensor in weights.items()
        }
        with torch.inference_mode():
            self.relation_states = self._relation_states()

    def scores(self, questions: Floats, starts: Sequence[GFMStart]) -> Floats:
        """Return logits (B, N), float32, for sentence vectors (B, text width) and each question's entities."""
        import torch
        from torch.nn.functional import linear

        scores = np.empty((len(starts), self.graph.entities), dtype=np.float32)
        width = len(self.weights["question_mlp.bias"])
        # the states of one layer and of the next
        one_question = 2 * 4 * self.graph.entities * width
        batch = max(1, self._batch_bytes // max(1, one_question))
        with self._turn, torch.inference_mode():
            vectors = torch.from_numpy(
                np.ascontiguousarray(questions, dtype=np.float32)
            ).to(self.device)
            # (B, d)
            queries = linear(
                vectors,
                self.weights["question_mlp.weight"],
                self.weights["question_mlp.bias"],
            )
            for begin in range(0, len(starts), batch):
                some = slice(begin, begin + batch)
                scores[some] = self._batch_scores(queries[some], starts[some])
        return scores

    def _batch_scores(self, queries: Tensor, starts: Sequence[GFMStart]) -> Floats:
        """Return the scores (B, N) for questions' states (B, d), computed together."""
        import torch

        batch, width = queries.shape
        start_rows, initial = self._initial(queries, starts)
        at = torch.from_numpy(start_rows).to(self.device)
        # entities first: row e * B + b is entity e's state for question b
        states = torch.zeros(self.graph.entities * batch, width, device=self.device)
        states[at] = initial
        states = states.view(-1, batch, width)
        following = torch.empty_like(states)
        for layer, factors in enumerate(self.relation_states):
            for low, high in self._blocks(batch):
                total = self._sums(low, high, states, factors.values)
                first, last = np.searchsorted(start_rows, (low * batch, high * batch))
                # the initial states enter every sum; no row occurs twice
                total.view(-1, width)[at[first:last] - low * batch] += initial[
                    first:last
                ]
                following[low:high] = update(
                    self.weights, layer, states[low:high], total
                )
            states, following = following, states
        logits = torch.empty(self.graph.entities, batch, device=self.device)
        for low, high in self._blocks(batch):
            logits[low:high] = entity_logits(self.weights, states[low:high], queries)
        scores: Floats = logits.t().cpu().numpy()
        return scores

    def _blocks(self, batch: int) -> Iterator[tuple[int, int]]:
        """Yield consecutive ranges of target entities whose states and messages fill a block."""
        room = max(1, self._rows // batch)
        low = 0
        while low < self.graph.entities:
            high = (
                int(np.searchsorted(self._work, self._work[low] + room, side="right"))
                - 1
            )
            high = max(high, low + 1)  # one with many messages is a block by itself
            yield low, high
            low = high

    def _sums(self, low: int, high: int, states: Tensor, factors: Tensor) -> Tensor:
        """Return (high - low, B, d): the sums of the messages to the entities low to high - 1.

        Args:
            states: (N, B, d), those of all entities.
            factors: (R, d), the relations' states.
        """
        import torch

        some = slice(self.graph.indptr[low], self.graph.indptr[high])
        source_states = states.index_select(0, self._source[some])
        messages = message(source_states, factors.index_select(0, self._relation[some]))
        # one thread computes each sum, without atomic additions, whose order would vary
        sums = torch.segment_reduce(
            messages.flatten(1), "sum", lengths=self._counts[low:high], unsafe=True
        )
        return sums.view(high - low, *states.shape[1:])

    def _initial(
        self, queries: Tensor, starts: Sequence[GFMStart]
    ) -> tuple[Ints, Tensor]:
        """Return the rows (K,) of the questions' entities among all states, ascending, and their states (K, d)."""
        import torch

        batch = len(starts)
        question = np.repeat(
            np.arange(batch), [len(start.entities) for start in starts]
        )
        entities = np.concatenate(
            [np.asarray(start.entities, dtype=np.int64) for start in starts]
        )
        weights = np.concatenate(
            [np.asarray(start.weights, dtype=np.float32) for start in starts]
        )
        rows: Ints = entities * batch + question
        order = np.argsort(rows, kind="stable")
        share = torch.from_numpy(weights[order]).to(self.device)
        asked = torch.from_numpy(question[order]).to(self.device)
        return rows[order], share[:, None] * queries[asked]

    def _relation_states(self) -> tuple[CachedRows, ...]:
        """Return every layer's relation states (R, d), computed from the sentence vectors."""
        import torch

        blocks = torch.split(torch.from_numpy(self.graph.vectors), RELATIONS_AT_ONCE)
        inputs = torch.cat(
            [relation_inputs(self.weights, block.to(self.device)) for block in blocks]
        )
        ones = torch.ones(1, device=self.device)
        layers = range(layer_count(self.weights))
        return tuple(
            CachedRows(project_relations_in_blocks(self.weights, layer, inputs), ones)
            for layer in layers
        )


def bytes_needed(weights: Mapping[str, Tensor], graph: GFMGraph) -> int:
    """Return an estimate of the bytes on a device for one question, including everything that stays in use."""
    width = len(weights["question_mlp.bias"])
    weight_numbers = sum(tensor.numel() for tensor in weights.values())
    lasting = layer_count(weights) * graph.relations * width + weight_numbers
    states = 2 * graph.entities * width
    # those of one entity are never split, so the largest number counts
    messages = int(np.diff(graph.indptr).max(initial=0))
    block = 8 * max(ROWS_PER_BLOCK, messages) * width
    return int(4 * (lasting + states + block) + 24 * (graph.messages + graph.entities))
