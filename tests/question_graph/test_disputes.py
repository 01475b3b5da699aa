"""Where documents disagree on an answer it states both claims, cites both, and is only as sure as its share of them."""

from collections.abc import Sequence
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from ras_agent import create_ras_agent
from ras_agent.contracts.records import (
    Answer,
    Citation,
    OnConflict,
    Passage,
    Source,
    Triple,
)
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.disputes import with_dispute
from ras_agent.running.trace import Trace

IN_VARN = ("The head office of Korl Works is in Varn.", "head office of is in", "Varn")
IN_PELLIS = (
    "The head office of Korl Works is in Pellis.",
    "head office of is in",
    "Pellis",
)
Said = tuple[str, str, str]


def answered(
    *said: Said,
    text: str = "",
    subject: str = "Korl Works",
    dates: Sequence[str] = ("2016-05-01", "2024-03-02", "2024-03-02"),
    on_conflict: OnConflict = "both",
) -> Answer:
    """Return the answer of the first text, which is cited, among all."""
    passages: dict[str, Passage] = {}
    facts: list[Triple] = []
    for number, (sentence, predicate, object_) in enumerate(said):
        name = f"{'abc'[number]}.md"
        about = {"file": name, "date": dates[number]}
        passages[name] = Passage(name, sentence, metadata=about)
        source = Source(name, 0, len(sentence))
        facts.append(Triple(subject, predicate, object_, (source,)))
    first = next(iter(passages.values()))
    citation = Citation(1, first.id, quote=first.text, triple_ids=(facts[0].id,))
    reply = Answer(text or said[0][2], (citation,), confidence=0.84)
    return with_dispute(reply, QuestionGraph(tuple(facts)), passages, on_conflict)


def test_both_claims_are_said_with_their_files_and_dates_and_cited() -> None:
    answer = answered(IN_VARN, IN_PELLIS)
    assert answer.text == "Varn (a.md, 2016-05-01) or Pellis (b.md, 2024-03-02)"
    assert answer.confidence == 0.5
    assert [one.passage_id for one in answer.citations] == ["a.md", "b.md"]
    (dispute,) = answer.disputes
    assert [claim.text for claim in dispute.claims] == ["Varn", "Pellis"]
    assert [claim.citations for claim in dispute.claims] == [(1,), (2,)]
    assert type(dispute).from_dict(dispute.to_dict()) == dispute


def test_copies_of_a_text_count_as_one_document() -> None:
    assert answered(IN_VARN, IN_PELLIS, IN_PELLIS).confidence == 0.5


def test_independent_documents_make_a_claim_surer() -> None:
    other = ("It is in Pellis that one finds the head office.", *IN_PELLIS[1:])
    assert answered(IN_VARN, IN_PELLIS, other).confidence == pytest.approx(1 / 3)


@pytest.mark.parametrize("said", ["Varn", "Varn [1] or Pellis [2]"])
@pytest.mark.parametrize(
    ("on_conflict", "text", "abstained"),
    [
        ("newest", "Pellis; a.md, 2016-05-01 says Varn", False),
        (
            "abstain",
            "The documents disagree: Varn (a.md, 2016-05-01) or Pellis (b.md, 2024-03-02).",
            True,
        ),
    ],
)
def test_another_way_of_dealing_with_it(
    on_conflict: OnConflict, text: str, abstained: bool, said: str
) -> None:
    answer = answered(IN_VARN, IN_PELLIS, text=said, on_conflict=on_conflict)
    assert (answer.text, answer.abstained) == (text, abstained)
    assert answer.disputes


def test_a_conflict_can_be_ignored() -> None:
    answer = answered(IN_VARN, IN_PELLIS, on_conflict="ignore")
    assert answer.text == "Varn"
    assert not answer.disputes


def test_the_newest_wins_only_where_dates_tell_which_it_is() -> None:
    answer = answered(IN_VARN, IN_PELLIS, dates=("", ""), on_conflict="newest")
    assert answer.text == "Varn (a.md) or Pellis (b.md)"


def test_an_answer_that_says_both_stays_as_it_is() -> None:
    text = "One says Varn and the other Pellis."
    answer = answered(IN_VARN, IN_PELLIS, text=text)
    assert answer.text == text
    assert answer.disputes


