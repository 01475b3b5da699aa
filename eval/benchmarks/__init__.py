"""Reads the benchmarks of QA papers into one kind of record: `benchmark("hotpotqa").load(path)`."""

from ras_agent.eval.benchmarks.registry import (
    AnswerForm,
    Benchmark,
    HubDataset,
    ReadRecord,
    benchmark,
    benchmark_names,
    registered,
)

__all__ = [
    "AnswerForm",
    "Benchmark",
    "HubDataset",
    "ReadRecord",
    "benchmark",
    "benchmark_names",
    "registered",
]
