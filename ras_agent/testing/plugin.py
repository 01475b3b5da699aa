"""Provides pytest with the fixture `cassette`: a test's model calls, recorded by `pytest --record`, otherwise
replayed.

    # conftest.py
    pytest_plugins = ["ras_agent.testing.plugin"]
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterator
from contextlib import suppress

import pytest

from ras_agent.testing.cassettes import Cassette

_PASSED = pytest.StashKey[bool]()
_LONGEST = 150  # characters of a file's name, which is at most 255 bytes


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--record`."""
    about = "Ask the models and write new cassettes for the tests that pass; without it, no model is asked."
    parser.getgroup("ras-agent").addoption("--record", action="store_true", help=about)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Store whether the test itself passed, which the fixture needs when it ends later."""
    report = yield
    if call.when == "call":
        item.stash[_PASSED] = report.passed
    return report


class _NotPassed(Exception):
    """Raised to end the block of a cassette, so that nothing is written."""


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """Yield the test's cassette, cassettes/MODULE/TEST.jsonl next to the test's file. It is written only if the
    test passes.
    """
    path = (
        request.path.parent
        / "cassettes"
        / request.path.stem
        / f"{_file_name(request.node.nodeid)}.jsonl"
    )
    with (
        suppress(_NotPassed),
        Cassette(path, record=bool(request.config.getoption("--record"))) as cassette,
    ):
        yield cassette
        if not request.node.stash.get(_PASSED, False):
            raise _NotPassed


def _file_name(node_id: str) -> str:
    """Return the file name for a test, such as "TestBell.test_born", with a hash if another test could have the same
    name."""
    test = node_id.partition("::")[2]
    plain, bracket, parameters = test.partition("[")
    name = f"{plain.replace('::', '.')}{bracket}{parameters}"
    folded = re.sub(r"[^\w.=-]+", "-", name).strip("-")[:_LONGEST]
    return (
        folded
        if folded == name
        else f"{folded}-{hashlib.sha256(test.encode('utf-8', 'replace')).hexdigest()[:8]}"
    )
