"""A conversation in messages: the agent by itself, as a node of a bigger graph, and under a supervisor."""

import json
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_supervisor import create_supervisor

from ras_agent import create_ras_agent
from ras_agent.contracts.errors import StateError, UnknownName
from ras_agent.contracts.records import Passage
from ras_agent.running.checkpoints import open_checkpointer
from tests.messages import says

OF_THE_SUPERVISOR = pytest.mark.filterwarnings(
    "ignore:create_react_agent has been moved"
)
THREAD = {"configurable": {"thread_id": "1"}}


class Supervisor(GenericFakeChatModel):
    """A chat model that calls tools as its script has it."""

    def bind_tools(self, tools, **kwargs):
        return self


@pytest.fixture
def enough(fakes):
    return fakes.SUFFICIENT


def supervisor(*replies):
    return Supervisor(messages=iter(replies))


HANDED_OVER = AIMessage(
    "", tool_calls=[{"name": "transfer_to_ras", "args": {}, "id": "call-1"}]
)


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("Who?"),
        ("user", "Who?"),
        {"role": "user", "content": "Who?"},
        "Who?",
    ],
)
def test_the_last_message_of_the_user_asks_the_question(ras, enough, message):
    out = ras("q", enough).invoke({"messages": [message]})
    assert (out["question"], out["steps"][0]["subquery"]) == ("Who?", "Who?")
    asked, answered = out["messages"]
    assert (asked.type, asked.text) == ("human", "Who?")
    assert (
        (type(answered), answered.text)
        == (AIMessage, out["answer"])
        == (AIMessage, "2 facts, 2 passages")
    )


def test_the_answer_carries_its_citations_as_plain_json(ras, enough):
    out = ras("q", enough).invoke({"messages": [("user", "Who?")]})
    data = out["messages"][-1].additional_kwargs
    marks = {"abstained": False, "suggestion": "", "grounded": False}
    assert data == {"question": "Who?", "citations": out["citations"], **marks}
    assert json.loads(json.dumps(data)) == data
    assert data["citations"][0]["passage_id"] == "Who? A"


async def test_an_asynchronous_run_takes_messages_too(ras, enough):
    out = await ras("q", enough).ainvoke({"messages": [("user", "Who?")]})
    assert [message.text for message in out["messages"]] == [
        "Who?",
        "2 facts, 2 passages",
    ]


def test_instructions_and_calls_of_tools_among_the_messages_ask_nothing(ras, enough):
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}])
    messages = [
        SystemMessage("Be brief."),
        HumanMessage("Who?"),
        call,
        ToolMessage("Done", tool_call_id="1"),
    ]
    out = ras("q", enough).invoke({"messages": messages})
    assert out["question"] == "Who?"
    assert [message.type for message in out["messages"]] == [
        "system",
        "human",
        "ai",
        "tool",
        "ai",
    ]


def test_a_generic_message_is_of_the_role_that_it_names(ras, enough):
    messages = [
        ChatMessage(role="user", content="Who?"),
        ChatMessage(role="assistant", content="Ann."),
    ]
    out = ras("q", enough).invoke(
        {"messages": [*messages, ChatMessage(role="user", content="Where?")]}
    )
    assert out["question"] == "Where?"
    assert [message.type for message in out["messages"]] == [
        "human",
        "ai",
        "human",
        "ai",
    ]


