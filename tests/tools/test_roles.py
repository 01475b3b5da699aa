"""A role is an object, a chat model, or a string."""

import sys
from types import ModuleType
from typing import Any

import pytest

from ras_agent.config import registry
from ras_agent.contracts.errors import MissingExtra, SettingsError, UnknownName
from ras_agent.contracts.records import Plan
from ras_agent.question_graph import QuestionGraph
from ras_agent.running.protocols import Answerer, Extractor, Planner, Reasoner
from ras_agent.tools.answer.llm import LLMAnswerer
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.plan.llm_reasoner import LLMReasoner
from ras_agent.tools.roles import (
    RoleOptions,
    resolve_answerer,
    resolve_extractor,
    resolve_planner,
    resolve_reasoner,
    role_name,
)
from ras_agent.tools.structure.llm import LLMExtractor
from tests.messages import says

KINDS = [
    (resolve_planner, Planner, LLMPlanner, "planner"),
    (resolve_extractor, Extractor, LLMExtractor, "extractor"),
    (resolve_answerer, Answerer, LLMAnswerer, "answerer"),
    (resolve_reasoner, Reasoner, LLMReasoner, "reasoner"),
]
each_kind = pytest.mark.parametrize(
    ("resolve", "protocol", "on_a_model", "kind"), KINDS, ids=[row[3] for row in KINDS]
)


class OwnPlanner:
    made_from: Any = None

    def plan(self, question: str, graph: QuestionGraph, steps: Any) -> Plan:
        return Plan("sufficient")


def test_an_object_that_fits_is_taken_as_it_is() -> None:
    own = OwnPlanner()
    assert resolve_planner(own) is own


@each_kind
def test_an_object_that_does_not_fit_is_a_type_error(
    resolve: Any, protocol: Any, on_a_model: Any, kind: str
) -> None:
    with pytest.raises(
        TypeError,
        match=says(
            f"the {kind}",
            "object with the methods",
            f"ras_agent.protocols.{protocol.__name__}",
            "got 42",
        ),
    ):
        resolve(42)


def test_a_class_in_place_of_an_object_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="OwnPlanner"):
        resolve_planner(OwnPlanner)


@each_kind
def test_a_chat_model_plays_every_role(
    resolve: Any, protocol: Any, on_a_model: Any, kind: str, scripted_model: Any
) -> None:
    role = resolve(scripted_model())
    assert isinstance(role, on_a_model)
    assert isinstance(role, protocol)
    assert role_name(role) == "scripted"


@each_kind
def test_a_string_names_a_served_model(
    resolve: Any, protocol: Any, on_a_model: Any, kind: str
) -> None:
    role = resolve(
        "vllm:http://localhost:1/v1#m", RoleOptions(chat=ChatSettings(timeout=1.0))
    )
    assert isinstance(role, on_a_model)
    assert role_name(role) == "vllm:http://localhost:1/v1#m"


@each_kind
def test_offline_is_a_registered_name(
    resolve: Any, protocol: Any, on_a_model: Any, kind: str
) -> None:
    assert isinstance(resolve("offline"), protocol)
    assert not isinstance(resolve("offline"), on_a_model)


@each_kind
def test_an_unknown_name_lists_the_known_ones(
    resolve: Any, protocol: Any, on_a_model: Any, kind: str
) -> None:
    with pytest.raises(
        UnknownName,
        match=says(f"unknown {kind} 'oracle'", "known: <provider>:<model>", "offline"),
    ):
        resolve("oracle")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o-mini", "openai:gpt-4o-mini"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("qwen3", "ollama:qwen3"),
    ],
)
def test_the_bare_name_of_a_model_is_proposed_with_its_provider(
    name: str, meant: str
) -> None:
    with pytest.raises(
        UnknownName,
        match=says(f"unknown planner '{name}'", "known:", f"did you mean {meant}?"),
    ):
        resolve_planner(name)


def test_the_chat_model_roles_own_name_is_no_spec() -> None:
    with pytest.raises(UnknownName, match="unknown planner 'llm'"):
        resolve_planner("llm")


