"""Holds the English word lists of the offline mode, and rejects texts in another language for its roles.

ras_agent/data/english.toml contains the words by class.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ras_agent.contracts.records import Failure, Passage
from ras_agent.text.languages import ENGLISH, NO_LANGUAGE, foreign_language
from ras_agent.text.words import word_set

_TABLES = tomllib.loads((files("ras_agent.data") / "english.toml").read_text("utf-8"))


def words(table: str) -> dict[Any, frozenset[str]]:
    """Return the word lists in a table of english.toml, by their keys."""
    lists = _TABLES[table]
    return {key: word_set(listed) for key, listed in lists.items()}


CLOSED = {word: letter for letter, listed in words("closed").items() for word in listed}
"""Maps a word of a closed class, such as a preposition, to the letter of the class."""
_OPEN = words("open")
PAST = _OPEN["past"]
PARTICIPLES = _OPEN["participles"]
VERBS = _OPEN["verbs"]
NOUNS = _OPEN["nouns"]
PLURAL_SUBJECTS = _OPEN["plural_subjects"]
KNOWN = frozenset(CLOSED) | PAST | PARTICIPLES | VERBS
PERSONS = word_set("he him she her it they them")
"""Pronouns that stand for something named before."""
SUBJECTS = word_set("he she it they his her its their that this these those")
"""Words with which a sentence begins if it continues about the same thing."""


def is_third_person(word: str) -> bool:
    """Return whether a word is the third person singular of a known verb."""
    bases = (
        word[:-1],
        word[:-2] if word.endswith("es") else "",
        word[:-3] + "y" if word.endswith("ies") else "",
    )
    return word.endswith("s") and not VERBS.isdisjoint(bases)


@dataclass(frozen=True, slots=True)
class EnglishOnly:
    """Rejects questions and passages that an offline role cannot read."""

    role: str
    language: str = ""
    """The language of the texts, if their owner stated it; otherwise ""."""

    def refusal(self, question: str) -> str:
        """Return why this role cannot answer a question, with advice; "" if it can, since everything is English."""
        if self.language not in ("", ENGLISH, NO_LANGUAGE):
            return self._said(f"the texts are in {self.language.capitalize()}")
        foreign = foreign_language(question)
        return (
            self._said(f"the question seems to be in {foreign.capitalize()}")
            if foreign
            else ""
        )

    def readable(
        self, passages: Sequence[Passage]
    ) -> tuple[list[Passage], tuple[Failure, ...]]:
        """Return the passages that seem to be English, and a failure for each other language among the rest."""
        foreign = [foreign_language(passage.text) for passage in passages]
        failures = []
        for language, count in Counter(filter(None, foreign)).items():
            what = "1 passage seems" if count == 1 else f"{count} passages seem"
            failures.append(
                Failure(
                    self.role, self._said(f"{what} to be in {language.capitalize()}")
                )
            )
        return [
            passage for passage, name in zip(passages, foreign, strict=True) if not name
        ], tuple(failures)

    def _said(self, what: str) -> str:
        return f"the offline {self.role} knows English only, and {what}; give it a model, --llm or --{self.role}"
