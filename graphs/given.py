"""Passages that a caller gives in place of retrieval."""

from __future__ import annotations

from collections.abc import Mapping

from ras_agent.graphs.found import passage_of
from ras_agent.graphs.plain import plain
from ras_agent.graphs.state import Inputs
from ras_agent.records import JSON, Passage

__all__ = ["given_passages"]

# RAS on ASQA and ELI5: five fixed passages, five iterations
STATIC_ITERATIONS = 5


def given_passages(inputs: Inputs) -> list[list[JSON]]:
    """The given passages, hop by hop. Raises ValueError for inputs that contradict each other.

    Seed passages all belong to the first hop. Static ones are spread evenly over the iterations in order, so that
    five passages in five iterations are read one at a time; there are never more iterations than passages.
    """
    seed, static = inputs.get("seed_passages") or (), inputs.get("static_passages") or ()
    iterations = inputs.get("static_iterations")
    if seed and static:
        raise ValueError("give seed_passages (the loop goes on after them) or static_passages (it does not), not both")
    if iterations is not None and (not static or iterations < 1):
        raise ValueError(f"static_iterations is a number from 1, given with static_passages; got {iterations!r}")
    passages = [_passage(item, number) for number, item in enumerate(seed or static, start=1)]
    if not static:
        return [passages] if passages else []
    count, size = min(iterations or STATIC_ITERATIONS, len(passages)), len(passages)
    return [passages[size * i // count : size * (i + 1) // count] for i in range(count)]


def _passage(given: Passage | JSON | str, number: int) -> JSON:
    if isinstance(given, str):
        given = {"text": given}
    if not isinstance(given, Passage):
        if not isinstance(given, Mapping) or not isinstance(given.get("text"), str):
            raise ValueError(f'given passage {number} is no text, Passage or {{"text": ...}}: {given!r:.200}')
        given = Passage.from_dict({"id": f"given-{number}", **given})
    if (passage := passage_of(given)) is None:
        raise ValueError(f"given passage {number}: id, text, title and document_id must be texts, got {given!r:.200}")
    data: JSON = plain(passage.to_dict())
    return data
