"""Names of tools and where they live: one lazy table a kind, widened by the entry-point group `ras_agent.<kind>`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from ras_agent.errors import UnknownName

__all__ = ["FACTORIES", "factory", "names"]

FACTORIES: dict[str, dict[str, str]] = {
    "planner": {
        "offline": "ras_agent.tools.offline.roles:offline_planner",
        "llm": "ras_agent.tools.plan.llm:LLMPlanner",
    },
    "extractor": {
        "offline": "ras_agent.tools.offline.roles:offline_extractor",
        "llm": "ras_agent.tools.structure.llm:LLMExtractor",
    },
    "answerer": {
        "offline": "ras_agent.tools.offline.roles:offline_answerer",
        "llm": "ras_agent.tools.answer.llm:LLMAnswerer",
    },
    "reasoner": {
        "offline": "ras_agent.tools.offline.roles:offline_reasoner",
        "llm": "ras_agent.tools.plan.llm_reasoner:LLMReasoner",
    },
    "retriever": {
        "bm25": "ras_agent.tools.retrieve.bm25:bm25",
        "dense": "ras_agent.tools.retrieve.dense:dense",
        "hybrid": "ras_agent.tools.retrieve.hybrid:hybrid",
        "graph": "ras_agent.tools.retrieve.graph:graph_mix",
        "gfm": "ras_agent.tools.retrieve.gfm:gfm",
        "gfm+dense": "ras_agent.tools.retrieve.gfm:gfm_dense",
        "ppr": "ras_agent.tools.retrieve.ppr:ppr",
        "ppr+dense": "ras_agent.tools.retrieve.ppr:ppr_dense",
        "pcst": "ras_agent.tools.retrieve.pcst:pcst",
        "paths": "ras_agent.tools.retrieve.paths:paths",
        "paths+dense": "ras_agent.tools.retrieve.mixtures:paths_dense",
        "pcst+dense": "ras_agent.tools.retrieve.mixtures:pcst_dense",
    },
}


def names(kind: str) -> tuple[str, ...]:
    """All names known for a kind, the table's and the entry points'."""
    return tuple({**FACTORIES[kind], **{entry.name: "" for entry in entry_points(group=f"ras_agent.{kind}")}})


def factory(kind: str, name: str) -> Callable[..., Any]:
    """The factory registered as `name`. Raises UnknownName with the names there are."""
    target = FACTORIES[kind].get(name)
    if target is None:
        for entry in entry_points(group=f"ras_agent.{kind}", name=name):
            loaded: Callable[..., Any] = entry.load()
            return loaded
        raise UnknownName(kind, name, names(kind))
    module, _, attribute = target.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute)
    return found
