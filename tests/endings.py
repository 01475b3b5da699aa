"""The lines that a run of the tests prints at its end: which slow tests it left out, and which were skipped and how
to run them.

A slow test is marked with its kind, `@pytest.mark.slow("trainings")`, or by a fixture that is slow itself. `make test`
leaves them out, `make test-all` runs them too. In a parallel run the workers collect and the controller speaks: the
tests that a worker has left out reach it by `workeroutput`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

SLOW_FIXTURES = {"browser": "browsers", "memorising_model": "trainings"}
"""Fixtures that make a test slow, and its kind then."""

ALLOWED_SKIPS = {
    "a LangChain vector store has no corpus order": "the contract's promise of order does not apply to it",
}
"""Reasons for which a test may be skipped where everything is installed, and why."""

LEFT_OUT = pytest.StashKey[Counter[str]]()
_SENT = "slow tests left out"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use a slow fixture, before `-m` chooses."""
    for item in items:
        for fixture, kind in SLOW_FIXTURES.items():
            if (
                fixture in getattr(item, "fixturenames", ())
                and item.get_closest_marker("slow") is None
            ):
                item.add_marker(pytest.mark.slow(kind))


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count the slow tests that `-m "not slow"` leaves out, by kind."""
    for item in items:
        mark = item.get_closest_marker("slow")
        if mark is not None:
            item.config.stash.setdefault(LEFT_OUT, Counter())[mark.args[0]] += 1


class ParallelRun:
    """Plugin of the controller of a parallel run: takes the tests that a worker has left out from the first that ends."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Keep the counts; each worker collects everything, so that they are the same from each."""
        node.config.stash[LEFT_OUT] = Counter(
            getattr(node, "workeroutput", {}).get(_SENT, {})
        )


def pytest_configure(config: pytest.Config) -> None:
    """Listen to the workers, if there are any."""
    config.pluginmanager.register(ParallelRun())


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the tests left out by a worker; fail the run for unexpected skips if PYTEST_NO_SKIPS is set, as in CI."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_SENT] = dict(
            session.config.stash.get(LEFT_OUT, Counter())
        )
    if (
        os.environ.get("PYTEST_NO_SKIPS")
        and summary_of_skips(_skipped(session.config))[1]
        and not session.exitstatus
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List the skipped tests and how to run them (a reason names its remedy), and those that `make test-all` adds."""
    lines, unexpected = summary_of_skips(_skipped(config))
    if lines:
        terminalreporter.section("skipped tests, and what they need")
        for line in lines:
            terminalreporter.write_line(line)
    if unexpected and os.environ.get("PYTEST_NO_SKIPS"):
        terminalreporter.write_line(
            "PYTEST_NO_SKIPS is set: tests skipped for these reasons are failures",
            red=True,
        )
    left_out = config.stash.get(LEFT_OUT, Counter[str]())
    if left_out:
        kinds = ", ".join(f"{count} {kind}" for kind, count in left_out.most_common())
        terminalreporter.write_line(
            f"`make test-all` adds {left_out.total()} slow tests: {kinds}"
        )


def summary_of_skips(reasons: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return lines that count skipped tests by reason, and the reasons that are not allowed where all is installed."""
    counts = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    lines = [f"{count:5}  {reason}" for reason, count in counts.most_common()]
    return lines, [reason for reason in counts if reason not in ALLOWED_SKIPS]


def _skipped(config: pytest.Config) -> list[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    return [
        report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple)
    ]
