"""Which of two things is first, has most or is told of; does something hold of both? By dates, numbers and words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.text.canonical import canonical_key
from ras_agent.text.values import Figure
from ras_agent.text.words import stem, stems, word_set
from ras_agent.tools.offline.question import QuestionAnalysis
from ras_agent.tools.offline.reading import ReadPassage, Sentence, tokens_of

_EARLIEST = word_set("first earlier earliest older oldest before initially prior preceded")
_LATEST = word_set("later latest last recently newer newest younger youngest after recent")
_MORE = word_set("more most")
_MOST = word_set(
    "larger largest bigger biggest greater greatest higher highest taller tallest deeper wider heavier farther further "
    "longer longest"
)
_LEAST = word_set("fewer fewest less least smaller smallest lower lowest shorter shortest closer nearer")
_DEATH = frozenset(map(stem, word_set("died death dead die dies passed")))
_REACH = 8
_FIRST_YEAR = 100  # a day without its year orders nothing
_SAME = re.compile(r"\b(?:same|(?P<different>different)|share[sd]?|common)\b", re.IGNORECASE)
_THAN = re.compile(r"\b(?:than|before|after)\b", re.IGNORECASE)
_EMPTY = frozenset(
    map(stem, word_set("both same type kind sort form considered known called located situated involved"))
)
_WIDEST = frozenset(map(stem, word_set("country nation nationality continent ethnicity origin")))
_BELONGS = re.compile(r"\b(?:consist|members?\b|comprise|featur|formed by|line-?up|made up of)", re.IGNORECASE)
_ALIKE = 2.0
_GUESSED = 0.1  # how sure an answer is where no passage is about one of the things


@dataclass(frozen=True, slots=True)
class Comparison:
    """Holds a side as the question names it, or yes or no; at most a sentence a side; how often such a one is right."""

    answer: str
    grounds: tuple[Sentence, ...]
    confidence: float


def compare(asked: QuestionAnalysis, sides: Sequence[Side]) -> Comparison:
    """Return the side that a question asks for, or whether every side says it, or shares what is to be the same."""
    known = well_known(sides)
    if asked.kind == "choice":
        chosen, grounds, decided = _chosen(asked.question, sides)
        return Comparison(chosen.asked, grounds, _GUESSED if not known else 0.8 if decided else 0.6)
    named = {root for side in sides for root in stems(side.name)}
    about = frozenset(stems(asked.question)) - named
    same = list(_SAME.finditer(asked.question))
    if same:
        behind = frozenset(stems(asked.question[same[-1].end() :])) & about
        shared, grounds = _shared(sides, behind or about)
        yes = shared != any(one["different"] for one in same)
    elif _THAN.search(asked.question):
        chosen, grounds, decided = _chosen(asked.question, sides)
        yes = chosen is sides[0] and decided
    else:
        yes = all(about - _EMPTY <= side.stems for side in sides)
        grounds = tuple(one for side in sides if (one := side.best_sentence(about - _EMPTY)))
    return Comparison("yes" if yes else "no", grounds, 0.75 if grounds and known else _GUESSED)


def _chosen(question: str, sides: Sequence[Side]) -> tuple[Side, tuple[Sentence, ...], bool]:
    """Return the side asked for, the sentences that speak for it, and whether all sides say what is compared."""
    if " or " in question:  # without what is said of the last one behind a comma
        question = question.partition(f"{max(sides, key=lambda side: question.find(side.name)).name},")[0]
    for side in sides:
        question = question.replace(side.name, " ")
    words, about = {token.word for token in tokens_of(question)}, frozenset(stems(question))
    late = words & _LATEST and not words & _MOST
    sign = 1.0 if late else -1.0 if words & _EARLIEST else 0.0
    told = [_dated(side, about) for side in sides] if sign else []
    if not sign:
        sign = 1.0 if words & (_MOST | _MORE) else -1.0 if words & _LEAST else 0.0
        told = [_counted(side, about) or _listed(side) for side in sides] if sign else []
    if any(told):
        worth = [one[0] * sign if one else float("-inf") for one in told]
        return sides[worth.index(max(worth))], tuple(one[1] for one in told if one), all(told)
    # else the side whose passage has more of the question's other words
    best = [side.best_sentence(about) for side in sides]
    scores = [
        len(about & side.stems) + 0.5 * len(about & one.stems if one else ())
        for side, one in zip(sides, best, strict=True)
    ]
    place = scores.index(max(scores))
    return sides[place], tuple(one for one in best[place : place + 1] if one), scores.count(scores[place]) == 1


def _dated(side: Side, about: frozenset[str]) -> tuple[float, Sentence] | None:
    """Return when what is asked about happened: the date nearest to its words, else the first, of a death the last."""
    way = 1.0 if about & _DEATH else -1.0
    dates = [
        (_nearness(sentence, figure, about), sentence.number == 0, way * figure.order, sentence)
        for sentence in side.sentences
        for figure in sentence.figures
        if figure.kind not in {"number", "ordinal"} and figure.order >= _FIRST_YEAR
    ]
    if not dates:
        return None
    *_, order, sentence = max(dates, key=lambda date: date[:3])
    return way * order, sentence


def _counted(side: Side, about: frozenset[str]) -> tuple[float, Sentence] | None:
    """Return the number that is nearest to what is counted."""
    best, most = None, 0.0
    for sentence in side.sentences:
        for figure in sentence.figures:
            following = tokens_of(sentence.text[figure.end :])[:1]
            # "1000 species" is no year
            if figure.kind == "number" or (figure.kind == "year" and following and following[0].stem in about):
                score = _nearness(sentence, figure, about)
                if score > most:
                    best, most = (figure.order, sentence), score
    return best


def _listed(side: Side) -> tuple[float, Sentence] | None:
    """Return how many names are in the sentence that tells who or what belongs to it, else in its first one."""
    telling = [*(one for one in side.sentences if _BELONGS.search(one.text)), *side.sentences]
    return (float(len(telling[0].names)), telling[0]) if telling else None


def _nearness(sentence: Sentence, figure: Figure, wanted: frozenset[str]) -> float:
    """Return how close the wanted words are, those before the figure closer; 0 beyond reach."""
    first = next((place for place, token in enumerate(sentence.tokens) if token.end > figure.start), 0)
    total = 0.0
    for place, token in enumerate(sentence.tokens):
        if token.stem in wanted:
            gap = first - place if place < first else (place - first) * 1.2
            total += max(0.0, 1.0 - gap / _REACH)
    return total


def _shared(sides: Sequence[Side], wanted: frozenset[str]) -> tuple[bool, tuple[Sentence, ...]]:
    """Return whether the sides name something in common where they speak of what is wanted, and those sentences."""
    named: list[frozenset[str]] = []
    grounds = []
    for side in sides:
        sentence = side.best_sentence(wanted)
        if sentence is not None:
            grounds.append(sentence)
            named.append(_named(sentence, side, widest=bool(wanted & _WIDEST)))
    return len(named) == len(sides) and bool(frozenset.intersection(*named)), tuple(grounds)


def _named(sentence: Sentence, side: Side, *, widest: bool) -> frozenset[str]:
    """Return keys of the names and numbers said of a side, its own name left out.

    The last of a chain of places ("Nantong, Jiangsu, China") counts only where the widest place is asked for: two
    cities of one country need not be in the same province.
    """
    text, own = sentence.text, canonical_key(side.name)
    spans = sentence.names
    keys = {str(figure.order) for figure in sentence.figures if figure.kind == "number"}
    for place, (start, end) in enumerate(spans):
        follows = place > 0 and text[:start].rstrip().endswith(",")
        goes_on = place + 1 < len(spans) and text[end : spans[place + 1][0]].strip() == ","
        if widest or not follows or goes_on:
            keys.add(canonical_key(text[start:end]))
    return frozenset(key for key in keys if key not in own and own not in key)


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

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(root for sentence in self.sentences for root in sentence.stems)

    def best_sentence(self, stems: frozenset[str]) -> Sentence | None:
        """Return the sentence with most of `stems`, the first among equals."""
        return max(self.sentences, key=lambda sentence: len(stems & sentence.stems), default=None)


def sides_of(asked: QuestionAnalysis, passages: Sequence[ReadPassage]) -> tuple[Side, ...]:
    """Return the sides in the order of the question; no passage is about two of them."""
    wanted = frozenset(stems(asked.question))
    sides: list[Side] = []
    left = list(passages)
    for name in asked.compared:
        about = _about(name, wanted, left)
        if about is None:
            sides.append(Side(name, name, (), titled=False))
            continue
        left.remove(about)
        key = canonical_key(name)
        # "Parsifal" is of "Parsifal by Wagner", and "Mount Kenya" of Kenya, but "Cotula australis" is not of Cotula
        longer, shorter = key.startswith(f"{about.key} "), about.topic.endswith(f" {name}")
        titled = longer or shorter or _likeness(key, about) >= _ALIKE
        sides.append(Side(name, about.topic if longer else name, about.sentences, titled))
    return tuple(sides)


def well_known(sides: Sequence[Side]) -> bool:
    """Return whether a passage is about each of the sides, by its title."""
    return all(side.sentences and side.titled for side in sides)


def _about(name: str, wanted: frozenset[str], passages: Sequence[ReadPassage]) -> ReadPassage | None:
    """Return the passage whose title names it, else whose first words do; of namesakes the closest to the question."""
    key = canonical_key(name)

    def score(passage: ReadPassage) -> tuple[float, int]:
        opening = passage.sentences[0] if passage.sentences else None
        likeness = _likeness(key, passage) or (opening and f" {key} " in f" {canonical_key(opening.text[:200])} ") or 0
        return float(likeness), len(wanted & (passage.title_stems | (opening.stems if opening else frozenset())))

    best = max(passages, key=score, default=None)
    return best if best and score(best)[0] else None


def _likeness(key: str, passage: ReadPassage) -> float:
    title, plain = canonical_key(passage.title), passage.key
    if key == title and key != plain:
        return 4.0
    if key == plain:
        return 3.0
    words, others = set(key.split()), set(plain.split())
    if words and (words <= others or (others and others <= words)):
        return 2.0 * min(len(words), len(others)) / max(len(words), len(others)) + 0.5
    return 0.0
