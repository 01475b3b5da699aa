"""Secrets that a model holds are masked in every form in which its server may send them back."""

from __future__ import annotations

from base64 import b64encode

import pytest

from ras_agent.tools.chat.models import build_chat_model
from ras_agent.tools.chat.secrets import HeldSecrets, without_secrets

KEY = "modelkey0123456789abcdef"
HELD = HeldSecrets([KEY])


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"bad key {KEY}.", "bad key ***."),
        (f"it ends in {KEY[-12:]}", "it ends in ***"),
        (f"it begins with {KEY[:20]}...", "it begins with ***..."),
        (f"letters {' '.join(KEY)} end", "letters *** end"),
        (f"lines {KEY[:10]}\n{KEY[10:]}\nend", "lines ***\nend"),
        (f"{KEY} and {KEY}", "*** and ***"),
        ("modelkey01 is too little", "modelkey01 is too little"),
        ("A mill stands in Leith.", "A mill stands in Leith."),
    ],
)
def test_a_key_is_masked_whole_and_in_parts_of_twelve_letters(
    text: str, masked: str
) -> None:
    assert HELD.masked(text) == masked


@pytest.mark.parametrize(
    "before", ["", "Bearer ", "x", "xy", '{"Authorization": "Bearer ']
)
def test_a_key_is_masked_in_base64_whatever_stands_before_it(before: str) -> None:
    encoded = _base64(f"{before}{KEY} and more")
    masked = HELD.masked(encoded)
    left, _, right = masked.partition("***")
    assert _base64(KEY)[4:16] not in masked
    assert len(left) + len(right) < len(encoded) - 24


def test_the_password_of_an_address_is_masked_as_it_is_sent() -> None:
    model = build_chat_model("vllm:http://bob:hunterPW77xyz@h/v1#m")
    sent = _base64("bob:hunterPW77xyz")
    for told in ("hunterPW77xyz", sent, f"Basic {sent}", _base64(f"Basic {sent}")):
        masked = without_secrets(f"headers: {told}", model)
        assert "hunter" not in masked
        assert sent[:12] not in masked
        assert "***" in masked


def test_a_short_secret_is_the_dummy_of_a_local_server() -> None:
    assert HeldSecrets(["x", "EMPTY"]).masked("EMPTY boxes") == "EMPTY boxes"
    assert not HeldSecrets(["x"])


@pytest.mark.parametrize("size", [1, 3, 11, 40])
def test_a_text_in_pieces_is_masked_as_the_whole_is_and_nothing_of_a_secret_goes_first(
    size: int,
) -> None:
    text = f"Say {KEY}, then model, then {' '.join(KEY)} and {KEY[3:16]}{KEY[:14]} at the end of modelkey012345"
    shown, taken = "", 0
    for end in range(0, len(text) + size, size):
        masked, length = HELD.settled(text[taken:end])
        shown, taken = shown + masked, taken + length
        assert HELD.masked(text).startswith(shown)
    assert "modelkey0123" not in shown
    assert HELD.settled("A mill")[0] == "A mill"[: HELD.settled("A mill")[1]]


def test_texts_of_arguments_are_masked() -> None:
    assert HELD.masked_in({"query": [KEY, 1], "more": {"key": KEY}}) == {
        "query": ["***", 1],
        "more": {"key": "***"},
    }
