"""The systems that the GFM benchmark compares, and the measuring of one: times, memory, scores, and a floor.

The floor is how little time a question could take: its products and bytes at the rates that this machine reaches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.gfm_cases import GFMCase
from ras_agent.arrays import Floats
from ras_agent.eval.bench.gfm import WIDER, plain_pass, widened
from ras_agent.tools.gfm.cached_rows import CachedRows, cache_rows
from ras_agent.tools.gfm.cpu import FastGFM
from ras_agent.tools.gfm.cpu_kernels import ROWS_AT_ONCE
from ras_agent.tools.gfm.cuda import ROWS_PER_BLOCK, DeviceGFM
from ras_agent.tools.gfm.graph import GFMGraph, GFMStart
from ras_agent.tools.gfm.network import (
    GraphTensors,
    layer_count,
    plain_scores,
    project_relations,
    relation_inputs,
)
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights
from ras_agent.tools.retrieve.gfm import weights_of

if TYPE_CHECKING:
    from torch import Tensor

_Starts = list[GFMStart]
_COPIED = 64_000_000  # floats
SYSTEMS = ("plain", "plain, cached", "autograd", "fast", "fast, half", "fast, bfloat16")
DEVICE_SYSTEMS: dict[str, dict[str, Any]] = {
    "device": {},
    "device, float32": {"products": "float32"},
    "device, half": {"states": "float16", "products": "bfloat16"},
}


@dataclass(frozen=True, slots=True)
class GFMSystem:
    """Holds one way to compute scores.

    scores: from vectors (B, text width) and each question's entities to logits (B, N). cached_bytes: what lasts.
    """

    scores: Callable[[Floats, _Starts], Floats]
    cached_bytes: int = 0
    network: DeviceGFM | None = None


def system_named(name: str, weights: Mapping[str, Tensor], graph: GFMGraph, device: str, rows: int) -> GFMSystem:
    """Make a system of SYSTEMS or DEVICE_SYSTEMS over a graph. device, rows: see DeviceGFM."""
    if name in DEVICE_SYSTEMS:
        network = DeviceGFM(weights, graph, device, rows=rows, **DEVICE_SYSTEMS[name])
        return GFMSystem(_of_network(network), network.bytes, network)
    if name.startswith("fast"):
        half = name in ("fast, half", "fast, bfloat16")
        fast = FastGFM(weights, graph, half_cache=half, half_products=name == "fast, bfloat16")
        return GFMSystem(_of_network(fast), fast.cache.bytes)
    messages = GraphTensors.of(graph)
    if name == "autograd":
        return GFMSystem(_each(lambda question, start: _reference(weights, messages, question, start)))
    relation_states: list[CachedRows] | None = None
    if name == "plain, cached":
        inputs = relation_inputs(weights, messages.vectors)
        relation_states = [
            cache_rows(project_relations(weights, layer, inputs), half=False) for layer in range(layer_count(weights))
        ]
    cached = sum(one.values.nbytes for one in relation_states or ())
    return GFMSystem(
        _each(lambda question, start: plain_pass(weights, graph, messages.vectors, question, start, relation_states)),
        cached,
    )


def _of_network(network: FastGFM | DeviceGFM) -> Callable[[Floats, _Starts], Floats]:
    def scores(vectors: Floats, starts: _Starts) -> Floats:
        return network.scores(vectors, starts)

    return scores


def _each(one: Callable[[Floats, GFMStart], Floats]) -> Callable[[Floats, _Starts], Floats]:
    def scores(vectors: Floats, starts: _Starts) -> Floats:
        return np.stack([one(vector, start) for vector, start in zip(vectors, starts, strict=True)])

    return scores


def _reference(weights: Mapping[str, Tensor], messages: GraphTensors, question: Floats, start: GFMStart) -> Floats:
    import torch

    dense = torch.zeros(1, messages.entities)
    dense[0, torch.from_numpy(start.entities)] = torch.from_numpy(start.weights)
    found: Floats = plain_scores(weights, messages, torch.from_numpy(question)[None], dense)[0].numpy()
    return found


@dataclass(frozen=True, slots=True)
class OnDevice:
    """Says where the systems of a device run, for how many questions at once, and with which `rows` of DeviceGFM."""

    device: str = "cpu"
    batch: int = 1
    rows: int = ROWS_PER_BLOCK


def measure(name: str, folder: Path, config: GFMConfig, given: OnDevice) -> dict[str, Any]:
    """Measure times and peak memory of the system `name` on the case in `folder`; its scores are written there.

    A question's time is its share of its batch's. Peak memory is the process's, or on a CUDA device torch's own.
    """
    import torch

    with np.load(folder / "case.npz") as stored:
        case = dict(stored)
    config, weights, graph, questions = _network_of(case, config)
    starts = [GFMStart(case["starts"][low:high], case["weights"][low:high]) for low, high in pairwise(case["indptr"])]
    first_connected = len(starts) - int(case["connected"])
    on, batch = (given.device, given.batch) if name.startswith("device") else ("cpu", 1)
    began = time.perf_counter()
    with torch.inference_mode():
        system = system_named(name, weights, graph, on, given.rows)
        record: dict[str, Any] = {
            "system": name,
            "prepare_s": _synchronised(on) - began,
            "cached_mb": system.cached_bytes / 1e6,
        }
        slow = None if name.startswith(("fast", "device")) else int(case["slow"])
        parts = [*_batches(0, first_connected, batch, slow), *_batches(first_connected, len(starts), batch, slow)]
        for size in {len(part) for part in parts}:  # compiles, and maps memory
            system.scores(questions[:size], starts[:size])
        times, processor = np.full((2, len(starts)), np.nan)
        scores = np.full((len(starts), graph.entities), np.nan, dtype=np.float32)
        for part in parts:
            rows = slice(part.start, part.stop)
            began, used = _synchronised(on), time.process_time()
            scores[rows] = system.scores(questions[rows], starts[rows])
            times[rows] = 1e3 * (_synchronised(on) - began) / len(part)
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
        record |= _fast_floor(weights, graph, *usual_questions, config)
    if system.network is not None:
        record |= asdict(given) | {"products": system.network.products, "kernels": system.network.uses_triton}
        record |= _device_floor(graph, system.network, batch, config)
    return record


def _network_of(case: GFMCase, config: GFMConfig) -> tuple[GFMConfig, Mapping[str, Tensor], GFMGraph, Floats]:
    """Return configuration, weights, graph and questions' vectors: of the shipped network, widened, or random ones."""
    entities, edges = int(case["entities"]), case["edges"]
    if "questions" in case:
        shipped, weights = weights_of()
        config = replace(shipped, width=shipped.width * WIDER)
        graph = GFMGraph.from_edges(entities, edges, case["vectors"], None, shipped.message_target)
        return config, widened(weights, WIDER), graph, case["questions"]
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(2, int(case["relations"]), config.text_width)).astype(np.float32) / 28
    graph = GFMGraph.from_edges(entities, edges, *vectors)
    questions = rng.normal(size=(len(case["indptr"]) - 1, config.text_width)).astype(np.float32) / np.float32(28)
    return config, initial_weights(config, 0), graph, questions


