"""Finds the facts in the chunks of a sentence: the subject, the words between, and every phrase that could be an
answer.

The reader goes through the chunks with a current frame: the clause's subject, its verb, and the words so far. Noun
phrases become objects of the frame. Relative clauses and appositions of names open a separate frame, which the next
comma closes. In "In 1999, his wife Ann, a nurse from Leeds, moved", the clause's subject is between an introduction
and an apposition, and is found by the verb after it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ras_agent.text.names import DEMONYM
from ras_agent.text.words import MONTHS
from ras_agent.tools.offline.english import PERSONS
from ras_agent.tools.offline.extractor.things import BY_ITSELF
from ras_agent.tools.offline.extractor.topics import HONORIFICS, LINKED, ROLES, Topic
from ras_agent.tools.offline.extractor.words import Chunk, NounPhrase

Fact = tuple[str, str, str]

_PLACING = frozenset(
    {"in", "at", "of", "from", "near", "to", "into", "outside", "around"}
)
_GENERIC = frozenset({"the", "this", "that", "these"})
_TOPICAL = frozenset({"his", "her", "its", "their"})
_SPEAKERS = frozenset({"i", "we", "you"})
_DENYING = frozenset({"no", "neither"})
_COPULAS = frozenset({"is", "are", "was", "were"})
_YEAR = re.compile(r"(?P<year>(?:1\d|20)\d{2})\s+(?P<rest>.+)")
# "English club", not "north-western"
_NOUN = re.compile(
    r"(?:^| )(?![\w]*(?:al|ive|ous|ic|ful|less|able|ible|ish|ary|ern|ed|ing|est)$)[^\W\d_]{4,}$"
)
_CLASS = re.compile(r"(?:s|or|er|ist|ian|man)$")  # "author", "boats"
_LONGEST_PREFIX = 6
_LONGEST_PREDICATE = 10


def read_clauses(chunks: Sequence[Chunk], topic: Topic) -> Iterator[Fact]:
    """Yield the facts of one sentence. Pronouns, "the film" and short names in subject position refer to the topic."""
    reader = _Reader(chunks, topic)
    at = reader.begin(0)
    while at < len(chunks):
        at = reader.step(at)
    yield from dict.fromkeys(reader.facts)


@dataclass(slots=True)
class _Frame:
    """Holds the subject of a clause, and the parts of its predicates."""

    subject: str
    prefix: str = ""
    """Words between the subject and its verb ("population")."""
    verb: str = ""
    """The verb with its auxiliaries."""
    direct: str = ""
    """The verb's object."""
    near: str = ""
    """The last preposition with its phrase, if that is a common noun."""
    copula: bool = False
    """Whether the verb is only a form of "be"."""
    until_comma: bool = False
    """Whether the clause ends at the next comma."""

    def predicate(self, preposition: str, *, near: bool = True) -> str:
        """Return the words that lead to an object; a predicate that is too long loses words in the middle, where they
        matter least."""
        words = f"{self.prefix} {self.verb} {self.direct} {self.near if near else ''} {preposition}".split()
        if len(words) > _LONGEST_PREDICATE:
            head = f"{self.prefix} {self.verb}".split()[:4]
            words = head + words[len(head) - _LONGEST_PREDICATE :]
        return " ".join(words)


