"""The roles that need no model, put together: `offline`, and `offline:minilm` with sentence embeddings and a reader.

Every factory takes the part behind the colon, so that one string names a whole set of roles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ras_agent.errors import UnknownName
from ras_agent.tools.roles import DEFAULT_OPTIONS, RoleOptions

if TYPE_CHECKING:
    from ras_agent.protocols import Answerer, Embedder, SpanReader
    from ras_agent.tools.offline.extractor.extract import OfflineExtractor
    from ras_agent.tools.offline.nested import NestedPlanner
    from ras_agent.tools.offline.reasoner import OfflineReasoner


def offline_planner(embeddings: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> NestedPlanner:
    """Follows the question's links; where it has none, the bridge entity that is closest to it.

    embeddings: "" or "minilm". options: their language, if it is known, is the texts'; the roles know English only.
    Raises UnknownName for other embeddings, MissingExtra where "minilm" is not installed.
    """
    from ras_agent.tools.offline.answerer.answer import OfflineAnswerer
    from ras_agent.tools.offline.nested import NestedPlanner
    from ras_agent.tools.offline.planner import OfflinePlanner

    _known(embeddings)
    return NestedPlanner(OfflineAnswerer(), OfflinePlanner(), options.language)


def offline_answerer(embeddings: str = "", options: RoleOptions = DEFAULT_OPTIONS) -> Answerer:
    """Name the question's descriptions, then answer what is left; embeddings and options as for `offline_planner`.

    The layout "chain" reads the facts alone, "chain-of-text" the passages alone, any other both. Without a least
    confidence it has the packaged threshold.
    """
    from ras_agent.tools.offline.answerer.answer import LEAST_CONFIDENCE, OfflineAnswerer
    from ras_agent.tools.offline.answerer.from_facts import FromFacts, FromPassages
    from ras_agent.tools.offline.nested import NestedAnswerer
    from ras_agent.tools.offline.reviewed import AsReviewed

    embedder, reader = _encoders(embeddings)
    least = LEAST_CONFIDENCE if options.least_confidence is None else options.least_confidence
    last = OfflineAnswerer(embedder, reader, may_abstain=options.may_abstain, least_confidence=least)
    nested = NestedAnswerer(OfflineAnswerer(), last, options.language)
    if options.layout == "chain":
        return FromFacts(nested)
    return AsReviewed(FromPassages(nested) if options.layout == "chain-of-text" else nested)


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


def _encoders(embeddings: str) -> tuple[Embedder | None, SpanReader | None]:
    _known(embeddings)
    if not embeddings:
        return None, None
    from ras_agent.tools.embed.minilm import MiniLMEmbedder
    from ras_agent.tools.offline.span_reader import MiniLMSpanReader

    return MiniLMEmbedder(), MiniLMSpanReader()
