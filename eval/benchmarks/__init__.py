"""Question sets of the multi-hop QA papers in one schema: `benchmark("hotpotqa").load(path)`."""

from ras_agent.eval.benchmarks.record import AnswerForm, Benchmark, Given, Hub, Read
from ras_agent.eval.benchmarks.registry import benchmark, benchmark_names

__all__ = ["AnswerForm", "Benchmark", "Given", "Hub", "Read", "benchmark", "benchmark_names"]
