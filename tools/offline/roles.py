"""The roles that need no model, put together: `offline`, and `offline:minilm` with a reader that has learnt.

Every factory takes the part behind the colon, so that one string names a whole set of roles.
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


def offline_planner(embeddings: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> Planner:
    """Ask for what the question describes, the innermost first; else follow the bridge that is closest to it.

    embeddings: "" finds descriptions by rules, "minilm" by the packaged reader. options: their language, if it is
    known, is the texts'; the roles know English only. Raises UnknownName for other embeddings, MissingExtra where
    "minilm" is not installed.
    """
    from ras_agent.tools.offline.answerer.answer import OfflineAnswerer
    from ras_agent.tools.offline.english import EnglishPlanner
    from ras_agent.tools.offline.nested import NestedPlanner
    from ras_agent.tools.offline.planner import OfflinePlanner
    from ras_agent.tools.offline.reader_roles import ReadingPlanner

    plain, reader = OfflinePlanner(), _reader(embeddings)
    planner = ReadingPlanner(reader, plain) if reader else NestedPlanner(OfflineAnswerer(), plain)
    return EnglishPlanner(planner, options.language)


def offline_answerer(embeddings: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> Answerer:
    """Name the question's descriptions, then answer what is left; embeddings and options as for `offline_planner`.

    The layout "chain" reads the facts alone, "chain-of-text" the passages alone, any other both. Without a least
    confidence it has the packaged threshold.
    """
    from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE, OfflineAnswerer
    from ras_agent.tools.offline.answerer.from_facts import FromFacts, FromPassages
    from ras_agent.tools.offline.english import EnglishAnswerer
    from ras_agent.tools.offline.nested import NestedAnswerer
    from ras_agent.tools.offline.reader_roles import ReadingAnswerer
    from ras_agent.tools.offline.reviewed import AsReviewed

    least = LEAST_CONFIDENCE if options.least_confidence is None else options.least_confidence
    by_rules = OfflineAnswerer(may_abstain=options.may_abstain, least_confidence=least)
    if reader := _reader(embeddings):
        reading = ReadingAnswerer(reader, by_rules, options.may_abstain, options.least_confidence)
        answerer = EnglishAnswerer(reading, options.language)
    else:
        answerer = EnglishAnswerer(NestedAnswerer(OfflineAnswerer(), by_rules), options.language)
    if options.layout == "chain":
        return FromFacts(answerer)
    return AsReviewed(FromPassages(answerer) if options.layout == "chain-of-text" else answerer)


def offline_extractor(embeddings: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> OfflineExtractor:
    """Reads facts off grammar, with or without embeddings."""
    from ras_agent.tools.offline.extractor.extract import OfflineExtractor

    _known(embeddings)
    return OfflineExtractor(options.language)


def offline_reasoner(embeddings: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> OfflineReasoner:
    """Picks the next sentence by words, with or without embeddings."""
    from ras_agent.tools.offline.reasoner import OfflineReasoner

    _known(embeddings)
    return OfflineReasoner(options.language)


def _known(embeddings: str) -> None:
    if embeddings not in ("", "minilm"):
        raise UnknownName("embeddings of the offline roles", embeddings, ("minilm",))


def _reader(embeddings: str) -> Reader | None:
    _known(embeddings)
    return _packaged_reader() if embeddings else None


@cache
def _packaged_reader() -> Reader:
    """Return the one that planner and answerer share, with what it remembers. Raises MissingExtra without its base."""
    from ras_agent.tools.embed.packaged_minilm import packaged_minilm
    from ras_agent.tools.offline.reader import Reader

    packaged_minilm()
    return Reader()
