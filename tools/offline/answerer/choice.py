"""Which of two things is first, largest, or the one that is told of? Decided by dates, numbers or words of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ras_agent.text.canonical import canonical_key
from ras_agent.text.values import Figure, figures_in
from ras_agent.text.words import fold, stem, stems, word_set
from ras_agent.tools.offline.question import QuestionAnalysis
from ras_agent.tools.offline.reading import ReadPassage, Sentence, tokens_of

Criterion = Literal["time", "amount", "duration", "trait"]

_EARLIEST = word_set("first earlier earliest older oldest before initially prior preceded")
_LATEST = word_set("later latest last recently newer newest younger youngest after recent")
_MOST = word_set(
    "more most larger largest bigger biggest greater greatest higher highest taller tallest deeper wider heavier "
    "farther further longer longest"
)
_LEAST = word_set("fewer fewest less least smaller smallest lower lowest shorter shortest closer nearer")
_LASTING = frozenset(map(stem, word_set("lasted lasting career reign lived life ran running duration")))
_BIRTH = frozenset(map(stem, word_set("born birth older oldest younger youngest age")))
_DEATH = frozenset(map(stem, word_set("died death dead die dies passed")))
_EVENTS = tuple(
    frozenset(map(stem, word_set(listed)))
    for listed in (
        """formed founded established created started began begun launched invented opened introduced incorporated built
        constructed completed organized designed developed founding formation""",
        "released published premiered issued aired debuted came shown broadcast printed release publication made",
    )
)
_GROUPS = {"duo": 2.0, "trio": 3.0, "quartet": 4.0, "quintet": 5.0, "sextet": 6.0, "septet": 7.0, "octet": 8.0}
_MEMBERS = frozenset(map(stem, word_set("member members people person musicians")))
_REACH = 8
_NEAR = 0.3
_ALIKE = 2.0
_FIRST_YEAR = 100  # a day without its year orders nothing


@dataclass(frozen=True, slots=True)
class Choice:
    """Holds the side chosen, and the sentences that speak for it, at most one a side.

    decided: both sides state what was compared; else it is a guess.
    """

    side: Side
    grounds: tuple[Sentence, ...]
    decided: bool

    def confidence(self, sides: Sequence[Side]) -> float:
        """Return how often such a choice between these sides is right."""
        if not well_known(sides):
            return GUESSED
        return 0.8 if self.decided else 0.6


@dataclass(frozen=True, slots=True)
class _Told:
    worth: float
    sentence: Sentence


def choose(asked: QuestionAnalysis, sides: Sequence[Side]) -> Choice:
    """Return the side that the question asks for."""
    asking = _without_names(asked.question, sides)
    words, about = {token.word for token in tokens_of(asking)}, frozenset(stems(asking))
    criterion, sign = _criterion(words, about)
    told = [_told(side, criterion, about) for side in sides]
    if criterion == "amount" and not any(told):
        told = [_listed(side) for side in sides]
    if criterion != "trait" and any(told):
        decided = all(told)
        worth = [found.worth * sign if found else float("-inf") if sign > 0 else float("inf") for found in told]
        if not decided and sign < 0:
            worth = [-value if value == float("inf") else value for value in worth]
        place = max(range(len(sides)), key=lambda at: worth[at])
        return Choice(sides[place], tuple(found.sentence for found in told if found), decided)
    return _by_trait(sides, about)


def _without_names(question: str, sides: Sequence[Side]) -> str:
    """Return the question without the names, and without what is said of the last one behind a comma."""
    places = [(question.find(side.name), side.name) for side in sides]
    last, name = max(places)
    if last >= 0:
        behind = question[last + len(name) :]
        question = question[: last + len(name)] + (
            "" if behind.startswith(",") and question.find(" or ") >= 0 else behind
        )
    for side in sides:
        question = question.replace(side.name, " ")
    return question


def _criterion(words: set[str], about: frozenset[str]) -> tuple[Criterion, float]:
    """Return what is compared, and 1.0 to pick the greatest, -1.0 the least."""
    if words & _LATEST and not words & (_MOST - {"more", "most"}):
        return "time", 1.0
    if words & _EARLIEST:
        return "time", -1.0
    sign = 1.0 if words & _MOST else -1.0 if words & _LEAST else 0.0
    if sign and words & {"longer", "longest", "shorter", "shortest"} and about & _LASTING:
        return "duration", sign
    return ("amount", sign) if sign else ("trait", 1.0)


def _told(side: Side, criterion: Criterion, about: frozenset[str]) -> _Told | None:
    if criterion == "time":
        return _dated(side, about)
    if criterion == "duration":
        return _lasted(side)
    if criterion == "amount":
        return _members(side) if about & _MEMBERS else _counted(side, about)
    return None


def _dated(side: Side, about: frozenset[str]) -> _Told | None:
    """Return when what is asked about happened: the date that is nearest behind its words."""
    if about & _DEATH:
        lifetime = _lifetime(side)
        if len(lifetime) > 1:
            return lifetime[1]
    elif about & _BIRTH:
        lifetime = _lifetime(side)
        if lifetime:
            return lifetime[0]
    events = about.union(*(group for group in _EVENTS if group & about))
    dates = [
        (_nearness(sentence, figure, events), sentence.number == 0, -figure.order, sentence)
        for sentence in side.sentences
        for figure in sentence.figures
        if figure.kind not in {"number", "ordinal"} and figure.order >= _FIRST_YEAR
    ]
    if not dates:
        return None
    # without a word of the event near a date, what a passage tells first or earliest is how its subject began
    _, _, order, sentence = max(dates, key=lambda date: (date[0] if date[0] > _NEAR else 0.0, *date[1:3]))
    return _Told(-order, sentence)


def _lifetime(side: Side) -> list[_Told]:
    """Return the dates of the first brackets that hold any: birth, then death."""
    for sentence in side.sentences[:2]:
        for bracket in re.finditer(r"\(([^()]*)\)", sentence.text):
            dates = [figure for figure in figures_in(bracket[1]) if figure.kind in {"date", "year"}]
            if dates:
                return [_Told(figure.order, sentence) for figure in dates if figure.order >= _FIRST_YEAR]
    return []


def _lasted(side: Side) -> _Told | None:
    for sentence in side.sentences:
        dates = [figure.order for figure in sentence.figures if figure.kind in {"date", "year"}]
        if len(dates) > 1:
            # "16 September – 16 December 1944": a date without its year belongs to the year of the next one
            year = float(int(max(dates)))
            full = [order if order >= _FIRST_YEAR else year + order for order in dates[:2]]
            return _Told(abs(full[1] - full[0]), sentence)
    return None


def _counted(side: Side, about: frozenset[str]) -> _Told | None:
    """Return the number that is nearest to what is counted."""
    best, most = None, 0.0
    for sentence in side.sentences:
        for figure in sentence.figures:
            following = tokens_of(sentence.text[figure.end :])[:1]
            # "1000 species" is no year
            if figure.kind != "number" and not (figure.kind == "year" and following and following[0].stem in about):
                continue
            score = _nearness(sentence, figure, about)
            if score > most:
                best, most = _Told(figure.order, sentence), score
    return best


def _members(side: Side) -> _Told | None:
    """Return how many members a group has: by a word for it, by a number, by the list of their names."""
    for sentence in side.sentences:
        for token in sentence.tokens:
            if token.word in _GROUPS:
                return _Told(_GROUPS[token.word], sentence)
    counted = _counted(side, _MEMBERS)
    if counted:
        return counted
    best = max(side.sentences, key=lambda sentence: len(sentence.names), default=None)
    for sentence in side.sentences:
        if re.search(r"\b(?:consist|members?\b|comprise|featur|formed by|line-?up|made up of)", fold(sentence.text)):
            best = sentence
            break
    return _Told(float(len(_people(best))), best) if best else None


def _listed(side: Side) -> _Told | None:
    """Return how many things its first sentence lists: what is left to count where nothing else is."""
    if not side.sentences:
        return None
    opening = side.sentences[0]
    return _Told(float(len(re.findall(r",| and ", opening.text))), opening)


def _people(sentence: Sentence) -> list[tuple[int, int]]:
    return [span for span in sentence.names if len(sentence.text[slice(*span)].split()) in {2, 3}]


def _nearness(sentence: Sentence, figure: Figure, wanted: frozenset[str]) -> float:
    """Return how close the wanted words are, those before the figure closer; 0 beyond reach."""
    first = next((place for place, token in enumerate(sentence.tokens) if token.end > figure.start), 0)
    total = 0.0
    for place, token in enumerate(sentence.tokens):
        if token.stem in wanted:
            gap = first - place if place < first else (place - first) * 1.2
            total += max(0.0, 1.0 - gap / _REACH)
    return total


def _by_trait(sides: Sequence[Side], about: frozenset[str]) -> Choice:
    """Return the side whose passage says more of the question's other words."""
    scored = []
    for side in sides:
        whole = frozenset(root for sentence in side.sentences for root in sentence.stems)
        best = side.best_sentence(about)
        near = len(about & best.stems) if best else 0
        scored.append((len(about & whole) + 0.5 * near, side))
    top = max(score for score, _ in scored)
    side = next(side for score, side in scored if score == top)
    best = side.best_sentence(about)
    return Choice(side, (best,) if best else (), sum(score == top for score, _ in scored) == 1)


