"""Facts that passages come with, as those of a knowledge graph do, need no extractor."""

from __future__ import annotations

from collections.abc import Sequence

from ras_agent.budget import current_ledger
from ras_agent.calling import acall, call
from ras_agent.errors import BudgetExceeded, ModelCallError
from ras_agent.protocols import Extractor
from ras_agent.records import Extraction, Failure, Passage, Triple
from ras_agent.tools.index.stated_facts import stated_facts
from ras_agent.tools.roles import role_name


class StatedFirst:
    """Takes the facts that passages come with, and asks `extractor` for those of the other passages alone.

    If the extractor's model fails, the Extraction holds the stated facts and the failure.
    """

    def __init__(self, extractor: Extractor) -> None:
        self.__wrapped__ = extractor
        self.name = role_name(extractor)

    def extract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Return the stated facts, then those that the extractor finds. Raises what it raises."""
        stated, others = _stated(passages)
        if not others:
            return Extraction(stated)
        try:
            return _joined(stated, call(self.__wrapped__, "extract", others, subquery))
        except (ModelCallError, BudgetExceeded, OSError) as error:
            return _without_others(stated, error)

    async def aextract(self, passages: Sequence[Passage], subquery: str = "") -> Extraction:
        """Do the same as `extract`, for coroutines."""
        stated, others = _stated(passages)
        if not others:
            return Extraction(stated)
        try:
            return _joined(stated, await acall(self.__wrapped__, "extract", others, subquery))
        except (ModelCallError, BudgetExceeded, OSError) as error:
            return _without_others(stated, error)


def _stated(passages: Sequence[Passage]) -> tuple[tuple[Triple, ...], list[Passage]]:
    """Return the stated facts, and the passages that state none."""
    stated = [stated_facts(passage) for passage in passages]
    others = [passage for passage, facts in zip(passages, stated, strict=True) if not facts]
    return tuple(fact for facts in stated for fact in facts or ()), others


def _joined(stated: tuple[Triple, ...], found: Extraction) -> Extraction:
    if not stated:  # also what is no Extraction: the caller reports it
        return found
    return Extraction(stated + found.triples, found.failures)


def _without_others(stated: tuple[Triple, ...], error: Exception) -> Extraction:
    if not stated:
        raise error
    if isinstance(error, BudgetExceeded):
        current_ledger().refused = error.limit
        return Extraction(stated)
    return Extraction(stated, (Failure("extractor", f"{type(error).__name__}: {error}"[:500]),))
