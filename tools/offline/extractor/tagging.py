"""From a sentence to tagged tokens: every word gets the coarse part of speech that its neighbours leave it."""

from __future__ import annotations

import re

from ras_agent.tools.offline.extractor import lexicon
from ras_agent.tools.offline.extractor.tokens import Tag, Token, fixed_tokens

__all__ = ["tagged"]

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
    """The tokens of a sentence, in order.

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
    """ "that" is a determiner unless it follows a noun; "her" stays a possessive."""
    if word == "that" and previous is not None and previous.tag in ("noun", "name", "title", "number", "mark", "prep"):
        return "rel"
    return tag


def _finite(word: str, before: list[Token]) -> bool:
    """Whether a word that may be a noun or a verb is a verb: by what stands before it."""
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
    """Whether the clause so far has a verb."""
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
    """The base form of a third person singular, None if the word is none."""
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
