"""Times, memory and scores of one system on one case."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ras_agent.eval.bench.gfm_floor import device_floor, fast_floor, synchronised
from ras_agent.eval.bench.gfm_systems import system_named
from ras_agent.tools.gfm.cuda import ROWS_PER_BLOCK
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights

__all__ = ["OnDevice", "measure"]


@dataclass(frozen=True, slots=True)
class OnDevice:
    """Where the systems of a device run, how many questions at once, and DeviceGFM's `rows`."""

    device: str = "cpu"
    batch: int = 1
    rows: int = ROWS_PER_BLOCK


def measure(name: str, folder: Path, config: GFMConfig, given: OnDevice) -> dict[str, Any]:
    """Times and peak memory of the system `name` on the case in `folder`; its scores go to a file beside the case.

    A question's time is its batch's, parted evenly. Peak memory is the process's, or of a CUDA device torch's own.
    """
    import torch

    with np.load(folder / "case.npz") as stored:
        case = dict(stored)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(2, int(case["relations"]), config.text_width)).astype(np.float32) / 28
    graph = GFMGraph.from_edges(int(case["entities"]), case["edges"], *vectors)
    del vectors
    starts = [case["starts"][low:high] for low, high in pairwise(case["indptr"])]
    questions = rng.normal(size=(len(starts), config.text_width)).astype(np.float32) / np.float32(28)
    first_connected = len(starts) - int(case["connected"])
    on, batch = (given.device, given.batch) if name.startswith("device") else ("cpu", 1)
    began = time.perf_counter()
    with torch.inference_mode():
        system = system_named(name, initial_weights(config, 0), graph, on, given.rows)
        record: dict[str, Any] = {"system": name, "prepare_s": synchronised(on) - began, "kept_mb": system.kept / 1e6}
        slow = None if name.startswith(("fast", "device")) else int(case["slow"])
        parts = [*_batches(0, first_connected, batch, slow), *_batches(first_connected, len(starts), batch, slow)]
        for size in {len(part) for part in parts}:  # compiles, and maps memory
            system.scores(questions[:size], starts[:size])
        times, processor = np.full((2, len(starts)), np.nan)
        scores = np.full((len(starts), graph.entities), np.nan, dtype=np.float32)
        for part in parts:
            rows = slice(part.start, part.stop)
            began, used = synchronised(on), time.process_time()
            scores[rows] = system.scores(questions[rows], starts[rows])
            times[rows] = 1e3 * (synchronised(on) - began) / len(part)
            processor[rows] = 1e3 * (time.process_time() - used) / len(part)
    np.save(folder / f"{name}.npy", scores)
    usual, connected = times[:first_connected], times[first_connected:]
    record |= {"answered": int(np.count_nonzero(~np.isnan(times)))}
    record |= {"median_ms": float(np.nanmedian(usual)), "p95_ms": float(np.nanquantile(times, 0.95))}
    record |= {"cpu_ms": float(np.nanmedian(processor[:first_connected]))}
    record |= {"connected_cpu_ms": float(np.nanmedian(processor[first_connected:]))}
    record |= {"connected_ms": float(np.nanmedian(connected)), "peak_mb": _peak_mb(on)}
    if name == "fast":
        usual_questions = questions[:first_connected], starts[:first_connected]
        record |= fast_floor(initial_weights(config, 0), graph, *usual_questions, config)
    if system.network is not None:
        record |= asdict(given) | {"products": system.network.products, "kernels": system.network.uses_triton}
        record |= device_floor(graph, system.network, batch, config)
    return record


def _batches(low: int, high: int, size: int, last: int | None) -> Iterator[range]:
    """Questions low to high by `size`, or the `last` of them."""
    low = low if last is None else max(low, high - last)
    for begin in range(low, high, size):
        yield range(begin, min(begin + size, high))


def _peak_mb(device: str) -> float:
    """The most memory this process has held, or torch on a CUDA device, in MB."""
    import resource

    if device.startswith("cuda"):
        import torch

        return float(torch.cuda.max_memory_allocated(device)) / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
