"""Reviews as LangChain's own pages show them, and their decisions as ours."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from ras_agent import Passage, create_ras_agent

LEITH = Passage(
    "leith", "The Water of Leith is the main river of Edinburgh.", "Water of Leith"
)
QUESTION = {"question": "What is the main river of Edinburgh?"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


def waiting_at(place: str) -> tuple[Any, dict[str, Any]]:
    agent = create_ras_agent(
        index=[LEITH], review=(place,), checkpointer=InMemorySaver()
    )
    (interrupt,) = agent.invoke(QUESTION, THREAD)["__interrupt__"]
    return agent, interrupt.value


def decided(agent: Any, decision: object) -> dict[str, Any]:
    out: dict[str, Any] = agent.invoke(Command(resume=decision), THREAD)
    return out


def test_a_review_has_the_keys_of_agent_inbox_and_of_the_middleware() -> None:
    _, value = waiting_at("answer")
    assert value["action_request"] == {
        "action": "review_answer",
        "args": {"answer": "Water of Leith"},
    }
    assert value["config"]["allow_edit"] is True
    assert value["review_configs"] == [
        {
            "action_name": "review_answer",
            "allowed_decisions": ["approve", "edit", "reject"],
        }
    ]
    assert value["action_requests"][0]["name"] == "review_answer"


@pytest.mark.parametrize(
    "decision",
    [
        [{"type": "accept", "args": None}],
        {"type": "accept"},
        {"decisions": [{"type": "approve"}]},
        {"action": "approve"},
    ],
)
def test_an_approval_in_each_form_goes_on(decision: object) -> None:
    agent, _ = waiting_at("answer")
    assert decided(agent, decision)["answer"] == "Water of Leith"


@pytest.mark.parametrize(
    "decision",
    [
        [
            {
                "type": "edit",
                "args": {"action": "review_answer", "args": {"answer": "The Leith"}},
            }
        ],
        {
            "decisions": [
                {
                    "type": "edit",
                    "edited_action": {
                        "name": "review_answer",
                        "args": {"answer": "The Leith"},
                    },
                }
            ]
        },
    ],
)
def test_an_edit_in_each_form_changes_the_answer(decision: object) -> None:
    agent, _ = waiting_at("answer")
    assert decided(agent, decision)["answer"] == "The Leith"


@pytest.mark.parametrize(
    "decision", [[{"type": "ignore"}], {"decisions": [{"type": "reject"}]}]
)
def test_a_rejected_answer_is_withdrawn(decision: object) -> None:
    agent, _ = waiting_at("answer")
    assert decided(agent, decision)["abstained"] is True


def test_a_rejected_plan_ends_the_search() -> None:
    agent, _ = waiting_at("plan")
    out = decided(agent, {"decisions": [{"type": "reject"}]})
    assert (out["stop_reason"], out["steps"]) == ("sufficient", [])


def test_facts_are_edited_and_removed_as_lines() -> None:
    agent, value = waiting_at("facts")
    args = dict(value["action_request"]["args"])
    names = list(args)
    args[names[0]] = "The Leith | flows through | Edinburgh"
    for name in names[1:]:
        args[name] = ""
    agent.invoke(
        Command(
            resume=[{"type": "edit", "args": {"action": "review_facts", "args": args}}]
        ),
        THREAD,
    )
    facts = agent.get_state(THREAD).values["graph"]["facts"]
    assert [(fact["subject"], fact["object"]) for fact in facts] == [
        ("The Leith", "Edinburgh")
    ]


def test_a_decision_without_what_it_decides_waits_again_and_says_so() -> None:
    agent, _ = waiting_at("answer")
    out = decided(agent, [{"type": "edit", "args": None}])
    assert "an edit needs the edited values" in out["__interrupt__"][0].value["error"]
