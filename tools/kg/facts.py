"""What one passage contributes to a knowledge graph."""

from __future__ import annotations

from dataclasses import dataclass

from ras_agent.records import Passage, Triple
from ras_agent.text.canonical import canonical_key
from ras_agent.text.titles import bare_title

__all__ = ["PassageFacts", "facts_in"]


@dataclass(frozen=True, slots=True)
class PassageFacts:
    """The triples read in a passage, and entities named there that may be in none of them.

    A triple's sources say where in the passage it stands; those of other passages do not count here.
    """

    passage_id: str
    triples: tuple[Triple, ...] = ()
    entities: tuple[str, ...] = ()

    def spans(self, triple: Triple) -> list[tuple[int, int]]:
        """Characters of the passage in which one of the triples was read; (0, 0) if it does not say."""
        return [(at.start, at.end) for at in triple.sources if at.passage_id == self.passage_id] or [(0, 0)]


def facts_in(passage: Passage, triples: tuple[Triple, ...]) -> PassageFacts:
    """What was read in a passage; its title names something, too."""
    title = bare_title(passage.title)
    return PassageFacts(passage.id, triples, (title,) if canonical_key(title) else ())
