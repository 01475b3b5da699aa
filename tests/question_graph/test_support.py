"""Whether the sentences that an answer cites bear it."""

import pytest

from ras_agent.contracts.records import (
    Answer,
    Citation,
    Passage,
    Source,
    Triple,
    Verdict,
)
from ras_agent.question_graph.support import (
    is_grounded,
    texts_to_judge,
    unsupported_message,
    with_support,
)

BELL = Passage("bell", "Bell was born in Edinburgh in 1847.", "Alexander Graham Bell")
LEITH = Passage(
    "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
)
FLEMING = Passage("fleming", "He was born on a farm near Darvel.", "Alexander Fleming")
POTTER = Passage("quill", "Nora Quill is a potter who lives in Harlow.", "Nora Quill")
SCIENTISTS = Passage("list", "The prize went to Marie Curie.", "Prizes")
MORE = Passage("more", "Later it went to Ada Lovelace.", "Prizes")
ULM = Passage("ulm", "爱因斯坦于1879年出生在德国的乌尔姆市。", "爱因斯坦")


def quoting(*passages: Passage) -> tuple[Citation, ...]:
    return tuple(
        Citation(number, one.id, one.title, 0, len(one.text), one.text)
        for number, one in enumerate(passages, start=1)
    )


def supported(
    question: str,
    text: str,
    *passages: Passage,
    abstained: bool = False,
    suggestion: str = "",
) -> list[bool | None]:
    answer = Answer(text, quoting(*passages), abstained, suggestion=suggestion)
    known = {passage.id: passage for passage in passages}
    return [
        one.supported for one in with_support(question, answer, known, {}).citations
    ]


def test_a_sentence_that_has_the_answer_supports_it() -> None:
    assert supported("Where was Bell born?", "Edinburgh", BELL) == [True]


def test_a_sentence_about_somebody_else_does_not() -> None:
    assert supported("Where was Alexander Graham Bell born?", "London", FLEMING) == [
        False
    ]


def test_the_words_of_the_question_are_not_the_answer_s_own() -> None:
    assert supported("Where was Bell born?", "Bell was born in London", BELL) == [False]


def test_a_sentence_that_leads_to_the_answer_supports_it_too() -> None:
    question = (
        "Which river flows through the city where Alexander Graham Bell was born?"
    )
    assert supported(question, "Water of Leith", BELL, LEITH, POTTER) == [
        True,
        True,
        False,
    ]


def test_a_list_is_borne_by_several_sentences_together() -> None:
    assert supported(
        "Who won the prize?", "Marie Curie and Ada Lovelace", SCIENTISTS, MORE
    ) == [True, True]
    assert supported(
        "Who won the prize?", "Marie Curie and Alan Turing", SCIENTISTS, MORE
    ) == [False, False]


@pytest.mark.parametrize(
    ("said", "is_borne"), [("1847", True), ("the year 1847", True), ("1848", False)]
)
def test_figures_are_compared_exactly(said: str, is_borne: bool) -> None:
    assert supported("When was Bell born?", said, BELL) == [is_borne]


def test_each_sentence_of_a_long_answer_is_compared_with_what_it_cites() -> None:
    text = "Bell was born in Edinburgh [1]. The Water of Leith flows through Paris [2]."
    assert supported("Tell me about Bell.", text, BELL, LEITH) == [True, False]


def test_numbers_behind_a_full_stop_belong_to_the_sentence_before() -> None:
    text = "Bell was born in Edinburgh. [1] Quill makes bowls in Rome. [2]"
    assert supported("Tell me about Bell.", text, BELL, POTTER) == [True, False]


def test_of_an_answer_that_abstained_the_suggestion_is_compared() -> None:
    asked = "Where was Bell born?"
    assert supported(
        asked, "I am not sure.", BELL, abstained=True, suggestion="Edinburgh"
    ) == [True]
    assert supported(asked, "I don't know.", BELL, abstained=True) == [None]


def test_in_another_script_what_stands_there_letter_by_letter_is_borne_and_of_the_rest_nothing_is_told() -> (
    None
):
    assert supported("爱因斯坦出生在哪里？", "乌尔姆市", ULM) == [True]
    assert supported("爱因斯坦出生在哪里？", "慕尼黑", ULM) == [None]
    assert supported("Where was Einstein born?", "Ulm", ULM) == [None]
    assert supported("爱因斯坦哪年出生？", "1879", ULM) == [True]
    assert supported("爱因斯坦哪年出生？", "1880", ULM) == [False]


@pytest.mark.parametrize(
    ("said", "is_borne"),
    [
        ("in Moskau", None),
        ("in Ulm", True),
        ("in München", False),
        ("1.200 Jahre", True),
    ],
)
def test_in_another_language_words_that_begin_alike_are_one(
    said: str, is_borne: bool | None
) -> None:
    german = Passage(
        "de",
        "Der Künstler wurde in Ulm geboren und die Stadt ist 1200 Jahre alt.",
        "Ulmer Künstler",
    )
    question = (
        "Wo wurde der Künstler geboren?"
        if is_borne is not None
        else "Where was the artist born?"
    )
    assert supported(question, said, german) == [is_borne]


