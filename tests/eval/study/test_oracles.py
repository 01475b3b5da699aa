"""Roles that know one question's gold annotation."""

import pytest

from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import Passage, Plan, Source, Step, Triple
from ras_agent.eval.question import Question
from ras_agent.eval.study.oracles import (
    OracleAnswerer,
    OraclePlanner,
    OracleRetriever,
    by_name,
    decomposed,
    gold_passages,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.protocols import Answerer, Planner, Retriever
from tests.messages import says

STEPS = [
    {"question": "Who built the lighthouse of Norrhamn?", "answer": "Ida Falk"},
    {"question": "Where was #1 born?", "answer": "Visby"},
    {"question": "Which island is #2, home of #1, on?", "answer": "Gotland"},
]
QUESTION = Question("q1", "On which island was the builder of Norrhamn's lighthouse born?", ("Gotland",),
                    ("p2", "p1"), metadata={"decomposition": STEPS})  # fmt: skip
P1 = Passage("p1", "Visby is a town on Gotland.", "Visby")
P2 = Passage("p2", "The lighthouse was built by Ida Falk.", "Norrhamn")
FACT = Triple("Visby", "is town on", "Gotland", (Source("p1", 0, 27),))


def _steps(count: int) -> list[Step]:
    return [Step(hop, "?") for hop in range(1, count + 1)]


def test_they_fit_the_protocols() -> None:
    assert isinstance(OraclePlanner(QUESTION), Planner)
    assert isinstance(OracleRetriever([P1]), Retriever)
    assert isinstance(OracleAnswerer(QUESTION), Answerer)


def test_references_to_earlier_steps_become_their_gold_answers() -> None:
    assert decomposed(QUESTION) == [
        "Who built the lighthouse of Norrhamn?",
        "Where was Ida Falk born?",
        "Which island is Visby, home of Ida Falk, on?",
    ]


def test_ten_steps_are_told_from_one() -> None:
    steps = [
        {"question": f"step {number}", "answer": f"answer {number}"}
        for number in range(1, 11)
    ]
    question = Question(
        "q", "?", (), metadata={"decomposition": [*steps, {"question": "#10 or #1"}]}
    )
    assert decomposed(question)[-1] == "answer 10 or answer 1"


@pytest.mark.parametrize("reference", ["#2", "#0", "#7"])
def test_a_reference_to_no_earlier_step_is_told(reference: str) -> None:
    question = Question(
        "q9",
        "?",
        (),
        metadata={"decomposition": [STEPS[0], {"question": f"Where is {reference}?"}]},
    )
    with pytest.raises(
        RunError, match=says("q9", "step 2", "decomposition", reference)
    ):
        decomposed(question)


def test_the_planner_asks_the_question_then_each_step_then_stops() -> None:
    planner = OraclePlanner(QUESTION)
    plans = [
        planner.plan(QUESTION.question, QuestionGraph(), _steps(taken))
        for taken in range(5)
    ]
    assert [plan.subquery for plan in plans[:4]] == [
        QUESTION.question,
        *decomposed(QUESTION),
    ]
    assert plans[4] == Plan("sufficient", reason="all gold sub-questions are asked")


def test_a_question_without_a_decomposition_has_no_oracle_planner() -> None:
    with pytest.raises(RunError, match="q2: no gold decomposition"):
        OraclePlanner(Question("q2", "?", ()))


def test_the_retriever_finds_the_gold_passages_whatever_is_asked() -> None:
    retriever = OracleRetriever(
        gold_passages(QUESTION, by_name([P1, P2], by_title=False))
    )
    assert [hit.passage.id for hit in retriever.retrieve("weather")] == ["p2", "p1"]
    assert [hit.passage.id for hit in retriever.retrieve("weather", 1)] == ["p2"]
    with pytest.raises(ValueError, match="a search needs a query"):
        retriever.retrieve(" ")


def test_gold_passages_by_title_may_be_several_and_may_come_with_the_question() -> None:
    again = Passage("p3", "Visby has a wall.", "Visby")
    question = Question(
        "q", "?", (), ("Visby", "Norrhamn"), by_title=True, contexts=(P2,)
    )
    assert gold_passages(question, by_name([P1, again], by_title=True)) == [
        P1,
        again,
        P2,
    ]


def test_a_gold_passage_that_is_nowhere_is_told() -> None:
    with pytest.raises(RunError, match="the gold passage 'p2' is not in the corpus"):
        gold_passages(QUESTION, by_name([P1], by_title=False))
    with pytest.raises(RunError, match="no gold passages"):
        gold_passages(Question("q", "?", ()), {})


def test_the_answerer_answers_if_and_only_if_a_triple_holds_the_answer() -> None:
    answerer = OracleAnswerer(QUESTION, "facts")
    found = answerer.answer("?", QuestionGraph((FACT,)), [P1], ())
    assert (found.text, found.abstained) == ("Gotland", False)
    assert [(one.passage_id, one.quote, one.triple_ids) for one in found.citations] == [
        ("p1", P1.text, (FACT.id,))
    ]
    unread = answerer.answer("?", QuestionGraph(), [P1], ())
    assert (unread.abstained, unread.citations) == (True, ())


def test_within_passages_the_text_alone_counts() -> None:
    answerer = OracleAnswerer(QUESTION, "passages")
    found = answerer.answer("?", QuestionGraph(), [P2, P1], ())
    assert (found.text, [one.passage_id for one in found.citations]) == (
        "Gotland",
        ["p1"],
    )
    assert answerer.answer("?", QuestionGraph((FACT,)), [P2], ()).abstained


def test_an_alias_will_do_and_part_of_a_word_will_not() -> None:
    within = QuestionGraph(
        (Triple("Visby", "is on", "Gotlandic soil", (Source("p1"),)),)
    )
    assert OracleAnswerer(QUESTION).answer("?", within, [P1], ()).abstained
    question = Question("q", "?", ("the isle", "Gotlandic soil"))
    assert (
        OracleAnswerer(question).answer("?", within, [P1], ()).text == "Gotlandic soil"
    )


def test_yes_and_no_stand_in_no_text() -> None:
    graph = QuestionGraph((Triple("yes", "is", "no", (Source("p1"),)),))
    assert (
        OracleAnswerer(Question("q", "?", ("yes",)))
        .answer("?", graph, [P1], ())
        .abstained
    )


def test_another_place_to_look_is_refused() -> None:
    with pytest.raises(ValueError, match="'facts' or 'passages', got 'books'"):
        OracleAnswerer(QUESTION, "books")
