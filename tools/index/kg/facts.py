"""What one passage contributes to a knowledge graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ras_agent.canonical import canonical_key
from ras_agent.records import Passage, Triple
from ras_agent.titles import bare_title

__all__ = ["PassageFacts", "facts_by_passage", "facts_in"]


@dataclass(frozen=True, slots=True)
class PassageFacts:
    """The triples read in a passage, and entities named there that may be in none of them.

    A triple's sources say where in the passage it stands; those of other passages do not count here.
    """

    passage_id: str
    triples: tuple[Triple, ...] = ()
    entities: tuple[str, ...] = ()


def facts_in(passage: Passage, triples: tuple[Triple, ...]) -> PassageFacts:
    """What was read in a passage; its title names something, too."""
    title = bare_title(passage.title)
    return PassageFacts(passage.id, triples, (title,) if canonical_key(title) else ())


def facts_by_passage(
    triples: Iterable[Triple], entities: Mapping[str, Iterable[str]] | None = None
) -> Iterator[PassageFacts]:
    """Triples sorted to the passages of their sources, in the order in which these are first met."""
    found: dict[str, dict[Any, Triple]] = {name: {} for name in entities or ()}
    for triple in triples:
        for passage_id in dict.fromkeys(source.passage_id for source in triple.sources):
            found.setdefault(passage_id, {})[triple] = triple
    for passage_id, own in found.items():
        yield PassageFacts(passage_id, tuple(own), tuple((entities or {}).get(passage_id, ())))
