"""Answers a question over several texts from the inside out: a described thing is found first and named instead.

    Which river flows through the city where the inventor of the telephone was born?
    -> Who is the inventor of the telephone?   Alexander Graham Bell
    -> What is the city where Alexander Graham Bell was born?   Edinburgh
    -> Which river flows through Edinburgh?

The reader marks the part that describes something (as Min et al. 2019, arXiv:1906.02916, mark parts of a question);
each question of the chain is searched for and read separately, and its answer is inserted into the next.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from ras_agent.contracts.records import Span, Step, passages_found
from ras_agent.text.canonical import canonical_key
from ras_agent.text.names import is_name, name_spans
from ras_agent.text.overlap import holds
from ras_agent.text.titles import with_title
from ras_agent.text.words import FUNCTION_WORDS, stems, word_set
from ras_agent.tools.offline.english import PERSONS
from ras_agent.tools.offline.parts import in_its_part
from ras_agent.tools.offline.question import expected_answer, fits, type_of
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.reading import MOST_READ, ReadPassage, Sentence, read
from ras_agent.tools.offline.table_rows import look_up

_AUXILIARIES = word_set("is are was were has had will would can could")
_CLAUSE = 3  # least words after a name that make a clause
_MOST_LINKS = 4
_MOST_LEADS = 2  # sentences
_MOST_INSIDE = 3  # nested descriptions
_READ_BEFORE = 10  # passages that are read for a part before it is searched for
_KNOWN = math.log(0.9)  # worth of an answer above which it need not be searched for
_READ = 5  # passages of a search that are read
_PAIRS = 8  # pairs of passages in which one names the other's subject
_LEAD = 600  # characters read of each passage of a pair
_SOFTNESS = 3.0  # margins are divided by this to become log-odds
# worth of a chain above which its answer is preferred to one for the whole question
_SURE = math.log(0.4)
_LATER = 0.05  # what a rank lower costs in worth


@dataclass(frozen=True, slots=True)
class Found:
    """Holds an answer that a text gives to a question."""

    text: str
    worth: float
    """The log of the probability that it is right, at most 0."""
    sentence: Sentence
    rows: tuple[Sentence, ...] = ()
    """The rows of a table that give the answer; () if it was read out of a text."""


@dataclass(frozen=True, slots=True)
class Link:
    """Holds a part of a question that describes something, and the answer found for it."""

    description: str
    found: Found


@dataclass(frozen=True, slots=True)
class Chain:
    """Holds the answers found so far for a question of several parts."""

    question: str
    """The whole question with the answers in place of its descriptions."""
    links: tuple[Link, ...] = ()
    """The descriptions with their answers."""
    open: str = ""
    """The question that has to be searched for next; "" if there is no such question."""
    end: Found | None = None
    """The answer to `question`, if that was searched for and read; without links only a cell of a table."""

    @property
    def worth(self) -> float:
        """Return the log of the probability that all links and the end are right."""
        worths = [link.found.worth for link in self.links]
        if self.end:
            worths.append(self.end.worth)
        return sum(worths)

    @property
    def answered(self) -> Found | None:
        """Return the end, if the chain is likely enough to be right that nothing else has to be asked; otherwise None."""
        is_sure = self.worth > _SURE
        return self.end if is_sure else None


def follow(
    question: str,
    reader: Reader,
    steps: Sequence[Step],
    passages: Mapping[str, ReadPassage],
) -> Chain:
    """Return the chain of a question as far as the steps have searched for it.

    Passages found earlier are read before a part is searched for, and suffice if their answer is sure.

    Args:
        steps: the searches made so far.
        passages: the passages that may be read, by id.
    """
    searched = {canonical_key(step.subquery): step for step in steps}
    every = list(passages.values())

    def answer_to(asked: str) -> Found | None:
        in_row = _in_row(asked, every)
        if in_row is not None:
            return in_row
        step = searched.get(canonical_key(asked))
        texts = every[:_READ_BEFORE]
        if step is not None:
            found = [passages.get(hit.passage.id) for hit in step.hits]
            hits = [passage for passage in found if passage is not None]
            texts = (hits or every)[:_READ]  # the others if a search found nothing
        texts = [one for one in texts if not one.is_only_table]
        for best in answers(asked, reader, texts):
            return best if step or best.worth > _KNOWN else None
        return None

    whole = _in_row(question, every)
    if whole is not None:
        return Chain(question, end=whole)
    chain = Chain(question)
    for _ in range(_MOST_LINKS):
        description = innermost(chain.question, reader)
        if not description:
            break
        asked = asking_for(description)
        found = answer_to(asked)
        if found is None:
            is_open = canonical_key(asked) not in searched
            return replace(chain, open=asked if is_open else "")
        found = replace(found, text=without_clause(found.text))
        left = chain.question.replace(description, found.text)
        chain = Chain(left, (*chain.links, Link(description, found)))
    if not chain.links:
        return chain
    end = answer_to(chain.question)
    unasked = end is None and canonical_key(chain.question) not in searched
    return replace(chain, end=end, open=chain.question if unasked else "")


def without_clause(text: str) -> str:
    """Return only the name with which a text begins, if a clause follows it; other texts are returned unchanged.

    >>> without_clause("Tarn Observatory lost the shutter of its dome"), without_clause("Water of Leith")
    ('Tarn Observatory', 'Water of Leith')
    >>> without_clause("Ernst Chain was a biochemist who was born in Berlin")
    'Ernst Chain'
    """
    names = name_spans(text)
    if not names or names[0][0] > 0:
        return text
    end = names[0][1]
    rest = text[end:].split()
    if len(rest) < _CLAUSE:
        return text
    word = rest[0]
    is_of_name = word in FUNCTION_WORDS and word not in _AUXILIARIES
    if is_of_name or not word.islower():
        return text
    return text[:end]


def _in_row(question: str, passages: Sequence[ReadPassage]) -> Found | None:
    """Return the answer that a table row gives; None if there is none."""
    said = look_up(question, passages)
    if said is None:
        return None
    return Found(said.text, 0.0, said.sentences[0], said.sentences)


_RELATIVE = re.compile(r"\b(?:who|whom|whose|which|that|where|when)\b", re.IGNORECASE)
_PREDICATE = re.compile(r" (?:is|was|are|were)(?: \w+)?$")


def innermost(question: str, reader: Reader) -> str:
    """Return the part of a question that describes something and contains no such part itself; "" if there is no such
    part.
    """
    inner = ""
    outer = question
    for _ in range(_MOST_INSIDE):
        span = reader.described(outer)
        part = outer[span.start : span.end] if span else ""
        # "the inventor of dynamite was born": the predicate belongs to the outer description
        if not _RELATIVE.search(part):
            part = _PREDICATE.sub("", part)
        if (
            len(part.split()) < 2
            or is_name(part)
            or part not in question
            or len(part) >= len(inner or question) - 3
        ):
            break
        inner = part
        outer = asking_for(part)
    return inner


def asking_for(description: str) -> str:
    """Return the question that asks for a described thing.

    >>> asking_for("the river near Ulm"), asking_for("the inventor of the telephone")
    ('What is the river near Ulm?', 'Who is the inventor of the telephone?')
    """
    word, _, others = description.partition(" ")
    if word.lower() in {"who", "what", "which", "where"}:
        return f"{word.capitalize()} {others}?"
    head, *rest = _HEAD_ENDS.split(description, maxsplit=1)
    *_, noun = head.lower().split() or [word.lower()]
    is_of = noun.endswith("er") and rest != [] and rest[0].startswith("of ")
    kind = type_of((noun,))
    is_agent = kind == "thing" and (is_of or _AGENT.search(noun))
    asks = "Who" if kind == "person" or is_agent else "What"
    return f"{asks} is {description}?"


# the end of the noun phrase with which a description begins
_HEAD_ENDS = re.compile(
    r" (?=(?:of|that|who|whom|which|where|whose|in|from|at|on|for|by|to|with|near)\b)|,"
)
_AGENT = re.compile(r"(?:or|ist|ian|ess|man|wright)$")


def answers(
    question: str, reader: Reader, passages: Sequence[ReadPassage]
) -> list[Found]:
    """Return the answers that the passages give, the likeliest first, each once."""
    spans = reader.read(question, list(map(_text, passages)))
    found: list[Found] = []
    for rank, passage in enumerate(passages):
        title = _titled(passage)
        found += _in_passage(question, passage, spans[rank], title, rank)
    return _each_once(found)


def answers_in_pairs(
    question: str, reader: Reader, passages: Sequence[ReadPassage]
) -> list[Found]:
    """Return the answers read over pairs of passages, the likeliest first.

    In a pair, the first passage names the subject of the second.
    """
    ranked: list[tuple[int, int, int]] = []
    for rank, one in enumerate(passages):
        for other_rank, other in enumerate(passages):
            if one is not other and one.tells_of(other):
                ranked.append((rank + other_rank, rank, other_rank))
    ranked.sort()
    pairs = [(passages[rank], passages[other]) for _, rank, other in ranked[:_PAIRS]]
    leads = [f"{_text(one)[:_LEAD]} " for one, _ in pairs]
    texts: list[str] = []
    for lead, (_, other) in zip(leads, pairs, strict=True):
        texts.append(lead + _text(other)[:_LEAD])
    found: list[Found] = []
    readings = reader.read(question, texts)
    for (one, other), lead, spans in zip(pairs, leads, readings, strict=True):
        start = len(lead) + _titled(other)
        for span in spans:
            if span.start >= start:
                found += _in_passage(question, other, [span], start, 0)
            else:
                found += _in_passage(question, one, [span], _titled(one), 0)
    return _each_once(found)


def leading_to(
    answer: Found, question: str, passages: Sequence[ReadPassage]
) -> tuple[Sentence, ...]:
    """Return the sentences of other passages through which a question leads to an answer's passage.

    Each names the subject of the next passage, and contains words of the question that the passages after it do
    not. Return () if the question itself names the subject of the answer's passage.
    """
    leads: list[Sentence] = []
    home = answer.sentence.passage
    asked = set(stems(question)) - home.stems
    while len(leads) < _MOST_LEADS and not holds(question, home.subject):
        lead = _naming(home, asked, passages)
        if lead is None:
            break
        leads.insert(0, lead)
        home = lead.passage
        asked -= home.stems
    return tuple(leads)


def _naming(
    home: ReadPassage, asked: Set[str], passages: Sequence[ReadPassage]
) -> Sentence | None:
    """Return a sentence of another passage that names the subject of `home` and has an asked word, or None."""
    for passage in passages:
        if passage is home or not passage.tells_of(home):
            continue
        for sentence in passage.sentences:
            said = asked & (sentence.stems | passage.title_stems)
            if said and holds(sentence.text, home.subject):
                return sentence
    return None


def is_left_out(sentence: Sentence) -> bool:
    """Return whether a sentence, or its end, is beyond the part of a passage that is read in pairs."""
    end = _titled(sentence.passage) + sentence.end
    return end > _LEAD


def _text(passage: ReadPassage) -> str:
    return with_title(passage.heading, passage.text)


def _titled(passage: ReadPassage) -> int:
    """Return how many characters the title takes before a passage's text."""
    whole = _text(passage)
    return len(whole) - len(passage.text)


