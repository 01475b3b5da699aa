"""Traces as a report's page holds them: each a page's data, gzip in base64, drawn in several processes.

A question's graph takes 0.1 s to lay out, so that five hundred are worth more than one processor core.
"""

from __future__ import annotations

import base64
import gzip
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

__all__ = ["packed_traces"]

_FEW = 24  # traces for which starting a process takes longer than it saves


def packed_traces(
    traces: Sequence[Mapping[str, Any]], *, workers: int = 1, progress: Callable[[int, int], None] | None = None
) -> list[str]:
    """Each trace (`Trace.to_dict()`) packed, in order; "" for one that cannot be read.

    `progress` is told (done, of how many). With several `workers` the program that calls this must be importable, as
    multiprocessing wants it.
    """
    packed = []
    with _mapping(workers if len(traces) > _FEW else 1) as mapped:
        for done, text in enumerate(mapped(_packed, traces), 1):
            packed.append(text)
            if progress:
                progress(done, len(traces))
    return packed


@contextmanager
def _mapping(workers: int) -> Iterator[Callable[..., Iterator[str]]]:
    if workers < 2:
        yield map
        return
    # spawned, not forked: the caller may have threads
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_alone) as pool:
        yield lambda function, items: pool.map(function, items, chunksize=4)


def _alone() -> None:
    """One thread for linear algebra in each process; said before numpy is loaded, which this module leaves alone."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def _packed(data: Mapping[str, Any]) -> str:
    from ras_agent.errors import TraceError
    from ras_agent.page import trace_data
    from ras_agent.trace import Trace

    try:
        text = trace_data(Trace.from_dict(data))
    except TraceError:
        return ""
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")
