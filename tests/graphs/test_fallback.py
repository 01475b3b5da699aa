"""Where a model's replies cannot be read, an offline role plays the step, and the run says so."""

from typing import Any

import pytest

from ras_agent import Settings, create_ras_agent, create_single_shot_agent
from ras_agent.contracts.records import Hit, Passage
from ras_agent.graphs.resolve import resolve_parts
from tests.messages import says

BELL = Passage(
    "p1",
    "Alexander Graham Bell was born in Edinburgh. He invented the telephone.",
    "Alexander Graham Bell",
)
LEITH = Passage(
    "p2", "The Water of Leith is a river. It flows through Edinburgh.", "Water of Leith"
)
QUESTION = {
    "question": "Which river flows through the city where Alexander Graham Bell was born?"
}
FACTS = (
    "[1] Alexander Graham Bell\n",
    "(S> Alexander Graham Bell | P> was born in | O> Edinburgh)",
)
RIVER = (
    "[1] Water of Leith\n",
    "(S> Water of Leith | P> flows through | O> Edinburgh)",
)
BABBLE = "The facts are as follows: it is what it is."


class TwoPassages:
    name = "two"

    def retrieve(self, query: str, k: int = 5) -> list[Hit]:
        return [Hit(LEITH if "Edinburgh" in query else BELL, 1.0)]


def run(make: Any, model: Any, **settings: Any) -> dict[str, Any]:
    agent = make(llm=model, retriever=TwoPassages(), settings=Settings(**settings))
    out: dict[str, Any] = agent.invoke(QUESTION)
    return out


def messages(out: dict[str, Any], role: str) -> list[str]:
    return [
        failure["message"] for failure in out["failures"] if failure["role"] == role
    ]


def test_a_later_plan_that_cannot_be_read_is_made_offline_and_the_loop_goes_on(
    scripted_model: Any,
) -> None:
    model = scripted_model(
        ("You steer the research", "Hm."),
        ("You answer questions", "Answer: Water of Leith [2]"),
        FACTS,
        RIVER,
    )
    out = run(create_ras_agent, model)
    assert [step["subquery"] for step in out["steps"]][1:] != []
    assert out["answer"] == "Water of Leith"
    assert any(
        says("ParseError", "left to the role 'offline'", "fallback = stop").search(
            message
        )
        for message in messages(out, "planner")
    )


def test_after_one_unreadable_reply_a_run_asks_that_role_with_examples_and_the_others_without(
    scripted_model: Any,
) -> None:
    model = scripted_model(
        # a worked example of the planner's
        (
            "Sydney Opera House",
            "[SUBQ] Which river flows through Edinburgh?",
        ),
        ("You steer the research", "Hm."),
        ("You answer questions", "Answer: Water of Leith [2]"),
        FACTS,
        RIVER,
    )
    out = run(create_ras_agent, model)
    planned = [
        "Sydney Opera House" in prompt
        for prompt in model.prompts
        if "You steer the research" in prompt
    ]
    assert planned == [False, True, True, True]
    assert [call["role"] for call in out["usage"]["calls"] if call.get("unread")] == [
        "planner"
    ]
    assert not any(
        "Marie Tharp" in prompt or "Nabucco" in prompt
        for prompt in model.prompts
        if "steer" not in prompt
    )


def test_with_fallback_stop_it_ends_the_loop(scripted_model: Any) -> None:
    model = scripted_model(
        ("You steer the research", "Hm."),
        ("You answer questions", "Answer: Edinburgh [1]"),
        FACTS,
        RIVER,
    )
    out = run(create_ras_agent, model, fallback="stop")
    assert (len(out["steps"]), out["stop_reason"]) == (1, "planner_failed")


def test_a_passage_about_which_nothing_readable_was_written_is_read_offline(
    scripted_model: Any,
) -> None:
    model = scripted_model(
        ("You read passages", BABBLE), ("You answer questions", "Answer: Edinburgh [1]")
    )
    out = run(create_single_shot_agent, model)
    assert {fact["subject"] for fact in out["graph"]["facts"]} >= {
        "Alexander Graham Bell"
    }
    assert any(
        says("no fact was read in 1 passages", "'offline'").search(message)
        for message in messages(out, "extractor")
    )
    stopped = run(create_single_shot_agent, model, fallback="stop")
    assert stopped["graph"]["facts"] == []


def test_where_no_reply_holds_an_answer_the_offline_answerer_answers(
    scripted_model: Any,
) -> None:
    model = scripted_model(("You answer questions", "Who knows?\nWho?"), FACTS)
    agent = create_single_shot_agent(llm=model, retriever=TwoPassages())
    out = agent.invoke({"question": "Where was Alexander Graham Bell born?"})
    assert (out["answer"], out["abstained"]) == ("Edinburgh", False)
    assert any(
        "left to the role 'offline'" in message for message in messages(out, "answerer")
    )


@pytest.mark.parametrize(
    ("settings", "roles"),
    [
        (Settings(), {"planner", "extractor", "answerer"}),
        (Settings(language="english"), {"planner", "extractor", "answerer"}),
        (Settings(language="german"), set()),
        (
            Settings(language="german", fallback="offline"),
            {"planner", "extractor", "answerer"},
        ),
        (Settings(preset="paper"), set()),
        (Settings(fallback="stop"), set()),
        (Settings(planner="offline", extractor="offline"), {"answerer"}),
    ],
)
def test_who_falls_back(
    scripted_model: Any, settings: Settings, roles: set[str]
) -> None:
    parts = (
        resolve_parts("ras", llm=scripted_model(), index=[BELL], settings=settings)
        if settings.planner is None
        else resolve_parts(
            "ras", answerer=scripted_model(), index=[BELL], settings=settings
        )
    )
    assert set(parts.fallbacks) == roles


def test_an_object_of_the_callers_own_has_no_fallback(scripted_model: Any) -> None:
    class Own:
        def plan(self, question: str, graph: object, steps: object) -> Any: ...

    parts = resolve_parts("ras", planner=Own(), answerer=scripted_model(), index=[BELL])
    assert set(parts.fallbacks) == {"answerer"}
