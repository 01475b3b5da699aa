"""Systems that know nothing, to put an agent's figures beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ras_agent.calling import acall
from ras_agent.errors import UnknownName
from ras_agent.eval.question import Question
from ras_agent.eval.run.runner import NOTHING, Ask
from ras_agent.protocols import Retriever
from ras_agent.records import Passage

__all__ = ["BASELINES", "baseline"]

_SAYS: dict[str, Callable[[Sequence[Passage]], str]] = {
    "yes": lambda found: "yes",
    "no": lambda found: "no",
    "top-title": lambda found: found[0].title if found else "",
}
BASELINES = tuple(_SAYS)


def baseline(name: str, retriever: Retriever, k: int) -> Ask:
    """One search for the question, then "yes", "no", or the best passage's title. Raises UnknownName."""
    if name not in _SAYS:
        raise UnknownName("baseline", name, BASELINES)
    says = _SAYS[name]

    async def ask(question: Question) -> Mapping[str, Any]:
        hits = await acall(retriever, "retrieve", question.question, k)
        found = [hit.passage for hit in hits]
        passages = {passage.id: passage.to_dict() for passage in found}
        return {**NOTHING, "answer": says(found), "passages": passages, "steps": [{}], "stop_reason": "single_shot"}

    return ask
