"""Every answerer keeps one contract, ras_agent.testing.answerers."""

from typing import Any

import pytest

from ras_agent.running.protocols import Answerer
from ras_agent.testing import ANSWERER_CHECKS, Check, check_answerer
from ras_agent.tools.roles import RoleOptions, resolve_answerer, role_name


@pytest.fixture(
    params=[
        "offline",
        "offline, facts alone",
        "chat model",
        "chat model, few-shot",
        "chat model, long",
        "chat model, chain",
        "chat model, text",
    ]
)
def answerer(request: pytest.FixtureRequest, scripted_model: Any) -> Answerer:
    if request.param == "offline":
        return resolve_answerer("offline")
    style = "long" if "long" in request.param else "short"
    layout = {"chain": "chain", "text": "chain-of-text"}.get(
        request.param.rpartition(", ")[2], "evidence"
    )
    model = scripted_model(("", "Answer: Water of Leith [2][1][3][6][99]"))
    return resolve_answerer(
        model,
        RoleOptions(style=style, layout=layout, few_shot="few-shot" in request.param),
    )


def test_it_has_a_name(answerer: Answerer) -> None:
    assert role_name(answerer)


@pytest.mark.parametrize("check", ANSWERER_CHECKS, ids=str)
def test_contract(check: Check, answerer: Answerer) -> None:
    check(answerer)


def test_a_chat_model_that_abstains_keeps_the_rest_of_the_contract(
    scripted_model: Any,
) -> None:
    check_answerer(
        resolve_answerer(scripted_model(("", "Answer: [UNKNOWN]"))), abstains=True
    )
