"""The network's scores without computing what is known already: exact, and quick where a question reaches little.

A question changes the state of an entity at layer l only if one of the question's entities is within l messages of it.
All others keep their background (ras_agent.tools.encode.gfm.index_states). So each layer adds to the background, for
the entities that are reached, what the changes of those that spoke make of it; the linear map of [state; total] is
split into its two halves, so that nothing is concatenated and the half of the state is needed only where it changed.
Where most entities are reached, or the background was not kept, every entity is computed, in blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ras_agent.tools.encode.gfm.graph import GFMGraph
from ras_agent.tools.encode.gfm.index_states import ROWS, IndexStates, layers_of, prepare, rectified
from ras_agent.tools.encode.gfm.kernel import hear
from ras_agent.tools.encode.gfm.reach import Outgoing, Reached, reach

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FastGFM", "Start"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
MOST = 1_500_000_000
WIDELY = 0.8


@dataclass(frozen=True, slots=True)
class Start:
    """A question's entities (k,), each once, and how much each belongs to the question (k,): eq. 6's H0 / q."""

    entities: Ints
    weights: Floats


class FastGFM:
    """A network ready for one graph. Calls may come from several threads."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        graph: GFMGraph,
        *,
        most: int = MOST,
        half_cache: bool = False,
        half_products: bool = False,
        widely: float = WIDELY,
    ) -> None:
        """Computes the relation states and the background once; as long as about one question's plain pass.

        most: bytes that these may take together; relation states come first, then as many layers of background as fit.
        half_cache: keep them as bfloat16, in half the memory. half_products: multiply matrices in bfloat16.
            Both change scores in about the third digit.
        widely: the share of entities from which on all are computed.
        """
        import torch

        self.graph, self.weights, self._widely = graph, weights, widely
        self._outgoing = Outgoing.of(graph)
        with torch.inference_mode():
            self.known: IndexStates = prepare(weights, graph, most, torch.bfloat16 if half_cache else torch.float32)
            self._kind = torch.bfloat16 if half_products else torch.float32
            self._layers = layers_of(weights, self._kind)
            first = weights["entity_model.mlp.0.weight"]
            of_state, of_question = first.chunk(2, dim=1)
            self._score_state = of_state.t().contiguous().to(self._kind)
            self._score_question = of_question.t().contiguous()
            self._score_out = weights["entity_model.mlp.2.weight"][0].contiguous()

    def scores(self, questions: Floats, starts: Sequence[Start]) -> Floats:
        """Logits (B, N), float32, for sentence vectors (B, text width) and the entities of each question."""
        import torch
        from torch.nn.functional import linear

        with torch.inference_mode():
            given = torch.from_numpy(np.ascontiguousarray(questions, dtype=np.float32))
            asked = linear(given, self.weights["question_mlp.weight"], self.weights["question_mlp.bias"])
            keys, initial = self._initial(asked, starts)
            return self._spread(asked, keys, initial)

    def _initial(self, asked: Tensor, starts: Sequence[Start]) -> tuple[Ints, Tensor]:
        """The keys of all questions' entities, ascending, and their initial states (T, d)."""
        import torch

        count = self.graph.entities
        keys = np.concatenate([start.entities + row * count for row, start in enumerate(starts)])
        weight = np.concatenate([start.weights for start in starts]).astype(np.float32)
        order = np.argsort(keys, kind="stable")
        keys, weight = keys[order].astype(np.int64), weight[order]
        return keys, torch.from_numpy(weight)[:, None] * asked[torch.from_numpy(keys // count)]

    def _spread(self, asked: Tensor, keys: Ints, initial: Tensor) -> Floats:
        changed, first = initial, keys
        for number in range(len(self._layers)):
            if number >= len(self.known.mixed):
                return self._everywhere(asked, number, keys, changed, first, initial)
            reached = reach(self._outgoing, keys)
            if len(reached.keys) > self._widely * len(asked) * self.graph.entities:
                return self._everywhere(asked, number, keys, changed, first, initial)
            at = np.searchsorted(reached.keys, first)
            changed = self._changes(number, reached, changed, at, initial)
            keys = reached.keys
        if self.known.final is None:
            return self._everywhere(asked, len(self._layers), keys, changed, first, initial)
        return self._read_changes(asked, keys, changed)

    def _changes(self, number: int, reached: Reached, changed: Tensor, at: Ints, initial: Tensor) -> Tensor:
        """How far the next states (H, d) of those reached are from the background.

        changed: (T, d), the same of those that spoke. at: where the questions' own entities stand among the reached.
        """
        import torch

        layer = self._layers[number]
        entity = torch.from_numpy(reached.keys % self.graph.entities)
        following = torch.empty(len(entity), changed.shape[1])
        for begin in range(0, len(entity), ROWS):
            end = min(begin + ROWS, len(entity))
            rows = entity[begin:end]
            kinds = self.known.kinds[number]
            total = hear(reached.indptr[begin : end + 1], reached.source, reached.relation, changed, kinds)
            low, high = np.searchsorted(at, (begin, end))
            total[torch.from_numpy(at[low:high] - begin)] += initial[low:high]
            mixed = self.known.mixed[number][rows].float()
            mixed += self._product(total, layer.of_total)
            low, high = np.searchsorted(reached.spoke, (begin, end))
            where = torch.from_numpy(reached.spoke[low:high] - begin)
            mixed[where] += self._product(changed[low:high], layer.of_state)
            block = rectified(mixed, layer)
            block += self.known.states[number][rows]
            block -= self.known.states[number + 1][rows]
            block[where] += changed[low:high]
            following[begin:end] = block
        return following

    def _everywhere(
        self, asked: Tensor, number: int, keys: Ints, changed: Tensor, first: Ints, initial: Tensor
    ) -> Floats:
        """The scores when from layer `number` on every entity is computed, one question at a time."""
        count = self.graph.entities
        scores = np.empty((len(asked), count), dtype=np.float32)
        for row in range(len(asked)):
            low, high = np.searchsorted(keys, (row * count, (row + 1) * count))
            state = self.known.states[number].float().contiguous()
            if state.untyped_storage().data_ptr() == self.known.states[number].untyped_storage().data_ptr():
                state = state.clone()
            state[keys[low:high] - row * count] += changed[low:high]
            low, high = np.searchsorted(first, (row * count, (row + 1) * count))
            scores[row] = self._rest(asked[row], number, state, first[low:high] - row * count, initial[low:high])
        return scores

    def _rest(self, asked: Tensor, number: int, state: Tensor, first: Ints, initial: Tensor) -> Floats:
        import torch

        following = torch.empty_like(state)
        for later in range(number, len(self._layers)):
            layer = self._layers[later]
            for begin in range(0, len(state), ROWS):
                end = min(begin + ROWS, len(state))
                kinds = self.known.kinds[later]
                indptr = self.graph.indptr[begin : end + 1]
                total = hear(indptr, self.graph.source, self.graph.relation, state, kinds)
                low, high = np.searchsorted(first, (begin, end))
                total[torch.from_numpy(first[low:high] - begin)] += initial[low:high]
                mixed = self._product(total, layer.of_total).add_(layer.bias)
                mixed += self._product(state[begin:end], layer.of_state)
                torch.add(rectified(mixed, layer), state[begin:end], out=following[begin:end])
            state, following = following, state
        part = asked @ self._score_question + self.weights["entity_model.mlp.0.bias"]
        return self._read(state, part)

    def _read(self, state: Tensor, part: Tensor) -> Floats:
        """Logits (rows,) of `state` (rows, d), where `part` (2d,) is the question's share of the hidden layer."""
        scores = np.empty(len(state), dtype=np.float32)
        for begin in range(0, len(state), ROWS):
            hidden = self._product(state[begin : begin + ROWS], self._score_state).add_(part).relu_()
            scores[begin : begin + ROWS] = (hidden @ self._score_out).numpy()
        return scores + float(self.weights["entity_model.mlp.2.bias"])

    def _read_changes(self, asked: Tensor, keys: Ints, changed: Tensor) -> Floats:
        """Logits (B, N) of changes (H, d) on top of the background."""
        import torch

        final, count = self.known.final, self.graph.entities
        assert final is not None
        parts = asked @ self._score_question + self.weights["entity_model.mlp.0.bias"]  # (B, 2d)
        scores = np.empty((len(asked), count), dtype=np.float32)
        for begin in range(0, count, ROWS):
            block = final[begin : begin + ROWS].float()
            for row, part in enumerate(parts):
                scores[row, begin : begin + ROWS] = ((block + part).relu_() @ self._score_out).numpy()
        for begin in range(0, len(keys), ROWS):
            some = keys[begin : begin + ROWS]
            rows = torch.from_numpy(some % count)
            hidden = self._product(changed[begin : begin + ROWS], self._score_state)
            hidden += final[rows]
            hidden += parts[torch.from_numpy(some // count)]
            scores.reshape(-1)[some] = (hidden.relu_() @ self._score_out).numpy()
        return scores + float(self.weights["entity_model.mlp.2.bias"])

    def _product(self, left: Tensor, right: Tensor) -> Tensor:
        """left @ right in the products' precision, as float32."""
        return (left.to(self._kind) @ right).float()
