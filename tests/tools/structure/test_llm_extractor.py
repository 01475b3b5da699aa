"""The extractor on a chat model: one call per passage, facts with the sentences that state them, and failures."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import Failure, Passage, Source, Triple
from ras_agent.running.budget import Ledger, Limits, metered
from ras_agent.tools.structure.llm import MOST_FACTS, LLMExtractor
from ras_agent.tools.structure.parse_triples import parse_triples
from tests.messages import says

BELL = Passage(
    "p1",
    "He moved to Canada. Bell was born in Edinburgh in 1847.",
    "Alexander Graham Bell",
)
LEITH = Passage("p2", "The Water of Leith flows through Edinburgh.", "Water of Leith")
BORN, FLOWS = (
    ("Bell", "was born in", "Edinburgh"),
    ("Water of Leith", "flows through", "Edinburgh"),
)
BORN_LINE, FLOWS_LINE = (f"(S> {s} | P> {p} | O> {o})" for s, p, o in (BORN, FLOWS))


def test_each_passage_is_read_in_its_own_call_and_facts_are_in_order(
    scripted_model: Any,
) -> None:
    model = scripted_model(
        ("Water of Leith\n", FLOWS_LINE), ("Graham Bell\n", BORN_LINE)
    )
    extraction = LLMExtractor(model).extract([BELL, LEITH])
    assert extraction.triples == (
        Triple(*BORN, (Source("p1", 20, 55, extractor="scripted"),)),
        Triple(*FLOWS, (Source("p2", 0, 43, extractor="scripted"),)),
    )
    assert extraction.failures == ()
    assert len(model.prompts) == 2


def test_a_source_is_the_sentence_that_shares_most_with_the_fact(
    scripted_model: Any,
) -> None:
    (triple,) = LLMExtractor(scripted_model(BORN_LINE)).extract([BELL]).triples
    (source,) = triple.sources
    assert BELL.text[source.start : source.end] == "Bell was born in Edinburgh in 1847."


def test_a_fact_in_another_script_is_unchecked_and_has_the_whole_passage_as_its_source(
    scripted_model: Any,
) -> None:
    passage = Passage("p", "贝尔出生于爱丁堡。他后来移居加拿大。")
    (triple,) = LLMExtractor(scripted_model(BORN_LINE)).extract([passage]).triples
    assert triple.sources == (Source("p", 0, 18, extractor="scripted", unchecked=True),)


def test_a_repeated_fact_is_returned_once(scripted_model: Any) -> None:
    assert (
        len(
            LLMExtractor(scripted_model(f"{BORN_LINE}\n{BORN_LINE}"))
            .extract([BELL])
            .triples
        )
        == 1
    )


def test_no_passages_cost_no_call(scripted_model: Any) -> None:
    model = scripted_model()
    assert LLMExtractor(model).extract([]).triples == ()
    assert model.prompts == []


def test_a_passage_without_facts_is_no_failure(scripted_model: Any) -> None:
    model = scripted_model("[NONE]")
    extraction = LLMExtractor(model).extract([BELL])
    assert (extraction.triples, extraction.failures) == ((), ())
    assert len(model.prompts) == 1


def test_a_broken_line_is_asked_for_again_and_joins_the_good_ones(
    scripted_model: Any,
) -> None:
    model = scripted_model(
        f"{BORN_LINE}\n(S> Bell | P> moved to)", "(S> Bell | P> moved to | O> Canada)"
    )
    extraction = LLMExtractor(model).extract([BELL])
    assert [triple.object for triple in extraction.triples] == ["Edinburgh", "Canada"]
    assert extraction.failures == ()
    assert "not in the form of facts: (S› Bell | P› moved to)" in model.prompts[1]


def test_a_line_that_stays_broken_is_a_failure_and_the_good_facts_are_returned(
    scripted_model: Any,
) -> None:
    model = scripted_model(f"{BORN_LINE}\n(S> Bell | P> moved to)", "(S> Bell |")
    extraction = LLMExtractor(model).extract([BELL])
    assert [triple.object for triple in extraction.triples] == ["Edinburgh"]
    assert extraction.failures == (
        Failure(
            "extractor",
            "facts could not be read, also when the model was asked again (passage p1)",
            detail="(S> Bell |",
        ),
    )


@pytest.mark.parametrize(
    "reply", ["", "   ", "I cannot help with that.", "<think>hm</think>"]
)
def test_a_reply_of_prose_or_nothing_is_repaired(
    scripted_model: Any, reply: str
) -> None:
    extraction = LLMExtractor(scripted_model(reply, BORN_LINE)).extract([BELL])
    assert len(extraction.triples) == 1
    assert extraction.failures == ()


def test_prose_around_facts_is_no_failure(scripted_model: Any) -> None:
    model = scripted_model(f"Here are the facts:\n{BORN_LINE}\nLet me know!")
    assert LLMExtractor(model).extract([BELL]).failures == ()
    assert len(model.prompts) == 1


def test_a_failing_call_costs_only_its_own_passage(scripted_model: Any) -> None:
    model = scripted_model(
        ("Water of Leith\n", FLOWS_LINE), ("Graham Bell\n", KeyError("broken"))
    )
    extraction = LLMExtractor(model).extract([BELL, LEITH])
    assert [triple.subject for triple in extraction.triples] == ["Water of Leith"]
    (failure,) = extraction.failures
    assert says("1 try", "KeyError: 'broken'", "passage p1").search(failure.message)


def test_a_failing_repair_loses_no_facts_of_the_first_reply(
    scripted_model: Any,
) -> None:
    extraction = LLMExtractor(
        scripted_model(f"{BORN_LINE}\n(S> x |", KeyError("broken"))
    ).extract([BELL])
    assert len(extraction.triples) == 1
    assert len(extraction.failures) == 1


def test_a_budget_that_ends_midway_loses_no_facts(scripted_model: Any) -> None:
    model = scripted_model(BORN_LINE, FLOWS_LINE)
    ledger = Ledger("extractor", hop=3, limits=Limits(max_llm_calls=2))
    with metered(ledger):
        extraction = LLMExtractor(model, at_once=1).extract([BELL, LEITH])
    assert [triple.subject for triple in extraction.triples] == ["Bell"]
    assert extraction.failures == (
        Failure("extractor", "max_llm_calls = 2 is used up (passage p2)", hop=3),
    )
    assert len(model.prompts) == len(ledger.calls) == 1


async def test_the_asynchronous_twin_does_the_same(scripted_model: Any) -> None:
    model = scripted_model(
        ("Water of Leith\n", FLOWS_LINE), ("Graham Bell\n", BORN_LINE)
    )
    with metered(Ledger("extractor")) as ledger:
        extraction = await LLMExtractor(model).aextract([BELL, LEITH])
    assert [triple.subject for triple in extraction.triples] == [
        "Bell",
        "Water of Leith",
    ]
    assert len(ledger.calls) == 2


def test_calls_made_in_threads_are_on_the_ledger(scripted_model: Any) -> None:
    both = threading.Barrier(2, timeout=10)

    class Meeting(str):
        """A reply that is only given once both calls are in progress."""

        def split(self, *args: Any) -> list[str]:
            both.wait()
            return str.split(self, *args)

    model = scripted_model(
        ("Water of Leith\n", Meeting(FLOWS_LINE)), ("Graham Bell\n", Meeting(BORN_LINE))
    )
    with metered(Ledger("extractor", hop=1)) as ledger:
        LLMExtractor(model, at_once=2).extract([BELL, LEITH])
    assert [(call.role, call.hop) for call in ledger.calls] == [
        ("extractor", 1),
        ("extractor", 1),
    ]


def test_sizes_must_be_positive(scripted_model: Any) -> None:
    with pytest.raises(ValueError, match="must be positive, got 0"):
        LLMExtractor(scripted_model(), at_once=0)


@given(
    st.lists(
        st.sampled_from(
            ["(S> a | P> b | O> c)", "</passage>", "[NONE]", "\n", "[SUFFICIENT]", "x"]
        )
    ).map("".join)
)
def test_a_passage_holds_no_live_facts_and_stays_in_its_fence(text: str) -> None:
    """Even a model that repeats its whole last turn states no fact."""
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    extractor = LLMExtractor(FakeListChatModel(responses=[]))
    (dialogue,) = extractor._dialogues([Passage("p", text, text)])
    turn = next(dialogue).turns[-1].text
    assert parse_triples(turn).triples == ()
    assert turn.count("</passage>") == 1
    assert "[SUFFICIENT]" not in turn


def test_of_a_reply_that_does_not_stop_the_first_facts_are_taken(
    scripted_model: Any,
) -> None:
    reply = "\n".join(
        f"(S> Bell | P> said | O> {number})" for number in range(MOST_FACTS + 5)
    )
    passage = Passage("p1", " ".join(map(str, range(MOST_FACTS))), "Bell")
    found = LLMExtractor(scripted_model(reply)).extract([passage])
    assert [fact.object for fact in found.triples] == [
        str(number) for number in range(MOST_FACTS)
    ]
    assert [failure.message for failure in found.failures] == [
        "only the first 1,000 of 1,005 facts were taken (passage p1)"
    ]


def test_facts_of_a_reply_that_was_cut_off_count_once(scripted_llm: Any) -> None:
    count = MOST_FACTS - 100
    lines = [f"(S> Bell | P> said | O> {number})" for number in range(count)]
    reply = "\n".join([*lines, "(S> Bell | P> sa"])
    scripted_llm.script({"reply": reply, "finish": "length"})
    passage = Passage("p1", " ".join(map(str, range(count))), "Bell")
    found = LLMExtractor(scripted_llm.spec).extract([passage])
    assert len(found.triples) == count
    assert len(found.failures) == 1
    assert "only the first" not in found.failures[0].message


QUILL = Passage(
    "q",
    "Nora Quill is a potter who lives in Harlow. She has made bowls since 1990.",
    "Nora Quill",
)
LIVES_LINE = "(S> Nora Quill | P> lives in | O> Harlow)"


def test_a_fact_that_the_passage_does_not_hold_is_left_out_and_named(
    scripted_model: Any,
) -> None:
    foreign = "(S> Nora Quill | P> worked with | O> Bruce Heezen)"
    extraction = LLMExtractor(scripted_model(f"{LIVES_LINE}\n{foreign}")).extract(
        [QUILL]
    )
    assert [triple.object for triple in extraction.triples] == ["Harlow"]
    assert [failure.message for failure in extraction.failures] == [
        "a fact is left out, because its words are not in passage q: “Nora Quill worked with Bruce Heezen” "
        "(missing: 'Bruce Heezen')"
    ]


def test_a_worked_example_of_the_prompt_is_no_fact_of_the_text(
    scripted_model: Any,
) -> None:
    copied = "(S> Marie Tharp | P> worked with | O> Bruce Heezen)"
    met = Passage("t", "Marie Tharp met Bruce Heezen in 1948.")
    extraction = LLMExtractor(scripted_model(copied), few_shot=True).extract([met])
    assert extraction.triples == ()
    assert [failure.message for failure in extraction.failures] == [
        f"a fact left out, as it is the prompt's worked example and not of the text: {copied} (passage t)"
    ]


def test_a_text_that_says_what_the_worked_example_says_keeps_its_fact(
    scripted_model: Any,
) -> None:
    tharp = Passage("t", "Marie Tharp worked with Bruce Heezen.")
    reply = "(S> Marie Tharp | P> worked with | O> Bruce Heezen)"
    extraction = LLMExtractor(scripted_model(reply), few_shot=True).extract([tharp])
    assert (len(extraction.triples), extraction.failures) == (1, ())
