"""Compares two things: which one is first, has most or is meant, and whether something holds for both.

Dates, numbers and words decide; whether something holds for both, the reader is asked too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ras_agent.confidence import logistic
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import DEMONYM
from ras_agent.text.overlap import holds
from ras_agent.text.titles import with_title
from ras_agent.text.values import Figure
from ras_agent.text.words import stem_set, stems, word_set
from ras_agent.tools.offline.answerer.wording import denies
from ras_agent.tools.offline.chain import Found, answers
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
THAN = re.compile(r"\b(?:than|before|after)\b", re.IGNORECASE)
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
_ALIKE = 0.75  # share of common words from which a title counts as the name
# weight of a name in a passage's first words, relative to one in its title
_IN_PASSING = 0.1
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
    titled: bool = False
    """Whether the sentences are really about the thing, since their passage's title is its name or it is their
    subject.

    Otherwise their passage's first words or title only mention it.
    """

    @property
    def stems(self) -> frozenset[str]:
        """Return the stems of all words in the sentences."""
        return frozenset(root for sentence in self.sentences for root in sentence.stems)

    def best_sentence(self, wanted: frozenset[str]) -> tuple[Sentence, ...]:
        """Return the sentence with most of the wanted stems, the first of equal ones; () without sentences."""
        return tuple(
            sorted(self.sentences, key=lambda sentence: -len(wanted & sentence.stems))[
                :1
            ]
        )


def compare(asked: QuestionAnalysis, sides: Sequence[Side], reader: Reader) -> Reply:
    """Return the side that a question asks for, or whether something holds for all sides, or is the same for all."""
    known = well_known(sides)
    if asked.kind == "choice":
        chosen, grounds, sure = _chosen(asked.question, sides)
        return Reply(chosen.name, grounds, sure if known else _GUESSED)
    about = (
        stem_set(asked.question)
        - {root for side in sides for root in stems(side.name)}
        - _EMPTY
    )
    sure = 0.75
    same = list(SAME.finditer(asked.question))
    if same:
        behind = asked.question[same[-1].end() :]
        shared, grounds, both_told = _shared(sides, behind, about)
        if not shared and not both_told:
            sure = _UNDECIDED
        yes = shared != any(one["different"] for one in same)
    elif THAN.search(asked.question):
        chosen, grounds, sure = _chosen(asked.question, sides)
        yes = chosen is sides[0] and sure > _UNDECIDED
    else:
        holding = [_holds(asked.question, side, about, reader) for side in sides]
        likely = min(1 - one if denies(asked.question) else one for one in holding)
        yes = likely >= 0.5
        sure = max(likely, 1 - likely)
        grounds = tuple(
            sentence for side in sides for sentence in side.best_sentence(about)
        )
    return Reply(
        "yes" if yes else "no", grounds, sure if grounds and known else _GUESSED
    )


def _holds(question: str, side: Side, about: frozenset[str], reader: Reader) -> float:
    """Return the probability that something asked about both things holds for one of them.

    The reader's verdict and the shared words decide. The reader is given the whole question and one thing's text, as in
    its training (lab.weights.reader.kinds).
    """
    if not side.sentences:
        return 0.0
    text = " ".join(sentence.text for sentence in side.sentences[:_READ])
    passage = side.sentences[0].passage
    whole = with_title(passage.heading, text)
    (verdict,) = reader.judge(question, [whole])
    log_odds = math.log((verdict.true + _SMALLEST) / (verdict.false + _SMALLEST))
    said = len(about & side.stems) / max(1, len(about))
    return logistic(_OFFSET + _TRUST * log_odds + _SAID * said)


def in_common(
    asked: QuestionAnalysis, sides: Sequence[Side], reader: Reader
) -> Reply | None:
    """Return the answer that the texts about both sides share, in the shorter wording; None if they share no answer.

    An answer that is a list counts as each of its parts: a "poet and novelist" and a "Scottish poet" are both
    poets.
    """
    told = [
        [
            (rank, part.strip(), one.sentence)
            for rank, one in enumerate(_answers_about(asked.question, side, reader))
            for part in _PARTS.split(one.text)
            if asked.answer_type in ("nationality", "person")
            or not DEMONYM.fullmatch(part.strip())
        ]
        for side in sides
    ]
    known = stem_set(asked.question)
    alike = [
        (rank + other_rank, min(part, other, key=len), (sentence, other_sentence))
        for rank, part, sentence in told[0]
        for other_rank, other, other_sentence in told[1]
        if _alike(part, other, known)
    ]
    if not alike:
        return None
    # a plural such as "occupations" asks for several
    several = asked.answer_noun[-1:] and asked.answer_noun[-1].endswith("s")
    most = 2 * _ANSWERS if several else min(rank for rank, *_ in alike)
    shared = {
        canonical_key(part): (part, grounds)
        for rank, part, grounds in reversed(alike)
        if rank <= most
    }
    chosen = list(reversed(shared.values()))[: None if several else 1]
    grounds = tuple(dict.fromkeys(sentence for _, pair in chosen for sentence in pair))
    return Reply(" and ".join(part for part, _ in chosen), grounds, _IN_COMMON)


def _answers_about(question: str, side: Side, reader: Reader) -> list[Found]:
    """Return the likeliest answers from the sentences about a side."""
    passage = side.sentences[0].passage
    about: list[Found] = []
    for found in answers(question, reader, [passage]):
        if found.sentence in side.sentences:
            about.append(found)
    return about[:_ANSWERS]


def _alike(one: str, other: str, known: frozenset[str]) -> bool:
    """Return whether two phrases mean the same thing, which the question does not already say.

    Phrases such as "lyric poet" and "Scottish poet" share the last word of one of them. For a name or a number, one
    must
    contain all words of the other: North Carolina is not South Carolina.
    """
    first = stems(one)
    second = stems(other)
    if not set(first) & set(second) - known:
        return False
    if any(
        phrase.split()[-1][0].isupper() or re.search(r"\d", phrase)
        for phrase in (one, other)
    ):
        return set(first) <= set(second) or set(second) <= set(first)
    return first[-1] in second or second[-1] in first


def _chosen(
    question: str, sides: Sequence[Side]
) -> tuple[Side, tuple[Sentence, ...], float]:
    """Return the side asked for, the sentences that support it, and the confidence."""
    if " or " in question:  # without what is said about the last one after a comma
        question = question.partition(
            f"{max(sides, key=lambda side: question.find(side.name)).name},"
        )[0]
    for side in sides:
        question = question.replace(side.name, " ")
    words = {token.word for token in tokens_of(question)}
    about = stem_set(question)
    by_dates, sign = next(
        ((by_dates, sign) for listed, by_dates, sign in ORDERS if words & listed),
        (False, 0),
    )
    for word in words:
        about |= columns_asked_by(word)
    names = [side.name for side in sides]
    figures: list[_Told | None] = []
    if sign:
        figures = [_figure(side, about, by_dates, names) for side in sides]
    if any(figures):
        worth = [one.value * sign if one else float("-inf") for one in figures]
        sure = _BY_NUMBERS
        if by_dates:
            sure = _BY_DATES
        elif _in_one_unit(figures):
            sure = _IN_ONE_UNIT
        grounds = tuple(one.sentence for one in figures if one)
        return (
            sides[worth.index(max(worth))],
            grounds,
            sure if all(figures) and len(set(worth)) > 1 else _UNDECIDED,
        )
    # otherwise the side whose passage has most of the question's other words
    scores = [len(about & side.stems) for side in sides]
    best = sides[scores.index(max(scores))]
    return (
        best,
        best.best_sentence(about),
        _BY_WORDS if len(set(scores)) == len(scores) else _UNDECIDED,
    )


def _in_one_unit(figures: Sequence[_Told | None]) -> bool:
    """Return whether the same word follows each number."""
    units: set[str] = set()
    for figure in figures:
        if figure is not None:
            units.add(figure.unit)
    return len(units) == 1 and "" not in units


class _Told(NamedTuple):
    """A number or a date of a side, the sentence with it, and the word after it ("" if it has no unit)."""

    value: float
    sentence: Sentence
    unit: str = ""


def _figure(
    side: Side, about: frozenset[str], by_dates: bool, names: Sequence[str]
) -> _Told | None:
    """Return the side's date, or number, that is nearest to the words asked about; None without one.

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
        own = _own(fitting, sentence, side.name, names)
        for figure in own:
            near = _nearness(sentence, figure, about)
            order = way * figure.order
            is_first = sentence.number == 0
            figures.append((near, is_first, order, sentence, figure))
    if figures:
        near, _, order, sentence, figure = max(figures, key=lambda one: one[:3])
        if by_dates or near > _FAR:
            return _Told(way * order, sentence, _unit(sentence, figure))
    telling = [
        *(one for one in side.sentences if _BELONGS.search(one.text)),
        *side.sentences,
    ]
    if by_dates or not telling:
        return None
    return _Told(float(len(telling[0].names)), telling[0])


