"""The thing that a question asks for, read off its words."""

import pytest

from ras_agent.tools.offline.question import analyse


@pytest.mark.parametrize(
    ("question", "compared"),
    [
        ("Who is older, Ann Lee or Bo Day?", ("Ann Lee", "Bo Day")),
        (
            "Which band has more members, The Kites or Echo and the Bells?",
            ("Kites", "Echo and the Bells"),
        ),
        (
            "Which band has more members Band of Kites or Live ?",
            ("Band of Kites", "Live"),
        ),
        (
            "Between Ann Lee and Bo Day, which writer lived longer?",
            ("Ann Lee", "Bo Day"),
        ),
        (
            "Which film is older, Red: Fall of Rome or Blue, the 1970 documentary?",
            ("Red: Fall of Rome", "Blue"),
        ),
    ],
)
def test_a_choice_names_what_is_compared(
    question: str, compared: tuple[str, str]
) -> None:
    asked = analyse(question)
    assert asked.kind == "choice"
    assert asked.compared == compared


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Ann Lee was born in Leeds.", "yes_no"),
        ("May dogs enter the hall?", "yes_no"),
        ("May Lee wrote which book?", "open"),
        ("May is the month in which what is held?", "open"),
        ("Must Farm is in which county?", "open"),
        ("The mill was not built in 1874.", "yes_no"),
        ("The mill wasn't built in 1874.", "yes_no"),
        ("Name the town that Ann Lee was born in.", "open"),
        ("Please tell me the town that was founded by Ann Lee.", "open"),
        ("Provide the name of the town that is next to Leeds.", "open"),
        ("The town that was founded by Ann Lee is Leeds.", "open"),
        ("The birthplace of Ann Lee is.", "open"),
        ("Ann Lee was born in Leeds?", "open"),
        ("Ann Lee was born where the mill is.", "open"),
        ("ann lee was born in leeds.", "open"),
    ],
)
def test_whoever_states_something_asks_whether_it_is_so(text: str, kind: str) -> None:
    assert analyse(text).kind == kind


@pytest.mark.parametrize(
    ("question", "compared"),
    [
        ("Are Ann Lee and Bo Day both actors?", ("Ann Lee", "Bo Day")),
        ('Are both "Red Tide" and "Blue" magazines?', ("Red Tide", "Blue")),
        ("Is Karl a mountain and Sherp Kang a mountain peak?", ("Karl", "Sherp Kang")),
    ],
)
def test_a_question_that_begins_with_a_verb_asks_for_yes_or_no(
    question: str, compared: tuple[str, str]
) -> None:
    asked = analyse(question)
    assert asked.kind == "yes_no"
    assert asked.compared == compared
    assert asked.answer_type is None


def test_which_of_two_is_a_choice_also_behind_a_verb() -> None:
    asked = analyse("Was Ann Lee or Bo Day born first?")
    assert asked.kind == "choice"
    assert asked.compared == ("Ann Lee", "Bo Day")


@pytest.mark.parametrize(
    "question",
    [
        "Can I pay with Visa or Mastercard?",
        "Does Larch run on Linux or Windows?",
        "Did Ann Lee work for Siemens or BMW before the war?",
        "Has Ann Lee ever lived in Paris or London?",
    ],
)
def test_an_or_behind_a_verb_that_nothing_orders_asks_for_yes_or_no(
    question: str,
) -> None:
    assert analyse(question).kind == "yes_no"


def test_a_question_for_what_two_have_in_common_names_both() -> None:
    asked = analyse("What profession do Ann Lee and Bo Day have in common?")
    assert asked.kind == "open"
    assert asked.compared == ("Ann Lee", "Bo Day")
    assert asked.answer_noun == ("profession",)


@pytest.mark.parametrize(
    ("question", "answer_type", "noun"),
    [
        ("Who wrote it?", "person", ()),
        ("Where was she born?", "place", ()),
        ("When did it open?", "date", ()),
        ("How many acts does it have?", "number", ("acts",)),
        (
            "The director is based in what New York city?",
            "place",
            ("new", "york", "city"),
        ),
        ("In which year was the man who led it born?", "date", ("year",)),
        (
            "What is the name of the executive producer of the film?",
            "person",
            ("executive", "producer"),
        ),
        ("What type of magazine does he edit?", "organisation", ("type", "magazine")),
        (
            "What American drama series starred her?",
            "work",
            ("american", "drama", "series"),
        ),
        ("What is the middle name of the actress?", None, ("middle", "name")),
        ("Which film formed earlier?", "work", ("film",)),
    ],
)
def test_the_answer_type_follows_the_question_word_and_its_noun(
    question: str, answer_type: str | None, noun: tuple[str, ...]
) -> None:
    asked = analyse(question)
    assert asked.answer_type == answer_type
    assert asked.answer_noun == noun


def test_blank_and_foreign_questions_are_open() -> None:
    assert analyse("").kind == "open"
    assert analyse("东京在哪里？").kind == "open"


@pytest.mark.parametrize(
    "question",
    [
        "In which state are Ann Lee and Bo Day?",
        "Ann Lee and Bo Day play what?",
    ],
)
def test_a_verb_of_two_names_asks_for_what_they_have_in_common(question: str) -> None:
    assert analyse(question).compared == ("Ann Lee", "Bo Day")


def test_two_names_behind_another_verb_are_not_compared() -> None:
    assert analyse("Who introduced Ann Lee and Bo Day?").compared == ()
    assert analyse("When did Ann Lee and Bo Day marry?").compared == ()
    assert (
        analyse(
            "Who directed the film in which Ann Lee and Bo Day play sisters?"
        ).compared
        == ()
    )
