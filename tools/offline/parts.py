"""The parts of a sentence that say the same of several things: each has its own answer.

Who designed the tower?              "Ann Lee designed the bridge and | Bob Ray designed the tower."
How much is a ticket for children?   "Tickets are 12 euros for adults and | 6 euros for children."
When was Bob Ray born?               "Ann Lee was born in 1950 and | Bob Ray in 1961."
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ras_agent.text.names import name_spans, names_in
from ras_agent.text.values import Figure, figures_in
from ras_agent.text.words import stem_set
from ras_agent.tools.offline.english import CLOSED
from ras_agent.tools.offline.extractor.words import chunked

_JOINT = re.compile(r";\s+|,?\s+(?:and|but|while|whereas)\s+|,\s+")
_BRACKETS = re.compile(r"\([^()]*\)")
_LONGEST = 600  # characters of a sentence
_MOST_PARTS = 12
_ARTICLE = re.compile(r"\b(?:the|a|an)\s*\Z", re.IGNORECASE)
_LAST_WORD = re.compile(r"(?P<word>[\w'’-]+)\s*\Z")


@dataclass(frozen=True, slots=True)
class Part:
    """Characters `start` to `end` of a sentence."""

    start: int
    end: int
    text: str

    @property
    def has_verb(self) -> bool:
        """Whether it is a clause; another part lends its verb to one that is not."""
        return bool(_verbs_of(self.text))

    @property
    def nouns(self) -> frozenset[str]:
        """The stems of its words other than verbs."""
        return stem_set(self.text) - stem_set(" ".join(_verbs_of(self.text)))


def in_its_part(question: str, answer: str, sentence: str) -> str:
    """Return what the part of a sentence that has the question's words has in the place of the answer.

    It is the answer itself where the sentence has no such part, or nothing of the answer's kind stands there.

    >>> in_its_part("Who designed the tower?", "Ann Lee", "Ann Lee designed the bridge and Bob Ray designed the tower.")
    'Bob Ray'
    """
    place = sentence.find(answer)
    if place < 0 or len(sentence) > _LONGEST:
        return answer
    parts = list(_parts_of(sentence))
    if not 1 < len(parts) <= _MOST_PARTS:
        return answer
    own = next(part for part in parts if place < part.end)
    answer = _within(own, answer, place)
    said = stem_set(answer)
    if stem_set(own.text) <= said:
        return answer  # one of a list
    asked = stem_set(question) - said
    best = own
    for part in parts:
        if part is not own and _is_asked_about(part, asked, own, place, parts):
            best = part
    if best is own:
        return answer
    found = _like(answer, own, place, best, question)
    return found or answer


def _is_asked_about(
    part: Part,
    asked: frozenset[str],
    own: Part,
    place: int,
    parts: Sequence[Part],
) -> bool:
    """Tell whether some of the asked words are only in this part, and none only in the answer's own part.

    It is enough that a name or a figure of the question is only here, where the answer's part has another one.
    """
    here = asked & _only_in(part, parts)
    if not here:
        return False
    mine = asked & _only_in(own, parts)
    if mine.isdisjoint(_own_words(own, part, place)):
        return True
    others = _values_in(own.text[: place - own.start])
    is_of_another = others and others.isdisjoint(asked)
    is_of_this = not here.isdisjoint(_values_in(part.text))
    return bool(is_of_another) and is_of_this


def _parts_of(sentence: str) -> Iterator[Part]:
    """Yield the parts of a sentence between commas, semicolons and "and" outside names, dates and brackets."""
    whole = name_spans(sentence)
    for figure in figures_in(sentence):
        whole.append((figure.start, figure.end))
    for bracket in _BRACKETS.finditer(sentence):
        whole.append(bracket.span())
    start = 0
    for joint in _JOINT.finditer(sentence):
        end = joint.start()
        if _is_inside(end, whole):
            continue
        yield Part(start, end, sentence[start:end])
        start = joint.end()
    end = len(sentence)
    yield Part(start, end, sentence[start:])


def _is_inside(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= place < end for start, end in spans)


def _verbs_of(text: str) -> list[str]:
    return [chunk.text for chunk in chunked(text) if chunk.kind == "vg"]


def _only_in(part: Part, parts: Sequence[Part]) -> frozenset[str]:
    """Return the stems that no other part has."""
    words = stem_set(part.text)
    for one in parts:
        if one is not part:
            words -= stem_set(one.text)
    return words


def _own_words(own: Part, other: Part, place: int) -> frozenset[str]:
    """Return the stems of the answer's part that it does not share with another part.

    A part without a verb borrows that of the answer's part, and what stands in front of the answer if it begins with its
    own ("Tickets are 12 euros for adults and 6 euros for children").
    """
    if other.has_verb:
        return stem_set(own.text)
    if _begins_with_value(other.text):
        return own.nouns & stem_set(own.text[place - own.start :])
    return own.nouns


def _begins_with_value(text: str) -> bool:
    """Tell whether a part begins with a figure, also behind a preposition."""
    first, _, rest = text.partition(" ")
    is_preposition = CLOSED.get(first.lower()) == "p"
    value = rest if is_preposition else text
    return value[:1].isdigit()


def _values_in(text: str) -> frozenset[str]:
    """Return the stems of the names and figures of a text."""
    values = names_in(text)
    for figure in figures_in(text):
        values.append(text[figure.start : figure.end])
    return stem_set(" ".join(values))


def _within(own: Part, answer: str, place: int) -> str:
    """Return as much of an answer as is in the part that it begins in, or the name there; a list of things stays."""
    if place + len(answer) <= own.end:
        return answer
    says_something = bool(figures_in(answer)) or bool(_verbs_of(answer))
    if not says_something:
        return answer
    inside = answer[: own.end - place]
    names = names_in(inside)
    if names and not figures_in(inside):
        return names[0]
    return inside


def _like(answer: str, own: Part, place: int, part: Part, question: str) -> str:
    """Return what stands in a part as the answer stands in its own: a figure of its kind, or a name in its place."""
    if figures_in(answer):
        return _figure_like(answer, part.text, question)
    before = own.text[: place - own.start]
    lead = _last(before)
    for start, end in name_spans(part.text):
        name = part.text[start:end]
        is_new = name not in question
        if is_new and _last(part.text[:start]) == lead:
            return name
    return ""


def _figure_like(answer: str, text: str, question: str) -> str:
    """Return a text's figure of the answer's kind and measure that is not the question's, with the answer's unit."""
    first = figures_in(answer)[0]
    measure = _measure(answer, first)
    unit = answer[first.end :]
    for figure in figures_in(text):
        found = text[figure.start : figure.end]
        if figure.kind != first.kind or found in question:
            continue
        other = _measure(text, figure)
        if measure and other and measure != other:
            continue
        has_unit = text.startswith(unit, figure.end)
        return found + unit if has_unit else found
    return ""


def _measure(text: str, figure: Figure) -> str:
    """Return the word behind a number that says what it counts ("days"), "" for a date or without one."""
    if figure.is_date:
        return ""
    words = text[figure.start :].split()[1:2]
    measures = [word.strip(".,;").lower() for word in words]
    return "".join(word for word in measures if word not in CLOSED)


def _last(text: str) -> str:
    """Return the last word of a text without an article at its end."""
    bare = _ARTICLE.sub("", text)
    found = _LAST_WORD.search(bare)
    return found["word"].lower() if found else ""
