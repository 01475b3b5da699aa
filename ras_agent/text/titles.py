"""Titles of encyclopaedia pages as names."""

from __future__ import annotations

import re
from html import unescape

_DISAMBIGUATOR = re.compile(r"\s*\([^()]*\)\s*$")


def bare_title(title: str) -> str:
    """Return a title without what tells it from its namesakes, and without escaped characters.

    >>> bare_title("Alien (film)"), bare_title("Will &amp; Grace")
    ('Alien', 'Will & Grace')
    """
    plain = unescape(title).strip()
    return _DISAMBIGUATOR.sub("", plain) or plain