def test_a_message_in_parts_asks_with_its_text(ras, enough):
    parts = [
        {"type": "text", "text": "Who?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    ]
    assert (
        ras("q", enough).invoke({"messages": [HumanMessage(parts)]})["question"]
        == "Who?"
    )


def test_a_question_after_messages_is_asked_after_them(ras, enough):
    out = ras("q", enough).invoke(
        {"question": "Where?", "messages": [("user", "Who?"), ("ai", "Ann.")]}
    )
    assert [message.text for message in out["messages"]] == [
        "Who?",
        "Ann.",
        "Where?",
        "2 facts, 2 passages",
    ]


def test_a_question_alone_is_answered_in_plain_json(ras, enough):
    assert ras("q", enough).invoke({"question": "Who?"})["messages"] == []


@pytest.mark.parametrize("messages", [[], [("ai", "Hello.")], [("user", " ")]])
def test_messages_that_ask_nothing_are_refused(ras, messages):
    with pytest.raises(
        ValueError, match=r"question|text to answer|no message of the user"
    ):
        ras("q").invoke({"messages": messages})


def test_what_is_no_message_is_refused(ras):
    with pytest.raises(ValueError, match="are not LangChain messages"):
        ras("q").invoke({"messages": [{"said": "Who?"}]})


@pytest.mark.parametrize("method", ["invoke", "stream", "batch"])
def test_an_unknown_key_of_the_input_is_an_error_that_names_the_known_ones(ras, method):
    given = {"question": "Who?", "chat_history": []}
    with pytest.raises(
        UnknownName,
        match=says("unknown input key 'chat_history'", "known:", "messages, question"),
    ):
        list(getattr(ras("q"), method)([given] if method == "batch" else given))


async def test_an_unknown_key_is_an_error_of_an_asynchronous_run_too(ras):
    with pytest.raises(UnknownName, match="unknown input key 'query'"):
        await ras("q").ainvoke({"query": "Who?"})


def test_halves_of_characters_in_messages_are_replaced(ras, enough, tmp_path):
    with open_checkpointer(f"sqlite:{tmp_path / 'file'}") as checkpointer:
        agent = ras("q", enough, checkpointer=checkpointer)
        out = agent.invoke({"messages": [("user", "Who\ud800?")]}, THREAD)
    assert (out["question"], out["messages"][0].text) == ("Who\ufffd?", "Who\ufffd?")


def test_a_thread_keeps_its_conversation(ras, enough, tmp_path):
    with open_checkpointer(f"sqlite:{tmp_path / 'file'}") as checkpointer:
        agent = ras("q", enough, checkpointer=checkpointer)
        agent.invoke({"messages": [("user", "Who?")]}, THREAD)
        out = agent.invoke({"messages": [("user", "Where?")]}, THREAD)
        assert out["question"] == "Where?"
        out = agent.invoke({"question": "When?"}, THREAD)
    said = [
        "Who?",
        "2 facts, 2 passages",
        "Where?",
        "2 facts, 2 passages",
        "When?",
        "2 facts, 2 passages",
    ]
    assert [message.text for message in out["messages"]] == said


def test_a_thread_does_not_answer_its_last_question_again(ras, enough):
    with open_checkpointer("memory") as checkpointer:
        agent = ras("q", enough, checkpointer=checkpointer)
        agent.invoke({"question": "Who?"}, THREAD)
        with pytest.raises(ValueError, match="a question that is not blank"):
            agent.invoke({"seed_passages": ["A seed."]}, THREAD)


def test_the_agent_is_a_node_of_a_graph_of_messages(ras, enough):
    graph = (
        StateGraph(MessagesState)
        .add_node("research", ras("q", enough))
        .set_entry_point("research")
        .compile()
    )
    out = graph.invoke({"messages": [("user", "Who?")]})
    assert [(message.type, message.text) for message in out["messages"]] == [
        ("human", "Who?"),
        ("ai", "2 facts, 2 passages"),
    ]
    assert out["messages"][-1].additional_kwargs["citations"]


def test_a_bigger_graph_may_have_keys_that_the_agent_does_not_know(ras, enough):
    class Mine(MessagesState):
        team: str

    graph = (
        StateGraph(Mine)
        .add_node("research", ras("q", enough))
        .set_entry_point("research")
        .compile()
    )
    assert graph.invoke({"messages": [("user", "Who?")], "team": "x"})["team"] == "x"


@OF_THE_SUPERVISOR
@pytest.mark.parametrize("has_own_configuration", [True, False])
def test_a_node_may_call_the_agent_with_its_own_configuration_and_all_of_its_state(
    ras, enough, has_own_configuration
):
    agent = ras("q", enough)
    config = {"configurable": {"user_id": "ada"}} if has_own_configuration else None

    def ask(state):
        return {
            "messages": agent.invoke({**state, "files": {}}, config)["messages"][-1:]
        }

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    messages = graph.compile(checkpointer=InMemorySaver()).invoke(
        {"messages": [("user", "Who?")]}, {"configurable": {"thread_id": "1"}}
    )["messages"]
    assert messages[-1].text == "2 facts, 2 passages"


def test_messages_bring_the_answer_for_a_program_too(ras, enough):
    out = ras("q", enough).invoke({"messages": [("user", "Who?")]})
    told = out["structured_response"]
    assert (told["answer"], told["abstained"], told["grounded"]) == (
        out["answer"],
        False,
        out["grounded"],
    )
    assert [citation["quote"] for citation in told["citations"]] == [
        c["quote"] for c in out["citations"]
    ]
    assert (
        ras("q", enough).invoke({"question": "Who?"}).get("structured_response") is None
    )


def test_messages_bring_what_documents_say_otherwise() -> None:
    texts = [
        Passage("a", "The head office of Korl Works is in Varn."),
        Passage("b", "The head office of Korl Works is in Pellis."),
    ]
    asked = ("user", "Where is the head office of Korl Works?")
    out = create_ras_agent(index=texts).invoke({"messages": [asked]})
    (dispute,) = out["structured_response"]["disputes"]
    assert {claim["text"] for claim in dispute["claims"]} == {"Varn", "Pellis"}


async def test_a_supervisor_hands_over_to_the_agent(ras, enough):
    model = supervisor(HANDED_OVER, AIMessage("It is Ann."))
    app = create_supervisor([ras("q", enough)], model=model).compile()
    out = await app.ainvoke({"messages": [("user", "Who?")]})
    said = [message.text for message in out["messages"] if message.type != "tool"]
    assert said == [
        "Who?",
        "",
        "2 facts, 2 passages",
        "Transferring back to supervisor",
        "It is Ann.",
    ]


@OF_THE_SUPERVISOR
def test_a_supervisor_reads_the_whole_conversation(ras, enough):
    model = supervisor(HANDED_OVER, AIMessage("It is Ann."))
    app = create_supervisor(
        [ras("q", enough)], model=model, output_mode="full_history"
    ).compile()
    out = app.invoke({"messages": [("user", "Who?")]})
    assert [message.text for message in out["messages"]].count(
        "2 facts, 2 passages"
    ) == 1
    assert [message.text for message in out["messages"]].count("Who?") == 1


@OF_THE_SUPERVISOR
def test_two_agents_of_one_supervisor_have_a_name_each(ras, enough):
    laws, rivers = ras("q", enough, name="laws"), ras("q", enough, name="rivers")
    call = {"name": "transfer_to_rivers", "args": {}, "id": "call-1"}
    model = supervisor(AIMessage("", tool_calls=[call]), AIMessage("It is Ann."))
    app = create_supervisor([laws, rivers], model=model).compile()
    steps = [
        name for step in app.stream({"messages": [("user", "Who?")]}) for name in step
    ]
    assert steps == ["supervisor", "rivers", "supervisor"]


def test_a_brief_agent_takes_one_question_and_returns_its_answer():
    with open_checkpointer("memory") as checkpointer:
        passages = [
            Passage(
                "leith", "The Water of Leith flows through Edinburgh.", "Water of Leith"
            )
        ]
        agent = create_ras_agent(index=passages, brief=True, checkpointer=checkpointer)
        out = agent.invoke({"question": "Which river flows through Edinburgh?"}, THREAD)
        assert (out.keys(), out["answer"]) == (
            {"answer", "citations", "abstained"},
            "Water of Leith",
        )
        assert list(agent.get_input_jsonschema()["properties"]) == ["question"]
        assert list(agent.get_output_jsonschema()["properties"]) == [
            "answer",
            "citations",
            "abstained",
        ]
        assert (
            agent.get_state(THREAD).values["question"]
            == "Which river flows through Edinburgh?"
        )
        with pytest.raises(
            UnknownName, match="unknown input key 'messages'; known: question"
        ):
            agent.invoke({"messages": [("user", "Which river?")]}, THREAD)


@pytest.mark.parametrize("given", ["Who was born in Ulm?", 5, ["Who was born in Ulm?"]])
def test_an_input_that_is_no_dictionary_is_answered_with_how_to_ask(given: Any) -> None:
    with pytest.raises(
        StateError, match=says("an agent is asked with a dictionary", "'question'")
    ):
        create_ras_agent(index=["Einstein was born in Ulm."]).invoke(given)
