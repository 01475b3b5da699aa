"""Facts that a person has removed or corrected give the offline roles no answer; the person's own facts do."""

import pytest

from ras_agent.contracts.records import Answer, Hit, Passage, Source, Step, Triple
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.budget import Ledger, metered
from ras_agent.running.review import overruled
from ras_agent.tools.offline.roles import offline_answerer, offline_planner
from ras_agent.tools.roles import RoleOptions

TEXT = "Bell was a teacher. He was born in Edinburgh and moved to Canada. He patented the telephone in 1876."
BELL = Passage("bell", TEXT, "Alexander Graham Bell")
READ = (Source("bell", 20, 65, 1),)
BORN = Triple("Alexander Graham Bell", "was born in", "Edinburgh", READ)
MOVED = Triple("Alexander Graham Bell", "moved to", "Canada", READ)
PERSONS = Triple(
    "Alexander Graham Bell",
    "was born in",
    "Glasgow",
    (Source("bell", 20, 65, 1, "", "person:Ada"),),
)
WHERE, WHEN = (
    "Where was Alexander Graham Bell born?",
    "When did Alexander Graham Bell patent the telephone?",
)


def decided(action: str, before: Triple) -> dict[str, object]:
    return {
        "at": "facts",
        "hop": 1,
        "action": action,
        "fact": before.id,
        "before": before.to_dict(),
    }


def asked(
    question: str,
    facts: tuple[Triple, ...],
    *reviews: dict[str, object],
    layout: str = "evidence",
) -> Answer:
    answerer = offline_answerer(
        options=RoleOptions(layout=layout, least_confidence=0.0)
    )
    with metered(Ledger(reviews=reviews)):
        return answerer.answer(question, QuestionGraph(facts), (BELL,), ())


@pytest.mark.parametrize("layout", ["evidence", "chain", "chain-of-text"])
def test_a_corrected_fact_is_the_answer_and_is_cited_where_the_other_was_read(
    layout: str,
) -> None:
    assert asked(WHERE, (BORN, MOVED)).text == "Edinburgh"
    answer = asked(WHERE, (PERSONS, MOVED), decided("edit", BORN), layout=layout)
    assert answer.text == "Glasgow"
    cited = answer.citations[0]
    assert (cited.passage_id, cited.quote) == (
        "bell",
        "He was born in Edinburgh and moved to Canada.",
    )
    assert PERSONS.id in cited.triple_ids


def test_the_sentence_of_a_removed_fact_gives_no_answer_but_its_other_facts_do() -> (
    None
):
    answers = [
        asked(question, (MOVED,), decided("remove", BORN))
        for question in (WHERE, "Where did Bell move to?")
    ]
    assert "Edinburgh" not in answers[0].text
    assert (answers[1].text, answers[1].citations[0].triple_ids) == (
        "Canada",
        (MOVED.id,),
    )


def test_other_sentences_of_the_passage_are_read_and_cited_as_they_are() -> None:
    answer = asked(WHEN, (PERSONS,), decided("edit", BORN))
    (cited,) = answer.citations
    assert (answer.text, cited.quote) == ("1876", "He patented the telephone in 1876.")
    assert TEXT[cited.start : cited.end] == cited.quote


@pytest.mark.parametrize(
    "sources", [(), (Source("named", 0, 90, 1),)], ids=["none", "the passage"]
)
def test_where_no_source_tells_the_sentence_it_is_the_one_that_holds_both_ends(
    sources: tuple[Source, ...],
) -> None:
    named = Passage(
        "named",
        "Bell was born in Edinburgh. He taught in Boston. Boston is in America.",
        "Inventors",
    )
    born = Triple("Bell", "was born in", "Edinburgh", sources)
    answerer = offline_answerer(options=RoleOptions(least_confidence=0.0))
    with metered(Ledger(reviews=[decided("remove", born)])):
        answers = [
            answerer.answer(question, QuestionGraph(), (named,), ()).text
            for question in ("Where was Bell born?", "Where did he teach?")
        ]
    assert "Edinburgh" not in answers[0]
    assert answers[1] == "Boston"


def test_the_next_plan_follows_the_correction() -> None:
    asked_for = "What is the city where Alexander Graham Bell was born?"
    steps = [Step(1, asked_for, (Hit(BELL, 1.0),), (BORN.id,), (BORN.id,))]
    question = (
        "Which river flows through the city where Alexander Graham Bell was born?"
    )
    planner = offline_planner()
    assert (
        planner.plan(question, QuestionGraph((BORN,)), steps).subquery
        == "Which river flows through Edinburgh?"
    )
    with metered(Ledger(reviews=[decided("edit", BORN)])):
        assert (
            planner.plan(question, QuestionGraph((PERSONS,)), steps).subquery
            == "Which river flows through Glasgow?"
        )


def test_only_what_was_removed_or_corrected_is_overruled() -> None:
    assert overruled() == ()
    added = {
        "at": "facts",
        "hop": 1,
        "action": "add",
        "subject": "a",
        "predicate": "b",
        "object": "c",
    }
    plan = {
        "at": "plan",
        "hop": 1,
        "action": "edit",
        "subquery": "x",
        "before": {"action": "subq", "subquery": "y"},
    }
    with metered(
        Ledger(
            reviews=[
                added,
                plan,
                {"at": "facts", "hop": 1, "action": "approve"},
                decided("remove", BORN),
            ]
        )
    ):
        assert overruled() == (BORN,)
