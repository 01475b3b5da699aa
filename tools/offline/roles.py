"""The roles that need no model, put together: `offline`.

Planner and answerer share one reader, with what it remembers. Every factory takes the part behind the colon of a
role's name, which here is empty (UnknownName is raised for anything else), and the options, of which the language is
the texts', if it is known: the roles know English only.
"""

from __future__ import annotations

from functools import cache

from ras_agent.errors import UnknownName
from ras_agent.protocols import Answerer
from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE, OfflineAnswerer
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.offline.planner import OfflinePlanner, OfflineReasoner
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.offline.told import Retold
from ras_agent.tools.roles import DEFAULT_OPTIONS, RoleOptions

_packaged_reader = cache(Reader)


def offline_planner(
    variant: str = "", options: RoleOptions = DEFAULT_OPTIONS
) -> OfflinePlanner:
    """Ask for the things that the question describes, the innermost first; else follow the bridge closest to it."""
    _refuse(variant)
    enough = max(LEAST_CONFIDENCE, options.least_confidence or 0.0)
    return OfflinePlanner(_packaged_reader(), language=options.language, enough=enough)


def offline_answerer(
    variant: str = "", options: RoleOptions = DEFAULT_OPTIONS
) -> Answerer:
    """Read the answer out of the evidence. The layout "chain" reads only the facts, "chain-of-text" the passages."""
    _refuse(variant)
    least = (
        LEAST_CONFIDENCE
        if options.least_confidence is None
        else options.least_confidence
    )
    answerer = OfflineAnswerer(
        _packaged_reader(), options.may_abstain, least, options.language
    )
    return Retold(answerer, options.layout)


def offline_extractor(
    variant: str = "", options: RoleOptions = DEFAULT_OPTIONS
) -> OfflineExtractor:
    """Read facts off grammar."""
    _refuse(variant)
    return OfflineExtractor(options.language)


def offline_reasoner(
    variant: str = "", options: RoleOptions = DEFAULT_OPTIONS
) -> OfflineReasoner:
    """Pick the next sentence by words."""
    _refuse(variant)
    return OfflineReasoner(options.language)


def offline_judge() -> Reader:
    """Judge whether a text affirms a question of yes or no, with the reader of planner and answerer."""
    return _packaged_reader()


def _refuse(variant: str) -> None:
    if variant:
        raise UnknownName("offline role", f"offline:{variant}", ("offline",))
