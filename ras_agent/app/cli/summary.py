"""The line under a run: how much was read, how long it took, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ras_agent.trace import Trace

__all__ = ["counted", "summary"]

# ends that need no word: the planner or the graph itself said so
_EXPECTED = frozenset({"sufficient", "no_retrieval", "single_shot", "static"})


def summary(trace: Trace, saved: Sequence[Path] = ()) -> str:
    """For example "9 facts, 0 conflicts · 2 hops · 0 LLM calls · 0.21 s"."""
    usage = trace.usage
    tokens = f" ({usage.input_tokens:,} + {usage.output_tokens:,} tokens)" if usage.calls else ""
    replayed = sum(call.replayed for call in usage.calls)
    parts = [
        f"{counted(len(trace.graph), 'fact')}, {counted(len(trace.graph.conflicts), 'conflict')}",
        counted(len(trace.steps), "hop"),
        f"{counted(len(usage.calls), 'LLM call')}{tokens}{f', {replayed} from cache' if replayed else ''}",
        f"{trace.seconds:.{1 if trace.seconds >= 1 else 2}f} s",
    ]
    if trace.stop_reason not in _EXPECTED:
        parts.append(f"stopped by {trace.stop_reason}")
    if trace.failures:
        parts.append(counted(len(trace.failures), "failure"))
    return " · ".join([*parts, *(f"{path} written" for path in saved)])


def counted(number: int, noun: str) -> str:
    """For example "1 hop", "1,204 facts"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
