"""Reads and writes questions, passages and runs in the file formats of other tools.

When a file is read, its format is recognised by a record's keys; when it is written, the format is chosen by
name.

    load_questions("flashrag/hotpotqa/dev.jsonl")
    load_passages("beir/scifact/corpus.jsonl")
"""

from ras_agent.eval.formats.exported import Exported
from ras_agent.eval.formats.registry import (
    Format,
    Look,
    find_format,
    format_to_write,
    formats,
    load_passages,
    load_questions,
    passage_format,
    question_format,
    read_question,
    read_rows,
    registered,
    writers,
)

__all__ = [
    "Exported",
    "Format",
    "Look",
    "find_format",
    "format_to_write",
    "formats",
    "load_passages",
    "load_questions",
    "passage_format",
    "question_format",
    "read_question",
    "read_rows",
    "registered",
    "writers",
]
