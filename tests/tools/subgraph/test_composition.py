"""Compositions: Table 4 by number, strings, and the message for a wrong one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.config.registry import names
from ras_agent.tools.subgraph.composition import (
    INSTANCES,
    Composition,
    CompositionError,
    parse_composition,
)

TABLE_4 = (
    "ppr>shortest>random",
    "rwr>shortest>random",
    "ppr+bm25>shortest>random",
    "ppr+st>shortest>random",
    "ppr+rerank>shortest>random",
    "ppr+st-ft>shortest>random",
    "ppr+llm>shortest>random",
    "ppr+llm-ft>shortest>random",
    "ppr>complete>random",
    "ppr>beam:bm25>random",
    "ppr>beam:st>random",
    "ppr>beam:rerank>random",
    "ppr>beam:st-ft>random",
    "ppr>beam:llm>random",
    "ppr>beam:llm-ft>random",
    "ppr>shortest>bm25",
    "ppr>shortest>st",
    "ppr>shortest>rerank",
    "ppr>shortest>st-ft",
    "ppr>shortest>llm",
    "ppr>shortest>llm-ft",
)


def test_the_instances_are_those_of_table_4() -> None:
    assert tuple(map(str, INSTANCES)) == TABLE_4


@pytest.mark.parametrize("number", range(21))
def test_an_instance_is_named_by_its_number_or_its_string(number: int) -> None:
    assert (
        parse_composition(number)
        == parse_composition(str(number))
        == parse_composition(TABLE_4[number])
    )


@given(
    st.builds(
        lambda extraction, pruning, filtering, guide, refinement: Composition(
            extraction,
            pruning,
            filtering,
            guide if filtering == "beam" else "",
            refinement,
        ),
        st.sampled_from(["ppr", "rwr", "ego"]),
        st.sampled_from(["", *names("scorer")]),
        st.sampled_from(["shortest", "complete", "beam"]),
        st.sampled_from(names("scorer")),
        st.sampled_from(["random", *names("scorer")]),
    )
)
def test_every_composition_parses_back(composition: Composition) -> None:
    assert parse_composition(str(composition)) == composition
    assert (
        parse_composition(str(composition).replace(">", " > ").upper()) == composition
    )


def test_it_knows_which_scorers_it_needs() -> None:
    assert parse_composition("ppr+st>beam:st>rerank").scorers == ("st", "rerank")
    assert parse_composition(0).scorers == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("21", "there is no instance 21: choose one of Table 4's, 0 to 20"),
        ("-1", "no instance -1"),
        ("ppr>shortest", "has 2 modules, expected three"),
        ("", "has 1 modules"),
        (
            "hop>shortest>random",
            "unknown subgraph extraction 'hop'; known: ppr, rwr, ego",
        ),
        (
            "ppr+tfidf>shortest>random",
            "unknown scorer behind '\\+' 'tfidf'; known: bm25, st",
        ),
        ("ppr+>shortest>random", "unknown scorer behind '\\+' ''"),
        (
            "ppr>longest>random",
            "unknown path filtering 'longest'; known: shortest, complete, beam:<scorer>",
        ),
        ("ppr>beam>random", "unknown scorer behind 'beam:' ''"),
        ("ppr>shortest:st>random", "only 'beam' takes a scorer: write 'shortest'"),
        ("ppr>shortest>best", "unknown path refinement 'best'; known: random, bm25"),
    ],
)
def test_a_wrong_one_says_where_and_what_may_stand(text: str, message: str) -> None:
    with pytest.raises(CompositionError, match=message):
        parse_composition(text)
