"""Packs the traces for a report's page: the data of each trace page as gzip in base64, computed in several
processes.

Laying out a question's graph takes 0.1 s, so for hundreds of questions several processor cores help. Each
process imports this module before numpy, so it must not import numpy itself: see `_use_one_thread`.
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

_FEW = 24  # up to this many traces, starting a process takes longer than it saves


def packed_traces(
    traces: Sequence[Mapping[str, Any]],
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Return the packed data of each trace's page, in order; "" for a trace that cannot be read.

    Args:
        traces: The traces, as `Trace.to_dict()` returns them.
        workers: The number of processes. With more than one, multiprocessing must be able to import the calling
            program.
        progress: Is called with the number of finished traces, and the number of all.
    """
    packed = []
    with _mapping(workers if len(traces) > _FEW else 1) as mapped:
        for count, text in enumerate(mapped(_pack, traces), 1):
            packed.append(text)
            if progress:
                progress(count, len(traces))
    return packed


@contextmanager
def _mapping(workers: int) -> Iterator[Callable[..., Iterator[str]]]:
    if workers < 2:
        yield map
        return
    # spawned, not forked: the caller may have threads
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_use_one_thread
    ) as pool:
        yield lambda function, items: pool.map(function, items, chunksize=4)


def _use_one_thread() -> None:
    """Limit linear algebra to one thread in this process. This works only before numpy is imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def _pack(data: Mapping[str, Any]) -> str:
    from ras_agent.contracts.errors import TraceError
    from ras_agent.page import trace_data
    from ras_agent.running.trace import Trace

    try:
        text = trace_data(Trace.from_dict(data))
    except TraceError:
        return ""
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode(
        "ascii"
    )
