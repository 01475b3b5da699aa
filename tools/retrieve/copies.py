"""Copies among hits: passages of one text, or of which one holds the other and little else, fill one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ras_agent.records import Hit, Passage
from ras_agent.text.same_text import are_copies, words_said

_COMPARED = 100
"""With how many hits a later one is compared, so that a list of all passages takes no quadratic time."""
_NAMED = 20
"""How many copies a hit names."""


@dataclass(slots=True)
class _Place:
    """A hit, the words of its passage, and the ids of the copies."""

    hit: Hit
    words: str
    copies: list[str]


def without_copies(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits without those that another one holds the text of; that one names them.

    The longer text is shown, at the place and with the score of the one that was found first. Texts under titles of
    their own that differ are no copies: "It was founded in 1911" says another thing under each.
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
    """Return at most `k` hits, where those behind take the places of copies.

    find: returns the best so many hits, and whether there may be more.
    """
    wanted = k
    while True:
        found, may_go_on = find(wanted)
        best = without_copies(found)
        if len(best) >= k or not may_go_on:
            return best[:k]
        wanted *= 2


def _near(hit: Hit, words: str, places: list[_Place]) -> _Place | None:
    """Return the place of a text that holds these words and little else, or is held by them."""
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
