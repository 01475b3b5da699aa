"""The roles that need no model, put together: `offline`.

Planner and answerer share one reader, with what it remembers. Every factory takes what stands behind the colon of a
role's name, and here that is nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ras_agent.errors import UnknownName
from ras_agent.tools.roles import DEFAULT_OPTIONS, RoleOptions

if TYPE_CHECKING:
    from ras_agent.protocols import Answerer, Planner
    from ras_agent.tools.offline.extractor.extract import OfflineExtractor
    from ras_agent.tools.offline.reader import Reader
    from ras_agent.tools.offline.reasoner import OfflineReasoner


def offline_planner(variant: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> Planner:
    """Ask for what the question describes, the innermost first; else follow the bridge that is closest to it.

    options: their language, if it is known, is the texts'; the roles know English only. Raises UnknownName for any
    variant.
    """
    from ras_agent.tools.offline.english import EnglishPlanner
    from ras_agent.tools.offline.planner import OfflinePlanner

    _refuse(variant)
    return EnglishPlanner(OfflinePlanner(_packaged_reader()), options.language)


def offline_answerer(variant: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> Answerer:
    """Read the answer out of what was found; variant and options as for `offline_planner`.

    The layout "chain" reads the facts alone, "chain-of-text" the passages alone, any other both. Without a least
    confidence it has its own.
    """
    from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE, OfflineAnswerer
    from ras_agent.tools.offline.english import EnglishAnswerer
    from ras_agent.tools.offline.told import AsReviewed, FromFacts, FromPassages

    _refuse(variant)
    least = LEAST_CONFIDENCE if options.least_confidence is None else options.least_confidence
    reading = OfflineAnswerer(_packaged_reader(), options.may_abstain, least)
    answerer = EnglishAnswerer(reading, options.language)
    if options.layout == "chain":
        return FromFacts(answerer)
    return AsReviewed(FromPassages(answerer) if options.layout == "chain-of-text" else answerer)


def offline_extractor(variant: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> OfflineExtractor:
    """Read facts off grammar; variant and options as for `offline_planner`."""
    from ras_agent.tools.offline.extractor.extract import OfflineExtractor

    _refuse(variant)
    return OfflineExtractor(options.language)


def offline_reasoner(variant: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> OfflineReasoner:
    """Pick the next sentence by words; variant and options as for `offline_planner`."""
    from ras_agent.tools.offline.reasoner import OfflineReasoner

    _refuse(variant)
    return OfflineReasoner(options.language)


def _refuse(variant: str) -> None:
    if variant:
        raise UnknownName("offline role", f"offline:{variant}", ("offline",))


@cache
def _packaged_reader() -> Reader:
    from ras_agent.tools.offline.reader import Reader

    return Reader()
