"""The offline answerer: with the packaged reader, and with scripted ones where the rest is to be seen."""

from collections.abc import Sequence
from typing import Any

import pytest

from ras_agent.contracts.records import Answer, Hit, Passage, Source, Span, Step, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.offline.answerer.answer import (
    I_DO_NOT_KNOW,
    NOT_SURE,
    SEE_NEAREST,
    OfflineAnswerer,
)
from ras_agent.tools.offline.reader import Reader, Verdict
from ras_agent.tools.offline.reading import read
from tests.tools.offline.test_chain import (
    BELL,
    LEITH,
    PHONE,
    READER,
    RIVER,
    SEARCHES,
    Scripted,
)

PACKAGED = Reader()
EMPTY = QuestionGraph()

PASSAGES = (
    Passage(
        "tel",
        "The telephone was patented by Alexander Graham Bell in 1876.",
        "Telephone",
    ),
    Passage(
        "bell",
        "Alexander Graham Bell (March 3, 1847 – August 2, 1922) was a Scottish-born inventor. "
        "He was born in Edinburgh, Scotland.",
        "Alexander Graham Bell",
    ),
    Passage(
        "edi",
        "Edinburgh is the capital city of Scotland. The Water of Leith flows through it.",
        "Edinburgh",
    ),
    Passage(
        "edison",
        "Thomas Edison (February 11, 1847 – October 18, 1931) was an American inventor.",
        "Thomas Edison",
    ),
)
GRAPH = QuestionGraph(
    (
        Triple(
            "Telephone",
            "was patented by",
            "Alexander Graham Bell",
            (Source("tel", 0, 60, 1),),
        ),
        Triple(
            "Alexander Graham Bell",
            "was born in",
            "Edinburgh",
            (Source("bell", 86, 123, 2),),
        ),
    )
)


def answered(question: str, **options: Any) -> Answer:
    return OfflineAnswerer(PACKAGED, **options).answer(question, GRAPH, PASSAGES, ())


def test_a_date_is_answered_whole() -> None:
    # brackets say that he died without the word, so that little speaks for it
    assert (
        answered(
            "On what date did Alexander Graham Bell die?", least_confidence=0.0
        ).text
        == "August 2, 1922"
    )


def test_who_is_answered_with_a_person() -> None:
    assert answered("Who patented the telephone?").text == "Alexander Graham Bell"


def test_where_is_answered_with_a_place() -> None:
    assert "Edinburgh" in answered("Where was Alexander Graham Bell born?").text


def test_the_first_citation_is_the_sentence_the_answer_stands_in() -> None:
    found = answered("Who patented the telephone?")
    assert (
        found.citations[0].quote
        == "The telephone was patented by Alexander Graham Bell in 1876."
    )
    assert found.citations[0].triple_ids == (GRAPH.facts[0].id,)


def test_a_comparison_names_one_of_the_two_and_cites_both() -> None:
    found = answered("Who died first, Thomas Edison or Alexander Graham Bell?")
    assert found.text == "Alexander Graham Bell"
    assert {citation.passage_id for citation in found.citations} == {"bell", "edison"}


def test_a_yes_no_question_gets_yes_or_no() -> None:
    assert (
        answered("Are Thomas Edison and Alexander Graham Bell both inventors?").text
        == "yes"
    )
    assert (
        answered("Are Thomas Edison and Alexander Graham Bell both American?").text
        == "no"
    )


def test_nothing_to_read_is_no_answer() -> None:
    found = OfflineAnswerer(PACKAGED).answer(
        "Who patented the telephone?", QuestionGraph(), (), ()
    )
    assert found == Answer(I_DO_NOT_KNOW, abstained=True)


@pytest.mark.parametrize(
    "question", ["Who patented the telephone?", "When did Alexander Graham Bell die?"]
)
def test_confidence_is_a_share(question: str) -> None:
    confidence = answered(question).confidence
    assert confidence is not None
    assert 0.0 <= confidence <= 1.0


def test_an_answerer_that_must_answer_never_abstains() -> None:
    assert not answered(
        "Which opera did the mayor of Paris sing in?", may_abstain=False
    ).abstained


