"""The table that a benchmark of the GFM network prints: each system beside the first of the same run."""

from __future__ import annotations

from typing import Any

import numpy as np

from ras_agent.arrays import Floats

__all__ = ["compared", "heading", "line", "remark"]

COLUMNS = {
    "answered": "answered",
    "median ms": "median_ms",
    "p95 ms": "p95_ms",
    "ratio": "ratio",
    "CPU ms": "cpu_ms",
    "CPU ratio": "cpu_ratio",
    "to kept": "kept_cpu_ratio",
    "connected": "connected_cpu_ratio",
    "difference": "difference",
    "kept MB": "kept_mb",
    "peak MB": "peak_mb",
    "moved MB": "moved_mb",
    "floor ms": "floor_ms",
}
Record = dict[str, Any]


def compared(record: Record, first: Record, kept: Record | None, expected: Floats, found: Floats) -> Record:
    """`record` with its ratios to the first system and to "plain, kept", and how far its logits are off the first's."""
    made = dict(record)
    for unit, of in (
        ("", "median_ms"),
        ("cpu_", "cpu_ms"),
        ("connected_", "connected_ms"),
        ("connected_cpu_", "connected_cpu_ms"),
    ):
        made[f"{unit}ratio"] = first[of] / record[of]
    made["kept_cpu_ratio"] = kept["cpu_ms"] / record["cpu_ms"] if kept else None
    made["difference"] = float(np.nanmax(np.abs(expected - found)))
    made["range"] = float(np.nanmax(expected) - np.nanmin(expected))
    return made


def heading() -> str:
    """The names of the columns."""
    return _row("system", *COLUMNS)


def line(record: Record) -> str:
    """One system's cells."""
    return _row(record["system"], *(_shown(record.get(column)) for column in COLUMNS.values()))


def remark(record: Record) -> str:
    """What bounds a system, where it was counted; else nothing."""
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
