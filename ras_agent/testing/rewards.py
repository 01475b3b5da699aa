"""Checks that a reward cannot be earned without learning: it compares policies that have learnt nothing with a
good plan.

    from ras_agent.gym import Rewards, environment_factory, rows
    make = environment_factory(index="my.index", rewards=Rewards(f1=1.0, citations=0.5))
    print(check_rewards(make, rows(questions)))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from ras_agent.testing.conformance import ConformanceError

Row = Mapping[str, Any]
Course = Callable[[Any, Row], None]
"""Plays an episode that has begun, up to its end."""
_MOST_NAMES = 60
_MOST_SEARCHES = 20
_ROUNDING = 1e-9


def check_rewards(make: Callable[[], Any], rows: Sequence[Row]) -> dict[str, float]:
    """Play a good plan and policies that have learnt nothing. Return the mean reward of each by name, the
    plan's first.

    The plan searches for the titles of the gold passages, `supporting_titles`, one by one, and leaves the
    answer to the answerer, as `finish` without an answer does.

    Args:
        make: Returns an environment of the gym with the rewards to check.
        rows: The arguments of `reset` for each episode, each with `supporting_titles`; about 40 are enough.

    Raises:
        ConformanceError: If any of the policies earn more than the plan; the message lists them.
        ValueError: Without rows, and for a row that names no gold passage by its title.
    """
    if not rows:
        raise ValueError(
            "there are no rows to play: give the rows of the training's questions"
        )
    for row in rows:
        if not row.get("supporting_titles"):
            raise ValueError(
                f"{row.get('question')!r:.80}: the row names no gold passages: add their titles as supporting_titles"
            )
    environment = make()
    earned = {
        name: fmean(_play(environment, course, rows))
        for name, course in (PLAN, *POLICIES.items())
    }
    plan, *others = earned
    winners = [name for name in others if earned[name] > earned[plan] + _ROUNDING]
    if winners:
        listed = "\n".join(f"  {name}: {earned[name]:.3f}" for name in winners)
        raise ConformanceError(
            f"{len(winners)} of {len(others)} policies that have learnt nothing earn more than {plan} "
            f"({earned[plan]:.3f}), so that training leads to them:\n{listed}"
        )
    return earned


def _play(environment: Any, course: Course, rows: Iterable[Row]) -> Iterable[float]:
    for row in rows:
        environment.reset(**row)
        course(environment, row)
        yield environment.get_reward()


def _finish(environment: Any, answer: str = "") -> None:
    """End the episode. `finish` is called twice, because without a search the first call is overruled."""
    for _ in range(2):
        environment.finish("enough", answer)


def _follow_plan(environment: Any, row: Row) -> None:
    for title in row["supporting_titles"]:
        environment.search(title)
    _finish(environment)


def _search_the_same(environment: Any, row: Row) -> None:
    for _ in range(_MOST_SEARCHES):
        environment.search(row["question"])
    _finish(environment)


def _search_nonsense(environment: Any, row: Row) -> None:
    environment.search("zzzz")
    _finish(environment, "[1]")  # without a text, the answer abstains


def _after_one_search(answer: Callable[[Any], str]) -> Course:
    """Return a policy that searches for the question once, and answers with the text that `answer` makes of the
    environment.
    """

    def course(environment: Any, row: Row) -> None:
        environment.search(row["question"])
        _finish(environment, answer(environment))

    return course


def _title(environment: Any) -> str:
    return str(environment.passages[0].title) if environment.passages else ""


def _passage(environment: Any) -> str:
    return f"{environment.passages[0].text} [1]" if environment.passages else ""


def _all_citations(environment: Any) -> str:
    numbers = range(1, len(environment.passages) + 1)
    return "".join(f"[{number}]" for number in numbers)


def _all_names(environment: Any) -> list[str]:
    names: dict[str, None] = {}
    for fact in environment.graph.by_id.values():
        names.setdefault(fact.subject)
        names.setdefault(fact.object)
    return [*names][:_MOST_NAMES]


PLAN: tuple[str, Course] = ("the plan", _follow_plan)
POLICIES: Mapping[str, Course] = {
    "finish at once": lambda environment, row: _finish(environment),
    "finish at once with yes": lambda environment, row: _finish(environment, "yes"),
    "search the same": _search_the_same,
    "search nonsense and abstain": _search_nonsense,
    "one search": _after_one_search(lambda environment: ""),
    "one search, its first title": _after_one_search(
        lambda environment: f"{_title(environment)} [1]"
    ),
    "one search, its first passage": _after_one_search(_passage),
    "one search, all cited": _after_one_search(
        lambda environment: f"{_title(environment)} {_all_citations(environment)}"
    ),
    "one search, all names": _after_one_search(
        lambda environment: f"{' '.join(_all_names(environment))} [1]"
    ),
    "one search, a list of all names": _after_one_search(
        lambda environment: "; ".join(_all_names(environment))
    ),
    "one search, abstains": _after_one_search(lambda environment: "[1]"),
}
"""Policies that have learnt nothing, by name."""