def test_what_its_sentences_alone_do_not_give_is_unlikely() -> None:
    passages = [
        Passage(
            "p",
            "Lena Frost, born on 4 May 1950, taught at Ulm University.",
            "Lena Frost",
        )
    ]
    asked = {question: OfflineAnswerer(PACKAGED).answer(question, EMPTY, passages, ()) for question in (
        "Where did Lena Frost teach?", "In what year did Lena Frost visit Japan?"
    )}  # fmt: skip
    taught, visited = (answer.confidence or 0.0 for answer in asked.values())
    assert visited < 0.35 < 0.7 < taught
    assert [answer.abstained for answer in asked.values()] == [False, True]


class Judging(Scripted):
    """Affirms, denies or cannot tell by the first of some words that a text holds."""

    def __init__(self, words: dict[str, Verdict]) -> None:
        super().__init__({}, {})
        self._words = words

    def judge(self, question: str, texts: Sequence[str]) -> list[Verdict]:
        silent = Verdict(0.0, 0.1, 0.9)
        return [
            next((said for word, said in self._words.items() if word in text), silent)
            for text in texts
        ]


def _steps(*searches: tuple[str, Passage]) -> list[Step]:
    return [
        Step(number, query, (Hit(passage, 1.0),))
        for number, (query, passage) in enumerate(searches, 1)
    ]


def test_the_answer_cites_the_sentence_of_every_link() -> None:
    steps = _steps(*SEARCHES)
    answer = OfflineAnswerer(READER).answer(RIVER, EMPTY, [PHONE, BELL, LEITH], steps)
    assert answer.text == "Water of Leith"
    assert [one.quote for one in answer.citations] == [
        "The telephone was invented by Alexander Graham Bell.",
        "Alexander Graham Bell was born in Edinburgh.",
        "The Water of Leith flows through Edinburgh.",
    ]
    assert answer.confidence is not None
    assert 0.4 < answer.confidence <= 1


def test_only_the_passages_that_are_given_are_read() -> None:
    answer = OfflineAnswerer(READER).answer(RIVER, EMPTY, [PHONE], _steps(*SEARCHES))
    assert answer.abstained


def test_what_is_unsure_is_left_unsaid_unless_a_guess_is_wanted() -> None:
    steps = _steps(*SEARCHES)
    unsure = OfflineAnswerer(READER, least_confidence=1.0)
    assert unsure.answer(RIVER, EMPTY, [PHONE, BELL, LEITH], steps).abstained
    guess = OfflineAnswerer(READER, may_abstain=False, least_confidence=1.0)
    assert (
        guess.answer(RIVER, EMPTY, [PHONE, BELL, LEITH], steps).text == "Water of Leith"
    )


def test_what_is_more_likely_right_than_wrong_is_suggested_with_its_sentences() -> None:
    answerer = OfflineAnswerer(READER, least_confidence=1.0)
    answer = answerer.answer(RIVER, EMPTY, [PHONE, BELL, LEITH], _steps(*SEARCHES))
    assert answer.abstained
    assert (answer.text, answer.suggestion) == (NOT_SURE, "Water of Leith")
    assert answer.citations[-1].quote == "The Water of Leith flows through Edinburgh."


def test_two_that_are_compared_are_not_judged_over_one_sentence() -> None:
    lee, day = (
        Passage("a", "Ann Lee was born in 1901.", "Ann Lee"),
        Passage("b", "Bo Day was born in 1950.", "Bo Day"),
    )
    answerer = OfflineAnswerer(PACKAGED)
    for question, verdict in (
        ("Is Ann Lee older than Bo Day?", "yes"),
        ("Is Bo Day older than Ann Lee?", "no"),
    ):
        answer = answerer.answer(question, EMPTY, [lee, day], ())
        assert (answer.text, len(answer.citations)) == (verdict, 2)
    undated = Passage("a", "Ann Lee was a painter.", "Ann Lee")
    assert (
        answerer.answer("Is Ann Lee older than Bo Day?", EMPTY, [undated, day], ()).text
        == I_DO_NOT_KNOW
    )


