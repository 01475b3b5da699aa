"""The network's scores on a device of torch, CUDA above all: every entity at every layer, several questions at once.

A graphics processor computes all entities sooner than the host finds out which ones a question reaches, as
ras_agent.tools.gfm.cpu does. So nothing is left out here after the first layer, where few entities are targets
(ras_agent.tools.gfm.reach). The relation states are computed once; weights, graph and relation states stay on the
device. [state; total] is never concatenated in float32, and sums, products and norms are computed for a block of
entities at a time. An entity's states of all questions are adjacent, since they share the relation states that are read
for each message.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import SettingsError
from ras_agent.tools.gfm.cached_rows import CachedRows
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart, OutgoingMessages
from ras_agent.tools.gfm.network import (
    RELATIONS_AT_ONCE,
    layer_count,
    project_relations_in_blocks,
    relation_inputs,
)
from ras_agent.tools.gfm.products import MatrixProduct, ProductPrecision, adds_up_in_float32, check_products
from ras_agent.tools.gfm.reach import first_messages
from ras_agent.tools.gfm.segments import TargetBlock, plan_segments, propagate_block

if TYPE_CHECKING:
    from torch import Tensor, device, dtype

StatePrecision = Literal["float32", "float16", "bfloat16"]
BATCH_BYTES = 4_000_000_000  # for the states of the questions that are computed together
ROWS_PER_BLOCK = 32_768  # entities times questions: steps long enough that the host is ahead of the device
LONGEST_FOR_TORCH = 32  # messages a segment: each place in it is a step of its own
LONGEST_FOR_TRITON = 128


class DeviceMessages:
    """A graph's messages on a device, in blocks of target entities."""

    def __init__(self, graph: GFMGraph, on: device, rows: int, use_triton: bool) -> None:
        """Copy the messages of `graph` to the device `on` and plan their sums in blocks of `rows` target entities.

        Raises SettingsError for a graph of more messages than an int32 can count.
        """
        import torch

        if graph.messages >= 2**31:
            raise SettingsError(f"a graph of {graph.messages} messages is too large for a device: choose device='cpu'")
        self._use_triton = use_triton
        self.longest = LONGEST_FOR_TRITON if use_triton else LONGEST_FOR_TORCH
        self._source, self._relation = (
            torch.from_numpy(array).to(on, torch.int32) for array in (graph.source, graph.relation)
        )
        ranges = [(low, min(low + rows, graph.entities)) for low in range(0, graph.entities, rows)]
        plans = [plan_segments(graph.indptr, low, high, self.longest) for low, high in ranges]
        self.blocks = tuple(TargetBlock.of(plan, on) for plan in plans)

    @property
    def bytes(self) -> int:
        """Return the memory of the graph on the device, in bytes."""
        levels = [level for block in self.blocks for level in block.levels]
        tensors = [array for level in levels for array in (level.begin, level.end, level.target)]
        size: int = sum(array.nbytes for array in (self._source, self._relation, *tensors))
        return size

    def propagate(self, block: TargetBlock, states: Tensor, relation_states: Tensor) -> Tensor:
        """Return (high - low, B, d), float32: the sums of the messages to a block's entities.

        states: (N, B, d), of all entities. relation_states: (R, d). The result may be written to.
        """
        return self.propagate_other(block, states, relation_states, self._source, self._relation)

    def propagate_other(
        self, block: TargetBlock, states: Tensor, relation_states: Tensor, source: Tensor, relation: Tensor
    ) -> Tensor:
        """Return the sums (block's rows, B, d), float32, of messages that are not the graph's own but given here.

        source, relation: (messages,), int32, the rows of `states` and `relation_states` that a message multiplies.
        """
        import torch

        total = torch.empty(block.rows, *states.shape[1:], device=states.device)
        if self._use_triton:
            from ras_agent.tools.gfm import triton_kernels

            triton_kernels.propagate_block(block, states, relation_states, source, relation, total)
        else:
            propagate_block(block, states, relation_states, source, relation, total)
        return total[: block.high - block.low]


@dataclass(frozen=True, slots=True)
class _DeviceLayer:
    linear: MatrixProduct
    bias: Tensor
    norm_weight: Tensor
    norm_bias: Tensor