def _fitting(sentence: Sentence, about: frozenset[str], by_dates: bool) -> list[Figure]:
    """Return the dates in a sentence, or its numbers."""
    fitting: list[Figure] = []
    for figure in sentence.figures:
        if not by_dates:
            fits = _counts(sentence, figure, about)
        else:
            fits = figure.is_date and figure.order >= _FIRST_YEAR
        if fits:
            fitting.append(figure)
    return fitting


def _own(
    figures: Sequence[Figure], sentence: Sentence, name: str, names: Sequence[str]
) -> Sequence[Figure]:
    """Return the figures of one thing. If a sentence has as many figures as things, they belong together in order.

    An example is "Opal Hall was opened in 1911, Gannet Tower in 1904."
    """
    text = sentence.text
    named = [one for one in names if one in text]
    named.sort(key=text.find)
    if name not in named or len(named) < 2:
        return figures
    if len(named) != len(figures):
        return figures
    place = named.index(name)
    figure = figures[place]
    return [figure]


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
    """Return the stem of the word directly after a figure, such as that of "metres"; "" without one."""
    following = tokens_of(sentence.text[figure.end :])
    if not following:
        return ""
    return following[0].stem


def _counts(sentence: Sentence, figure: Figure, about: frozenset[str]) -> bool:
    """Return whether a figure is a number rather than a year, as in "1000 species" and "1931 metres"."""
    if figure.kind == "number":
        return True
    if figure.kind != "year":
        return False
    return _unit(sentence, figure) in about or _is_measure(sentence, figure)


