"""Builds the roles that need no model, named `offline`.

Planner and answerer share one reader and its caches. Every factory takes the part after the colon of a role's name,
which must be empty here (else UnknownName is raised), and the options. Their language is that of the texts, if it
is known; the roles understand only English.
"""

from __future__ import annotations

from functools import cache

from ras_agent.contracts.errors import UnknownName
from ras_agent.running.protocols import Answerer
from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE, OfflineAnswerer
from ras_agent.tools.offline.extractor.extract import OfflineExtractor
from ras_agent.tools.offline.layouts import WithLayout
from ras_agent.tools.offline.planner import OfflinePlanner, OfflineReasoner
from ras_agent.tools.offline.reader import Reader
from ras_agent.tools.roles import DEFAULT_OPTIONS, RoleOptions

_packaged_reader = cache(Reader)


def offline_planner(
    variant: str = "", options: RoleOptions = DEFAULT_OPTIONS
) -> OfflinePlanner:
    """Build the planner, which asks for the things that a question describes, innermost first, else follows bridges."""
    _refuse(variant)
    enough = max(LEAST_CONFIDENCE, options.least_confidence or 0.0)
    reader = _packaged_reader()
    return OfflinePlanner(reader, language=options.language, enough=enough)


def offline_answerer(
    variant: str = "", options: RoleOptions = DEFAULT_OPTIONS
) -> Answerer:
    """Build the answerer. In the layout "chain" it reads only the facts, in "chain-of-text" only the passages."""
    _refuse(variant)
    least = (
        LEAST_CONFIDENCE
        if options.least_confidence is None
        else options.least_confidence
    )
    answerer = OfflineAnswerer(
        _packaged_reader(), options.may_abstain, least, options.language
    )
    return WithLayout(answerer, options.layout)


def offline_extractor(
    variant: str = "", options: RoleOptions = DEFAULT_OPTIONS
) -> OfflineExtractor:
    """Build the extractor, which finds facts by the grammar of sentences."""
    _refuse(variant)
    return OfflineExtractor(options.language)


def offline_reasoner(
    variant: str = "", options: RoleOptions = DEFAULT_OPTIONS
) -> OfflineReasoner:
    """Build the reasoner, which picks the next sentence by its words."""
    _refuse(variant)
    return OfflineReasoner(options.language)


def offline_judge() -> Reader:
    """Return the judge of whether a text affirms a yes-or-no question: the reader of planner and answerer."""
    return _packaged_reader()


def _refuse(variant: str) -> None:
    if variant:
        raise UnknownName("offline role", f"offline:{variant}", ("offline",))
