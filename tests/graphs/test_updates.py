"""The words that people write into a run are checked where it comes in: the state's keys, limits, decisions."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from ras_agent import Limits, Passage, Triple, create_ras_agent
from ras_agent.contracts.errors import (
    ReviewError,
    SettingsError,
    StateError,
    UnknownName,
)
from ras_agent.contracts.records import Source

LEITH = Passage(
    "leith", "The Water of Leith is the main river of Edinburgh.", "Water of Leith"
)
QUESTION = {"question": "What is the main river of Edinburgh?"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


def agent_that_waits(at: str) -> Any:
    agent = create_ras_agent(index=[LEITH], checkpointer=InMemorySaver())
    agent.invoke(QUESTION, THREAD, interrupt_before=[at])
    return agent


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"triples": "x"}, r"'triples': .* got 'x'; 'triples' holds a list of Triple"),
        ({"triples": [{"subject": "a"}]}, r"'triples\.0\.predicate': Field required"),
        ({"triples": [("a", "b", "c")]}, r"'triples\.0': "),
        (
            {
                "triples": [
                    {"subject": 5, "predicate": "b", "object": "c", "sources": []}
                ]
            },
            r"'triples\.0\.subject': ",
        ),
        ({"graph": {}}, r"'graph\.facts': Field required"),
        ({"graph": None}, r"'graph': .* got None"),
        ({"subquery": 5}, r"'subquery': .* got 5; 'subquery' holds a text"),
        (
            {"passages": None},
            r"'passages': .* 'passages' holds Passage\(\.\.\.\)\.to_dict\(\) by id",
        ),
        ({"passages": {"a": "text"}}, r"'passages\.a': "),
        ({"plans": [{}]}, r"'plans\.0\.hop': Field required"),
        ({"hits": ["leith"]}, r"'hits\.0': "),
    ],
)
def test_a_value_of_another_form_is_an_error_that_names_key_and_form(
    update: Any, message: str
) -> None:
    with pytest.raises(StateError, match=message):
        agent_that_waits("merge").update_state(THREAD, update)


def test_a_key_that_the_state_does_not_have_is_an_error() -> None:
    with pytest.raises(
        UnknownName, match=r"unknown state key 'subquerry'.*did you mean subquery"
    ):
        agent_that_waits("retrieve").update_state(THREAD, {"subquerry": "Which river?"})


async def test_the_asynchronous_twin_checks_too() -> None:
    with pytest.raises(StateError, match="'subquery'"):
        await agent_that_waits("retrieve").aupdate_state(THREAD, {"subquery": None})


def test_a_value_of_the_right_form_is_what_the_run_goes_on_with() -> None:
    agent = agent_that_waits("merge")
    fact = Triple(
        "Water of Leith", "flows through", "Edinburgh", (Source("leith", 0, 10, 1),)
    )
    agent.update_state(THREAD, {"triples": [fact.to_dict()]})
    out = agent.invoke(None, THREAD)
    assert [(fact["subject"], fact["object"]) for fact in out["graph"]["facts"]] == [
        ("Water of Leith", "Edinburgh")
    ]


def test_an_empty_sub_query_ends_the_loop_with_its_reason() -> None:
    agent = agent_that_waits("retrieve")
    agent.update_state(THREAD, {"subquery": ""})
    out = agent.invoke(None, THREAD)
    assert (out["stop_reason"], out["steps"]) == ("sufficient", [])


@pytest.mark.parametrize(
    ("context", "error", "message"),
    [
        ({"max_hop": 1}, UnknownName, "unknown limit 'max_hop'.*did you mean max_hops"),
        (
            {"max_hops": "1"},
            SettingsError,
            r"Limits\.max_hops must be a whole number, got '1'",
        ),
        (
            {"max_hops": 1.5},
            SettingsError,
            r"Limits\.max_hops must be a whole number, got 1\.5",
        ),
        ({"max_hops": 0}, SettingsError, r"Limits\.max_hops must be positive, got 0"),
        ("x", SettingsError, r"context: expected limits, .* got str: 'x'"),
    ],
)
def test_limits_that_cannot_be_read_are_an_error_that_names_them(
    context: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        create_ras_agent(index=[LEITH]).invoke(QUESTION, context=context)


@pytest.mark.parametrize("context", [{"max_hops": 1}, Limits(max_hops=1)])
def test_limits_are_read_as_a_dictionary_and_as_an_object(context: Any) -> None:
    assert (
        len(create_ras_agent(index=[LEITH]).invoke(QUESTION, context=context)["steps"])
        == 1
    )


@pytest.mark.parametrize("is_new", [True, False])
def test_a_decision_for_which_no_run_waits_is_an_error(is_new: bool) -> None:
    agent = create_ras_agent(index=[LEITH], checkpointer=InMemorySaver())
    if not is_new:
        agent.invoke(QUESTION, THREAD)
    with pytest.raises(ReviewError, match="no run waits for a decision on this thread"):
        agent.invoke(Command(resume={"action": "approve"}), THREAD)


async def test_a_decision_for_which_no_run_waits_is_an_error_in_coroutines_too() -> (
    None
):
    agent = create_ras_agent(index=[LEITH], checkpointer=InMemorySaver())
    with pytest.raises(ReviewError, match="no run waits"):
        await agent.ainvoke(Command(resume={"action": "approve"}), THREAD)
