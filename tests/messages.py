"""The words that a test expects in a message: that it names the place, the cause and the remedy, in whatever sentence."""

from __future__ import annotations

import re


def says(*words: str) -> re.Pattern[str]:
    """Return a pattern that finds each of the words in a message, in any order, also across its lines.

    `pytest.raises(IndexMismatch, match=says("rows.npy", "damaged", "delete"))` checks the words that a reader needs
    and leaves the sentence free. Words are plain text, and end where they end: "line 2" is not in "line 20".
    """
    return re.compile(r"\A" + "".join(map(_ahead, words)), re.DOTALL | re.IGNORECASE)


def _ahead(word: str) -> str:
    text = r"\s+".join(map(re.escape, word.split()))
    start, end = (
        r"\b" if re.match(r"\w", letter) else "" for letter in (word[0], word[-1])
    )
    return f"(?=.*{start}{text}{end})"
