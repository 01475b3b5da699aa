"""Compares two things: decides which one is first, has the most or is described, and whether something holds for both.

Dates, numbers and words decide; the reader also judges whether something holds for both.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from ras_agent.running.confidence import logistic
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import DEMONYM
from ras_agent.text.overlap import holds
from ras_agent.text.titles import with_title
from ras_agent.text.values import Figure
from ras_agent.text.words import stem_set, stems, word_set
from ras_agent.tools.offline.answerer.wording import denies
from ras_agent.tools.offline.chain import answers
from ras_agent.tools.offline.english import SUBJECTS
from ras_agent.tools.offline.question import (
    ORDERS,
    AnswerType,
    QuestionAnalysis,
    noun_of,
    type_of,
)
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import ReadPassage, Sentence, nearness, tokens_of
from ras_agent.tools.offline.table_rows import columns_asked_by

_DEATH = stem_set("died death dead dies passed")
_BIRTH = stem_set("born birth")
SAME = re.compile(
    r"\b(?:same|(?P<different>different)|share[sd]?|common)\b", re.IGNORECASE
)
_THAN = re.compile(r"\b(?:than|before|after)\b", re.IGNORECASE)
_AT = re.compile(r"\b(?:in|at|near|from|on)(?: the)?\Z", re.IGNORECASE)
_OF_YEAR = re.compile(
    r"\b(?:in|of|since|until|from|to|by|before|after|during|the|and)\s+\Z",
    re.IGNORECASE,
)
_PLURAL = re.compile(
    r" (?!(?:was|is|has|does|its|this)\b)(?:[a-z]+s|people|[ckm]?m|kg|ft)\b"
)
_ARTICLES = word_set("the a an")
_PERSONS = word_set("he she they")
_EMPTY = stem_set(
    "same type kind sort form considered known called located situated involved"
)
_NUMBER = stem_set("number amount count quantity")
_WIDEST = stem_set("country nation nationality continent ethnicity origin")
_BELONGS = re.compile(
    r"\b(?:consist|members?\b|comprise|featur|formed by|line-?up|made up of)",
    re.IGNORECASE,
)
_FIRST_YEAR = 100  # smaller values are days without a year, which cannot be ordered
_FAR = 0.12  # nearness above which a number counts
_READ = 6  # sentences read for each side
# logistic curve for the probability that something holds for a side: offset, and weights of the verdict's log-odds and
# of the share of the question's words that its passage has
_OFFSET = -0.9
_TRUST = 1.3
_SAID = 2.1
_SMALLEST = 1e-3
_ANSWERS = 3  # answers of each side that are compared for something in common
_IN_COMMON = 0.75  # confidence of such an answer
_PARTS = re.compile(r",? (?:and|or) |[,;] | & |(?<=[a-z])/(?=[a-z])")
# confidence of a choice: by dates 106 of 117 were right, by numbers 14 of 22, by words all of 14 (lab/reader.md)
_BY_DATES = 0.9
_BY_NUMBERS = 0.64
_BY_WORDS = 0.8
_IN_ONE_UNIT = 0.8  # if all numbers have the same unit
_UNDECIDED = 0.4  # if one of the things has nothing to compare, or they are equal
_GUESSED = 0.1  # if no passage is about one of them


@dataclass(frozen=True, slots=True)
class Reply:
    """Holds an answer, the sentences that support it, and the probability that it is right, if that is known."""

    text: str
    grounds: tuple[Sentence, ...]
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """Holds one of the things compared: its name, and the sentences about it, () if there are no sentences."""

    name: str
    sentences: tuple[Sentence, ...] = ()

    @property
    def stems(self) -> frozenset[str]:
        """Return the stems of all words in the sentences."""
        of_sentences = [one.stems for one in self.sentences]
        return frozenset().union(*of_sentences)

    def nearest(self, *wanted: frozenset[str]) -> tuple[Sentence, ...]:
        """Return the sentence with most of the first stems and, among equals, of the next; () without sentences."""

        def held(sentence: Sentence) -> list[int]:
            shared = map(sentence.stems.intersection, wanted)
            return list(map(len, shared))

        ranked = sorted(self.sentences, key=held, reverse=True)
        return tuple(ranked[:1])


def compare(asked: QuestionAnalysis, sides: Sequence[Side], reader: Reader) -> Reply:
    """Return the side that a question asks for, or whether something holds for all sides, or is the same for all."""
    question = asked.question
    names = " ".join(side.name for side in sides)
    about = stem_set(question) - stem_set(names) - _EMPTY
    same = list(SAME.finditer(question))
    if asked.kind == "choice" or (_THAN.search(question) and not same):
        chosen, grounds, sure = _chosen(question, sides)
        text = chosen.name
        if asked.kind != "choice":
            text = "yes" if chosen is sides[0] and sure > _UNDECIDED else "no"
    elif same:
        behind = question[same[-1].end() :]
        shared, grounds, both_mention = _shared(sides, behind, about)
        sure = _IN_COMMON if shared or both_mention else _UNDECIDED
        is_different = any(one["different"] for one in same)
        text = "yes" if shared != is_different else "no"
    else:
        holding = [_holds(question, side, about, reader) for side in sides]
        likely = min(holding)
        if denies(question):
            likely = 1 - max(holding)
        text = "yes" if likely >= 0.5 else "no"
        sure = max(likely, 1 - likely)
        best = [side.nearest(about) for side in sides]
        grounds = tuple(chain.from_iterable(best))
    is_known = well_known(sides) and grounds
    return Reply(text, grounds, sure if is_known else _GUESSED)


def _holds(question: str, side: Side, about: frozenset[str], reader: Reader) -> float:
    """Return the probability that something asked about both things holds for one of them.

    The reader's verdict and the shared words decide. The reader is given the whole question and one thing's text, as in
    its training (lab.weights.reader.kinds).
    """
    if not side.sentences:
        return 0.0
    text = " ".join(one.text for one in side.sentences[:_READ])
    heading = side.sentences[0].passage.heading
    (verdict,) = reader.judge(question, [with_title(heading, text)])
    odds = (verdict.true + _SMALLEST) / (verdict.false + _SMALLEST)
    said = len(about & side.stems) / max(1, len(about))
    total = _OFFSET + _TRUST * math.log(odds) + _SAID * said
    return logistic(total)


def in_common(
    asked: QuestionAnalysis, sides: Sequence[Side], reader: Reader
) -> Reply | None:
    """Return the answer that the texts about both sides share, in the shorter wording; None if they share no answer.

    An answer that is a list counts as each of its parts: a "poet and novelist" and a "Scottish poet" are both
    poets.
    """
    first, second = [list(_parts_about(asked, side, reader)) for side in sides]
    known = stem_set(asked.question)
    shared: list[tuple[int, str, tuple[Sentence, ...]]] = []
    for rank, part, sentence in first:
        for other_rank, other, other_sentence in second:
            if _alike(part, other, known):
                shorter = min(part, other, key=len)
                both = (sentence, other_sentence)
                shared.append((rank + other_rank, shorter, both))
    if not shared:
        return None
    chosen = [min(shared, key=lambda one: one[0])]
    if asked.answer_noun and asked.answer_noun[-1].endswith("s"):  # "occupations"
        chosen = shared
    grounds: dict[str, tuple[Sentence, ...]] = {}
    for _, part, sentences in chosen:
        grounds.setdefault(part, sentences)
    cited = dict.fromkeys(chain.from_iterable(grounds.values()))
    return Reply(" and ".join(grounds), tuple(cited), _IN_COMMON)


def _parts_about(
    asked: QuestionAnalysis, side: Side, reader: Reader
) -> Iterator[tuple[int, str, Sentence]]:
    """Yield the parts of the likeliest answers from the sentences about a side: (rank of the answer, part, sentence)."""
    passage = side.sentences[0].passage
    found = answers(asked.question, reader, [passage])
    about = [one for one in found if one.sentence in side.sentences]
    may_be_demonym = asked.answer_type in ("nationality", "person")
    for rank, one in enumerate(about[:_ANSWERS]):
        for part in map(str.strip, _PARTS.split(one.text)):
            if may_be_demonym or not DEMONYM.fullmatch(part):
                yield rank, part, one.sentence


def _alike(one: str, other: str, known: frozenset[str]) -> bool:
    """Return whether two phrases mean the same, by words that the question does not contain.

    Phrases such as "lyric poet" and "Scottish poet" need only share the last word of one of them. Of names and numbers,
    one must contain all words of the other: North Carolina is not South Carolina.
    """
    first = stems(one)
    second = stems(other)
    shared = set(first) & set(second)
    if shared <= known:
        return False
    if _NAME_OR_NUMBER.search(one) or _NAME_OR_NUMBER.search(other):
        return shared in (set(first), set(second))
    return first[-1] in shared or second[-1] in shared


# a number, or a capital letter at the beginning of the last word
_NAME_OR_NUMBER = re.compile(r"\d|\b[A-Z]\S*\Z")


def _chosen(
    question: str, sides: Sequence[Side]
) -> tuple[Side, tuple[Sentence, ...], float]:
    """Return the side asked for, the sentences that support it, and the confidence."""
    if " or " in question:  # without what is said about the last one after a comma
        last = max(sides, key=lambda side: question.find(side.name))
        question, _, _ = question.partition(f"{last.name},")
    for side in sides:
        question = question.replace(side.name, " ")
    words = {token.word for token in tokens_of(question)}
    about = stem_set(question).union(*map(columns_asked_by, words))
    names = [side.name for side in sides]
    for listed, by_dates, sign in ORDERS:
        if words.isdisjoint(listed):
            continue
        figures = [_figure(side, about, by_dates, names) for side in sides]
        if any(figures):
            return _by_figures(sides, figures, by_dates, sign)
        break
    # the side whose passage has most of the question's other words
    scores = [len(about & side.stems) for side in sides]
    best = sides[scores.index(max(scores))]
    is_clear = len(set(scores)) == len(scores)
    sure = _BY_WORDS if is_clear else _UNDECIDED
    return best, best.nearest(about), sure


def _by_figures(
    sides: Sequence[Side],
    figures: Sequence[_SideFigure | None],
    by_dates: bool,
    sign: int,
) -> tuple[Side, tuple[Sentence, ...], float]:
    """Return the side with the largest figure, or for sign -1 the smallest, its grounds, and the confidence."""
    known = [one for one in figures if one is not None]
    values = [one.value * sign for one in known]
    best = figures.index(known[values.index(max(values))])
    units = {one.unit for one in known}
    sure = _BY_NUMBERS
    if by_dates:
        sure = _BY_DATES
    elif len(units) == 1 and "" not in units:
        sure = _IN_ONE_UNIT
    if len(known) < len(sides) or len(set(values)) == 1:
        sure = _UNDECIDED
    return sides[best], tuple(one.sentence for one in known), sure


class _SideFigure(NamedTuple):
    """Holds a number or a date of a side, the sentence with it, and the word after it ("" if it has no unit)."""

    value: float
    sentence: Sentence
    unit: str = ""


def _figure(
    side: Side, about: frozenset[str], by_dates: bool, names: Sequence[str]
) -> _SideFigure | None:
    """Return the side's date, or number, that is nearest to the words asked about; None if there is no such figure.

    Without a number, it counts the names in the sentence about the side's members or parts, else in its first
    sentence. Of dates that are equally near, those in the passage's first sentence come first; of these the
    earliest, or for a death the latest.

    Args:
        names: the names of all sides.
    """
    way = 1 if about & _DEATH else -1
    figures: list[tuple[float, bool, float, Sentence, Figure]] = []
    for sentence in side.sentences:
        if _tells_other_event(sentence, about):
            continue
        fitting = _fitting(sentence, about, by_dates)
        start, end = _stretch(sentence.text, side.name, names)
        own = [figure for figure in fitting if start <= figure.start < end]
        for figure in own or fitting:
            near = _nearness(sentence, figure, about)
            order = way * figure.order
            is_first = sentence.number == 0
            figures.append((near, is_first, order, sentence, figure))
    if figures:
        near, _, order, sentence, figure = max(figures, key=lambda one: one[:3])
        if by_dates or near > _FAR:
            return _SideFigure(way * order, sentence, _unit(sentence, figure))
    if by_dates or not side.sentences:
        return None
    telling = max(side.sentences, key=lambda one: bool(_BELONGS.search(one.text)))
    return _SideFigure(len(telling.names), telling)


def _fitting(sentence: Sentence, about: frozenset[str], by_dates: bool) -> list[Figure]:
    """Return the dates in a sentence if `by_dates`, else its numbers."""
    figures = sentence.figures
    if by_dates:
        dates = [figure for figure in figures if figure.is_date]
        return [date for date in dates if date.order >= _FIRST_YEAR]
    return [figure for figure in figures if _counts(sentence, figure, about)]


def _tells_other_event(sentence: Sentence, about: frozenset[str]) -> bool:
    """Return whether a sentence dates a death if a birth is asked for, or a birth if a death is.

    A sentence with two dates, as in "(1847 – 1922)", may state both.
    """
    dates = [figure for figure in sentence.figures if figure.is_date]
    if len(dates) != 1 or about & sentence.stems:
        return False
    if about & _BIRTH:
        return not _DEATH.isdisjoint(sentence.stems)
    if about & _DEATH:
        return not _BIRTH.isdisjoint(sentence.stems)
    return False


def _unit(sentence: Sentence, figure: Figure) -> str:
    """Return the stem of the word directly after a figure, such as that of "metres", or ""."""
    behind = sentence.text[figure.end :]
    following = tokens_of(behind)
    return following[0].stem if following else ""


def _counts(sentence: Sentence, figure: Figure, about: frozenset[str]) -> bool:
    """Return whether a figure is a number rather than a year, as in "1000 species" and "1931 metres"."""
    if figure.kind == "number":
        return True
    if figure.kind != "year":
        return False
    return _unit(sentence, figure) in about or _is_measure(sentence, figure)


def _is_measure(sentence: Sentence, figure: Figure) -> bool:
    """Return whether a plural follows a figure and no word before it makes it a time, as in "In 1931 boats came"."""
    before = sentence.text[: figure.start]
    following = _PLURAL.match(sentence.text, figure.end)
    return following is not None and not _OF_YEAR.search(before)


def _nearness(sentence: Sentence, figure: Figure, wanted: frozenset[str]) -> float:
    ends = [token.end for token in sentence.tokens]
    at = bisect_right(ends, figure.start)
    words = [token.stem for token in sentence.tokens]
    return nearness(words, wanted, [(at, at)])


def _shared(
    sides: Sequence[Side], behind: str, about: frozenset[str]
) -> tuple[bool, tuple[Sentence, ...], bool]:
    """Return whether the sides have a name in common, the sentences read for it, and whether all are on the topic.

    Args:
        behind: the words after "same", such as "architect".
        about: the stems of the whole question.
    """
    wanted = stem_set(behind) & about or about
    kind = type_of(noun_of(behind))
    grounds: list[Sentence] = []
    names = [side.name for side in sides]
    common: frozenset[str] | None = None
    all_mention = True
    for side in sides:
        if not side.sentences:
            return False, tuple(grounds), False
        (nearest,) = side.nearest(wanted, about)
        grounds.append(nearest)
        if kind == "person" and about.isdisjoint(nearest.stems):
            all_mention = False
        named = _named(nearest, side.name, names, wanted, kind)
        if common is None:
            common = named
        common &= named
    return bool(common), tuple(grounds), all_mention


def _named(
    sentence: Sentence,
    name: str,
    names: Sequence[str],
    wanted: frozenset[str],
    kind: AnswerType | None,
) -> frozenset[str]:
    """Return the keys of the names in a sentence about a side, without the side's own; of the numbers if these are
    asked for.

    A name after a comma ("Nantong, Jiangsu") counts only if the widest place is asked for, since two cities of one
    country need not be in the same province.

    Args:
        kind: the type of the thing that should be the same. If it is a person, names after "in" or "at" do not
            count.
    """
    text = sentence.text
    own = canonical_key(name)
    if wanted & _NUMBER:
        return frozenset(
            str(figure.order) for figure in sentence.figures if figure.kind == "number"
        )
    widest = wanted & _WIDEST
    keys: set[str] = set()
    own_start, own_end = _stretch(text, name, names)
    own_names: list[tuple[int, int]] = []
    for span in sentence.names:
        if own_start <= span[0] < own_end:
            own_names.append(span)
    for start, end in own_names or sentence.names:
        before = text[:start].rstrip()
        if before.endswith(",") and not widest:
            continue
        if kind == "person" and _AT.search(before):
            continue
        keys.add(canonical_key(text[start:end]))
    if sentence.begins_with(_PERSONS):
        keys.add(canonical_key(sentence.naming.first_name))
        keys.discard("")
    return frozenset(key for key in keys if key not in own and own not in key)


def _stretch(text: str, name: str, names: Sequence[str]) -> tuple[int, int]:
    """Return the part of a text about one of several things: from after its name up to the name of another.

    It is the whole text if no other thing is named. An example is "Ada Crane lives in Norway, Bo Dell in Egypt".
    """
    place = text.find(name)
    others = [text.find(other) for other in names if other != name]
    if place < 0 or max(others, default=-1) < 0:
        return 0, len(text)
    start = place + len(name)
    later = [other for other in others if other > place]
    return start, min(later, default=len(text))


def sides_of(
    asked: QuestionAnalysis, passages: Sequence[ReadPassage]
) -> tuple[Side, ...]:
    """Return the things that a question compares, in its order, with the sentences about them.

    A passage that is chosen by its title belongs to only one of them.
    """
    left = list(passages)
    sides = []
    for name in asked.compared:
        passage = _titled(name, asked.question, left)
        if passage is None:
            sentences = _sentences_about(name, passages)
        else:
            left.remove(passage)
            sentences = passage.sentences
        sides.append(Side(name, sentences))
    return tuple(sides)


def _titled(
    name: str, question: str, passages: Sequence[ReadPassage]
) -> ReadPassage | None:
    """Return the passage whose title is the name; else one whose title is the beginning of the name, or ends with it.

    Of several, the one with most words of the question is returned. Return None if there is no such passage.
    """
    key = canonical_key(name)
    wanted = stem_set(question)

    def score(passage: ReadPassage) -> tuple[bool, bool, int]:
        title = passage.key
        # "Parsifal" is meant by "Parsifal by Wagner", and "Mount Kenya" by "Kenya"
        is_like = title != "" and key.startswith(f"{title} ")
        is_like = is_like or title.endswith(f" {key}")
        opening = " ".join(one.text for one in passage.sentences[:1])
        shared = wanted & (passage.title_stems | stem_set(opening))
        return key in passage.keys, is_like, len(shared)

    best = max(passages, key=score, default=None)
    return best if best and any(score(best)[:2]) else None


def _sentences_about(
    name: str, passages: Sequence[ReadPassage]
) -> tuple[Sentence, ...]:
    """Return the sentences about a thing in the first passage with any: those that begin with its name.

    Sentences that follow with a pronoun in place of the name are included. Without any, these are the sentences that
    name the thing in a passage without a title.
    """
    for passage in passages:
        about: list[Sentence] = []
        goes_on = False
        for sentence in passage.sentences:
            if not sentence.begins_with(SUBJECTS):
                goes_on = _is_subject(name, sentence)
            if goes_on:
                about.append(sentence)
        if about:
            return tuple(about)
    for passage in passages:
        naming = [one for one in passage.sentences if holds(one.text, name)]
        if naming and not passage.topic:
            return tuple(naming)
    return ()


def _is_subject(name: str, sentence: Sentence) -> bool:
    """Return whether a sentence begins with a name, perhaps after an article, that is not part of a longer name."""
    wanted = [token.word for token in tokens_of(name)]
    words = [token.word for token in sentence.tokens]
    first = 0
    if words[:1] != wanted[:1] and words and words[0] in _ARTICLES:
        first = 1
    behind = first + len(wanted)
    if words[first:behind] != wanted:
        return False
    end = sentence.tokens[behind - 1].end
    is_inside = (start < end < last for start, last in sentence.names)
    return not any(is_inside)


def well_known(sides: Sequence[Side]) -> bool:
    """Return whether there are sentences about each of the sides."""
    sentences = [side.sentences for side in sides]
    return all(sentences)
