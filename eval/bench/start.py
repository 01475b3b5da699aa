"""Measures the processor time of starting a command, as a whole process, in turn with a peer.

The first run compiles the modules of both into a separate folder. Without it only the installed peer would have
compiled modules, if PYTHONDONTWRITEBYTECODE is set.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory

from ras_agent.eval.bench.rows import BenchRow, median_row

_RUNS = 7
_BARE = ("-c", "pass")
_HELP = ("-c", "from ras_agent.app.cli import main; main()", "--help")


def bench_rows(runs: int = _RUNS) -> Iterator[BenchRow]:
    """Yield rows that compare imports and `--help` with a bare interpreter, and our builder of an agent with
    LangGraph's.
    """
    bare = "python -c pass"
    builder = "from langgraph.graph import StateGraph"
    ours = "from ras_agent import create_ras_agent"
    with TemporaryDirectory() as compiled:
        yield _row(
            "import ras_agent",
            ("-c", "import ras_agent"),
            bare,
            _BARE,
            1.6,
            runs,
            compiled,
        )
        yield _row("ras-agent --help", _HELP, bare, _BARE, 15, runs, compiled)
        yield _row(
            ours,
            ("-c", f"{ours}; create_ras_agent"),
            builder,
            ("-c", builder),
            1.6,
            runs,
            compiled,
        )


def _row(
    name: str,
    ours: Sequence[str],
    peer: str,
    theirs: Sequence[str],
    at_most: float,
    runs: int,
    compiled: str,
) -> BenchRow:
    pairs = []
    for _ in range(runs + 1):
        pairs.append((_processor_ms(ours, compiled), _processor_ms(theirs, compiled)))
    # the first run reads the disk and compiles
    return median_row(name, "ms of processor", peer, pairs[1:], at_most)


def _processor_ms(arguments: Sequence[str], compiled: str) -> float:
    """Run python with `arguments`, without the checkout on its path. Return its processor time in milliseconds.

    Args:
        compiled: the folder for compiled modules.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # an empty PYTHONDONTWRITEBYTECODE switches it off
    environment = {
        **os.environ,
        "COLUMNS": "120",
        "PYTHONPYCACHEPREFIX": compiled,
        "PYTHONDONTWRITEBYTECODE": "",
    }
    command = [sys.executable, "-P", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
