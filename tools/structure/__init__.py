"""Extracts triples from text, by a chat model or a local model, and caches the facts of each passage."""

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
