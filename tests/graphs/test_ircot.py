"""IRCoT: sentence and retrieval take turns, and a reader answers from the union."""

import pytest

from ras_agent import Limits, create_ircot_agent
from ras_agent.contracts.errors import ModelCallError
from tests.messages import says


class ScriptedReasoner:
    """Sentence number n after n hops; exceptions are raised."""

    def __init__(self, *script):
        self.script = script

    def next_sentence(self, question, passages, thoughts):
        now = self.script[len(thoughts)]
        if isinstance(now, Exception):
            raise now
        return now


@pytest.fixture
def ircot(fakes):
    def build(*script, **overrides):
        roles = {
            "planner": ScriptedReasoner(*script),
            "retriever": fakes.EchoRetriever(),
            "answerer": fakes.CountingAnswerer(),
        }
        return create_ircot_agent(**{**roles, **overrides})

    return build


def test_it_retrieves_with_the_question_and_then_with_each_sentence(ircot):
    agent = ircot(
        "Bell was born in Edinburgh.", "So the answer is: the Water of Leith."
    )
    out = agent.invoke({"question": "Which river?"})
    assert [step["subquery"] for step in out["steps"]] == [
        "Which river?",
        "Bell was born in Edinburgh.",
    ]
    assert [step["thought"] for step in out["steps"]] == [
        "",
        "Bell was born in Edinburgh.",
    ]
    assert (out["answer"], out["stop_reason"]) == ("0 facts, 4 passages", "sufficient")


def test_the_plans_hold_the_sentences(ircot):
    out = ircot("Bell was born in Edinburgh.", "The ANSWER  is Leith.").invoke(
        {"question": "Which river?"}
    )
    assert out["plans"] == [
        {
            "action": "subq",
            "subquery": "Bell was born in Edinburgh.",
            "reason": "",
            "hop": 2,
            "thought": True,
        },
        {
            "action": "sufficient",
            "subquery": "",
            "reason": "The ANSWER  is Leith.",
            "hop": 3,
            "thought": True,
        },
    ]


def test_answer_is_counts_as_whole_words_only(ircot):
    out = ircot(
        "The answer isn't known.", "Nobody can answer issues.", "An answer is 4."
    ).invoke({"question": "Q?"})
    assert len(out["steps"]) == 3


def test_the_step_limit_ends_it(ircot):
    out = ircot("one", "two", "three", limits=Limits(max_hops=2)).invoke(
        {"question": "Q?"}
    )
    assert ([step["subquery"] for step in out["steps"]], out["stop_reason"]) == (
        ["Q?", "one"],
        "max_hops",
    )


def test_a_published_limit_of_two_sentences_is_three_retrievals(ircot):
    out = ircot("one", "two", "three", limits=Limits(max_hops=3)).invoke(
        {"question": "Q?"}
    )
    assert [step["subquery"] for step in out["steps"]] == ["Q?", "one", "two"]
    assert [step["thought"] for step in out["steps"]] == ["", "one", "two"]


def test_a_repeated_sentence_ends_it(ircot):
    out = ircot("one", "One.", "two").invoke({"question": "Q?"})
    assert (len(out["steps"]), out["stop_reason"]) == (2, "repeated_subquery")


def test_the_reasoner_sees_the_union_of_passages_and_its_sentences(ircot):
    seen = []

    class Watching(ScriptedReasoner):
        def next_sentence(self, question, passages, thoughts):
            seen.append(([passage.id for passage in passages], list(thoughts)))
            return super().next_sentence(question, passages, thoughts)

    ircot(planner=Watching("one", "the answer is 1")).invoke({"question": "Q?"})
    assert seen == [
        (["Q? A", "Q? B"], []),
        (["Q? A", "Q? B", "one A", "one B"], ["one"]),
    ]


def test_the_reader_sees_the_union_of_passages(ircot):
    out = ircot("one", "the answer is 1").invoke({"question": "Q?"})
    assert list(out["passages"]) == ["Q? A", "Q? B", "one A", "one B"]
    assert out["answer"] == "0 facts, 4 passages"


def test_an_extractor_reads_facts_hop_by_hop(ircot, fakes):
    out = ircot("one", "the answer is 1", extractor=fakes.SentenceExtractor()).invoke(
        {"question": "Q?"}
    )
    assert out["answer"] == "4 facts, 4 passages"
    assert [len(step["new_triple_ids"]) for step in out["steps"]] == [2, 2]


def test_without_an_extractor_no_facts_cannot_be_new(ircot):
    assert (
        len(ircot("one", "two", "the answer is 2").invoke({"question": "Q?"})["steps"])
        == 3
    )


def test_with_an_extractor_no_new_facts_end_it(ircot, fakes):
    retriever = fakes.EchoRetriever({"one": ["Q? A"]})
    agent = ircot(
        "one", "two", "three", extractor=fakes.SentenceExtractor(), retriever=retriever
    )
    assert agent.invoke({"question": "Q?"})["stop_reason"] == "no_new_facts"


@pytest.mark.parametrize(
    ("sentence", "recorded"), [(ModelCallError("no reply"), 1), ("", 1)]
)
def test_a_reasoner_that_fails_ends_it_in_an_answer(ircot, fakes, sentence, recorded):
    out = ircot(sentence).invoke({"question": "Q?"})
    assert (out["answer"], out["stop_reason"]) == (
        "0 facts, 2 passages",
        "planner_failed",
    )
    assert len(fakes.of_role(out, "reasoner")) == recorded


def test_a_failed_retrieval_is_followed_by_the_next_sentence(ircot, fakes):
    retriever = fakes.EchoRetriever({"one": OSError("lost")})
    out = ircot("one", "the answer is 1", retriever=retriever).invoke(
        {"question": "Q?"}
    )
    assert (out["answer"], out["stop_reason"]) == ("0 facts, 2 passages", "sufficient")
    assert len(fakes.of_role(out, "retriever")) == 1


def test_model_calls_end_it_with_one_reserved_for_the_answer(ircot, fakes):
    agent = ircot(
        planner=fakes.Metered(ScriptedReasoner("one", "two")),
        answerer=fakes.Metered(fakes.CountingAnswerer()),
    )
    out = agent.invoke({"question": "Q?"}, context=Limits(max_llm_calls=2))
    assert [call["role"] for call in out["usage"]["calls"]] == ["reasoner", "answerer"]
    assert (out["answer"], out["stop_reason"]) == (
        "0 facts, 4 passages",
        "max_llm_calls",
    )


def test_seed_passages_take_the_place_of_the_first_retrieval(ircot):
    out = ircot("one", "the answer is 1").invoke(
        {"question": "Q?", "seed_passages": ["A seed."]}
    )
    assert list(out["passages"]) == ["given-1", "one A", "one B"]


def test_static_passages_are_refused(ircot):
    with pytest.raises(ValueError, match=says("static_passages", "give seed_passages")):
        ircot("one").invoke({"question": "Q?", "static_passages": ["a"]})


async def test_asynchronous_runs_give_the_same(ircot, fakes):
    agent = ircot("one", "the answer is 1")
    asynchronous = await agent.ainvoke({"question": "Q?"})
    assert fakes.untimed(asynchronous) == fakes.untimed(
        agent.invoke({"question": "Q?"})
    )
