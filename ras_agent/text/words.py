"""Analyses words of English for the offline roles: function words, months, content words, approximate stems."""

from __future__ import annotations

import re
import unicodedata

from ras_agent.text.canonical import canonical_key
from ras_agent.text.normal_form import normal_form
from ras_agent.text.short_cache import cached_if_short


def word_set(listed: str) -> frozenset[str]:
    """Return the words of a white-space separated list.

    >>> sorted(word_set("of in"))
    ['in', 'of']
    """
    return frozenset(listed.split())


FUNCTION_WORDS = word_set(
    """
    a an the this that these those some any each every either neither both all no none such same other another own
    i me my we us our you your he him his she her hers it its they them their theirs himself herself itself themselves
    who whom whose which what when where why how
    and or nor but if then than so as because while although though whether since until unless
    of in on at by for with without from to into onto upon about after before between among amongst against during
    under over above below through throughout within along across behind beyond near off out up down via per
    is are was were be been being am do does did done doing has have had having can could will would shall should may
    might must not n't 's s there here also too very just only even ever never not more most much many few less least
    again once now still already yet however therefore thus
    """
)
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_POSSESSIVE = re.compile(r"['’]s?(?!\w)")
# a word, and its irregular forms
_FORMS = """
    become became, begin began begun, break broke broken, bring brought, build built, buy bought, catch caught,
    choose chose chosen, come came, die died dying death, draw drawn, drive drove driven, feed fed, fight fought,
    find found, forget forgot forgotten, freeze froze frozen, get got, give gave given, grow grew grown, hear heard,
    hold held, keep kept, know knew known, leave left, lose lost, make made, mean meant, meet met, pay paid, say
    said, sell sold, send sent, shoot shot, sink sank sunk, sit sat, speak spoke spoken, spend spent, stand stood,
    swim swam swum, take took taken, teach taught, tell told, think thought, throw threw thrown, understand
    understood, wear wore worn, win won, write wrote written, man men, woman women, child children
"""
_BASES = {
    form: base for base, *forms in map(str.split, _FORMS.split(",")) for form in forms
}
# the longest suffix that leaves at least three letters is cut off
_SUFFIXES = (
    *(
        "ations",
        "ation",
        "ators",
        "ator",
        "itions",
        "ition",
        "ments",
        "ment",
        "ings",
        "ing",
        "ions",
        "ion",
        "ives",
    ),
    *(
        "ive",
        "est",
        "ers",
        "er",
        "ors",
        "or",
        "ied",
        "ies",
        "ed",
        "es",
        "al",
        "ly",
        "s",
        "e",
        "y",
    ),
)


def fold(text: str) -> str:
    """Return a text in lower case and without accents, so that "Émile" and "Emile" become equal.

    >>> fold("Émile’s Café")
    'emile’s cafe'
    """
    if text.isascii():
        return text.lower()
    apart = normal_form("NFKD", text.casefold())
    return "".join(char for char in apart if not unicodedata.combining(char))


def content_words(text: str) -> list[str]:
    """Return the folded words that carry meaning, in order and with repetitions, without possessive endings.

    >>> content_words("Who is the director of Ed Wood's films?")
    ['director', 'ed', 'wood', 'films']
    """
    bare = _POSSESSIVE.sub("", fold(text))
    words = _WORD.findall(bare)
    return [word for word in words if word not in FUNCTION_WORDS]


def key_words(text: str) -> frozenset[str]:
    """Return the words of a text's canonical key, without function words."""
    words = canonical_key(text).split()
    return frozenset(words) - FUNCTION_WORDS


@cached_if_short(65536)
def stem(word: str) -> str:
    """Return an approximate stem of a folded word, which "directed", "director" and "directs" share.

    At least three letters stay.

    >>> stem("directed"), stem("director"), stem("wrote"), stem("writes")
    ('direct', 'direct', 'writ', 'writ')
    """
    word = _BASES.get(word, word)
    for suffix in _SUFFIXES:
        root = word.removesuffix(suffix)
        if root != word and len(root) >= 3:
            return _bare(root)
    return word


def stems(text: str) -> list[str]:
    """Return the stems of a text's content words, in order."""
    words = content_words(text)
    return list(map(stem, words))


@cached_if_short(65536)
def stem_set(text: str) -> frozenset[str]:
    """Return the stems of the content words of a short text, such as a name or a predicate. The result is cached."""
    return frozenset(stems(text))


def _bare(root: str) -> str:
    """Remove a final "at" ("locat(ed)" becomes "loc", as in "loc(ation)"), or one of two equal final consonants
    ("starr(ing)").
    """
    if len(root) > 4 and root.endswith("at"):
        return root[:-2]
    if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "aeiouls":
        return root[:-1]
    return root
