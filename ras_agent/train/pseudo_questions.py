"""Makes pseudo questions from plain passages, to train on if there are few labelled questions.

This is cloze translation (Lewis et al. 2019, arXiv:1906.04980; Fabbri et al. 2020, arXiv:2004.11892): a question phrase
replaces an answer-like span of a sentence, and the rest of the sentence is reordered, shortened, and loses some words.
Two-hop questions describe the passage's subject by another passage's statement about it. The question phrase depends on
the span's shape and on its description in its own passage; no relation, name or question is written in this file.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ras_agent.contracts.records import Passage
from ras_agent.text.names import name_spans
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.words import word_set

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(
    rf"\b(?:\d{{1,2}} {_MONTH},? \d{{4}}|{_MONTH} \d{{1,2}},? \d{{4}}|{_MONTH} \d{{4}})\b"
)
_YEAR = re.compile(r"\b1\d\d\d\b|\b20[0-3]\d\b")
_FIGURE = (
    r"(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?|two|three|four|five|six|seven|eight|nine|ten)"
)
_COUNT = re.compile(rf"(?<![\w.,-]){_FIGURE}(?= [a-z])")
_KIND = re.compile(
    r"\b(?:is|was|are|were)\s+(?:a|an|the|one of the)\s+((?:[\w’'/&-]+ ?){1,7})"
)
_KIND_ENDS = re.compile(
    r"\s(?:who|that|which|of|in|by|for|with|from|at|on|to|and|based|directed|starring|written|produced|born|best|known"
    r"|located|released|about|set|as|published|founded|created|recorded|played|or|where|when|near|between)\b.*"
)
_PARENTHESIS = re.compile(r"\s*\([^()]*\)")
_COMMA = re.compile(r"[,;] ")
_PLACE_WORD = re.compile(r"\b(?:in|at|from|near|to)$", re.IGNORECASE)
_TIME_WORD = re.compile(r"\s?\b(?:in|on|since|until|of)$", re.IGNORECASE)
_ARTICLE = re.compile(r"\s?\b(?:a|an|the)$", re.IGNORECASE)
_COPULA = re.compile(r"\s(is|was|are|were|had|has)\s")
_LIFE_DATES = re.compile(r"\((?:[^()]*\bborn\b|[^()]*\d{4}\s*[–-]\s*[^()]*\d{4})")
_SUBJECT = re.compile(
    r"^(?:He|She|It|They|His|Her|Its|Their"
    r"|The (?:film|album|song|band|book|company|city|town|series|show|game|team))\b"
)
_POSSESSIVES = word_set("His Her Its Their")
_LONGEST_ANSWER = 8  # words
_LONGEST_QUESTION = 40

_THINNED = 0.5  # share of questions that lose each word with probability _LOST
_LOST = 0.15


@dataclass(frozen=True, slots=True)
class _TitleKind:
    """The kind of thing that a title names, in the words of its passage."""

    words: tuple[str, ...]
    person: bool


@dataclass(frozen=True, slots=True)
class _Mention:
    """A sentence that names the title of another passage."""

    passage: Passage
    sentence: str


@dataclass(frozen=True, slots=True)
class Cloze:
    """Holds a question that was made from a sentence of `passage`."""

    question: str
    answer: str
    sentence: str
    passage: Passage
    other: _Mention | None
    """The sentence of another passage that describes its subject; None for a one-hop question."""


def clozes(
    passages: Sequence[Passage], per_passage: int, two_hop: float, rng: random.Random
) -> Iterator[Cloze]:
    """Yield at most `per_passage` questions for each passage; a share `two_hop` of them needs two passages."""
    kinds = {
        passage.title: kind
        for passage in passages
        if (kind := _kind(passage)) is not None
    }
    mentions = _mentions(passages)
    for passage in passages:
        sentences = [
            passage.text[start:end] for start, end in sentence_spans(passage.text)
        ]
        clozes = [
            (sentence, span)
            for sentence in sentences
            for span in answer_spans(sentence)
        ]
        rng.shuffle(clozes)
        answers = set[str]()
        for sentence, (start, end) in clozes:
            if len(answers) == per_passage:
                break
            others = mentions.get(passage.title)
            other = None
            subject = plain(passage.title)
            if others and rng.random() < two_hop:
                other = rng.choice(others)
                subject = _description(passage.title, other.sentence, kinds)
            question = _question(
                sentence, start, end, plain(passage.title), subject, kinds, rng
            )
            if sentence[start:end] not in answers and len(question.split()) >= 4:
                answers.add(sentence[start:end])
                yield Cloze(question, sentence[start:end], sentence, passage, other)


def answer_spans(sentence: str) -> list[tuple[int, int]]:
    """Return the character spans of a sentence that can be asked for: dates, names, years, counts and words after "is
    a".

    They do not overlap.
    """
    candidates = [match.span() for match in _DATE.finditer(sentence)]
    candidates += name_spans(sentence)
    candidates += [
        match.span()
        for pattern in (_YEAR, _COUNT)
        for match in pattern.finditer(sentence)
    ]
    if match := _KIND.search(sentence):
        candidates.append(
            (match.start(1), match.start(1) + len(_KIND_ENDS.sub("", match[1]).strip()))
        )
    spans: list[tuple[int, int]] = []
    for start, end in candidates:
        apart = all(end <= before or after <= start for before, after in spans)
        if (
            apart
            and end - start > 1
            and len(sentence[start:end].split()) <= _LONGEST_ANSWER
        ):
            spans.append((start, end))
    return sorted(spans)


def plain(title: str) -> str:
    """Return a title without a parenthesis at its end."""
    return title.split(" (")[0]


def _kind(passage: Passage) -> _TitleKind | None:
    head = passage.text[:300]
    match = _KIND.search(_PARENTHESIS.sub("", head))
    if match is None:
        return None
    words = _KIND_ENDS.sub("", match[1]).split()
    if not words:
        return None
    return _TitleKind(tuple(words), _LIFE_DATES.search(head) is not None)


def _mentions(passages: Sequence[Passage]) -> Mapping[str, list[_Mention]]:
    """Return the mentions of each title. Titles of one word are left out, since they name too many things."""
    titles = {
        plain(passage.title): passage.title
        for passage in passages
        if " " in passage.title
    }
    mentions: dict[str, list[_Mention]] = {}
    for passage in passages:
        for start, end in sentence_spans(passage.text):
            sentence = passage.text[start:end]
            for first, last in name_spans(sentence):
                title = titles.get(sentence[first:last])
                if title is not None and title != passage.title:
                    mentions.setdefault(title, []).append(_Mention(passage, sentence))
    return mentions


def _description(title: str, sentence: str, kinds: Mapping[str, _TitleKind]) -> str:
    """Return a description of a subject by the words around its name in another passage."""
    words = (
        _PARENTHESIS.sub("", sentence).replace(plain(title), " ").rstrip(".").split()
    )
    kind = kinds.get(title)
    return f"the {kind.words[-1] if kind else 'one'} of {' '.join(words[:14])}"


def _question(
    sentence: str,
    start: int,
    end: int,
    name: str,
    subject: str,
    kinds: Mapping[str, _TitleKind],
    rng: random.Random,
) -> str:
    answer = sentence[start:end]
    before = _PARENTHESIS.sub("", sentence[:start]).strip(' ,;:("“')
    after = _PARENTHESIS.sub("", sentence[end:]).strip(' ,;:.)"”')
    if rng.random() < 0.6:
        before, after = _nearest_clause(before, after)
    before = _SUBJECT.sub(
        lambda match: f"{subject}'s" if match[0] in _POSSESSIVES else subject, before
    )
    before = before.replace(name, subject)
    after = after.replace(name, subject)
    if subject not in before + after and name not in answer and rng.random() < 0.7:
        after = f"{after} {subject}"
    phrase, before = _question_phrase(answer, before, kinds.get(answer), rng)
    words = _order_words(phrase, before, after, rng).split()
    if rng.random() < _THINNED:
        words = [
            word for word in words if word in phrase.split() or rng.random() > _LOST
        ]
    return " ".join(words[:_LONGEST_QUESTION]) + ("?" if rng.random() < 0.8 else "")


def _nearest_clause(before: str, after: str) -> tuple[str, str]:
    """Return the words between the commas around the answer, or more of the sentence if these are too few for a
    question."""
    clause_before = _COMMA.split(before)[-1]
    clause_after = _COMMA.split(after)[0]
    if len(clause_before.split()) <= 2:
        clause_before = before
    if len(f"{clause_before} {clause_after}".split()) >= 4:
        return (clause_before, clause_after)
    return (before, after)


def _question_phrase(
    answer: str, before: str, kind: _TitleKind | None, rng: random.Random
) -> tuple[str, str]:
    """Return a question phrase for an answer of this shape, and `before` without the words that it includes."""
    if _YEAR.fullmatch(answer):
        return rng.choice(("when", "what year", "in what year")), _TIME_WORD.sub(
            "", before
        )
    if _DATE.fullmatch(answer):
        return rng.choice(("when", "what date", "on what date")), _TIME_WORD.sub(
            "", before
        )
    if re.fullmatch(_FIGURE, answer):
        return "how many", before
    if kind is not None:
        noun = " ".join(kind.words[-rng.randint(1, 3) :])
        return rng.choice(
            ("who" if kind.person else "what", f"which {noun}", f"what {noun}")
        ), before
    if answer[0].islower():
        return rng.choice(("what", "what kind of", "what type of")), _ARTICLE.sub(
            "", before
        )
    if _PLACE_WORD.search(before):
        if rng.random() < 0.4:
            return "where", _PLACE_WORD.sub("", before).strip()
        return rng.choice(
            ("what", "which", "what city", "what country", "which place")
        ), before
    if before.endswith(" by") or rng.random() < 0.5:
        return rng.choice(("who", "who", "whom")), before
    return rng.choice(("what", "which", "what is the name of")), before


def _order_words(phrase: str, before: str, after: str, rng: random.Random) -> str:
    """Return the words of a question, with the phrase in the answer's place, in front (also inverted), or between
    halves."""
    way = rng.random()
    if not before:
        return f"{phrase} {after}"
    if way < 0.35:
        return f"{before} {phrase} {after}"
    if way < 0.75:
        parts = _COPULA.split(f" {before} ", maxsplit=1)
        if len(parts) == 3:
            return f"{phrase} {parts[1]} {parts[0]} {parts[2]} {after}"
        return f"{phrase} did {before} {after}"
    return f"{phrase} {after} {before}"
