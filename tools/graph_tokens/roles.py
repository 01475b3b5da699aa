"""Plans and answers by a GraphLLM: roles on a chat model that also reads the graph through soft tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ras_agent.contracts.errors import WeightsError
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.chat.client import Chat, ChatSettings
from ras_agent.tools.chat.models import server_address
from ras_agent.tools.graph_tokens.chat import GraphLLMChat
from ras_agent.tools.graph_tokens.graph_reader import VIEW
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.roles import RoleOptions

if TYPE_CHECKING:
    from ras_agent.tools.graph_tokens.served import ServedGraphLLM

    GraphModel = GraphLLMChat | ServedGraphLLM

PROMPTS = "prompts"
"""The name of the folder, inside a GraphLLM's folder, with the prompts it was trained with."""


class _OnGraphLLM:
    """Gives a role on a chat model, as a mixin, the soft tokens of a GraphLLM."""

    def __init__(
        self,
        model: GraphModel,
        *,
        settings: ChatSettings | None = None,
        **options: Any,
    ) -> None:
        trained = Path(model.folder).expanduser() / PROMPTS
        # layout and prompts are those of the training where the caller chose none
        chosen = {
            **options,
            "layout": options.get("layout") or model.graph_llm.config.layout,
            "prompts_dir": options.get("prompts_dir")
            or (trained if trained.is_dir() else None),
        }
        chat = Chat(model, f"graphllm:{model.folder}", settings)
        super().__init__(chat, **chosen)  # type: ignore[call-arg]
        self._made_of = (model, {"settings": settings, **options})

    def without_graph_tokens(self) -> Self:
        """Return the same role, but with a model that reads the graph only as text."""
        model, options = self._made_of
        reads_text = model.model_copy(update={"reads_graphs": False})
        return type(self)(reads_text, **options)


class GraphLLMPlanner(_OnGraphLLM, LLMPlanner):
    """Plans by a GraphLLM (RAS, eq. 2). The options are LLMPlanner's."""


class GraphLLMAnswerer(_OnGraphLLM, LLMAnswerer):
    """Answers by a GraphLLM (RAS, eq. 8). The options are LLMAnswerer's."""


def graphllm_planner(folder: str, options: RoleOptions) -> GraphLLMPlanner:
    """Build the planner "graphllm:FOLDER". Layout and prompts default to those of its training.

    Raises WeightsError for a folder without a GraphLLM, and MissingExtra without the packages of the extra `llm`.
    """
    return GraphLLMPlanner(
        _model(folder, options.chat),
        follows_any=options.follows_any,
        **_of_both(options),
    )


def graphllm_answerer(folder: str, options: RoleOptions) -> GraphLLMAnswerer:
    """Build the answerer "graphllm:FOLDER". Layout and prompts default to those of its training.

    Raises WeightsError for a folder without a GraphLLM, and MissingExtra without the packages of the extra `llm`.
    """
    return GraphLLMAnswerer(
        _model(folder, options.chat),
        style=options.style,
        may_abstain=options.may_abstain,
        asks_anyway=options.asks_anyway,
        answer_tokens=options.answer_tokens,
        **_of_both(options),
    )


def _of_both(options: RoleOptions) -> dict[str, Any]:
    """Return the options that planner and answerer have in common."""
    return {
        "settings": options.chat,
        "prompts_dir": options.prompts_dir,
        "few_shot": options.few_shot,
        "task": options.task,
        "layout": options.layout,
    }


def _model(spec: str, settings: ChatSettings) -> GraphModel:
    """Return the chat model that `spec` names: a folder, or `folder@http://host:port/v1#model` for one on vLLM."""
    of_calls = {"temperature": settings.temperature, "timeout": settings.timeout}
    options: dict[str, Any] = {
        name: value for name, value in of_calls.items() if value is not None
    }
    folder, served, address = spec.partition("@http")
    if (Path(folder).expanduser() / VIEW).is_file():
        raise WeightsError(
            f"{folder}: this model was trained to read one graph, not a run's evidence: use graphqa:{folder}"
        )
    if not served:
        return GraphLLMChat.in_folder(folder, **options)
    from ras_agent.tools.graph_tokens.served import ServedGraphLLM

    return ServedGraphLLM.at(
        folder, *server_address(f"http{address}", f"graphllm:{folder}@"), **options
    )
