"""Titles of encyclopaedia pages as names."""

from __future__ import annotations

import re
from html import unescape

_DISAMBIGUATOR = re.compile(r"(?<!\s)\s*+\([^()]*+\)$")  # behind white space once, so in linear time


def bare_title(title: str) -> str:
    """Return a title without what tells it from its namesakes, and without escaped characters.

    >>> bare_title("Alien (film)"), bare_title("Will &amp; Grace")
    ('Alien', 'Will & Grace')
    """
    plain = unescaped(title).strip()
    return _DISAMBIGUATOR.sub("", plain) or plain


def unescaped(title: str) -> str:
    """Return a title with the characters that its HTML references stand for.

    >>> unescaped("Q&#38;A")
    'Q&A'
    """
    try:
        return unescape(title)
    except ValueError:  # a reference by a number of thousands of digits stands for nothing
        return title
