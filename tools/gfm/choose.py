"""Where a network computes its scores: on the CPU what a question reaches, or on a graphics processor everything."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.errors import SettingsError
from ras_agent.tools.gfm.cached_rows import Kept
from ras_agent.tools.gfm.cpu import MOST, FastGFM, Start
from ras_agent.tools.gfm.cuda import DeviceGFM, bytes_needed
from ras_agent.tools.gfm.graph import GFMGraph

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["KnownKinds", "Scorer", "cuda_device", "scorer"]

REMEDY = "choose device='auto' or 'cpu', or install a torch that is built for CUDA (https://pytorch.org/get-started)"


class KnownKinds(Protocol):
    """What a scorer has computed for its graph."""

    @property
    def kinds(self) -> tuple[Kept, ...]:
        """The relation states (R, d) of every layer, on the weights' device."""


class Scorer(Protocol):
    """A network ready for one graph: FastGFM, DeviceGFM."""

    @property
    def graph(self) -> GFMGraph:
        """Whom it scores."""

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """By the names of GFMConfig.shapes, all on one device."""

    @property
    def known(self) -> KnownKinds:
        """What explaining a score can go on from."""

    def scores(self, questions: Floats, starts: Sequence[Start]) -> Floats:
        """Logits (B, N), float32, for sentence vectors (B, text width) and the entities of each question."""


def scorer(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    device: str = "auto",
    *,
    most: int = MOST,
    half_cache: bool | None = None,
    half_products: bool = False,
) -> Scorer:
    """The network on `device`: "cpu", "cuda", "cuda:1" or "auto".

    "auto" is the first CUDA device that torch sees, if the network fits into its free memory and gives scores there,
    else the CPU. most, half_cache, half_products: see FastGFM. On CUDA there is no background to keep, so the first two
    have no effect; half_products multiplies in bfloat16 and keeps states in float16, which changes probabilities by up
    to a hundredth. Raises SettingsError for a device that is unknown, not there, or gives no scores.
    """
    on = cuda_device(device)
    if on:
        try:
            if device == "auto":
                _check_room(weights, graph)
            return _tried(
                DeviceGFM(
                    weights,
                    graph,
                    on,
                    states="float16" if half_products else "float32",
                    products="bfloat16" if half_products else None,
                )
            )
        except (RuntimeError, SettingsError) as error:  # torch's, for whatever does not work there; a graph too large
            reason = str(error).splitlines()[0]
            if device != "auto":
                raise SettingsError(f"GFM gives no scores on {on} ({reason}): device='cpu' needs no GPU") from error
            told = f"GFM stays on the CPU: {reason}. device='cpu' says that the CPU is meant."
            warnings.warn(told, RuntimeWarning, stacklevel=3)
    return FastGFM(weights, graph, most=most, half_cache=half_cache, half_products=half_products)


def _check_room(weights: Mapping[str, Tensor], graph: GFMGraph) -> None:
    """Raises RuntimeError where the first CUDA device has not the memory."""
    import torch

    free, needed = torch.cuda.mem_get_info(0)[0], bytes_needed(weights, graph)
    if needed > free:
        raise RuntimeError(f"it needs about {needed / 1e9:.1f} GB on cuda:0, of which {free / 1e9:.1f} GB are free")


def _tried(network: DeviceGFM) -> DeviceGFM:
    """The network, once it has scored a question about nothing."""
    nobody = Start(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
    network.scores(np.zeros((1, network.weights["question_mlp.weight"].shape[1]), dtype=np.float32), [nobody])
    return network


def cuda_device(device: str) -> str | None:
    """The CUDA device that "auto", "cpu", "cuda" or "cuda:<number>" means here; None for the CPU.

    Raises SettingsError for a device that is unknown or not there.
    """
    import torch

    kind, colon, number = device.partition(":")
    if device not in ("auto", "cpu", "cuda") and not (kind == "cuda" and colon and number.isdecimal()):
        raise SettingsError(f"device {device!r}: known are auto, cpu, cuda and cuda:<number>")
    if device == "cpu":
        return None
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "auto":
        return "cuda:0" if count else None
    if count <= int(number or 0):
        seen = f"the {count} that torch {torch.__version__} sees are numbered from 0" if count else "torch sees none"
        raise SettingsError(f"device {device!r} is not here ({seen}): {REMEDY}")
    return f"cuda:{int(number or 0)}"