def _is_measure(sentence: Sentence, figure: Figure) -> bool:
    """Return whether a plural follows a figure and no word before it makes it a time, as in "In 1931 boats came"."""
    if _OF_YEAR.search(sentence.text[: figure.start]):
        return False
    return _PLURAL.match(sentence.text[figure.end :]) is not None


def _nearness(sentence: Sentence, figure: Figure, wanted: frozenset[str]) -> float:
    at = next(
        (
            place
            for place, token in enumerate(sentence.tokens)
            if token.end > figure.start
        ),
        0,
    )
    return nearness([token.stem for token in sentence.tokens], wanted, [(at, at)])


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
    common: frozenset[str] | None = None
    all_told = True
    for side in sides:
        nearest = _nearest(side, wanted, about)
        if nearest is None:
            return False, tuple(grounds), False
        grounds.append(nearest)
        if kind == "person" and about.isdisjoint(nearest.stems):
            all_told = False
        others = [one.name for one in sides]
        others.remove(side.name)
        named = _named(nearest, side, others, wanted, kind)
        if common is None:
            common = named
        common &= named
    return bool(common), tuple(grounds), all_told


def _nearest(
    side: Side, wanted: frozenset[str], about: frozenset[str]
) -> Sentence | None:
    """Return the sentence with most of the wanted stems, of equal ones with most of the question's; else None."""

    def held(sentence: Sentence) -> tuple[int, int]:
        of_wanted = len(wanted & sentence.stems)
        of_question = len(about & sentence.stems)
        return of_wanted, of_question

    return max(side.sentences, key=held, default=None)


