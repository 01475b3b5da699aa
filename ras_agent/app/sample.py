"""The bundled sample corpus: short encyclopaedic passages to try the agent on."""

from __future__ import annotations

from importlib.resources import as_file, files

from ras_agent.records import Passage
from ras_agent.tools.index.chunk import passages_of
from ras_agent.tools.index.load import load
from ras_agent.tools.index.load_document import Document

__all__ = ["sample_passages"]


def sample_passages() -> list[Passage]:
    """The passages of ras_agent/data/sample_passages.jsonl, in order."""
    with as_file(files("ras_agent.data") / "sample_passages.jsonl") as path:
        return [
            passage for document in load(path) if isinstance(document, Document) for passage in passages_of(document)
        ]
