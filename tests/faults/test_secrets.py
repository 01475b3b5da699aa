"""Attacks by a model's server that says again what it was sent: keys, passwords of addresses, headers."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from string import ascii_letters, digits
from textwrap import fill
from typing import Any

from ras_agent.tools.chat.held_secrets import PART, HeldSecrets
from ras_agent.tools.chat.models import build_chat_model, secrets_of, without_secrets
from tests.faults.attack import Attack

LETTERS = ascii_letters + digits + "-_+/."


def _key(attack: Attack, least: int = 20) -> str:
    return "".join(attack.random.choices(LETTERS, k=attack.random.randint(least, 60)))


def _tells(text: str, secret: str, length: int) -> bool:
    """Tell whether a text holds so many letters of a secret in a row, white space between them or not."""
    letters = "".join(text.split())
    return any(secret[start : start + length] in letters for start in range(len(secret) - length + 1))


def _echoes(attack: Attack, sent: str) -> list[tuple[str, str]]:
    """Return texts in which a server may say what it was sent, each with the form that stands in it."""
    start = attack.random.randrange(len(sent) - PART)
    part = sent[start : start + attack.random.randint(PART, len(sent))]
    before = "".join(attack.random.choices(LETTERS, k=attack.random.randint(0, 9)))
    forms: list[tuple[str, Callable[[bytes], bytes]]] = [
        ("", b64encode),
        (before, b64encode),
        (before, urlsafe_b64encode),
    ]
    echoes = [(f"bad key {sent}: {part}", sent), (f"spaced {' '.join(part)} end", part), (fill(sent, 7), sent)]
    for front, encode in forms:
        encoded = encode(f"{front}{sent} and more".encode()).decode()
        core = encode(f"{front}{sent}".encode()).decode().rstrip("=")[(4 * len(front) + 2) // 3 + 1 : -1]
        echoes += [(f"headers: {encoded}", core), (fill(encoded, 19), core)]
    return echoes


def test_keys_that_a_server_says_again(attack: Attack) -> None:
    """Keys and passwords that a server says again, whole, in part, spaced, in base64, in pieces: none can be read"""
    for number in attack.times(300):
        key, password = _key(attack), _key(attack).replace("/", "x")
        address = f"vllm:http://bob:{password}@127.0.0.1:1/v1#m" if number % 2 else "vllm:http://127.0.0.1:1/v1#m"
        model: Any = build_chat_model(address)
        held = secrets_of(model) if number % 2 else HeldSecrets([key])
        sent = password if number % 2 else key
        for text, form in _echoes(attack, sent):
            masked = held.masked(text)
            attack.expect(not _tells(masked, form, PART), f"{sent!r} in {text!r}: {masked!r}")
            shown, taken = "", 0
            for end in range(0, len(text) + 5, 5):
                piece, length = held.settled(text[taken:end])
                shown, taken = shown + piece, taken + length
            attack.expect(masked.startswith(shown), f"{sent!r} in pieces of {text!r}: {shown!r}")
        basic = b64encode(f"bob:{password}".encode()).decode()
        if number % 2:
            attack.expect(basic[:PART] not in without_secrets(f"Basic {basic}", model), f"the header of {password!r}")
