"""The engine of a run, its server, and the prompts that its model has learnt.

ENGINE names the engine: "transformers", whose server is part of the package transformers, where it is not set; `make
engines` sets the others. A test that needs a feature that the engine lacks is left out, not skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines import small
from tests.engines.servers import ENGINES, Engine, Server, serving
from tests.engines.train import FOLDER

CHOSEN = ENGINES[os.environ.get("ENGINE", "transformers")]
os.environ |= CHOSEN.environment  # for an engine in this process, too


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out the tests of this folder that need a feature that the chosen engine lacks."""
    here = [item for item in items if Path(item.path).parent == Path(__file__).parent]
    features = CHOSEN.features
    if CHOSEN.name != "vllm" and small.is_there():
        features |= {"small"}
    left_out = [
        item
        for item in here
        if any(not set(mark.args) <= features for mark in item.iter_markers("needs"))
    ]
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine that serves the model."""
    return CHOSEN


@pytest.fixture(scope="session")
def server(engine: Engine) -> Iterator[Server]:
    """A server of the model, which lives as long as the session."""
    tools = (
        ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
        if engine.name == "vllm"
        else ()
    )
    with serving(engine, FOLDER, *tools) as served:
        yield served


@pytest.fixture(scope="session")
def taught() -> list[dict[str, Any]]:
    """The lessons whose reply is a text: those of a call are tried by an agent that calls tools."""
    from tests.engines.lessons import lessons

    return [lesson for lesson in lessons() if "<tool_call>" not in json.dumps(lesson)]