def test_a_part_of_a_word_bears_no_answer() -> None:
    class Points(Scripted):
        def read(self, question: str, texts: Sequence[str]) -> list[list[Span]]:
            places = ((text.find("87"), text.find("1874")) for text in texts)
            return [
                [Span(year, year + 4, 20.0)]
                if year >= 0
                else [Span(age, age + 2, 20.0)]
                if age >= 0
                else []
                for age, year in places
            ]

    steps = _steps(("How old was Ann?", Passage("a", "Ann was 87.", "Ann")))
    alone = OfflineAnswerer(Points({}, {})).answer(
        "How old was Ann?", EMPTY, [Passage("a", "Ann was 87.", "Ann")], steps
    )
    beside = Passage("a", "Ann was 87 (not 1874).", "Ann")
    assert not alone.abstained
    grounds = read([beside])[0].sentences
    borne = OfflineAnswerer(Points({}, {}))._borne("How old was Ann?", "87", grounds)
    assert borne == (-9.0, False)


def test_a_verdict_is_that_of_the_surest_passage_and_cites_the_sentence_that_decides() -> (
    None
):
    reader = Judging(
        {"Edinburgh": Verdict(0.9, 0.05, 0.05), "Canada": Verdict(0.2, 0.1, 0.7)}
    )
    question = "Is Edinburgh where Alexander Graham Bell was born?"
    answer = OfflineAnswerer(reader).answer(
        question, EMPTY, [PHONE, BELL], _steps((question, BELL))
    )
    assert answer.text == "yes"
    assert answer.confidence is not None
    # a verdict that the reader takes for likely is right oftener than it says
    assert answer.confidence > 0.9
    assert [one.quote for one in answer.citations] == [
        "Alexander Graham Bell was born in Edinburgh."
    ]


def test_what_a_sentence_says_in_the_words_of_a_question_needs_no_verdict() -> None:
    reader = Judging({"Edinburgh": Verdict(0.1, 0.8, 0.1)})
    question = "Was Alexander Graham Bell born in Edinburgh?"
    answer = OfflineAnswerer(reader).answer(
        question, EMPTY, [PHONE, BELL], _steps((question, BELL))
    )
    assert (answer.text, answer.confidence) == ("yes", 0.95)
    assert [one.quote for one in answer.citations] == [
        "Alexander Graham Bell was born in Edinburgh."
    ]


def test_what_only_led_towards_an_answer_is_none() -> None:
    dog = "What is the dog of the inventor of the telephone?"
    reader = Scripted(
        {dog: "the inventor of the telephone"},
        {
            "Who is the inventor of the telephone?": "Alexander Graham Bell",
            dog: "Alexander Graham Bell",
        },
    )
    steps = _steps(
        ("Who is the inventor of the telephone?", PHONE),
        ("What is the dog of Alexander Graham Bell?", BELL),
    )
    assert OfflineAnswerer(reader).answer(dog, EMPTY, [PHONE, BELL], steps).abstained


def test_passages_without_words_are_not_judged() -> None:
    question = "Was Alexander Graham Bell born in Edinburgh?"
    blank = Passage("blank", " ", "Edinburgh")
    answer = OfflineAnswerer(Judging({})).answer(
        question, EMPTY, [blank], _steps((question, blank))
    )
    assert answer.abstained
    reader = Judging({"Edinburgh": Verdict(0.9, 0.05, 0.05)})
    steps = _steps(*((question, one) for one in [blank] * 8), (question, BELL))
    assert (
        OfflineAnswerer(reader).answer(question, EMPTY, [blank, BELL], steps).text
        == "yes"
    )


def test_a_yes_is_unsure_whose_sentence_lacks_a_name_of_the_question() -> None:
    reader = Judging({"Edinburgh": Verdict(0.8, 0.1, 0.1)})
    question = "Was Alexander Graham Bell born in Ulm?"
    steps = _steps((question, BELL))
    answer = OfflineAnswerer(reader, may_abstain=False).answer(
        question, EMPTY, [BELL], steps
    )
    assert answer.text == "yes"
    assert answer.confidence is not None
    assert answer.confidence < 0.5
    assert OfflineAnswerer(reader).answer(question, EMPTY, [BELL], steps).abstained


