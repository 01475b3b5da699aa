"""Evidence in windows of all sizes: as much is shown as fits, and the rest is counted."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.records import Passage, Source, Triple
from ras_agent.prompts import fact_block, passage_block
from ras_agent.prompts.fit import ByUse, Evidence, cut_passage, fit
from ras_agent.text.tokens import estimate_tokens

FACTS = [Triple(f"Bell {number}", "was born in", "Edinburgh") for number in range(40)]
PASSAGES = [
    Passage(f"p{number}", "Bell was born in Edinburgh. " * 10, f"Bell {number}")
    for number in range(10)
]


def backwards() -> ByUse:
    return FACTS[::-1], PASSAGES[::-1]


def test_all_is_shown_where_it_fits() -> None:
    assert fit(FACTS, PASSAGES, 10_000, backwards) == Evidence(
        tuple(FACTS), tuple(PASSAGES)
    )


def test_the_least_useful_are_left_out_and_the_others_stay_in_order() -> None:
    shown = fit(FACTS, PASSAGES, 800, backwards)
    assert shown.facts == tuple(FACTS[-14:])
    assert shown.passages == tuple(PASSAGES[-3:])
    assert shown.left_out == "26 of 40 facts and 7 of 10 passages"


def test_facts_take_what_the_passages_leave() -> None:
    shown = fit(FACTS, PASSAGES[:1], 800, backwards_with_one)
    assert (len(shown.facts), len(shown.passages)) == (22, 1)


def backwards_with_one() -> ByUse:
    return FACTS[::-1], PASSAGES[:1]


def test_of_a_passage_that_does_not_fit_its_first_sentences_are_shown() -> None:
    long = Passage("p", "Bell was born in Edinburgh. " * 100, "Bell")
    shown = fit((), [long], 200, lambda: ((), [long]))
    assert shown.passages[0].text == ("Bell was born in Edinburgh. " * 19).strip()
    assert shown.left_out == "1 of 1 passages (of one, the beginning is shown)"


def test_a_sentence_without_an_end_is_cut_between_two_words() -> None:
    cut = cut_passage(Passage("p", "word " * 1000), 100)
    assert cut is not None
    assert cut.text == ("word " * 68).strip()


@pytest.mark.parametrize("room", [-5, 0, 20])
def test_where_there_is_no_room_nothing_is_shown(room: int) -> None:
    shown = fit(FACTS, PASSAGES, room, backwards)
    assert (shown.passages, len(shown.facts) <= 1) == ((), True)


def test_a_budget_holds_where_the_room_is_larger() -> None:
    shown = fit(FACTS, PASSAGES, 10_000, backwards, most=800)
    assert shown == replace(fit(FACTS, PASSAGES, 800, backwards), most=800)
    assert shown.shortfall(4096) == (
        "26 of 40 facts and 7 of 10 passages are beyond the 800 tokens of evidence that the model is shown, so the "
        "least useful were left out; set evidence_tokens if it reads more"
    )


REPEATING = [
    Triple(f"Bell {number}", "was born in", "Edinburgh", (Source(f"p{number}"),))
    for number in range(10)
]
OWN = Triple("Bell", "was taught by", "his father", (Source("p9"),))


def test_passages_come_before_facts_that_only_repeat_them() -> None:
    facts = (*REPEATING, OWN)
    shown = fit(facts, PASSAGES, 800, lambda: (facts, PASSAGES))
    assert shown.passages == tuple(PASSAGES[:6])
    assert shown.facts == (REPEATING[6], OWN)


def test_facts_that_repeat_a_passage_which_is_shown_are_not_missed() -> None:
    facts = REPEATING[:2]
    shown = fit(facts, PASSAGES[:2], 280, lambda: (facts, PASSAGES[:2]))
    assert (len(shown.passages), shown.facts, shown.left_out) == (2, (), "")


def test_facts_of_passages_that_are_not_shown_come_before_those_of_the_shown() -> None:
    facts = REPEATING[:3]
    shown = fit(facts, PASSAGES[:3], 300, lambda: (facts, PASSAGES[:3]))
    assert [passage.id for passage in shown.passages] == ["p0", "p1"]
    assert shown.facts == (REPEATING[2],)
    assert shown.left_out == "1 of 3 passages"


@given(st.integers(0, 3000), st.integers(0, 40), st.integers(0, 10))
def test_what_is_shown_fits(room: int, facts: int, passages: int) -> None:
    shown = fit(
        FACTS[:facts],
        PASSAGES[:passages],
        room,
        lambda: (FACTS[:facts][::-1], PASSAGES[:passages]),
    )
    block = "\n".join(
        filter(None, (passage_block(shown.passages), fact_block(shown.facts, 1)))
    )
    assert estimate_tokens(block) <= max(room, 0)
