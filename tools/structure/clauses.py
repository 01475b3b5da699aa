"""From the chunks of a sentence to its facts: who or what, the words between, and every phrase that could be an answer.

The reader walks along the chunks with a frame in hand: whose clause it is in, with which verb, after which words. Noun
phrases become objects of the frame; relative clauses and appositions of names open a frame of their own, which the
next comma closes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ras_agent.tools.structure.phrases import Chunk, NounPhrase, VerbGroup
from ras_agent.tools.structure.topics import Topic

__all__ = ["Fact", "read_clauses"]

Fact = tuple[str, str, str]

_LONGEST_PREDICATE = 10
_DEMONYM = re.compile(r"^(?:19|20)?\d*\s*[A-Z]\w*(?:an|ish|ese|ch|ic|i|ss|ek|[A-Z]\w+n)$")
_AT_PLACE = frozenset({"in", "at", "of", "from", "near", "to", "into", "outside", "around"})
_PRONOUNS = frozenset({"he", "she", "it", "they"})
_GENERIC = frozenset({"the", "this", "that", "these"})


@dataclass(slots=True)
class _Frame:
    """Whose clause it is. prefix: words that stand between the subject and its verb ("population")."""

    subject: str
    prefix: list[str] = field(default_factory=list)
    verb: str = ""
    path: list[str] = field(default_factory=list)
    copula: bool = False
    # a name whose clause ends at the next comma
    until_comma: bool = False

    def predicate(self, preposition: str) -> str:
        words = " ".join([*self.prefix, self.verb, *self.path, preposition]).split()
        if len(words) > _LONGEST_PREDICATE:  # the verb and what stands nearest to the object say most
            head = " ".join([*self.prefix[-1:], self.verb]).split()[:4]
            words = head + words[len(head) - _LONGEST_PREDICATE :]
        return " ".join(words)


def read_clauses(chunks: Sequence[Chunk], topic: Topic) -> Iterator[Fact]:
    """The facts of one sentence. Pronouns, "the film" and short names in subject position stand for the topic."""
    reader = _Reader(list(chunks), topic)
    reader.read()
    yield from dict.fromkeys(reader.facts)


class _Reader:
    def __init__(self, chunks: list[Chunk], topic: Topic) -> None:
        self.chunks = chunks
        self.topic = topic
        self.facts: list[Fact] = []
        self.home = self.frame = _Frame(topic.label)
        self.preposition = ""
        self.last: NounPhrase | None = None  # the noun phrase read last in this clause
        self.listed: tuple[str, str] | None = None  # subject and predicate that a list goes on with
        self.mark = ""  # "," or "and" since the last phrase

    # -- walking ------------------------------------------------------------------------------------------------

    def read(self) -> None:
        at = self._begin(0)
        while at < len(self.chunks):
            chunk = self.chunks[at]
            if chunk.kind == "np" and chunk.np is not None:
                at = self._noun_phrase(at, chunk.np)
            elif chunk.kind == "vg" and chunk.vg is not None:
                self._verb(chunk.vg)
                at += 1
            elif chunk.kind == "prep":
                self._preposition(chunk.text)
                at += 1
            elif chunk.kind == "rel":
                at = self._relative(at)
            elif chunk.kind == "sub" or chunk.text in (";", ":"):
                at = self._begin(at + 1) if self._has_verb(at + 1) else at + 1
                self.mark = ","
            else:
                self._mark(chunk.text)
                at += 1

    def _begin(self, start: int) -> int:
        """Find the subject of the clause that begins at `start`, read what stands before it, return where it goes on."""
        found = self._subject(start)
        if found is None:
            self.home = self.frame = _Frame(self.topic.label)
            self._reset()
            return start
        first, last, verb = found
        subject = self._anchor(first, last)
        self.home = self.frame = subject
        self._reset()
        if first > start:  # "In 1999, the band released ..."
            group = self.chunks[verb].vg
            self.frame = _Frame(subject.subject, list(subject.prefix), group.text if group else "")
            for at in range(start, first):
                chunk = self.chunks[at]
                if chunk.np is not None:
                    self._noun_phrase(at, chunk.np, clause=False)
                elif chunk.vg is not None:
                    self.frame = _Frame(subject.subject, list(subject.prefix), chunk.vg.text)
                    self._reset()
                elif chunk.kind == "prep":
                    self.preposition = chunk.text
                else:
                    self.mark = chunk.text
            self._reset()
        self.frame = subject
        self._appositions(first, last, verb)
        return verb

    def _reset(self) -> None:
        self.preposition, self.last, self.listed, self.mark = "", None, None, ""

    def _has_verb(self, start: int) -> bool:
        return self._subject(start) is not None

    def _subject(self, start: int) -> tuple[int, int, int] | None:
        """First and last chunk of the subject of the clause at `start`, and the chunk of its verb."""
        verb = next((at for at in range(start, len(self.chunks)) if self._heads(at, start)), None)
        if verb is None:
            return None
        segments: list[tuple[int, int]] = []
        first = start
        for at in range(start, verb + 1):
            if at == verb or self.chunks[at].text == ",":
                if at > first:
                    segments.append((first, at))
                first = at + 1
        nominal = [segment for segment in segments if self.chunks[segment[0]].kind == "np"]
        if not nominal:
            return None
        introduced = segments[0] != nominal[0]
        chosen = nominal[0]
        if introduced:
            chosen = next((one for one in reversed(nominal) if self._determined(one[0])), nominal[-1])
        return chosen[0], chosen[1], verb

    def _determined(self, at: int) -> bool:
        phrase = self.chunks[at].np
        return phrase is not None and phrase.opener not in ("a", "an")

    def _heads(self, at: int, start: int) -> bool:
        """Whether the chunk is the verb of the main clause: finite, and no participle that only describes a noun."""
        group = self.chunks[at].vg
        if group is None or not group.finite or at == start:
            return False
        before, after = self.chunks[at - 1], self.chunks[at + 1] if at + 1 < len(self.chunks) else None
        if before.kind == "rel":
            return False
        if not group.bare:
            return not any(
                self.chunks[back].kind == "rel"
                and all(chunk.text != "," for chunk in self.chunks[back:at])
                and all(chunk.vg is None for chunk in self.chunks[back:at])
                for back in range(start, at)
            )
        return before.kind == "np" and (after is None or after.text not in ("by", "as"))

    # -- subjects -----------------------------------------------------------------------------------------------

    def _anchor(self, first: int, last: int) -> _Frame:
        """The frame of the subject in chunks `first` to `last`."""
        phrase = self.chunks[first].np
        assert phrase is not None
        rest = self._words(first + 1, last)
        later = [chunk.np for chunk in self.chunks[first + 1 : last] if chunk.np is not None]
        if phrase.tag == "pronoun":
            return _Frame(self.topic.label or phrase.text, rest.split()[:6])
        if phrase.owner:
            owner = self._resolved(phrase.owner)
            if phrase.name and not rest:
                self._add(owner, phrase.description or "has", phrase.name)
                return _Frame(phrase.name)
            return _Frame(owner, [self._head(phrase), rest])
        if phrase.opener in ("his", "her", "its", "their") and self.topic.label:
            if phrase.name:
                self._add(self.topic.label, phrase.description or "has", phrase.name)
                return _Frame(phrase.name, [rest])
            return _Frame(self.topic.label, [phrase.text, rest])
        if phrase.name and (not phrase.description or not self.topic.same(phrase.text)):
            name = self._resolved(phrase.name)
            if phrase.description and phrase.tag != "date":
                self._describe(name, phrase.description)
            return _Frame(name, [rest])
        of = next((np for np in later if np.name), None)
        if of is not None and self.chunks[first + 1].text == "of" and not self.topic.same(phrase.text):
            words = rest.split(of.name)[0].split()
            return _Frame(self._resolved(of.name), [phrase.text, *words])
        if self.topic.label and not phrase.inner:
            generic = phrase.opener in _GENERIC and phrase.words == 1 and not rest
            own = self.topic.same(phrase.text)
            return _Frame(self.topic.label, [] if generic or own else [phrase.text, rest])
        if self.topic.label and self.topic.same(phrase.text):
            return _Frame(self.topic.label, [rest])
        return _Frame(phrase.text, [rest])

    def _appositions(self, first: int, last: int, verb: int) -> None:
        """What stands between a subject and its verb: "X, a singer from Y, was", and names in the subject itself."""
        subject = self.frame
        self.frame = _Frame(subject.subject, list(subject.prefix[:1]) if subject.prefix else [], "")
        for at in range(first + 1, last):
            chunk = self.chunks[at]
            if chunk.kind == "prep":
                self.preposition = chunk.text
            elif chunk.text in ("and", "or", "&") and chunk.kind == "conj":
                self.preposition = chunk.text
            elif chunk.np is not None and chunk.np.name and self._resolved(chunk.np.name) != subject.subject:
                self._add(subject.subject, " ".join([*subject.prefix[:1], self.preposition]).strip(), chunk.np.name)
        self._reset()
        self.frame = _Frame(subject.subject, [], "is", copula=True)
        self.mark = ","
        at = last
        while at < verb:
            chunk = self.chunks[at]
            if chunk.np is not None:
                self.last = None
                at = self._noun_phrase(at, chunk.np, clause=False)
                continue
            if chunk.vg is not None:
                self._verb(chunk.vg)
            elif chunk.kind == "prep":
                self._preposition(chunk.text)
            elif chunk.kind == "rel":
                at = self._relative(at)
                continue
            elif chunk.text == ",":
                self.frame = _Frame(subject.subject, [], "is", copula=True)
            at += 1
        self._reset()
        self.frame = subject

    def _resolved(self, name: str) -> str:
        return self.topic.label if self.topic.label and self.topic.same(name) else name

    @staticmethod
    def _head(phrase: NounPhrase) -> str:
        """What an owner owns: "debut album" of "the band's debut album"."""
        return " ".join(part for part in (phrase.description, phrase.name) if part)

    def _words(self, first: int, last: int) -> str:
        return " ".join(chunk.text for chunk in self.chunks[first:last] if chunk.kind != "mark")

    # -- chunks -------------------------------------------------------------------------------------------------

    def _noun_phrase(self, at: int, phrase: NounPhrase, clause: bool = True) -> int:
        """Read a noun phrase as an object of the frame, an item of a list, an apposition, or a new clause's subject."""
        mark, last = self.mark, self.last
        if clause and mark and self._starts_clause(at):
            return self._begin(at)
        self.mark = ""
        if phrase.tag == "pronoun":
            self._pronoun(phrase)
            return at + 1
        end, place = self._place(at, phrase)
        subject, predicate = self.frame.subject, self.frame.predicate(self.preposition)
        if mark and last is not None and not self.preposition and self.listed is not None:
            if mark == "," and last.name and self._describes(phrase):
                self.frame = _Frame(self._resolved(last.name), [], "is", copula=True, until_comma=True)
                subject, predicate = self.frame.subject, "is"
            elif not (mark == "," and phrase.name and last.opener and not last.name):
                subject, predicate = self.listed
        self._objects(subject, predicate, phrase, place, at)
        self.listed = (subject, predicate)
        if phrase.tag != "date":
            self._extend(phrase, mark)
        self.preposition, self.last = "", phrase
        return end

    def _describes(self, phrase: NounPhrase) -> bool:
        return not phrase.name and phrase.tag == "noun" and (phrase.opener in ("a", "an", "the") or not phrase.inner)

    def _extend(self, phrase: NounPhrase, mark: str) -> None:
        """Later objects are told by the verb, its first object and the phrase nearest to them."""
        step = f"{self.preposition} {phrase.text}".strip()
        keep = self.frame.path[:1] if self.frame.path and not mark and not self.frame.copula else []
        self.frame.path = [*keep, step]

    def _pronoun(self, phrase: NounPhrase) -> None:
        if phrase.text.lower() in _PRONOUNS | {"him", "her", "them"} and self.frame.subject != self.topic.label:
            self._add(self.frame.subject, self.frame.predicate(self.preposition), self.topic.label)
        self.preposition, self.last = "", None

    def _starts_clause(self, at: int) -> bool:
        """Whether a phrase after a comma or "and" is the subject of a verb of its own."""
        for later in range(at + 1, len(self.chunks)):
            chunk = self.chunks[later]
            if chunk.vg is not None:
                return chunk.vg.finite and not (chunk.vg.bare and self._after(later) in ("by", "as", "in", "on", "at"))
            if chunk.kind not in ("np", "prep"):
                return False
        return False

    def _after(self, at: int) -> str:
        return self.chunks[at + 1].text if at + 1 < len(self.chunks) else ""

    def _place(self, at: int, phrase: NounPhrase) -> tuple[int, list[str]]:
        """Where a chain "York, Pennsylvania, United States" ends, and its parts; no parts if it is none."""
        end, parts = at + 1, [phrase.name]
        if not phrase.name or phrase.tag != "name":
            return end, []
        while end + 1 < len(self.chunks) and self.chunks[end].text == ",":
            following = self.chunks[end + 1].np
            if following is None or following.tag != "name" or following.description or following.opener:
                break
            if following.owner:
                break
            parts.append(following.name)
            end += 2
        closing = self.chunks[end : end + 2]
        listed = any(chunk.text in ("and", "or", "&") for chunk in closing)
        located = self.preposition in _AT_PLACE
        return (end, parts) if len(parts) in (2, 3, 4) and located and not listed else (at + 1, [])

    def _objects(self, subject: str, predicate: str, phrase: NounPhrase, place: list[str], at: int) -> None:
        if place:
            self._add(subject, f"{predicate} {phrase.description}".strip(), ", ".join(place))
            for inner, outer in zip(place, place[1:], strict=False):
                self._add(inner, "is in", outer)
            return
        if phrase.owner:
            head = self._head(phrase)
            if phrase.name:
                owned = f"{phrase.description}".strip()
                self._add(self._resolved(phrase.owner), owned or "has", phrase.name)
                self._add(subject, f"{predicate} {phrase.owner}'s {owned}".strip(), phrase.name)
            else:
                self._add(subject, predicate, head)
            self._add(subject, f"{predicate} {head} of", phrase.owner)
            return
        if phrase.name and phrase.description:
            self._add(subject, f"{predicate} {phrase.description}", phrase.name)
            if phrase.tag in ("name", "title") and phrase.description[:1] and not phrase.description[0].isdigit():
                self._describe(phrase.name, phrase.description)
            return
        if phrase.words == 1 and phrase.tag == "noun" and self._after(at) == "of":
            return  # "part of": the words between tell, the phrase after it is the object
        self._add(subject, predicate, phrase.text)
        for name in phrase.inner:
            if not _DEMONYM.match(name):
                self._add(subject, predicate, name)

    def _verb(self, group: VerbGroup) -> None:
        """A verb: of this clause, of the name before it ("X, directed by Y"), or of the noun before it."""
        last, mark = self.last, self.mark
        if group.bare and last is not None and not mark:
            if last.name and not self.frame.copula:
                self.frame = _Frame(self._resolved(last.name), until_comma=True)
            elif not self.frame.copula:
                self.frame = _Frame(self.frame.subject, [self.frame.predicate("")], until_comma=self.frame.until_comma)
        elif mark and self.frame.until_comma:
            self.frame = self.home
        if group.finite and not group.bare and not mark and self.frame.path and last is not None and last.name:
            # "... said Lee | was": a clause without a conjunction
            self.frame = _Frame(self._resolved(last.name))
        self.frame.verb, self.frame.path, self.frame.copula = group.text, [], group.copula
        self.preposition, self.mark, self.listed = "", "", None

    def _preposition(self, text: str) -> None:
        if self.mark and self.frame.until_comma:
            self.frame = self.home
        if self.mark == ",":
            self.frame.path = self.frame.path[:1]
        self.preposition = f"{self.preposition} {text}".strip() if self.preposition else text
        self.mark = ""

    def _mark(self, text: str) -> None:
        if text in (",", "and", "or", "but", "&", "nor"):
            self.mark = "," if text == "," else "and"
        if text == "," and self.frame.until_comma:
            self.frame = self.home

    def _relative(self, at: int) -> int:
        """Open the clause of "who", "which", "whose": of the name before it, or further words about the noun before."""
        last, word = self.last, self.chunks[at].text
        inner = self.chunks[at + 1].np if at + 1 < len(self.chunks) else None
        self.mark = ""
        if last is not None and last.name:
            self.frame = _Frame(self._resolved(last.name), until_comma=True)
        elif self.frame.copula:
            self.frame = _Frame(self.frame.subject, until_comma=True)
        else:
            self.frame = _Frame(self.frame.subject, [self.frame.predicate(""), word], until_comma=True)
        self.preposition = ""
        if inner is None:
            return at + 1
        verb = self._next_verb(at + 2)
        if word == "whose":
            if inner.name:
                self._add(self.frame.subject, inner.description or "has", inner.name)
                self.frame = _Frame(inner.name, until_comma=True)
            else:
                self.frame.prefix.append(inner.text)
            self.last = None
            return at + 2
        if verb is not None and inner.tag != "date":
            subject = self.topic.label if inner.tag == "pronoun" else self._resolved(inner.name or inner.text)
            antecedent = self.frame.subject
            self.frame = _Frame(subject, until_comma=True)
            group = self.chunks[verb].vg
            if group is not None and last is not None and word in ("which", "that", "whom") and antecedent != subject:
                self._add(subject, group.text, antecedent)
            self.last = None
            return verb
        return at + 1

    def _next_verb(self, at: int) -> int | None:
        return at if at < len(self.chunks) and self.chunks[at].vg is not None else None

    # -- facts --------------------------------------------------------------------------------------------------

    def _describe(self, name: str, description: str) -> None:
        self._add(self._resolved(name), "is", description)

    def _add(self, subject: str, predicate: str, object_: str) -> None:
        subject, object_ = subject.strip(" ,;:-'"), object_.strip(" ,;:-")
        if not subject or not object_ or not any(map(str.isalnum, object_)):
            return
        object_ = self._resolved(object_)
        if subject.casefold() == object_.casefold():
            return
        self.facts.append((subject, predicate.strip() or "is linked to", object_))
