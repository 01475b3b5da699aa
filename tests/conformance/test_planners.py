"""Every planner keeps one contract, ras_agent.testing.planners."""

from typing import Any

import pytest

from ras_agent.protocols import Planner
from ras_agent.testing import PLANNER_CHECKS, Check
from ras_agent.tools.roles import RoleOptions, resolve_planner, role_name


@pytest.fixture(params=["offline", "chat model", "chat model, few-shot"])
def planner(request: pytest.FixtureRequest, scripted_model: Any) -> Planner:
    if request.param == "offline":
        return resolve_planner("offline")
    model = scripted_model(
        ("Retrieved Graph Information:\n<facts>\n(S> Alexander", "[SUFFICIENT]"), ("", "[SUBQ] Who?")
    )
    return resolve_planner(model, RoleOptions(few_shot="few-shot" in request.param))


def test_it_has_a_name(planner: Planner) -> None:
    assert role_name(planner)


@pytest.mark.parametrize("check", PLANNER_CHECKS, ids=str)
def test_contract(check: Check, planner: Planner) -> None:
    check(planner)
