"""A planner's reply means what its whole tokens say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.errors import ParseError
from ras_agent.records import Plan
from ras_agent.tools.plan.grammar import parse_plan


@pytest.mark.parametrize(
    ("reply", "plan"),
    [
        ("[SUBQ] Where was Bell born?", Plan("subq", "Where was Bell born?")),
        ("[SUFFICIENT]", Plan("sufficient")),
        ("[NO_RETRIEVAL]", Plan("no_retrieval")),
    ],
)
def test_the_three_actions(reply: str, plan: Plan) -> None:
    assert parse_plan(reply) == plan


@pytest.mark.parametrize(
    "reply",
    [
        "INSUFFICIENT",
        "[INSUFFICIENT]",
        "The facts are sufficient.",
        "It is not [SUFFICIENT] yet",
        "SUFFICIENT",
        "[SUFFICIENT",
        "[SUBQ]",
        "[SUBQ] ...",
        "",
        "<think>The facts are enough. [SUFFICIENT]</think>",
        "<think>still thinking: [SUFFICIENT]",
    ],
)
def test_what_states_no_action_is_an_error(reply: str) -> None:
    with pytest.raises(ParseError, match="expected one line, either"):
        parse_plan(reply)


@pytest.mark.parametrize(
    "reply",
    [
        '[SUBQ] "Who wrote it?"',
        "**[SUBQ]** Who wrote it?",
        "**[SUBQ] Who wrote it?**",
        "[subq]: Who wrote it?",
        "> [SUBQ] `Who wrote it?`",
        "[SUBQ]\n\nWho wrote it?",
        "```\n[SUBQ] Who wrote it?\n```",
        "1. [SUBQ] Who wrote it?\n2. [SUBQ] Who filmed it?",
        "The graph is INSUFFICIENT. [SUBQ] Who wrote it?",
        "The facts are not [SUFFICIENT], so:\n[SUBQ] Who wrote it?",
        "<think>[SUFFICIENT]? No.</think>\n[SUBQ] Who wrote it?",
        "maybe [SUFFICIENT]</think>[SUBQ] Who wrote it?",
        "[SUBQ] Who wrote it? [SUFFICIENT]",
        "[SUBQ] Who wrote it?\nIf that is known, then [SUFFICIENT]",
    ],
)
def test_quotes_markup_prose_and_thoughts_do_not_matter(reply: str) -> None:
    plan = parse_plan(reply)
    assert (plan.action, plan.subquery) == ("subq", "Who wrote it?")


@pytest.mark.parametrize(
    "token", ["[NO_RETRIEVAL]", "[NO RETRIEVAL]", "[No-Retrieval]", "[ no_retrieval ]", "[NORETRIEVAL]"]
)
def test_spellings_of_a_token(token: str) -> None:
    assert parse_plan(token).action == "no_retrieval"


def test_the_first_valid_action_counts() -> None:
    assert parse_plan("[SUFFICIENT]\n[SUBQ] Who?").action == "sufficient"
    assert parse_plan("[SUBQ]\n[SUFFICIENT]").action == "sufficient"


def test_prose_in_front_of_the_action_is_its_reason() -> None:
    assert parse_plan("Both birth years are known.\n\n[SUFFICIENT]") == Plan(
        "sufficient", reason="Both birth years are known."
    )


def test_a_subquery_keeps_its_own_punctuation() -> None:
    assert (
        parse_plan('[SUBQ] Who plays "M" in C++: The Film (1999)?').subquery == 'Who plays "M" in C++: The Film (1999)?'
    )


@given(st.text(alphabet="[]SUBQFICENTsubq_ \n.*`'\"<>/think", max_size=200))
def test_a_reply_is_a_plan_or_a_parse_error(reply: str) -> None:
    try:
        plan = parse_plan(reply)
    except ParseError:
        return
    assert plan.action != "subq" or plan.subquery


@given(st.text(max_size=60).filter(lambda text: "[" not in text and "]" not in text))
def test_a_reply_without_tokens_never_stops_the_loop(reply: str) -> None:
    with pytest.raises(ParseError):
        parse_plan(f"{reply} SUFFICIENT INSUFFICIENT sufficient {reply}")
