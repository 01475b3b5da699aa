"""The offline answerer over a part of the evidence: only facts, or only passages."""

from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.offline.roles import offline_answerer
from ras_agent.tools.roles import RoleOptions

BELL = Passage(
    "bell",
    "He was born there in 1847. Alexander Graham Bell patented the telephone.",
    "Bell",
)
LEITH = Passage("leith", "It is a river of Edinburgh.", "Water of Leith")
FACTS = (
    Triple(
        "Alexander Graham Bell",
        "patented",
        "the telephone",
        (Source("bell", 27, 72, 1),),
    ),
    Triple(
        "Alexander Graham Bell", "was born in", "Edinburgh", (Source("bell", 0, 26, 1),)
    ),
    Triple("Water of Leith", "is", "a river", (Source("leith", 0, 27, 2),)),
)
QUESTION = "Where was Alexander Graham Bell born?"

CHAIN = RoleOptions(layout="chain")


def test_the_answer_is_read_in_the_facts_where_no_passage_states_it() -> None:
    answer = offline_answerer(options=CHAIN).answer(
        QUESTION, QuestionGraph(FACTS), (BELL, LEITH), ()
    )
    assert answer.text == "Edinburgh"


def test_it_cites_the_place_where_its_fact_was_read() -> None:
    answer = offline_answerer(options=CHAIN).answer(
        QUESTION, QuestionGraph(FACTS), (BELL, LEITH), ()
    )
    first = answer.citations[0]
    assert (first.passage_id, first.quote, first.triple_ids) == (
        "bell",
        "He was born there in 1847.",
        (FACTS[1].id,),
    )


def test_without_the_passages_it_answers_the_same_and_cites_nothing() -> None:
    answer = offline_answerer(options=CHAIN).answer(
        QUESTION, QuestionGraph(FACTS), (), ()
    )
    assert (answer.text, answer.citations) == ("Edinburgh", ())


def test_facts_that_do_not_hold_the_answer_are_not_enough_whatever_the_passages_hold() -> (
    None
):
    told = Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Bell")
    answerer = offline_answerer(options=CHAIN)
    assert answerer.answer(
        QUESTION, QuestionGraph(FACTS[2:]), (told, LEITH), ()
    ).abstained
    assert answerer.answer(QUESTION, QuestionGraph(), (told, LEITH), ()).abstained


def test_passages_alone_are_read_without_the_facts() -> None:
    told = Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Bell")
    answerer = offline_answerer(options=RoleOptions(layout="chain-of-text"))
    answer = answerer.answer(QUESTION, QuestionGraph(FACTS), (told,), ())
    assert (answer.text, answer.citations[0].triple_ids) == ("Edinburgh", ())
    assert answerer.answer(QUESTION, QuestionGraph(FACTS), (LEITH,), ()).abstained
