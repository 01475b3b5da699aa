"""Reads the bundled sample corpus: short encyclopaedic passages for trying the agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from ras_agent.contracts.records import Passage
from ras_agent.tools.index.chunk import passages_of
from ras_agent.tools.index.documents import Document
from ras_agent.tools.index.load import load


@contextmanager
def sample_file() -> Iterator[Path]:
    """Yield the path of the sample's JSON Lines file, which exists at least until the end of the block."""
    with as_file(files("ras_agent.data") / "sample_passages.jsonl") as path:
        yield path


def sample_passages() -> list[Passage]:
    """Return the passages of the bundled sample, in the order of the file."""
    with sample_file() as path:
        return [
            passage
            for document in load(path)
            if isinstance(document, Document)
            for passage in passages_of(document)
        ]
