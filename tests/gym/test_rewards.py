"""Parts of a reward: which are measured of an episode, and which are left out."""

from __future__ import annotations

import pytest

from ras_agent import Passage
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.records import Citation
from ras_agent.eval.metrics import Outcome
from ras_agent.eval.question import Question
from ras_agent.gym import Episode, Rewards, parts_of, support_gains

A, B, C = (Passage(name, f"Text of {name}: Leith.", name) for name in "abc")
QUESTION = Question("q", "Which river?", ("Leith",), ("a", "b"))
NONE = Rewards(f1=0.0, gold=0.0, form=0.0)


def _parts(weights: dict[str, float], episode: Episode) -> dict[str, float]:
    zero = dict.fromkeys(("f1", "gold", "form"), 0.0)
    return parts_of(episode, Rewards(**{**zero, **weights}))  # type: ignore[arg-type]


def _abstention(
    answer: str, *passages: Passage, question: Question = QUESTION
) -> float:
    outcome = Outcome(answer, abstained=not answer, passages=passages)
    return _parts({"abstention": 1.0}, Episode(question, outcome, hops=[passages]))[
        "abstention"
    ]


def test_a_part_without_weight_is_not_computed() -> None:
    assert parts_of(
        Episode(QUESTION, Outcome("Leith", passages=(A,))), Rewards(gold=0.0, form=0.0)
    ) == {"f1": 1.0}


def test_a_part_that_does_not_apply_adds_nothing() -> None:
    without_gold = Question("q", "Which river?", ("Leith",))
    rewards = Rewards(f1=0.0, form=0.0)
    assert parts_of(Episode(without_gold, Outcome("", passages=(A,))), rewards) == {}
    assert rewards.total({}) == 0.0


def test_the_reward_is_the_weighted_sum_in_which_costs_are_negative() -> None:
    rewards = Rewards(f1=2.0, gold=1.0, form=0.0, searches=-0.5)
    assert rewards.total({"f1": 0.5, "gold": 1.0, "searches": 0.4}) == pytest.approx(
        1.8
    )


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


@pytest.mark.parametrize(
    ("hops", "support"),
    [
        ([[A]], 0.5),
        ([[A], [B]], 1.0),  # a second gold search pays
        ([[A, B]], 1.0),
        ([[A], [A, C], [B]], 2 / 3),  # one in vain costs
        ([], 0.0),
    ],
)
def test_new_support_is_what_the_searches_brought(
    hops: list[list[Passage]], support: float
) -> None:
    episode = Episode(QUESTION, Outcome(""), hops=hops)
    assert _parts({"new_support": 1.0}, episode) == {
        "new_support": pytest.approx(support)
    }


@pytest.mark.parametrize(
    ("hops", "stop", "enough"), [(1, 0.0, 1.0), (2, 1.0, 1.0), (3, 0.0, 1.0)]
)
def test_the_stop_is_judged_by_gold_hops_and_by_what_had_been_reached(
    hops: int, stop: float, enough: float
) -> None:
    outcome = Outcome("", passages=(A, B), hops=hops, stop_reason="sufficient")
    assert _parts({"stop": 1.0, "enough": 1.0}, Episode(QUESTION, outcome)) == {
        "stop": stop,
        "enough": enough,
    }


def test_an_episode_without_an_end_has_no_stop_to_judge() -> None:
    assert (
        _parts(
            {"stop": 1.0, "enough": 1.0},
            Episode(QUESTION, Outcome("", passages=(A, B), hops=2)),
        )
        == {}
    )


def test_a_right_answer_is_worth_more_than_abstaining_and_that_more_than_a_wrong_one() -> (
    None
):
    other = Passage("d", "Nothing about it.")
    assert [_abstention(answer, A) for answer in ("Leith", "", "Thames")] == [
        1.0,
        0.1,
        0.0,
    ]
    assert [_abstention(answer, other) for answer in ("Leith", "", "Thames")] == [
        1.0,
        0.25,
        0.0,
    ]


def test_for_yes_and_no_the_gold_passages_say_what_abstaining_is_worth() -> None:
    question = Question("q", "Is it long?", ("yes",), ("a", "b"))
    assert (
        _abstention("", A, question=question),
        _abstention("", A, B, question=question),
    ) == (0.25, 0.1)


def test_a_question_without_an_answer_is_for_abstaining() -> None:
    assert [
        _abstention(text, A, question=Question("q", "Which river?", ()))
        for text in ("", "Leith")
    ] == [1.0, 0.0]


def test_to_abstain_without_a_search_is_worth_nothing() -> None:
    episode = Episode(QUESTION, Outcome("", abstained=True))
    assert _parts({"abstention": 1.0}, episode) == {"abstention": 0.0}


