"""Facts that cannot all hold, found without a model and without a list of relations: see `conflicts_of`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from ras_agent.records import Triple
from ras_agent.text.values import agree, value_of

__all__ = ["conflicts_of"]

# "was born on 3 March 1847" and "born in 1848" tell the same thing
_FRAME = re.compile(r"^(?:(?:is|was|are|were|be|been|being|has|have|had) )+(?=\w)| (?:in|on|at|around|about|circa)$")


def conflicts_of(facts: Iterable[Triple]) -> tuple[tuple[Triple, ...], ...]:
    """Groups of facts, each of which disagrees with another of its group, in the order of `facts`.

    Two facts disagree when all of this holds:

    - They have the same subject, written as a name ("the post office" is another one in each passage), and the same
      predicate up to auxiliaries and a final preposition.
    - Both objects are dates, or quantities of one unit, and neither refines nor rounds to the other.
    - No passage states both: a text that gives two values means both ("won in 1958", "won in 1962").
    - Nowhere among the facts does a passage give one subject two such values for this predicate. What is seen to take
      several values is never held to one.

    Objects that are names are never held against each other. Whether "born in Edinburgh" excludes "born in Scotland",
    or "stars Tom Hanks" excludes "stars Meg Ryan", takes knowledge of the world: in MuSiQue's sample 284 pairs of names
    differ so, and none of those looked at is a contradiction.
    """
    told: dict[str, dict[str, list[Triple]]] = {}
    for fact in facts:
        if value_of(fact.object) is not None and fact.sources and _is_name(fact.subject):
            subject, predicate, _ = fact.key
            told.setdefault(_FRAME.sub("", predicate), {}).setdefault(subject, []).append(fact)
    return tuple(group for by_subject in told.values() for group in _groups(list(by_subject.values())))


def _groups(by_subject: Sequence[Sequence[Triple]]) -> list[tuple[Triple, ...]]:
    """The disagreeing facts of each subject, for one predicate; none if a passage shows it to take several values."""
    groups = []
    for alike in by_subject:
        involved = set()
        for one, other in _disagreeing(alike):
            if _passages(one) & _passages(other):
                return []
            involved |= {one.key, other.key}
        if involved:
            groups.append(tuple(fact for fact in alike if fact.key in involved))
    return groups


def _disagreeing(facts: Sequence[Triple]) -> Iterator[tuple[Triple, Triple]]:
    for one, other in combinations(facts, 2):
        first, second = value_of(one.object), value_of(other.object)
        if first is not None and second is not None and not agree(first, second):
            yield one, other


def _passages(fact: Triple) -> set[str]:
    return {source.passage_id for source in fact.sources}


def _is_name(surface: str) -> bool:
    """Whether a word past the first, or the only one, is not in small letters."""
    words = surface.split()
    return not all(map(str.islower, words[1:] or words))
