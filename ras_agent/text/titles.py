"""Titles of encyclopaedia pages as names, and of files."""

from __future__ import annotations

import re
from html import unescape

_DISAMBIGUATOR = re.compile(r"(?<!\s)\s*+\([^()]*+\)$")  # behind white space once, so in linear time

_APART = re.compile(r"~[0-9a-f]{6}$")  # by which an index tells files of one name apart


def bare_title(title: str) -> str:
    """Return a title without a final note in parentheses and with HTML references resolved.

    >>> bare_title("Alien (film)"), bare_title("Will &amp; Grace")
    ('Alien', 'Will & Grace')
    """
    plain = unescaped(title).strip()
    return _DISAMBIGUATOR.sub("", plain) or plain


def file_title(name: str) -> str:
    """Return a title made from the name of a file.

    >>> file_title("notes/Alexander_Graham_Bell.txt")
    'Alexander Graham Bell'
    """
    last = name.rpartition("/")[2]
    stem, dot, _ = last.rpartition(".")
    return _APART.sub("", stem if dot and stem else last).replace("_", " ").strip()


def with_title(title: str, text: str) -> str:
    """Return a text behind its title, which often names what the text then calls "he" or "the city"."""
    if title:
        return f"{title}. {text}"
    return text


def unescaped(title: str) -> str:
    """Replace the HTML references of a title by the characters that they stand for.

    >>> unescaped("Q&#38;A")
    'Q&A'
    """
    try:
        return unescape(title)
    except ValueError:  # a reference by a number of thousands of digits stands for nothing
        return title