class _Reader:
    def __init__(self, chunks: Sequence[Chunk], topic: Topic) -> None:
        self.chunks = chunks
        self.verbs = finite_verbs(chunks)
        self.topic = topic
        self.facts: list[Fact] = []
        self.home = self.frame = _Frame(topic.label)
        self.also: tuple[str, ...] = ()  # further subjects: "A and B"
        # where an introduction ends: the subject after it does not belong to it
        self.until = len(chunks)
        self._reset()

    def _reset(self) -> None:
        self.preposition = ""
        self.last: NounPhrase | None = None  # the noun phrase read last in this clause
        # subject and predicate for further items of a list
        self.listed: tuple[str, str] | None = None
        # the value of `listed` before an apposition
        self.outer: tuple[str, str] | None = None
        self.mark = ""  # "," or "and" since the last phrase

    def step(self, at: int, *, clauses: bool = True) -> int:
        """Read the chunk at `at`, and return the number of the chunk to continue with.

        Args:
            clauses: whether a clause may begin here.
        """
        chunk = self.chunks[at]
        if chunk.np is not None:
            if clauses and self.mark and self._starts_clause(at):
                return self.begin(at)
            return self._noun_phrase(at, chunk.np)
        if chunk.kind == "vg":
            self._verb(chunk)
        elif chunk.kind == "p":
            self._preposition(chunk.text)
        elif chunk.kind == "r":
            return self._relative(at)
        elif chunk.kind == "s" or chunk.text in (";", ":"):
            if clauses and subject_of(self.chunks, self.verbs, at + 1, self.topic):
                return self.begin(at + 1)
            self.mark = ","
        elif chunk.kind == "c" or chunk.text == ",":
            self._mark(chunk.text)
        return at + 1

    def begin(self, start: int) -> int:
        """Find the subject of the clause that begins at `start`, and read the words before its verb.

        Returns the number of the chunk to continue with: the verb's, or `start` if there is no subject.
        """
        subject = subject_of(self.chunks, self.verbs, start, self.topic)
        self._reset()
        if subject is None:
            self.home = self.frame = _Frame(self.topic.label)
            return start
        self.facts += subject.facts
        # "In 1999, ...", "Born in Ulm, ..." are about the subject; without a verb, they get the clause's verb
        self.frame = _Frame(
            subject.label, subject.prefix, self.chunks[subject.verb].text
        )
        at = subject.first if subject.kin else start
        self.until = subject.first
        while at < subject.first:
            if self.chunks[at].kind == "vg":
                self.frame = _Frame(subject.label, subject.prefix)
            at = self.step(at, clauses=False)
        self.until = len(self.chunks)
        self._reset()
        at = subject.last
        while at < subject.verb:  # an apposition: "X, a singer from Y, was"
            if self.chunks[at].text == ",":
                self._reset()
                self.frame = _Frame(subject.label, verb="is", copula=True)
                at += 1
            else:
                at = self.step(at, clauses=False)
        self._reset()
        self.also = subject.also
        self.home = self.frame = _Frame(subject.label, subject.prefix)
        return subject.verb

    def _starts_clause(self, at: int) -> bool:
        """Return whether a phrase after a comma or "and" is the subject of another verb."""
        for later in range(at + 1, len(self.chunks)):
            chunk = self.chunks[later]
            if chunk.kind == "vg":
                return chunk.finite and not (
                    chunk.bare and self._after(later) in ("by", "as", "in", "on", "at")
                )
            if chunk.kind not in ("np", "p"):
                return False
        return False

    def _after(self, at: int) -> str:
        following = at + 1
        if following == len(self.chunks):
            return ""
        return self.chunks[following].text

    def _noun_phrase(self, at: int, phrase: NounPhrase) -> int:
        """Read a noun phrase as an object of the frame, as an item of a list, or as an apposition."""
        mark = self.mark
        last = self.last
        self.mark = ""
        if phrase.tag == "o":
            if (
                phrase.text.lower() in PERSONS
                and self.frame.subject != self.topic.label
            ):
                self._add(
                    self.frame.subject,
                    self.frame.predicate(self.preposition),
                    self.topic.label,
                )
            self.preposition = ""
            self.last = None
            return at + 1
        if phrase.opener in _DENYING:
            self._deny(phrase.opener)
        end, place = self._place(at, phrase)
        subject = self.frame.subject
        predicate = self.frame.predicate(self.preposition, near=phrase.tag != "D")
        partitive = (
            phrase.words == 1 and phrase.tag in "NJF" and self._after(at) == "of"
        )
        describes = partitive or (
            not phrase.name
            and phrase.tag in "NJ"
            and (phrase.opener != "" or not phrase.inner)
        )
        if mark and last and not self.preposition and self.listed:
            if mark == "," and last.name and describes:
                self.frame = _Frame(
                    self.topic.resolved(last.name),
                    verb="is",
                    copula=True,
                    until_comma=True,
                )
                self.outer = self.listed
                subject = self.frame.subject
                predicate = "is"
            elif not (mark == "," and phrase.name and last.opener and not last.name):
                # except "his wife, Yoko Ono", where the noun before leads to the name
                subject, predicate = self.listed
        if place:
            self._add(
                subject, f"{predicate} {phrase.description}".strip(), ", ".join(place)
            )
            for inner, outer in pairwise(place):
                self._add(inner, "is in", outer)
        elif not partitive:  # "part of": these words only lead to the phrase after them
            for fact in facts_about(subject, predicate, phrase, self.topic):
                self._add(*fact)
            for other in self.also if not self.preposition else ():
                self._add(other, predicate, phrase.text)
        self.listed = (subject, predicate)
        if not self.preposition:
            self.frame.direct, self.frame.near = phrase.text, ""
        elif phrase.tag in "NJ" and not place:
            self.frame.near = f"{self.preposition} {phrase.text}"
        elif phrase.tag != "D":
            self.frame.near = ""
        self.preposition = ""
        self.last = phrase
        return end

    def _deny(self, word: str) -> None:
        """Keep the "no" of an object in its predicate: "had no | office"."""
        if self.preposition:
            self.preposition = f"{self.preposition} {word}"
        else:
            self.frame.verb = f"{self.frame.verb} {word}".strip()

    def _place(self, at: int, phrase: NounPhrase) -> tuple[int, list[str]]:
        """Return where a chain such as "York, Pennsylvania, United States" ends, and its parts, or [] for any other
        phrase."""
        alone = at + 1, list[str]()
        leads = self.preposition.split(" ")[-1]
        if not _may_be_place(phrase) or leads not in _PLACING:
            return alone
        end = at + 1
        parts = [phrase.name]
        while end + 1 < self.until and self.chunks[end].text == ",":
            following = self.chunks[end + 1].np
            if following is None or following.text != following.name:
                break
            if following.opener or not _may_be_place(following):
                break
            parts.append(following.name)
            end += 2
        listed = any(chunk.kind == "c" for chunk in self.chunks[end : end + 2])
        is_chain = 1 < len(parts) < 5 and not listed
        return (end, parts) if is_chain else alone

    def _verb(self, group: Chunk) -> None:
        """Read a verb: of this clause, of the name before it ("X directed by Y"), or of the noun before it."""
        last = self.last
        mark = self.mark
        frame = self.frame
        # "for winning", "to win"
        onward = self.preposition != "" or group.text.startswith("to ")
        behind = last is not None and not mark
        if (
            last
            and behind
            and not onward
            and last.name
            and not (group.bare and frame.copula)
        ):
            self.frame = _Frame(self.topic.resolved(last.name), until_comma=True)
        elif onward or (behind and not frame.copula):
            self.frame = _Frame(
                frame.subject,
                frame.predicate(self.preposition),
                until_comma=frame.until_comma,
            )
        elif mark and frame.until_comma:
            self.frame = self.home
        self.frame.verb, self.frame.copula = group.text, group.copula
        self.frame.direct = self.frame.near = ""
        self.preposition = ""
        self.mark = ""
        self.listed = None
        self.last = None

    def _preposition(self, text: str) -> None:
        if self.mark:
            self.frame = self.home if self.frame.until_comma else self.frame
            self.frame.near = ""
        self.preposition = f"{self.preposition} {text}".strip()
        self.mark = ""

    def _mark(self, text: str) -> None:
        self.mark = "," if text == "," else "and"
        if text == "," and self.frame.until_comma:
            self.frame = self.home
            if self.outer is not None:
                self.listed = self.outer
                self.outer = None

    def _relative(self, at: int) -> int:
        """Begin the clause of "who", "which" or "whose": about the name before it, or with further words about the noun
        before it."""
        word = self.chunks[at].text
        frame = self.frame
        name = self.last.name if self.last else ""
        prefix = "" if name or frame.copula else f"{frame.predicate('')} {word}"
        self.frame = _Frame(
            self.topic.resolved(name) if name else frame.subject,
            prefix,
            until_comma=True,
        )
        self.preposition = ""
        self.mark = ""
        self.last = None
        inner = self.chunks[at + 1].np if at + 1 < len(self.chunks) else None
        verb = self.chunks[at + 2] if at + 2 < len(self.chunks) else None
        if inner is None or inner.tag == "D" or verb is None or verb.kind != "vg":
            return at + 1
        if word == "whose":
            self.frame.prefix = f"{self.frame.prefix} {inner.text}"
            return at + 2
        subject = (
            self.topic.label
            if inner.tag == "o"
            else self.topic.resolved(inner.name or inner.text)
        )
        if name:  # "Red Tide, which the band released"
            self._add(subject, verb.text, self.frame.subject)
        self.frame = _Frame(subject, until_comma=True)
        return at + 2

    def _add(self, subject: str, predicate: str, object_: str) -> None:
        subject = subject.strip(" ,;:-'")
        object_ = self.topic.resolved(object_.strip(" ,;:").rstrip("-"))
        if (
            subject
            and any(map(str.isalnum, object_))
            and subject.casefold() != object_.casefold()
        ):
            self.facts.append((subject, " ".join(predicate.split()) or LINKED, object_))


