"""Planner and answerer that read; the reader is scripted, the rest is real."""

from collections.abc import Sequence

import pytest

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Hit, Passage, Plan, Step
from ras_agent.tools.offline.reader import Verdict
from ras_agent.tools.offline.reader_roles import ReadingAnswerer, ReadingPlanner
from tests.tools.offline.test_chain import BELL, LEITH, PHONE, READER, RIVER, SEARCHES, Scripted

EMPTY = QuestionGraph()


class Plain:
    """Plans and answers for what is not read."""

    name = "plain"

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        return Plan("sufficient", reason="plain")

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        return Answer("the older one", confidence=1.0)


class Judging(Scripted):
    """Affirms, denies or cannot tell by the first of some words that a text holds."""

    def __init__(self, words: dict[str, Verdict]) -> None:
        super().__init__({}, {})
        self._words = words

    def judge(self, question: str, texts: Sequence[str]) -> list[Verdict]:
        silent = Verdict(0.0, 0.1, 0.9)
        return [next((said for word, said in self._words.items() if word in text), silent) for text in texts]


def _steps(*searches: tuple[str, Passage]) -> list[Step]:
    return [Step(number, query, (Hit(passage, 1.0),)) for number, (query, passage) in enumerate(searches, 1)]


@pytest.mark.parametrize(
    ("done", "plan"),
    [
        (0, Plan("subq", SEARCHES[0][0], "")),
        (1, Plan("subq", SEARCHES[1][0], "the inventor of the telephone: Alexander Graham Bell")),
    ],
)
def test_the_planner_asks_the_next_question_and_tells_what_has_been_found(done: int, plan: Plan) -> None:
    assert ReadingPlanner(READER, Plain()).plan(RIVER, EMPTY, _steps(*SEARCHES[:done])) == plan


def test_the_planner_stops_when_the_last_question_has_been_read() -> None:
    plan = ReadingPlanner(READER, Plain()).plan(RIVER, EMPTY, _steps(*SEARCHES))
    assert plan.action == "sufficient"
    assert plan.reason.endswith("an answer has been read: Water of Leith")


def test_a_question_without_a_description_and_a_chain_without_an_end_are_planned_for_plainly() -> None:
    planner = ReadingPlanner(READER, Plain())
    assert planner.plan("Who was Bell?", EMPTY, []).subquery == "Who was Bell?"
    assert planner.plan("Who was Bell?", EMPTY, _steps(("Who was Bell?", BELL))).reason == "plain"
    stuck = _steps((SEARCHES[0][0], LEITH))
    assert planner.plan(RIVER, EMPTY, stuck).subquery == RIVER
    assert planner.plan(RIVER, EMPTY, [*stuck, *_steps((RIVER, LEITH))]).reason == "plain"


def test_the_answer_cites_the_sentence_of_every_link() -> None:
    steps = _steps(*SEARCHES)
    answer = ReadingAnswerer(READER, Plain()).answer(RIVER, EMPTY, [PHONE, BELL, LEITH], steps)
    assert answer.text == "Water of Leith"
    assert [one.quote for one in answer.citations] == [
        "The telephone was invented by Alexander Graham Bell.",
        "Alexander Graham Bell was born in Edinburgh.",
        "The Water of Leith flows through Edinburgh.",
    ]
    assert answer.confidence is not None
    assert 0.4 < answer.confidence <= 1


def test_only_the_passages_that_are_given_are_read() -> None:
    answer = ReadingAnswerer(READER, Plain()).answer(RIVER, EMPTY, [PHONE], _steps(*SEARCHES))
    assert answer.abstained


def test_what_is_unsure_is_left_unsaid_unless_a_guess_is_wanted() -> None:
    steps = _steps(*SEARCHES)
    unsure = ReadingAnswerer(READER, Plain(), least_confidence=1.0)
    assert unsure.answer(RIVER, EMPTY, [PHONE, BELL, LEITH], steps).abstained
    guess = ReadingAnswerer(READER, Plain(), may_abstain=False, least_confidence=1.0)
    assert guess.answer(RIVER, EMPTY, [PHONE, BELL, LEITH], steps).text == "Water of Leith"


