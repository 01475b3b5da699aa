"""Defines AgentGraph, on which every loop is built: nodes under limits, and the first nodes, which all loops
share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import START, StateGraph

from ras_agent.graphs import nodes
from ras_agent.graphs.agent import Agent
from ras_agent.graphs.memory import ThreadMemory, recall
from ras_agent.graphs.node import Node, NodeBody
from ras_agent.graphs.parts import AgentParts, AnyCheckpointer
from ras_agent.graphs.records import Records
from ras_agent.graphs.state import Inputs, Outputs, Question, ReviewedState, State, Told
from ras_agent.running.budget import Limits
from ras_agent.tools.retrieve.search import scope_of

# The limits of the run end it; LangGraph's own limit must not end it first, however large max_hops is.
_RECURSION_LIMIT = 1_000_000


class Route(Runnable[Any, str]):
    """Chooses the next node by calling a function of the state.

    LangGraph would accept the plain function, but in an asynchronous graph it runs functions in threads and
    reports each call to every callback, which costs as much as the rest of a hop. As for a function, the
    annotation of the argument names the keys of the state that LangGraph reads.
    """

    def __init__(self, choose: Callable[[Any], str]) -> None:
        """Take a function from the state to the name of the next node."""
        self._choose = choose
        self.name = choose.__name__
        self.__annotations__ = get_type_hints(choose)

    def __call__(self, state: Any) -> str:
        """Return the name of the next node."""
        return self._choose(state)

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> str:
        """Return the name of the next node."""
        return self._choose(input)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> str:
        """Return the name of the next node."""
        return self._choose(input)


class AgentGraph(StateGraph[State, Limits, Inputs, Outputs]):
    """Builds a graph over the agent's state. Its nodes share the limits and one cache of records.

    A run without its own limits gets those of `parts`. The preset of `parts` fixes some of the limits.
    """

    def __init__(self, parts: AgentParts) -> None:
        """Begin a graph without nodes for an agent with these parts."""
        schemas: Any = (Question, Told) if parts.brief else (Inputs, Outputs)
        state = ReviewedState if parts.review else State
        super().__init__(
            state, Limits, input_schema=schemas[0], output_schema=schemas[1]
        )
        self._parts = parts
        self._records = Records()
        if parts.store is None:
            self.memory = None
        else:
            self.memory = ThreadMemory(parts.store, scope_of(parts.retriever))

    def add_body(self, name: str, body: NodeBody) -> None:
        """Add a node that runs `body`.

        The node reads the keys in the annotation of the body's argument `state`, or all keys without an annotation.
        """
        node = Node(name, body, self._bounds, self._records)
        self.add_node(name, node, input_schema=get_type_hints(body).get("state"))

    def add_route(
        self, name: str, choose: Callable[[Any], str], ends: Sequence[str]
    ) -> None:
        """Route from the node `name` to one of the nodes `ends`, which `choose` names.

        `choose` is given the keys of the state that its argument's annotation names.
        """
        self.add_conditional_edges(name, Route(choose), list(ends))

    def add_beginning(
        self,
        following: str,
        *,
        least_steps: int = nodes.LEAST_STEPS,
        stop_reason: str = "",
        static: bool = False,
    ) -> None:
        """Add the nodes that run before `following`.

        They are `begin`, `rewrite` (for follow-up questions, if there is a rewriter), and `recall` (if there is
        a store).

        Args:
            following: the first node of the loop.
            least_steps: the smallest number of steps of a run, not counting `rewrite` and `recall`.
            stop_reason, static: see `begin`.
        """
        parts = self._parts
        least_steps = least_steps + (self.memory is not None)
        begin = nodes.begin(
            least_steps=least_steps,
            stop_reason=stop_reason,
            static=static,
            reviewed=bool(parts.review),
        )
        self.add_body("begin", begin)
        self.add_edge(START, "begin")
        if self.memory is not None:
            self.add_body("recall", recall(self.memory))
            self.add_edge("recall", following)
            following = "recall"
        if parts.rewriter is None:
            self.add_edge("begin", following)
            return
        self.add_body("rewrite", nodes.rewrite(parts.rewriter))
        self.add_route(
            "begin",
            lambda state: "rewrite" if state["turns"] else following,
            ["rewrite", following],
        )
        self.add_edge("rewrite", following)

    def add_answer(self) -> None:
        """Add the node that answers and ends every run."""
        parts = self._parts
        body = nodes.answer(
            parts.answerer,
            self.memory,
            parts.pruner,
            parts.judge,
            asks_anyway=parts.preset.asks_anyway,
            fallback=parts.fallbacks.get("answerer"),
            on_conflict=parts.preset.on_conflict,
            functional=parts.functional,
            sureness=parts.sureness,
        )
        self.add_body("answer", body)

    def agent(self, checkpointer: AnyCheckpointer = None) -> Agent:
        """Return the compiled graph as an agent, with the agent's own name or that of the loop."""
        compiled = self.compile(
            checkpointer, name=self._parts.name or self._parts.graph
        )
        return Agent.of(compiled).with_config(recursion_limit=_RECURSION_LIMIT)

    @property
    def limits(self) -> Limits:
        """Return the limits of a run that does not set its own."""
        return self._bounds(None)

    def _bounds(self, limits: Limits | None) -> Limits:
        return self._parts.preset.limits(limits or self._parts.limits)
