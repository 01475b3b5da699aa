"""The network's scores on a device of torch: every entity at every layer, for several questions at once.

A graphics processor computes all entities sooner than the host finds out which ones a question reaches, which is what
ras_agent.tools.gfm.cpu does. So nothing is left out here after the first layer, where few have been spoken to
(ras_agent.tools.gfm.first_layer). The relation states are computed once; weights, graph
and relation states stay on the device; [state; total] is never put together in float32; what is summed, multiplied and
normalised is a block of entities at a time. An entity's states of all questions lie together, since they share the
relation states that are read for each message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ras_agent.arrays import Floats, Ints
from ras_agent.errors import SettingsError
from ras_agent.tools.gfm.cached_rows import Kept
from ras_agent.tools.gfm.cpu import Start
from ras_agent.tools.gfm.device_hear import Hearing
from ras_agent.tools.gfm.first_layer import first_messages
from ras_agent.tools.gfm.graph import GFMGraph, Outgoing
from ras_agent.tools.gfm.network import RELATIONS, layer_count, relation_inputs, relation_states
from ras_agent.tools.gfm.products import Product, Products, adds_up_in_float32, check_products
from ras_agent.tools.gfm.segments import Listeners, plan
from ras_agent.tools.gfm.triton_works import kernels_work

if TYPE_CHECKING:
    from torch import Tensor, device

__all__ = ["AT_ONCE", "DeviceGFM", "Relations", "States", "bytes_needed"]

States = Literal["float32", "float16", "bfloat16"]
AT_ONCE = 4_000_000_000  # bytes of the states of the questions that are computed together
ROWS = 32_768  # entities a block, times questions: steps long enough that the host is ahead of the device


@dataclass(frozen=True, slots=True)
class Relations:
    """The relation states (R, d) of every layer, on the device, float32 or in the states' precision."""

    kinds: tuple[Kept, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class _Layer:
    mix: Product
    bias: Tensor
    gain: Tensor
    shift: Tensor


class DeviceGFM:
    """A network ready for one graph, on a device. Calls may come from several threads; they take turns."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        graph: GFMGraph,
        on: str | device,
        *,
        states: States = "float32",
        products: Products | None = None,
        at_once: int = AT_ONCE,
        rows: int = ROWS,
    ) -> None:
        """on: a device of torch, "cuda", "cuda:1", "cpu", "mps".

        states: in what precision states and relation states are kept; sums and norms are float32 always.
        products: see ras_agent.tools.gfm.products. By default "split" where the device has tensor cores for
            bfloat16 (NVIDIA's since 8.0, Ampere), else "float32", which uses TF32 where torch was told to.
        at_once: bytes that the states of questions computed together may take; one question is computed in any case.
        rows: entities times questions of a block; a block takes about 40 * rows * width bytes.
        Raises SettingsError for an unknown precision; torch's OutOfMemoryError.
        """
        import torch

        if states not in get_args(States):
            raise SettingsError(f"states {states!r}: known are {', '.join(get_args(States))}")
        self.device, self.graph = torch.device(on), graph
        self.products: Products = products or _products_for(self.device)
        check_products(self.products)
        self._kind = getattr(torch, states)
        self._at_once, self._rows, self._turn = at_once, max(1, rows), Lock()
        self.compiled = kernels_work(self.device, self._kind)  # or torch's own operations
        # outside of inference mode: explaining takes gradients through them
        self.weights = {name: tensor.detach().to(self.device, torch.float32) for name, tensor in weights.items()}
        with torch.inference_mode():
            self._layers = [self._layer(number) for number in range(layer_count(weights))]
            of_state, of_question = self.weights["entity_model.mlp.0.weight"].chunk(2, dim=1)
            self._read = Product([of_state.t()], self.products, compiled=self.compiled)
            self._of_question = of_question.t().contiguous()
            kinds = self._relations()
            self.known = Relations(kinds, sum(kind.values.nbytes for kind in kinds))
            self._outgoing = Outgoing.of(graph)
            self._hearing = {1: Hearing(graph, self.device, self._rows, self.compiled)}

    @property
    def bytes(self) -> int:
        """Memory on the device that lasts: weights, their parts for products, relation states, graph."""
        parts = [self._read, *(layer.mix for layer in self._layers)]
        size: int = sum(tensor.nbytes for tensor in self.weights.values()) + sum(part.bytes for part in parts)
        return size + self.known.bytes + self._of_question.nbytes + sum(one.bytes for one in self._hearing.values())

    def scores(self, questions: Floats, starts: Sequence[Start]) -> Floats:
        """Logits (B, N), float32, for sentence vectors (B, text width) and the entities of each question."""
        import torch
        from torch.nn.functional import linear

        found = np.empty((len(starts), self.graph.entities), dtype=np.float32)
        # two copies of the states: those of one layer and of the next
        question = 2 * self.graph.entities * self._of_question.shape[0] * self._kind.itemsize
        batch = max(1, self._at_once // max(1, question))
        with self._turn, torch.inference_mode():
            given = torch.from_numpy(np.ascontiguousarray(questions, dtype=np.float32)).to(self.device)
            asked = linear(given, self.weights["question_mlp.weight"], self.weights["question_mlp.bias"])  # (B, d)
            for begin in range(0, len(starts), batch):
                some = slice(begin, begin + batch)
                found[some] = self._scored(asked[some], starts[some])
        return found

    def _scored(self, asked: Tensor, starts: Sequence[Start]) -> Floats:
        """(B, N) of questions (B, d) that are computed together."""
        import torch

        batch, width, count = *asked.shape, self.graph.entities
        hearing = self._hearing_of(batch)
        where, initial = self._initial(asked, starts)
        at = torch.from_numpy(where).to(self.device)
        # entity first: row e * B + b is entity e's state for question b
        states = self._first(where, initial, batch).view(count, batch, width)
        following = torch.empty_like(states)
        for layer, kinds in zip(self._layers[1:], self.known.kinds[1:], strict=True):
            for block in hearing.blocks:
                heard = hearing.hear(block, states, kinds.values).view(-1, width)
                low, high = np.searchsorted(where, (block.low * batch, block.high * batch))
                if low < high:  # the initial states enter every sum; no row twice
                    heard[at[low:high] - block.low * batch] += initial[low:high]
                own, into = (whole[block.low : block.high].view(-1, width) for whole in (states, following))
                self._respond(layer, layer.mix(own, heard), own, into)
            states, following = following, states
        scores = torch.empty(count, batch, device=self.device)
        parts = asked @ self._of_question + self.weights["entity_model.mlp.0.bias"]  # (B, 2d)
        out, last = self.weights["entity_model.mlp.2.weight"][0], self.weights["entity_model.mlp.2.bias"]
        for block in hearing.blocks:
            hidden = self._read(states[block.low : block.high].view(-1, width)).view(-1, *parts.shape)
            scores[block.low : block.high] = hidden.add_(parts).relu_() @ out
        found: Floats = (scores.t() + last).cpu().numpy()
        return found

    def _first(self, where: Ints, initial: Tensor, batch: int) -> Tensor:
        """The states (N * B, d) after the first layer, of the rows (K,) where the questions start and with what."""
        import torch

        layer, kinds, width = self._layers[0], self.known.kinds[0].values, initial.shape[1]
        said, given = first_messages(self._outgoing, where, batch), initial.to(self._kind)
        source, relation = (
            torch.from_numpy(array).to(self.device, torch.int32) for array in (said.speaker, said.relation)
        )
        nothing = torch.zeros(1, width, dtype=self._kind, device=self.device)
        alike = torch.empty_like(nothing)
        self._respond(layer, torch.zeros(1, width, device=self.device), nothing, alike)
        states = alike.expand(self.graph.entities * batch, width).contiguous()
        for low in range(0, len(said.rows), self._rows):
            rows = said.rows[low : low + self._rows]
            listeners = plan(said.indptr, low, low + len(rows), self._hearing[1].longest)
            block = Listeners.of(listeners, self.device)
            heard = self._hearing[1].add_up(block, given[:, None], kinds, source, relation).view(-1, width)
            begin, end = np.searchsorted(where, (rows[0], rows[-1] + 1))
            own = torch.zeros(len(rows), width, dtype=self._kind, device=self.device)
            place = torch.from_numpy(np.searchsorted(rows, where[begin:end])).to(self.device)
            own[place] = given[begin:end]
            heard[place] += initial[begin:end]
            into = torch.empty_like(own)
            self._respond(layer, layer.mix(own, heard), own, into)
            states[torch.from_numpy(rows).to(self.device)] = into
        return states

    def _respond(self, layer: _Layer, mixed: Tensor, own: Tensor, into: Tensor) -> None:
        """Write the next states (rows, d), of what the linear map gave without its bias, and the states."""
        from torch.nn.functional import layer_norm

        if self.compiled:
            from ras_agent.tools.gfm.triton_respond import respond

            respond(mixed, layer.bias, layer.gain, layer.shift, own, into)
            return
        norm = layer_norm(mixed.add_(layer.bias), mixed.shape[-1:], layer.gain, layer.shift)
        into.copy_(norm.relu_().add_(own))

    def _initial(self, asked: Tensor, starts: Sequence[Start]) -> tuple[Ints, Tensor]:
        """Rows (K,) of the states that the questions start from, ascending, and what they hold (K, d)."""
        import torch

        batch = len(starts)
        question = np.repeat(np.arange(batch), [len(start.entities) for start in starts])
        entities = np.concatenate([np.asarray(start.entities, dtype=np.int64) for start in starts])
        weights = np.concatenate([np.asarray(start.weights, dtype=np.float32) for start in starts])
        rows: Ints = entities * batch + question
        order = np.argsort(rows, kind="stable")
        share = torch.from_numpy(weights[order]).to(self.device)
        return rows[order], share[:, None] * asked[torch.from_numpy(question[order]).to(self.device)]

    def _hearing_of(self, batch: int) -> Hearing:
        """The graph in blocks for a batch: as many fewer entities a block as there are questions."""
        rows = 1 << max(0, (batch - 1).bit_length())  # a power of two, so that few sizes of blocks are kept
        if rows not in self._hearing:
            self._hearing[rows] = Hearing(self.graph, self.device, max(1, self._rows // rows), self.compiled)
        return self._hearing[rows]

    def _layer(self, number: int) -> _Layer:
        at = f"entity_model.layers.{number}"
        halves = [half.t() for half in self.weights[f"{at}.linear.weight"].chunk(2, dim=1)]
        others = (self.weights[f"{at}.{name}"] for name in ("linear.bias", "layer_norm.weight", "layer_norm.bias"))
        return _Layer(Product(halves, self.products, compiled=self.compiled), *others)

    def _relations(self) -> tuple[Kept, ...]:
        """Every layer's relation states, from the sentence vectors."""
        import torch

        vectors = torch.split(torch.from_numpy(self.graph.vectors), RELATIONS)
        inputs = torch.cat([relation_inputs(self.weights, block.to(self.device)) for block in vectors])
        numbers, one = range(len(self._layers)), torch.ones(1, device=self.device)
        return tuple(Kept(relation_states(self.weights, number, inputs).to(self._kind), one) for number in numbers)


def bytes_needed(weights: Mapping[str, Tensor], graph: GFMGraph) -> int:
    """About how much memory one question takes on a device in float32, with all that lasts."""
    width, layers = len(weights["question_mlp.bias"]), layer_count(weights)
    lasting = layers * len(graph.vectors) * width + 2 * sum(tensor.numel() for tensor in weights.values())
    return int(4 * (lasting + 2 * graph.entities * width + 10 * ROWS * width) + 24 * (graph.messages + graph.entities))


def _products_for(on: device) -> Products:
    import torch

    if on.type != "cuda" or torch.cuda.get_device_capability(on) < (8, 0):
        return "float32"
    return "split" if adds_up_in_float32(on) else "float32"
