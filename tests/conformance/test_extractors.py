"""Every extractor keeps one contract, ras_agent.testing.extractors."""

from typing import Any

import pytest

from ras_agent.running.protocols import Extractor
from ras_agent.testing import EXTRACTOR_CHECKS, Check
from ras_agent.tools.roles import RoleOptions, resolve_extractor, role_name

REPLY = """(S> Alexander Graham Bell | P> was born in | O> Edinburgh)
(S> Water of Leith | P> flows through | O> Edinburgh)"""


@pytest.fixture(
    params=[
        "offline",
        "chat model",
        "chat model, few-shot",
        "text2triple, t5",
        "text2triple, llama",
    ]
)
def extractor(request: pytest.FixtureRequest, scripted_model: Any) -> Extractor:
    if request.param == "offline":
        return resolve_extractor("offline")
    if "text2triple" in request.param:
        kind, _, options = request.param.partition(", ")[2].partition("#")
        folder = request.getfixturevalue("memorising_model")(kind)
        return resolve_extractor(f"text2triple:{folder}#{options}")
    return resolve_extractor(
        scripted_model(("", REPLY)), RoleOptions(few_shot="few-shot" in request.param)
    )


def test_it_has_a_name(extractor: Extractor) -> None:
    assert role_name(extractor)


@pytest.mark.parametrize("check", EXTRACTOR_CHECKS, ids=str)
def test_contract(check: Check, extractor: Extractor) -> None:
    check(extractor)
