"""The network's scores without computing what is known already: within 1e-4, and quick where a question moves little.

A question changes the state of an entity at layer l only if one of the question's entities is within l messages of it,
and most of those by less than rounding would: a hub hears thousands of others beside. All others keep their background
(ras_agent.tools.gfm.cache). So each layer computes, for the entities that are reached
(ras_agent.tools.gfm.reach), how far the question moves them from the background; the linear map of
[state; total] is split into its two halves, so that nothing is concatenated and the half of the state is needed only
where it changed. Where the background was not kept, every entity is computed, in blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.tools.gfm.cache import IndexStates, layers_of, prepare, rectified
from ras_agent.tools.gfm.cpu_kernels import hear
from ras_agent.tools.gfm.graph import GFMGraph, Outgoing
from ras_agent.tools.gfm.reach import bounds, reach
from ras_agent.tools.gfm.read import read_all, read_changed
from ras_agent.tools.gfm.respond import respond

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FastGFM", "Start", "Step"]

MOST = 1_500_000_000
NEGLIGIBLE = 3e-6
NUMBERS = 1 << 20  # numbers at a time: a block of states is 4 MB, and stays in the cache


@dataclass(frozen=True, slots=True)
class Start:
    """A question's entities (k,), each once, and how much each belongs to the question (k,): eq. 6's H0 / q."""

    entities: Ints
    weights: Floats


@dataclass(frozen=True, slots=True)
class Step:
    """What one layer computes of a question.

    speakers: (T,), whose changed states are heard. reached: (H,), whose next states are computed. keys: (C,), those of
    them that change by more than a negligible length, by changes: (C, d). All ascending.
    """

    speakers: Ints
    reached: Ints
    keys: Ints
    changes: Tensor


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
        negligible: float = NEGLIGIBLE,
    ) -> None:
        """Computes the relation states and the background once; as long as about one question's plain pass.

        most: bytes that these may take together; relation states come first, then as many layers of background as fit.
        half_cache: keep them as 16-bit integers, in half the memory; probabilities stay within 1e-4. By default where
            float32 would take more than `most`.
        half_products: multiply matrices in bfloat16, which changes scores in about the third digit.
        negligible: changes of a state whose root mean square is below this are left out; states themselves are of the
            order of 1. What is left out can add up where many are heard, so this bounds no score; docs/gfm-speed.md
            has measured differences. 0 leaves nothing out.
        """
        import torch

        self.graph, self.weights = graph, weights
        self._outgoing, self._everyone = Outgoing.of(graph), np.arange(graph.entities)
        with torch.inference_mode():
            self.known: IndexStates = prepare(weights, graph, most, half_cache)
            self._kind = torch.bfloat16 if half_products else torch.float32
            self._layers = layers_of(weights, self._kind)
            self._bounds = bounds(self.known, self._layers)
            width = self._layers[0].bias.shape[0]
            self._negligible = negligible * width**0.5
            self._rows = max(1, NUMBERS // width)
            of_state, of_question = weights["entity_model.mlp.0.weight"].chunk(2, dim=1)
            self._score_state = of_state.t().contiguous().to(self._kind)
            self._score_question = of_question.t().contiguous()
            self._score_out = weights["entity_model.mlp.2.weight"][0].contiguous()

    def scores(self, questions: Floats, starts: Sequence[Start]) -> Floats:
        """Logits (B, N), float32, for sentence vectors (B, text width) and the entities of each question."""
        import torch

        with torch.inference_mode():
            asked = self._asked(questions)
            parts = asked @ self._score_question + self.weights["entity_model.mlp.0.bias"]  # (B, 2d)
            if self.known.final is None:
                scores = np.empty((len(asked), self.graph.entities), dtype=np.float32)
            else:
                scores = read_all(self.known.final, parts, self._score_out)
            for row, start in enumerate(starts):
                self._read(asked[row], parts[row], start, scores[row])
            return scores + float(self.weights["entity_model.mlp.2.bias"])

    def steps(self, question: Floats, start: Start) -> Iterator[Step]:
        """What each layer whose background is kept computes for one question, sentence vector (text width,)."""
        import torch

        with torch.inference_mode():
            steps = self._spread(self._asked(question[None])[0], start)
        while True:
            with torch.inference_mode():  # not while the caller has its turn
                step = next(steps, None)
            if step is None:
                return
            yield step

    def _asked(self, questions: Floats) -> Tensor:
        """(B, d), what the network makes of the questions."""
        import torch
        from torch.nn.functional import linear

        given = torch.from_numpy(np.ascontiguousarray(questions, dtype=np.float32))
        return linear(given, self.weights["question_mlp.weight"], self.weights["question_mlp.bias"])

    def _initial(self, asked: Tensor, start: Start) -> tuple[Ints, Tensor]:
        """The question's entities (k,), ascending, and what each is told (k, d): eq. 6."""
        import torch

        order = np.argsort(start.entities, kind="stable")
        weights = torch.from_numpy(np.asarray(start.weights, dtype=np.float32)[order])
        return np.asarray(start.entities, dtype=np.int64)[order], weights[:, None] * asked

    def _spread(self, asked: Tensor, start: Start) -> Iterator[Step]:
        import torch

        keys, changed = first, initial = self._initial(asked, start)
        for number, layer in enumerate(self._bounds):
            lengths = torch.linalg.vector_norm(changed, dim=1)
            reached = reach(self._outgoing, keys, lengths, first, layer, self._negligible)
            step = Step(keys, reached, *self._changes(number, reached, keys, changed, first, initial))
            yield step
            keys, changed = step.keys, step.changes

    def _read(self, asked: Tensor, part: Tensor, start: Start, scores: Floats) -> None:
        """Write the logits, but for their bias, of the entities that a question moves to `scores` (N,)."""
        keys, changed = first, initial = self._initial(asked, start)
        for step in self._spread(asked, start):
            keys, changed = step.keys, step.changes
        if self.known.final is None:
            scores[:] = self._everywhere(part, keys, changed, first, initial)
            return
        for begin in range(0, len(keys), self._rows):
            some = slice(begin, begin + self._rows)
            hidden = self._product(changed[some], self._score_state)
            scores[keys[some]] = read_changed(hidden, self.known.final, keys[some], part, self._score_out)

    def _changes(
        self, number: int, reached: Ints, keys: Ints, changed: Tensor, first: Ints, initial: Tensor
    ) -> tuple[Ints, Tensor]:
        """Which of those `reached` (H,) change by more than a negligible length, and how far (C, d) their next states
        are from the background.

        changed: (T, d), the same of those that speak, `keys` (T,). first: (k,), the question's own entities.
        """
        import torch

        layer, kinds, background = self._layers[number], self.known.kinds[number], self.known.mixed[number]
        place = np.full(self.graph.entities, -1)
        place[keys] = np.arange(len(keys))
        rows = reached if len(background.values) > 1 else np.zeros(len(reached), dtype=np.int64)
        starting = np.searchsorted(reached, first)
        following = torch.empty(len(reached), changed.shape[1])
        total, mixed, of_states = torch.empty(3, min(self._rows, len(reached)), changed.shape[1])
        remaining, count = [], 0
        for begin in range(0, len(reached), self._rows):
            end = min(begin + self._rows, len(reached))
            heard, block = total[: end - begin], mixed[: end - begin]
            hear(self.graph, reached[begin:end], place, changed, kinds, heard)
            low, high = np.searchsorted(starting, (begin, end))
            heard[torch.from_numpy(starting[low:high] - begin)] += initial[low:high]
            self._product(heard, layer.of_total, block)
            low, high = np.searchsorted(keys, (reached[begin], reached[end - 1] + 1))
            own = self._product(changed[low:high], layer.of_state, of_states[: high - low])
            stands = place[reached[begin:end]] - low
            respond(block, own, changed[low:high], stands, background, rows[begin:end], layer.gain, layer.shift)
            moved = ~(torch.linalg.vector_norm(block, dim=1) <= self._negligible)
            left = moved.nonzero()[:, 0]
            torch.index_select(block, 0, left, out=following[count : count + len(left)])
            remaining.append(reached[begin:end][moved.numpy()])
            count += len(left)
        return np.concatenate(remaining) if remaining else reached, following[:count]

    def _everywhere(self, part: Tensor, keys: Ints, changed: Tensor, first: Ints, initial: Tensor) -> Floats:
        """The scores (N,), but for their bias, when every entity is computed after the layers that are kept."""
        import torch

        assert self.known.entering is not None
        state = self.known.entering.clone()
        state[torch.from_numpy(keys)] += changed
        following, total = torch.empty_like(state), torch.empty(min(self._rows, len(state)), state.shape[1])
        for later in range(len(self.known.mixed), len(self._layers)):
            layer = self._layers[later]
            for begin in range(0, len(state), self._rows):
                end = min(begin + self._rows, len(state))
                heard = total[: end - begin]
                hear(self.graph, self._everyone[begin:end], self._everyone, state, self.known.kinds[later], heard)
                low, high = np.searchsorted(first, (begin, end))
                heard[torch.from_numpy(first[low:high] - begin)] += initial[low:high]
                mixed = self._product(heard, layer.of_total).add_(layer.bias)
                mixed += self._product(state[begin:end], layer.of_state)
                torch.add(rectified(mixed, layer), state[begin:end], out=following[begin:end])
            state, following = following, state
        scores = np.empty(len(state), dtype=np.float32)
        for begin in range(0, len(state), self._rows):
            hidden = self._product(state[begin : begin + self._rows], self._score_state).add_(part).relu_()
            scores[begin : begin + self._rows] = (hidden @ self._score_out).numpy()
        return scores

    def _product(self, left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
        """left @ right in the products' precision, as float32."""
        import torch

        if self._kind == torch.float32:
            return torch.mm(left, right, out=out) if out is not None else left @ right
        found = left.to(self._kind) @ right
        return found.float() if out is None else out.copy_(found)