def test_options_reach_the_role_on_a_model(scripted_model: Any) -> None:
    role = resolve_answerer(
        scripted_model("Answer: yes"), RoleOptions(style="boolean", may_abstain=False)
    )
    assert role.answer("Is it?", QuestionGraph(), (), ()).text == "Yes"


def test_options_that_a_registered_name_or_an_object_does_not_know_leave_it_alone() -> (
    None
):
    resolve_planner("offline", RoleOptions(few_shot=True))
    resolve_planner(OwnPlanner(), RoleOptions(few_shot=True))


@pytest.fixture
def own_planners(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner registered as "own", made from a path and an option; "misspelt" asks for an option by a wrong name."""

    def open_planner(path: str, options: RoleOptions) -> OwnPlanner:
        planner = OwnPlanner()
        planner.made_from = (path, options.few_shot)
        return planner

    def named(path: str = "", *, fewshot: bool = False) -> OwnPlanner: ...

    def misspelt(path: str, options: RoleOptions) -> OwnPlanner:
        return options.fewshot  # type: ignore[attr-defined,no-any-return]

    module = ModuleType("own_planners")
    module.open_planner = open_planner  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_planners", module)
    monkeypatch.setitem(registry.PLUGINS["planner"], "own", "own_planners:open_planner")
    monkeypatch.setitem(registry.PLUGINS["planner"], "named", named)
    monkeypatch.setitem(registry.PLUGINS["planner"], "misspelt", misspelt)


@pytest.mark.usefixtures("own_planners")
def test_a_registered_name_takes_an_argument_and_the_options_it_knows() -> None:
    assert resolve_planner(
        "own:/weights", RoleOptions(few_shot=True, style="long")
    ).made_from == ("/weights", True)
    assert resolve_planner("own").made_from == ("", False)


@pytest.mark.usefixtures("own_planners")
def test_no_option_of_a_wrong_name_is_left_out_in_silence() -> None:
    with pytest.raises(
        TypeError,
        match=says("planner 'named'", "called as (argument, options)", "does not"),
    ):
        resolve_planner("named:/weights")
    with pytest.raises(
        AttributeError, match="'RoleOptions' object has no attribute 'fewshot'"
    ):
        resolve_planner("misspelt")


def test_a_provider_that_is_not_installed_gives_the_install_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "langchain_anthropic", None)
    with pytest.raises(MissingExtra, match="pip install langchain-anthropic"):
        resolve_planner("anthropic:claude-x")


def test_a_model_without_its_key_is_a_settings_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(
        SettingsError,
        match=says(
            "'openai:gpt-4o-mini'",
            "OPENAI_API_KEY",
            "name a registered planner: offline",
        ),
    ):
        resolve_planner("openai:gpt-4o-mini")


def test_a_name_that_is_neither_registered_nor_a_provider_is_a_settings_error() -> None:
    with pytest.raises(
        SettingsError,
        match=says(
            "'oracle:/delphi'",
            "Supported providers:",
            "name a registered planner: offline",
        ),
    ):
        resolve_planner("oracle:/delphi")


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("offline", "offline"),
        ("openai:gpt-4o-mini", "openai:gpt-4o-mini"),
        ("vllm:http://me:secret@host/v1?key=secret#m", "vllm:http://host/v1#m"),
        (OwnPlanner(), "OwnPlanner"),
    ],
)
def test_names_for_traces(role: object, name: str) -> None:
    assert role_name(role) == name


def test_a_chat_models_name_for_traces(scripted_model: Any) -> None:
    assert role_name(scripted_model()) == "scripted"


@pytest.mark.parametrize("resolve", [resolve_planner, resolve_reasoner])
def test_a_dialect_without_a_planner_that_speaks_it_is_refused(resolve: Any) -> None:
    with pytest.raises(
        SettingsError, match="dialect 'search-r1' is for a model that plans"
    ):
        resolve("offline", RoleOptions(dialect="search-r1"))