def _named(
    sentence: Sentence,
    side: Side,
    others: Sequence[str],
    wanted: frozenset[str],
    kind: AnswerType | None,
) -> frozenset[str]:
    """Return the keys of the names that a sentence states for a side, without its own, or of numbers if asked for.

    A name after a comma ("Nantong, Jiangsu") counts only if the widest place is asked for, since two cities of one
    country need not be in the same province.

    Args:
        kind: the type of the thing that should be the same. If it is a person, names after "in" or "at" do not
            count.
    """
    text = sentence.text
    own = canonical_key(side.name)
    if wanted & _NUMBER:
        return frozenset(
            str(figure.order) for figure in sentence.figures if figure.kind == "number"
        )
    widest = wanted & _WIDEST
    keys: set[str] = set()
    own_start, own_end = _stretch(text, side.name, others)
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


def _stretch(text: str, name: str, others: Sequence[str]) -> tuple[int, int]:
    """Return the part of a text about one thing: from after its name up to the name of another thing.

    It is the whole text if no other thing is named. An example is "Ada Crane lives in Norway, Bo Dell in Egypt".
    """
    start = text.find(name)
    named = [other for other in others if other in text]
    if start < 0 or not named:
        return 0, len(text)
    start += len(name)
    end = len(text)
    for other in named:
        place = text.find(other, start)
        if place >= 0:
            end = min(end, place)
    return start, end


def sides_of(
    asked: QuestionAnalysis, passages: Sequence[ReadPassage]
) -> tuple[Side, ...]:
    """Return the things that a question compares, in its order, with the sentences about them.

    No passage is used, by its title, for two of them.
    """
    wanted = stem_set(asked.question)
    left = list(passages)
    sides = []
    for name in asked.compared:
        about = _about(name, wanted, left)
        if about is None or not _likeness(name, about):
            said = _sentences_about(name, passages)
            if said:
                sides.append(Side(name, said, titled=True))
                continue
        if about is None:
            sides.append(Side(name))
            continue
        left.remove(about)
        # title "Parsifal" fits "Parsifal by Wagner", "Mount Kenya" fits Kenya, but "Cotula australis" not Cotula
        longer = canonical_key(name).startswith(f"{about.key} ") and not _is_title(
            name, about
        )
        shorter = about.topic.endswith(f" {name}")
        titled = longer or shorter or _likeness(name, about) >= _ALIKE
        sides.append(Side(about.topic if longer else name, about.sentences, titled))
    return tuple(sides)


def _sentences_about(
    name: str, passages: Sequence[ReadPassage]
) -> tuple[Sentence, ...]:
    """Return the sentences of the first passage whose subject is a thing: they begin with its name.

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
    untitled = [passage for passage in passages if not passage.topic]
    for passage in untitled:
        naming: list[Sentence] = []
        for sentence in passage.sentences:
            if holds(sentence.text, name):
                naming.append(sentence)
        if naming:
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
    return all(not start < end < last for start, last in sentence.names)


def well_known(sides: Sequence[Side]) -> bool:
    """Return whether there are sentences about each of the sides."""
    return all(side.sentences and side.titled for side in sides)


def _about(
    name: str, wanted: frozenset[str], passages: Sequence[ReadPassage]
) -> ReadPassage | None:
    """Return the passage that names a thing in its title, else in its first words; of namesakes the nearest.

    Args:
        wanted: the stems of the question, which decide between namesakes.
    """

    def score(passage: ReadPassage) -> tuple[float, int]:
        opening = passage.sentences[0].text if passage.sentences else ""
        named = holds(opening[:200], name)
        return _likeness(name, passage) or named * _IN_PASSING, len(
            wanted & (passage.title_stems | stem_set(opening))
        )

    best = max(passages, key=score, default=None)
    return best if best and score(best)[0] else None


def _likeness(name: str, passage: ReadPassage) -> float:
    """Return the share of words that a name and a title have in common if one contains all of the other's, else 0.

    The title counts without its brackets too: "Emma" is the name of "Emma (novel)".
    """
    if _is_title(name, passage):
        return 1.0
    words = set(canonical_key(name).split())
    others = set(passage.key.split())
    return (
        len(words & others) / len(words | others)
        if words & others in (words, others)
        else 0.0
    )


def _is_title(name: str, passage: ReadPassage) -> bool:
    return canonical_key(name) == canonical_key(passage.title)
