"""Turns a mapping of tensors into a torch module, for the training loop."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn


class NamedWeights(nn.Module):
    """Holds the given tensors as parameters under their names, which may contain dots."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name, tensor in tensors.items():
            path, _, leaf = name.rpartition(".")
            module: nn.Module = self
            for part in path.split(".") if path else ():
                if part not in dict(module.named_children()):
                    module.add_module(part, nn.Module())
                module = module.get_submodule(part)
            module.register_parameter(leaf, nn.Parameter(tensor))

    def tensors(self) -> dict[str, Tensor]:
        """Return the parameters by their names."""
        return dict(self.named_parameters())