def test_a_yes_is_unsure_to_a_name_that_the_sentence_has_fewer_times() -> None:
    reader = Judging({"Leith": Verdict(0.8, 0.1, 0.1)})
    town = Passage(
        "t",
        "Indeed, Leith lies in the north of Edinburgh and has most of the docks of Leith.",
        "",
    )
    right = "Is Leith in the north of Edinburgh, with the docks of Leith?"
    swapped = "Is Leith in the north of Edinburgh, with the docks of Edinburgh?"
    answerer = OfflineAnswerer(reader)
    assert answerer.answer(right, EMPTY, [town], _steps((right, town))).text == "yes"
    assert answerer.answer(swapped, EMPTY, [town], _steps((swapped, town))).abstained


def test_a_yes_is_unsure_to_a_denial_that_the_sentence_lacks() -> None:
    yes, no = (
        Judging({"Leith": Verdict(0.8, 0.1, 0.1)}),
        Judging({"Leith": Verdict(0.1, 0.8, 0.1)}),
    )
    town = Passage("t", "However, the mills of Leith had closed by 1900.", "")
    denied = "Mills in Leith had not closed by 1900."
    assert (
        OfflineAnswerer(yes)
        .answer(denied, EMPTY, [town], _steps((denied, town)))
        .abstained
    )
    assert (
        OfflineAnswerer(no).answer(denied, EMPTY, [town], _steps((denied, town))).text
        == "no"
    )


def test_a_no_is_unsure_whose_sentence_has_every_name_of_the_question() -> None:
    reader = Judging({"Edinburgh": Verdict(0.1, 0.8, 0.1)})
    in_the_sentence, in_none = (
        "Is Edinburgh where Bell was born?",
        "Is Ulm where Bell was born?",
    )
    steps = _steps((in_none, BELL))
    assert (
        OfflineAnswerer(reader).answer(in_the_sentence, EMPTY, [BELL], steps).abstained
    )
    assert OfflineAnswerer(reader).answer(in_none, EMPTY, [BELL], steps).text == "no"


def test_a_reason_is_told_with_its_sentence_or_not_at_all() -> None:
    mill = Passage(
        "m", "The mill closed in 1950 because the river had dried up.", "Velmora"
    )
    answerer = OfflineAnswerer(Judging({}))
    answer = answerer.answer("Why did the mill close?", EMPTY, [mill], ())
    assert (
        answer.text
        == "The text says: The mill closed in 1950 because the river had dried up."
    )
    assert [one.quote for one in answer.citations] == [mill.text]
    assert answerer.answer("Why did the mayor resign?", EMPTY, [mill], ()).abstained


def test_a_reason_is_asked_of_whom_the_chain_has_found() -> None:
    bell = Passage(
        "b",
        "Alexander Graham Bell was born in Edinburgh. He died of diabetes in 1922.",
        "A. Graham Bell",
    )
    question = "Why did the inventor of the telephone die?"
    who = "Who is the inventor of the telephone?"
    reader = Scripted(
        {question: "the inventor of the telephone"}, {who: "Alexander Graham Bell"}
    )
    steps = _steps((who, PHONE), (question, bell))
    answer = OfflineAnswerer(reader).answer(question, EMPTY, [PHONE, bell], steps)
    assert answer.text.endswith(" He died of diabetes in 1922.")
    assert [one.passage_id for one in answer.citations] == [PHONE.id, "b"]


def test_what_cannot_be_read_out_is_shown_by_the_sentences_nearest_to_the_question() -> (
    None
):
    crane = Passage(
        "c",
        "The crane stands at pier 3. Please deliver to pier 3. Its hook was painted in 2019.",
        "Crane",
    )
    answer = OfflineAnswerer(READER).answer(
        "What can the crane at the pier lift?", EMPTY, [crane], ()
    )
    assert (answer.text, answer.abstained, answer.suggestion) == (SEE_NEAREST, True, "")
    assert answer.citations[0].quote == "The crane stands at pier 3."
    unlike = OfflineAnswerer(READER).answer(
        "Why did the mill close?", EMPTY, [crane], ()
    )
    assert (unlike.text, unlike.citations) == (I_DO_NOT_KNOW, ())
