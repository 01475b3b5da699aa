"""Who or what a clause is about: its subject, found by the verb that follows it and kept apart from what is before.

"In 1999, his wife Ann, a nurse from Leeds, moved": the subject is between the introduction and the apposition.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ras_agent.text.names import DEMONYM
from ras_agent.text.words import word_set
from ras_agent.tools.offline.extractor.chunks import Chunk, NounPhrase
from ras_agent.tools.offline.extractor.topics import Topic

_GENERIC = frozenset({"the", "this", "that", "these"})
_TOPICAL = frozenset({"his", "her", "its", "their"})
_LONGEST_PREFIX = 6


@dataclass(frozen=True, slots=True)
class Subject:
    """label: the node. prefix: words of the subject that lead to its objects. also: further subjects after "and".

    Chunks `first` up to `last` are the subject, `verb` its verb; between `last` and `verb` are appositions. facts:
    what the subject's own words tell ("his wife Ann").
    """

    label: str
    prefix: tuple[str, ...]
    first: int
    last: int
    verb: int
    also: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()


def finite_verbs(chunks: Sequence[Chunk]) -> list[int]:
    """Return the chunks that may head a clause."""
    return [at for at, chunk in enumerate(chunks) if chunk.vg is not None and chunk.vg.finite]


def subject_of(chunks: Sequence[Chunk], verbs: Sequence[int], start: int, topic: Topic) -> Subject | None:
    """Return the subject of the clause that begins at chunk `start`; None if none of its finite `verbs` heads it."""
    places = verbs[bisect_right(verbs, start) :]
    verb = next((at for at in places if _heads(chunks, at, start)), None)
    if verb is None:
        verb = next((at for at in places if _resumes(chunks, at)), None)
    if verb is None:
        return None
    segments = _segments(chunks, start, verb)
    nominal = [segment for segment in segments if chunks[segment[0]].np is not None]
    if not nominal:
        return None
    first, last = _chosen(chunks, segments, nominal)
    return _read(chunks, first, last, verb, topic)


def _heads(chunks: Sequence[Chunk], at: int, start: int) -> bool:
    """Return whether a finite verb is that of the main clause: outside relative clauses, no participle of a noun."""
    group = chunks[at].vg
    if group is None:
        return False
    for back in range(at - 1, start - 1, -1):  # "which | the band | released"
        if chunks[back].kind == "rel":
            return False
        if chunks[back].vg is not None or chunks[back].text == ",":
            break
    if not group.bare:
        return True
    after = chunks[at + 1].text if at + 1 < len(chunks) else ""
    return chunks[at - 1].kind == "np" and after not in ("by", "as")


def _resumes(chunks: Sequence[Chunk], at: int) -> bool:
    """Return if a finite past form after a comma goes on with a clause: "Bo Day, a lawyer, | married | Ann Lee"."""
    group, after = chunks[at].vg, chunks[at + 1].np if at + 1 < len(chunks) else None
    past = group is not None and group.bare
    return past and chunks[at - 1].text == "," and after is not None and after.tag != "date"


def _segments(chunks: Sequence[Chunk], start: int, verb: int) -> list[tuple[int, int]]:
    """Return the stretches between the commas before the verb."""
    segments, first = [], start
    for at in range(start, verb + 1):
        if at == verb or chunks[at].text == ",":
            if at > first:
                segments.append((first, at))
            first = at + 1
        elif at > first and chunks[at].kind == chunks[at - 1].kind == "np" and chunks[first].kind != "np":
            segments.append((first, at))  # "As a boy | he": two phrases side by side
            first = at
    return segments


def _chosen(
    chunks: Sequence[Chunk], segments: list[tuple[int, int]], nominal: list[tuple[int, int]]
) -> tuple[int, int]:
    """Return the stretch that is the subject.

    That is a pronoun, the first stretch, or after an introduction the last with an article.
    """
    phrases = [(segment, phrase) for segment in nominal if (phrase := chunks[segment[0]].np) is not None]
    for segment, phrase in phrases:
        if phrase.tag == "pronoun" and segment != nominal[0]:
            return segment
    opening = phrases[0][1]
    timing = opening.tag == "date" or opening.text[:1].isdigit() or (opening.opener == "" and opening.tag == "number")
    introduced = segments[0] != nominal[0] or (timing and len(nominal) > 1)
    if introduced:
        later = phrases[1:] if timing and len(phrases) > 1 and segments[0] == nominal[0] else phrases
        return next((one for one, phrase in reversed(later) if phrase.opener not in ("a", "an")), later[-1][0])
    last, closing = phrases[-1]
    if len(phrases) == 2 and last[1] - last[0] == 1 and closing.text == closing.name and not opening.name:
        return last  # "Its singer, Ann Lee, was": the name is the subject
    return nominal[0]


def _read(chunks: Sequence[Chunk], first: int, last: int, verb: int, topic: Topic) -> Subject:
    """Put the subject in chunks `first` to `last` together."""
    phrase = chunks[first].np
    assert phrase is not None
    head = _head(phrase, topic)
    facts = [*head.facts, *_introduced(chunks, first, phrase, head.label, topic)]
    joint = next((at for at in range(first + 1, last) if chunks[at].kind == "conj"), last)
    words = [chunk.text for chunk in chunks[first + 1 : joint] if chunk.kind != "mark"]
    also = [np for chunk in chunks[joint:last] if (np := chunk.np) is not None and np.name]
    facts += [(topic.resolved(np.name), "is", np.description) for np in also if np.description]
    label, prefix = head.label, [head.words, *words]
    inside = next((np for chunk in chunks[first + 1 : last] if (np := chunk.np) is not None), None)
    if inside is not None and inside.name:
        if chunks[first + 1].text == "of" and phrase.tag == "noun" and not phrase.name:
            # "the population of Leeds": Leeds is the node, the rest leads from it
            label, prefix = topic.resolved(inside.name), [phrase.text, "of", inside.description, *words[2:]]
        elif label == topic.label and joint == last:
            facts.append((label, " ".join([head.words, *(word for word in words if word != inside.text)]), inside.name))
    leading = " ".join(" ".join(prefix).split()[:_LONGEST_PREFIX])
    others = tuple(topic.resolved(np.name) for np in also)
    return Subject(label, (leading,) if leading else (), first, last, verb, others, tuple(facts))


def _introduced(chunks: Sequence[Chunk], first: int, name: NounPhrase, label: str, topic: Topic) -> list[Fact]:
    """Return what the noun before a name says: "His wife, | Bo Day", "Award-winning actress, | Ann Lee"."""
    noun = chunks[first - 2].np if first >= 2 and chunks[first - 1].text == "," else None
    if noun is None or noun.tag != "noun" or noun.name or not name.name:
        return []
    if noun.opener in _TOPICAL:
        return [(topic.label, noun.text, label)]
    return [(label, "is", noun.text)] if first == 2 else []


@dataclass(frozen=True, slots=True)
class _Head:
    """Holds the node that a subject's first phrase names, the words it leaves for the predicate, and its own facts."""

    label: str
    words: str = ""
    facts: tuple[Fact, ...] = ()


