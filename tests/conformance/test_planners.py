"""Every planner keeps one contract, ras_agent.testing.planners."""

from typing import Any

import pytest

from ras_agent.running.protocols import Planner
from ras_agent.testing import PLANNER_CHECKS, Check
from ras_agent.testing.planners import PASSAGE
from ras_agent.tools.roles import RoleOptions, resolve_planner, role_name

ANSWERED = "<answer> Edinburgh </answer>"
DIALECTS = {
    "search-r1": ("<search> Who? </search>", ANSWERED),
    "autorefine": ("<search> Who? </search>", ANSWERED),
    "r1-searcher": ("<|begin_of_query|> Who? <|end_of_query|>", ANSWERED),
    "corag": ("Who?", "Who?"),  # it never ends by itself
    "react": ("Action: Search[Who?]", "Action: Finish[Edinburgh]"),
    "tool-json": (
        '<tool_call>{"name": "search", "arguments": {"query": "Who?"}}</tool_call>',
        ANSWERED,
    ),
    "ras": ("[SUBQ] Who?", "[SUFFICIENT]"),
}


@pytest.fixture(
    params=[
        "offline",
        "chat model",
        "chat model, few-shot",
        *(f"dialect {name}" for name in DIALECTS),
    ]
)
def planner(request: pytest.FixtureRequest, scripted_model: Any) -> Planner:
    if request.param == "offline":
        return resolve_planner("offline")
    if (name := request.param.removeprefix("dialect ")) in DIALECTS:
        search, end = DIALECTS[name]
        shown = "(S> Alexander" if name == "ras" else PASSAGE.text[:20]
        return resolve_planner(
            scripted_model((shown, end), ("", search)),
            RoleOptions(dialect=name, layout="dialogue"),
        )
    model = scripted_model(
        ("Retrieved Graph Information:\n<facts>\n(S> Alexander", "[SUFFICIENT]"),
        ("", "[SUBQ] Who?"),
    )
    return resolve_planner(model, RoleOptions(few_shot="few-shot" in request.param))


def test_it_has_a_name(planner: Planner) -> None:
    assert role_name(planner)


@pytest.mark.parametrize("check", PLANNER_CHECKS, ids=str)
def test_contract(check: Check, planner: Planner) -> None:
    check(planner)
