"""Parses the retrieved passages, each once for every role and step: its words, its sentences, their names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ras_agent.contracts.records import Passage, Triple
from ras_agent.running.recent import RecentResults
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import name_spans
from ras_agent.text.sentences import sentence_spans
from ras_agent.text.titles import bare_title, unescaped, with_title
from ras_agent.text.values import Figure, figures_in
from ras_agent.text.words import FUNCTION_WORDS, fold, stem, stems
from ras_agent.tools.index.stated_facts import STATED, stated_facts
from ras_agent.tools.index.text_tables import TABLE
from ras_agent.tools.offline.english import SUBJECTS
from ras_agent.tools.offline.forms import Record, records_of

_WORD = re.compile(r"\w+(?:[.,]\d+)*(?:['’]\w+)*")
_LONGEST_NAME = 12
"""The maximum number of words of a table cell that counts as a name or a figure."""
_POSSESSIVE = re.compile(r"['’]s?$")


@dataclass(frozen=True, slots=True)
class Token:
    """Holds a word at characters `start` to `end`."""

    start: int
    end: int
    word: str
    stem: str
    """The stem of a content word; "" for a function word."""


def tokens_of(text: str) -> tuple[Token, ...]:
    """Return the words of `text`, case-folded, in order."""
    found = []
    for match in _WORD.finditer(text):
        word = _POSSESSIVE.sub("", fold(match.group()))
        found.append(
            Token(
                match.start(),
                match.end(),
                word,
                "" if word in FUNCTION_WORDS else stem(word),
            )
        )
    return tuple(found)


def nearness(
    words: Sequence[str], wanted: Set[str], places: Sequence[tuple[int, int]]
) -> float:
    """Return how near wanted words are to some places: the sum of 1 / (1 + distance in words) over the wanted words.

    Args:
        places: the indices of the first and last word of each place.
    """
    nearest: dict[str, float] = {}
    for at, word in enumerate(words):
        if word not in wanted:
            continue
        for first, last in places:
            gap = max(first - at, at - last, 0)
            near = 1 / (1 + gap)
            nearest[word] = max(near, nearest.get(word, 0.0))
    return sum(nearest.values())


def blanked(text: str, start: int, end: int) -> str:
    """Return a text with blanks from `start` to `end`, so that all other offsets stay valid."""
    blank = " " * (end - start)
    return text[:start] + blank + text[end:]


@dataclass(frozen=True, eq=False)
class Sentence:
    """Holds a sentence of a passage: its index there, from 0, the offset of its first character, and its text.

    Its words, names and figures are computed when they are first needed.
    """

    passage: ReadPassage
    number: int
    start: int
    text: str

    @property
    def end(self) -> int:
        """Return the offset after its last character."""
        return self.start + len(self.text)

    @property
    def titled(self) -> str:
        """Return the sentence after the title and the headings of its passage."""
        return with_title(self.passage.heading, self.text)

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """Return the words."""
        return tokens_of(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of the content words."""
        roots = {token.stem for token in self.tokens}
        return frozenset(roots - {""})

    @cached_property
    def names(self) -> tuple[tuple[int, int], ...]:
        """Return the spans (start, end) of names."""
        return tuple(name_spans(self.text))

    @property
    def before(self) -> Sentence | None:
        """Return the sentence before this one in its passage; None for the first."""
        if self.number == 0:
            return None
        return self.passage.sentences[self.number - 1]

    @property
    def following(self) -> Sentence | None:
        """Return the sentence after this one in its passage; None for the last."""
        sentences = self.passage.sentences
        if self.number + 1 == len(sentences):
            return None
        return sentences[self.number + 1]

    @property
    def first_name(self) -> str:
        """Return the first name in the sentence, to which a pronoun in the next one refers; "" if it has no name."""
        if not self.names:
            return ""
        start, end = self.names[0]
        return self.text[start:end]

    def begins_with(self, words: Set[str]) -> bool:
        """Return whether the first word is one of these."""
        if not self.tokens:
            return False
        return self.tokens[0].word in words

    @property
    def naming(self) -> Sentence:
        """Return the nearest sentence, this or an earlier one, that begins with no pronoun and so names the subject."""
        sentence = self
        while sentence.begins_with(SUBJECTS) and sentence.before is not None:
            sentence = sentence.before
        return sentence

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Return the figures: numbers and dates."""
        return tuple(figures_in(self.text))


class ReadPassage:
    """Holds a passage and the parts parsed from it, each when it is first needed. It is never changed."""

    def __init__(self, passage: Passage) -> None:
        """Take a passage."""
        self._passage = passage
        self.id = passage.id
        self.title = passage.title
        self.text = passage.text
        self._own_title = passage.own_title
        self.heading = passage.heading
        self.table = ""
        """The table that the passage belongs to; "" for none."""
        self.key_column = ""
        self.rows_of_table = 0
        self.records: dict[str, dict[str, str]] = {}
        """The rows of its table: name of the row -> column -> cell."""
        about = passage.metadata.get(TABLE)
        if isinstance(about, Mapping):
            self._read_rows(about, stated_facts(passage) or ())
        spans = enumerate(sentence_spans(passage.text))
        self.sentences = tuple(
            Sentence(self, number, start, self.text[start:end])
            for number, (start, end) in spans
        )

    def without(self, numbers: Set[int]) -> ReadPassage:
        """Return the passage with some of its sentences replaced by blanks, so that all other offsets stay valid."""
        text = self.text
        for number in numbers:
            one = self.sentences[number]
            text = blanked(text, one.start, one.end)
        return ReadPassage(replace(self._passage, text=text))

    @property
    def is_only_table(self) -> bool:
        """Return whether the passage is part of a table of only names and figures, which is not read as prose."""
        for cells in self.records.values():
            longest = max(cells.values(), key=len)
            if len(longest.split()) > _LONGEST_NAME:
                return False
        return self.records != {}

    def _read_rows(self, about: Mapping[str, Any], facts: Iterable[Triple]) -> None:
        self.table = str(about.get("place", ""))
        self.key_column = str(about.get("key", ""))
        count = about.get("rows")
        if isinstance(count, int):
            self.rows_of_table = count
        for fact in facts:
            cells = self.records.setdefault(self._key_of(fact.subject), {})
            cells[fact.predicate] = fact.object

    def _key_of(self, subject: str) -> str:
        """Return the cell that names a row: "104" of "Room 104", if the column Room has only the number."""
        number = subject.removeprefix(f"{self.key_column} ")
        has_letters = any(map(str.isalpha, number))
        is_cell = (
            f"{self.key_column} {subject}" in self.text or f"| {subject} |" in self.text
        )
        return subject if has_letters or is_cell else number

    @cached_property
    def forms(self) -> tuple[Record, ...]:
        """Return the records of the forms in the passage; () for a part of a table."""
        if self.records:
            return ()
        return tuple(records_of(self.text))

    @cached_property
    def topic(self) -> str:
        """Return the title without a final note in brackets ("Alien (film)" gives "Alien"); "" for a file's name."""
        return bare_title(self._own_title)

    @cached_property
    def key(self) -> str:
        """Return the canonical key of the topic."""
        return canonical_key(self.topic)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Return the canonical keys of the title's forms."""
        first, _, _ = self.topic.partition(", ")
        forms = (self.topic, first, unescaped(self._own_title))
        return frozenset(map(canonical_key, filter(None, forms)))

    @cached_property
    def title_stems(self) -> frozenset[str]:
        """Return the stems of the title and headings."""
        return frozenset(stems(self.heading))

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of the title, the headings and the text."""
        whole = f"{self.heading} {self.text}"
        return frozenset(stems(whole))

    @cached_property
    def _spaced(self) -> str:
        return f" {canonical_key(self.text)} "

    @cached_property
    def subject(self) -> str:
        """Return the passage's subject: the topic, or without a title the first name in the text."""
        if self.topic or not self.sentences:
            return self.topic
        return self.sentences[0].first_name

    def tells_of(self, other: ReadPassage) -> bool:
        """Return whether the text contains the subject of another passage, whatever its spelling."""
        key = canonical_key(other.subject)
        return bool(key) and f" {key} " in self._spaced