def _head(phrase: NounPhrase, topic: Topic) -> _Head:
    own = topic.label or phrase.text
    owned = phrase.opener in _TOPICAL and bool(topic.label)
    if phrase.tag == "pronoun":
        return _Head(own, "there" if phrase.text.lower() == "there" else "")
    if phrase.owner or owned:
        owner = own if not phrase.owner or phrase.owner.islower() else topic.resolved(phrase.owner)
        if phrase.name and phrase.description:  # "his wife Bo Day"
            return _Head(phrase.name, "", ((owner, phrase.description, phrase.name),))
        if phrase.name and phrase.owner:  # "America's Cup"
            return _Head(phrase.text)
        return _Head(owner, phrase.description if phrase.owner else phrase.text)
    if topic.same(phrase.text):
        return _Head(own)
    if phrase.name:
        name = topic.resolved(phrase.name)
        return _Head(name, "", ((name, "is", phrase.description),) if phrase.description else ())
    if not topic.label or phrase.inner:
        return _Head(phrase.text)
    generic = phrase.opener in _GENERIC and phrase.words == 1  # "the film"
    return _Head(own, "" if generic else phrase.text)


Fact = tuple[str, str, str]

_YEAR = re.compile(r"(?P<year>(?:1\d|20)\d{2})\s+(?P<rest>.+)")
_ADJECTIVE = re.compile(r"(?:al|ive|ous|ic|ful|less|able|ible|ish|ary|ern|ed|ing|est|by|town)$")
_PLAIN_ADJECTIVES = word_set(
    """same first second third last late great young then main near former older younger elder larger smaller upper
    lower inner outer other later earlier greater"""
)
_COPULAS = frozenset({"is", "are", "was", "were"})


