"""Defines Agent: a compiled LangGraph graph that checks its input before it runs.

LangGraph drops unknown input keys without a word, and a thread keeps the question of its last run. So an input
with a misspelt key, or without a question, would still get an answer. `Agent` raises an error for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, GraphOutput, StateUpdate
from pydantic import BaseModel

from ras_agent.contracts.errors import ReviewError, StateError, UnknownName
from ras_agent.graphs.conversation import with_question
from ras_agent.graphs.state import Inputs, Outputs, State
from ras_agent.graphs.tool import as_function, as_tool
from ras_agent.graphs.updates import checked_limits, checked_update
from ras_agent.page.notebook import agent_cell
from ras_agent.running.budget import Limits


def _as_v1(output: GraphOutput[Any]) -> Any:
    """Convert a GraphOutput, LangGraph's second output format, to the plain output of the first format.

    The agent runs with the second format, which returns interrupts separately, so LangGraph need not collect
    each node's writes to find them.
    """
    if output.interrupts:
        return {**(output.value or {}), "__interrupt__": list(output.interrupts)}
    return output.value


class Agent(CompiledStateGraph[State, Limits, Inputs, Outputs]):
    """Runs a loop as a compiled LangGraph graph; `create_ras_agent` and its siblings return one.

    An unknown key of the input raises UnknownName. As a node of a bigger graph, the agent is given that graph's
    whole state; there it takes the keys that it knows and ignores other keys, as LangGraph does.

    A pickled agent is rebuilt from its arguments when it is loaded, so the arguments must be picklable. A copy,
    even a deep one, is the agent itself, because it holds nothing that changes between runs.
    """

    recipe: Callable[[], Agent] | None = None
    """Builds the agent again; None for an agent that was assembled from parts."""

    @classmethod
    def of(cls, graph: CompiledStateGraph[State, Limits, Inputs, Outputs]) -> Agent:
        """Return a compiled graph as an agent."""
        return cls(
            **{
                name: value
                for name, value in vars(graph).items()
                if name != "__orig_class__"
            }
        )

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        """Return a copy of this agent with the attributes in `update` replaced. LangGraph's `with_config` calls it."""
        attributes = {
            name: value
            for name, value in vars(self).items()
            if name not in ("__orig_class__", "recipe")
        }
        copied = type(self)(**attributes | (update or {}))
        copied.recipe = self.recipe
        return copied

    def __repr__(self) -> str:
        return f"<Agent {self.get_name()}: {', '.join(self.builder.nodes)}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """Return the HTML by which a notebook shows the agent. LangGraph's own picture would be drawn by a web
        service.
        """
        return {
            "text/plain": repr(self),
            "text/html": agent_cell(self.get_name(), self.builder.nodes),
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.recipe is None:
            raise TypeError(
                "this agent was assembled from parts and cannot be pickled: make it in the process that uses it, by "
                "create_ras_agent(...) or create_agent(name, ...)"
            )
        return _made_again, (self.recipe, self.config)

    # keep LangGraph's signatures and overloads; invoke and ainvoke call stream
    if not TYPE_CHECKING:

        def invoke(
            self, input, config=None, *, stream_mode="values", version="v1", **kwargs
        ):
            if stream_mode != "values" or version != "v1":
                return super().invoke(
                    input, config, stream_mode=stream_mode, version=version, **kwargs
                )
            return _as_v1(super().invoke(input, config, version="v2", **kwargs))

        async def ainvoke(
            self, input, config=None, *, stream_mode="values", version="v1", **kwargs
        ):
            if stream_mode != "values" or version != "v1":
                return await super().ainvoke(
                    input, config, stream_mode=stream_mode, version=version, **kwargs
                )
            return _as_v1(await super().ainvoke(input, config, version="v2", **kwargs))

        def stream(self, input, config=None, *, context=None, **kwargs):
            if self._resumes(input, config) and not self.get_state(config).next:
                raise ReviewError(_NOTHING_WAITS)
            limits = checked_limits(context)
            return super().stream(
                self._checked(input, config), config, context=limits, **kwargs
            )

        async def astream(self, input, config=None, *, context=None, **kwargs):
            if (
                self._resumes(input, config)
                and not (await self.aget_state(config)).next
            ):
                raise ReviewError(_NOTHING_WAITS)
            limits = checked_limits(context)
            async for part in super().astream(
                self._checked(input, config), config, context=limits, **kwargs
            ):
                yield part

        def bulk_update_state(self, config, supersteps):
            return super().bulk_update_state(config, _checked_steps(supersteps))

        async def abulk_update_state(self, config, supersteps):
            return await super().abulk_update_state(config, _checked_steps(supersteps))

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Return the agent as a LangChain tool that takes a `question` and returns the answer with its sources,
        as text.

        See ras_agent.graphs.tool.

        Raises:
            TypeError: for `args_schema` or `arg_types`, which LangChain's own method accepts.
        """
        if args_schema is not None or arg_types is not None:
            raise TypeError(
                "an agent's tool has only the argument `question`: give only name and description"
            )
        return as_tool(self, name, description)

    def as_function(
        self, name: str | None = None, description: str | None = None
    ) -> Callable[[str], str]:
        """Return the agent as a plain function that takes a `question` and returns the answer with its sources,
        as text.

        Other frameworks can make a tool of it, because they read a tool's schema from type hints and docstring.
        """
        return as_function(self, name, description)

    def _checked(self, inputs: Any, config: RunnableConfig | None) -> Any:
        """Check the input, and return it with the key `question` filled in, from its messages if needed.

        None and a Command resume a run, so they are returned unchanged.
        """
        if inputs is None or isinstance(inputs, Command):
            return inputs
        if not isinstance(inputs, Mapping) and _is_within_a_graph(config):
            return inputs
        if not isinstance(inputs, Mapping):
            raise StateError(_ASK_WITH.format(given=inputs))
        keys = tuple(self.builder.schemas[self.builder.input_schema])
        for key in () if _is_within_a_graph(config) else inputs:
            if key not in keys:
                raise UnknownName("input key", key, keys)
        return with_question({key: inputs[key] for key in keys if key in inputs})

    def _resumes(self, inputs: Any, config: RunnableConfig | None) -> bool:
        """Tell whether the input is a person's decision that resumes a run on one of the agent's own threads."""
        is_decision = isinstance(inputs, Command) and inputs.resume is not None
        return (
            is_decision
            and isinstance(self.checkpointer, BaseCheckpointSaver)
            and not _is_within_a_graph(config)
        )


