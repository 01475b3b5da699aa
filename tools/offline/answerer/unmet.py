"""What a question names and its proof does not: then the proof is of something else.

Who signed invoice 4712?          "Invoice 4711 was signed by Ada Crane."            another figure
Who founded Korl Works?           "Varn Mills was founded by Ada Crane."             another name
Who is the mayor of Brennhaven?   "The mayor of Dunmere visited Brennhaven."         a role of another
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ras_agent.text.names import name_spans
from ras_agent.text.words import FUNCTION_WORDS, stems, word_set
from ras_agent.tools.offline.reading import Sentence

PRONOUNS = word_set("it he she they its his her their")
_FIGURE = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z\d]+(?:[.,:/-]\d+)*")
_ROLE_OF = re.compile(r"\b(?P<role>[a-z][a-z-]+) of (?:the )?(?P<of>[A-Z0-9][\w'’-]*(?: [A-Z0-9][\w'’-]*)*)")
_SEPARATORS = re.compile(r"(?<=\d),(?=\d{3})")


def lacks_what_is_named(question: str, grounds: Sequence[Sentence]) -> bool:
    """Tell whether a proof lacks a figure of the question, or has none of its names, or tells of another one's role.

    One of several names is enough: a proof names things in other words, too ("Bill Clinton").
    """
    text = " ".join(_told(grounds))
    if not _figures(question) <= _figures(text):
        return True
    if _has_no_name_of(question, text):
        return True
    return _is_role_of_another(question, text)


def _has_no_name_of(question: str, text: str) -> bool:
    """Tell whether a text has none of the question's names, nor one by a part of it ("Bell")."""
    known = set(stems(text))
    parts = [set(stems(text[start:end])) for start, end in name_spans(text)]
    names = _names(question)
    for name in names:
        wanted = set(stems(name))
        if wanted <= known:
            return False
        for part in parts:
            if part and part <= wanted:
                return False
    return names != []


def _told(grounds: Sequence[Sentence]) -> Iterable[str]:
    """Yield the sentences of a proof, the titles of their passages, and the one before a sentence with a pronoun."""
    for sentence in grounds:
        passage = sentence.passage
        yield passage.title
        words = [token.word for token in sentence.tokens[:1]]
        if sentence.number > 0 and not PRONOUNS.isdisjoint(words):
            before = passage.sentences[sentence.number - 1]
            yield before.text
        yield sentence.text


def _figures(text: str) -> set[str]:
    plain = _SEPARATORS.sub("", text)
    return {match.group().lower() for match in _FIGURE.finditer(plain)}


def _names(question: str) -> list[str]:
    """Return the names in a question; its first word is none if it asks."""
    first, _, rest = question.partition(" ")
    asked = question
    if first.lower() in FUNCTION_WORDS:
        asked = rest
    return [asked[start:end] for start, end in name_spans(asked)]


def _is_role_of_another(question: str, text: str) -> bool:
    """Tell whether the text has "mayor of Dunmere" where the question has "mayor of Brennhaven", and not that."""
    for asked in _ROLE_OF.finditer(question):
        of_same_role: list[str] = []
        for told in _ROLE_OF.finditer(text):
            if told["role"] == asked["role"]:
                of_same_role += stems(told["of"])
        wanted = stems(asked["of"])
        if of_same_role and set(wanted).isdisjoint(of_same_role):
            return True
    return False
