"""ReAct: a model that calls tools searches, looks around in what was found, and says when it is enough.

ReAct: Synergizing Reasoning and Acting in Language Models (Yao et al., 2023), over the same retriever, extractor,
question graph and answerer as the other loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.store.base import BaseStore

from ras_agent.budget import Limits
from ras_agent.graphs.assembly import (
    Agent,
    AnyAnswerer,
    AnyCheckpointer,
    AnyExtractor,
    AnyIndex,
    AnyPlanner,
    AnyRetriever,
    AnyRewriter,
)
from ras_agent.graphs.from_settings import roles_of
from ras_agent.graphs.ras import planning_loop
from ras_agent.graphs.registry import GraphSpec
from ras_agent.review import PLACES
from ras_agent.settings import Settings
from ras_agent.tools.plan.tool_planner import tool_planner


def create_react_agent(
    *,
    index: AnyIndex = None,
    planner: AnyPlanner = None,
    answerer: AnyAnswerer = None,
    extractor: AnyExtractor = None,
    retriever: AnyRetriever = None,
    rewriter: AnyRewriter = None,
    limits: Limits | None = None,
    preset: str | None = None,
    checkpointer: AnyCheckpointer = None,
    store: BaseStore | None = None,
    review: Sequence[str] | None = None,
    settings: Settings | None = None,
    task: str = "",
) -> Agent:
    """Make an agent whose planner calls tools; parameters, input and output as for `create_ras_agent`.

    planner: a chat model that can call tools, or a string. Its tools are `search`, `neighbours` (the facts of the
        question's graph about an entity), `read` (a passage that was found, whole) and `finish`. Looks are answered at
        once; a search is a hop, whose facts join the graph. The answerer writes the answer, with its citations.
    preset: none; a preset is RAS's. Raises SettingsError without a model, or for one that cannot call tools.
    """
    roles = roles_of("react", settings, index, task, planner=planner, extractor=extractor, answerer=answerer,
                     retriever=retriever, rewriter=rewriter, limits=limits, preset=preset,
                     review=review, store=store)  # fmt: skip
    return planning_loop("react", roles, checkpointer, own_first=True)


REACT = GraphSpec(create_react_agent, planner=tool_planner, review=PLACES)
