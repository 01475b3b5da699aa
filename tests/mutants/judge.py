"""Runs the tests of a module against its mutants, each in a process forked from one that has the libraries loaded."""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ended:
    """Describes a run of tests: pytest's exit code (negative: a signal's number) and the seconds it took."""

    code: int
    seconds: float
    processor_seconds: float


class Copy:
    """A copy of the checkout in which files are mutated; the checkout itself is never written to."""

    def __init__(self, root: Path, at: Path) -> None:
        self.at = at
        self._log = at.with_suffix(".log")
        self._modules = at.with_suffix(".modules")
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = (
            subprocess.run(listed, cwd=root, capture_output=True, check=True)
            .stdout.decode()
            .split("\0")
        )
        for name in filter(None, names):
            if os.path.lexists(root / name):
                (at / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, at / name, follow_symlinks=False)

    def measure(self, tests: Sequence[str]) -> Ended:
        """Run the tests on the unchanged files, and load the libraries they use for the runs to come."""
        ended = self.run(tests)
        if ended.code == 0:
            _load(json.loads(self._modules.read_text()))
            ended = self.run(tests)
        if ended.code != 0:
            raise SystemExit(
                f"the tests fail without any mutant: {' '.join(tests)}\n{self._log.read_text()[-3000:]}"
            )
        return ended

    def try_out(
        self, path: str, text: str, tests: Sequence[str], usual: Ended
    ) -> Ended:
        """Run the tests with `text` in the file `path`. A run that takes much longer than usual is ended."""
        file = self.at / path
        whole = file.read_text("utf-8")
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
            compiled.unlink()
        file.write_text(text, "utf-8")
        try:
            return self.run(tests, usual)
        finally:
            file.write_text(whole, "utf-8")

    def run(self, tests: Sequence[str], usual: Ended | None = None) -> Ended:
        began = time.monotonic()
        child = os.fork()
        if not child:
            self._be_the_tests(tests, usual)
        last = began + (10 * usual.seconds + 60 if usual else 1200)
        while True:
            ended, status, usage = os.wait4(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > last:
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
            time.sleep(0.02)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(
                child, signal.SIGKILL
            )  # the processes that the tests started and left behind
        code = os.waitstatus_to_exitcode(status)
        return Ended(code, time.monotonic() - began, usage.ru_utime + usage.ru_stime)

    def _be_the_tests(self, tests: Sequence[str], usual: Ended | None) -> None:
        code = 70
        try:
            os.setsid()
            os.chdir(self.at)
            if usual:
                seconds = int(4 * usual.processor_seconds + 10)
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
                sys.dont_write_bytecode = True  # of the mutant
                os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            os.environ["PYTHONPATH"] = str(self.at)
            sys.path[:] = [
                str(self.at),
                *(
                    entry
                    for entry in sys.path
                    if entry and Path(entry) != Path(self.at)
                ),
            ]
            log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            import pytest

            code = int(
                pytest.main(
                    [
                        "-x",
                        "-p",
                        "no:cacheprovider",
                        "--hypothesis-profile=thorough",
                        *tests,
                    ]
                )
            )
            if not usual:
                self._modules.write_text(json.dumps(_libraries()))
        finally:
            sys.stdout.flush()
            os._exit(code)


def _libraries() -> list[str]:
    """Return the modules that are loaded from the environment's libraries, in the order they were loaded in."""
    return [
        name
        for name, module in list(sys.modules.items())
        if "site-packages" in str(getattr(module, "__file__", None) or "")
        and "pytest" not in name
    ]


def _load(names: Iterable[str]) -> None:
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)
