"""Processes that work for this one: how they end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ras_agent.tools.kg.in_processes import _serve
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.spread.child import Child, in_words

SCRIPT = """
import os, signal
from ras_agent.tools.spread.child import Child
from ras_agent.tools.kg.in_processes import _serve
from ras_agent.tools.offline.extractor.extract import OfflineExtractor

if __name__ == "__main__":
    child = Child(_serve, OfflineExtractor())
    child.pipe.send([])
    child.pipe.recv()
    print("at work", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_child_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    # returns when everyone has closed the output that children inherit
    ended = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, timeout=120)
    assert (ended.stdout, ended.returncode) == ("at work\n", -9)


def test_a_child_ends_with_its_pipe_and_says_how() -> None:
    child = Child(_serve, OfflineExtractor())
    child.pipe.send([])
    assert child.pipe.recv() == []
    child.pipe.close()
    child._process.join()
    told = "a worker process ended (exit code 0); the same command resumes the work"
    assert str(child.died()) == f"{told}, with fewer --workers if memory is short"


def test_an_error_is_told_in_words() -> None:
    assert str(in_words(KeyError("a mistake"))) == "KeyError: 'a mistake'"
