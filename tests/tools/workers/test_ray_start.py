"""A Ray that is started here asks for a token, and a warning says who can reach it. No Ray is needed."""

import asyncio
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ras_agent.tools.workers import cluster
from ras_agent.tools.workers.cluster import Cluster
from ras_agent.tools.workers.pool import WorkSpec
from tests.messages import says


class Started(Exception):
    """Ends the test where Ray has started."""


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Any:
    """start(address): the arguments with which Ray would be started."""

    begun: list[Any] = []

    def end() -> None:
        raise Started

    ray = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda *address, **options: begun.extend((address, options)),
        cluster_resources=end,
        shutdown=lambda: None,
    )
    monkeypatch.setattr(cluster, "ray_library", lambda: ray)
    monkeypatch.setattr(cluster, "find_spec", lambda name: object())
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "")
    monkeypatch.delenv("RAY_AUTH_MODE")

    def run(address: str | None) -> Any:
        async def opened() -> None:
            async with Cluster(WorkSpec("m:f"), address=address).opened(1):
                pass

        with pytest.raises(Started):
            asyncio.run(opened())
        return begun

    return run


def test_a_ray_of_this_machine_asks_for_a_token_and_has_no_dashboard(
    start: Any,
) -> None:
    with pytest.warns(
        RuntimeWarning,
        match=says("lets in whoever has the token", "~/.ray/auth_token", "--engine"),
    ):
        (address,), options = start(None)
    assert (address, options["include_dashboard"], os.environ["RAY_AUTH_MODE"]) == (
        None,
        False,
        "token",
    )


def test_an_older_ray_lets_everybody_in_and_the_warning_says_so(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.warns(
        RuntimeWarning,
        match=says("lets in everybody who reaches them", "run any code", "Ray 2.52"),
    ):
        start(None)


def test_a_cluster_that_was_named_has_its_own_rules(start: Any) -> None:
    (address,), options = start("10.0.0.1:6379")
    assert (address, "include_dashboard" in options, "RAY_AUTH_MODE" in os.environ) == (
        "10.0.0.1:6379",
        False,
        False,
    )
