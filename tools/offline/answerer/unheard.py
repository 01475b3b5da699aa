"""Names in a question that no passage holds: the sign that what was found speaks of something else."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.text.names import name_spans
from ras_agent.text.words import stems
from ras_agent.tools.offline.answerer.reading import Read

__all__ = ["unheard_names"]


def unheard_names(question: str, sentences: Sequence[Read], titles: Sequence[str]) -> list[str]:
    """The names of which not a single word stands in any sentence or title, in the question's order."""
    said = {root for sentence in sentences for root in sentence.stems}
    said.update(root for title in titles for root in stems(title))
    names = [question[start:end] for start, end in name_spans(question)]
    return [name for name in names if stems(name) and said.isdisjoint(stems(name))]
