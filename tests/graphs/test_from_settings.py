"""An agent's parts come from settings and from what its graph's spec says."""

from typing import Any

import pytest

from ras_agent import registry
from ras_agent.errors import SettingsError
from ras_agent.graphs.from_settings import agent_from_settings, role_specs, roles_from_settings
from ras_agent.graphs.registry import GraphSpec, graph_spec
from ras_agent.graphs.single_shot import create_single_shot_agent
from ras_agent.records import Passage
from ras_agent.settings import Settings

CORPUS = [Passage("bell", "Bell was born in Edinburgh.")]
MODEL = "openai:gpt-4o-mini"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """registered(...): a GraphSpec under the name "mine", for this test alone."""
    monkeypatch.setitem(registry.PLUGINS, "graph", dict(registry.PLUGINS["graph"]))
    return lambda *args, **options: registry.register("graph", "mine", GraphSpec(*args, **options))


@pytest.mark.parametrize(
    ("spec", "given", "roles"),
    [
        ({}, {"planner": MODEL}, {"planner": MODEL, "answerer": "offline", "extractor": MODEL}),
        ({"planner": None}, {"answerer": MODEL}, {"answerer": MODEL, "extractor": MODEL}),
        ({"facts": "if needed"}, {"planner": MODEL}, {"planner": MODEL, "answerer": "offline", "extractor": "offline"}),
        ({"facts": "if needed"}, {"llm": MODEL}, {"planner": MODEL, "answerer": MODEL}),
        ({"facts": "never"}, {"extractor": MODEL}, {"planner": "offline", "answerer": "offline"}),
    ],
)
def test_a_graph_has_the_roles_that_its_spec_names(
    registered: Any, spec: dict[str, Any], given: dict[str, Any], roles: dict[str, str]
) -> None:
    registered(create_single_shot_agent, **spec)
    assert role_specs(Settings(graph="mine", **given)) == roles


def test_few_shot_and_task_reach_the_roles_of_ircot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "none")
    model = "vllm:http://127.0.0.1:9/v1#m"
    roles = roles_from_settings(Settings(graph="ircot", llm=model, few_shot=True), CORPUS, task="Name a river.")
    for role, prompt in ((roles.planner, "next-sentence-few-shot"), (roles.answerer, "reader-few-shot")):
        assert role._prompt.name == prompt  # type: ignore[union-attr]
        assert role._task == "Name a river."  # type: ignore[union-attr]


def test_a_graphs_own_kind_of_planner_is_made_of_what_the_user_writes(registered: Any) -> None:
    made: list[object] = []

    def resolve(spec: str, *, few_shot: bool) -> object:
        made.append((spec, few_shot))
        return made

    def build(*, planner: object, **parts: Any) -> Any:
        assert planner is made
        return create_single_shot_agent(**parts)

    registered(build, planner=resolve, facts="never")
    agent = agent_from_settings(Settings(graph="mine", planner="my:words", few_shot=True), CORPUS)
    assert made == [("my:words", True)]
    assert agent.invoke({"question": "Where was Bell born?"})["answer"] == "Edinburgh"


def test_a_preset_is_refused_by_a_graph_that_takes_none() -> None:
    with pytest.raises(SettingsError, match="graph 'ircot' takes no preset, got 'paper'"):
        agent_from_settings(Settings(graph="ircot", preset="paper"), CORPUS)


def test_a_plug_in_that_is_no_spec_is_a_type_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PLUGINS, "graph", {"mine": create_single_shot_agent})
    with pytest.raises(TypeError, match=r"graph 'mine' must be a ras_agent\.graphs\.registry\.GraphSpec, got"):
        graph_spec("mine")
