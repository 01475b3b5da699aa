"""Scores against literals worked out by hand from the SQuAD and HotpotQA rules."""

import pytest

from ras_agent.eval.metrics import all_recalled_at, exact_match, normalise_answer, recall_at, token_f1


def test_normalisation_drops_case_punctuation_articles_and_extra_space() -> None:
    assert normalise_answer(" The  Water-of Leith, a river! ") == "waterof leith river"


def test_exact_match_takes_any_of_the_gold_answers() -> None:
    assert exact_match("the U.S.", ["America", "US"]) == 1.0
    assert exact_match("Canada", ["America", "US"]) == 0.0


def test_f1_counts_shared_tokens_with_their_multiplicity() -> None:
    # 2 shared of 3 predicted and of 4 gold: P 2/3, R 1/2
    assert token_f1("new york city", ["new york state fair"]) == pytest.approx(4 / 7)
    assert token_f1("ha ha ha", ["ha"]) == pytest.approx(0.5)


def test_f1_is_the_best_over_the_gold_answers() -> None:
    assert token_f1("Edinburgh", ["Glasgow", "edinburgh"]) == 1.0


@pytest.mark.parametrize(("prediction", "gold"), [("yes", "yes it is"), ("no one", "no"), ("noanswer", "no answer")])
def test_a_closed_answer_scores_only_when_exact(prediction: str, gold: str) -> None:
    assert token_f1(prediction, [gold]) == 0.0


def test_empty_prediction_scores_nothing() -> None:
    assert token_f1("", ["x"]) == 0.0
    assert exact_match("", ["x"]) == 0.0


def test_recall_counts_distinct_gold_ids_in_the_first_k() -> None:
    assert recall_at(2, ["a", "b", "c"], ["a", "c"]) == 0.5
    assert recall_at(3, ["a", "b", "c"], ["a", "c", "c"]) == 1.0
    assert recall_at(5, ["a"], []) == 0.0


def test_all_recalled_needs_every_gold_id() -> None:
    assert all_recalled_at(2, ["a", "b", "c"], ["a", "c"]) == 0.0
    assert all_recalled_at(3, ["a", "b", "c"], ["a", "c"]) == 1.0