def _made_again(recipe: Callable[[], Agent], config: RunnableConfig | None) -> Agent:
    return recipe().with_config(config)


_ASK_WITH = "an agent is asked with a dictionary, {{'question': 'Who ...?'}} or {{'messages': [...]}}, got {given!r:.200}"
_NOTHING_WAITS = (
    "Command(resume=...): no run waits for a decision on this thread; ask a question there, or give the thread_id of "
    "the run that waits"
)


def _is_within_a_graph(config: RunnableConfig | None) -> bool:
    """Tell whether the agent is called by a node or a tool of a running graph.

    A caller inside a node may pass a `configurable` of its own, which hides that of the running graph. So both
    are checked.
    """
    running = var_child_runnable_config.get()
    return any(
        (one or {}).get("configurable", {}).get("checkpoint_ns")
        for one in (config, running)
    )


def _checked_steps(
    supersteps: Sequence[Sequence[StateUpdate]],
) -> list[list[StateUpdate]]:
    """Return the state updates with checked values. Raises as `checked_update` does."""
    return [[_checked_step(update) for update in updates] for updates in supersteps]


def _checked_step(update: StateUpdate) -> StateUpdate:
    if not isinstance(update.values, Mapping) or update.as_node == START:
        return update
    return update._replace(values=checked_update(update.values))
