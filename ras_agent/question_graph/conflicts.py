"""Detects facts that cannot all be true, without a model and without a list of relations (see `conflicts_of`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from ras_agent.contracts.records import Triple
from ras_agent.text.values import agree, value_of

# "was born on 3 March 1847" and "born in 1848" state the same relation
_FRAME = re.compile(
    r"^(?:(?:is|was|are|were|be|been|being|has|have|had) )+(?=\w)| (?:in|on|at|around|about|circa)$"
)
# "the director of X is Y" and "X's director is Y" are about the same thing
_ROLE = re.compile(r"(?P<role>[a-z][\w -]*?)(?: of)? (?:is|was)(?: in| at| on)?")
_AUXILIARY = re.compile(r"(?:is|was|are|were|has|had|have|been|will|would|can|may)\b")
_ARTICLE = re.compile(r"(?:the|an?) ", re.IGNORECASE)

# values of one subject; a predicate with more values is taken to allow several
_MOST_VALUES = 50


def conflicts_of(facts: Iterable[Triple]) -> tuple[tuple[Triple, ...], ...]:
    """Return groups of facts that disagree: each fact of a group disagrees with another fact of it.

    Groups, and the facts in them, are in the order of `facts`. Two facts disagree when all of these conditions hold:

    - They have the same subject, which is a name ("the post office" is a different one in each passage), and the same
      frame (see `frame_of`).
    - Both objects are dates, or both are quantities of the same unit, and neither refines nor rounds to the other.
    - No passage states both, because a text that gives two values means both ("won in 1958", "won in 1962").
    - No passage gives any subject two such values for this predicate. A predicate that is seen to take several values
      has no conflicts.

    Objects that are names never conflict. Whether "born in Edinburgh" excludes "born in Scotland", or "stars Tom
    Hanks" excludes "stars Meg Ryan", takes knowledge of the world. In MuSiQue's sample 284 pairs of names differ in
    this way, and none of those that were examined is a contradiction.
    """
    by_predicate: dict[
        str, dict[str, list[Triple]]
    ] = {}  # predicate -> subject -> facts
    for fact in valued_facts(facts):
        subject, predicate, _ = fact.key
        frame = frame_of(predicate)
        by_subject = by_predicate.setdefault(frame, {})
        by_subject.setdefault(subject, []).append(fact)
    groups: list[tuple[Triple, ...]] = []
    for by_subject in by_predicate.values():
        groups += _groups(by_subject.values())
    return tuple(groups)


def frame_of(predicate: str) -> str:
    """Return a canonical predicate without auxiliary verbs at its beginning and a preposition at its end.

    >>> frame_of("was born in"), frame_of("mayor of is"), frame_of("mayor is")
    ('born', 'mayor', 'mayor')
    """
    return role_of(predicate) or _FRAME.sub("", predicate)


def role_of(predicate: str) -> str:
    """Return the role in a predicate, "mayor" for "mayor of is" and "mayor is"; "" for a predicate without a
    role.
    """
    role = _ROLE.fullmatch(predicate)
    if role is None or _AUXILIARY.match(predicate):
        return ""
    return role["role"]


def valued_facts(facts: Iterable[Triple]) -> tuple[Triple, ...]:
    """Return the facts that can disagree with others: with a name as subject, a date or quantity as object, and
    a source.
    """
    valued = []
    for fact in facts:
        if fact.sources and is_name(fact.subject) and value_of(fact.object) is not None:
            valued.append(fact)
    return tuple(valued)


def _groups(by_subject: Iterable[Sequence[Triple]]) -> list[tuple[Triple, ...]]:
    """Group the disagreeing facts by subject, for one predicate; [] if a passage gives a subject several values."""
    groups = []
    for alike in by_subject:
        if len(alike) > _MOST_VALUES:
            return []
        involved = set()
        for first, second in _disagreeing(alike):
            if first.passage_ids & second.passage_ids:
                return []
            involved |= {first.key, second.key}
        if involved:
            groups.append(tuple(fact for fact in alike if fact.key in involved))
    return groups


def _disagreeing(facts: Sequence[Triple]) -> Iterator[tuple[Triple, Triple]]:
    for fact, other in combinations(facts, 2):
        if values_disagree(fact.object, other.object):
            yield fact, other


def values_disagree(one: str, other: str) -> bool:
    """Tell whether both texts are dates or quantities, and cannot both be true of the same thing."""
    first = value_of(one)
    second = value_of(other)
    return first is not None and second is not None and not agree(first, second)


def is_name(surface: str) -> bool:
    """Tell whether any word of a text is not in lower case, ignoring a leading article."""
    return not _ARTICLE.sub("", surface, count=1).islower()
