"""Which of two things is first, has most or is told of; does something hold of both?

By dates, numbers and words; whether something holds of both the reader is asked, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import DEMONYM
from ras_agent.text.overlap import holds
from ras_agent.text.titles import with_title
from ras_agent.text.values import Figure
from ras_agent.text.words import stem_set, stems
from ras_agent.tools.offline.answerer.wording import denies
from ras_agent.tools.offline.chain import answers
from ras_agent.tools.offline.question import ORDERS, QuestionAnalysis
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import ReadPassage, Sentence, nearness, tokens_of

_DEATH = stem_set("died death dead dies passed")
_SAME = re.compile(r"\b(?:same|(?P<different>different)|share[sd]?|common)\b", re.IGNORECASE)
THAN = re.compile(r"\b(?:than|before|after)\b", re.IGNORECASE)
_EMPTY = stem_set("same type kind sort form considered known called located situated involved")
_NUMBER = stem_set("number amount count quantity")
_WIDEST = stem_set("country nation nationality continent ethnicity origin")
_BELONGS = re.compile(r"\b(?:consist|members?\b|comprise|featur|formed by|line-?up|made up of)", re.IGNORECASE)
_FIRST_YEAR = 100  # a day without its year orders nothing
_FAR = 0.12  # nearness up to which no number is counted
_ALIKE = 0.75  # share of common words from which a title is a name's
_IN_PASSING = 0.1  # what a name in the first words of a passage counts beside one in a title
_READ = 6  # sentences of a side that are read
# of a logistic curve of how likely something holds of a side: what a verdict's log-odds weigh, and the share of the
# question's words that its passage has
_OFFSET, _TRUST, _SAID = -0.9, 1.3, 2.1
_SMALLEST = 1e-3
_ANSWERS = 3  # of each side that are looked at for what both have in common
_IN_COMMON = 0.75  # how likely that is right
_PARTS = re.compile(r",? (?:and|or) |[,;] | & |(?<=[a-z])/(?=[a-z])")
# how sure a choice is: 106 of 117 by dates were right, 14 of 22 by numbers, all of 14 by words (lab/reader.md)
_BY_DATES, _BY_NUMBERS, _BY_WORDS = 0.9, 0.64, 0.8
_UNDECIDED = 0.4  # where one of the things does not tell what is compared
_GUESSED = 0.1  # where no passage is about one of them


@dataclass(frozen=True, slots=True)
class Reply:
    """Holds an answer, the sentences that it rests on, and how likely it is to be right, None where nobody knows."""

    text: str
    grounds: tuple[Sentence, ...]
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """Holds one of the things compared: its name, and the sentences of the passage about it, none without one.

    titled: whether the passage is about it by its title; else its first words mention it, or a part of its title does.
    """

    name: str
    sentences: tuple[Sentence, ...] = ()
    titled: bool = False

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(root for sentence in self.sentences for root in sentence.stems)

    def best_sentence(self, wanted: frozenset[str]) -> tuple[Sentence, ...]:
        """Return the sentence with most of the wanted stems, the first among equals; () without a sentence."""
        return tuple(sorted(self.sentences, key=lambda sentence: -len(wanted & sentence.stems))[:1])


def compare(asked: QuestionAnalysis, sides: Sequence[Side], reader: Reader) -> Reply:
    """Return the side that a question asks for, or whether every side is so, or shares what is to be the same."""
    known = well_known(sides)
    if asked.kind == "choice":
        chosen, grounds, sure = _chosen(asked.question, sides)
        return Reply(chosen.name, grounds, sure if known else _GUESSED)
    about = stem_set(asked.question) - {root for side in sides for root in stems(side.name)} - _EMPTY
    sure = 0.75
    same = list(_SAME.finditer(asked.question))
    if same:
        behind = stem_set(asked.question[same[-1].end() :]) & about
        shared, grounds = _shared(sides, behind or about)
        yes = shared != any(one["different"] for one in same)
    elif THAN.search(asked.question):
        chosen, grounds, sure = _chosen(asked.question, sides)
        yes = chosen is sides[0] and sure > _UNDECIDED
    else:
        holding = [_holds(asked.question, side, about, reader) for side in sides]
        likely = min(1 - one if denies(asked.question) else one for one in holding)
        yes, sure = likely >= 0.5, max(likely, 1 - likely)
        grounds = tuple(sentence for side in sides for sentence in side.best_sentence(about))
    return Reply("yes" if yes else "no", grounds, sure if grounds and known else _GUESSED)


def _holds(question: str, side: Side, about: frozenset[str], reader: Reader) -> float:
    """Return how likely something asked of both things holds of one: by the reader's verdict, and by the words.

    The reader is given the whole question and one thing's text, as in training (lab.weights.reader.kinds).
    """
    if not side.sentences:
        return 0.0
    text = " ".join(sentence.text for sentence in side.sentences[:_READ])
    passage = side.sentences[0].passage
    whole = with_title(passage.heading, text)
    (verdict,) = reader.judge(question, [whole])
    log_odds = math.log((verdict.true + _SMALLEST) / (verdict.false + _SMALLEST))
    said = len(about & side.stems) / max(1, len(about))
    return 1 / (1 + math.exp(-(_OFFSET + _TRUST * log_odds + _SAID * said)))


def in_common(asked: QuestionAnalysis, sides: Sequence[Side], reader: Reader) -> Reply | None:
    """Return what the texts about both sides answer alike, in the shorter words; None where they answer nothing so.

    An answer that is a list is each of its parts: a "poet and novelist" and a "Scottish poet" are poets.
    """
    told = [
        [
            (rank, part.strip(), one.sentence)
            for rank, one in enumerate(answers(asked.question, reader, [side.sentences[0].passage])[:_ANSWERS])
            for part in _PARTS.split(one.text)
            if asked.answer_type in ("nationality", "person") or not DEMONYM.fullmatch(part.strip())
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
    several = asked.answer_noun[-1:] and asked.answer_noun[-1].endswith("s")  # "occupations"
    most = 2 * _ANSWERS if several else min(rank for rank, *_ in alike)
    shared = {canonical_key(part): (part, grounds) for rank, part, grounds in reversed(alike) if rank <= most}
    chosen = list(reversed(shared.values()))[: None if several else 1]
    grounds = tuple(dict.fromkeys(sentence for _, pair in chosen for sentence in pair))
    return Reply(" and ".join(part for part, _ in chosen), grounds, _IN_COMMON)


def _alike(one: str, other: str, known: frozenset[str]) -> bool:
    """Return whether two phrases mean one thing that the question does not say.

    Phrases such as "lyric poet" and "Scottish poet" share the last word of one of them; of a name or a number one has
    all words of the other: North Carolina is not South Carolina.
    """
    first, second = stems(one), stems(other)
    if not set(first) & set(second) - known:
        return False
    if any(phrase.split()[-1][0].isupper() or re.search(r"\d", phrase) for phrase in (one, other)):
        return set(first) <= set(second) or set(second) <= set(first)
    return first[-1] in second or second[-1] in first


def _chosen(question: str, sides: Sequence[Side]) -> tuple[Side, tuple[Sentence, ...], float]:
    """Return the side asked for, the sentences that speak for it, and how sure that is."""
    if " or " in question:  # without what is said of the last one behind a comma
        question = question.partition(f"{max(sides, key=lambda side: question.find(side.name)).name},")[0]
    for side in sides:
        question = question.replace(side.name, " ")
    words, about = {token.word for token in tokens_of(question)}, stem_set(question)
    by_dates, sign = next(((by_dates, sign) for listed, by_dates, sign in ORDERS if words & listed), (False, 0))
    figures = [_figure(side, about, by_dates) for side in sides] if sign else []
    if any(figures):
        worth = [one[0] * sign if one else float("-inf") for one in figures]
        sure = _BY_DATES if by_dates else _BY_NUMBERS
        grounds = tuple(one[1] for one in figures if one)
        return sides[worth.index(max(worth))], grounds, sure if all(figures) and len(set(worth)) > 1 else _UNDECIDED
    # else the side whose passage has more of the question's other words
    scores = [len(about & side.stems) for side in sides]
    best = sides[scores.index(max(scores))]
    return best, best.best_sentence(about), _BY_WORDS if len(set(scores)) == len(scores) else _UNDECIDED


def _figure(side: Side, about: frozenset[str], by_dates: bool) -> tuple[float, Sentence] | None:
    """Return the date, or the number, that is nearest to the words asked about.

    Without a number, how many are named in the sentence that tells who or what belongs to it, else in its first one.
    Of dates that are equally near those of the first sentence count, the first of them, of a death the last.
    """
    way = 1 if about & _DEATH else -1
    figures = [
        (_nearness(sentence, figure, about), sentence.number == 0, way * figure.order, sentence)
        for sentence in side.sentences
        for figure in sentence.figures
        if (figure.is_date and figure.order >= _FIRST_YEAR if by_dates else _counts(sentence, figure, about))
    ]
    near, _, order, sentence = max(figures, key=lambda one: one[:3], default=(0.0, False, 0.0, None))
    if sentence is not None and (by_dates or near > _FAR):
        return way * order, sentence
    telling = [*(one for one in side.sentences if _BELONGS.search(one.text)), *side.sentences]
    return (float(len(telling[0].names)), telling[0]) if telling and not by_dates else None


def _counts(sentence: Sentence, figure: Figure, about: frozenset[str]) -> bool:
    """Return whether a figure is a number: "1000 species" is no year."""
    following = tokens_of(sentence.text[figure.end :])[:1]
    return figure.kind == "number" or (figure.kind == "year" and any(one.stem in about for one in following))


def _nearness(sentence: Sentence, figure: Figure, wanted: frozenset[str]) -> float:
    at = next((place for place, token in enumerate(sentence.tokens) if token.end > figure.start), 0)
    return nearness([token.stem for token in sentence.tokens], wanted, [(at, at)])


def _shared(sides: Sequence[Side], wanted: frozenset[str]) -> tuple[bool, tuple[Sentence, ...]]:
    """Return whether the sides name something in common where they speak of what is wanted, and those sentences."""
    grounds = [(side, sentence) for side in sides for sentence in side.best_sentence(wanted)]
    named = [_named(sentence, side, wanted) for side, sentence in grounds]
    shared = len(named) == len(sides) and frozenset.intersection(*named) != frozenset()
    return shared, tuple(sentence for _, sentence in grounds)


def _named(sentence: Sentence, side: Side, wanted: frozenset[str]) -> frozenset[str]:
    """Return keys of the names said of a side, its own name left out, or of the numbers where one is asked for.

    What follows a comma ("Nantong, Jiangsu") counts only where the widest place is asked for: two cities of one country
    need not be in the same province.
    """
    text, own = sentence.text, canonical_key(side.name)
    if wanted & _NUMBER:
        return frozenset(str(figure.order) for figure in sentence.figures if figure.kind == "number")
    widest, keys = wanted & _WIDEST, set[str]()
    keys |= {canonical_key(text[a:b]) for a, b in sentence.names if widest or not text[:a].rstrip().endswith(",")}
    return frozenset(key for key in keys if key not in own and own not in key)


def sides_of(asked: QuestionAnalysis, passages: Sequence[ReadPassage]) -> tuple[Side, ...]:
    """Return the sides in the order of the question; no passage is about two of them."""
    wanted, left, sides = stem_set(asked.question), list(passages), []
    for name in asked.compared:
        about = _about(name, wanted, left)
        if about is None:
            sides.append(Side(name))
            continue
        left.remove(about)
        # "Parsifal" is of "Parsifal by Wagner", and "Mount Kenya" of Kenya, but "Cotula australis" is not of Cotula
        longer = canonical_key(name).startswith(f"{about.key} ") and not _is_title(name, about)
        shorter = about.topic.endswith(f" {name}")
        titled = longer or shorter or _likeness(name, about) >= _ALIKE
        sides.append(Side(about.topic if longer else name, about.sentences, titled))
    return tuple(sides)


def well_known(sides: Sequence[Side]) -> bool:
    """Return whether a passage is about each of the sides, by its title."""
    return all(side.sentences and side.titled for side in sides)


def _about(name: str, wanted: frozenset[str], passages: Sequence[ReadPassage]) -> ReadPassage | None:
    """Return the passage whose title names it, else whose first words do; of namesakes the closest to the question."""

    def score(passage: ReadPassage) -> tuple[float, int]:
        opening = passage.sentences[0].text if passage.sentences else ""
        named = holds(opening[:200], name)
        return _likeness(name, passage) or named * _IN_PASSING, len(wanted & (passage.title_stems | stem_set(opening)))

    best = max(passages, key=score, default=None)
    return best if best and score(best)[0] else None


def _likeness(name: str, passage: ReadPassage) -> float:
    """Return the share of words that a name and a title have in common where one has all of the other's, else 0.

    A title is also meant by its name alone: "Emma" of "Emma (novel)".
    """
    if _is_title(name, passage):
        return 1.0
    words, others = set(canonical_key(name).split()), set(passage.key.split())
    return len(words & others) / len(words | others) if words & others in (words, others) else 0.0


def _is_title(name: str, passage: ReadPassage) -> bool:
    return canonical_key(name) == canonical_key(passage.title)