@pytest.mark.parametrize(
    ("answer", "cited", "invented", "worth"),
    [
        ("Leith", "ab", 0, 1.0),
        ("Leith", "a", 0, 2 / 3),
        ("Leith", "abc", 0, 4 / 5),  # to cite everything costs
        ("Leith", "c", 0, 0.0),
        ("Leith", "", 0, 0.0),
        ("Leith", "ab", 1, 0.0),
        ("Thames", "ab", 0, 0.0),
    ],
)
def test_citations_count_with_the_answer_and_by_gold_passages(
    answer: str, cited: str, invented: int, worth: float
) -> None:
    citations = tuple(Citation(number, name) for number, name in enumerate(cited, 1))
    outcome = Outcome(answer, citations=citations, passages=(A, B, C))
    episode = Episode(QUESTION, outcome, invented=invented)
    assert _parts({"citations": 1.0}, episode) == {"citations": pytest.approx(worth)}


@pytest.mark.parametrize(("answer", "worth"), [("yes", 1.0), ("was", 0.0), ("no", 0.0)])
def test_a_yes_or_no_is_cited_by_gold_passages(answer: str, worth: float) -> None:
    outcome = Outcome(
        answer, citations=(Citation(1, "a"), Citation(2, "b")), passages=(A, B)
    )
    episode = Episode(Question("q", "Is it long?", ("yes",), ("a", "b")), outcome)
    assert _parts({"citations": 1.0}, episode) == {"citations": worth}


@pytest.mark.parametrize(("cited", "worth"), [("a", 1.0), ("d", 0.0)])
def test_without_gold_passages_the_cited_ones_have_to_hold_the_answer(
    cited: str, worth: float
) -> None:
    outcome = Outcome(
        "Leith", citations=(Citation(1, cited),), passages=(A, Passage("d", "Nothing."))
    )
    episode = Episode(Question("q", "Which river?", ("Leith",)), outcome)
    assert _parts({"citations": 1.0}, episode) == {"citations": worth}


@pytest.mark.parametrize("name", ["golden_match", "multihop_accuracy"])
def test_a_text_that_names_everything_is_paid_less_by_a_metric_that_looks_inside(
    name: str,
) -> None:
    def part(answer: str) -> float:
        return _parts({"metrics": {name: 1.0}}, Episode(QUESTION, Outcome(answer)))[
            name
        ]

    assert (part("the Leith"), part("Leith " + 29 * "name "), part("Thames")) == (
        1.0,
        0.1,
        0.0,
    )


@pytest.mark.parametrize("name", ["answer_recall", "hr@9", "contained_recall"])
def test_a_set_of_right_answers_may_all_be_named(name: str) -> None:
    towns = ("Leith", "Perth", "Wick", "Oban", "Ayr", "Nairn")
    question = Question("q", "Which towns?", towns)
    episode = Episode(question, Outcome("; ".join(towns)))
    assert _parts({"metrics": {name: 1.0}}, episode)[name] == 1.0


def test_metrics_of_citations_count_with_the_answer() -> None:
    cited = (Citation(1, "a"), Citation(2, "b"))
    right = Outcome("Leith", citations=cited, passages=(A, B))
    wrong = Outcome("Text", citations=cited, passages=(A, B))
    weights = {"metrics": {"support_f1": 1.0, "citation_support": 1.0}}
    assert _parts(weights, Episode(QUESTION, right)) == {
        "support_f1": 1.0,
        "citation_support": 1.0,
    }
    assert set(_parts(weights, Episode(QUESTION, wrong)).values()) == {0.0}


def test_what_a_question_lacks_for_a_part_is_told() -> None:
    rewards = Rewards(metrics={"recall@2": 1.0, "em_text": 1.0, "support_f1": 1.0})
    assert rewards.lacking(QUESTION) == {}
    assert rewards.lacking(Question("q", "Which river?", ())) == {
        "f1": "answers",
        "gold": "gold passages",
        "recall@2": "gold passages",
        "em_text": "answers",
        "support_f1": "gold passages",
    }


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_a_weight_that_is_not_finite_is_refused(weight: float) -> None:
    with pytest.raises(
        SettingsError, match="the weight of f1 should be a finite number"
    ):
        Rewards(f1=weight)


def test_form_is_the_share_of_calls_that_could_be_followed_and_nothing_without_an_end() -> (
    None
):
    def form(finished: bool) -> float:
        episode = Episode(QUESTION, Outcome(""), calls=4, followed=3, finished=finished)
        return _parts({"form": 1.0}, episode)["form"]

    assert (form(True), form(False)) == (0.75, 0.0)


def test_searches_and_tokens_can_be_made_costs() -> None:
    episode = Episode(QUESTION, Outcome(""), hops=[[A], [B]], shown=1500, max_hops=4)
    assert _parts({"searches": -1.0, "tokens": -0.1}, episode) == {
        "searches": 0.5,
        "tokens": 1.5,
    }


def test_any_registered_metric_can_be_a_part() -> None:
    outcome = Outcome("Leith", passages=(C, A, B))
    assert _parts(
        {"metrics": {"mrr": 1.0, "recall@2": 1.0}}, Episode(QUESTION, outcome)
    ) == {  # type: ignore[dict-item]
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
def test_an_answer_is_needed_only_by_parts_that_look_at_it(
    rewards: Rewards, needed: bool
) -> None:
    assert rewards.need_answer is needed
