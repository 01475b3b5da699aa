"""A model that calls tools chooses the retriever of each search, and steps in the graph of the corpus."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool

from ras_agent import Limits, Plan, QuestionGraph, Settings, create_ras_agent
from ras_agent.config.registry import PLUGINS
from ras_agent.contracts.errors import SettingsError, UnknownName
from ras_agent.contracts.records import Passage, Step
from ras_agent.graphs.react import create_react_agent
from ras_agent.graphs.resolve import resolve_parts
from ras_agent.gym import environment_factory
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.offline.roles import offline_extractor
from ras_agent.tools.retrieve.registered import retriever_over

PASSAGES = [
    Passage("paris", "Paris is the capital of France.", "Paris"),
    Passage("leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"),
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    ),
]
QUESTION = "Which river flows through the birthplace of Alexander Graham Bell?"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "i"
    made = PassageIndex.create(folder)
    made.add(PASSAGES)
    read = read_each(offline_extractor())
    with open_writer(folder) as writer:
        writer.read(made.passages, read, "offline", whole=True)
        writer.write()
    return folder


class Scripted:
    """Planner that follows a list of plans."""

    def __init__(self, *plans: Plan) -> None:
        self._plans = list(plans)

    def plan(self, question: str, graph: QuestionGraph, steps: Sequence[Step]) -> Plan:
        return self._plans.pop(0)


def _calls(*calls: tuple[str, dict[str, str]]) -> list[dict[str, Any]]:
    return [{"calls": [[name, arguments]]} for name, arguments in calls]


def _offered(request: dict[str, Any]) -> dict[str, Any]:
    functions = [item["function"] for item in request["tools"]]
    return {function["name"]: function["parameters"] for function in functions}


def test_neighbours_are_passages_and_then_the_facts_themselves(
    index: Path,
) -> None:
    found = retriever_over(PassageIndex.open(index), "neighbours")
    *others, whole = found.retrieve("Edinburgh", 5)
    assert whole.passage.title == "Edinburgh"
    facts = [fact[:3] for fact in whole.passage.metadata["facts"]]
    assert ["Alexander Graham Bell", "was born in", "Edinburgh"] in facts
    assert {hit.passage.id for hit in others} == {"leith", "bell"}
    assert found.retrieve("nobody at all", 5) == []


def test_a_model_is_offered_what_the_index_has(index: Path, scripted_llm: Any) -> None:
    script = _calls(
        ("search", {"query": "Alexander Graham Bell", "retriever": "ppr"}),
        ("neighbours", {"entity": "Edinburgh"}),
        ("finish", {"reason": "known"}),
    )
    scripted_llm.script(*script)
    agent = create_react_agent(
        index=index, planner=scripted_llm.spec, extractor="offline", answerer="offline"
    )
    out = agent.invoke({"question": QUESTION})
    offered = _offered(scripted_llm.requests()[0])
    assert list(offered) == ["search", "neighbours", "read", "finish", "paths"]
    # no vectors: neither dense nor the graph network
    choices = offered["search"]["properties"]["retriever"]["enum"]
    assert choices == ["bm25", "ppr", "paths", "pcst", "kg-mix"]
    named = [plan.get("retriever", "") for plan in out["plans"]]
    assert named == ["ppr", "neighbours", ""]
    assert [step["subquery"] for step in out["steps"]] == [
        "Alexander Graham Bell",
        "Edinburgh",
    ]
    assert out["failures"] == []


def test_facts_of_a_step_in_the_graph_join_the_question_with_their_passages(
    index: Path,
) -> None:
    plans = (
        Plan("subq", "Alexander Graham Bell; Water of Leith", retriever="paths"),
        Plan("subq", "Edinburgh", retriever="neighbours"),
        Plan("sufficient"),
    )
    agent = create_react_agent(index=index, planner=Scripted(*plans))
    out = agent.invoke({"question": QUESTION})
    facts = [(fact["subject"], fact["object"]) for fact in out["graph"]["facts"]]
    assert facts == [
        ("Alexander Graham Bell", "Edinburgh"),
        ("Water of Leith", "Edinburgh"),
    ]
    # the passages that state them, and the facts as the graph has them
    of_first = out["graph"]["facts"][0]["sources"]
    assert [source["extractor"] for source in of_first] == ["offline", "stated: bell"]
    assert out["stop_reason"] == "sufficient"
    first, second = out["steps"]
    assert {hit["passage_id"] for hit in first["hits"]} == {"leith", "bell"}
    assert second["hits"][-1]["passage_id"].startswith("subgraph:")


def test_the_same_words_with_another_retriever_are_no_repeat(index: Path) -> None:
    plans = [
        Plan("subq", "Edinburgh", retriever="bm25"),
        Plan("subq", "Edinburgh", retriever="neighbours"),
        Plan("subq", "Edinburgh", retriever="neighbours"),
    ]
    agent = create_react_agent(index=index, planner=Scripted(*plans))
    out = agent.invoke({"question": QUESTION})
    assert len(out["steps"]) == 2
    assert out["stop_reason"] == "repeated_subquery"


def test_a_dialect_walks_the_graph_by_actions(index: Path, scripted_llm: Any) -> None:
    replies = (
        "Thought: Bell first.\nAction: neighbours[Alexander Graham Bell]",
        "Thought: now its river.\nAction: paths[Edinburgh; Water of Leith]",
        "Action: Finish[Water of Leith]",
    )
    scripted_llm.script(*[{"reply": reply} for reply in replies])
    settings = Settings(
        planner=scripted_llm.spec,
        dialect="think-on-graph",
        extractor="offline",
        answerer="offline",
    )
    out = create_ras_agent(index=index, settings=settings).invoke(
        {"question": QUESTION}
    )
    named = [plan.get("retriever", "") for plan in out["plans"]]
    assert named == ["neighbours", "paths", ""]
    assert out["plans"][-1]["answer"] == "Water of Leith"
    assert out["failures"] == []
    shown = scripted_llm.requests()[1]["messages"][-1]["content"]
    assert "Alexander Graham Bell | was born in | Edinburgh" in shown.replace(
        "P> ", ""
    ).replace("O> ", "")


def test_a_retriever_that_is_not_there_is_a_failure_and_the_usual_one_searches() -> (
    None
):
    plans = (Plan("subq", "Bell", retriever="neighbours"), Plan("sufficient"))
    agent = create_react_agent(index=["Bell was born."], planner=Scripted(*plans))
    out = agent.invoke({"question": "Who was born?"})
    assert len(out["steps"][0]["hits"]) == 1
    assert out["failures"][0]["message"].startswith(
        "this run has no retriever 'neighbours'"
    )


def test_tools_are_chosen_by_name_of_tool_or_retriever_or_are_langchains(
    index: Path,
) -> None:
    @tool
    def intranet(query: str) -> str:
        """Search the intranet."""
        return f"Nothing about {query}."

    parts = resolve_parts(
        "react", index=index, planner=Scripted(), tools=["ppr", "read", intranet]
    )
    assert [item.name for item in parts.tools] == ["ppr", "read", "intranet", "finish"]
    assert parts.tools[2].about == "Search the intranet."
    (hit,) = parts.retrievers["intranet"].retrieve("rivers", 3)
    assert hit.passage.text == "Nothing about rivers."
    with pytest.raises(UnknownName, match=r"unknown tool over this index 'dense'"):
        resolve_parts("react", index=index, planner=Scripted(), tools=["dense"])
    with pytest.raises(TypeError, match=r"a tool is a name \(search, .*got 7"):
        resolve_parts("react", index=index, planner=Scripted(), tools=[7])  # type: ignore[list-item]
    with pytest.raises(SettingsError, match=r"loop 'ras' calls no tools"):
        create_ras_agent(index=index, tools=["search"])


def test_a_registered_tool_is_chosen_by_its_name(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool
    def wiki(query: str) -> str:
        """Search the wiki."""
        return f"Nothing about {query}."

    monkeypatch.setitem(PLUGINS, "tool", {"wiki": lambda: wiki})
    parts = resolve_parts(
        "react", index=index, planner=Scripted(), tools=["search", "wiki"]
    )
    assert [item.name for item in parts.tools] == ["search", "wiki", "finish"]
    (hit,) = parts.retrievers["wiki"].retrieve("rivers", 3)
    assert hit.passage.text == "Nothing about rivers."
    with pytest.raises(UnknownName, match=r"'wike'.*wiki"):
        resolve_parts("react", index=index, planner=Scripted(), tools=["wike"])
    monkeypatch.setitem(PLUGINS, "tool", {"wiki": lambda: 7})
    with pytest.raises(TypeError, match=r"a tool is a name .*got 7"):
        resolve_parts("react", index=index, planner=Scripted(), tools=["wiki"])


def test_a_corpus_without_vectors_or_graph_has_the_four_tools() -> None:
    parts = resolve_parts("react", index=["Bell was born."], planner=Scripted())
    assert [item.name for item in parts.tools] == [
        "search",
        "neighbours",
        "read",
        "finish",
    ]
    assert not parts.tools[0].choices


def test_an_environment_has_the_same_tools_as_methods(index: Path) -> None:
    factory = environment_factory(index=index, limits=Limits(max_hops=4))
    environment: Any = factory()
    names = [item.name for item in environment.offered]
    assert names == ["search", "neighbours", "read", "finish", "paths"]
    for name in names:
        assert inspect.isfunction(getattr(type(environment), name))
    assert "kg-mix by the graph" in inspect.getdoc(environment.search)
    assert list(inspect.signature(environment.paths).parameters) == ["entities"]
    environment.reset(QUESTION, answers=["Water of Leith"])
    shown = environment.search("Alexander Graham Bell", retriever="ppr")
    assert "[1] Alexander Graham Bell" in shown
    assert "Water of Leith" in environment.neighbours(entity="Edinburgh")
    assert [step.subquery for step in environment.steps] == [
        "Alexander Graham Bell",
        "Edinburgh",
    ]


def test_an_environment_hides_tools_that_are_not_offered(index: Path) -> None:
    environment: Any = environment_factory(index=index, tools=["paths"])()
    found = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    public = [name for name, _ in found if not name.startswith("_")]
    assert public == ["finish", "get_reward", "paths", "reset"]


def test_settings_choose_the_tools_by_name(index: Path) -> None:
    settings = Settings(loop="react", tools="ppr, neighbours")
    parts = resolve_parts("react", index=index, planner=Scripted(), settings=settings)
    assert [item.name for item in parts.tools] == ["ppr", "neighbours", "finish"]
    argument = resolve_parts(
        "react", index=index, planner=Scripted(), settings=settings, tools=["read"]
    )
    assert [item.name for item in argument.tools] == ["read", "finish"]
    unknown = Settings(loop="react", tools="pp")
    with pytest.raises(UnknownName, match=r"'pp'; known: .*did you mean ppr"):
        resolve_parts("react", index=index, planner=Scripted(), settings=unknown)
    with pytest.raises(SettingsError, match=r"calls no tools.*--loop react"):
        resolve_parts("ras", index=index, settings=settings)
