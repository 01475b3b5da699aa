"""No policy that has learnt nothing earns more than a plan that knows the way, whatever part is rewarded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ras_agent import Answer, Limits, Passage, QuestionGraph
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Citation, Step
from ras_agent.eval.metrics import metric_names
from ras_agent.eval.question import Question
from ras_agent.gym import Rewards, environment_factory, rows, search_parts
from ras_agent.gym.environment import GraphSearch
from ras_agent.testing import ConformanceError, check_rewards
from ras_agent.testing.rewards import PLAN, POLICIES

_NONE = dict.fromkeys(("f1", "gold", "form"), 0.0)
PERSONS = [f"{first} {last}" for first in ("Ada", "Bruno", "Clara", "Dario", "Elsa", "Fritz", "Gerda", "Hugo")
           for last in ("Akers", "Brandt", "Castell", "Dorn", "Ekman")]  # fmt: skip
_SYLLABLES = ("bal", "cor", "dun", "fel", "gar", "hol", "kel", "lor")


def _city(number: int) -> str:
    return f"{_SYLLABLES[number % 8]}{_SYLLABLES[number // 8]}burg".capitalize()


def _river(number: int) -> str:
    return f"{_SYLLABLES[number // 8]}{_SYLLABLES[number % 8]}ach".capitalize()


TEXTS = [
    text
    for number, person in enumerate(PERSONS)
    for text in (
        {
            "id": f"p{number}",
            "title": person,
            "text": f"{person} was born in {_city(number)}.",
        },
        {
            "id": f"c{number}",
            "title": _city(number),
            "text": f"The {_river(number)} flows through {_city(number)}.",
        },
    )
]
QUESTIONS = [
    Question(
        f"q{number}",
        f"Which river flows through the city where {person} was born?",
        (_river(number),),
        (person, _city(number)),
        by_title=True,
    )
    for number, person in enumerate(PERSONS)
]
PARTS = (
    "f1",
    "em",
    "gold",
    "new_support",
    "stop",
    "enough",
    "abstention",
    "citations",
    "form",
)
MIXED: tuple[dict[str, Any], ...] = (
    {"f1": 1.0, "abstention": 1.0},
    {"f1": 1.0, "citations": 1.0},
    {"f1": 1.0, "gold": 1.0, "form": 0.1, "searches": -0.05},
    {"gold": 1.0, "new_support": 1.0},
    {"metrics": {"golden_match": 1.0}},
)


class OftenWrong:
    """Answerer that finds the river in every third question, cites its passage, and is sure of itself in the others."""

    def answer(
        self,
        question: str,
        graph: QuestionGraph,
        passages: Sequence[Passage],
        steps: Sequence[Step],
    ) -> Answer:
        rivers = [
            fact.subject for fact in graph.facts if fact.predicate == "flows through"
        ]
        if not rivers or len(question) % 3:
            return Answer("Danube")
        return Answer(rivers[-1], (Citation(len(passages), passages[-1].id),))


@pytest.fixture(scope="module")
def parts() -> Any:
    return search_parts(
        index=TEXTS, answerer=OftenWrong(), limits=Limits(max_hops=4, k=1)
    )


def _check(parts: Any, weights: dict[str, Any]) -> dict[str, float]:
    rewards = Rewards(**{**_NONE, **weights})
    some = rows(QUESTIONS[::2])
    return check_rewards(lambda: GraphSearch(parts, rewards=rewards), some)


@pytest.mark.parametrize("weights", [*({name: 1.0} for name in PARTS), *MIXED], ids=str)
def test_no_policy_that_has_learnt_nothing_wins(
    parts: Any, weights: dict[str, Any]
) -> None:
    earned = _check(parts, weights)
    assert len(earned) == 12
    assert next(iter(earned)) == "the plan"


def test_a_reward_that_such_a_policy_wins_is_refused(parts: Any) -> None:
    with pytest.raises(ConformanceError, match=r"search nonsense and abstain: -0\.250"):
        _check(parts, {"searches": -1.0})


def _metrics() -> list[str]:
    names = []
    for name in metric_names():
        if not name.startswith("stopped_"):  # faults
            names.append(name.replace("@k", "@60"))
    return names


@pytest.fixture(scope="module")
def earned(parts: Any) -> dict[str, dict[str, float]]:
    """What each policy earns by each registered metric, over all questions."""
    rewards = Rewards(**_NONE, metrics=dict.fromkeys(_metrics(), 1.0))
    environment = GraphSearch(parts, rewards=rewards)
    sums: dict[str, dict[str, float]] = {}
    for name, course in (PLAN, *POLICIES.items()):
        of_policy = sums.setdefault(name, {})
        for row in rows(QUESTIONS):
            environment.reset(**row)
            course(environment, row)
            for part, value in environment.reward_parts.items():
                of_policy[part] = of_policy.get(part, 0.0) + value
    return sums


@pytest.mark.parametrize("metric", _metrics())
def test_no_registered_metric_is_won_by_a_policy_that_has_learnt_nothing(
    earned: dict[str, dict[str, float]], metric: str
) -> None:
    plan = earned["the plan"].get(metric, 0.0)
    best = max(of_policy.get(metric, 0.0) for of_policy in earned.values())
    assert best <= plan + 1e-9


@pytest.mark.parametrize("fault", ["stopped_early", "stopped_late"])
def test_a_fault_is_a_cost_and_never_paid(fault: str) -> None:
    assert Rewards(metrics={fault: -0.5}).weights()[fault] == -0.5
    with pytest.raises(SettingsError, match="give a negative weight"):
        Rewards(metrics={fault: 0.5})


def test_a_plan_needs_titles() -> None:
    make = environment_factory(index=TEXTS)
    with pytest.raises(ValueError, match="the row names no gold passages"):
        check_rewards(make, [{"question": "Which river?", "answers": ["Leith"]}])
    with pytest.raises(ValueError, match="there are no rows"):
        check_rewards(make, [])
