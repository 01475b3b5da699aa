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
"""The time that processes wait while the main one validates or writes a file. If one has died, torchrun ends the
others."""


def process_count() -> int:
    """Return the number of processes that torchrun started; 1 without torchrun."""
    return int(os.environ.get("WORLD_SIZE", 1))


@dataclass(frozen=True, slots=True)
class Processes:
    """Represents the processes of a training, as seen from one of them."""

    rank: int
    """The number of this process. Process 0 is the main one, which writes the files."""
    count: int
    """The number of all processes."""
    device: str
    """The device on which this process computes."""
    ends_group: bool
    """Whether torch's process group was started here, so that `end` ends it."""

    @classmethod
    def begin(cls) -> Processes:
        """Choose the device of this process, and join torch's process group if there are several processes."""
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
        """Tell whether this process is the main one, which writes the files."""
        return self.rank == 0

    def end(self) -> None:
        """Leave torch's process group, if `begin` started it."""
        if self.ends_group:
            _distributed().destroy_process_group()

    def wait(self) -> None:
        """Wait until all processes have reached this call."""
        if self.count > 1:
            _distributed().barrier()

    def any(self, flag: bool) -> bool:
        """Tell whether `flag` is true in any of the processes. All of them must call this."""
        import torch

        if self.count == 1:
            return flag
        number = torch.tensor(int(flag), device=self.device)
        _distributed().all_reduce(number, _distributed().ReduceOp.MAX)
        return bool(number.item())

    def from_main(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return, in every process, the values of the main process. All of them must call this."""
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
        """Return a function that computes the model's loss. Its gradients are averaged over all processes."""
        if self.count == 1:
            return model.loss
        from torch import nn

        class Loss(nn.Module):
            """Computes the loss as its forward pass, because DistributedDataParallel averages only gradients of
            a forward pass.
            """

            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, batch: Any) -> Tensor | Mapping[str, Tensor]:
                loss: Tensor | Mapping[str, Tensor] = self.model.loss(batch)
                return loss

        # in a step with a graph without edges, an encoder's weights have no gradient
        return nn.parallel.DistributedDataParallel(Loss(), find_unused_parameters=True)


def _distributed() -> Any:
    import torch

    return torch.distributed
