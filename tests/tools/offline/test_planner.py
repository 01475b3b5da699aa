"""The offline planner: its first sub-query, which bridge it follows, and when it stops."""

import pytest

from ras_agent.contracts.records import Hit, Passage, Plan, Source, Step, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.text.words import stems
from ras_agent.tools.offline.planner import OfflinePlanner, bridges, gather
from tests.tools.offline.test_chain import LEITH, READER, RIVER, SEARCHES, Scripted

NOTHING = Scripted({}, {})
EMPTY = QuestionGraph()

QUESTION = 'In which city does the director of the comedy "Red Tide" live?'
TIDE = Passage(
    "tide",
    "Red Tide is a 1999 comedy. It was directed by Ann Lee. It opened in Ulm.",
    "Red Tide (film)",
)
OTHER = Passage("other", "The Blue Tide is a river. It reaches Cape Horn.", "Blue Tide")
LEE = Passage(
    "lee", "Ann Lee is a director. She lives in the city of Leeds.", "Ann Lee"
)


def fact(
    subject: str, predicate: str, obj: str, passage: Passage, sentence: str
) -> Triple:
    start = passage.text.index(sentence)
    return Triple(
        subject, predicate, obj, (Source(passage.id, start, start + len(sentence)),)
    )


DIRECTED = fact(
    "Red Tide", "was directed by", "Ann Lee", TIDE, "It was directed by Ann Lee."
)
OPENED = fact("Red Tide", "opened in", "Ulm", TIDE, "It opened in Ulm.")
REACHES = fact("Blue Tide", "reaches", "Cape Horn", OTHER, "It reaches Cape Horn.")
LIVES = fact(
    "Ann Lee", "lives in city of", "Leeds", LEE, "She lives in the city of Leeds."
)


def step(hop: int, subquery: str, *passages: Passage) -> Step:
    return Step(hop, subquery, tuple(Hit(passage, 1.0) for passage in passages))


FIRST = step(1, QUESTION, TIDE, OTHER)


@pytest.mark.parametrize(
    ("done", "plan"),
    [
        (0, Plan("subq", SEARCHES[0][0], "")),
        (
            1,
            Plan(
                "subq",
                SEARCHES[1][0],
                "the inventor of the telephone is Alexander Graham Bell",
            ),
        ),
    ],
)
def test_the_next_question_of_a_chain_is_asked_and_what_has_been_found_is_told(
    done: int, plan: Plan
) -> None:
    searches = [step(number, *one) for number, one in enumerate(SEARCHES[:done], 1)]
    assert OfflinePlanner(READER).plan(RIVER, EMPTY, searches) == plan


def test_it_stops_when_the_last_question_has_been_read() -> None:
    plan = OfflinePlanner(READER).plan(
        RIVER, EMPTY, [step(number, *one) for number, one in enumerate(SEARCHES, 1)]
    )
    assert plan.action == "sufficient"
    assert plan.reason.endswith("so the answer is Water of Leith")


def test_where_a_chain_ends_without_an_answer_the_question_itself_is_asked() -> None:
    stuck = [step(1, SEARCHES[0][0], LEITH)]
    assert OfflinePlanner(READER).plan(RIVER, EMPTY, stuck).subquery == RIVER


def test_the_question_itself_comes_first() -> None:
    plan = OfflinePlanner(NOTHING).plan(QUESTION, QuestionGraph(), [])
    assert (plan.action, plan.subquery) == ("subq", QUESTION)


def test_the_bridge_is_asked_for_with_what_its_passage_leaves_open() -> None:
    plan = OfflinePlanner(NOTHING).plan(
        QUESTION, QuestionGraph((OPENED, REACHES, DIRECTED)), [FIRST]
    )
    assert plan == Plan(
        "subq",
        "Ann Lee city live",
        f"Ann Lee may lead on: {DIRECTED.subject} {DIRECTED.predicate} {DIRECTED.object}",
    )


def test_two_linked_passages_that_hold_the_question_are_sufficient() -> None:
    steps = [FIRST, step(2, "Ann Lee city live", LEE)]
    plan = OfflinePlanner(NOTHING).plan(
        QUESTION, QuestionGraph((DIRECTED, LIVES)), steps
    )
    assert plan == Plan(
        "sufficient",
        reason="two passages, of which one names the other, tell of all that is asked",
    )


