"""Measure speed, exactness and memory of the GFM network's fast scores against two plain passes in the same run.

    python -m lab.gfm --openie corpus_openie.jsonl --questions questions.jsonl --zipf
    python -m lab.gfm --index my.index --questions questions.jsonl
    python -m lab.gfm --zipf --slow 2 --device cuda --systems "plain;fast;device;device, half"

Three graphs: one of a file of OpenIE facts, with equivalence edges, as `ras-agent kg build` makes it; that of an
index; and a synthetic one of the size of GFM-RAG's HotpotQA graph (87,768 entities, 45,112 relations,
279,112 facts) whose degrees follow Zipf's law. Width 512, six layers. On real graphs the weights are those of the
network that ships, widened: each number 16 times, which computes the same at the published width, so that a question
changes as much of the graph as with trained weights. With --weights random, and on the synthetic graph, weights and
sentence vectors (of 768) are random: changes then die out after a few messages, which flatters the fast systems.
The questions: of real graphs, 50 from the file, which start from the entities they are linked to; of the synthetic
one, a tenth as many, of three entities drawn as facts draw them. Then ten (synthetic: two) that start at one of the
best connected hundredth. The plain systems and the autograd network take long: they answer --slow of each kind.

    plain           every state of every entity, relation states too, with the compiled kernel for the messages, as the
                    published code works
    plain, cached   the same with cached relation states
    autograd        ras_agent.tools.gfm.network's plain_scores, the reference for exactness (real graphs only)
    fast            FastGFM
    fast, half      with its half-precision cache
    fast, bfloat16  with that and products in bfloat16, which pays on processors that have them
    device          DeviceGFM on --device, --batch questions at once, products as it chooses for the device
    device, float32 with products in float32
    device, half    with states in float16 and products in bfloat16

Every system has a process of its own, so that peak memory is its own. Times are medians over what it answered. Other
programs disturb the time by the clock, less so the seconds of processor time over all threads: `CPU ratio` is of the
median usual question's processor time against the first system, `to cached` against "plain, cached", `connected`
against the first system for the well connected; `ratio` is by the clock, which is what counts on a device.
`difference` is the largest of logits, `probability` of probabilities, `same order` the share of questions whose 20 best
are in the same order, all against the first system. `moved` are the bytes that a fast pass or one on a device has to
read and write; `floor` is the time that they or the products take at the rates that this machine or its device reached
in the same run, next to whatever else ran on it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from lab import child_environment
from lab.gfm_cases import GFMCase, openie_case, real_case, zipf_case
from lab.gfm_systems import DEVICE_SYSTEMS, SYSTEMS, OnDevice, measure
from ras_agent.arrays import Floats
from ras_agent.program import run_program
from ras_agent.tools.gfm.cuda import ROWS_PER_BLOCK
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.tools.kg.index import KGIndex

CONFIG = GFMConfig()
ENTITIES, RELATIONS, FACTS = 87_768, 45_112, 279_112
_Record = dict[str, Any]
_COLUMNS = {
    "answered": "answered",
    "median ms": "median_ms",
    "p95 ms": "p95_ms",
    "ratio": "ratio",
    "CPU ms": "cpu_ms",
    "CPU ratio": "cpu_ratio",
    "to cached": "cached_cpu_ratio",
    "connected": "connected_cpu_ratio",
    "difference": "difference",
    "probability": "probability",
    "same order": "same_order",
    "cached MB": "cached_mb",
    "peak MB": "peak_mb",
    "moved MB": "moved_mb",
    "floor ms": "floor_ms",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table a graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openie", type=Path, help="JSON lines with id, title, text, entities, triples")
    parser.add_argument("--questions", type=Path, help="JSON lines with question")
    parser.add_argument("--index", type=Path, help="an index with a knowledge graph")
    parser.add_argument("--weights", choices=("widened", "random"), default="widened", help="of real graphs (widened)")
    parser.add_argument("--zipf", action="store_true", help="the synthetic graph too")
    parser.add_argument("--count", type=int, default=50, help="questions of a graph, without the well connected (50)")
    parser.add_argument("--connected", type=int, default=10, help="well connected ones (10)")
    parser.add_argument("--slow", type=int, default=5, help="how many of each kind the plain systems answer (5)")
    parser.add_argument("--systems", help="separated by semicolons (all; those of a device only with --device)")
    parser.add_argument("--device", help="where the systems of a device run: cuda, cuda:1, cpu, mps")
    parser.add_argument("--batch", type=_positive, default=1, help="questions that those compute at once (1)")
    parser.add_argument("--rows", type=_positive, default=ROWS_PER_BLOCK, help="entities times questions of a block")
    parser.add_argument("--json", type=Path, help="write the records there too, one a line")
    parser.add_argument("--job", nargs=2, metavar=("SYSTEM", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    on = OnDevice(given.device or "cpu", given.batch, given.rows)
    if given.job:
        print(json.dumps(measure(given.job[0], Path(given.job[1]), CONFIG, on)))
        return
    if (given.openie or given.index) and not given.questions:
        parser.error("--openie and --index need --questions")
    chosen = given.systems.split(";") if given.systems else [*SYSTEMS, *(DEVICE_SYSTEMS if given.device else ())]
    if unknown := [one for one in chosen if one not in SYSTEMS and one not in DEVICE_SYSTEMS]:
        parser.error(f"--systems: unknown {unknown[0]!r}; known: {'; '.join((*SYSTEMS, *DEVICE_SYSTEMS))}")
    if not given.device and any(one in DEVICE_SYSTEMS for one in chosen):
        parser.error("systems of a device need --device")
    size = given.count, given.connected, given.weights == "widened"
    cases: dict[str, Callable[[], GFMCase]] = {}
    if given.openie:
        cases["OpenIE"] = lambda: openie_case(given.openie, given.questions, *size)
    if given.index:
        cases["index"] = lambda: real_case(KGIndex.open(given.index), given.questions, *size)
    if given.zipf:
        few = max(2, given.count // 10), max(2, given.connected // 5)
        cases["Zipf"] = lambda: zipf_case(ENTITIES, RELATIONS, FACTS, *few)
    for name, make in cases.items():
        systems = [one for one in chosen if name != "Zipf" or one != "autograd"]
        case = {**make(), "slow": np.array(given.slow)}
        for record in _compare(name, case, systems, on):
            if given.json:
                with given.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")


def _compare(name: str, case: GFMCase, systems: Sequence[str], on: OnDevice) -> Iterator[_Record]:
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "case.npz", allow_pickle=False, **case)
        size = f"{case['entities']} entities, {case['relations']} relations, {len(case['edges'])} edges"
        print(f"{name}: {size}, {len(case['indptr']) - 1} questions, {case['connected']} of them well connected")
        print(_row("system", *_COLUMNS))
        first: _Record | None = None
        cached: _Record | None = None
        for system in systems:
            record = {"graph": name, **_in_process(system, folder, on)}
            first = first or record
            cached = record if system == "plain, cached" else cached
            expected, found = (np.load(Path(folder) / f"{one}.npy") for one in (first["system"], system))
            record = _compared(record, first, cached, expected, found)
            print("\n".join(filter(None, (_line(record), _remark(record)))), flush=True)
            yield record


def _in_process(system: str, folder: str, on: OnDevice) -> _Record:
    device, batch, rows = map(str, astuple(on))
    command = [sys.executable, "-P", "-m", "lab.gfm", "--job", system, folder]
    command += ["--device", device, "--batch", batch, "--rows", rows]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=child_environment())
    record: _Record = json.loads(done.stdout)
    return record


def _compared(record: _Record, first: _Record, cached: _Record | None, expected: Floats, found: Floats) -> _Record:
    """Return `record` with its ratios to the first system and "plain, cached", and how far its scores differ."""
    made = dict(record)
    for unit, of in (
        ("", "median_ms"),
        ("cpu_", "cpu_ms"),
        ("connected_", "connected_ms"),
        ("connected_cpu_", "connected_cpu_ms"),
    ):
        made[f"{unit}ratio"] = first[of] / record[of]
    made["cached_cpu_ratio"] = cached["cpu_ms"] / record["cpu_ms"] if cached else None
    made["difference"] = float(np.nanmax(np.abs(expected - found)))
    both = ~np.isnan(expected).any(1) & ~np.isnan(found).any(1)
    one, two = expected[both].astype(np.float64), found[both].astype(np.float64)
    made["probability"] = float(np.abs(1 / (1 + np.exp(-one)) - 1 / (1 + np.exp(-two))).max())
    best = (np.argsort(-logits, axis=1, kind="stable")[:, :20] for logits in (one, two))
    made["same_order"] = float(np.equal(*best).all(1).mean())
    made["range"] = float(np.nanmax(expected) - np.nanmin(expected))
    return made


def _line(record: _Record) -> str:
    """Return one system's cells."""
    return _row(record["system"], *(_shown(record.get(column)) for column in _COLUMNS.values()))


def _remark(record: _Record) -> str:
    """Say what bounds a system, if that was counted."""
    if "gflop" not in record:
        return ""
    work = f"{record['gflop']:.3g} GFLOP take {record['products_ms']:.3g} ms at {record['gflop_per_s']:.0f} GFLOP/s"
    moved = f"{record['moved_mb']:.4g} MB {record['bytes_ms']:.3g} ms at {record['copy_gb_per_s']:.4g} GB/s copied"
    where = ""
    if "batch" in record:
        kernels = "Triton kernels" if record["kernels"] else "torch's own operations"
        where = f"; {record['device']}, {record['batch']} at once, {record['products']} products, {kernels}"
    return f"  a question, {record['reached']:.0f} entities: {work}, {moved}{where}"


def _row(first: str, *cells: str) -> str:
    return f"{first:<15}" + "".join(f"{cell:>11}" for cell in cells)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if value < 100 else f"{value:.0f}"
    return "" if value is None else str(value)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


if __name__ == "__main__":
    run_program(main)