@dataclass(frozen=True, slots=True)
class Side:
    """Holds one of the things compared: its name, and the sentences of the passage about it, in order.

    asked: the name as the question has it, which may hold a word too many. No sentences: no passage speaks of it.
    titled: whether the passage is about it by its title; else its first words mention it, or a part of its title does.
    """

    asked: str
    name: str
    sentences: tuple[Sentence, ...]
    titled: bool = True

    def best_sentence(self, stems: frozenset[str]) -> Sentence | None:
        """Return the sentence with most of `stems`, the first among equals."""
        return max(self.sentences, key=lambda sentence: len(stems & sentence.stems), default=None)


def sides_of(asked: QuestionAnalysis, passages: Sequence[ReadPassage]) -> tuple[Side, ...]:
    """Return the sides in the order of the question, one where it asks of one thing.

    No passage is about two of them.
    """
    wanted = frozenset(stems(asked.question))
    sides: list[Side] = []
    taken: list[ReadPassage] = []
    for name in asked.compared or (asked.mentions[:1] if asked.kind == "yes_no" else ()):
        about = _about(name, wanted, passages, taken)
        if about is None:
            sides.append(Side(name, name, (), titled=False))
        else:
            taken.append(about)
            sides.append(Side(name, _trimmed(name, about.topic), about.sentences, _titled(name, about)))
    return tuple(sides)