def test_a_long_answer_has_a_sentence_more() -> None:
    long = "As far as the documents tell, the head office is to be found in Varn [1]."
    answer = answered(IN_VARN, IN_PELLIS, text=long)
    assert answer.text == f"{long} b.md, 2024-03-02 says otherwise: Pellis [2]."


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            ("Korl Works makes sonars.", "makes", "sonars"),
            ("Korl Works makes lamps.", "makes", "lamps"),
            id="several values",
        ),
        pytest.param(
            ("A director of Korl Works is Ada Brenn.", "director of is", "Ada Brenn"),
            ("A director of Korl Works is Tom Vell.", "director of is", "Tom Vell"),
            id="one of several",
        ),
        pytest.param(
            ("The head of Korl Works is Sigrid Moe.", "head of is", "Sigrid Moe"),
            ("The head of Korl Works is Mrs Moe.", "head of is", "Mrs Moe"),
            id="a shorter name",
        ),
        pytest.param(
            ("Korl Works was founded in 1911.", "was founded in", "1911"),
            ("Korl Works was founded on 5 June 1911.", "was founded on", "5 June 1911"),
            id="a closer date",
        ),
        pytest.param(
            ("In 1990 the head of Korl Works was Jo Day.", "head of was", "Jo Day"),
            ("In 2020 the head of Korl Works was Ann Lee.", "head of was", "Ann Lee"),
            id="two times",
        ),
    ],
)
def test_what_may_both_be_true_is_no_dispute(first: Said, second: Said) -> None:
    answer = answered(first, second)
    assert answer.text == first[2]
    assert answer.disputes == ()


def test_an_answer_of_a_model_is_completed_in_a_run(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "Varn [1]", "repeat": True})
    agent = create_ras_agent(
        index=[IN_VARN[0], IN_PELLIS[0]],
        planner="offline",
        extractor="offline",
        answerer=scripted_llm.spec,
    )
    out = agent.invoke({"question": "Where is the head office of Korl Works?"})
    assert out["answer"] == "Varn [1] or Pellis [2]"
    assert [one["number"] for one in out["citations"]] == [1, 2]
    assert len(Trace.from_state(out).disputes) == 1


def test_a_town_and_its_country_are_no_dispute() -> None:
    town = ("Korl Works is based in Varn.", "is based in", "Varn")
    country = ("Korl Works is based in Norland.", "is based in", "Norland")
    assert answered(town, country).disputes
    passages = {
        name: Passage(name, text)
        for name, text in (
            ("a", town[0]),
            ("b", country[0]),
            ("c", "Varn is in Norland."),
        )
    }
    facts = (
        Triple("Korl Works", *town[1:], (Source("a", 0, 28),)),
        Triple("Korl Works", *country[1:], (Source("b", 0, 31),)),
        Triple("Varn", "is in", "Norland", (Source("c", 0, 19),)),
    )
    citation = Citation(1, "a", triple_ids=(facts[0].id,))
    answer = Answer("Varn", (citation,))
    assert with_dispute(answer, QuestionGraph(facts), passages) == answer


def test_a_predicate_that_a_passage_gives_two_values_is_no_dispute() -> None:
    both = "The Tern was written by Ada Brenn and Tom Vell."
    passages = {"a": Passage("a", both), "b": Passage("b", "By Olaf Brix.")}
    facts = tuple(
        Triple("Tern", "was written by", author, (Source(name, 0, 13),))
        for name, author in (("a", "Ada Brenn"), ("a", "Tom Vell"), ("b", "Olaf Brix"))
    )
    answer = Answer("Ada Brenn", (Citation(1, "a", triple_ids=(facts[0].id,)),))
    assert with_dispute(answer, QuestionGraph(facts), passages) == answer


def test_a_person_who_edits_the_answer_has_decided_what_is_so() -> None:
    agent = create_ras_agent(
        index=[IN_VARN[0], IN_PELLIS[0]],
        review=("answer",),
        checkpointer=InMemorySaver(),
    )
    thread: Any = {"configurable": {"thread_id": "1"}}
    question = "Where is the head office of Korl Works?"
    asked = agent.invoke({"question": question}, thread)
    assert "__interrupt__" in asked
    assert agent.get_state(thread).values["disputes"]
    decision = {"action": "edit", "answer": "Pellis", "citations": [2]}
    out = agent.invoke(Command(resume=decision), thread)
    assert (out["answer"], out["disputes"]) == ("Pellis", [])
