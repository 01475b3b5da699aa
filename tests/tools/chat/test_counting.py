"""Calls that a role of the user's own makes through LangChain count as those of our roles do, and once."""

import asyncio
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda

from ras_agent import Limits, create_ras_agent, record_call
from ras_agent.contracts.records import Passage, Plan
from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import as_chat

BELL = [
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh.", "Alexander Graham Bell"
    )
]
ASKED = {"question": "Where was Alexander Graham Bell born?"}


class Own:
    """Plans by two calls of a model, made by `ask`."""

    def __init__(self, ask: Any) -> None:
        self.ask = ask

    def plan(self, question: str, graph: Any, steps: Any) -> Plan:
        self.ask("one two three")
        self.ask("one two three")
        return Plan("sufficient") if steps else Plan("subq", question)


def calls(
    planner: Any, limits: Limits | None = None, *, asynchronous: bool = False
) -> Any:
    agent = create_ras_agent(index=BELL, planner=planner, limits=limits)
    return asyncio.run(agent.ainvoke(ASKED)) if asynchronous else agent.invoke(ASKED)


def ways(model: Any) -> dict[str, Any]:
    chat = as_chat(model)
    chain = RunnableLambda(lambda words: words) | model | StrOutputParser()
    through = RunnableLambda(
        lambda words: chat.complete(Request((Turn("user", words),))).text
    )
    return {
        "the model": model.invoke,
        "a stream": lambda words: list(model.stream(words)),
        "a chain": chain.invoke,
        "a tool": RunnableLambda(chain.invoke).invoke,
        "ours": lambda words: chat.complete(Request((Turn("user", words),))),
        "ours in a chain": through.invoke,
    }


@pytest.mark.parametrize(
    "way", ["the model", "a stream", "a chain", "a tool", "ours", "ours in a chain"]
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_call_counts_once(
    way: str, asynchronous: bool, scripted_model: Any
) -> None:
    model = scripted_model("a", "b", "c", "d")
    out = calls(Own(ways(model)[way]), asynchronous=asynchronous)
    made = [
        (call["role"], call["hop"], call["output_tokens"], call["estimated"])
        for call in out["usage"]["calls"]
    ]
    assert made == [("planner", 1, 1, False)] * 2 + [("planner", 2, 1, False)] * 2


def test_they_are_refused_as_the_limits_say(scripted_model: Any) -> None:
    model = scripted_model("a", "b", "c", "d")
    out = calls(Own(model.invoke), Limits(max_llm_calls=4))
    assert (out["stop_reason"], len(out["usage"]["calls"]), len(model.prompts)) == (
        "max_llm_calls",
        3,
        3,
    )


def test_tokens_that_no_server_reported_are_estimated(scripted_model: Any) -> None:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    out = calls(Own(FakeListChatModel(responses=["one two"]).invoke))
    assert {
        (call["output_tokens"] > 0, call["estimated"]) for call in out["usage"]["calls"]
    } == {(True, True)}
    assert out["usage"]["input_tokens"] > 0


def test_a_call_that_failed_holds_no_place(scripted_model: Any) -> None:
    out = calls(
        Own(scripted_model(KeyError("broken"), "b", "c").invoke),
        Limits(max_llm_calls=3),
    )
    assert [call["hop"] for call in out["usage"]["calls"]] == [2, 2]


def test_a_call_made_without_langchain_is_recorded_by_its_maker() -> None:
    out = calls(Own(lambda words: record_call("mine", 9, 1)), Limits(max_tokens=40))
    assert [(call["role"], call["model"]) for call in out["usage"]["calls"]] == [
        ("planner", "mine")
    ] * 4
    assert out["usage"]["input_tokens"] == 36
    record_call("outside any run")


def test_outside_a_run_nothing_is_counted(scripted_model: Any) -> None:
    assert scripted_model("a").invoke("Who?").text == "a"
