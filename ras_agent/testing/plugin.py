"""Plug-in of pytest with the fixture `cassette`: model calls of a test, recorded by `pytest --record`, else replayed.

# conftest.py
pytest_plugins = ["ras_agent.testing.plugin"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from ras_agent.testing.cassettes import Cassette


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--record`."""
    about = "Ask the models and write the cassettes of the tests that run anew; without it, no model is asked."
    parser.getgroup("ras-agent").addoption("--record", action="store_true", help=about)


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """The cassette of the test: cassettes/MODULE/TEST.jsonl beside its file."""
    name = re.sub(r"[^\w.=-]+", "-", request.node.name).strip("-")
    path = request.path.parent / "cassettes" / request.path.stem / f"{name}.jsonl"
    with Cassette(path, record=bool(request.config.getoption("--record"))) as cassette:
        yield cassette
