"""Extraction of triples from text: the extractor on a chat model, and the cache of its facts."""

from ras_agent.tools.structure.cache import CachedExtractor, TripleCache
from ras_agent.tools.structure.llm import LLMExtractor
from ras_agent.tools.structure.parse_triples import ParsedTriples, parse_triples

__all__ = [
    "CachedExtractor",
    "LLMExtractor",
    "ParsedTriples",
    "TripleCache",
    "parse_triples",
]