@dataclass(frozen=True, slots=True)
class Subject:
    """Holds the subject of a clause, which is the chunks `first` up to, but not including, `last`."""

    label: str
    """The entity."""
    prefix: str
    """Words of the subject that lead to its objects."""
    first: int
    last: int
    verb: int
    """The chunk of its verb; chunks between `last` and `verb` are appositions."""
    also: tuple[str, ...] = ()
    """Further subjects after "and"."""
    facts: tuple[Fact, ...] = ()
    """The facts in the subject's own words ("his wife Ann")."""
    kin: bool = False
    """Whether these facts already cover everything before the subject ("His wife, Ann")."""


def finite_verbs(chunks: Sequence[Chunk]) -> list[int]:
    """Return the numbers of the chunks that may head a clause."""
    return [at for at, chunk in enumerate(chunks) if chunk.finite]


def subject_of(
    chunks: Sequence[Chunk], verbs: Sequence[int], start: int, topic: Topic
) -> Subject | None:
    """Return the subject of the clause that begins at chunk `start`; None if it is headed by no verb among `verbs`."""
    verb = next(
        (at for at in verbs[bisect_right(verbs, start) :] if _heads(chunks, at, start)),
        None,
    )
    segments = _segments(chunks, start, verb) if verb is not None else []
    nominal = [
        (segment, phrase) for segment in segments if (phrase := chunks[segment[0]].np)
    ]
    if verb is None or not nominal:
        return None
    (first, last), phrase = nominal[0]
    kin: tuple[Fact, ...] = ()
    if segments[0][0] != first:  # after an introduction
        (first, last), phrase = next(
            (one for one in reversed(nominal) if one[1].opener not in ("a", "an")),
            nominal[-1],
        )
    elif (
        len(nominal) == 2
        and nominal[1][1].text == nominal[1][1].name
        and not phrase.name
    ):
        name = topic.resolved(nominal[1][1].name)
        if phrase.opener in _TOPICAL and topic.label:
            kin = ((topic.label, phrase.text, name),)
        elif chunks[verb - 1].text == ",":  # "Our assessor, Ann Lee, came"
            kin = ((name, "is", phrase.text),)
        # "Its singer, Ann Lee, was": the name is the subject
        (first, last), phrase = nominal[1]
    label, words, facts = _head(phrase, topic)
    joint = next((at for at in range(first + 1, last) if chunks[at].kind == "c"), last)
    rest = chunks[first + 1 : joint]
    if (
        len(rest) > 1
        and rest[0].text == "of"
        and not phrase.name
        and (named := rest[1].np)
        and named.name
    ):
        # "the population of Leeds": Leeds is the node, the rest leads from it
        label = topic.resolved(named.name)
        words = f"{phrase.text} of {named.description}"
        rest = rest[2:]
    denial = phrase.opener if phrase.opener in _DENYING else ""
    further = [chunk.text for chunk in rest if chunk.kind != ","]
    prefix = " ".join([denial, words, *further])
    also = tuple(
        topic.resolved(np.name)
        for chunk in chunks[joint:last]
        if (np := chunk.np) is not None and np.name
    )
    leading = " ".join(prefix.split()[:_LONGEST_PREFIX])
    return Subject(label, leading, first, last, verb, also, (*kin, *facts), bool(kin))


