"""The network's scores without computing what is known already: exact, and quick where a question reaches little.

A question changes the state of an entity at layer l only if one of the question's entities is within l messages of it.
All others keep their background (ras_agent.tools.encode.gfm.index_states). So each layer computes, for the entities
that are reached, how far the question moves them from the background; the linear map of [state; total] is split into
its two halves, so that nothing is concatenated and the half of the state is needed only where it changed.
Where the background was not kept, every entity is computed, in blocks.
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
from ras_agent.tools.encode.gfm.reach import Outgoing, reach
from ras_agent.tools.encode.gfm.read import read_all, read_changed
from ras_agent.tools.encode.gfm.respond import respond

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FastGFM", "Start"]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
MOST = 1_500_000_000


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
        half_cache: bool | None = None,
        half_products: bool = False,
    ) -> None:
        """Computes the relation states and the background once; as long as about one question's plain pass.

        most: bytes that these may take together; relation states come first, then as many layers of background as fit.
        half_cache: keep them as 16-bit integers, in half the memory; probabilities stay within 1e-4. By default where
            float32 would take more than `most`.
        half_products: multiply matrices in bfloat16, which changes scores in about the third digit.
        """
        import torch

        self.graph, self.weights = graph, weights
        self._outgoing, self._everyone = Outgoing.of(graph), np.arange(graph.entities)
        with torch.inference_mode():
            self.known: IndexStates = prepare(weights, graph, most, half_cache)
            self._kind = torch.bfloat16 if half_products else torch.float32
            self._layers = layers_of(weights, self._kind)
            of_state, of_question = weights["entity_model.mlp.0.weight"].chunk(2, dim=1)
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
            parts = asked @ self._score_question + self.weights["entity_model.mlp.0.bias"]  # (B, 2d)
            if self.known.final is None:
                scores = np.empty((len(asked), self.graph.entities), dtype=np.float32)
            else:
                scores = read_all(self.known.final, parts, self._score_out)
            for row, start in enumerate(starts):
                self._spread(asked[row], parts[row], start, scores[row])
            return scores + float(self.weights["entity_model.mlp.2.bias"])

    def _spread(self, asked: Tensor, part: Tensor, start: Start, scores: Floats) -> None:
        """Write the logits, but for their bias, of the entities that a question reaches to `scores` (N,)."""
        import torch

        order = np.argsort(start.entities, kind="stable")
        first = np.asarray(start.entities, dtype=np.int64)[order]
        initial = torch.from_numpy(np.asarray(start.weights, dtype=np.float32)[order])[:, None] * asked
        keys, changed = first, initial
        for number in range(len(self.known.mixed)):
            reached = reach(self._outgoing, keys)
            changed = self._changes(number, reached, keys, changed, first, initial)
            keys = reached
        if self.known.final is None:
            scores[:] = self._everywhere(part, keys, changed, first, initial)
            return
        for begin in range(0, len(keys), ROWS):
            some = slice(begin, begin + ROWS)
            hidden = self._product(changed[some], self._score_state)
            scores[keys[some]] = read_changed(hidden, self.known.final, keys[some], part, self._score_out)

    def _changes(self, number: int, reached: Ints, keys: Ints, changed: Tensor, first: Ints, initial: Tensor) -> Tensor:
        """How far the next states (H, d) of those `reached` (H,) are from the background.

        changed: (T, d), the same of those that speak, `keys` (T,). first: (k,), the question's own entities.
        """
        import torch

        layer, kinds, background = self._layers[number], self.known.kinds[number], self.known.mixed[number]
        place = np.full(self.graph.entities, -1)
        place[keys] = np.arange(len(keys))
        rows = reached if len(background.values) > 1 else np.zeros(len(reached), dtype=np.int64)
        starting = np.searchsorted(reached, first)
        following = torch.empty(len(reached), changed.shape[1])
        total, of_states = torch.empty(2, min(ROWS, len(reached)), changed.shape[1])
        for begin in range(0, len(reached), ROWS):
            end = min(begin + ROWS, len(reached))
            heard, block = total[: end - begin], following[begin:end]
            hear(self.graph, reached[begin:end], place, changed, kinds, heard)
            low, high = np.searchsorted(starting, (begin, end))
            heard[torch.from_numpy(starting[low:high] - begin)] += initial[low:high]
            self._product(heard, layer.of_total, block)
            low, high = np.searchsorted(keys, (reached[begin], reached[end - 1] + 1))
            own = self._product(changed[low:high], layer.of_state, of_states[: high - low])
            stands = place[reached[begin:end]] - low
            respond(block, own, changed[low:high], stands, background, rows[begin:end], layer.gain, layer.shift)
        return following

    def _everywhere(self, part: Tensor, keys: Ints, changed: Tensor, first: Ints, initial: Tensor) -> Floats:
        """The scores (N,), but for their bias, when every entity is computed after the layers that are kept."""
        import torch

        assert self.known.entering is not None
        state = self.known.entering.clone()
        state[torch.from_numpy(keys)] += changed
        following, total = torch.empty_like(state), torch.empty(min(ROWS, len(state)), state.shape[1])
        for later in range(len(self.known.mixed), len(self._layers)):
            layer = self._layers[later]
            for begin in range(0, len(state), ROWS):
                end = min(begin + ROWS, len(state))
                heard = total[: end - begin]
                hear(self.graph, self._everyone[begin:end], self._everyone, state, self.known.kinds[later], heard)
                low, high = np.searchsorted(first, (begin, end))
                heard[torch.from_numpy(first[low:high] - begin)] += initial[low:high]
                mixed = self._product(heard, layer.of_total).add_(layer.bias)
                mixed += self._product(state[begin:end], layer.of_state)
                torch.add(rectified(mixed, layer), state[begin:end], out=following[begin:end])
            state, following = following, state
        scores = np.empty(len(state), dtype=np.float32)
        for begin in range(0, len(state), ROWS):
            hidden = self._product(state[begin : begin + ROWS], self._score_state).add_(part).relu_()
            scores[begin : begin + ROWS] = (hidden @ self._score_out).numpy()
        return scores

    def _product(self, left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
        """left @ right in the products' precision, as float32."""
        import torch

        if self._kind == torch.float32:
            return torch.mm(left, right, out=out) if out is not None else left @ right
        found = left.to(self._kind) @ right
        return found.float() if out is None else out.copy_(found)
