"""The gym's environment keeps the contract that it sells, ras_agent.testing.environments."""

from typing import Any

import pytest

from ras_agent import Limits
from ras_agent.app.sample import sample_passages
from ras_agent.gym import Rewards, environment_factory
from ras_agent.testing import ENVIRONMENT_CHECKS, Check, EnvironmentCase

ROW = {
    "prompt": [{"role": "user", "content": ""}],
    "question": "In which city was the inventor of dynamite born?",
    "answers": ["Stockholm"],
    "supporting_ids": ["dynamite", "alfred-nobel"],
}


@pytest.fixture(scope="module", params=["offline answerer", "no answer"])
def case(request: pytest.FixtureRequest) -> EnvironmentCase:
    rewards = Rewards(
        f1=float(request.param == "offline answerer"), new_support=0.2, tokens=-0.1
    )
    make: Any = environment_factory(
        index=sample_passages(), rewards=rewards, limits=Limits(max_hops=3, k=3)
    )
    return EnvironmentCase(make, ROW)


@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=str)
def test_contract(check: Check, case: EnvironmentCase) -> None:
    check(case)