GUESSED = 0.1
"""The confidence of a verdict or a comparison where no passage is about one of the things."""


def well_known(sides: Sequence[Side]) -> bool:
    """Return whether a passage is about each of the sides, by its title."""
    return all(side.sentences and side.titled for side in sides)


def _titled(name: str, passage: ReadPassage) -> bool:
    """Return whether the title is the name, most of it, or the name in full.

    "Parsifal" is of "Parsifal by Wagner", and "Mount Kenya" of Kenya, but "Cotula australis" is not of Cotula.
    """
    key = canonical_key(name)
    begins, ends = key.startswith(f"{passage.key} "), passage.topic.endswith(f" {name}")
    return begins or ends or _likeness(key, passage, None) >= _ALIKE


def _trimmed(name: str, title: str) -> str:
    """Return the title, where the name goes on behind it with words that are not its own: "James Hall Argentinian"."""
    return title if title and canonical_key(name).startswith(f"{canonical_key(title)} ") else name


def _about(
    name: str, wanted: frozenset[str], passages: Sequence[ReadPassage], taken: Sequence[ReadPassage]
) -> ReadPassage | None:
    """Return the passage whose title, or else whose first words, name it.

    Of namesakes it is the one closest to the question.
    """
    key = canonical_key(name)
    best, most = None, (0.0, 0.0)
    for place, passage in enumerate(passages):
        if passage in taken:
            continue
        opening = passage.sentences[0] if passage.sentences else None
        likeness = _likeness(key, passage, opening)
        if likeness:
            seen = passage.title_stems | (opening.stems if opening else frozenset())
            score = (likeness, len(wanted & seen) - place / len(passages))
            if score > most:
                best, most = passage, score
    return best


def _likeness(key: str, passage: ReadPassage, opening: Sentence | None) -> float:
    title, plain = canonical_key(passage.title), passage.key
    if key == title and key != plain:
        return 4.0
    if key == plain:
        return 3.0
    words, others = set(key.split()), set(plain.split())
    if words and (words <= others or (others and others <= words)):
        return 2.0 * min(len(words), len(others)) / max(len(words), len(others)) + 0.5
    if opening and f" {key} " in f" {canonical_key(opening.text[:200])} ":
        return 1.0
    return 0.0
