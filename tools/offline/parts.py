"""Splits a sentence about several things into parts, each of which may answer the question in its own way.

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
_LONGEST = 600  # characters of the longest sentence that is split
_MOST_PARTS = 12
_ARTICLE = re.compile(r"\b(?:the|a|an)\s*\Z", re.IGNORECASE)
_LAST_WORD = re.compile(r"(?P<word>[\w'’-]+)\s*\Z")


@dataclass(frozen=True, slots=True)
class Part:
    """Holds a part of a sentence: its characters from `start` to `end`."""

    start: int
    end: int
    text: str

    @property
    def has_verb(self) -> bool:
        """Return whether the part is a clause; a part without a verb takes that of another part."""
        return bool(_verbs_of(self.text))

    @property
    def nouns(self) -> frozenset[str]:
        """Return the stems of the words other than verbs."""
        verbs = " ".join(_verbs_of(self.text))
        return stem_set(self.text) - stem_set(verbs)


def in_its_part(question: str, answer: str, sentence: str) -> str:
    """Return the text in the answer's place in that part of a sentence which has the question's words.

    Return the answer itself if there is no such part, or if it contains nothing of the answer's kind.

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
    """Return whether some of the asked words are only in this part, and none only in the answer's own part.

    It is enough if a name or figure of the question is only here, and the answer's part has another one.
    """
    here = asked & _only_in(part, parts)
    if not here:
        return False
    mine = asked & _only_in(own, parts)
    if mine.isdisjoint(_own_words(own, part, place)):
        return True
    before = own.text[: place - own.start]
    others = _values_in(before)
    if not others or not others.isdisjoint(asked):
        return False
    values = _values_in(part.text)
    return not here.isdisjoint(values)


def _parts_of(sentence: str) -> Iterator[Part]:
    """Yield the parts of a sentence between commas, semicolons and "and", outside names, figures and brackets."""
    whole = name_spans(sentence)
    for figure in figures_in(sentence):
        whole.append((figure.start, figure.end))
    for bracket in _BRACKETS.finditer(sentence):
        whole.append(bracket.span())
    start = 0
    for joint in _JOINT.finditer(sentence):
        end = joint.start()
        if is_inside(end, whole):
            continue
        yield Part(start, end, sentence[start:end])
        start = joint.end()
    end = len(sentence)
    yield Part(start, end, sentence[start:])


def is_inside(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a place is in one of the spans."""
    inside = (start <= place < end for start, end in spans)
    return any(inside)


def _verbs_of(text: str) -> list[str]:
    chunks = chunked(text)
    return [chunk.text for chunk in chunks if chunk.kind == "vg"]


def _only_in(part: Part, parts: Sequence[Part]) -> frozenset[str]:
    """Return the stems that no other part contains."""
    words = stem_set(part.text)
    others = [one.text for one in parts if one is not part]
    return words - stem_set(" ".join(others))


def _own_words(own: Part, other: Part, place: int) -> frozenset[str]:
    """Return the stems of the answer's part that it does not share with another part.

    A part without a verb shares the verb of the answer's part. If it begins with a figure, it also shares what comes
    before the answer ("Tickets are 12 euros for adults and 6 euros for children").
    """
    if other.has_verb:
        return stem_set(own.text)
    if not _begins_with_value(other.text):
        return own.nouns
    behind = own.text[place - own.start :]
    return own.nouns & stem_set(behind)


def _begins_with_value(text: str) -> bool:
    """Return whether a part begins with a figure, perhaps after a preposition."""
    first, _, rest = text.partition(" ")
    is_preposition = CLOSED.get(first.lower()) == "p"
    value = rest if is_preposition else text
    return value[:1].isdigit()


def _values_in(text: str) -> frozenset[str]:
    """Return the stems of the names and figures in a text."""
    values = names_in(text)
    for figure in figures_in(text):
        values.append(text[figure.start : figure.end])
    return stem_set(" ".join(values))


def _within(own: Part, answer: str, place: int) -> str:
    """Return an answer cut off at the end of the part in which it begins, or only the name in this piece.

    An answer that is only a list of things is returned unchanged.
    """
    if place + len(answer) <= own.end:
        return answer
    is_list = not figures_in(answer) and not _verbs_of(answer)
    if is_list:
        return answer
    inside = answer[: own.end - place]
    names = names_in(inside)
    if names and not figures_in(inside):
        return names[0]
    return inside


def _like(answer: str, own: Part, place: int, part: Part, question: str) -> str:
    """Return the text of a part that stands where the answer stands in its own part: a figure of the same kind, or a
    name.

    Return "" if there is neither.
    """
    if figures_in(answer):
        return _figure_like(answer, part.text, question)
    before = own.text[: place - own.start]
    lead = _last(before)
    for start, end in name_spans(part.text):
        name = part.text[start:end]
        if name in question:
            continue
        if _last(part.text[:start]) == lead:
            return name
    return ""


def _figure_like(answer: str, text: str, question: str) -> str:
    """Return the figure in a text that has the answer's kind and measure and is not in the question, or "".

    If the answer's unit follows the figure, it is included.
    """
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
    """Return the word after a number that says what it counts ("days"); "" for a date, or without such a word."""
    if figure.is_date:
        return ""
    words = text[figure.start :].split()
    if len(words) < 2:
        return ""
    word = words[1].strip(".,;").lower()
    return "" if word in CLOSED else word


def _last(text: str) -> str:
    """Return the last word of a text, ignoring an article at its end."""
    bare = _ARTICLE.sub("", text)
    found = _LAST_WORD.search(bare)
    return found["word"].lower() if found else ""
