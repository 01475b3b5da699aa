"""What a noun phrase in object position tells: itself, the name in it, its owner, what the name is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ras_agent.text.names import DEMONYM
from ras_agent.text.words import word_set
from ras_agent.tools.offline.extractor.noun_phrases import NounPhrase
from ras_agent.tools.offline.extractor.topics import Topic

__all__ = ["Fact", "facts_about", "head_of"]

Fact = tuple[str, str, str]

_YEAR = re.compile(r"(?P<year>(?:1\d|20)\d{2})\s+(?P<rest>.+)")
_ADJECTIVE = re.compile(r"(?:al|ive|ous|ic|ful|less|able|ible|ish|ary|ern|ed|ing|est|by|town)$")
_PLAIN_ADJECTIVES = word_set(
    """same first second third last late great young then main near former older younger elder larger smaller upper
    lower inner outer other later earlier greater"""
)
_COPULAS = frozenset({"is", "are", "was", "were"})


def head_of(phrase: NounPhrase) -> str:
    """The part of a phrase that is a node of the graph: the name it ends in, or all of it without the owner."""
    if phrase.owner:
        return " ".join(part for part in (phrase.description, phrase.name) if part)
    return phrase.name if phrase.name and phrase.description else phrase.text


def facts_about(subject: str, predicate: str, phrase: NounPhrase, topic: Topic) -> Iterator[Fact]:
    """The facts that `subject predicate phrase` holds, the plainest first."""
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
    """ "X's wife Y", "X's third album", "Disney's Hollywood Studios"; the owner of "the band's album" is the topic."""
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
    """What "is a 1999 American film" says besides: the year, the nationality, the bare noun."""
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
    """The names that stand before the noun: "a Marvel Comics character" is a character of Marvel Comics."""
    for name in phrase.inner:
        if not DEMONYM.fullmatch(name):
            noun = " ".join(phrase.text.replace(name, " ", 1).split())
            yield subject, f"{predicate} {noun} of", name


def _tells_what(description: str) -> bool:
    """Whether it ends in a noun: "English club" does, "downtown" and "north-western" do not."""
    last = description.split()[-1]
    return last.isalpha() and len(last) > 3 and not _ADJECTIVE.search(last) and last not in _PLAIN_ADJECTIVES


def _singular(description: str) -> str:
    """ "art directors" as what each of them is."""
    return description[:-1] if description.endswith(("ors", "ers", "ists", "ians", "sts")) else description
