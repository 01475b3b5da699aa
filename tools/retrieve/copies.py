"""Removes duplicates among hits: passages with the same text, or where one contains the other and little else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from ras_agent.contracts.records import Hit
from ras_agent.text.same_text import are_copies, words_said

_COMPARED = 100
"""The number of earlier places of its title with which a hit is compared, so that a long list does not take quadratic time."""
_NAMED = 20
"""The maximum number of copies that a hit's reason names."""


@dataclass
class _Place:
    """Holds a hit in the result, and the ids of its copies."""

    hit: Hit
    copies: list[str] = field(default_factory=list)

    @cached_property
    def words(self) -> str:
        """Return the words of the passage, which only texts of the same title need."""
        return words_said(self.hit.passage.text)


def without_copies(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits without duplicates. The hit that remains lists the ids of its duplicates among its reasons.

    It shows the longest text of the group, at the position and with the score of the best hit. Equal texts under
    different titles of their own are not duplicates: "It was founded in 1911" means something else under each title.
    """
    places: list[_Place] = []
    by_title: dict[str, list[_Place]] = {}
    by_words: dict[tuple[str, str], _Place] = {}
    for hit in hits:
        title = hit.passage.own_title
        new = _Place(hit)
        place = None
        same_title = by_title.setdefault(title, [])
        if same_title and new.words:
            key = (title, new.words)
            place = by_words.get(key) or _near(new.words, same_title)
            by_words[key] = place or new
        if place is None:
            places.append(new)
            same_title.append(new)
        else:
            _add_copy(place, new)
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


def _near(words: str, places: list[_Place]) -> _Place | None:
    """Return the place whose text contains these words and little else, or is contained in them likewise, or None."""
    for place in places[:_COMPARED]:
        if are_copies(words, place.words):
            return place
    return None


def _add_copy(place: _Place, copy: _Place) -> None:
    shorter = copy.hit.passage
    if len(copy.words) > len(place.words):
        shorter = place.hit.passage
        place.hit = replace(place.hit, passage=copy.hit.passage)
        place.words = copy.words
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
