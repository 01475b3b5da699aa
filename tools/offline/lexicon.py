"""The words of English that the offline mode knows by heart; ras_agent/data/english.toml has them and says why."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from ras_agent.text.words import word_set

_TABLES = tomllib.loads((files("ras_agent.data") / "english.toml").read_text("utf-8"))


def words(table: str) -> dict[Any, frozenset[str]]:
    """Return the lists of a table by their keys."""
    return {key: word_set(listed) for key, listed in _TABLES[table].items()}


CLOSED = {word: letter for letter, listed in words("closed").items() for word in listed}
"""Word -> the letter of its class, if that is closed."""
_OPEN = words("open")
PAST, PARTICIPLES, VERBS = _OPEN["past"], _OPEN["participles"], _OPEN["verbs"]
NOUNS, PLURAL_SUBJECTS = _OPEN["nouns"], _OPEN["plural_subjects"]
KNOWN = frozenset(CLOSED) | PAST | PARTICIPLES | VERBS


def is_third_person(word: str) -> bool:
    """Return whether a word is a third person singular of a verb that is known."""
    bases = (word[:-1], word[:-2] if word.endswith("es") else "", word[:-3] + "y" if word.endswith("ies") else "")
    return word.endswith("s") and not VERBS.isdisjoint(bases)
