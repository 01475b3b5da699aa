"""Choose where a network computes its scores: on the CPU what a question reaches, or on a graphics processor all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ras_agent.arrays import Floats
from ras_agent.errors import SettingsError
from ras_agent.tools.gfm.cached_rows import CachedRows
from ras_agent.tools.gfm.cpu import CACHE_BYTES, TOLERANCE, FastGFM
from ras_agent.tools.gfm.cuda import DeviceGFM, bytes_needed
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart

if TYPE_CHECKING:
    from torch import Tensor

_REMEDY = "choose device='auto' or 'cpu', or install a torch that is built for CUDA (https://pytorch.org/get-started)"


class GFMScorer(Protocol):
    """Protocol of what scores the entities of one graph: FastGFM and DeviceGFM."""

    @property
    def graph(self) -> GFMGraph:
        """Return the graph whose entities are scored."""
        ...

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights by the names of GFMConfig.shapes, all on one device."""
        ...

    @property
    def relation_states(self) -> Sequence[CachedRows]:
        """Return every layer's relation states (R, d), on the weights' device; explanations start from them."""
        ...

    def scores(self, questions: Floats, starts: Sequence[GFMStart]) -> Floats:
        """Return logits (B, N), float32, for sentence vectors (B, text width) and each question's entities."""
        ...


def gfm_scorer(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    device: str = "auto",
    *,
    cache_bytes: int = CACHE_BYTES,
    half_cache: bool | None = None,
    half_products: bool = False,
    tolerance: float = TOLERANCE,
) -> GFMScorer:
    """Return the network over a graph, which scores entities on `device`: "cpu", "cuda", "cuda:1" or "auto".

    "auto" is the first CUDA device that torch sees, if the network fits into its free memory and gives scores there,
    else the CPU. cache_bytes, half_cache, half_products, tolerance: see FastGFM. On CUDA there is no background to
    cache and nothing is left out, so half_products alone has an effect: it multiplies in bfloat16 and stores states in
    float16, which changes probabilities by up to a hundredth. Raises SettingsError for a device that is unknown,
    absent, or gives no scores.
    """
    on = cuda_device(device)
    if on:
        try:
            if device == "auto":
                _check_memory(weights, graph)
            network = (
                DeviceGFM(weights, graph, on, states="float16", products="bfloat16")
                if half_products
                else DeviceGFM(weights, graph, on)
            )
            return _after_a_trial(network)
        except (RuntimeError, SettingsError) as error:  # torch's, for whatever fails there; a graph too large
            reason = str(error).splitlines()[0]
            if device != "auto":
                raise SettingsError(f"GFM gives no scores on {on} ({reason}): device='cpu' needs no GPU") from error
            warnings.warn(
                f"GFM stays on the CPU: {reason}. Choose device='cpu' to ask for the CPU without this warning.",
                RuntimeWarning,
                stacklevel=3,
            )
    return FastGFM(
        weights,
        graph,
        cache_bytes=cache_bytes,
        half_cache=half_cache,
        half_products=half_products,
        tolerance=tolerance,
    )


def _check_memory(weights: Mapping[str, Tensor], graph: GFMGraph) -> None:
    """Raise RuntimeError where the first CUDA device has not enough free memory."""
    import torch

    free, needed = torch.cuda.mem_get_info(0)[0], bytes_needed(weights, graph)
    if needed > free:
        raise RuntimeError(f"it needs about {needed / 1e9:.1f} GB on cuda:0, of which {free / 1e9:.1f} GB are free")


def _after_a_trial(network: DeviceGFM) -> DeviceGFM:
    """Score a question without entities, so that a device that gives no scores fails here, and return the network."""
    nothing = GFMStart(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
    network.scores(np.zeros((1, network.weights["question_mlp.weight"].shape[1]), dtype=np.float32), [nothing])
    return network


def cuda_device(device: str) -> str | None:
    """Return the CUDA device that "auto", "cpu", "cuda" or "cuda:<number>" means here; None for the CPU.

    Raises SettingsError for a device that is unknown or absent.
    """
    import torch

    name, colon, number = device.partition(":")
    if device not in ("auto", "cpu", "cuda") and not (name == "cuda" and colon and number.isdecimal()):
        raise SettingsError(f"device {device!r}: known are auto, cpu, cuda and cuda:<number>")
    if device == "cpu":
        return None
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "auto":
        return "cuda:0" if count else None
    if count <= int(number or 0):
        devices = f"the {count} that torch {torch.__version__} sees are numbered from 0" if count else "torch sees none"
        raise SettingsError(f"device {device!r} is not here ({devices}): {_REMEDY}")
    return f"cuda:{int(number or 0)}"
