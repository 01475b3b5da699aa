"""Ready facts, each brought to the passage of an index that states them, or told why it cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from ras_agent.records import Passage, Triple
from ras_agent.tools.index.load import Skipped
from ras_agent.tools.kg.facts import PassageFacts

__all__ = ["Given", "Placed", "place_facts"]

T = TypeVar("T")


class Given(NamedTuple):
    """What a file says that a passage states; `where` it does, and the passage's `text`, where the file holds it."""

    facts: PassageFacts
    where: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """Facts of `passages`, by their ids, and what could not be used."""

    facts: list[PassageFacts] = field(default_factory=list)
    passages: dict[str, Passage] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)


def place_facts(given: Sequence[Given], passages: Iterable[Passage]) -> Placed:
    """Each of `given` goes to the passage with its id, or else to the only one with that title.

    Facts of another text than the passage's are skipped, and facts that stand outside of it; a passage of which nothing
    else is given goes without. What several of `given` say of a passage counts once.
    """
    wanted = {item.facts.passage_id for item in given}
    by_id: dict[str, Passage] = {}
    by_title: dict[str, list[Passage]] = {}
    for passage in passages:
        if passage.id in wanted:
            by_id[passage.id] = passage
        if passage.title in wanted:
            by_title.setdefault(passage.title, []).append(passage)
    placed = Placed()
    found: dict[str, PassageFacts] = {}
    for item in given:
        name = item.facts.passage_id
        own = [by_id[name]] if name in by_id else by_title.get(name, [])
        if reason := _reason(item, own):
            placed.skipped.append(Skipped(item.where, f"facts of {name!r}, {reason}"))
            continue
        (passage,) = own
        triples, outside = _within(item.facts.triples, name, passage)
        if outside:
            told = f"{len(outside)} of the facts of {name!r} stand outside of its text: {outside[0]}"
            placed.skipped.append(Skipped(item.where, told))
            if not triples and not item.facts.entities:
                continue  # nothing is not to replace what is kept of the passage
        before = found.get(passage.id, PassageFacts(passage.id))
        found[passage.id] = PassageFacts(
            passage.id, _united(before.triples, triples), _united(before.entities, item.facts.entities)
        )
        placed.passages[passage.id] = passage
    placed.facts.extend(found.values())
    return placed


def _united(first: Iterable[T], second: Iterable[T]) -> tuple[T, ...]:
    """Each as often as it is in the one in which it is more often."""
    return tuple((Counter(first) | Counter(second)).elements())


def _reason(item: Given, own: Sequence[Passage]) -> str:
    """Why no passage states what is given; empty where one does."""
    if not own:
        return "which is no passage of the index"
    if len(own) > 1:
        return f"the title of {len(own)} passages of the index: give the id of one"
    if item.text is not None and item.text != own[0].text:
        return "which has another text in the index"
    return ""


def _within(triples: Iterable[Triple], name: str, passage: Passage) -> tuple[list[Triple], list[str]]:
    """The facts with their places in `passage`, there called by its own id; and those with a place beyond its text."""
    kept, outside = [], []
    for triple in triples:
        places = [source for source in triple.sources if source.passage_id == name]
        if any(not 0 <= source.start <= source.end <= len(passage.text) for source in places):
            outside.append(str(triple))
        else:
            kept.append(replace(triple, sources=tuple(replace(source, passage_id=passage.id) for source in places)))
    return kept, outside
