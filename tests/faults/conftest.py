"""Fixtures of the fault suite: attacks on the package, each counted as tries and failures, with a table at the end.

`make faults` runs them all; `make test` runs none, for they take minutes. `--seed` draws other inputs, `--share 0.1`
makes a tenth of the tries.
"""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.faults.attack import Attack

ATTACKS = pytest.StashKey[list[Attack]]()
SKIPPED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed",
        type=int,
        default=0,
        help="draw the fault suite's inputs by this number",
    )
    parser.addoption(
        "--share",
        type=float,
        default=1.0,
        help="make this share of the fault suite's tries",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ATTACKS] = []
    # a shell that runs the suite in the background has its children ignore SIGINT, which some attacks send
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note which tests are skipped: they may try nothing."""
    report = yield
    item.stash[SKIPPED] = item.stash.get(SKIPPED, False) or report.skipped
    return report


@pytest.fixture
def attack(request: pytest.FixtureRequest) -> Iterator[Attack]:
    """The counts of the test that asks for it, named by the first line of its docstring."""
    name = (
        (request.function.__doc__ or request.node.name)
        .strip()
        .splitlines()[0]
        .rstrip(".")
    )
    if hasattr(request.node, "callspec"):
        name += f" [{request.node.callspec.id}]"
    counts = Attack(
        name, request.config.getoption("--seed"), request.config.getoption("--share")
    )
    request.config.stash[ATTACKS].append(counts)
    yield counts
    assert counts.tried or request.node.stash.get(SKIPPED, False), (
        "the attack tried nothing"
    )
    if counts.failures:
        told = "\n".join(counts.failures[:10])
        pytest.fail(
            f"{len(counts.failures)} of {counts.tried} tries failed:\n{told}",
            pytrace=False,
        )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the tries and the failures."""
    attacks = config.stash[ATTACKS]
    if not attacks:
        return
    terminalreporter.section("attacks")
    width = max(len(attack.name) for attack in attacks)
    terminalreporter.write_line(f"{'attack':{width}}  {'tried':>7}  {'failed':>7}")
    for attack in attacks:
        terminalreporter.write_line(
            f"{attack.name:{width}}  {attack.tried:7,}  {len(attack.failures):7,}"
        )
    tried, failed = (
        sum(attack.tried for attack in attacks),
        sum(len(attack.failures) for attack in attacks),
    )
    terminalreporter.write_line(f"{'all':{width}}  {tried:7,}  {failed:7,}")
