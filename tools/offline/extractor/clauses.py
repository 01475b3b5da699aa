"""From the chunks of a sentence to its facts: who or what, the words between, and every phrase that could be an answer.

The reader walks along the chunks with a frame in hand: whose clause it is in, with which verb, after which words. Noun
phrases become objects of the frame; relative clauses and appositions of names open a frame of their own, which the
next comma closes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ras_agent.tools.offline.extractor.chunks import Chunk, NounPhrase, VerbGroup
from ras_agent.tools.offline.extractor.subjects import Fact, Subject, facts_about, finite_verbs, head_of, subject_of
from ras_agent.tools.offline.extractor.topics import Topic

_PLACING = frozenset({"in", "at", "of", "from", "near", "to", "into", "outside", "around"})
_REFERRING = frozenset({"he", "she", "it", "they", "him", "her", "them"})
_AND = frozenset({"and", "or", "&"})


def read_clauses(chunks: Sequence[Chunk], topic: Topic) -> Iterator[Fact]:
    """Yield the facts of one sentence. Pronouns, "the film" and short names in subject position stand for the topic."""
    reader = _Reader(list(chunks), topic)
    reader.read()
    yield from dict.fromkeys(reader.facts)


class _Reader:
    def __init__(self, chunks: list[Chunk], topic: Topic) -> None:
        self.chunks = chunks
        self.verbs = finite_verbs(chunks)
        self.topic = topic
        self.facts: list[Fact] = []
        self.home = self.frame = Frame(topic.label)
        self.also: tuple[str, ...] = ()  # further subjects: "A and B"
        self._reset()

    def _reset(self) -> None:
        self.preposition = ""
        self.last: NounPhrase | None = None  # the noun phrase read last in this clause
        self.listed: tuple[str, str] | None = None  # subject and predicate that a list goes on with
        self.outer: tuple[str, str] | None = None  # what `listed` was before an apposition
        self.mark = ""  # "," or "and" since the last phrase

    # -- clauses ------------------------------------------------------------------------------------------------

    def read(self) -> None:
        at = self._begin(0)
        while at < len(self.chunks):
            at = self._step(at)

    def _step(self, at: int, *, clauses: bool = True) -> int:
        """Read the chunk at `at`; `clauses`: it may begin a clause of its own. Returns where to go on."""
        chunk = self.chunks[at]
        if chunk.np is not None:
            if clauses and self.mark and self._starts_clause(at):
                return self._begin(at)
            return self._noun_phrase(at, chunk.np)
        if chunk.vg is not None:
            self._verb(chunk.vg)
        elif chunk.kind == "prep":
            self._preposition(chunk.text)
        elif chunk.kind == "rel":
            return self._relative(at)
        elif chunk.kind == "sub" or chunk.text in (";", ":"):
            if clauses and subject_of(self.chunks, self.verbs, at + 1, self.topic):
                return self._begin(at + 1)
            self.mark = ","
        else:
            self._mark(chunk.text)
        return at + 1

    def _begin(self, start: int) -> int:
        """Find the subject of the clause that begins at `start`, read what is before its verb."""
        subject = subject_of(self.chunks, self.verbs, start, self.topic)
        self._reset()
        if subject is None:
            self.home = self.frame = Frame(self.topic.label)
            return start
        for fact in subject.facts:
            self._add(*fact)
        self._introduction(start, subject)
        self._apposition(subject)
        self.also = subject.also
        self.home = self.frame = Frame(subject.label, list(subject.prefix))
        return subject.verb

    def _introduction(self, start: int, subject: Subject) -> None:
        """Read "In 1999, ...", "Born in Ulm, ...": said of the subject, by its verb where they have none."""
        verb = self.chunks[subject.verb].text
        self.frame = Frame(subject.label, list(subject.prefix), verb)
        at = start
        while at < subject.first:
            chunk = self.chunks[at]
            if chunk.vg is not None:
                self.frame = Frame(subject.label, list(subject.prefix))
            if chunk.text == "," and chunk.kind == "mark":
                self.frame = Frame(subject.label, list(subject.prefix), verb)
                self.mark = ","
                at += 1
            else:
                at = self._step(at, clauses=False)
        self._reset()

    def _apposition(self, subject: Subject) -> None:
        """What is between a subject and its verb: "X, a singer from Y, was"."""
        at = subject.last
        while at < subject.verb:
            if self.chunks[at].text == ",":
                self._reset()
                self.frame = Frame(subject.label, [], "is", copula=True)
                at += 1
            else:
                at = self._step(at, clauses=False)
        self._reset()

    def _starts_clause(self, at: int) -> bool:
        """Return whether a phrase after a comma or "and" is the subject of a verb of its own."""
        for later in range(at + 1, len(self.chunks)):
            chunk = self.chunks[later]
            if chunk.vg is not None:
                return chunk.vg.finite and not (chunk.vg.bare and self._after(later) in ("by", "as", "in", "on", "at"))
            if chunk.kind not in ("np", "prep"):
                return False
        return False

    def _after(self, at: int) -> str:
        return self.chunks[at + 1].text if at + 1 < len(self.chunks) else ""

    # -- chunks -------------------------------------------------------------------------------------------------

    def _noun_phrase(self, at: int, phrase: NounPhrase) -> int:
        """Read a noun phrase as an object of the frame, an item of a list or an apposition."""
        mark, last, self.mark = self.mark, self.last, ""
        if phrase.tag == "pronoun":
            return self._pronoun(at, phrase)
        end, place = self._place(at, phrase)
        subject, predicate = self.frame.subject, self.frame.predicate(self.preposition, near=phrase.tag != "date")
        item = bool(mark) and last is not None and not self.preposition and self.listed is not None
        partitive = phrase.words == 1 and phrase.tag in ("noun", "number") and self._after(at) == "of"
        if item and mark == "," and last and last.name and (self._describes(phrase) or partitive):
            self.frame = Frame(self.topic.resolved(last.name), [], "is", copula=True, until_comma=True)
            self.outer = self.listed
            subject, predicate = self.frame.subject, "is"
        elif item and self.listed and not (mark == "," and phrase.name and last and last.opener and not last.name):
            subject, predicate = self.listed  # else "his wife, Yoko Ono": the noun before leads to the name
        if place:
            self._add(subject, f"{predicate} {phrase.description}".strip(), ", ".join(place))
            for inner, outer in pairwise(place):
                self._add(inner, "is in", outer)
        elif not partitive:  # "part of": these words only lead to the phrase after them
            for fact in facts_about(subject, predicate, phrase, self.topic):
                self._add(*fact)
            if self.also and not self.preposition:
                for other in self.also:
                    self._add(other, predicate, head_of(phrase))
        self.listed = (subject, predicate)
        self._lead(phrase, place)
        self.preposition, self.last = "", phrase
        return end

    def _lead(self, phrase: NounPhrase, place: list[str]) -> None:
        """Let the phrase lead to later objects: by the verb it is the object of, by its own noun."""
        if not self.preposition:
            self.frame.direct, self.frame.near = phrase.text, ""
        elif phrase.tag == "noun" and not place:
            self.frame.near = f"{self.preposition} {phrase.text}"
        elif phrase.tag != "date":
            self.frame.near = ""

    def _describes(self, phrase: NounPhrase) -> bool:
        return not phrase.name and phrase.tag == "noun" and (phrase.opener in ("a", "an", "the") or not phrase.inner)

    def _pronoun(self, at: int, phrase: NounPhrase) -> int:
        if phrase.text.lower() in _REFERRING and self.frame.subject != self.topic.label:
            self._add(self.frame.subject, self.frame.predicate(self.preposition), self.topic.label)
        self.preposition, self.last = "", None
        return at + 1

    def _place(self, at: int, phrase: NounPhrase) -> tuple[int, list[str]]:
        """Return where a chain "York, Pennsylvania, United States" ends, and its parts; no parts if it is none."""
        if not phrase.name or phrase.tag != "name" or self.preposition.split(" ")[-1] not in _PLACING:
            return at + 1, []
        end, parts = at + 1, [phrase.name]
        while end + 1 < len(self.chunks) and self.chunks[end].text == ",":
            following = self.chunks[end + 1].np
            if following is None or following.tag != "name" or following.text != following.name or following.opener:
                break
            parts.append(following.name)
            end += 2
        listed = any(chunk.text in _AND for chunk in self.chunks[end : end + 2])
        return (end, parts) if 1 < len(parts) < 5 and not listed else (at + 1, [])

    def _verb(self, group: VerbGroup) -> None:
        """A verb: of this clause, of the name before it ("X directed by Y"), or of the noun before it."""
        last, mark, frame = self.last, self.mark, self.frame
        if self.preposition or group.text.startswith("to "):  # "for winning", "to win"
            self.frame = Frame(frame.subject, [frame.predicate(self.preposition)], until_comma=frame.until_comma)
        elif last is not None and not mark:
            if last.name and (not group.bare or not frame.copula):
                self.frame = Frame(self.topic.resolved(last.name), until_comma=True)
            elif not frame.copula:
                self.frame = Frame(frame.subject, [frame.predicate("")], until_comma=frame.until_comma)
        elif mark and frame.until_comma:
            self.frame = self.home
        self.frame.verb, self.frame.copula = group.text, group.copula
        self.frame.direct = self.frame.near = ""
        self.preposition, self.mark, self.listed, self.last = "", "", None, None

    def _preposition(self, text: str) -> None:
        if self.mark and self.frame.until_comma:
            self.frame = self.home
        if self.mark:
            self.frame.near = ""
        self.preposition = f"{self.preposition} {text}".strip()
        self.mark = ""

    def _mark(self, text: str) -> None:
        if text == "," or text in _AND or text in ("but", "nor"):
            self.mark = "," if text == "," else "and"
        if text == "," and self.frame.until_comma:
            self.frame = self.home
            if self.outer is not None:
                self.listed, self.outer = self.outer, None

    def _relative(self, at: int) -> int:
        """Open the clause of "who", "which", "whose": of the name before it, or further words about the noun before."""
        last, word = self.last, self.chunks[at].text
        if last is not None and last.name:
            self.frame = Frame(self.topic.resolved(last.name), until_comma=True)
        elif self.frame.copula:
            self.frame = Frame(self.frame.subject, until_comma=True)
        else:
            self.frame = Frame(self.frame.subject, [self.frame.predicate(""), word], until_comma=True)
        self.preposition, self.mark, self.last = "", "", None
        inner = self.chunks[at + 1].np if at + 1 < len(self.chunks) else None
        if inner is None:
            return at + 1
        if word == "whose":
            if inner.name:
                self._add(self.frame.subject, inner.description or "has", inner.name)
                self.frame = Frame(inner.name, until_comma=True)
            else:
                self.frame.prefix.append(inner.text)
            return at + 2
        group = self.chunks[at + 2].vg if at + 2 < len(self.chunks) else None
        if group is None or inner.tag == "date":
            return at + 1
        antecedent = self.frame.subject
        subject = self.topic.label if inner.tag == "pronoun" else self.topic.resolved(inner.name or inner.text)
        if word != "where" and last is not None and last.name:
            self._add(subject, group.text, antecedent)
        self.frame = Frame(subject, until_comma=True)
        return at + 2

    # -- facts --------------------------------------------------------------------------------------------------

    def _add(self, subject: str, predicate: str, object_: str) -> None:
        subject, object_ = subject.strip(" ,;:-'"), self.topic.resolved(object_.strip(" ,;:-"))
        if subject and any(map(str.isalnum, object_)) and subject.casefold() != object_.casefold():
            self.facts.append((subject, " ".join(predicate.split()) or "is linked to", object_))


_LONGEST_PREDICATE = 10


@dataclass(slots=True)
class Frame:
    """Whose clause it is, and what its predicates are made of.

    prefix: words between the subject and its verb ("population"). direct: the verb's object. near: the last phrase
    after a preposition, with it, where that is a common noun. until_comma: the clause ends at the next comma.
    """

    subject: str
    prefix: list[str] = field(default_factory=list)
    verb: str = ""
    direct: str = ""
    near: str = ""
    copula: bool = False
    until_comma: bool = False

    def predicate(self, preposition: str, *, near: bool = True) -> str:
        """Return the words that lead to an object; the longest lose words in the middle, where they say least."""
        parts = [*self.prefix, self.verb, self.direct, self.near if near else "", preposition]
        words = " ".join(parts).split()
        if len(words) > _LONGEST_PREDICATE:
            head = " ".join([*self.prefix[-1:], self.verb]).split()[:4]
            words = head + words[len(head) - _LONGEST_PREDICATE :]
        return " ".join(words)
