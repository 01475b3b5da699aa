"""Chooses where a network computes its scores: on the CPU only those that a question reaches, or on a GPU all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from ras_agent.contracts.arrays import Floats
from ras_agent.contracts.errors import SettingsError
from ras_agent.tools.gfm.cached_rows import CachedRows
from ras_agent.tools.gfm.cpu import CACHE_BYTES, TOLERANCE, FastGFM
from ras_agent.tools.gfm.cuda import DeviceGFM, bytes_needed
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

_REMEDY = "choose device='auto' or 'cpu', or install a torch that is built for CUDA (https://pytorch.org/get-started)"


class GFMScorer(Protocol):
    """Describes a network that scores the entities of one graph: FastGFM and DeviceGFM."""

    @property
    def graph(self) -> GFMGraph:
        """Return the graph whose entities are scored."""
        ...

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights under the names of GFMConfig.shapes, all on one device."""
        ...

    @property
    def relation_states(self) -> Sequence[CachedRows]:
        """Return every layer's relation states (R, d), on the weights' device; explanations start from them."""
        ...

    def scores(self, questions: Floats, starts: Sequence[GFMStart]) -> Floats:
        """Return logits (B, N), float32, for sentence vectors (B, text width) and each question's entities."""
        ...


class MovableGFM:
    """Scores on a GPU, and moves to the CPU for good once the GPU's memory is full. Other programs may use that memory
    too.
    """

    def __init__(self, network: DeviceGFM, on_cpu: Callable[[], FastGFM]) -> None:
        """Take the network on the GPU, and a function that builds it on the CPU."""
        self._network: GFMScorer = network
        self._on_cpu = on_cpu
        self._lock = Lock()

    @property
    def graph(self) -> GFMGraph:
        """Return the graph whose entities are scored."""
        return self._network.graph

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights of the present network."""
        return self._network.weights

    @property
    def relation_states(self) -> Sequence[CachedRows]:
        """Return every layer's relation states (R, d), on the present network's device."""
        return self._network.relation_states

    def scores(self, questions: Floats, starts: Sequence[GFMStart]) -> Floats:
        """Return logits (B, N), as GFMScorer does."""
        return self.with_room(lambda network: network.scores(questions, starts))

    def with_room(self, work: Callable[[GFMScorer], T]) -> T:
        """Return the result of `work` on the network. If the GPU has no memory for it, move to the CPU and try again
        there.
        """
        import torch

        network = self._network
        try:
            return work(network)
        except torch.cuda.OutOfMemoryError as error:
            reason = str(error).splitlines()[0]
        with self._lock:
            if self._network is network:
                if isinstance(network, FastGFM):
                    raise MemoryError(reason)
                self._network = self._on_cpu()
                torch.cuda.empty_cache()
                warnings.warn(
                    f"the GFM network moves to the CPU: {reason}.",
                    RuntimeWarning,
                    stacklevel=3,
                )
        return work(self._network)


def with_room(network: GFMScorer, work: Callable[[GFMScorer], T]) -> T:
    """Return the result of `work` on a network. A MovableGFM moves to the CPU if its GPU has no memory for the work."""
    if isinstance(network, MovableGFM):
        return network.with_room(work)
    return work(network)


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
    """Build a network over a graph that scores its entities on a device.

    Args:
        weights: the network's weights, by name.
        device: "cpu", "cuda", "cuda:1" or "auto": the first CUDA device that torch sees, if the network fits into
            its free memory and gives scores there, until that memory is full; otherwise the CPU.
        cache_bytes, half_cache, half_products, tolerance: see FastGFM. They have no effect on CUDA, where there is
            no background to cache and nothing is skipped.

    Raises:
        SettingsError: for a device that is unknown, does not exist, or gives no scores.
    """
    on_cpu = partial(
        FastGFM,
        weights,
        graph,
        cache_bytes=cache_bytes,
        half_cache=half_cache,
        half_products=half_products,
        tolerance=tolerance,
    )
    on = cuda_device(device)
    if on:
        try:
            if device == "auto":
                _check_memory(weights, graph)
            network = DeviceGFM(weights, graph, on)
            _try_out(network)
            if device == "auto":
                return MovableGFM(network, on_cpu)
            return network
        except (
            RuntimeError,
            SettingsError,
        ) as error:  # any failure in torch; a graph that is too large
            reason = str(error).splitlines()[0]
            if device != "auto":
                raise SettingsError(
                    f"the GFM network cannot compute scores on {on} ({reason}): choose device='cpu', which needs no GPU"
                ) from error
            warnings.warn(
                f"GFM stays on the CPU: {reason}. Choose device='cpu' to ask for the CPU without this warning.",
                RuntimeWarning,
                stacklevel=3,
            )
    return on_cpu()


def _check_memory(weights: Mapping[str, Tensor], graph: GFMGraph) -> None:
    """Raise RuntimeError if the first CUDA device has too little free memory."""
    import torch

    free = torch.cuda.mem_get_info(0)[0]
    needed = bytes_needed(weights, graph)
    if needed > free:
        raise RuntimeError(
            f"it needs about {needed / 1e9:.1f} GB on cuda:0, of which {free / 1e9:.1f} GB are free"
        )


def _try_out(network: DeviceGFM) -> None:
    """Score a question without entities, so that a device that cannot compute scores fails here."""
    nothing = GFMStart(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32))
    network.scores(
        np.zeros(
            (1, network.weights["question_mlp.weight"].shape[1]), dtype=np.float32
        ),
        [nothing],
    )


def cuda_device(device: str) -> str | None:
    """Return the CUDA device that "auto", "cpu", "cuda" or "cuda:<number>" means on this machine; None for the CPU.

    Raises SettingsError for a device that is unknown or does not exist.
    """
    import torch

    name, colon, number = device.partition(":")
    if device not in ("auto", "cpu", "cuda") and not (
        name == "cuda" and colon and number.isdecimal()
    ):
        raise SettingsError(
            f"unknown device {device!r}; choose from auto, cpu, cuda and cuda:<number>"
        )
    if device == "cpu":
        return None
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
    else:
        count = 0
    if device == "auto":
        if count:
            return "cuda:0"
        return None
    if count <= int(number or 0):
        if count:
            devices = (
                f"the {count} that torch {torch.__version__} sees are numbered from 0"
            )
        else:
            devices = "torch sees none"
        raise SettingsError(
            f"device {device!r} does not exist on this machine ({devices}): {_REMEDY}"
        )
    return f"cuda:{int(number or 0)}"
