"""What every retriever asks of whoever asks it."""

from __future__ import annotations

__all__ = ["check_query"]


def check_query(query: str, k: int) -> None:
    """Raises ValueError for a blank query or k < 1."""
    if not query.strip():
        raise ValueError("the query is blank")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
