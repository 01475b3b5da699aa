"""Computes the network's scores on the CPU from cached states: within 1e-3 of the plain network's probabilities.

A question changes the state of an entity at layer l only if one of the question's entities is within l messages of it,
and behind a hub with thousands of other messages most of these changes are too small to matter. All other entities keep
their background (ras_agent.tools.gfm.cache). So each layer computes, for the entities that are reached
(ras_agent.tools.gfm.reach), how far the question moves them from the background. The linear map of [state; total] is
split into its two halves, so that nothing is concatenated and the state's half is computed only where the state
changed. If the background is not cached, every entity is computed, in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.contracts.arrays import Floats, Ints
from ras_agent.contracts.errors import SettingsError
from ras_agent.tools.gfm.cache import (
    GraphCache,
    NodeInputs,
    ScoreHead,
    background_share,
    build_cache,
    layer_weights,
    norm_and_rectify,
)
from ras_agent.tools.gfm.cached_rows import CachedRows
from ras_agent.tools.gfm.cpu_kernels import (
    on_one_thread,
    propagate,
    score_background,
    score_changed,
    update_changes,
)
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart, OutgoingMessages
from ras_agent.tools.gfm.reach import (
    layer_bounds,
    possible_changes,
    reached_entities,
    spectral_norms,
    worth_scoring,
)

if TYPE_CHECKING:
    from torch import Tensor

CACHE_BYTES = 1_500_000_000
TOLERANCE = 1e-3
SMALL_GRAPH = 1 << 15
"""The maximum number of entities of a graph whose questions are computed on one thread each.