class DeviceGFM:
    """Scorer of one graph on a device. Calls may come from several threads; they take turns."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        graph: GFMGraph,
        on: str | device,
        *,
        states: StatePrecision = "float32",
        products: ProductPrecision | None = None,
        batch_bytes: int = BATCH_BYTES,
        rows: int = ROWS_PER_BLOCK,
    ) -> None:
        """Copy weights and graph to the device and compute the relation states.

        on: a device of torch, "cuda", "cuda:1", "cpu", "mps".
        states: the precision in which states and relation states are stored; sums and norms are always float32.
        products: see ras_agent.tools.gfm.products. By default "split" where the device has tensor cores for bfloat16
            (NVIDIA's since 8.0, Ampere), else "float32", which uses TF32 where torch is set to.
        batch_bytes: for the states of questions that are computed together; one question is computed in any case.
        rows: entities times questions of a block; a block takes about 40 * rows * width bytes.
        Raises SettingsError for an unknown precision; torch's OutOfMemoryError.
        """
        import torch

        if states not in get_args(StatePrecision):
            raise SettingsError(f"states {states!r}: known are {', '.join(get_args(StatePrecision))}")
        self.device, self.graph = torch.device(on), graph
        self.products: ProductPrecision = products or _best_products(self.device)
        check_products(self.products)
        self._dtype = getattr(torch, states)
        self._batch_bytes, self._rows, self._turn = batch_bytes, max(1, rows), Lock()
        self.uses_triton = kernels_work(self.device, self._dtype)  # or torch's operations
        # outside of inference mode: explaining takes gradients through them
        self.weights = {name: tensor.detach().to(self.device, torch.float32) for name, tensor in weights.items()}
        with torch.inference_mode():
            self._layers = [self._layer(number) for number in range(layer_count(weights))]
            of_state, of_question = self.weights["entity_model.mlp.0.weight"].chunk(2, dim=1)
            self._score_state = MatrixProduct([of_state.t()], self.products, use_triton=self.uses_triton)
            self._score_question = of_question.t().contiguous()
            self.relation_states = self._relation_states()
            self._outgoing = OutgoingMessages.of(graph)
            self._messages = {1: DeviceMessages(graph, self.device, self._rows, self.uses_triton)}

    @property
    def bytes(self) -> int:
        """Return the memory on the device that lasts: weights, their parts for products, relation states, graph."""
        matrices = [self._score_state, *(layer.linear for layer in self._layers)]
        size: int = sum(tensor.nbytes for tensor in self.weights.values()) + sum(part.bytes for part in matrices)
        graph = sum(part.bytes for part in self._messages.values())
        return size + sum(part.values.nbytes for part in self.relation_states) + self._score_question.nbytes + graph

    def scores(self, questions: Floats, starts: Sequence[GFMStart]) -> Floats:
        """Return logits (B, N), float32, for sentence vectors (B, text width) and each question's entities."""
        import torch
        from torch.nn.functional import linear

        scores = np.empty((len(starts), self.graph.entities), dtype=np.float32)
        # two copies of the states: those of one layer and of the next
        one_question = 2 * self.graph.entities * self._score_question.shape[0] * self._dtype.itemsize
        batch = max(1, self._batch_bytes // max(1, one_question))
        with self._turn, torch.inference_mode():
            vectors = torch.from_numpy(np.ascontiguousarray(questions, dtype=np.float32)).to(self.device)
            queries = linear(vectors, self.weights["question_mlp.weight"], self.weights["question_mlp.bias"])  # (B, d)
            for begin in range(0, len(starts), batch):
                some = slice(begin, begin + batch)
                scores[some] = self._batch_scores(queries[some], starts[some])
        return scores

    def _batch_scores(self, queries: Tensor, starts: Sequence[GFMStart]) -> Floats:
        """Return the scores (B, N) of questions' states (B, d), computed together."""
        import torch

        batch, width, count = *queries.shape, self.graph.entities
        messages = self._messages_for(batch)
        start_rows, initial = self._initial(queries, starts)
        at = torch.from_numpy(start_rows).to(self.device)
        # entity first: row e * B + b is entity e's state for question b
        states = self._first_layer(start_rows, initial, batch).view(count, batch, width)
        following = torch.empty_like(states)
        for layer, relation_states in zip(self._layers[1:], self.relation_states[1:], strict=True):
            for block in messages.blocks:
                total = messages.propagate(block, states, relation_states.values).view(-1, width)
                low, high = np.searchsorted(start_rows, (block.low * batch, block.high * batch))
                if low < high:  # the initial states enter every sum; no row twice
                    total[at[low:high] - block.low * batch] += initial[low:high]
                current, next_states = (
                    all_states[block.low : block.high].view(-1, width) for all_states in (states, following)
                )
                self._update(layer, layer.linear(current, total), current, next_states)
            states, following = following, states
        scores = torch.empty(count, batch, device=self.device)
        parts = queries @ self._score_question + self.weights["entity_model.mlp.0.bias"]  # (B, 2d)
        output, last_bias = self.weights["entity_model.mlp.2.weight"][0], self.weights["entity_model.mlp.2.bias"]
        for block in messages.blocks:
            hidden = self._score_state(states[block.low : block.high].view(-1, width)).view(-1, *parts.shape)
            scores[block.low : block.high] = hidden.add_(parts).relu_() @ output
        logits: Floats = (scores.t() + last_bias).cpu().numpy()
        return logits

    def _first_layer(self, start_rows: Ints, initial: Tensor, batch: int) -> Tensor:
        """Return the states (N * B, d) after the first layer.

        Only the targets of the questions' own entities, and these themselves, differ from all others.

        start_rows: (K,), the rows of the questions' entities. initial: (K, d), their states.
        """
        import torch

        layer, relation_states, width = self._layers[0], self.relation_states[0].values, initial.shape[1]
        first, start_states = first_messages(self._outgoing, start_rows, batch), initial.to(self._dtype)
        source, relation = (
            torch.from_numpy(array).to(self.device, torch.int32) for array in (first.start, first.relation)
        )
        zeros = torch.zeros(1, width, dtype=self._dtype, device=self.device)
        alike = torch.empty_like(zeros)
        self._update(layer, torch.zeros(1, width, device=self.device), zeros, alike)
        states = alike.expand(self.graph.entities * batch, width).contiguous()
        for low in range(0, len(first.rows), self._rows):
            rows = first.rows[low : low + self._rows]
            plan = plan_segments(first.indptr, low, low + len(rows), self._messages[1].longest)
            block = TargetBlock.of(plan, self.device)
            total = self._messages[1].propagate_other(block, start_states[:, None], relation_states, source, relation)
            total = total.view(-1, width)
            begin, end = np.searchsorted(start_rows, (rows[0], rows[-1] + 1))
            current = torch.zeros(len(rows), width, dtype=self._dtype, device=self.device)
            place = torch.from_numpy(np.searchsorted(rows, start_rows[begin:end])).to(self.device)
            current[place] = start_states[begin:end]
            total[place] += initial[begin:end]
            into = torch.empty_like(current)
            self._update(layer, layer.linear(current, total), current, into)
            states[torch.from_numpy(rows).to(self.device)] = into
        return states

    def _update(self, layer: _DeviceLayer, mixed: Tensor, states: Tensor, into: Tensor) -> None:
        """Write the next states of `states` (rows, d) to `into` (rows, d).

        mixed: (rows, d), the linear map's output without its bias.
        """
        from torch.nn.functional import layer_norm

        if self.uses_triton:
            from ras_agent.tools.gfm import triton_kernels

            triton_kernels.update(mixed, layer.bias, layer.norm_weight, layer.norm_bias, states, into)
            return
        norm = layer_norm(mixed.add_(layer.bias), mixed.shape[-1:], layer.norm_weight, layer.norm_bias)
        into.copy_(norm.relu_().add_(states))

    def _initial(self, queries: Tensor, starts: Sequence[GFMStart]) -> tuple[Ints, Tensor]:
        """Return the rows (K,) of the questions' entities among all states, ascending, and their states (K, d)."""
        import torch

        batch = len(starts)
        question = np.repeat(np.arange(batch), [len(start.entities) for start in starts])
        entities = np.concatenate([np.asarray(start.entities, dtype=np.int64) for start in starts])
        weights = np.concatenate([np.asarray(start.weights, dtype=np.float32) for start in starts])
        rows: Ints = entities * batch + question
        order = np.argsort(rows, kind="stable")
        share = torch.from_numpy(weights[order]).to(self.device)
        return rows[order], share[:, None] * queries[torch.from_numpy(question[order]).to(self.device)]

    def _messages_for(self, batch: int) -> DeviceMessages:
        """Return the graph in blocks for a batch: the more questions, the fewer entities a block."""
        rows = 1 << max(0, (batch - 1).bit_length())  # a power of two, so that few sizes of blocks are stored
        if rows not in self._messages:
            entities = max(1, self._rows // rows)
            self._messages[rows] = DeviceMessages(self.graph, self.device, entities, self.uses_triton)
        return self._messages[rows]

    def _layer(self, number: int) -> _DeviceLayer:
        at = f"entity_model.layers.{number}"
        halves = [half.t() for half in self.weights[f"{at}.linear.weight"].chunk(2, dim=1)]
        others = (self.weights[f"{at}.{name}"] for name in ("linear.bias", "layer_norm.weight", "layer_norm.bias"))
        return _DeviceLayer(MatrixProduct(halves, self.products, use_triton=self.uses_triton), *others)

    def _relation_states(self) -> tuple[CachedRows, ...]:
        """Compute every layer's relation states (R, d) from the sentence vectors, in the states' precision."""
        import torch

        vectors = torch.split(torch.from_numpy(self.graph.vectors), RELATIONS_AT_ONCE)
        inputs = torch.cat([relation_inputs(self.weights, block.to(self.device)) for block in vectors])
        ones = torch.ones(1, device=self.device)
        layers = (
            project_relations_in_blocks(self.weights, number, inputs).to(self._dtype)
            for number in range(len(self._layers))
        )
        return tuple(CachedRows(states, ones) for states in layers)


def bytes_needed(weights: Mapping[str, Tensor], graph: GFMGraph) -> int:
    """Estimate the memory that one question takes on a device in float32, with all that lasts."""
    width, layers = len(weights["question_mlp.bias"]), layer_count(weights)
    lasting = layers * graph.relations * width + 2 * sum(tensor.numel() for tensor in weights.values())
    numbers = lasting + 2 * graph.entities * width + 10 * ROWS_PER_BLOCK * width
    return int(4 * numbers + 24 * (graph.messages + graph.entities))


def _best_products(on: device) -> ProductPrecision:
    import torch

    if on.type != "cuda" or torch.cuda.get_device_capability(on) < (8, 0):
        return "float32"
    return "split" if adds_up_in_float32(on) else "float32"


def kernels_work(on: device, states: dtype) -> bool:
    """Tell whether the Triton kernels can be used on a device, on states of a dtype.

    Triton comes with CUDA builds of torch on Linux.
    """
    return on.type == "cuda" and find_spec("triton") is not None and try_kernels(on, states)


@lru_cache(maxsize=16)
def try_kernels(on: device, states_dtype: dtype) -> bool:
    """Tell whether the kernels compile, run, and give what torch's operations give. Warns, once, where they do not."""
    import torch
    from torch.nn.functional import layer_norm

    vectors = np.zeros((2, 1), dtype=np.float32)
    graph = GFMGraph.from_edges(4, np.array([[0, 0, 1], [0, 1, 2], [2, 0, 0]]), vectors, vectors)
    block = TargetBlock.of(plan_segments(graph.indptr, 0, 4, 2), on)
    source, relation = (torch.from_numpy(array).to(on, torch.int32) for array in (graph.source, graph.relation))
    states, factors = (torch.linspace(-1, 1, 4 * size, device=on).to(states_dtype).view(4, -1, 8) for size in (16, 8))
    mixed, some = torch.linspace(-2, 5, 64, device=on).view(8, 8), torch.linspace(-1, 2, 8, device=on)
    expected, sums = (torch.zeros(block.rows, 2, 8, device=on) for _ in range(2))
    propagate_block(block, states, factors[:, 0], source, relation, expected)
    rows, parts = states.view(8, 8), torch.zeros(8, 24, device=on, dtype=torch.bfloat16)
    updated = (layer_norm(mixed + some, (8,), some, some).relu_() + rows).to(states_dtype)
    try:
        from ras_agent.tools.gfm import triton_kernels

        triton_kernels.propagate_block(block, states, factors[:, 0], source, relation, sums)
        following = torch.empty_like(updated)
        triton_kernels.update(mixed, some, some, some, rows, following)
        triton_kernels.split_rows(rows, parts)
        rounded, rest, again = parts.float().chunk(3, dim=1)
        same = torch.equal(rounded, again) and torch.allclose(rounded + rest, rows.float(), atol=1e-4)
        same &= torch.allclose(sums, expected, atol=1e-4)
        same &= torch.allclose(following, updated, atol=max(1e-4, 16 * torch.finfo(states_dtype).eps))
        if same:
            return True
        reason = "their results are wrong"
    except Exception as error:  # whatever a compiler, a driver or a version that does not fit raises
        reason = f"{type(error).__name__}: {error}"
    warnings.warn(
        f"GFM on {on}: the Triton kernels are not used, but torch's operations, which are slower ({reason}). "
        "Triton may need a C compiler at its first launch (gcc, or CC in the environment).",
        RuntimeWarning,
        stacklevel=2,
    )
    return False
