"""Tokens of a sentence that are more than a word: names, quoted titles, dates, numbers, genitive endings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ras_agent.text.names import name_spans
from ras_agent.text.words import FUNCTION_WORDS, MONTHS
from ras_agent.tools.offline.extractor import lexicon

Tag = Literal[
    "name",
    "title",  # in quotation marks
    "date",
    "number",
    "noun",  # or adjective: all that is nothing else
    "det",
    "poss",  # his, its
    "'s",
    "pronoun",
    "prep",
    "conj",
    "sub",  # while, although
    "rel",  # who, which
    "be",
    "have",
    "do",
    "modal",
    "to",
    "verb",
    "participle",  # or a regular past: "directed"
    "gerund",
    "adverb",
    "mark",
]

_MONTH = "(?:" + "|".join(month.capitalize() for month in MONTHS) + ")"
_YEAR = r"(?:1\d{3}|20\d{2})"
DATE = (
    rf"(?:{_MONTH}\s+\d{{1,2}},?\s+{_YEAR}|\d{{1,2}}\s+{_MONTH},?\s+{_YEAR}|{_MONTH},?\s+{_YEAR}|{_MONTH}\s+\d{{1,2}}"
    rf"|\d{{1,2}}\s+{_MONTH}|(?:(?:early|mid|late)[-\s]+)?(?:the\s+)?{_YEAR}s"
    r"|(?:(?:early|mid|late)[-\s]+)?(?:\d{1,2}(?:st|nd|rd|th)|\w+(?:th|first|second|third))[-\s](?:century|centuries)"
    rf"(?:\s+(?:AD|BC|CE|BCE))?"
    r"|(?:\d{1,2}(?:st|nd|rd|th)|\w+th|first|second|third)\s+(?:and|to|or)\s+(?:the\s+)?"
    r"(?:\d{1,2}(?:st|nd|rd|th)|\w+th)[-\s]centur(?:y|ies)"
    rf"|{_YEAR}(?:[–/-]\d{{2,4}})?|\d{{1,4}}\s+(?:AD|BC|BCE|CE))(?!\w)(?![.,]\d)"
)
"""The pattern of a date, a year, a decade or a century."""
_DATE = re.compile(rf"\b{DATE}")
_QUOTED = re.compile(r"[\"“]\s*([^\"“”]{1,90}?)\s*[\"”]")
_NUMBER = re.compile(
    r"(?:[$€£¥]|US\$)?\d[\d,]*(?:\.\d+)?(?:[–/-]\d[\d,]*(?:\.\d+)?)?%?(?![-–]\w)"
    r"(?:\s(?:million|billion|trillion|thousand|hundred))?(?:\s?(?:km2|sq|km|mi|m|ft|kg|cm|mm|mph|percent))?\b%?"
)
_LEADING_YEAR = re.compile(rf"(?:{_YEAR}(?:[–-]\d{{2,4}})?|\d{{1,3}}(?:,\d{{3}})+)\s+")
_GENITIVE = re.compile(r"(?:(?<=s)['’]|['’]s)(?=\s)")


@dataclass(frozen=True, slots=True)
class Token:
    """Holds a word, or what counts as one; `text` is characters `start` to `end` of the sentence."""

    text: str
    start: int
    end: int
    tag: Tag

    @property
    def low(self) -> str:
        return self.text.lower()


def fixed_tokens(sentence: str, titles: re.Pattern[str] | None, subject: int) -> list[Token]:
    """Return the tokens whose bounds do not depend on grammar, in order, none inside another.

    What `titles` matches counts as a name wherever it cuts none in two, and so do the first `subject` characters.
    """
    return [
        Token(sentence[start:end], start, end, tag) for start, end, tag in sorted(_spans(sentence, titles, subject))
    ]


def _spans(sentence: str, titles: re.Pattern[str] | None, subject: int) -> Iterator[tuple[int, int, Tag]]:
    taken = bytearray(len(sentence))

    def free(start: int, end: int) -> bool:
        if any(taken[start:end]):
            return False
        taken[start:end] = b"\x01" * (end - start)
        return True

    if subject and free(0, subject):
        yield 0, subject, "name"
    for match in _QUOTED.finditer(sentence):
        if free(*match.span()):
            yield (*match.span(1), "title")
    names = list(_names(sentence, taken))
    if titles is not None:
        for match in titles.finditer(sentence):
            start, end = match.span()
            cut = any(a < start < b or a < end < b for a, b in names)
            if not cut and free(start, end):
                yield start, end, "name"
    for pattern, tag in ((_DATE, "date"), (_GENITIVE, "'s")):
        for match in pattern.finditer(sentence):
            if free(*match.span()):
                yield (*match.span(), tag)  # type: ignore[misc]
    for start, end in names:
        if free(start, end):
            yield start, end, "name"
    for match in _NUMBER.finditer(sentence):
        if match.start() == 0 or not sentence[match.start() - 1].isalnum():
            if match.end() < len(sentence) and sentence[match.end()].isalnum():
                continue
            if free(*match.span()):
                yield (*match.span(), "number")


def _names(sentence: str, taken: bytearray) -> Iterator[tuple[int, int]]:
    """Yield the spans of names, without dates, leading years, or a first word capitalised only as such."""
    bare = "".join("," if used else char for char, used in zip(sentence, taken, strict=True))
    for pattern in (_DATE, _GENITIVE):  # commas part names and keep the offsets
        bare = pattern.sub(lambda match: "," * len(match.group()), bare)
    first = len(bare) - len(bare.lstrip(" ,\"'“"))
    for start, end in name_spans(bare):
        year = _LEADING_YEAR.match(bare, start, end)
        if year:
            start = year.end()
        if bare[start:end].replace(".", "").replace(",", "").replace("–", "").isdigit():
            continue
        if start == first and _ordinary(bare[start:end]):
            space = bare.find(" ", start, end)
            if space < 0:
                continue
            start = space + 1
        if any(map(str.isalpha, bare[start:end])) and start < end and not bare[start:end].islower():
            yield start, end


def _ordinary(name: str) -> bool:
    """Return whether the first word of a sentence is an ordinary word there."""
    word = name.split(" ", 1)[0].lower()
    return word in FUNCTION_WORDS or word in lexicon.KNOWN or (word.endswith(("ed", "ing", "ly")) and " " not in name)


_WORD = re.compile(r"[^\W_]+(?:[-–'’./&][^\W_]+)*\.?|[^\w\s]")
_VERBS: frozenset[Tag] = frozenset({"verb", "be", "have", "do", "modal"})
_SUBJECTS: frozenset[Tag] = frozenset({"noun", "name", "title", "pronoun", "adverb"})
_AFTER_VERBS = frozenset({"in", "at", "with", "as", "to", "on", "from", "into", "for"})
_VERBAL_PREFIXES = ("co-", "re-", "pre-", "over-", "under-", "out-", "un-", "self-")
_MODIFIER = re.compile(r"(?:al|ive|ous|ic|ful|less|able|ible|ish|ary)$")
_NOUNS_IN_ED = frozenset({"bed", "seed", "speed", "need", "breed", "red", "hundred", "kindred", "feed", "weed", "deed"})
_NOUNS_IN_ING = frozenset(
    {"king", "ring", "spring", "string", "wing", "building", "nothing", "something", "evening", "morning", "wedding"}
)


def tagged(sentence: str, titles: re.Pattern[str] | None = None, subject: int = 0) -> list[Token]:
    """Return the tokens of a sentence, in order.

    What `titles` matches counts as a name wherever it cuts none in two, and so do the first `subject` characters.
    """
    tokens: list[Token] = []
    at = 0
    for token in fixed_tokens(sentence, titles, subject):
        _words(tokens, sentence, at, token.start)
        tokens.append(token)
        at = token.end
    _words(tokens, sentence, at, len(sentence))
    return _with_rare_verbs([token for token in tokens if token.text not in '"“”'])


def _words(tokens: list[Token], sentence: str, start: int, end: int) -> None:
    for match in _WORD.finditer(sentence, start, end):
        text, right = match.group(), match.end()
        if text.endswith(".") and len(text) > 1 and (right >= len(sentence.rstrip()) or not text[0].isupper()):
            text, right = text[:-1], right - 1
        tokens.append(Token(text, match.start(), right, _tag(text.lower(), tokens)))


def _tag(word: str, before: list[Token]) -> Tag:
    previous = before[-1] if before else None
    if not word[0].isalnum():
        return "mark"
    closed = _CLOSED_TAGS.get(word)
    if closed is not None:
        return _in_context(word, closed, previous)
    governor = next((token for token in reversed(before) if token.tag != "adverb"), None)
    if governor is not None and governor.tag in ("modal", "to", "do"):
        return "verb" if word in lexicon.VERBS or not word.endswith("s") else "noun"
    if "-" in word and word.endswith(("ed", "ing")) and not word.startswith(_VERBAL_PREFIXES):
        return "noun"  # "sea-going", "highest-grossing"
    if word in lexicon.IRREGULAR_PAST:
        return "participle" if word in lexicon.IRREGULAR_PARTICIPLES else "verb"
    if word in lexicon.IRREGULAR_PARTICIPLES or (word.endswith("ed") and len(word) > 3 and word not in _NOUNS_IN_ED):
        return "participle"
    if word.endswith("ing") and len(word) > 4 and word not in _NOUNS_IN_ING:
        return "gerund"
    if (
        word.endswith("ly")
        and len(word) > 4
        and not word.endswith(("family", "italy", "assembly", "monthly", "weekly"))
    ):
        return "adverb"
    if _finite(word, before):
        return "verb"
    return "noun"


def _in_context(word: str, tag: Tag, previous: Token | None) -> Tag:
    """Return "that" is a determiner unless it follows a noun; "her" stays a possessive."""
    if word == "that" and previous is not None and previous.tag in ("noun", "name", "title", "number", "mark", "prep"):
        return "rel"
    return tag


def _finite(word: str, before: list[Token]) -> bool:
    """Return whether a word that may be a noun or a verb is a verb: by what is before it."""
    if not before:
        return False
    previous = before[-1]
    if _third_person(word):
        if previous.tag in ("noun", "name", "title", "date"):
            modified = previous.tag == "noun" and _MODIFIER.search(previous.low) is not None
            return not modified and not _has_verb(before)
        return previous.tag in ("rel", "pronoun", "adverb") or previous.text in ",)"
    plural = previous.low.endswith("s") and previous.tag in ("noun", "name") and not _has_verb(before)
    return word in lexicon.VERBS and (plural or previous.low in ("they", "who", "which", "that", "we", "i", "you"))


def _has_verb(before: list[Token]) -> bool:
    """Return whether the clause so far has a verb."""
    for token in reversed(before):
        if token.tag in ("mark", "conj", "rel", "sub"):
            return False
        if token.tag in _VERBS:
            return True
    return False


def _with_rare_verbs(tokens: list[Token]) -> list[Token]:
    """Verbs that only their surroundings give away: "The film reunites Nolan with ...", "... and performs with ..."."""
    for at in range(1, len(tokens) - 1):
        token, before, after = tokens[at], tokens[at - 1], tokens[at + 1]
        if token.tag != "noun" or not token.text.endswith("s") or token.text.endswith(("ss", "us", "is")):
            continue
        object_follows = after.tag in ("det", "poss", "name", "title") or after.low == "that"
        if before.tag == "conj":
            verb = _third_person(token.low) is not None and (object_follows or after.low in _AFTER_VERBS)
        else:
            verb = object_follows and before.tag in _SUBJECTS and not _has_verb(tokens[:at])
        if verb:
            tokens[at] = Token(token.text, token.start, token.end, "verb")
    return tokens


def _third_person(word: str) -> str | None:
    """Return the base form of a third person singular, None if the word is none."""
    if not word.endswith("s"):
        return None
    for base in (word[:-1], word[:-2] if word.endswith("es") else "", word[:-3] + "y" if word.endswith("ies") else ""):
        if base in lexicon.VERBS:
            return base
    return None


_CLOSED: tuple[tuple[frozenset[str], Tag], ...] = (
    (lexicon.BE, "be"),
    (lexicon.HAVE, "have"),
    (lexicon.DO, "do"),
    (lexicon.MODALS, "modal"),
    (frozenset({"that", "those"}), "det"),
    (lexicon.RELATIVES - {"that", "where"}, "rel"),
    (lexicon.POSSESSIVES, "poss"),
    (lexicon.PERSONAL, "pronoun"),
    (frozenset({"to"}), "to"),
    (lexicon.DETERMINERS, "det"),
    (lexicon.CONJUNCTIONS, "conj"),
    (lexicon.SUBORDINATORS, "sub"),
    (lexicon.PREPOSITIONS | lexicon.INCLUDING, "prep"),
    (lexicon.OBJECT_PRONOUNS, "pronoun"),
    (lexicon.ADVERBS, "adverb"),
    (lexicon.NUMERALS, "number"),
)
# a word of several classes counts as the first of them
_CLOSED_TAGS: dict[str, Tag] = {word: tag for words, tag in reversed(_CLOSED) for word in words}
