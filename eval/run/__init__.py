"""Evaluation runs: questions are asked, every result is on disk when it counts, and a killed run is resumed.

    run = prepare("hotpotqa", Path("hotpot_dev.json"), Path("runs/mine"), Settings(llm="openai:gpt-4o-mini"), limit=100)
    summary = run.finish()

`prepare_run` does the same for a `Configuration` of one's own over `load_material`, for example with another asker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ras_agent.eval.run.evaluation import Configuration, Evaluation, prepare, prepare_run
    from ras_agent.eval.run.folder import RunFolder
    from ras_agent.eval.run.material import Material, load_material
    from ras_agent.eval.run.prices import Prices, load_prices
    from ras_agent.eval.run.result import Result
    from ras_agent.eval.run.runner import agent_asker, retrieval_asker
    from ras_agent.eval.run.spread import Spread
    from ras_agent.eval.run.summarise import summarise

__all__ = [
    "Configuration",
    "Evaluation",
    "Material",
    "Prices",
    "Result",
    "RunFolder",
    "Spread",
    "agent_asker",
    "load_material",
    "load_prices",
    "prepare",
    "prepare_run",
    "retrieval_asker",
    "summarise",
]

_MODULES = {
    **dict.fromkeys(("Configuration", "Evaluation", "prepare", "prepare_run"), "evaluation"),
    **dict.fromkeys(("Material", "load_material"), "material"),
    **dict.fromkeys(("Prices", "load_prices"), "prices"),
    **dict.fromkeys(("agent_asker", "retrieval_asker"), "runner"),
    "Result": "result",
    "RunFolder": "folder",
    "Spread": "spread",
    "summarise": "summarise",
}


def __getattr__(name: str) -> Any:
    # lazy: the command line reads prices without numpy and LangGraph
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
