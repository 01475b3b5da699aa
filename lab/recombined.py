"""Passages made from real ones by recombining their sentences and giving them new names, as many as are asked for.

A made passage has the sentences of one real passage, one of them exchanged for another passage's, and each name in it,
a word with a capital that no sentence begins with, is kept with a chance of 0.7 and else becomes a new name: the
beginning of it joined to the end of another real name, the same for all of its places in the passage. So texts have the
length, the function words and the phrases of real ones, and the number of distinct words goes on growing, as it does in
real corpora. The titles are the passages' own, renamed like the rest.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage

_NAME = re.compile(r"(?<=[a-z,;0-9] )[A-Z][a-z]{2,}")
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_KEPT = 0.7
"""The chance that a name stays as it is, so that real questions find some of their words"""
_UNEVEN = 6
"""The power of an even draw that chooses the other name, so that some new names are much commoner than others"""


def recombined_passages(
    corpus: Sequence[Path], count: int, seed: int = 0
) -> Iterator[Passage]:
    """Make `count` passages, the same for the same files and seed, each a document of its own.

    corpus: files of JSON lines with title and text. Raises IngestError for files without passages or names.
    """
    rows = [
        json.loads(line)
        for path in corpus
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    sentences = [
        [sentence for sentence in _SENTENCES.split(row["text"].strip()) if sentence]
        for row in rows
        if row["text"].strip()
    ]
    titles: list[str] = [row["title"] for row in rows if row["text"].strip()]
    names = sorted({name for row in rows for name in _NAME.findall(row["text"])})
    if not sentences or not names:
        raise IngestError(
            f"{', '.join(map(str, corpus))}: no passages with names: expected lines with title and text"
        )
    draw = random.Random(seed)
    for number in range(count):
        place = draw.randrange(len(sentences))
        own = list(sentences[place])
        if len(own) > 1:
            own[draw.randrange(len(own))] = draw.choice(draw.choice(sentences))
        new: dict[str, str] = {}

        def renamed(match: re.Match[str], new: dict[str, str] = new) -> str:
            name = match.group()
            if name not in new:
                other = names[int(len(names) * draw.random() ** _UNEVEN)]
                new[name] = name if draw.random() < _KEPT else _joined(name, other)
            return new[name]

        text, title = _NAME.sub(renamed, " ".join(own)), titles[place]
        title = " ".join(new.get(word, word) for word in title.split())
        yield Passage(f"p{number}", text, title, f"d{number}")


def _joined(name: str, other: str) -> str:
    """Join the beginning of one name to the end of another: "Charlotte" and "Madrid" are "Charrid"."""
    return name[: (len(name) + 1) // 2] + other[len(other) // 2 :]
