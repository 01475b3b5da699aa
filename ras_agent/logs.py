"""Writes the log of a service, one record for each node of a run, as JSON lines or through the program's own
handler.

    from ras_agent.logs import log_to

    log_to("ras-agent.log")  # or "-" for the standard error

A record names the question by an id and holds counts, ids, seconds, tokens and failures. The texts of
questions, sub-queries, answers and errors are included only with `text=True`, those of passages never. Secret
keys are masked in every message.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

LOGGER = logging.getLogger("ras_agent")
LOGGER.addHandler(logging.NullHandler())


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON: time, level, message, then the fields of `record.ras_agent`.

    If `text` is true, the fields of `record.ras_agent_text` are added.
    """

    def __init__(self, *, text: bool = False) -> None:
        super().__init__()
        self.text = text

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(
            timespec="milliseconds"
        )
        fields = {
            "time": time,
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        fields |= getattr(record, "ras_agent", {})
        if self.text:
            fields |= getattr(record, "ras_agent_text", {})
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def log_to(
    place: str | Path, *, level: int = logging.INFO, text: bool = False
) -> logging.Handler:
    """Append the log to the file `place` as JSON lines, or write it to the standard error if `place` is "-".

    If `text` is true, questions, sub-queries and answers are logged too. Returns the handler; remove it with
    `logging.getLogger("ras_agent").removeHandler`. Raises OSError for a file that cannot be written.
    """
    stderr = str(place) == "-"
    handler = (
        logging.StreamHandler(sys.stderr)
        if stderr
        else logging.FileHandler(place, encoding="utf-8", delay=False)
    )
    handler.setFormatter(JsonLines(text=text))
    handler.setLevel(level)
    LOGGER.addHandler(handler)
    LOGGER.setLevel(min(level, LOGGER.level or level))
    return handler


def shows_text() -> bool:
    """Tell whether a handler of the log wants the texts of questions and answers; otherwise records do not
    contain them.
    """
    formatters = (handler.formatter for handler in LOGGER.handlers)
    return any(
        isinstance(formatter, JsonLines) and formatter.text for formatter in formatters
    )
