"""Determines the language of an index's texts from the stemmer that it was made with."""

from __future__ import annotations

from ras_agent.contracts.errors import IndexMismatch
from ras_agent.tools.index.store import PassageIndex


def language_of(index: PassageIndex) -> str:
    """Return the language that an index was made for; "none" if it has no stemmer."""
    return index.snapshot.manifest.tokeniser["language"] or "none"


def check_language(index: PassageIndex, language: str | None) -> None:
    """Raise IndexMismatch if `language` is given and is not the language that the index was made for."""
    made_for = language_of(index)
    if language and language != made_for:
        raise IndexMismatch(
            f"{index} was made for texts in {made_for}, not in {language}: leave the language out, or make another "
            f"index, `ras-agent index FILES --language {language} --out OTHER`"
        )
