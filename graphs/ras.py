"""RAS: plan, retrieve, structure, merge, and plan again, until the question's graph holds the answer."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.store.base import BaseStore

from ras_agent.budget import Limits
from ras_agent.graphs import decide, nodes
from ras_agent.graphs import review as reviews
from ras_agent.graphs.assembly import (
    Agent,
    AgentGraph,
    AnyAnswerer,
    AnyCheckpointer,
    AnyExtractor,
    AnyIndex,
    AnyPlanner,
    AnyRetriever,
    AnyRewriter,
    Preset,
    preset_named,
)
from ras_agent.graphs.from_settings import Roles, roles_of
from ras_agent.graphs.registry import GraphSpec
from ras_agent.review import PLACES
from ras_agent.settings import Settings


def create_ras_agent(
    *,
    index: AnyIndex = None,
    planner: AnyPlanner = None,
    answerer: AnyAnswerer = None,
    extractor: AnyExtractor = None,
    retriever: AnyRetriever = None,
    rewriter: AnyRewriter = None,
    limits: Limits | None = None,
    preset: str | Preset | None = None,
    checkpointer: AnyCheckpointer = None,
    store: BaseStore | None = None,
    review: Sequence[str] | None = None,
    settings: Settings | None = None,
    task: str = "",
) -> Agent:
    """Make the agent of the RAS paper, a compiled LangGraph graph.

    settings: everything that the command line can set (docs/settings.md); an argument given here wins over its field.
        What neither names is the default of `Settings`: offline roles over BM25.
    planner, answerer, extractor: an object that fits the protocol, a chat model or a runnable around one, or a string
        (see ras_agent.tools.roles). An extractor that nobody names follows the planner if that is a model or a
        registered extractor, else it is the offline one.
    retriever: an object, or a registered name over `index`, which each run sees as of its last commit.
    rewriter: makes a conversation's next question stand alone, of which a first question costs nothing; like the
        extractor it follows the planner, and else completes it by rule.
    limits: of every run, unless `invoke(..., context=Limits(...))` gives others.
    preset: "paper" is the loop that was published; a planner or answerer given as an object decides itself what it
        shows its model and whether it abstains. A Preset of your own is taken too.
    review: where a run waits for a person: any of "plan", "facts" and "answer" (ras_agent.review has what is shown and
        decided there). A checkpointer is then needed.
    store: a LangGraph Store in which each user's thread keeps the facts that it has found, for its next question
        (ras_agent.graphs.memory). User and thread are named by `configurable` of the run: user_id, thread_id.
    task: a task's own instruction, which the roles on chat models show.

    The input's keys are in ras_agent.graphs.state.Inputs, the output's in Outputs. A tool that fails in a run is listed
    in the output's `failures`; mistakes in code and set-up are raised (ras_agent.graphs.node.RAISED has which).
    Raises RasError children for specs that cannot be resolved.
    """
    roles = roles_of("ras", settings, index, task, planner=planner, extractor=extractor, answerer=answerer,
                     retriever=retriever, rewriter=rewriter, limits=limits, preset=preset,
                     review=review, store=store)  # fmt: skip
    return planning_loop("ras", roles, checkpointer, static=True)


def planning_loop(
    name: str, roles: Roles, checkpointer: AnyCheckpointer, *, static: bool = False, own_first: bool = False
) -> Agent:
    """Return the graph of a loop in which a planner chooses each search.

    static: whether it takes `static_passages`. own_first: whether the first search is in the planner's own words.
    """
    fixed = preset_named(roles.preset)
    graph = AgentGraph(roles.limits, fixed)
    more = reviews.more_steps(roles)
    begin = nodes.begin(
        least_steps=nodes.LEAST_STEPS + more + bool(roles.memory), static=static, reviewed=bool(roles.review)
    )
    decided = decide.plan(roles.planner, from_memory=fixed.from_memory, own_first=own_first, more_steps=more)
    graph.add_beginning(begin, roles.rewriter, "plan", roles.memory)
    graph.add_body("plan", decided)
    graph.add_body("retrieve", nodes.retrieve(roles.retriever))
    graph.add_body("structure", nodes.structure(roles.extractor))
    graph.add_body("merge", nodes.merge())
    graph.add_body("answer", nodes.answer(roles.answerer, roles.memory))

    graph.add_edge("retrieve", "structure")
    graph.add_edge("merge", "plan")
    # plan -> retrieve or answer, structure -> merge, answer -> END
    reviews.add_edges(graph, roles, decides="plan")
    return graph.agent(name, checkpointer)


RAS = GraphSpec(create_ras_agent, static=True, presets=True, review=PLACES)
