"""What a passage is about: the entity that its pronouns, its short names and "the film" stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ras_agent.words import fold

__all__ = ["Topic", "bare_title", "topic_of"]

_DISAMBIGUATOR = re.compile(r"\s*\([^()]*\)\s*$")
_WORD = re.compile(r"\w+")
_PERSON = re.compile(r"\b(?:he|she|his|her|born)\b", re.IGNORECASE)


def bare_title(title: str) -> str:
    """A title without what tells it from its namesakes.

    >>> bare_title("Alien (film)")
    'Alien'
    """
    return _DISAMBIGUATOR.sub("", title).strip() or title.strip()


@dataclass(frozen=True, slots=True)
class Topic:
    """label: the entity's name, "" for an untitled passage. words: the folded words of its name's first part."""

    label: str
    words: tuple[str, ...]
    person: bool

    def same(self, name: str) -> bool:
        """Whether `name` is the topic's own name or its last part ("Hetfield"), or a person's first name."""
        words = tuple(_WORD.findall(fold(name)))
        if not words or not self.words:
            return False
        size = len(words)
        return words == self.words or words == self.words[-size:] or (self.person and words == self.words[:size])

    def extends(self, name: str) -> bool:
        """Whether `name` is a fuller form of the topic's name: "James Alan Hetfield" for "James Hetfield"."""
        words = set(_WORD.findall(fold(name)))
        return bool(self.words) and len(words) > len(self.words) and set(self.words) <= words


def topic_of(title: str, text: str) -> Topic:
    """The topic of a passage, named as its text names it: "Leeds, Alabama" stays whole only where the text has it so."""
    label = bare_title(title)
    first = label.split(", ")[0]
    if first != label and label not in text and first in text:
        label = first
    return Topic(label, tuple(_WORD.findall(fold(first))), _PERSON.search(text) is not None)
