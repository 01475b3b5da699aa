"""Attacks by a model's server that repeats its requests: keys, passwords of addresses, headers."""

from __future__ import annotations

import html
import json
import traceback
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from string import ascii_letters, digits
from textwrap import fill
from typing import Any
from urllib.parse import quote, quote_plus

from ras_agent.tools.chat.models import build_chat_model
from ras_agent.tools.chat.secrets import PART, HeldSecrets, secrets_of, without_secrets
from tests.faults.attack import Attack

LETTERS = ascii_letters + digits + "-_+/.&<%"

WRITERS: tuple[Callable[[str], str], ...] = (
    quote,
    partial(quote, safe=""),
    quote_plus,
    lambda text: quote(text, safe="").lower(),
    lambda text: json.dumps(text)[1:-1],
    lambda text: text.replace("/", "\\/"),
    html.escape,
    lambda text: repr(text)[1:-1],
    lambda text: quote(b64encode(text.encode()).decode().rstrip("="), safe=""),
)


def _key(attack: Attack, least: int = 20) -> str:
    return "".join(attack.random.choices(LETTERS, k=attack.random.randint(least, 60)))


def _tells(text: str, secret: str, length: int) -> bool:
    """Tell whether a text holds so many letters of a secret in a row, white space between them or not."""
    letters = "".join(text.split())
    return any(
        secret[start : start + length] in letters
        for start in range(len(secret) - length + 1)
    )


def _echoes(attack: Attack, sent: str) -> list[tuple[str, str]]:
    """Return texts in which a server may repeat its requests, each with the form that stands in it."""
    start = attack.random.randrange(len(sent) - PART)
    part = sent[start : start + attack.random.randint(PART, len(sent))]
    before = "".join(attack.random.choices(LETTERS, k=attack.random.randint(0, 9)))
    forms: list[tuple[str, Callable[[bytes], bytes]]] = [
        ("", b64encode),
        (before, b64encode),
        (before, urlsafe_b64encode),
    ]
    echoes = [
        (f"bad key {sent}: {part}", sent),
        (f"spaced {' '.join(part)} end", part),
        (fill(sent, 7), sent),
    ]
    echoes += [
        (f"Bearer {sent.upper()}", sent.upper()),
        (f"bearer {sent.lower()}", sent.lower()),
    ]
    for write in WRITERS:
        form = write(sent)
        echoes += [
            (f'{{"authorization": "Bearer {form}"}}', form),
            (f"x={form[:-1]}&y", form[:-1]),
        ]
    for front, encode in forms:
        encoded = encode(f"{front}{sent} and more".encode()).decode()
        core = (
            encode(f"{front}{sent}".encode())
            .decode()
            .rstrip("=")[(4 * len(front) + 2) // 3 + 1 : -1]
        )
        echoes += [(f"headers: {encoded}", core), (fill(encoded, 19), core)]
    return echoes


def _chained(secret: str) -> Exception:
    """Return an error that was raised of another, which quotes a secret."""
    try:
        try:
            raise ValueError({"headers": {"authorization": f"Bearer {secret}"}})
        except ValueError as cause:
            raise RuntimeError("the server refused") from cause
    except RuntimeError as error:
        error.add_note(f"sent: {secret}")
        return error


def test_keys_that_a_server_says_again(attack: Attack) -> None:
    """Keys and passwords that a server says again, whole, in part, spaced, in base64, in pieces: no secret can be read"""
    for number in attack.times(300):
        key, password = _key(attack), _key(attack)
        address = (
            f"vllm:http://bob:{quote(password, safe='')}@127.0.0.1:1/v1#m"
            if number % 2
            else "vllm:http://127.0.0.1:1/v1#m"
        )
        model: Any = build_chat_model(address)
        held = secrets_of(model) if number % 2 else HeldSecrets([key])
        sent = password if number % 2 else key
        for text, form in _echoes(attack, sent):
            masked = held.masked(text)
            attack.expect(
                not _tells(masked, form, PART), f"{sent!r} in {text!r}: {masked!r}"
            )
            shown, taken = "", 0
            for end in range(0, len(text) + 5, 5):
                piece, length = held.settled(text[taken:end])
                shown, taken = shown + piece, taken + length
            attack.expect(
                masked.startswith(shown), f"{sent!r} in pieces of {text!r}: {shown!r}"
            )
        chain = "".join(traceback.format_exception(_chained(sent)))
        attack.expect(
            not _tells(held.masked(chain), sent, PART), f"{sent!r} in a chain of errors"
        )
        basic = b64encode(f"bob:{password}".encode()).decode()
        if number % 2:
            attack.expect(
                basic[:PART] not in without_secrets(f"Basic {basic}", model),
                f"the header of {password!r}",
            )