def _heads(chunks: Sequence[Chunk], at: int, start: int) -> bool:
    """Return whether a finite verb heads the main clause: it is outside relative clauses, and not a participle of a
    noun."""
    for back in range(at - 1, start - 1, -1):  # "which | the band | released"
        if chunks[back].kind == "r":
            return False
        if chunks[back].kind == "vg" or chunks[back].text == ",":
            break
    after = chunks[at + 1] if at + 1 < len(chunks) else None
    if not chunks[at].bare:
        return True
    if chunks[at - 1].text == ",":  # "Bo Day, a lawyer, | married | Ann Lee"
        return after is not None and after.kind == "np"
    return chunks[at - 1].kind == "np" and (
        after is None or after.text not in ("by", "as")
    )


def _segments(chunks: Sequence[Chunk], start: int, verb: int) -> list[tuple[int, int]]:
    """Return the stretches of chunks between the commas before the verb."""
    segments = []
    first = start
    for at in range(start, verb + 1):
        if at == verb or chunks[at].text == ",":
            if at > first:
                segments.append((first, at))
            first = at + 1
        elif (
            at > first
            and chunks[at].kind == chunks[at - 1].kind == "np"
            and chunks[first].kind != "np"
        ):
            segments.append((first, at))  # "As a boy | he": two phrases side by side
            first = at
    return segments


