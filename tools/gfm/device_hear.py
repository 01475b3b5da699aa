"""What each entity hears, on any device of torch, for several questions at once, without atomic additions.

On CUDA a Triton kernel (ras_agent.tools.gfm.triton_kernels) multiplies and adds up what it reads and stores no
message. Elsewhere, and where Triton cannot work, torch's own operations do the same for all pieces at once
(ras_agent.tools.gfm.segments): their first messages, their second ones, and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ras_agent.errors import SettingsError
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.segments import Listeners, plan

if TYPE_CHECKING:
    from torch import Tensor, device

__all__ = ["Hearing", "hear_messages"]

LONGEST = 32  # without the kernel each place in a piece is a step of its own
LONGEST_OF_KERNEL = 128


class Hearing:
    """A graph's messages on a device, in blocks of entities."""

    def __init__(self, graph: GFMGraph, on: device, rows: int, compiled: bool) -> None:
        """rows: entities a block. compiled: by the Triton kernel.

        Raises SettingsError for a graph of more messages than an int32 can count.
        """
        import torch

        if graph.messages >= 2**31:
            raise SettingsError(f"a graph of {graph.messages} messages is too large for a device")
        self._compiled, self.longest = compiled, LONGEST_OF_KERNEL if compiled else LONGEST
        self._source, self._relation = (
            torch.from_numpy(array).to(on, torch.int32) for array in (graph.source, graph.relation)
        )
        ends = range(0, graph.entities, rows)
        self.blocks = tuple(
            Listeners.of(plan(graph.indptr, low, min(low + rows, graph.entities), self.longest), on) for low in ends
        )

    @property
    def bytes(self) -> int:
        """Memory of the graph on the device."""
        levels = [level for block in self.blocks for level in block.levels]
        tensors = [one for level in levels for one in (level.begin, level.end, level.target)]
        size: int = sum(one.nbytes for one in (self._source, self._relation, *tensors))
        return size

    def hear(self, block: Listeners, states: Tensor, kinds: Tensor) -> Tensor:
        """(high - low, B, d), float32: what the entities of a block hear from all `states` (N, B, d).

        kinds: the relation states (R, d). The result may be written to.
        """
        return self.add_up(block, states, kinds, self._source, self._relation)

    def add_up(self, block: Listeners, states: Tensor, kinds: Tensor, source: Tensor, relation: Tensor) -> Tensor:
        """The same of a block of other messages: source, relation (messages,), int32, rows of `states` and `kinds`."""
        import torch

        total = torch.empty(block.rows, *states.shape[1:], device=states.device)
        if self._compiled:
            from ras_agent.tools.gfm import triton_kernels as triton_hear

            triton_hear.hear_messages(block, states, kinds, source, relation, total)
        else:
            hear_messages(block, states, kinds, source, relation, total)
        return total[: block.high - block.low]


def hear_messages(
    block: Listeners, states: Tensor, kinds: Tensor, source: Tensor, relation: Tensor, total: Tensor
) -> None:
    """Write to `total` (rows, B, d), float32, the sums of a block, level after level, by torch's own operations."""
    for number, level in enumerate(block.levels):
        sums = total.new_zeros(len(level.begin), *total.shape[1:])
        for place, count in enumerate(level.lasting):
            at = level.begin[:count] + place
            if number:
                sums[:count] += total.index_select(0, at)
            else:
                # to float32 first: half precision would round each product
                said = states.index_select(0, source.index_select(0, at)).float()
                sums[:count].addcmul_(said, kinds.index_select(0, relation.index_select(0, at)).float()[:, None])
        total.index_copy_(0, level.target.long(), sums)  # no row twice
