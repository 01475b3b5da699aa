"""A trace in a file, in the form that the file's name asks for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ras_agent.errors import SettingsError
from ras_agent.question_graph.export import to_graphml, to_mermaid
from ras_agent.trace import Trace

__all__ = ["SUFFIXES", "check_target", "save_trace"]


def _html(trace: Trace) -> str:
    from ras_agent.page.graph_page import trace_html

    return trace_html(trace)


_FORMS: dict[str, Callable[[Trace], str]] = {
    ".html": _html,
    ".json": lambda trace: trace.to_json(indent=2) + "\n",
    ".graphml": lambda trace: to_graphml(trace.graph),
    ".mmd": lambda trace: to_mermaid(trace.graph),
}
SUFFIXES = tuple(_FORMS)


def check_target(path: Path) -> Path:
    """`path`, if a trace can be saved there. Raises SettingsError: better before a run than after it."""
    if path.suffix.lower() not in _FORMS:
        raise SettingsError(f"cannot save to {path}: its name must end in one of {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise SettingsError(f"cannot save to {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise SettingsError(f"cannot save to {path}: it is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise SettingsError(f"cannot save to {path}: it may not be written")
    return path


def save_trace(trace: Trace, paths: Sequence[Path]) -> None:
    """Write the trace, or its graph for .graphml and .mmd. Raises the first OSError, when all have been tried."""
    errors: list[OSError] = []
    for path in paths:
        try:
            path.write_text(_FORMS[path.suffix.lower()](trace), encoding="utf-8")
        except OSError as error:
            errors.append(error)
    if errors:
        raise errors[0]
