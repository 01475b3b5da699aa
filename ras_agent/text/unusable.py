"""Recognises texts that cannot be used as a reply: refusals, abstentions, and echoes of the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from ras_agent.text.canonical import canonical_key
from ras_agent.text.overlap import holds

_IN_A_ROW = 4
"""This many words in a row that only the instructions contain are an echo of the instructions."""
_SHARE = 1 / 3
"""The share of a text's words that must be such echoes."""

_LEAST_COPY = 2
"""The minimum number of words in a copy of an example."""

_WORD = re.compile(r"\w+")

_CANNOT = r"(?:can ?not|can['’]?t|could ?n[o'’]t|am unable|am not able|won['’]t|will not|['’]m (?:unable|not able))\b"
_HELP = (
    r"(?:assist|help(?! (?:myself|it|but|falling)\b)|answer|provide|comply|fulfill?|respond|continue|complete|engage"
    r"|repeat|do that|support|generate|process|give)\b"
)
# One row per language (English has several): an apology and the refused act, or one of them if it suffices. Except for
# the first letter, capitals must be those of a sentence: "I Can't Help Myself" is a title.
_REFUSALS = (
    rf"i(?:['’]?m| am) (?:really |very |so )?sorry\b[^\n]{{0,80}}?\b[iI]\b ?(?:really )?{_CANNOT}",
    rf"(?:sorry|i apologi[sz]e|my apologies|unfortunately)\b[^\n]{{0,60}}?\b[iI]\b ?(?:really )?{_CANNOT}",
    rf"i(?:['’]?m| am) (?:afraid|sorry)\b[^\n]{{0,40}}\b(?:unable|not able) to {_HELP}",
    rf"i {_CANNOT} (?:to )?{_HELP}",
    r"as an? (?:AI|ai|artificial|large|language|virtual)\b[^\n]{0,60}?\b[iI]\b[^\n]{0,20}?"
    rf"(?:{_CANNOT}|\b(?:don['’]?t|do not)\b)",
    r"(?:es )?tut mir (?:sehr )?leid\b[^\n]{0,60}?\b(?:kann|darf|nicht)\b"
    r"|ich kann (?:ihnen |dir )?(?:dabei |damit )?nicht\b",
    r"(?:je suis |nous sommes )?(?:désolée?|navrée?)\b[^\n]{0,60}?\b(?:peux|puis|pouvons)\b|je ne (?:peux|puis) pas\b",
    r"lo (?:siento|lamento)\b[^\n]{0,60}?\bno (?:puedo|podemos)\b|no puedo (?:ayudar|responder|proporcionar)",
    r"(?:mi dispiace|desculpe|sinto muito|lamento)\b[^\n]{0,60}?\b(?:non posso|não posso)\b",
    r"(?:很?抱歉|对不起|對不起|不好意思)[^\n]{0,30}?(?:无法|無法|不能)|我?(?:无法|無法)(?:回答|提供|协助|協助|帮助)",
    r"(?:申し訳|すみません|ごめんなさい)[^\n]{0,60}?(?:できません|ません)",
    r"(?:извините|простите|к сожалению)[^\n]{0,60}?\bне (?:могу|можем)\b",
    r"(?:آسف|عذرا|أعتذر)[^\n]{0,60}?(?:لا يمكنني|لا أستطيع)",
)
_REFUSES = re.compile("|".join(_REFUSALS))
# sentences in which a model speaks of itself, because a refusal may be spread over several sentences
_OF_ITSELF = re.compile(
    r"(?:i(?:['’]?m| am) sorry|sorry(?=[,.!;])|i apologi[sz]e|as an ai|unfortunately, i"
    rf"|i {_CANNOT}|i do(?: not|n['’]t) know)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(r"\W*")
# an abstention in the words of models; a title such as "I Don't Know" has other capitals
_NO_EVIDENCE = r"(?:evidence|passages?|facts?|documents?|context|texts?|information)"
_ABSTAINS_IN_WORDS = re.compile(
    r"\W*(?:I (?:do not|don['’]t) know\b|(?:I am |I['’]m )?[Uu]nable to (?:determine|answer|find|say)\b"
    rf"|(?:[Nn]ot enough|[Ii]nsufficient|[Nn]o) (?:information|evidence)\b"
    rf"|(?:[Tt]he )?(?:given |provided )?{_NO_EVIDENCE}"
    r"(?: provided| given| shown)? (?:does not|do not|doesn['’]t|don['’]t)"
    r" (?:say|state|mention|contain|provide|specify|tell|settle|include|give|name)\b"
    r"|(?:(?:[Tt]he answer|[Ii]t) (?:is not|cannot be|can not be|could not be) |[Nn]ot |[Cc]annot be )"
    r"(?:stated|mentioned|given|provided|specified|found|determined|answered|in)\b"
    rf"(?:[^.\n]{{0,40}}\b{_NO_EVIDENCE}\b|\W*\Z)).{{0,120}}\Z"
)
# signs of an answer that says more, or cites
_SAYS_MORE = re.compile(r"\[|\b(?:but|however|although)\b", re.IGNORECASE)


def refuses(text: str) -> bool:
    """Tell whether a text begins by refusing to reply.

    >>> refuses("I'm sorry, but I cannot assist with that."), refuses("I Can't Help Myself")
    (True, False)
    """
    opening = _OPENING.sub("", text, count=1)
    first = opening[:1].lower()
    match = _REFUSES.match(first + opening[1:])
    return match is not None


def speaks_of_itself(sentence: str) -> bool:
    """Tell whether a sentence is a model's apology or refusal, and so says nothing about the world.

    >>> speaks_of_itself("I'm sorry."), speaks_of_itself("The Loire is 1,006 km long.")
    (True, False)
    """
    if _OF_ITSELF.match(sentence):
        return True
    return refuses(sentence)


def abstains_in_words(text: str) -> bool:
    """Tell whether a text says only that the answer is not known.

    >>> abstains_in_words("I don't know."), abstains_in_words("I Don't Know How She Does It")
    (True, False)
    """
    if not _ABSTAINS_IN_WORDS.match(text):
        return False
    return _SAYS_MORE.search(text) is None


def echoes(
    text: str, instructions: Iterable[str], material: Iterable[str] = ()
) -> bool:
    """Tell whether more than a third of a text consists of runs of four words that the instructions contain.

    Runs that the material contains too do not count.

    Args:
        text: the model's reply.
        instructions: the model's instructions and worked examples.
        material: the question and its evidence.

    >>> echoes("No, the answer alone, then its numbers", ["Answer: the answer alone, then its numbers"])
    True
    """
    runs = _runs(text)
    said = _all_runs(instructions) - _all_runs(material)
    echoed: set[int] = set()
    for start, run in enumerate(runs):
        if run in said:
            echoed.update(range(start, start + _IN_A_ROW))
    return len(echoed) > len(_words(text)) * _SHARE


def copies(text: str, examples: Iterable[str], material: Iterable[str]) -> bool:
    """Tell whether a text of at least two words occurs, as a whole, in a worked example and nowhere in the material.

    >>> copies("Where was Jørn Utzon born?", ["[SUBQ] Where was Jørn Utzon born?"], ["Which sea is it?"])
    True
    """
    words = canonical_key(text).split()
    if len(words) < _LEAST_COPY:
        return False
    if not any(holds(example, text) for example in examples):
        return False
    return not any(holds(shown, text) for shown in material)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _runs(text: str) -> list[tuple[str, ...]]:
    """Return all runs of four words in a text, in order."""
    words = _words(text)
    shifted = (words[start:] for start in range(_IN_A_ROW))
    return list(zip(*shifted, strict=False))


def _all_runs(texts: Iterable[str]) -> set[tuple[str, ...]]:
    runs = map(_runs, texts)
    return set(chain.from_iterable(runs))
