"""A model's window: how many tokens a text is likely to have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ras_agent.prompts import Turn
from ras_agent.tools.chat.window import TOKENS_PER_TURN, estimate_tokens, estimate_turns


@pytest.mark.parametrize(
    ("text", "tokens", "llama_2"),
    [
        ("", 0, 0),
        ("Alexander Graham Bell was born in Edinburgh in 1847.", 19, 15),
        ("(S> Swords, Dublin | P> is part of | O> Republic of Ireland)", 26, 20),
        ("3 141 592 653", 11, 13),
        ("贝尔出生于爱丁堡", 18, 14),
        ("벨은 스코틀랜드 태생", 20, 23),
    ],
)
def test_an_estimate_comes_from_characters_alone(text: str, tokens: int, llama_2: int) -> None:
    """`llama_2`: the tokens that the text has in that model's vocabulary."""
    assert estimate_tokens(text) == tokens
    assert tokens >= 0.8 * llama_2


@given(st.text(), st.text())
def test_the_parts_of_a_text_have_at_least_the_tokens_of_the_whole(left: str, right: str) -> None:
    """So a prompt whose parts fit, each estimated alone, fits too."""
    whole = estimate_tokens(f"{left}\n{right}")
    assert whole <= estimate_tokens(left) + estimate_tokens("\n") + estimate_tokens(right)


def test_each_turn_costs_what_a_chat_template_puts_around_it() -> None:
    turns = (Turn("system", "Be brief."), Turn("user", "Who?"))
    assert estimate_turns(turns) == estimate_tokens("Be brief.") + estimate_tokens("Who?") + 2 * TOKENS_PER_TURN
