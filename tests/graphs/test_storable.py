"""The state can be stored and sent, whatever characters and numbers the tools return."""

import json

import numpy as np
import pytest
from langgraph.checkpoint.memory import InMemorySaver

from ras_agent import create_ircot_agent, create_ras_agent
from ras_agent.contracts.records import (
    Answer,
    Citation,
    DialoguePart,
    Extraction,
    Failure,
    Hit,
    Passage,
    Plan,
    Source,
    Triple,
)
from tests.messages import says

HALF = "\ud83d"


class Halves:
    """Every role; each of its texts holds half a character, as a reply that was cut inside one does."""

    def plan(self, question, graph, steps):
        said = DialoguePart(
            "ras", "m", ({"role": "assistant", "content": f"said {HALF}"},)
        )
        if len(steps) < 2:
            return Plan("subq", f"more {HALF}", dialogue=said if steps else None)
        return Plan("sufficient", reason=f"enough {HALF}", answer=f"own {HALF}")

    def next_sentence(self, question, passages, thoughts):
        return f"So the answer is {HALF}." if thoughts else f"A thought {HALF}."

    def retrieve(self, query, k=5):
        found = Passage(
            f"p {HALF} {len(query)}",
            f"A text {HALF}.",
            f"A title {HALF}",
            metadata={HALF: [HALF]},
        )
        return [Hit(found, 1.0)]

    def extract(self, passages, subquery=""):
        sources = tuple(
            Source(passage.id, np.int64(0), np.int64(6)) for passage in passages
        )
        return Extraction(
            (Triple(f"A {HALF}", "is", "a thing", sources),),
            (Failure("", f"half {HALF}", detail=HALF),),
        )

    def answer(self, question, graph, passages, steps):
        cited = Citation(
            1,
            passages[0].id,
            f"A title {HALF}",
            np.int64(0),
            np.int64(6),
            f"A text {HALF}",
        )
        return Answer(f"An answer {HALF}", (cited,), confidence=float("nan"))


ROLES = Halves()


@pytest.mark.parametrize("make", [create_ras_agent, create_ircot_agent])
def test_halves_of_characters_are_replaced_and_odd_numbers_plain(make):
    agent = make(
        planner=ROLES,
        retriever=ROLES,
        extractor=ROLES,
        answerer=ROLES,
        checkpointer=InMemorySaver(),
    )
    asked = {"question": f"Who {HALF}?"}
    out = agent.invoke(asked, {"configurable": {"thread_id": "1"}})
    json.dumps(out, allow_nan=False, ensure_ascii=False).encode()
    assert (out["answer"], out["confidence"]) == ("An answer \ufffd", None)
    assert (out["steps"][0]["subquery"], out["question"]) == (
        "Who \ufffd?",
        "Who \ufffd?",
    )
    assert out["graph"]["facts"][0]["subject"] == "A \ufffd"
    assert (out["citations"][0]["start"], out["citations"][0]["quote"]) == (
        0,
        "A text \ufffd",
    )
    assert "half \ufffd" in [failure["message"] for failure in out["failures"]]


@pytest.mark.parametrize(
    "passage", [Passage(7, "text"), Passage("p", None), Passage("p", "text", None)]
)
def test_a_passage_of_anything_but_texts_is_a_type_error(passage):
    class Retriever:
        def retrieve(self, query, k=5):
            return [Hit(passage, 1.0)]

    with pytest.raises(
        TypeError,
        match=says(
            "retriever", "must return hits", "Hit(Passage(id, text), score)", "got"
        ),
    ):
        create_ras_agent(retriever=Retriever()).invoke({"question": "Who?"})


def test_a_given_passage_of_anything_but_texts_is_named():
    agent = create_ras_agent(retriever=ROLES)
    with pytest.raises(
        ValueError,
        match=says(
            "given passage 2", "id, text, title and document_id", "must be texts", "got"
        ),
    ):
        agent.invoke(
            {"question": "Who?", "seed_passages": ["one", Passage("p", "two", None)]}
        )


def test_a_blank_sentence_ends_a_chain_of_thought_like_an_empty_one():
    class Blank(Halves):
        def next_sentence(self, question, passages, thoughts):
            return " \n"

    out = create_ircot_agent(planner=Blank(), retriever=ROLES, answerer=ROLES).invoke(
        {"question": "Who?"}
    )
    assert (out["stop_reason"], len(out["steps"])) == ("planner_failed", 1)
