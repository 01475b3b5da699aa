"""Every rewriter keeps one contract, ras_agent.testing.rewriters."""

from typing import Any

import pytest

from ras_agent.running.protocols import Rewriter
from ras_agent.testing import REWRITER_CHECKS, Check
from ras_agent.tools.roles import resolve_rewriter, role_name


@pytest.fixture(params=["offline", "chat model"])
def rewriter(request: pytest.FixtureRequest, scripted_model: Any) -> Rewriter:
    if request.param == "offline":
        return resolve_rewriter("offline")
    return resolve_rewriter(
        scripted_model(("", "Where was Alexander Graham Bell born?\nA second line."))
    )


def test_it_has_a_name(rewriter: Rewriter) -> None:
    assert role_name(rewriter)


@pytest.mark.parametrize("check", REWRITER_CHECKS, ids=str)
def test_contract(check: Check, rewriter: Rewriter) -> None:
    check(rewriter)