def test_a_fact_bears_only_what_stands_in_its_passage() -> None:
    real = Triple("Nora Quill", "lives in", "Harlow", (Source("quill", 0, 43),))
    foreign = Triple(
        "Nora Quill", "worked with", "Bruce Heezen", (Source("quill", 0, 43),)
    )
    facts = {fact.id: fact for fact in (real, foreign)}
    quote = Citation(1, "quill", "Nora Quill", 0, 43, POTTER.text, tuple(facts))
    for text, is_borne in (("Harlow", True), ("Bruce Heezen", False)):
        answer = with_support(
            "Who or where?", Answer(text, (quote,)), {"quill": POTTER}, facts
        )
        assert answer.citations[0].supported is is_borne


def judged(text: str, *verdicts: Verdict) -> list[bool | None]:
    answer = Answer(text, quoting(BELL, LEITH))
    known = {"bell": BELL, "leith": LEITH}
    return [
        one.supported
        for one in with_support(
            "Was Bell born in Edinburgh?", answer, known, {}, verdicts
        ).citations
    ]


YES, NO, OPEN = Verdict(0.8, 0.1, 0.1), Verdict(0.1, 0.8, 0.1), Verdict(0.4, 0.4, 0.2)


def test_a_reader_decides_whether_a_sentence_bears_yes_or_no() -> None:
    assert judged("yes", YES, OPEN, YES) == [True, None]
    assert judged("No, he was not.", YES, OPEN, YES) == [False, None]
    assert judged("no", NO, OPEN, NO) == [True, None]


def test_sentences_may_bear_a_yes_only_together() -> None:
    assert judged("Yes", OPEN, OPEN, YES) == [True, True]


def test_without_a_reader_nothing_is_told_of_yes_and_no() -> None:
    assert judged("yes") == [None, None]


def test_a_reader_is_asked_about_each_quote_and_about_all() -> None:
    answer = Answer("yes", quoting(BELL, LEITH))
    known = {"bell": BELL, "leith": LEITH}
    first, second = (
        "Alexander Graham Bell. " + BELL.text,
        "Water of Leith. " + LEITH.text,
    )
    assert texts_to_judge("Was he?", answer, known) == [
        first,
        second,
        f"{first} {second}",
    ]
    assert texts_to_judge("Who?", Answer("Bell", answer.citations), known) == []
    assert texts_to_judge("Wurde er in Ulm geboren?", answer, known) == []


def test_what_is_borne_by_nothing_is_said_with_its_remedy() -> None:
    wrong, unclear = Citation(1, "bell", supported=False), Citation(2, "bell")
    assert "no cited sentence supports the answer 'London'" in unsupported_message(
        Answer("London", (wrong,))
    )
    assert "cites nothing" in unsupported_message(Answer("London"))
    assert unsupported_message(Answer("London", (wrong, unclear))) == ""
    assert unsupported_message(Answer("I don't know.", abstained=True)) == ""


def test_an_answer_is_grounded_where_a_citation_supports_it_or_may() -> None:
    wrong, unclear = Citation(1, "bell", supported=False), Citation(2, "bell")
    assert is_grounded(Answer("London", (wrong, unclear)))
    assert not is_grounded(Answer("London", (wrong,)))
    assert not is_grounded(Answer("London"))
    assert not is_grounded(Answer("London", (unclear,), abstained=True))


def test_a_title_that_begins_with_no_is_no_verdict() -> None:
    film = Passage(
        "film", "In 2007 the Coens made No Country for Old Men.", "Coen brothers"
    )
    assert supported(
        "Which film did the Coens make in 2007?", "No Country for Old Men", film
    ) == [True]


def test_a_label_stands_for_the_text_of_its_option() -> None:
    question = "Where was Bell born? A. Edinburgh B. London"
    assert supported(question, "A", BELL) == [True]
    assert supported(question, "B", BELL) == [False]


def test_of_a_choice_words_cannot_tell() -> None:
    question = "Who was born first, Alexander Graham Bell or Alexander Fleming?"
    assert supported(question, "Alexander Graham Bell", BELL) == [None]
    assert supported(question, "Alexander Fleming", BELL) == [False]


def test_two_words_of_a_name_have_to_be_there_both() -> None:
    assert supported("Who won the prize?", "Marie Lovelace", SCIENTISTS) == [False]


def test_beside_a_name_or_a_figure_one_more_word_need_not_be_there() -> None:
    assert supported("Where was Bell born?", "Edinburgh is the city", BELL) == [True]
    assert supported("Where was Bell born?", "Boston is the city", BELL) == [False]
    assert supported("What does Nora Quill do?", "an engineer", POTTER) == [False]
    assert supported("What does Nora Quill do?", "a potter", POTTER) == [True]


def test_a_fact_that_a_person_wrote_bears_what_it_says() -> None:
    said = Triple(
        "Bell",
        "was born in",
        "Leith",
        (Source("bell", 0, 20, 1, extractor="person:Ada"),),
    )
    passage = Passage("bell", "Bell was born in Edinburgh.", "Bell")
    cited = Citation(1, "bell", "Bell", 0, 27, passage.text, triple_ids=(said.id,))
    answer = Answer("Leith", (cited,))
    borne = with_support(
        "Where was Bell born?", answer, {"bell": passage}, {said.id: said}
    )
    assert [one.supported for one in borne.citations] == [True]