def head_of(phrase: NounPhrase) -> str:
    """Return the part of a phrase that is a node of the graph: the name it ends in, or all of it without the owner."""
    if phrase.owner:
        return " ".join(part for part in (phrase.description, phrase.name) if part)
    return phrase.name if phrase.name and phrase.description else phrase.text


def facts_about(subject: str, predicate: str, phrase: NounPhrase, topic: Topic) -> Iterator[Fact]:
    """Yield the facts that `subject predicate phrase` holds, the plainest first."""
    if phrase.owner:
        yield from _owned(subject, predicate, phrase, topic)
    elif phrase.name and phrase.description:
        yield subject, f"{predicate} {phrase.description}", phrase.name
        if phrase.tag in ("name", "title") and _tells_what(phrase.description):
            yield phrase.name, "is", _singular(phrase.description)
    else:
        yield subject, predicate, phrase.text
        if predicate in _COPULAS and not phrase.name:
            yield from _classes(subject, predicate, phrase)
        else:
            yield from _inner(subject, predicate, phrase)


def _owned(subject: str, predicate: str, phrase: NounPhrase, topic: Topic) -> Iterator[Fact]:
    """Yield "X's wife Y", "X's third album", "Disney's Hollywood Studios".

    The owner of "the band's album" is the topic.
    """
    common = phrase.owner.islower()
    owner = topic.label if topic.same(phrase.owner) or (common and " " not in phrase.owner) else phrase.owner
    head = head_of(phrase)
    if phrase.tag == "name" and not phrase.description:
        yield subject, predicate, phrase.text
    elif phrase.name:
        yield subject, f"{predicate} {phrase.owner}'s {phrase.description}".strip(), phrase.name
        if owner and (not common or owner == topic.label):
            yield owner, phrase.description or "has", phrase.name
    else:
        yield subject, predicate, head
    single = phrase.tag == "name" and not phrase.description and " " not in phrase.owner  # "America's Cup"
    if owner and owner != subject and not single and not (common and owner != topic.label):
        yield subject, f"{predicate} {phrase.description or phrase.name} of", owner


def _classes(subject: str, predicate: str, phrase: NounPhrase) -> Iterator[Fact]:
    """Yield what "is a 1999 American film" says besides: the year, the nationality, the bare noun."""
    rest = phrase.text
    dated = _YEAR.match(rest)
    if dated:
        yield subject, "is dated", dated["year"]
        rest = dated["rest"]
    for name in phrase.inner:
        if rest.startswith(name + " ") and DEMONYM.fullmatch(name):
            yield subject, "nationality", name
            rest = rest[len(name) + 1 :]
    if rest != phrase.text:
        yield subject, predicate, rest
    yield from _inner(subject, predicate, phrase)


def _inner(subject: str, predicate: str, phrase: NounPhrase) -> Iterator[Fact]:
    """Yield the names that are before the noun: "a Marvel Comics character" is a character of Marvel Comics."""
    for name in phrase.inner:
        if not DEMONYM.fullmatch(name):
            noun = " ".join(phrase.text.replace(name, " ", 1).split())
            yield subject, f"{predicate} {noun} of", name


def _tells_what(description: str) -> bool:
    """Return whether it ends in a noun: "English club" does, "downtown" and "north-western" do not."""
    last = description.split()[-1]
    return last.isalpha() and len(last) > 3 and not _ADJECTIVE.search(last) and last not in _PLAIN_ADJECTIVES


def _singular(description: str) -> str:
    """Return "art directors" as what each of them is."""
    return description[:-1] if description.endswith(("ors", "ers", "ists", "ians", "sts")) else description