def _content_of(passage: Passage) -> tuple[str, ...]:
    """Return everything that is read from a passage, as its key in the cache."""
    rows = ""
    if TABLE in passage.metadata:
        stated = passage.metadata.get(STATED)
        rows = json.dumps([passage.metadata[TABLE], stated], default=str)
    return (
        passage.id,
        passage.title,
        passage.text,
        passage.own_title,
        rows,
        *passage.headings,
    )


def rarity(words: Iterable[str], passages: Sequence[ReadPassage]) -> dict[str, float]:
    """Return the weight of each stem among the passages: the greater, the fewer passages contain it."""
    weights: dict[str, float] = {}
    for word in words:
        holding = sum(word in passage.stems for passage in passages)
        weights[word] = math.log(1 + len(passages) / (0.5 + holding))
    return weights


MOST_READ = 500
"""The maximum number of passages that an offline role compares with each other; of more it reads the first ones."""
# bounded by characters; a million take about 40 MB once every part has been computed
_READ: RecentResults[tuple[str, ...], ReadPassage] = RecentResults(
    1_000_000, lambda one: len(one.text)
)


def read(passages: Iterable[Passage]) -> tuple[ReadPassage, ...]:
    """Return the parsed passages, each once, in order; passages that were parsed before are taken from a cache."""
    contents = {_content_of(one): one for one in passages}

    def parsed(new: list[tuple[str, ...]]) -> list[ReadPassage]:
        return [ReadPassage(contents[content]) for content in new]

    return tuple(_READ.of(list(contents), parsed))
