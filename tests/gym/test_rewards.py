"""Parts of a reward: what is measured of an episode, and what is left out."""

from __future__ import annotations

import pytest

from ras_agent import Passage
from ras_agent.eval.metrics import Outcome
from ras_agent.eval.question import Question
from ras_agent.gym import Episode, Rewards, parts_of, support_gains
from ras_agent.records import Citation

A, B, C = (Passage(name, f"Text of {name}: Leith.", name) for name in "abc")
QUESTION = Question("q", "Which river?", ("Leith",), ("a", "b"))
NONE = Rewards(f1=0.0, gold=0.0, form=0.0)


def _parts(weights: dict[str, float], episode: Episode) -> dict[str, float]:
    zero = dict.fromkeys(("f1", "gold", "form"), 0.0)
    return parts_of(episode, Rewards(**{**zero, **weights}))  # type: ignore[arg-type]


def _abstention(abstained: bool, passages: tuple[Passage, ...], question: Question = QUESTION) -> float:
    outcome = Outcome("", abstained=abstained, passages=passages)
    return _parts({"abstention": 1.0}, Episode(question, outcome))["abstention"]


def test_a_part_without_weight_is_not_computed() -> None:
    assert parts_of(Episode(QUESTION, Outcome("Leith", passages=(A,))), Rewards(gold=0.0, form=0.0)) == {"f1": 1.0}


def test_a_part_that_does_not_apply_adds_nothing() -> None:
    without_gold = Question("q", "Which river?", ("Leith",))
    rewards = Rewards(f1=0.0, form=0.0)
    assert parts_of(Episode(without_gold, Outcome("", passages=(A,))), rewards) == {}
    assert rewards.total({}) == 0.0


def test_the_reward_is_the_weighted_sum_in_which_costs_are_negative() -> None:
    rewards = Rewards(f1=2.0, gold=1.0, form=0.0, searches=-0.5)
    assert rewards.total({"f1": 0.5, "gold": 1.0, "searches": 0.4}) == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("hops", "gains"),
    [
        ([[A, C], [B]], (0.5, 0.5)),
        ([[B], [A, C]], (0.5, 0.5)),
        ([[A, B], [A]], (1.0, 0.0)),
        ([[C], [C]], (0.0, 0.0)),
        ([], ()),
    ],
)
def test_each_search_gains_the_gold_passages_that_it_reached_first(
    hops: list[list[Passage]], gains: tuple[float, ...]
) -> None:
    assert support_gains(QUESTION, hops) == gains


def test_new_support_is_the_share_of_searches_that_gained() -> None:
    episode = Episode(QUESTION, Outcome(""), hops=[[A], [A, C], [B]])
    assert _parts({"new_support": 1.0}, episode) == {"new_support": pytest.approx(2 / 3)}


@pytest.mark.parametrize(("hops", "stop", "enough"), [(1, 0.0, 1.0), (2, 1.0, 1.0), (3, 0.0, 1.0)])
def test_the_stop_is_judged_by_gold_hops_and_by_what_had_been_reached(hops: int, stop: float, enough: float) -> None:
    outcome = Outcome("", passages=(A, B), hops=hops, stop_reason="sufficient")
    assert _parts({"stop": 1.0, "enough": 1.0}, Episode(QUESTION, outcome)) == {"stop": stop, "enough": enough}


def test_an_episode_without_an_end_has_no_stop_to_judge() -> None:
    assert _parts({"stop": 1.0, "enough": 1.0}, Episode(QUESTION, Outcome("", passages=(A, B), hops=2))) == {}


def test_abstaining_is_right_exactly_where_the_passages_hold_no_answer() -> None:
    other = Passage("d", "Nothing about it.")
    assert (_abstention(True, (other,)), _abstention(False, (other,))) == (1.0, 0.0)
    assert (_abstention(True, (A,)), _abstention(False, (A,))) == (0.0, 1.0)


def test_for_yes_and_no_the_gold_passages_say_whether_abstaining_is_right() -> None:
    question = Question("q", "Is it long?", ("yes",), ("a", "b"))
    assert (_abstention(True, (A,), question), _abstention(False, (A, B), question)) == (1.0, 1.0)


def test_a_question_without_an_answer_is_for_abstaining() -> None:
    assert _abstention(True, (A,), Question("q", "Which river?", ())) == 1.0


def test_citations_hold_the_answer_and_are_of_passages_that_were_found() -> None:
    def part(place: str, invented: int) -> float:
        outcome = Outcome("Leith", citations=(Citation(1, place),), passages=(A, Passage("d", "Nothing.")))
        return _parts({"citations": 1.0}, Episode(QUESTION, outcome, invented=invented))["citations"]

    assert (part("a", 0), part("d", 0), part("a", 1)) == (1.0, 0.0, 0.0)


def test_form_is_the_share_of_calls_that_could_be_followed_and_nothing_without_an_end() -> None:
    def form(finished: bool) -> float:
        episode = Episode(QUESTION, Outcome(""), calls=4, followed=3, finished=finished)
        return _parts({"form": 1.0}, episode)["form"]

    assert (form(True), form(False)) == (0.75, 0.0)


def test_searches_and_tokens_can_be_made_costs() -> None:
    episode = Episode(QUESTION, Outcome(""), hops=[[A], [B]], shown=1500, max_hops=4)
    assert _parts({"searches": -1.0, "tokens": -0.1}, episode) == {"searches": 0.5, "tokens": 1.5}


def test_any_registered_metric_can_be_a_part() -> None:
    outcome = Outcome("Leith", passages=(C, A, B))
    assert _parts({"metrics": {"mrr": 1.0, "recall@2": 1.0}}, Episode(QUESTION, outcome)) == {  # type: ignore[dict-item]
        "mrr": 0.5,
        "recall@2": 0.5,
    }


@pytest.mark.parametrize(
    ("rewards", "needed"),
    [
        (Rewards(f1=0.0), False),
        (Rewards(f1=0.0, metrics={"all_recall": 1.0}), False),
        (Rewards(), True),
        (Rewards(f1=0.0, citations=1.0), True),
        (Rewards(f1=0.0, metrics={"squad_f1": 1.0}), True),
    ],
)
def test_an_answer_is_needed_only_by_parts_that_look_at_it(rewards: Rewards, needed: bool) -> None:
    assert rewards.need_answer is needed