def test_a_comparison_is_left_to_what_compares() -> None:
    question = "Who is older, Ann Lee or Bo Berg?"
    answer = ReadingAnswerer(READER, Plain()).answer(question, EMPTY, [BELL], _steps((question, BELL)))
    assert answer.text == "the older one"


def test_a_verdict_is_that_of_the_surest_passage_and_cites_the_sentence_that_decides() -> None:
    reader = Judging({"Edinburgh": Verdict(0.9, 0.05, 0.05), "Canada": Verdict(0.2, 0.1, 0.7)})
    question = "Was Alexander Graham Bell born in Edinburgh?"
    answer = ReadingAnswerer(reader, Plain()).answer(question, EMPTY, [PHONE, BELL], _steps((question, BELL)))
    assert (answer.text, answer.confidence) == ("yes", 0.9)
    assert [one.quote for one in answer.citations] == ["Alexander Graham Bell was born in Edinburgh."]


def test_a_yes_is_unsure_whose_sentence_lacks_a_name_of_the_question() -> None:
    reader = Judging({"Edinburgh": Verdict(0.8, 0.1, 0.1)})
    question = "Was Alexander Graham Bell born in Ulm?"
    answerer = ReadingAnswerer(reader, Plain(), may_abstain=False)
    answer = answerer.answer(question, EMPTY, [BELL], _steps((question, BELL)))
    assert (answer.text, answer.confidence) == ("yes", pytest.approx(0.2))
    assert ReadingAnswerer(reader, Plain()).answer(question, EMPTY, [BELL], _steps((question, BELL))).abstained


def test_a_reason_is_told_with_its_sentence_or_not_at_all() -> None:
    mill = Passage("m", "The mill closed in 1950 because the river had dried up.", "Velmora")
    answerer = ReadingAnswerer(Judging({}), Plain())
    answer = answerer.answer("Why did the mill close?", EMPTY, [mill], ())
    assert answer.text == "The text says: The mill closed in 1950 because the river had dried up."
    assert [one.quote for one in answer.citations] == [mill.text]
    assert answerer.answer("Why did the mayor resign?", EMPTY, [mill], ()).abstained


def test_two_things_are_left_to_what_compares_too() -> None:
    question = "Are Ann Lee and Bo Berg of the same nationality?"
    answer = ReadingAnswerer(Judging({}), Plain()).answer(question, EMPTY, [BELL], _steps((question, BELL)))
    assert answer.text == "the older one"


def test_what_only_led_towards_an_answer_is_none() -> None:
    dog = "What is the dog of the inventor of the telephone?"
    reader = Scripted(
        {dog: "the inventor of the telephone"},
        {"Who is the inventor of the telephone?": "Alexander Graham Bell", dog: "Alexander Graham Bell"},
    )
    steps = _steps(
        ("Who is the inventor of the telephone?", PHONE), ("What is the dog of Alexander Graham Bell?", BELL)
    )
    assert ReadingAnswerer(reader, Plain()).answer(dog, EMPTY, [PHONE, BELL], steps).abstained


def test_passages_without_words_are_not_judged() -> None:
    question = "Was Alexander Graham Bell born in Edinburgh?"
    blank = Passage("blank", " ", "Edinburgh")
    answer = ReadingAnswerer(Judging({}), Plain()).answer(question, EMPTY, [blank], _steps((question, blank)))
    assert answer.abstained
    reader = Judging({"Edinburgh": Verdict(0.9, 0.05, 0.05)})
    steps = _steps(*((question, one) for one in [blank] * 8), (question, BELL))
    assert ReadingAnswerer(reader, Plain()).answer(question, EMPTY, [blank, BELL], steps).text == "yes"
