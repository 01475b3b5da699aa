"""How little time a question of the GFM network could take: its products and bytes at the rates of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ras_agent.tools.gfm.cpu import FastGFM
from ras_agent.tools.gfm.cpu_kernels import ROWS_AT_ONCE
from ras_agent.tools.gfm.cuda import DeviceGFM
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.weights import GFMConfig

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["device_floor", "fast_floor", "synchronised"]

COPIED = 64_000_000  # floats


def fast_floor(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    questions: npt.NDArray[np.float32],
    starts: Sequence[npt.NDArray[np.int64]],
    config: GFMConfig,
) -> dict[str, float]:
    """What the median question moves, as FastGFM computes it with everything kept, in float32 on the CPU."""
    fast, d = FastGFM(weights, graph, cache_bytes=1 << 40, half_cache=False), config.width
    hearer, spoken, heard = graph.target, *np.zeros((2, graph.entities), dtype=np.bool_)
    work = []
    for question, start in zip(questions, starts, strict=True):
        keys, products, moved = start, 0, 0
        for step in fast.steps(question, GFMStart(start, np.ones(len(start), dtype=np.float32))):
            products += 2 * d * d * (len(step.reached) + len(step.sources))
            # each message reads a state and a relation; each one reached reads its background and writes itself
            spoken[:], heard[:] = False, False
            spoken[step.sources], heard[step.reached] = True, True
            messages = int(np.count_nonzero(spoken[graph.source] & heard[hearer]))
            moved += 4 * d * (2 * messages + 2 * len(step.reached) + len(step.sources))
            keys = step.changed
        products += 4 * d * d * len(keys)
        moved += 8 * d * graph.entities  # the part of the score that knows no question
        work.append((products, moved, len(keys)))
    products, moved, touched = np.median(np.array(work, dtype=np.float64), axis=0)
    return _floor(products, moved, touched, "cpu", "float32", d)


def device_floor(graph: GFMGraph, network: DeviceGFM, batch: int, config: GFMConfig) -> dict[str, float]:
    """A question of a batch, as DeviceGFM computes it: every entity, whatever it reaches.

    Of the bytes those are counted that no kernel can spare: states and relation states of messages, of which a batch
    reads the latter once; states before and after a layer. What is kept between two steps of a block may stay in cache.
    The first layer, where few have been spoken to, counts for the states that it writes.
    """
    d, size, count = config.width, network.relation_states[0].values.element_size(), graph.entities
    dense = config.layers - 1
    products = count * (4 * d * d * dense + 4 * d * d)
    heard = graph.messages * d * size * (1 + 1 / batch)
    moved = dense * (heard + 2 * count * d * size) + count * (2 * d * size + 4)
    return _floor(products, moved, count, str(network.device), network.products, d)


def _floor(products: float, moved: float, touched: float, device: str, way: str, d: int) -> dict[str, float]:
    """products: how many operations. way: of multiplying, see products.Product; "split" has three times as many."""
    import torch

    tensor_cores = way != "float32" and device.startswith("cuda")
    kind = torch.bfloat16 if tensor_cores else torch.float32
    rows = ROWS_AT_ONCE if device == "cpu" else 16 * ROWS_AT_ONCE
    left, right = (torch.randn(size, d, dtype=kind, device=device) for size in (rows, d))
    rate = 2 * rows * d * d / _best(lambda: left @ right, device)
    source = torch.randn(COPIED, device=device)
    target = torch.empty_like(source)
    copied = 2 * source.nbytes / _best(lambda: target.copy_(source), device)
    times = 3 if way == "split" else 1
    return {
        "gflop": times * products / 1e9,
        "moved_mb": moved / 1e6,
        "reached": touched,
        "gflop_per_s": rate / 1e9,
        "copy_gb_per_s": copied / 1e9,
        "products_ms": 1e3 * times * products / rate,
        "bytes_ms": 1e3 * moved / copied,
        "floor_ms": 1e3 * max(times * products / rate, moved / copied),
    }


def synchronised(device: str) -> float:
    """The time by the clock in seconds, once a device has done all it was told to."""
    import torch

    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    elif device.startswith("mps"):
        torch.mps.synchronize()
    return time.perf_counter()


def _best(call: Callable[[], object], device: str) -> float:
    def seconds() -> float:
        began = synchronised(device)
        call()
        return synchronised(device) - began

    return min(seconds() for _ in range(5))