def _in_passage(
    question: str, passage: ReadPassage, spans: Sequence[Span], offset: int, rank: int
) -> Iterator[Found]:
    """Yield the answers that spans of a passage give, likeliest first; spans in the title are skipped.

    Args:
        offset: where the passage's text begins in the text that was read.
        rank: the passage's rank, which lowers the worth.
    """
    for span in spans:
        start = span.start - offset
        end = min(span.end - offset, len(passage.text))
        if start < 0:
            continue
        ended = _ENDS.search(passage.text, start, end)
        end = ended.start() if ended else end
        end = start + len(_without_loose_end(passage.text[start:end]))
        end = _number_end(question, passage.text, start, end)
        # an answer ends at the end of a sentence; if it ends in a pronoun in the next sentence, that is what was meant
        begun = [one.start for one in passage.sentences if start < one.start < end]
        if begun and passage.text[begun[-1] : end].lower() in PERSONS:
            start = begun[-1]
        elif begun:
            end = start + len(passage.text[start : begun[0]].rstrip(" .\n"))
        text = _named(passage, _name_start(question, passage.text, start, end), end)
        sentences = [one for one in passage.sentences if start < one.end]
        if not sentences:
            continue
        sentence = sentences[0]
        text = in_its_part(question, text, sentence.text)
        is_word = any(map(str.isalnum, text))
        if not is_word or holds(question, text) or not fits(question, text):
            continue
        # log sigmoid of the margin
        worth = -float(np.logaddexp(0, -span.margin / _SOFTNESS)) - _LATER * rank
        yield Found(text, worth, _telling(question, text, sentence))


