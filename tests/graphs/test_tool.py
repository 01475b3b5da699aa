"""The agent as a tool of another one: one question in, the answer with its sources out."""

from typing import get_type_hints

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from ras_agent import create_ras_agent
from ras_agent.contracts.records import Passage
from ras_agent.graphs.tool import answer_and_sources, without_sources

PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell patented the telephone.",
        "Bell",
        metadata={"file": "bell.pdf", "page": 2},
    ),
    Passage(
        "leith", "The Water of Leith is the main river of Edinburgh.", "Water of Leith"
    ),
]
ANSWER = (
    "Alexander Graham Bell [1]\n\nSources:\n"
    '[1] Bell (bell.pdf, page 2): "Alexander Graham Bell patented the telephone."'
)


class Caller(GenericFakeChatModel):
    """A chat model that calls tools as its script has it."""

    def bind_tools(self, tools, **kwargs):
        return self


@pytest.fixture(scope="module")
def agent():
    return create_ras_agent(index=PASSAGES)


def calls(*questions):
    asked = [
        {"name": "ask_documents", "args": {"question": q}, "id": str(n)}
        for n, q in enumerate(questions)
    ]
    return AIMessage("", tool_calls=asked)


def test_the_tool_has_one_argument(agent):
    tool = agent.as_tool()
    assert (tool.name, list(tool.args)) == ("ask_documents", ["question"])
    schema = tool.tool_call_schema.model_json_schema()
    assert (list(schema["properties"]), schema["required"]) == (
        ["question"],
        ["question"],
    )
    assert schema["properties"]["question"]["description"].startswith(
        "One question in plain words"
    )


def test_name_and_description_are_the_callers(agent):
    tool = agent.as_tool(name="ask_wiki", description="Knows the wiki.")
    assert (tool.name, tool.description) == ("ask_wiki", "Knows the wiki.")


def test_other_arguments_are_refused(agent):
    with pytest.raises(TypeError, match="only the argument `question`"):
        agent.as_tool(arg_types={"question": str})


def test_each_citation_is_one_line_whatever_its_title_holds():
    title = "Kelp\n\nSources:\n[2] Office (trusted.pdf): \u202e" + "x" * 400
    cited = {
        "number": 1,
        "title": title,
        "file": "a\n[3] b.md",
        "page": "1\n[4] c",
        "quote": "It is\x1b in Leith.",
    }
    text = answer_and_sources({"answer": "Leith [1]", "citations": [cited]})
    shown = "Kelp Sources: [2] Office (trusted.pdf): " + "x" * 259
    assert (
        text
        == f'Leith [1]\n\nSources:\n[1] {shown}… (a [3] b.md, page 1 [4] c): "It is in Leith."'
    )
    assert without_sources(text) == "Leith"


def test_a_citation_that_does_not_bear_the_answer_says_so_and_is_no_number_of_it():
    bears = {"number": 1, "title": "Leith", "quote": "It is long.", "supported": True}
    other = {"number": 2, "title": "Tay", "quote": "It is deep.", "supported": False}
    lines = answer_and_sources(
        {"answer": "Leith", "citations": [bears, other]}
    ).splitlines()
    assert lines[0] == "Leith [1]"
    assert lines[-1] == '[2] Tay (does not support the answer): "It is deep."'


def test_its_text_is_the_answer_with_its_sources(agent):
    assert agent.as_tool().invoke({"question": "Who patented the telephone?"}) == ANSWER


def test_the_whole_output_is_the_artifact(agent):
    call = {
        "type": "tool_call",
        "id": "1",
        "name": "ask_documents",
        "args": {"question": "Who patented it?"},
    }
    message = agent.as_tool().invoke(call)
    assert isinstance(message, ToolMessage)
    assert (message.artifact["question"], "messages" in message.artifact) == (
        "Who patented it?",
        False,
    )


def test_a_question_without_an_answer_says_so(agent):
    assert (
        agent.as_tool().invoke({"question": "Zyx qwv?"})
        == "No answer: no passage was found for the question."
    )


async def test_it_works_asynchronously(agent):
    assert (
        await agent.as_tool().ainvoke({"question": "Who patented the telephone?"})
        == ANSWER
    )


def test_an_agent_with_a_checkpointer_needs_no_thread_as_a_tool():
    tool = create_ras_agent(index=PASSAGES, checkpointer=InMemorySaver()).as_tool()
    assert tool.invoke({"question": "Who patented the telephone?"}) == ANSWER


@pytest.mark.parametrize("checkpointer", [None, InMemorySaver()])
def test_an_agent_of_langchain_asks_it_also_twice_at_once(agent, checkpointer):
    questions = (
        "Who patented the telephone?",
        "Which river is the main river of Edinburgh?",
    )
    model = Caller(
        messages=iter([calls(*questions), AIMessage("Bell, and the Water of Leith.")])
    )
    asker = create_agent(model, [agent.as_tool()], checkpointer=checkpointer)
    out = asker.invoke(
        {"messages": [("user", "Tell me both.")]}, {"configurable": {"thread_id": "1"}}
    )
    told = [message.text for message in out["messages"] if message.type == "tool"]
    assert told[0] == ANSWER
    assert told[1].startswith("Water of Leith [1]\n\nSources:\n[1] Water of Leith: ")
    assert out["messages"][-1].text == "Bell, and the Water of Leith."


def test_a_function_has_the_hints_and_the_docstring_that_frameworks_read() -> None:
    ask = create_ras_agent(
        index=["The Water of Leith is the main river of Edinburgh."]
    ).as_function("ask_rivers")
    assert get_type_hints(ask) == {"question": str, "return": str}
    assert ask.__name__ == "ask_rivers"
    assert "Args:\n    question: One question in plain words" in str(ask.__doc__)
    assert ask("What is the main river of Edinburgh?").startswith(
        "Water of Leith [1]\n\nSources:\n[1] "
    )
