"""What an index sees of a passage."""

from __future__ import annotations

from ras_agent.records import Passage

__all__ = ["indexed_text"]


def indexed_text(passage: Passage) -> str:
    """Title and text as one: a title often names what the text then calls "he" or "the city"."""
    return f"{passage.title}. {passage.text}" if passage.title else passage.text
