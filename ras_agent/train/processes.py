"""Runs a training in the processes that torchrun started, or only in this one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_LONGEST_WAIT = timedelta(days=1)
"""While the main process validates or writes a file. Where one has died, torchrun ends the others itself."""


def process_count() -> int:
    """Return how many processes torchrun started, or 1."""
    return int(os.environ.get("WORLD_SIZE", 1))


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a training, seen from one of them.

    rank: number of this process; 0 is the main one, which writes the files. count: number of all processes.
    device: where this process computes. ends_group: whether torch's group of processes was started here.
    """

    rank: int
    count: int
    device: str
    ends_group: bool

    @classmethod
    def begin(cls) -> Processes:
        """Choose this process's device, and join the group where there are several processes."""
        import torch

        device = "cpu"
        if torch.cuda.is_available():
            device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
            torch.cuda.set_device(device)
        starts_group = process_count() > 1 and not torch.distributed.is_initialized()
        if starts_group:
            torch.distributed.init_process_group(
                "nccl" if device != "cpu" else "gloo", timeout=_LONGEST_WAIT
            )
        return cls(
            int(os.environ.get("RANK", 0)), process_count(), device, starts_group
        )

    @property
    def main(self) -> bool:
        return self.rank == 0

    def end(self) -> None:
        """Leave the group."""
        if self.ends_group:
            _distributed().destroy_process_group()

    def wait(self) -> None:
        """Wait until all processes have reached this call."""
        if self.count > 1:
            _distributed().barrier()

    def any(self, flag: bool) -> bool:
        """Tell whether `flag` is true in any process."""
        import torch

        if self.count == 1:
            return flag
        number = torch.tensor(int(flag), device=self.device)
        _distributed().all_reduce(number, _distributed().ReduceOp.MAX)
        return bool(number.item())

    def from_main(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the values that the main process has, in every process."""
        import torch

        if self.count == 1:
            return dict(values)
        text = json.dumps(values).encode()
        size = torch.tensor(len(text), device=self.device)
        _distributed().broadcast(size, 0)
        data = torch.zeros(int(size), dtype=torch.uint8, device=self.device)
        if self.main:
            data += torch.tensor(list(text), dtype=torch.uint8, device=self.device)
        _distributed().broadcast(data, 0)
        received: dict[str, float] = json.loads(bytes(data.tolist()))
        return received

    def averaged(self, model: Any) -> Any:
        """Return a callable for the model's loss which, with several processes, averages the gradients over them."""
        if self.count == 1:
            return model.loss
        from torch import nn

        class Loss(nn.Module):
            """Module with the loss as its forward pass: DistributedDataParallel averages only such gradients."""

            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, batch: Any) -> Tensor | Mapping[str, Tensor]:
                loss: Tensor | Mapping[str, Tensor] = self.model.loss(batch)
                return loss

        # a graph without edges leaves an encoder's weights without a gradient in some step
        return nn.parallel.DistributedDataParallel(Loss(), find_unused_parameters=True)


def _distributed() -> Any:
    import torch

    return torch.distributed
