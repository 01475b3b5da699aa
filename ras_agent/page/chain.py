"""The chain of an answer: the cited facts that lead from a name in the question to the answer, in order.

Two names of one thing ("river Dorve" and "Dorve") are two entities of the question graph. The chain passes from one to
the other, and says so, where one name is the other with a description beside it.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

_MOST_NAMES = 200  # every pair of them is compared
_BESIDE = frozenset({"at", "in", "near", "on"})  # "Quenne at Mittenau" is Quenne
_OF = frozenset(
    {"at", "by", "for", "from", "in", "near", "of", "on", "to", "with"}
)  # "capital of France" is not France


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """A step of a chain from entity to entity, which are numbers. `fact` is empty where both are one thing."""

    start: int
    end: int
    fact: str = ""
    citation: int = 0


def same_thing(label: str, other: str) -> bool:
    """Tell whether two labels name one thing because the longer one is the shorter one with a description beside it.

    >>> same_thing("Dorve", "river Dorve"), same_thing("Quenne at Mittenau", "Quenne")
    (True, True)
    >>> same_thing("France", "capital of France"), same_thing("Bell", "Bell Telephone Company")
    (False, False)
    """
    short, long = sorted((label.replace(",", " ,").split(), other.replace(",", " ,").split()), key=len)
    if short[:1] in (["the"], ["The"]):
        short = short[1:]
    if not short or len(short) >= len(long) or not short[0][0].isupper():
        return False
    for at in range(len(long) - len(short) + 1):
        if long[at : at + len(short)] == short:
            before, after = long[:at], long[at + len(short) :]
            described = all(word.islower() for word in before[1:]) and not (before and before[-1].lower() in _OF)
            described = described and (not before or before[0].islower() or before == ["The"])
            return described and (not after or after[0] == "," or after[0] in _BESIDE)
    return False


def joins_of(labels: Mapping[int, str]) -> list[tuple[int, int]]:
    """Return the pairs of entities that are one thing by their labels. A label inside two others joins neither."""
    if len(labels) > _MOST_NAMES:
        return []
    longer: dict[int, list[int]] = {}
    for entity, label in labels.items():
        for other, name in labels.items():
            if len(label) < len(name) and same_thing(label, name):
                longer.setdefault(entity, []).append(other)
    return [(entity, others[0]) for entity, others in sorted(longer.items()) if len(others) == 1]


def chain_of(
    facts: Iterable[Link], joins: Iterable[tuple[int, int]], starts_from: Collection[int], answers: Collection[int]
) -> list[Link]:
    """Return the links from a name in the question to the answer, through cited facts and joins; [] if there are none.

    facts: cited facts as links from subject to object, which are followed in both directions. joins: pairs of entities
        that are one thing. starts_from, answers: entities that the question names, and that answer it. Of several
        chains, the one that uses most citations is returned, then the shortest.
    """
    next_to: dict[int, list[Link]] = {}
    for link in facts:
        next_to.setdefault(link.start, []).append(link)
        next_to.setdefault(link.end, []).append(Link(link.end, link.start, link.fact, link.citation))
    for entity, other in joins:
        next_to.setdefault(entity, []).append(Link(entity, other))
        next_to.setdefault(other, []).append(Link(other, entity))
    reached = sorted(node for node in answers if node in next_to)
    starts = sorted(node for node in starts_from if node in next_to and node not in reached)
    chains = [chain for end in reached for chain in _shortest(next_to, end, starts)]
    return max(chains, key=lambda chain: (len({link.citation for link in chain if link.fact}), -len(chain)), default=[])


def _shortest(next_to: Mapping[int, Sequence[Link]], end: int, starts: Collection[int]) -> list[list[Link]]:
    """Return the shortest chain from each of `starts` to `end`, where there is one."""
    came: dict[int, Link] = {}  # the link by which the search, which begins at the end, came to a node
    waiting = [(0.0, end, Link(end, end))]
    while waiting:
        far, node, link = heapq.heappop(waiting)
        if node in came:
            continue
        came[node] = link
        for more in next_to[node]:
            if more.end not in came:
                heapq.heappush(waiting, (far + (1.0 if more.fact else 0.1), more.end, more))
    chains = []
    for start in starts:
        if start not in came:
            continue
        chain, node = [], start
        while node != end:
            back = came[node]
            chain.append(Link(node, back.start, back.fact, back.citation))
            node = back.start
        chains.append(chain)
    return chains
