"""Names of benchmarks and where they live: a lazy table, widened by the entry points `ras_agent.benchmark`."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from ras_agent.errors import UnknownName
from ras_agent.eval.benchmarks.record import Benchmark

__all__ = ["GROUP", "benchmark", "benchmark_names"]

GROUP = "ras_agent.benchmark"
_HERE = "ras_agent.eval.benchmarks"
_TABLE: dict[str, str] = {
    "2wikimultihopqa": f"{_HERE}.two_wiki:TWO_WIKI",
    "arc-challenge": f"{_HERE}.arc:ARC_CHALLENGE",
    "asqa": f"{_HERE}.asqa:ASQA",
    "cwq": f"{_HERE}.kgqa:CWQ",
    "eli5": f"{_HERE}.eli5:ELI5",
    "explagraphs": f"{_HERE}.explagraphs:EXPLAGRAPHS",
    "grailqa": f"{_HERE}.kgqa:GRAILQA",
    "graphqa-webqsp": f"{_HERE}.kgqa:GRAPHQA_WEBQSP",
    "hotpotqa": f"{_HERE}.hotpotqa:HOTPOTQA",
    "jsonl": f"{_HERE}.plain:PLAIN",
    "musique": f"{_HERE}.musique:MUSIQUE",
    "pathquestion": f"{_HERE}.pathquestion:PATHQUESTION",
    "popqa": f"{_HERE}.popqa:POPQA",
    "pubhealth": f"{_HERE}.pubhealth:PUBHEALTH",
    "scenegraphs": f"{_HERE}.scene_graphs:SCENE_GRAPHS",
    "triviaqa": f"{_HERE}.triviaqa:TRIVIAQA",
    "webqsp": f"{_HERE}.kgqa:WEBQSP",
    "webquestions": f"{_HERE}.kgqa:WEBQUESTIONS",
}


def benchmark_names() -> tuple[str, ...]:
    """All names, the table's and the entry points', sorted."""
    return tuple(sorted({*_TABLE, *(entry.name for entry in entry_points(group=GROUP))}))


def benchmark(name: str) -> Benchmark:
    """The benchmark called `name`. Raises UnknownName with the names there are."""
    if target := _TABLE.get(name):
        module, _, attribute = target.partition(":")
        found = getattr(import_module(module), attribute)
    else:
        entries = tuple(entry_points(group=GROUP, name=name))
        if not entries:
            raise UnknownName("benchmark", name, benchmark_names())
        found = entries[0].load()
    if not isinstance(found, Benchmark):
        raise TypeError(f"benchmark {name!r} is a {type(found).__name__}; an entry point of {GROUP} names a Benchmark")
    return found