def _head(phrase: NounPhrase, topic: Topic) -> tuple[str, str, tuple[Fact, ...]]:
    """Return the entity named by a subject's first phrase, the words left for the predicate, and the facts in the
    phrase."""
    own = topic.label or phrase.text
    if phrase.tag == "o" and phrase.text.lower() in _SPEAKERS:
        return "", "", ()  # the writer is unknown
    if phrase.tag == "o" or topic.same(phrase.text):
        return own, "", ()
    if phrase.owner or (phrase.opener in _TOPICAL and topic.label):
        owner = (
            own
            if not phrase.owner or phrase.owner.islower()
            else topic.resolved(phrase.owner)
        )
        if phrase.name and phrase.description:  # "his wife Bo Day"
            return phrase.name, "", ((owner, phrase.description, phrase.name),)
        return owner, phrase.description if phrase.owner else phrase.text, ()
    if phrase.name:
        name = topic.resolved(phrase.name)
        is_described = phrase.description != "" and not _is_time(phrase.description)
        return (
            name,
            "",
            ((name, "is", phrase.description),) if is_described else (),
        )
    if not topic.label or phrase.inner:
        return phrase.text, "", ()
    # "the film"
    return (
        own,
        "" if phrase.opener in _GENERIC and phrase.words == 1 else phrase.text,
        (),
    )


def facts_about(
    subject: str, predicate: str, phrase: NounPhrase, topic: Topic
) -> Iterator[Fact]:
    """Yield the facts that a subject, a predicate and a noun phrase state, the simplest first."""
    if phrase.owner:
        yield from _owned(subject, predicate, phrase, topic)
    elif predicate.split(" ")[-1] in _COPULAS and _is_attribute(phrase):
        return
    elif phrase.name and phrase.description:
        yield subject, f"{predicate} {phrase.description}", phrase.name
        if phrase.tag in "EQ" and _is_noun(phrase.description):
            yield phrase.name, "is", phrase.description
    else:
        yield subject, predicate, phrase.text
        rest = phrase.text
        if predicate in _COPULAS and not phrase.name:  # "is a 1999 American film"
            dated = _YEAR.match(rest)
            if dated:
                yield subject, "is dated", dated["year"]
                rest = dated["rest"]
            for name in phrase.inner:
                if rest.startswith(f"{name} ") and DEMONYM.fullmatch(name):
                    yield subject, "nationality", name
                    rest = rest.removeprefix(f"{name} ")
            if rest != phrase.text:
                yield subject, predicate, rest
        # "a Marvel Comics character" is a character of Marvel Comics
        for name in phrase.inner:
            if not DEMONYM.fullmatch(name):
                yield (
                    subject,
                    f"{predicate} {' '.join(phrase.text.replace(name, ' ', 1).split())} of",
                    name,
                )


def _is_noun(description: str) -> bool:
    return _NOUN.search(description) is not None and not _is_time(description)


def _is_time(description: str) -> bool:
    """Return whether the words before a name say when: "Next morning Ann Lee left"."""
    *_, last = description.split()
    return last.lower() in BY_ITSELF


def _may_be_place(phrase: NounPhrase) -> bool:
    """Return whether a name may be a place: not a month, "Operations Manager" or "Mrs Solheim"."""
    if phrase.tag != "E" or not phrase.name:
        return False
    folded = phrase.name.lower().split()
    is_person = folded[0].rstrip(".") in HONORIFICS or folded[-1] in ROLES
    return not is_person and folded[0] not in MONTHS


def _is_attribute(phrase: NounPhrase) -> bool:
    """Return whether a phrase is an attribute and not a thing: "full", but not "a boat", "boats" or "Greek"."""
    if phrase.words > 1 or phrase.opener:
        return False
    is_class = _CLASS.search(phrase.text)
    return phrase.text.islower() and is_class is None


def _owned(
    subject: str, predicate: str, phrase: NounPhrase, topic: Topic
) -> Iterator[Fact]:
    """Yield the facts of "X's wife Y", "X's third album", "Disney's Hollywood Studios"; "the band's album" is the
    topic's."""
    if phrase.tag == "E" and not phrase.description:
        yield subject, predicate, phrase.text
        return
    common = phrase.owner.islower()
    owner = topic.label if common or topic.same(phrase.owner) else phrase.owner
    if phrase.name:
        yield subject, f"{predicate} {phrase.owner}'s {phrase.description}", phrase.name
        yield owner, phrase.description or "has", phrase.name
    else:
        yield subject, predicate, phrase.description
        yield subject, f"{predicate} {phrase.description} of", owner
