"""The forms that English questions have, distinguished by their first words; a rule for each makes other texts of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_BE = r"(?:is|was|are|were)"
_HELP = rf"(?:did|does|do|{_BE}|has|had|have|can|could|will|would)"
_NOUN = rf"(?P<noun>(?!{_HELP} )[a-z][a-z-]*(?: [a-z-]+){{0,2}}?)"
_ASKED = rf"(?P<auxiliary>{_HELP}) (?P<rest>.+)"
_PAST = r"(?!did|does|do)[a-z]+(?:s|ed|ew|ote|id|on|ade|ought|eld|an)"

Kind = Literal[
    "defined",
    "what it is",
    "who",
    "placed",
    "many",
    "object",
    "subject",
    "when",
    "where",
]

_PATTERNS: dict[Kind, str] = {
    "defined": rf"(?:who|what|which) (?P<auxiliary>{_BE}) (?P<rest>(?:the|a|an|his|her|its|their) .+)",
    "what it is": rf"what (?P<auxiliary>{_BE}) (?P<rest>(?-i:[A-Z]).* (?:of|for|in|at|to|from|with|by|as|on))",
    "who": rf"who (?P<rest>(?!{_HELP} )[a-z]+ .+)",
    "placed": rf"(?P<before>in|at|on|from|by|to|for|with|of|during) (?:what|which) {_NOUN} {_ASKED}",
    "many": rf"how (?:many|much) (?P<noun>[a-z -]+?) {_ASKED}",
    "object": rf"(?:what|which) {_NOUN} {_ASKED}",
    "subject": rf"(?:what|which) {_NOUN} (?P<rest>{_PAST} .+)",
    "when": rf"when {_ASKED}",
    "where": rf"where {_ASKED}",
}
_FORMS = {
    kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()
}


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """Holds a question in parts; those that its form has not are blank.

    "defined": Who was the first king? "what it is": What is Bell famous for? "who": Who invented it? "placed": In which
    city was he born? "many": How many towns are there? "object": What company did he own? "subject": Which river
    borders Ulm? noun: of what is asked for. before: the preposition in front of that.
    """

    kind: Kind
    rest: str
    auxiliary: str = ""
    noun: str = ""
    before: str = ""


def form_of(question: str) -> QuestionForm | None:
    """Return the form of a question; None for another one.

    >>> form_of("In which city was Bell born?")
    QuestionForm(kind='placed', rest='Bell born', auxiliary='was', noun='city', before='in')
    """
    text = " ".join(question.split()).rstrip("?. ")
    for kind in _PATTERNS:
        if found := _FORMS[kind].fullmatch(text):
            part = {name: found[name] for name in _FORMS[kind].groupindex}
            return QuestionForm(
                kind,
                part["rest"],
                part.get("auxiliary", "").lower(),
                part.get("noun", ""),
                part.get("before", "").lower(),
            )
    return None
