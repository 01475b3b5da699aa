"""The meaning of a planner's reply: which of its tokens count, and the text behind them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.contracts.errors import ParseError
from ras_agent.contracts.marks import ACTIONS
from ras_agent.contracts.records import Plan
from ras_agent.tools.plan.grammar import PATTERN, parse_plan
from tests.find_any import find_any


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


@given(st.from_regex(PATTERN, fullmatch=True))
def test_whatever_matches_the_pattern_of_a_plan_is_one(reply: str) -> None:
    plan = parse_plan(reply, "Question: Who?")
    assert str(ACTIONS[plan.action]) in reply
    assert plan.action != "subq" or plan.subquery


@pytest.mark.parametrize(
    ("subquery", "fits"),
    [
        ("Where was Dr. J. K. Smith, Jr., born?", True),
        ("J.R.R. Tolkien was born in which year?", True),
        ("St. Louis had 2.5 million people in which year?", True),
        ("Which U.S. president founded amazon.com Inc.?", True),
        ("The creator of Git was born in 1967.", True),
        ("In 1967. The creator of Git was born in 1967?", False),
        ("In 1967.The creator of Git was born in 1967?", False),
        ("上海在中国。北京在哪里?", False),
    ],
)
def test_no_sentence_goes_on_behind_another_in_the_pattern_of_a_plan(
    subquery: str, fits: bool
) -> None:
    assert bool(re.fullmatch(PATTERN, f"[SUBQ] {subquery}")) == fits


@pytest.mark.parametrize(
    "reply",
    [
        "INSUFFICIENT",
        "[INSUFFICIENT]",
        "The facts are sufficient.",
        "It is not [SUFFICIENT] yet",
        "[SUFFICIENT",
        "NOT SUFFICIENT",
        "Sufficient?",
        "SUFFICIENT: no",
        "[SUFFICIENT]? No.",
        "[SUFFICIENT] would be premature.",
        "[SUFFICIENT] if the year were known",
        "The facts are not\nSUFFICIENT\nyet.",
        "The facts are not\n[SUFFICIENT]",
        "The facts are not yet: [SUFFICIENT]",
        "[SUFFICIENT] Wait, the year is missing.",
        "The answer is not in the passages yet.",
        '{"sufficient": false}',
        '{"action": "sufficient", "query": "Who wrote Faust?"}',
        '{"action": "subq", "query": "Who wr',
        "[SUBQ] a search question",
        "Is it sufficient?",
        "Could you tell me more about Goethe?",
        "[SUBQ]",
        "[SUBQ] ...",
        "",
        "<think>The facts are enough. [SUFFICIENT]</think>",
        "<think>still thinking: [SUFFICIENT]",
        "x[SUFFICIENT]",
        "I think this\nSUFFICIENT",
        "What the token says is\n[SUFFICIENT]",
        "The river is named, its source is not: [SUFFICIENT]",
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
        '[SUBQ] "Who wrote it?',  # one quote was forgotten
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
    "token",
    [
        "[NO_RETRIEVAL]",
        "[NO RETRIEVAL]",
        "[No-Retrieval]",
        "[ no_retrieval ]",
        "[NORETRIEVAL]",
    ],
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


@pytest.mark.parametrize(
    "question",
    [
        "When was Bell born",
        "when was Bell born",
        "When Bell was born.",
        "Is Bell a Scot",
        "Was Bell born in Leith",
    ],
)
def test_a_question_needs_no_question_mark(question: str) -> None:
    assert parse_plan(f"[SUBQ] {question}").subquery == question


@pytest.mark.parametrize(
    "remark",
    ["[SUBQ] when more is needed", "Use [SUBQ] When more is needed.", "[SUBQ] is next"],
)
def test_a_remark_about_the_token_is_no_question(remark: str) -> None:
    with pytest.raises(ParseError):
        parse_plan(remark)


@pytest.mark.parametrize("inside", ["\x1e", "\x0b", "\x85", "\u2028"])
def test_a_character_that_ends_no_line_of_a_model_is_a_blank(inside: str) -> None:
    plan = parse_plan(f"[SUBQ] When was{inside} Bell born?\r\nOr where?")
    assert plan.subquery == "When was Bell born?"


def test_a_subquery_keeps_its_own_punctuation() -> None:
    assert (
        parse_plan('[SUBQ] Who plays "M" in C++: The Film (1999)?').subquery
        == 'Who plays "M" in C++: The Film (1999)?'
    )


@pytest.mark.parametrize(
    "question",
    [
        "(Who wrote it (the book)",
        "((Who wrote it)",
        '"M" or "Q"',
        "“M” or “Q”",
        "“Who wrote M””",
    ],
)
def test_quotes_and_parentheses_that_are_not_around_all_of_a_subquery_stay(
    question: str,
) -> None:
    assert parse_plan(f"[SUBQ] {question}").subquery == question


def test_markup_of_any_depth_on_its_line_may_come_before_an_action() -> None:
    reply = (
        "The facts say nothing about it. " * 4
        + "\n"
        + "> " * 10
        + "[SUBQ] Who wrote it?"
    )
    assert parse_plan(reply).subquery == "Who wrote it?"


@pytest.mark.parametrize("before", ["> " * 40, "It is known.\n" + " " * 79])
def test_up_to_eighty_characters_of_markup_may_come_before_a_token(before: str) -> None:
    assert states(f"{before}[SUFFICIENT]") == "sufficient"
    assert states(f"{before} [SUFFICIENT]") == ""


def test_far_behind_prose_a_token_begins_no_line() -> None:
    with pytest.raises(ParseError):
        parse_plan("It is not" + " " * 90 + "[SUFFICIENT]")


def test_what_is_missing_within_two_hundred_characters_denies_the_token_in_front() -> (
    None
):
    assert states("[SUFFICIENT] Good" + " so" * 62 + "  missing") == ""
    assert states("[SUFFICIENT] Good" + " so" * 62 + "   missing") == "sufficient"


def test_what_an_earlier_clause_denies_is_not_the_token() -> None:
    assert states("The river is not named, its source is: [SUFFICIENT]") == "sufficient"


def test_a_question_is_announced_by_the_first_word_of_a_reply() -> None:
    assert parse_plan("use [SUBQ] Who wrote it?").subquery == "Who wrote it?"


def test_a_bracket_that_ends_a_question_is_left_out_where_it_is_the_tokens() -> None:
    assert (
        parse_plan("[SUBQ] Who wrote Notes [sic]").subquery == "Who wrote Notes [sic]"
    )
    assert parse_plan("[SUBQ: Who wrote Notes]").subquery == "Who wrote Notes"


def test_an_action_in_a_block_of_json_counts_whatever_prose_is_around_it() -> None:
    assert (
        states('I have thought.\n```json\n{"action": "sufficient"}\n```\nThat is all.')
        == "sufficient"
    )


def test_two_hundred_characters_of_an_unreadable_reply_are_shown() -> None:
    with pytest.raises(ParseError, match=r"reply 'x{200}'; expected one line"):
        parse_plan("x" * 300)


def test_a_list_number_is_no_reason() -> None:
    assert parse_plan("1. [SUFFICIENT]") == Plan("sufficient")


def test_a_long_reason_is_cut() -> None:
    assert parse_plan("x" * 600 + ".\n[SUFFICIENT]").reason == "x" * 500


@pytest.mark.parametrize(
    ("reply", "question"),
    [
        ("Where was Bell born?", "Where was Bell born?"),
        ("Is Paris large?", "Is Paris large?"),
        ("What happened there in 1847?", "What happened there in 1847?"),
        ("In which city did Bell live?", "In which city did Bell live?"),
        ("What was the 3rd of them?", "What was the 3rd of them?"),
        (
            "Both are known.\n**Who directed Alien: Resurrection?**",
            "Who directed Alien: Resurrection?",
        ),
        ("The next question is: Where was Bell born?", "Where was Bell born?"),
        ("The next question is Where was Bell born?", "Where was Bell born?"),
        ("One thing: it is unclear. So: Where was Bell born?", "Where was Bell born?"),
    ],
)
def test_a_question_that_ends_a_reply_without_tokens_is_searched_for(
    reply: str, question: str
) -> None:
    assert parse_plan(reply) == Plan("subq", question)


@pytest.mark.parametrize(
    "reply",
    [
        "Where was he born?",  # nobody is named
        "Where was Bell born",
        "Where was Bell born? And where did Watson live?",
        "Where was Bell born? I do not know.",
        "Do you know where Bell was born?",
        "Where was I when Bell called?",
        "Bell was born where?",
        "The facts [SUBQ] are: Where was Bell born?",
    ],
)
def test_another_question_without_a_token_is_none(reply: str) -> None:
    assert states(reply) == ""


def test_a_question_that_the_model_was_shown_is_not_searched_for() -> None:
    with pytest.raises(ParseError):
        parse_plan(
            "Where was Bell born?",
            prompt="Question: Where was Bell born, the inventor?\nWhere was Bell born?",
        )


@pytest.mark.parametrize(
    ("reply", "plan"),
    [
        ('{"action": "sufficient"}', Plan("sufficient")),
        (
            '{"next_action": "[NO_RETRIEVAL]", "reason": "It is known."}',
            Plan("no_retrieval", reason="It is known."),
        ),
        (
            '{"sufficient": true, "thought": "Both are known."}',
            Plan("sufficient", reason="Both are known."),
        ),
        ('{"is_sufficient": "Yes"}', Plan("sufficient")),
        ('{"no_retrieval": "true"}', Plan("no_retrieval")),
        ('{"sufficient": true, "missing": ""}', Plan("sufficient")),
        ('{"subq": "Who wrote it?"}', Plan("subq", "Who wrote it?")),
        (
            '{"sufficient": false, "query": "Who wrote it?"}',
            Plan("subq", "Who wrote it?"),
        ),
        (
            '{"action": "search", "query": "Who wrote it?", "reasoning": "x"}',
            Plan("subq", "Who wrote it?", "x"),
        ),
        (
            '{"action": "subq", "query": ["Who wrote it?", "Who filmed it?"]}',
            Plan("subq", "Who wrote it?", further=("Who filmed it?",)),
        ),
        (
            '{"subqueries": ["Who wrote it?", "Who filmed it?", "Who wrote it?"]}',
            Plan("subq", "Who wrote it?", further=("Who filmed it?",)),
        ),
        (
            '{"action": "search", "query": "Who wrote it?"}\n{"action": "search", "query": "Who filmed it?"}',
            Plan("subq", "Who wrote it?", further=("Who filmed it?",)),
        ),
        (
            '{"action": "ask", "question": "Who wrote it?"}',
            Plan("subq", "Who wrote it?"),
        ),
        ('{"action": "[SUBQ] Who wrote it?"}', Plan("subq", "Who wrote it?")),
        ('{"note": "first"}\n{"action": "sufficient"}', Plan("sufficient")),
        (
            '{"action": "search", "query": "..."}\n{"action": "sufficient"}',
            Plan("sufficient"),
        ),
    ],
)
def test_actions_in_json(reply: str, plan: Plan) -> None:
    assert parse_plan(reply) == plan


@pytest.mark.parametrize(
    "reply",
    [
        '{"sufficient": false}',
        '{"sufficient": "no"}',
        '{"sufficient": 1}',
        '{"action": "sufficient?"}',
        '{"action": "sufficient", "query": "Who wrote it?"}',
        '{"sufficient": true, "missing_facts": ["the year"]}',
        '{"action": "wait", "query": "Who wrote it?"}',
        '{"question": "Who wrote it?"}',  # the user's
        '{"action": "search"}',
        '{"query": []}',
        '{"query": 7}',
        '{"query": null, "action": null}',
    ],
)
def test_json_that_states_no_action(reply: str) -> None:
    assert states(reply) == ""


def test_a_long_reason_in_json_is_cut() -> None:
    assert (
        parse_plan(f'{{"sufficient": true, "reason": "{"x" * 600}"}}').reason
        == "x" * 500
    )


TOKENS = (
    *(
        "[SUBQ]",
        "[subq]",
        "[ SUBQ :]",
        "[SUFFICIENT]",
        "[SUFFİCIENT]",
        "[NO_RETRIEVAL]",
        "[No Retrieval]",
        "[",
        "]",
    ),
    *(
        "SUFFICIENT",
        "INSUFFICIENT",
        "[INSUFFICIENT]",
        "Who wrote it?",
        "not ",
        "The facts are ",
        "<think>",
        "</think>",
    ),
    *(". ", ": ", "\n", "- ", "1. ", "**", "`", '"', "...", " "),
)
replies = st.lists(st.sampled_from(TOKENS), max_size=15).map("".join)


def states(reply: str) -> str:
    """Return the action that a reply states, "" if it states no action."""
    try:
        return parse_plan(reply).action
    except ParseError:
        return ""


@given(replies)
def test_a_reply_is_a_plan_or_a_parse_error(reply: str) -> None:
    action = states(reply)
    assert action in ("subq", "sufficient", "no_retrieval", "")
    if action == "subq":
        assert any(map(str.isalnum, parse_plan(reply).subquery))
    assert states(f"{reply}</think>") == ""


@pytest.mark.parametrize("action", ["subq", "sufficient", "no_retrieval", ""])
def test_the_replies_drawn_above_state_every_action(action: str) -> None:
    assert find_any(
        replies, lambda reply: "INSUFFICIENT" in reply and states(reply) == action
    )


@given(
    replies.filter(
        lambda reply: (
            not re.search(r"\[[^\w\]]*(SUBQ|SUFF.CIENT|NO)", reply, re.IGNORECASE)
        )
    )
)
def test_a_reply_without_whole_tokens_never_stops_the_loop(reply: str) -> None:
    assert states(f"{reply} SUFFICIENT INSUFFICIENT sufficient {reply}") == ""


@pytest.mark.parametrize(
    "label", ["The answer is:", "the final answer", "Reply:", "The next move is:"]
)
def test_a_label_behind_the_mark_is_no_search(label: str) -> None:
    with pytest.raises(ParseError):
        parse_plan(f"{label}\n[SUBQ]\n\n{label}\n[SUBQ]")
