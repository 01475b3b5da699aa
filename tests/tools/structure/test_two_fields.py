"""Lines that lack a field are read as sentences; words that these do not state stay left over."""

from __future__ import annotations

from typing import Any

import pytest

from ras_agent.contracts.records import Passage, Triple
from ras_agent.tools.structure.llm import LLMExtractor
from ras_agent.tools.structure.parse_triples import parse_triples
from ras_agent.tools.structure.two_fields import mended

TEXT = "Big Stone Gap is a film of 2014. It is set in the actual Virginia town of that name."
GAP = Passage("gap", TEXT, "Big Stone Gap")


@pytest.mark.parametrize(
    "line",
    [
        "(S> Ada | P> was born in London)",
        "(S> Ada was born in London)",
        "(S> Ada | P> was born in London | O> )",
        "(S> Ada, was born in London)",
        '["Ada", "was born in London"]',
        '{"subject": "Ada", "predicate": "was born in London"}',
        "| Ada | was born in London |",
        "Ada | was born in London",
        "<triple>Ada | was born in London</triple>",
        "(Ada, was born in London)",
    ],
)
def test_a_line_with_fewer_than_three_fields_is_read_as_a_sentence(line: str) -> None:
    parsed = mended(parse_triples(line))
    assert parsed.triples == (Triple("Ada", "was born in", "London"),)
    assert parsed.leftovers == ()


@pytest.mark.parametrize(
    "line",
    [
        "(S> Bell | P> moved to)",
        "(S> Bell |",
        "| Name | Year |",
        "Ada lived in London.",
    ],
)
def test_a_line_that_states_nothing_and_prose_stay_left_over(line: str) -> None:
    parsed = mended(parse_triples(line))
    assert (parsed.triples, parsed.leftovers) == ((), (line,))


def test_the_last_line_of_a_reply_that_was_cut_off_is_not_mended() -> None:
    reply = "(S> Ada | P> was born in London)\n(S> Bell | P> was born in Edin"
    parsed = mended(parse_triples(reply, cut_off=True))
    assert [fact.object for fact in parsed.triples] == ["London"]


@pytest.mark.parametrize(
    "line",
    [
        "(S> Rhine | P> flows thr",
        "(S> Rhine | P> flows through | O> the Neth",
        '["Rhine", "flows thr',
        "(Rhine | flows through | the Neth",
        '{"subject": "Rhine", "predicate": "flows through", "object": "the Neth',
        "<triple>Rhine | flows thr",
        "1. (Rhine, flows through the Neth",
    ],
)
def test_a_last_line_that_lacks_its_closing_mark_is_no_fact_but_counted(
    line: str,
) -> None:
    parsed = mended(parse_triples(f"(S> Ada | P> was born in London)\n{line}"))
    assert [fact.object for fact in parsed.triples] == ["London"]
    assert parsed.broken == (line,)


def test_a_line_without_closing_marks_is_no_fact_where_the_reply_was_cut_off() -> None:
    reply = "S> Rhine | P> flows through | O> the Neth"
    assert mended(parse_triples(reply)).triples
    assert mended(parse_triples(reply, cut_off=True)).broken == (reply,)


def test_whole_facts_come_first_and_stay() -> None:
    parsed = mended(
        parse_triples(
            "(S> Ada | P> lived in Paris)\n(S> Ada | P> was born in | O> London)"
        )
    )
    assert [fact.object for fact in parsed.triples] == ["London", "Paris"]


def test_mended_facts_need_no_repair_and_stand_in_the_passage(
    scripted_model: Any,
) -> None:
    reply = "(S> Big Stone Gap | P> is set in Virginia)\n(S> Big Stone Gap | P> was filmed in Toronto)"
    model = scripted_model(reply)
    extraction = LLMExtractor(model).extract([GAP])
    assert [(fact.predicate, fact.object) for fact in extraction.triples] == [
        ("is set in", "Virginia")
    ]
    assert ["'Toronto'" in failure.message for failure in extraction.failures] == [True]
    assert len(model.prompts) == 1


def test_what_cannot_be_mended_is_asked_for_again_and_then_a_failure(
    scripted_model: Any,
) -> None:
    reply = "(S> 贝尔 | P> 出生于爱丁堡)"
    extraction = LLMExtractor(scripted_model(reply, reply)).extract([GAP])
    assert extraction.triples == ()
    assert [failure.message for failure in extraction.failures] == [
        "facts could not be read, also when the model was asked again (passage gap)"
    ]
