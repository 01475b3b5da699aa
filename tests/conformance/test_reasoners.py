"""Every reasoner keeps one contract, ras_agent.testing.planners."""

from typing import Any

import pytest

from ras_agent.running.protocols import Reasoner
from ras_agent.testing import REASONER_CHECKS, Check
from ras_agent.tools.roles import resolve_reasoner, role_name


@pytest.fixture(params=["offline", "chat model"])
def reasoner(request: pytest.FixtureRequest, scripted_model: Any) -> Reasoner:
    if request.param == "offline":
        return resolve_reasoner("offline")
    return resolve_reasoner(
        scripted_model(
            ("", "The Water of Leith flows through Edinburgh.\nA second line.")
        )
    )


def test_it_has_a_name(reasoner: Reasoner) -> None:
    assert role_name(reasoner)


@pytest.mark.parametrize("check", REASONER_CHECKS, ids=str)
def test_contract(check: Check, reasoner: Reasoner) -> None:
    check(reasoner)
