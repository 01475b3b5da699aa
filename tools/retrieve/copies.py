"""Removes duplicates among hits: passages with the same text, or where one contains the other and little else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ras_agent.contracts.records import Hit, Passage
from ras_agent.text.same_text import are_copies, words_said

_COMPARED = 100
"""The number of earlier places with which a hit is compared, so that a long list does not take quadratic time."""
_NAMED = 20
"""The maximum number of copies that a hit's reason names."""


@dataclass(slots=True)
class _Place:
    """Holds a hit in the result, the words of its passage, and the ids of its copies."""

    hit: Hit
    words: str
    copies: list[str]


def without_copies(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits without duplicates. The hit that remains lists the ids of its duplicates among its reasons.

    It shows the longest text of the group, at the position and with the score of the best hit. Equal texts under
    different titles of their own are not duplicates: "It was founded in 1911" means something else under each title.
    """
    places: list[_Place] = []
    by_words: dict[tuple[str, str], _Place] = {}
    for hit in hits:
        words = words_said(hit.passage.text)
        key = (hit.passage.own_title, words)
        place = by_words.get(key)
        if place is None:
            place = _near(hit, words, places)
        if place is None or not words:
            place = _Place(hit, words, copies=[])
            places.append(place)
        else:
            _add_copy(place, hit.passage, words)
        by_words[key] = place
    return [_named(place) for place in places]


def best_without_copies(
    find: Callable[[int], tuple[list[Hit], bool]], k: int
) -> list[Hit]:
    """Return at most `k` hits without duplicates; the next best hits take the duplicates' places.

    Args:
        find: takes a number of hits; returns that many best hits, and whether there may be more.
    """
    wanted = k
    while True:
        found, may_go_on = find(wanted)
        best = without_copies(found)
        if len(best) >= k or not may_go_on:
            return best[:k]
        wanted *= 2


def _near(hit: Hit, words: str, places: list[_Place]) -> _Place | None:
    """Return the place whose text contains these words and little else, or is contained in them likewise, or None."""
    for place in places[:_COMPARED]:
        if place.hit.passage.own_title != hit.passage.own_title:
            continue
        if are_copies(words, place.words):
            return place
    return None


def _add_copy(place: _Place, passage: Passage, words: str) -> None:
    shorter = passage
    if len(words) > len(place.words):
        shorter = place.hit.passage
        place.hit = replace(place.hit, passage=passage)
        place.words = words
    place.copies.append(shorter.id)


def _named(place: _Place) -> Hit:
    if not place.copies:
        return place.hit
    shown = place.copies[:_NAMED]
    named = ", ".join(shown)
    more = len(place.copies) - len(shown)
    reason = f"the same text: {named}"
    if more:
        reason += f" and {more} more"
    why = (*place.hit.why, reason)
    return replace(place.hit, why=why)
