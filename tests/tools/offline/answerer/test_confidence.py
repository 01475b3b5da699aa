"""The confidence of an answer: what tells good answers from guesses, and what is left unsaid."""

import numpy as np
import pytest

from ras_agent.errors import WeightsError
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage
from ras_agent.tools.offline.answerer.answer import OfflineAnswerer
from ras_agent.tools.offline.answerer.confidence import SIGNS, Confidence, signs_of
from ras_agent.tools.offline.answerer.rank import likeliest, packaged_ranker
from ras_agent.tools.offline.question import analyse
from ras_agent.tools.offline.reading import read
from ras_agent.tools.offline.roles import offline_answerer
from ras_agent.tools.roles import RoleOptions

GENEVA = (
    Passage("geneva", "Geneva is a city in Switzerland. It lies where the Rhône leaves Lake Geneva.", "Geneva"),
    Passage("dunant", "Henry Dunant was a Swiss businessman. He was born in Geneva on 8 May 1828.", "Henry Dunant"),
)


def signs(question: str, hops: int = 1) -> dict[str, float]:
    asked, passages, ranker = analyse(question), read(GENEVA), packaged_ranker()
    ranked = ranker.rank(asked, QuestionGraph(), passages)
    found = signs_of(asked, likeliest(asked, ranked), ranked, passages, hops, ranker.rarity)
    return dict(zip(SIGNS, map(float, found), strict=True))


def test_words_that_no_passage_says_are_a_sign() -> None:
    assert signs("Who was born in Geneva?")["heard_others"] == 1.0
    assert signs("Who is the mayor of Geneva?")["heard_others"] == 0.0
    assert signs("Who is the mayor of Geneva?")["heard_names"] == 1.0


def test_a_question_without_names_has_all_its_names_heard() -> None:
    assert signs("which city is it?")["heard_names"] == 1.0


def test_hops_and_passages_are_signs() -> None:
    assert signs("Who was born in Geneva?", hops=3)["hops"] == pytest.approx(np.log(4))
    assert signs("Who was born in Geneva?")["passages"] == pytest.approx(np.log(3))


def test_confidence_is_the_logistic_function_of_the_scaled_signs() -> None:
    ones = np.ones(len(SIGNS), np.float32)
    weights = {"mean": ones, "deviation": 2 * ones, "weight": ones, "offset": np.zeros(1, np.float32)}
    given = np.ones(len(SIGNS))
    assert Confidence(weights)(given) == pytest.approx(0.5)
    given[0] = 3.0
    assert Confidence(weights)(given) == pytest.approx(1 / (1 + np.exp(-1)))


def test_weights_for_other_signs_are_refused() -> None:
    with pytest.raises(WeightsError, match=f"for 2 signs, this version has {len(SIGNS)}"):
        Confidence({"weight": np.zeros(2)})


def test_an_answer_below_the_least_confidence_is_left_unsaid() -> None:
    question = "Where was Henry Dunant born?"
    said = OfflineAnswerer(least_confidence=0.0).answer(question, QuestionGraph(), GENEVA, ())
    assert said.text == "Geneva"
    assert said.confidence is not None
    unsaid = OfflineAnswerer(least_confidence=said.confidence + 0.01).answer(question, QuestionGraph(), GENEVA, ())
    assert unsaid.abstained
    assert unsaid.confidence == said.confidence


def test_a_verdict_and_a_comparison_can_be_too_unsure_too() -> None:
    question = "Who was born first, Henry Dunant or Marie Curie?"
    assert OfflineAnswerer(least_confidence=0.99).answer(question, QuestionGraph(), GENEVA, ()).abstained
    question = "Are Geneva and Henry Dunant both Swiss?"
    assert OfflineAnswerer(least_confidence=0.99).answer(question, QuestionGraph(), GENEVA, ()).abstained


def test_an_answerer_that_must_answer_does_so_whatever_its_confidence() -> None:
    answerer = offline_answerer(options=RoleOptions(may_abstain=False, least_confidence=1.0))
    assert not answerer.answer("Where was Henry Dunant born?", QuestionGraph(), GENEVA, ()).abstained


def test_the_mayor_of_a_city_whose_mayor_nobody_names_is_not_known() -> None:
    assert offline_answerer().answer("Who is the mayor of Geneva?", QuestionGraph(), GENEVA, ()).abstained


PTEROCARYA = Passage("plant", "Pterocarya is a genus of trees up to 30 m tall.", "Pterocarya")
COTULA = Passage("cotula", "Cotula is a genus of herbs up to 1 m tall.", "Cotula")
AUSTRALIS = Passage("australis", "Cotula australis is a herb up to 20 cm tall.", "Cotula australis")


@pytest.mark.parametrize(
    ("passages", "confidence"),
    [((PTEROCARYA, COTULA), 0.8), ((PTEROCARYA, AUSTRALIS), 0.1), ((PTEROCARYA,), 0.1)],
)
def test_a_comparison_without_a_passage_about_each_side_is_a_guess(
    passages: tuple[Passage, ...], confidence: float
) -> None:
    answerer = OfflineAnswerer(least_confidence=0.0)
    found = answerer.answer("Which plant is taller, Pterocarya or Cotula?", QuestionGraph(), passages, ())
    assert found.confidence == confidence


def test_a_verdict_about_what_no_passage_is_about_is_a_guess() -> None:
    answerer = OfflineAnswerer(least_confidence=0.0)
    for passages, confidence in (((PTEROCARYA, COTULA), 0.75), ((PTEROCARYA, AUSTRALIS), 0.1)):
        found = answerer.answer("Are Pterocarya and Cotula both trees?", QuestionGraph(), passages, ())
        assert found.confidence == confidence


def test_a_title_that_ends_in_the_name_is_about_it() -> None:
    kenya = Passage("kenya", "Mount Kenya is a volcano of 5,199 metres.", "Mount Kenya")
    aconcagua = Passage("aconcagua", "Aconcagua is a mountain of 6,961 metres.", "Aconcagua")
    question = "Which mountain is higher, Kenya or Aconcagua?"
    found = OfflineAnswerer().answer(question, QuestionGraph(), (kenya, aconcagua), ())
    assert found.confidence == 0.6  # "higher" is not said of them, so that the heights decide too little


def test_a_title_that_begins_the_name_is_about_it() -> None:
    opera = Passage("manon", "Manon is an opera in five acts by Jules Massenet.", "Manon")
    parsifal = Passage("parsifal", "Parsifal is an opera in three acts by Richard Wagner.", "Parsifal")
    found = OfflineAnswerer().answer(
        "Which opera has more acts, Parsifal or Manon by Massenet?", QuestionGraph(), (parsifal, opera), ()
    )
    assert found.confidence == 0.8
