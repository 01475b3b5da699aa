"""Finds names and figures of a question that its proof lacks or contradicts, so that the proof is about something
else.

Who signed invoice 4712?          "Invoice 4711 was signed by Ada Crane."            another figure
Who founded Korl Works?           "Varn Mills was founded by Ada Crane."             another name
Who is the mayor of Brennhaven?   "The mayor of Dunmere visited Brennhaven."         a role of another
Who was the last mayor of Varn?   "The first mayor of Varn was Ada Crane."           the opposite
Who attended the fair?            "Ada Crane did not attend the fair."               a denial
Who invented the steam harp?      "The wind harp was invented by Ada Crane."         another of its sort
Who was mayor of Varn before?     "Ada Crane is the mayor of Varn."                  another time
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ras_agent.text.names import names_in
from ras_agent.text.overlap import holds
from ras_agent.text.standing import Standing, Words, Writing
from ras_agent.text.words import FUNCTION_WORDS, stem, stem_set, stems
from ras_agent.tools.offline import english
from ras_agent.tools.offline.answerer.wording import denies
from ras_agent.tools.offline.reading import Sentence, tokens_of

_OPPOSITES = {
    stem(word): frozenset(map(stem, others))
    for word, others in english.words("opposites").items()
}
# "not only X but Y" affirms, and a comma ends the denial: "Ann, not Bob, signed it"
_DENIAL = re.compile(
    r"(?:\b(?:not|never|no|neither|nor|hardly|scarcely)|n['’]t)\b(?! only)[^,;:.()]*\Z",
    re.IGNORECASE,
)
_DENIAL_REACHES = 2  # words after a denial that it covers
# denies the whole clause: "Neither Ann nor Bob signed it"
_DENIED_SUBJECT = re.compile(
    r"(?:\A|[,;:.()]\s)\s*(?:no|neither|nobody|none|hardly)\b(?! longer)[^,;:.()]*\Z",
    re.IGNORECASE,
)
_LONGEST_CLAUSE = 200  # characters
_FEWEST_LISTED = 2  # names that make a list
_WORD = re.compile(r"\w+")
_BETWEEN_NAMES = frozenset({"and", "or", "the", "with"})
_EARLIER = english.words("statements")["earlier"]
_ASKS_FOR_EARLIER = re.compile(
    r"(?i)\b(?:before|previously|formerly)\W*\Z|\bthe (?:previous|former)\b"
)
_ASKS_FOR_NOW = re.compile(r"(?i)(?:who|what|which \w+) (?:is|are)\b")
_NOTE = re.compile(r"\([^()]{0,60}\)")
_SORT_OF = re.compile(
    r"\b(?:[Tt]he|[Aa]n?) (?P<sort>[a-z][a-z-]+) (?P<noun>[a-z][a-z-]+)\b"
)
_NEXT_WORD = re.compile(r" (?P<word>[\w'’-]+)")
_ROLE_OF = re.compile(
    r"\b(?P<role>[a-z][a-z-]+) of (?:the )?(?P<of>[A-Z0-9][\w'’-]*(?: [A-Z0-9][\w'’-]*)*)"
)


def lacks_what_is_named(question: str, grounds: Sequence[Sentence]) -> bool:
    """Return whether a proof lacks a figure or all names of the question, or contradicts it in one of the ways above.

    One of several names is enough, since a proof may name things differently ("Bill Clinton").

    Args:
        grounds: the sentences of the proof.
    """
    text = " ".join(_texts_of(grounds))
    words = Words(text, Writing.ENGLISH)
    for term in words.missing(question):
        if any(map(str.isdigit, term.text)):
            return True
    if _has_no_name_of(question, words) or _is_only_listed(question, grounds):
        return True
    if _says_the_opposite(question, text) or _denies_otherwise(question, text):
        return True
    ends_in = grounds[-1].text if grounds else ""
    if not denies(question) and _denies_otherwise(question, ends_in):
        return True
    if _is_another_of_its_sort(question, text):
        return True
    if _is_of_another_time(question, grounds):
        return True
    return _is_role_of_another(question, text)


def _says_the_opposite(question: str, text: str) -> bool:
    """Return whether a text has the opposite of a word in the question ("first" for "last"), and not that word."""
    roots = _roots(text)
    opposites: set[str] = set()
    for word in _roots(question) - roots:
        opposites |= _OPPOSITES.get(word, frozenset())
    return not opposites.isdisjoint(roots)


def _denies_otherwise(question: str, text: str) -> bool:
    """Return whether the question denies and the text does not, or the other way round.

    A text denies if a word of the question occurs in it only in denials: "did not attend", "was never the owner".
    """
    if denies(question):
        return not denies(text)
    asked = stem_set(question)
    tokens = tokens_of(text)
    denied: set[str] = set()
    affirmed: set[str] = set()
    for place, token in enumerate(tokens):
        if token.stem not in asked:
            continue
        before = tokens[max(0, place - _DENIAL_REACHES) : place]
        near = text[before[0].start : token.start] if before else ""
        clause = text[max(0, token.start - _LONGEST_CLAUSE) : token.start]
        if _DENIAL.search(near) or _DENIED_SUBJECT.search(clause):
            denied.add(token.stem)
        else:
            affirmed.add(token.stem)
    return not denied <= affirmed


def _is_of_another_time(question: str, grounds: Sequence[Sentence]) -> bool:
    """Return whether a question asks about an earlier time and no sentence is about one, or the other way round.

    A question about who "is" something is not answered by a sentence that begins with "before" or "previously".
    """
    if _ASKS_FOR_EARLIER.search(question):
        words = {token.word for one in grounds for token in one.tokens}
        return words.isdisjoint(_EARLIER)
    if _ASKS_FOR_NOW.match(question) is None or not grounds:
        return False
    return grounds[-1].begins_with(_EARLIER)


def _is_another_of_its_sort(question: str, text: str) -> bool:
    """Return whether a text has "the wind harp" where the question has "the steam harp", and "steam" nowhere."""
    roots = _roots(text)
    asked = _roots(question)
    sorts_of_text = _sorts(text)
    for sort, noun in _sorts(question):
        others = {stem(other) for other, of in sorts_of_text if of == noun}
        if holds(text, sort) or stem(sort) in roots:
            continue
        if others and others.isdisjoint(asked):
            return True
    return False


def _sorts(text: str) -> list[tuple[str, str]]:
    """Return the words that state a kind of thing, each with the stem of the thing: ("steam", "harp")."""
    found: list[tuple[str, str]] = []
    for match in _SORT_OF.finditer(text):
        following = _NEXT_WORD.match(text, match.end())
        if following and not _ends_a_noun(following["word"]):
            continue
        words = {match["sort"], match["noun"]}
        if words.isdisjoint(FUNCTION_WORDS):
            noun = stem(match["noun"])
            found.append((match["sort"], noun))
    return found


def _ends_a_noun(word: str) -> bool:
    """Return whether a word that follows a noun phrase ends the phrase, as a function word does."""
    return word in FUNCTION_WORDS or word in english.KNOWN


def _roots(text: str) -> set[str]:
    roots: set[str] = set()
    for token in tokens_of(text):
        roots.add(stem(token.word))
    return roots


def _is_only_listed(question: str, grounds: Sequence[Sentence]) -> bool:
    """Return whether a proof only lists names: its last sentence ends in a list, and shares only names with the question.

    For example, a list of people who were present does not show that they are of somebody's family.
    """
    names = _names(question)
    if not names or not grounds:
        return False
    sentence = grounds[-1]
    if len(sentence.names) < _FEWEST_LISTED:
        return False
    _, _, listed = _NOTE.sub("", sentence.text).rpartition(":")
    between = listed
    for name in _names(listed):
        between = between.replace(name, "", 1)
    if not _BETWEEN_NAMES.issuperset(_WORD.findall(between.lower())):
        return False
    asked = stem_set(question) - stem_set(" ".join(names))
    return asked.isdisjoint(sentence.stems)


def _has_no_name_of(question: str, words: Words) -> bool:
    """Return whether a question has names, and the text contains none of them, nor a part of one ("Bell")."""
    parts = _names(words.text)
    names = _names(question)
    for name in names:
        if words.standing(name) is Standing.STANDS:
            return False
        in_full = Words(name, Writing.ENGLISH)
        for part in parts:
            if not in_full.missing(part):
                return False
    return names != []


def _texts_of(grounds: Sequence[Sentence]) -> Iterator[str]:
    """Yield the sentences of a proof, their passages' titles, and the sentences that name their pronouns' subjects."""
    for sentence in grounds:
        yield sentence.passage.title
        yield sentence.naming.text
        yield sentence.text


def _names(text: str) -> list[str]:
    """Return the names in a text, ignoring its first word if that is a function word."""
    first, _, rest = text.partition(" ")
    if first.lower() in FUNCTION_WORDS:
        text = rest
    return names_in(text)


def _is_role_of_another(question: str, text: str) -> bool:
    """Return whether a text has "mayor of Dunmere", but not "mayor of Brennhaven", which the question has."""
    for asked in _ROLE_OF.finditer(question):
        if asked["role"] in english.CLOSED:
            continue  # "one of"
        of_same_role: list[str] = []
        for stated in _ROLE_OF.finditer(text):
            if stated["role"] == asked["role"]:
                of_same_role += stems(stated["of"])
        wanted = stems(asked["of"])
        if of_same_role and set(wanted).isdisjoint(of_same_role):
            return True
    return False
