"""ras-agent: retrieval-and-structuring agents for questions that need several hops."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ras_agent.budget import Limits
    from ras_agent.graphs.ircot import create_ircot_agent
    from ras_agent.graphs.ras import create_ras_agent
    from ras_agent.graphs.single_shot import create_single_shot_agent
    from ras_agent.question_graph import QuestionGraph
    from ras_agent.records import Passage, Triple

__version__ = "0.1.0"

__all__ = [
    "Limits",
    "Passage",
    "QuestionGraph",
    "Triple",
    "create_ircot_agent",
    "create_ras_agent",
    "create_single_shot_agent",
]

_HOMES = {
    "Limits": "ras_agent.budget",
    "Passage": "ras_agent.records",
    "QuestionGraph": "ras_agent.question_graph",
    "Triple": "ras_agent.records",
    "create_ircot_agent": "ras_agent.graphs.ircot",
    "create_ras_agent": "ras_agent.graphs.ras",
    "create_single_shot_agent": "ras_agent.graphs.single_shot",
}


def __getattr__(name: str) -> Any:
    # lazy, so that `import ras_agent` does not pay for langgraph (about a second)
    if name not in _HOMES:
        raise AttributeError(f"module 'ras_agent' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
