"""Scores answers to a user's own questions: two answers are equal if a reader would say that they are the same
text.

SQuAD's rule, which published figures follow, deletes ASCII punctuation everywhere: "3.5" equals "35" and "C#"
equals "C", but an answer in curly quotes or in another Unicode form is wrong. Here only punctuation at a word's
ends is ignored, and any script can be compared.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from ras_agent.eval.metrics.answers import token_overlap
from ras_agent.eval.metrics.registry import answer_metric

_SPELLINGS = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
        **dict.fromkeys("‘’‚‛ʼ′＇`´", "'"),
        **dict.fromkeys("“”„‟«»″＂", '"'),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad"),
    }
)
"""Maps characters that people type in place of each other to one of them, and invisible characters to
nothing."""
_ACCENTS = re.compile(r"(?<=[a-z])[\u0300-\u036f]+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_INITIALS = re.compile(r"\b(?:[a-z]\.){2,}")
_SIGNS = re.compile(r"([$€£¥₹])")
_CHARACTERS = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_KEPT = frozenset("%#&@")
_ARTICLES = frozenset({"a", "an", "the"})
_CLOSED = frozenset({("yes",), ("no",)})


def text_tokens(text: str) -> list[str]:
    """Return an answer's words, normalised for comparison. Each Chinese or Japanese character is a word.

    >>> text_tokens("“The Water of Leith”, 3,000 m"), text_tokens("C#"), text_tokens("−5 °C")
    (['water', 'of', 'leith', '3000', 'm'], ['c#'], ['-5', '°c'])
    """
    plain = text.translate(_SPELLINGS)
    plain = unicodedata.normalize("NFKC", plain)
    plain = plain.translate(_SPELLINGS)
    plain = plain.casefold()
    plain = unicodedata.normalize("NFD", plain)
    plain = _ACCENTS.sub("", plain)
    plain = unicodedata.normalize("NFC", plain)
    plain = _INITIALS.sub(_without_points, plain)
    plain = _THOUSANDS.sub("", plain)
    plain = _SIGNS.sub(r" \1 ", plain)
    plain = _CHARACTERS.sub(r" \1 ", plain)
    words = plain.split()
    bare = map(_without_punctuation, words)
    filled = list(filter(None, bare))
    telling = [word for word in filled if word not in _ARTICLES]
    # an answer may be nothing but articles, or punctuation
    return telling or filled or words


@answer_metric("em_text", decides=9)
def exact_text(prediction: str, golds: Iterable[str]) -> float:
    """Return 1.0 if the answer has the same words as a gold answer, in any Unicode spelling, else 0.0.

    Decimals, signs and the marks of names such as C# count; capitals, accents of Latin letters, articles, and
    punctuation at the ends of words do not.
    """
    predicted = text_tokens(prediction)
    return float(predicted in map(text_tokens, golds))


@answer_metric("f1_text", decides=59)
def text_f1(prediction: str, golds: Iterable[str]) -> float:
    """Return the best F1 of words over the gold answers, in 0..1. Words are those of `text_tokens`.

    If the prediction or the gold answer is yes or no, only an exact match scores.
    """
    predicted = text_tokens(prediction)
    return max((_f1(predicted, text_tokens(gold)) for gold in golds), default=0.0)


def _f1(predicted: list[str], gold: list[str]) -> float:
    if predicted == gold:
        return 1.0
    if tuple(predicted) in _CLOSED or tuple(gold) in _CLOSED:
        return 0.0
    return token_overlap(predicted, gold)


def _without_punctuation(word: str) -> str:
    """Strip punctuation from a word's ends, except a number's sign and marks that belong to the word."""
    start = 0
    end = len(word)
    while start < end and _is_punctuation(word[start]) and not _is_sign(word, start):
        start += 1
    marked = word[:start].endswith("*")
    while end > start and _is_punctuation(word[end - 1]):
        if word[end - 1] == "*" and not marked:  # of a name, such as A*
            break
        end -= 1
    bare = word[start:end]
    if bare.strip("#"):
        return bare
    return ""


def _without_points(initials: re.Match[str]) -> str:
    return initials[0].replace(".", "")


def _is_sign(word: str, place: int) -> bool:
    following = word[place + 1 : place + 2]
    return word[place] == "-" and following.isdigit()


def _is_punctuation(character: str) -> bool:
    category = unicodedata.category(character)
    return category.startswith("P") and character not in _KEPT