They reach a few thousand rows at a layer.
"""
NUMBERS_AT_ONCE = 1 << 20  # a block of states is 4 MB and stays in the CPU's cache


class FastGFM:
    """Scores the entities of one graph on the CPU. Safe for use by several threads."""

    head_name = "entity_model.mlp"

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        graph: GFMGraph,
        *,
        cache_bytes: int = CACHE_BYTES,
        half_cache: bool | None = None,
        half_products: bool = False,
        tolerance: float = TOLERANCE,
    ) -> None:
        """Compute the relation states and the background, which takes about as long as one question's plain pass.

        Raises SettingsError for a tolerance that is not a probability.

        Args:
            cache_bytes: the bytes for both together; relation states come first, then as many layers of background
                as fit.
            half_cache: whether to cache them as 16-bit integers, in half the memory; probabilities stay within
                1e-4. By default only if float32 would take more than `cache_bytes`.
            half_products: whether to multiply matrices in bfloat16, which changes scores in about the third digit.
            tolerance: the accepted error of a probability. A change of a state is skipped if, at the last layer, it
                could not move a probability by more; and an entity's last state and score are skipped if its
                probability cannot move by more. Skipped changes can add up for an entity with many messages, so
                this is not a proven bound; lab/gfm-speed.md has measured differences. 0 skips nothing.
        """
        import torch

        if not 0 <= tolerance < 1:
            raise SettingsError(
                f"the tolerance of probabilities has to be at least 0 and below 1 (0 is exact), got {tolerance}"
            )

        self.graph = graph
        self.weights = weights
        with torch.inference_mode():
            if half_products:
                self._dtype = torch.bfloat16
            else:
                self._dtype = torch.float32
            width = len(weights["rel_mlp.bias"])
            self._rows = max(1, NUMBERS_AT_ONCE // width)
            self._head = ScoreHead.of(weights, self.head_name, width)
            self._nodes = self._node_inputs()
            self.cache: GraphCache = build_cache(
                weights, graph, self._head, cache_bytes, half_cache, self._nodes
            )
            # after the cache, whose computation takes the most memory
            self._layers = list(layer_weights(weights, self._dtype))
            self._bounds = layer_bounds(self.cache, self._layers)
            norm = spectral_norms(self._head.state_weight.mT) * self._head.output.norm()
            # the most that a logit moves for each unit of length of a change of the last state
            self._score_gain = float(norm)
            self._tolerance = tolerance
            # a sigmoid's slope is at most 1/4
            self.negligible = 4 * tolerance / max(self._score_gain, 1e-30)
            self._score_state = self._head.state_weight.to(self._dtype)
        self._outgoing = OutgoingMessages.of(graph)
        self._everyone = np.arange(graph.entities)

    def _node_inputs(self) -> NodeInputs | None:
        """Return the network's inputs from the nodes themselves; None, as GFM-RAG's network has none."""
        return None

    @property
    def relation_states(self) -> tuple[CachedRows, ...]:
        """Return the relation states (R, d) of every layer."""
        return self.cache.relation_states

    def scores(self, questions: Floats, starts: Sequence[GFMStart]) -> Floats:
        """Return logits (B, N), float32, for sentence vectors (B, text width) and each question's entities."""
        if self.graph.entities <= SMALL_GRAPH:
            return on_one_thread(partial(self._scores, questions, starts))
        return self._scores(questions, starts)

    def _scores(self, questions: Floats, starts: Sequence[GFMStart]) -> Floats:
        import torch

        with torch.inference_mode():
            queries = self._queries(questions)
            parts = queries @ self._head.query_weight + self._head.bias  # (B, h)
            scores = self._background_scores(parts)
            for row, start in enumerate(starts):
                self._score(queries[row], parts[row], start, scores[row])
            return scores

    def _queries(self, questions: Floats) -> Tensor:
        """Return the questions' states (B, d)."""
        import torch
        from torch.nn.functional import linear

        vectors = torch.from_numpy(np.ascontiguousarray(questions, dtype=np.float32))
        return linear(
            vectors,
            self.weights["question_mlp.weight"],
            self.weights["question_mlp.bias"],
        )

    def _background_scores(self, parts: Tensor) -> Floats:
        """Return the logits (B, N) as if no question had changed a state.

        Args:
            parts: (B, h), the part of the score's hidden layer from each question. If the background of the score
                is not cached, the numbers are arbitrary, as all logits are computed later.
        """
        hidden = self.cache.score_hidden
        if hidden is None:
            shape = (len(parts), self.graph.entities)
            return np.empty(shape, dtype=np.float32)
        scores = score_background(hidden, parts, self._head.output)
        return scores + np.float32(self._head.output_bias)

    def _initial(self, query: Tensor, start: GFMStart) -> tuple[Ints, Tensor]:
        """Return the question's entities (k,), ascending, and the changes of their initial states (k, d): eq. 6."""
        import torch

        order = np.argsort(start.entities, kind="stable")
        weights = torch.from_numpy(np.asarray(start.weights, dtype=np.float32)[order])
        return np.asarray(start.entities, dtype=np.int64)[order], weights[
            :, None
        ] * query

    def _changed_layers(
        self, query: Tensor, start: GFMStart, background: Floats
    ) -> Iterator[tuple[Ints, Tensor]]:
        """Yield, for each layer with a cached background, the entities (C,), ascending, whose next states change by
        more than a negligible length, and their changes (C, d).
        """
        import torch

        sources, changes = question_entities, initial = self._initial(query, start)
        for number, bound in enumerate(self._bounds):
            lengths = torch.linalg.vector_norm(changes, dim=1)
            possible = possible_changes(self._outgoing, sources, lengths, bound)
            reached = reached_entities(
                possible, sources, question_entities, self.negligible
            )
            if number == len(self._layers) - 1 and self.cache.score_hidden is not None:
                possible = self._score_gain * possible[reached]
                reached = worth_scoring(
                    reached, question_entities, background, possible, self._tolerance
                )
            sources, changes = self._next_changes(
                number, reached, sources, changes, question_entities, initial
            )
            yield sources, changes

    def _score(
        self, query: Tensor, part: Tensor, start: GFMStart, scores: Floats
    ) -> None:
        """Overwrite, in `scores` (N,), the background's logits of those entities that the question changes."""
        changed, changes = question_entities, initial = self._initial(query, start)
        for step in self._changed_layers(query, start, scores):
            changed, changes = step
        if self.cache.score_hidden is None:
            scores[:] = self._score_everyone(
                part, changed, changes, question_entities, initial
            )
            return
        for begin in range(0, len(changed), self._rows):
            block = slice(begin, begin + self._rows)
            hidden = self._product(changes[block], self._score_state)
            entities = changed[block]
            logits = score_changed(
                hidden, self.cache.score_hidden, entities, part, self._head.output
            )
            scores[entities] = logits + np.float32(self._head.output_bias)

    def _next_changes(
        self,
        number: int,
        reached: Ints,
        sources: Ints,
        changes: Tensor,
        question_entities: Ints,
        initial: Tensor,
    ) -> tuple[Ints, Tensor]:
        """Return which of `reached` (H,) change by more than a negligible length, (C,), and their changes (C, d).

        A change is the difference between the state that leaves layer `number` and its background.

        Args:
            changes: (T, d), those of the states of `sources` (T,) that enter the layer.
            question_entities: (k,), the question's entities.
            initial: (k, d), the changes of their initial states.
        """
        import torch

        layer = self._layers[number]
        pre_norm = self.cache.pre_norm[number]
        relation_states = self.cache.relation_states[number]
        row_of = np.full(self.graph.entities, -1)
        row_of[sources] = np.arange(len(sources))
        if len(pre_norm.values) > 1:
            background_row = reached
        else:
            background_row = np.zeros(len(reached), dtype=np.int64)
        own_place = np.searchsorted(reached, question_entities)
        following = torch.empty(len(reached), changes.shape[1])
        totals, mixed, of_states = torch.empty(
            3, min(self._rows, len(reached)), changes.shape[1]
        )
        remaining = []
        count = 0
        for begin in range(0, len(reached), self._rows):
            end = min(begin + self._rows, len(reached))
            targets = reached[begin:end]
            total = totals[: end - begin]
            block = mixed[: end - begin]
            propagate(self.graph, targets, row_of, changes, relation_states, total)
            low, high = np.searchsorted(own_place, (begin, end))
            total[torch.from_numpy(own_place[low:high] - begin)] += initial[low:high]
            self._product(total, layer.total_weight, block)
            own_row = row_of[targets]
            state_rows = own_row[own_row >= 0]
            state_changes = changes[torch.from_numpy(state_rows)]
            of_state = self._product(
                state_changes, layer.state_weight, of_states[: len(state_rows)]
            )
            own_row[own_row >= 0] = np.arange(len(state_rows))
            rows = own_row, pre_norm, background_row[begin:end]
            update_changes(
                block,
                of_state,
                state_changes,
                *rows,
                layer.norm_weight,
                layer.norm_bias,
            )
            # not ">", so that NaN does not count as negligible
            matters = ~(torch.linalg.vector_norm(block, dim=1) <= self.negligible)
            indices = matters.nonzero()[:, 0]
            torch.index_select(
                block, 0, indices, out=following[count : count + len(indices)]
            )
            remaining.append(targets[matters.numpy()])
            count += len(indices)
        return np.concatenate(remaining) if remaining else reached, following[:count]

    def _score_everyone(
        self,
        part: Tensor,
        changed: Ints,
        changes: Tensor,
        question_entities: Ints,
        initial: Tensor,
    ) -> Floats:
        """Return the logits (N,) if not all layers are cached; the other layers are computed for every entity.

        Args:
            changed: (C,), the entities with changed states before the first such layer.
            changes: (C, d), their changes.
            part, question_entities, initial: the question's part of the score's hidden layer, its entities, and the
                changes of their initial states.
        """
        import torch

        assert self.cache.uncached_from is not None
        state = self.cache.uncached_from.clone()
        state[torch.from_numpy(changed)] += changes
        following = torch.empty_like(state)
        totals = torch.empty(min(self._rows, len(state)), state.shape[1])
        for number in range(len(self.cache.pre_norm), len(self._layers)):
            layer = self._layers[number]
            relation_states = self.cache.relation_states[number]
            for begin in range(0, len(state), self._rows):
                end = min(begin + self._rows, len(state))
                total = totals[: end - begin]
                propagate(
                    self.graph,
                    self._everyone[begin:end],
                    self._everyone,
                    state,
                    relation_states,
                    total,
                )
                low, high = np.searchsorted(question_entities, (begin, end))
                total[torch.from_numpy(question_entities[low:high] - begin)] += initial[
                    low:high
                ]
                if self._nodes is not None:
                    total += self._nodes.initial[begin:end]
                mixed = self._product(total, layer.total_weight).add_(layer.bias)
                mixed += self._product(state[begin:end], layer.state_weight)
                torch.add(
                    norm_and_rectify(mixed, layer),
                    state[begin:end],
                    out=following[begin:end],
                )
            state, following = following, state
        scores = np.empty(len(state), dtype=np.float32)
        for begin in range(0, len(state), self._rows):
            block = slice(begin, begin + self._rows)
            hidden = (
                background_share(self._head, state[block], self._nodes, block)
                .add_(part)
                .relu_()
            )
            scores[block] = (hidden @ self._head.output).numpy() + np.float32(
                self._head.output_bias
            )
        return scores

    def _product(
        self, rows: Tensor, matrix: Tensor, out: Tensor | None = None
    ) -> Tensor:
        """Return `rows` times `matrix`, computed in the precision of the products, as float32."""
        import torch

        if self._dtype == torch.float32:
            if out is not None:
                return torch.mm(rows, matrix, out=out)
            return rows @ matrix
        product = rows.to(self._dtype) @ matrix
        if out is None:
            return product.float()
        return out.copy_(product)