def test_a_bridge_that_was_asked_for_is_not_asked_for_again() -> None:
    steps = [FIRST, step(2, "Ann Lee city live", OTHER)]
    plan = OfflinePlanner(NOTHING).plan(
        QUESTION, QuestionGraph((OPENED, DIRECTED)), steps
    )
    assert plan.subquery == "Ulm city live"


def test_it_stops_after_the_bridges_it_may_follow() -> None:
    plan = OfflinePlanner(NOTHING, most_bridges=1).plan(
        QUESTION, QuestionGraph((OPENED,)), [FIRST, step(2, "x", OTHER)]
    )
    assert plan == Plan(
        "sufficient",
        reason="no more names may be looked up (most_bridges is 1); what was read has to do",
    )


def test_without_a_name_to_follow_nothing_is_left_to_ask() -> None:
    plain = fact("Red Tide", "was", "success", TIDE, "It opened in Ulm.")
    plan = OfflinePlanner(NOTHING).plan(
        "Who saw it?", QuestionGraph((plain,)), [step(1, "Who saw it?")]
    )
    assert plan == Plan("sufficient", reason="no name is left that may lead on")


def test_what_the_first_search_answers_surely_is_enough() -> None:
    question = "Who directed Red Tide?"
    sure = Scripted({}, {question: "Ann Lee"})
    plan = OfflinePlanner(sure).plan(
        question, QuestionGraph(), [step(1, question, TIDE, OTHER)]
    )
    assert plan == Plan("sufficient", reason="so the answer is Ann Lee")


def test_both_of_two_compared_names_are_looked_up_at_the_same_time() -> None:
    question = "Who is older, Ann Lee or Bo Day?"
    first = step(1, question, Passage("x", "Nothing is here.", "Nothing"))
    plan = OfflinePlanner(NOTHING).plan(question, QuestionGraph(), [first])
    assert plan.subqueries == ("Ann Lee", "Bo Day")
    assert plan.reason == (
        "nothing has been read yet about Ann Lee and Bo Day, which the question compares"
    )


def test_each_of_two_compared_names_is_looked_up_once() -> None:
    question = "Who is older, Ann Lee or Bo Day?"
    first = step(1, question, LEE)
    plan = OfflinePlanner(NOTHING).plan(question, QuestionGraph(), [first])
    assert plan == Plan(
        "subq",
        "Bo Day",
        "nothing has been read yet about Bo Day, which the question compares",
    )
    found = step(2, "Bo Day", Passage("day", "Bo Day is old.", "Bo Day"))
    plan = OfflinePlanner(NOTHING).plan(question, QuestionGraph(), [first, found])
    assert plan == Plan(
        "sufficient", reason="both that the question compares have been looked up"
    )


def test_a_name_of_the_class_that_the_question_names_comes_first() -> None:
    question = "Where is the conference of the Red Tide team based?"
    text = "The Red Tide play in Hill Arena and the Southern Conference."
    passage = Passage("p", text, "Red Tide")
    graph = QuestionGraph(
        (
            fact("Red Tide", "play in", "Hill Arena", passage, text),
            fact("Red Tide", "play in", "Southern Conference", passage, text),
        )
    )
    best = bridges(gather(question, [step(1, question, passage)]), graph)[0]
    assert best.subquery == "Southern Conference team based"


def test_facts_whose_passage_was_not_retrieved_lead_nowhere() -> None:
    assert bridges(gather(QUESTION, []), QuestionGraph((DIRECTED,))) == []


def test_a_title_is_read_under_all_its_forms() -> None:
    evidence = gather(
        "Who?", [step(1, "Who?", Passage("p", "A town.", "Leeds, Alabama (town)"))]
    )
    assert evidence.has_read("Leeds, Alabama")
    assert evidence.has_read("leeds")
    assert not evidence.has_read("Alabama")


def test_missing_words_are_the_questions_own() -> None:
    evidence = gather("Which Norwegian singer was born in Ulm?", [])
    assert evidence.missing(set(stems("singers"))) == ["Norwegian", "born", "Ulm"]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "Who was in the film directed by the director of the film Red Tide?",
            ["film", "directed", "Red", "Tide"],
        ),
        (
            "Which state-owned firm did the co-founder of Nokia lead?",
            ["state-owned", "firm", "co-founder", "Nokia", "lead"],
        ),
        ("Which town of 1,000 people is it?", ["town", "1,000", "people"]),
    ],
)
def test_missing_words_are_told_once_and_compounds_whole(
    question: str, told: list[str]
) -> None:
    assert gather(question, []).missing(frozenset()) == told
