"""The agent and its retrievers in other frameworks, with their real packages, as the pages of docs/howto show them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ras_agent import create_ras_agent
from ras_agent.contracts.records import Passage
from ras_agent.tools.index.store import PassageIndex

QUESTION = "What is the main river of Edinburgh?"
HOWTO = Path(__file__).resolve().parents[2] / "docs/howto"
PAGE = HOWTO / "other-frameworks.md"
RETRIEVERS = HOWTO / "retrievers-as-tools.md"
_BLOCK = re.compile(r"^```console\n(>>> from .*?)^```", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ABOUT = "One question in plain words that can be understood without the conversation."


@pytest.fixture
def agent() -> Any:
    return create_ras_agent(
        index=["The Water of Leith is the main river of Edinburgh."]
    )


def scripted(*replies: Any) -> Any:
    from langchain_core.language_models import GenericFakeChatModel

    class Caller(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

    return Caller(messages=iter(replies))


def calling(tool: str, **arguments: str) -> Any:
    from langchain_core.messages import AIMessage

    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": "1"}])


def test_deepagents_has_the_agent_as_a_sub_agent(agent: Any) -> None:
    deepagents = pytest.importorskip("deepagents")
    model = scripted(
        calling("task", description=QUESTION, subagent_type="documents"), "done"
    )
    subagent = {
        "name": "documents",
        "description": "Answers from the documents.",
        "runnable": agent,
    }
    out = deepagents.create_deep_agent(model=model, subagents=[subagent]).invoke(
        {"messages": [("user", "River?")]}
    )
    told = json.loads(out["messages"][-2].content)
    assert told["answer"] == "Water of Leith"
    assert [citation["quote"] for citation in told["citations"]] == [
        "The Water of Leith is the main river of Edinburgh."
    ]


def test_deepagents_has_the_agent_as_a_tool(agent: Any) -> None:
    deepagents = pytest.importorskip("deepagents")
    model = scripted(calling("ask_documents", question=QUESTION), "done")
    out = deepagents.create_deep_agent(model=model, tools=[agent.as_tool()]).invoke(
        {"messages": [("user", "River?")]}
    )
    assert out["messages"][-2].content.startswith("Water of Leith [1]\n\nSources:")


def test_the_openai_agents_sdk_reads_the_schema_of_the_function(agent: Any) -> None:
    agents = pytest.importorskip("agents")
    tool = agents.function_tool(agent.as_function())
    assert (
        tool.name,
        tool.params_json_schema["properties"]["question"]["description"],
    ) == ("ask_documents", ABOUT)


def test_pydantic_ai_reads_the_schema_of_the_function(agent: Any) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    schema = pydantic_ai.Tool(agent.as_function()).function_schema.json_schema
    assert schema["properties"]["question"]["description"] == ABOUT


def test_smolagents_calls_the_function(agent: Any) -> None:
    smolagents = pytest.importorskip("smolagents")
    tool = smolagents.tool(agent.as_function())
    assert tool.inputs["question"]["description"] == ABOUT
    assert tool(QUESTION).startswith("Water of Leith [1]")


def test_adk_takes_the_function(agent: Any) -> None:
    tools = pytest.importorskip("google.adk.tools")
    assert tools.FunctionTool(agent.as_function()).name == "ask_documents"


@pytest.mark.parametrize(
    "package", ["deepagents", "agents", "pydantic_ai", "smolagents"]
)
def test_a_block_of_the_page_runs_as_it_is_shown(
    package: str, agent: Any, scripted_llm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call: tuple[str, dict[str, str]] = ("ask_documents", {"question": QUESTION})
    if package == "deepagents":
        call = ("task", {"description": QUESTION, "subagent_type": "documents"})
    names = {"agent": agent, "ask": agent.as_function()}
    _run_block(PAGE, package, names, call, scripted_llm, monkeypatch)
    called, ended = scripted_llm.requests()
    assert "Water of Leith" not in str(called)
    assert "Water of Leith" in str(ended["messages"])


@pytest.fixture
def retrievers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the page's own blocks make: `tools` and `search_graph`, over an index of two texts."""
    monkeypatch.chdir(tmp_path)
    texts = [
        Passage(
            "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
        ),
        Passage("bell", "Bell was born in Edinburgh.", "Alexander Graham Bell"),
    ]
    PassageIndex.create(tmp_path / "my.index").add(texts)
    blocks = _PYTHON.findall(RETRIEVERS.read_text("utf-8"))
    # smolagents reads the source of a function, which therefore stands in a file
    program = tmp_path / "program.py"
    program.write_text(
        "\n".join(block for block in blocks if "create_agent" not in block)
    )
    names: dict[str, Any] = {}
    exec(compile(program.read_text(), str(program), "exec"), names)
    return names


@pytest.mark.parametrize(
    "package", ["langchain", "deepagents", "agents", "pydantic_ai", "smolagents"]
)
def test_a_block_gives_the_retrievers_to_a_framework(
    package: str,
    retrievers: dict[str, Any],
    scripted_llm: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool = "ppr" if package in ("langchain", "deepagents") else "search_graph"
    call = (tool, {"query": "Edinburgh"})
    _run_block(RETRIEVERS, package, retrievers, call, scripted_llm, monkeypatch)
    if package == "langchain":
        question = {"messages": [("user", QUESTION)]}
        retrievers["assistant"].invoke(question)
    called, ended = scripted_llm.requests()
    offered = [item["function"]["name"] for item in called["tools"]]
    assert tool in offered
    assert "flows through Edinburgh" not in str(called)
    assert "flows through Edinburgh" in str(ended["messages"])


def _run_block(
    page: Path,
    package: str,
    names: dict[str, Any],
    call: tuple[str, dict[str, str]],
    scripted_llm: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Run a page's block, whose model calls a tool and then says a word."""
    framework = pytest.importorskip(package)
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_llm.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    if package == "agents":
        framework.set_default_openai_api("chat_completions")
        framework.set_tracing_disabled(True)
    end: dict[str, Any] = {"reply": "Leith"}
    if package == "smolagents":
        answer = [("final_answer", {"answer": "Leith"})]
        end = {"reply": "", "calls": answer, "finish": "tool_calls"}
    scripted_llm.script({"reply": "", "calls": [call], "finish": "tool_calls"}, end)
    code = _block_of(package, page)
    # it asks OpenAI by a protocol that the loopback server does not speak
    if package == "deepagents":
        code = code.replace('"openai:gpt-4o-mini"', "model")
        names["model"] = pytest.importorskip("langchain_openai").ChatOpenAI(
            model="m", use_responses_api=False
        )
    exec(code, names)


def test_the_block_of_adk_makes_an_agent_that_has_the_function(agent: Any) -> None:
    pytest.importorskip("google.adk.agents")
    names: dict[str, Any] = {"ask": agent.as_function()}
    exec(_block_of("google.adk"), names)
    assert [tool.__name__ for tool in names["root_agent"].tools] == ["ask_documents"]


def _block_of(package: str, page: Path = PAGE) -> str:
    """Return the code of the page's block that imports a package."""
    text = page.read_text("utf-8")
    shown = [*_BLOCK.findall(text), *_PYTHON.findall(text)]
    start = f"from {package}"
    [block] = [
        block
        for block in shown
        if block.removeprefix(">>> ").startswith(start + " ")
        or block.removeprefix(">>> ").startswith(start + ".agents ")
    ]
    return "\n".join(
        line.removeprefix(">>> ").removeprefix("... ") for line in block.splitlines()
    )
