"""Nested questions come apart from the inside out, and are planned and answered link by link."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Answer, Citation, Hit, Passage, Plan, Step
from ras_agent.tools.offline.nested import NestedAnswerer, NestedPlanner, innermost

QUESTION = "Which river flows through the city where the inventor of the telephone was born?"
INVENTOR = "Who is the inventor of the telephone?"
CITY = "In which city was Bell born?"
RIVER = "Which river flows through Edinburgh?"
LAST = "Which river flows through Edinburgh, the city where Bell was born,?"
BELL = Passage("bell", "Bell, who made the telephone, was born in Edinburgh.", "Bell")
OTHER = Passage("other", "A city.", "Adelaide")
UNKNOWN = Answer("I don't know", abstained=True)


class Known:
    """Answers what it was told, citing one passage; abstains from everything else."""

    name = "known"

    def __init__(self, answers: Mapping[str, str], confidence: float = 1.0, cites: str = "bell") -> None:
        self.answers, self.confidence, self.cites = answers, confidence, cites

    def answer(self, question: str, graph: QuestionGraph, passages: Sequence[Passage], steps: Sequence[Step]) -> Answer:
        if question not in self.answers:
            return UNKNOWN
        return Answer(self.answers[question], (Citation(1, self.cites, 0, 4),), confidence=self.confidence)


class Plain:
    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        return Plan("subq", "plain")


@pytest.mark.parametrize(
    ("question", "described", "asked"),
    [
        (QUESTION, "the inventor of the telephone", INVENTOR),
        ("Which river flows through the city where Bell was born?", "the city where Bell was born", CITY),
        ("Which river rises near the birthplace of Ada Lovelace?", "the birthplace of Ada Lovelace",
         "What is the birthplace of Ada Lovelace?"),
        ("Who was the mother of the author of Frankenstein?", "the author of Frankenstein",
         "Who is the author of Frankenstein?"),
    ],
)  # fmt: skip
def test_the_innermost_description_is_found_whole_and_asked_for(question: str, described: str, asked: str) -> None:
    found = innermost(question)
    assert found is not None
    assert (found.text, found.question) == (described, asked)
    assert question[found.start : found.end] == described


@pytest.mark.parametrize(
    "question",
    [
        RIVER,
        "Who was born earlier, Edvard Grieg or Henrik Ibsen?",
        "Who was the mother of Mary Shelley?",  # what is sought is not described
        "What is the length of the Salzach?",
        "Which port lies on the body of water near Gozo?",  # of what sort, not of what thing
        "Who painted the altarpiece in the museum of Colmar?",
        "",
    ],
)
def test_a_plain_question_describes_nothing(question: str) -> None:
    assert innermost(question) is None


_WORDS = ("the", "of", "who", "where", "which", "was", "by", "born", "inventor", "city", "made", "Bell", "Ann Lee", ",")


@given(st.lists(st.sampled_from(_WORDS), max_size=16).map(" ".join))
def test_any_question_is_read_without_an_error_and_located_inside_itself(question: str) -> None:
    found = innermost(question)
    assert found is None or question[found.start : found.end] == found.text != ""


def _plan(namer: Known, *subqueries: str, passage: Passage = BELL) -> Plan:
    steps = [Step(hop, subquery, (Hit(passage, 1.0),)) for hop, subquery in enumerate(subqueries, start=1)]
    return NestedPlanner(namer, Plain()).plan(QUESTION, QuestionGraph(), steps)


def test_the_first_plan_is_the_plain_planners() -> None:
    assert _plan(Known({})).subquery == "plain"


def test_a_description_without_a_name_is_asked_for() -> None:
    assert _plan(Known({}), QUESTION) == Plan("subq", INVENTOR, "the inventor of the telephone has no name yet")


def test_each_name_opens_the_next_description() -> None:
    assert _plan(Known({INVENTOR: "Bell"}), QUESTION).subquery == CITY
    assert _plan(Known({INVENTOR: "Bell", CITY: "Edinburgh"}), QUESTION).subquery == RIVER


def test_planning_ends_when_the_question_left_was_asked() -> None:
    assert _plan(Known({INVENTOR: "Bell", CITY: "Edinburgh"}), QUESTION, RIVER).action == "sufficient"


def test_a_description_that_was_asked_for_in_vain_is_left_to_the_plain_planner() -> None:
    assert _plan(Known({}), QUESTION, INVENTOR).subquery == "plain"


def test_an_unsure_name_or_one_read_elsewhere_does_not_replace_its_description() -> None:
    assert _plan(Known({INVENTOR: "Bell"}, confidence=0.1), QUESTION).subquery == INVENTOR
    assert _plan(Known({INVENTOR: "Bell"}, cites="other"), QUESTION, passage=OTHER).subquery == INVENTOR


def test_a_name_that_is_a_description_itself_ends_all_the_same() -> None:
    circle = {INVENTOR: "Bell", CITY: "the city where Bell was born"}
    assert _plan(Known(circle), QUESTION, CITY).action == "subq"


def _answer(namer: Known, last: Known) -> Answer:
    return NestedAnswerer(namer, last).answer(QUESTION, QuestionGraph(), [BELL, OTHER], ())


def test_every_name_is_cited_before_the_answer() -> None:
    answer = _answer(Known({INVENTOR: "Bell", CITY: "Edinburgh"}), Known({LAST: "Water of Leith"}, cites="other"))
    assert answer.text == "Water of Leith"
    assert [(cited.number, cited.passage_id) for cited in answer.citations] == [(1, "bell"), (2, "other")]


def test_an_open_description_leaves_the_question_as_it_was_asked() -> None:
    assert _answer(Known({}), Known({QUESTION: "Torrens"})).text == "Torrens"


def test_a_question_that_ends_in_no_answer_is_answered_as_it_was_asked() -> None:
    assert _answer(Known({INVENTOR: "Bell", CITY: "Edinburgh"}), Known({QUESTION: "Torrens"})).text == "Torrens"


def test_what_only_led_towards_the_answer_is_not_the_answer() -> None:
    assert _answer(Known({INVENTOR: "Bell", CITY: "Edinburgh"}), Known({QUESTION: "Edinburgh"})).abstained
