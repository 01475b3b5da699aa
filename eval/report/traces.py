"""Traces as a report's page holds them: each is a trace page's data as gzip in base64, made in several processes.

A question's graph takes 0.1 s to lay out, so that five hundred of them are worth more than one processor core. This
module is imported in the processes before numpy is, and must not import it: see `_use_one_thread`.
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

_FEW = 24  # traces for which starting a process takes longer than it saves


def packed_traces(
    traces: Sequence[Mapping[str, Any]],
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Pack each trace (`Trace.to_dict()`), in order; the result is "" for one that cannot be read.

    progress: is called with the number of traces that are done and the number of all. With several `workers` the
        program that calls this must be importable, as multiprocessing requires.
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
    """Give linear algebra one thread in this process, which works only before numpy is imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def _pack(data: Mapping[str, Any]) -> str:
    from ras_agent.errors import TraceError
    from ras_agent.page import trace_data
    from ras_agent.trace import Trace

    try:
        text = trace_data(Trace.from_dict(data))
    except TraceError:
        return ""
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode(
        "ascii"
    )
