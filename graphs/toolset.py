"""Chooses the tools that a model is offered over an index, and the retrievers behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from langchain_core.tools import BaseTool

from ras_agent.config.registry import find, is_registered, names
from ras_agent.contracts.errors import UnknownName
from ras_agent.running.protocols import Retriever
from ras_agent.tools.plan.graph_tools import (
    FINISH,
    TOOLS,
    Tool,
    tool_of_retriever,
    tools_over,
)
from ras_agent.tools.retrieve.tool_adapter import ToolRetriever

AnyTool: TypeAlias = str | BaseTool


@dataclass(frozen=True, slots=True)
class Toolset:
    """Holds tools, and the retrievers with which they search, by name."""

    tools: tuple[Tool, ...] = TOOLS
    retrievers: Mapping[str, Retriever] = field(default_factory=dict)


def toolset(
    chosen: Sequence[AnyTool] | None, retrievers: Mapping[str, Retriever]
) -> Toolset:
    """Return the tools that a model is offered over the retrievers of an index; `finish` is always one of them.

    Args:
        chosen: names of tools (search, neighbours, paths, read, finish), names of retrievers, each of which becomes a
            separate tool, names of plug-ins of the kind "tool", and LangChain tools that take a query and return
            passages. None for every tool of the index.

    Raises:
        UnknownName: for a tool that the index cannot serve.
        TypeError: for an object that is not a tool.
        SettingsError: for a LangChain tool with an unclear query argument.
    """
    known = tools_over(retrievers)
    if chosen is None:
        return Toolset(known, retrievers)
    by_name = {tool.name: tool for tool in known}
    for name in retrievers:
        by_name.setdefault(name, tool_of_retriever(name))
    offered: dict[str, Tool] = {}
    every = dict(retrievers)
    for item in chosen:
        if isinstance(item, str) and item not in by_name:
            item = _plugin(item, tuple(by_name))
        if isinstance(item, str):
            offered[item] = by_name[item]
        elif isinstance(item, BaseTool):
            every[item.name] = ToolRetriever(item)
            offered[item.name] = tool_of_retriever(item.name, item.description)
        else:
            raise TypeError(
                f"a tool is a name ({', '.join(by_name)}) or a LangChain tool that takes a query, got {item!r:.200}"
            )
    offered.setdefault(FINISH.name, FINISH)
    return Toolset(tuple(offered.values()), every)


def _plugin(name: str, known: tuple[str, ...]) -> AnyTool:
    """Return the tool registered under a name.

    Raises:
        UnknownName: for an unknown name; it lists the tools of the index and of plug-ins.
    """
    if not is_registered("tool", name):
        every = (*known, *names("tool"))
        raise UnknownName("tool over this index", name, every)
    make = find("tool", name)
    tool: AnyTool = make()
    return tool