def _batches(low: int, high: int, size: int, last: int | None) -> Iterator[range]:
    """Yield the questions low to high in batches of `size`; only the `last` of them, if not None."""
    low = low if last is None else max(low, high - last)
    for begin in range(low, high, size):
        yield range(begin, min(begin + size, high))


def _peak_mb(device: str) -> float:
    """Return the most memory that this process has held, or torch on a CUDA device, in MB."""
    import resource

    if device.startswith("cuda"):
        import torch

        return float(torch.cuda.max_memory_allocated(device)) / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _fast_floor(
    weights: Mapping[str, Tensor],
    graph: GFMGraph,
    questions: Floats,
    starts: Sequence[GFMStart],
    config: GFMConfig,
) -> dict[str, float]:
    """Return the floor of the median question, as FastGFM computes it with everything cached, in float32 on the CPU."""
    fast, d = FastGFM(weights, graph, cache_bytes=1 << 40, half_cache=False), config.width
    target, is_source, is_reached = graph.target, *np.zeros((2, graph.entities), dtype=np.bool_)
    work = []
    for question, start in zip(questions, starts, strict=True):
        changed, products, moved = start.entities, 0, 0
        for step in fast.steps(question, start):
            products += 2 * d * d * (len(step.reached) + len(step.sources))
            # each message reads a state and a relation; each one reached reads its background and writes itself
            is_source[:], is_reached[:] = False, False
            is_source[step.sources], is_reached[step.reached] = True, True
            messages = int(np.count_nonzero(is_source[graph.source] & is_reached[target]))
            moved += 4 * d * (2 * messages + 2 * len(step.reached) + len(step.sources))
            changed = step.changed
        products += 4 * d * d * len(changed)
        moved += 8 * d * graph.entities  # the background's share of the score
        work.append((products, moved, len(changed)))
    products, moved, touched = np.median(np.array(work, dtype=np.float64), axis=0)
    return _floor(products, moved, touched, "cpu", "float32", d)


def _device_floor(graph: GFMGraph, network: DeviceGFM, batch: int, config: GFMConfig) -> dict[str, float]:
    """Return the floor of a question of a batch, as DeviceGFM computes it: every entity, whatever it reaches.

    The bytes are those that no kernel can avoid: states and relation states of messages, of which a batch reads the
    latter once; states before and after a layer. What passes between two steps of a block may stay in the processor's
    cache. The first layer, where few entities are targets, counts by the states that it writes.
    """
    d, size, count = config.width, network.relation_states[0].values.element_size(), graph.entities
    dense = config.layers - 1
    products = count * (4 * d * d * dense + 4 * d * d)
    gathered = graph.messages * d * size * (1 + 1 / batch)
    moved = dense * (gathered + 2 * count * d * size) + count * (2 * d * size + 4)
    return _floor(products, moved, count, str(network.device), network.products, d)


def _floor(products: float, moved: float, touched: float, device: str, way: str, d: int) -> dict[str, float]:
    """Turn counts into times. products: operations. way: see ProductPrecision; "split" has three times as many."""
    import torch

    tensor_cores = way != "float32" and device.startswith("cuda")
    dtype = torch.bfloat16 if tensor_cores else torch.float32
    rows = ROWS_AT_ONCE if device == "cpu" else 32 * ROWS_AT_ONCE
    left, right = (torch.randn(size, d, dtype=dtype, device=device) for size in (rows, d))
    rate = 2 * rows * d * d / _best(lambda: left @ right, device)
    source = torch.randn(_COPIED, device=device)
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


def _synchronised(device: str) -> float:
    """Return the clock's time in seconds, once a device has finished its work."""
    import torch

    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
    elif device.startswith("mps"):
        torch.mps.synchronize()
    return time.perf_counter()


def _best(call: Callable[[], object], device: str) -> float:
    def seconds() -> float:
        began = _synchronised(device)
        call()
        return _synchronised(device) - began

    return min(seconds() for _ in range(5))