def _without_loose_end(answer: str) -> str:
    """Return an answer without the function words, marks and years of life at its end.

    >>> _without_loose_end("1940; an"), _without_loose_end("Ilse Marrow, 1931-2011")
    ('1940', 'Ilse Marrow')
    """
    bare = answer.rstrip(" ,;:")
    bare = _LIFE.sub("", bare)
    return _LOOSE_END.sub("", bare)


def _number_end(question: str, text: str, start: int, end: int) -> int:
    """Return where a name with its number ends, as in "Team 12"; `end` if the number counts what follows it."""
    word = text[start:end]
    number = _NUMBER_OF_NAME.match(text, end)
    if number is None or not word.isalpha() or not word.istitle():
        return end
    wanted, _ = expected_answer(question)
    if wanted in ("place", "date", "number"):
        return end
    return number.end()


def _name_start(question: str, text: str, start: int, end: int) -> int:
    """Return where the name begins of which an answer is only the end, as "Leith" is of "Water of Leith".

    This does not apply if a place is asked for, since other things are named after places: who was at the University of
    Ulm was in Ulm.
    """
    wanted, noun = expected_answer(question)
    if wanted == "place" and (not noun or noun[-1] in _PLACES):
        return start
    near = max(0, start - _LONGEST_NAME)
    names = ((near + first, near + last) for first, last in name_spans(text[near:end]))
    return next(
        (
            first
            for first, last in names
            if first < start and last == end and text[:start].endswith(" of ")
        ),
        start,
    )


