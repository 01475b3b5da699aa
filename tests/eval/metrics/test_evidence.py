"""Citations and stops: cases worked out by hand."""

import pytest

from ras_agent.eval.metrics.grounding import answer_support, checkable
from ras_agent.eval.metrics.stopping import judged_stop


def test_support_needs_one_text_that_holds_the_answer() -> None:
    assert (
        answer_support(["Blair"], ["Orr lived at Fell Mill.", "Orr was born in Blair."])
        == 1.0
    )
    assert answer_support(["Blair"], ["Blairgowrie is near."]) == 0.0
    assert answer_support(["Blair"], []) == 0.0


@pytest.mark.parametrize("answer", ["yes", "No.", "True", "", "the", "unknown"])
def test_no_text_holds_a_yes_or_a_no(answer: str) -> None:
    assert not checkable(answer)


def test_a_name_can_be_checked() -> None:
    assert checkable("Blair")


@pytest.mark.parametrize(
    ("reason", "hops", "gold", "stop"),
    [
        ("sufficient", 2, 2, "on_time"),
        ("sufficient", 1, 2, "early"),
        ("sufficient", 4, 2, "late"),
        ("no_retrieval", 0, 1, "early"),
        ("max_hops", 5, 2, None),
        ("repeated_subquery", 2, 2, None),
        ("sufficient", 2, None, None),
    ],
)
def test_only_the_planners_own_stop_is_judged(
    reason: str, hops: int, gold: int | None, stop: str | None
) -> None:
    assert judged_stop(reason, hops, gold) == stop