# "Team 12 met", and not "Ulm 12 boats met", "May 12, 1990" or "Ulm 12 to 30"
_NUMBER_OF_NAME = re.compile(
    r" \d{1,4}\b(?![.,:]\d|, \d| \d| \w+s\b| (?:to|and|or|people|men|women|per|million|billion)\b)"
)
_LONGEST_NAME = 60  # characters of a name before its end
_PLACES = word_set(
    "place location city town village country state county province region district capital area birthplace hometown"
)


def _named(passage: ReadPassage, start: int, end: int) -> str:
    """Return an answer by its name: a pronoun becomes the topic, else the name before it; "" if that is unknown.

    A part of the topic is replaced by the whole topic ("Leith" by "Water of Leith"). An article at the beginning of a
    sentence is not part of a name, unless the title has it.
    """
    text = passage.text[start:end]
    topic = passage.topic
    if text.lower() in PERSONS:
        if topic:
            return topic
        here = [sentence for sentence in passage.sentences if sentence.start <= start]
        return here[-1].naming.first_name if here else ""
    first = (
        passage.text.find(topic, max(0, end - len(topic)), start + len(topic))
        if topic
        else -1
    )
    if first >= 0 and first <= start and end <= first + len(topic):
        return topic
    bare = _ARTICLE.sub("", text)
    begins = any(sentence.start == start for sentence in passage.sentences)
    return (
        bare if begins and bare[:1].isupper() and not topic.startswith(text) else text
    )


# the end of a paragraph or of a table cell, where an answer ends too
_ENDS = re.compile(r"(?<=[^|\s])[ \t]*(?:\n\s*\n|\|)")
_LIFE = re.compile(r"(?<=[a-z]), ?\d{4} ?[–-] ?\d{4}$")
_LOOSE_END = re.compile(r"(?i)(?:[ ,;:]+(?:a|an|the|and|or|of|in|by))+\Z")
_ARTICLE = re.compile(r"^(?:The|A|An) ")


def _telling(question: str, answer: str, sentence: Sentence) -> Sentence:
    """Return the sentence about an answer that has most of the question's words; among equals `sentence`.

    The reader marks a name where a text first mentions it, which need not be where the text answers the question. If
    the answer is the topic of the passage, all its sentences are about it.
    """
    about = canonical_key(answer) in sentence.passage.keys
    asked = set(stems(question)) - set(stems(answer))
    best = sentence
    for one in sentence.passage.sentences:
        if not about and not _names_it(answer, one):
            continue
        if len(asked & one.stems) > len(asked & best.stems):
            best = one
    return best


def _names_it(answer: str, sentence: Sentence) -> bool:
    """Return whether a sentence contains an answer, or begins with a pronoun that refers to it."""
    if holds(sentence.text, answer):
        return True
    meant = canonical_key(sentence.naming.first_name)
    return meant == canonical_key(answer)


def _each_once(found: Sequence[Found]) -> list[Found]:
    best: dict[str, Found] = {}
    ordered = sorted(found, key=lambda one: one.worth, reverse=True)
    for one in ordered:
        key = canonical_key(one.text)
        best.setdefault(key, one)
    return list(best.values())


def passages_of(steps: Sequence[Step]) -> dict[str, ReadPassage]:
    """Return the passages that the steps have found, parsed, by id, in order."""
    found = passages_found(steps)
    passages = read(found[:MOST_READ])
    return {passage.id: passage for passage in passages}
