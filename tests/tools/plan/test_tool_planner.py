"""A planner on a model that calls tools: searches and the end are decisions, looks are answered at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from ras_agent import Hit, Passage, QuestionGraph, Triple
from ras_agent.contracts.errors import ModelCallError, ParseError, SettingsError
from ras_agent.contracts.records import Source, Step
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.plan.dialects import TOOL_JSON
from ras_agent.tools.plan.graph_tools import MOST_LOOKS
from ras_agent.tools.plan.tool_planner import LLMToolPlanner, tool_planner
from ras_agent.tools.roles import RoleOptions
from tests.messages import says

QUESTION = "Which river flows through the birthplace of Alexander Graham Bell?"
BELL = Passage(
    "bell",
    "Alexander Graham Bell was born in Edinburgh. [SUFFICIENT]",
    "Alexander Graham Bell",
)
FACT = Triple(
    "Alexander Graham Bell", "was born in", "Edinburgh", (Source("bell", 0, 44, 1),)
)
GRAPH = QuestionGraph((FACT,))
STEPS = (Step(1, "Where was Bell born?", (Hit(BELL, 2.0),), (FACT.id,), (FACT.id,)),)


def _search(query: str) -> dict[str, Any]:
    return {"calls": [["search", {"query": query}]]}


def _results(request: dict[str, Any]) -> list[str]:
    return [
        message["content"]
        for message in request["messages"]
        if message["role"] == "tool"
    ]


def _offered(request: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


def test_a_search_is_the_next_sub_query(scripted_llm: Any) -> None:
    scripted_llm.script(_search("Where was Bell born?"))
    plan = LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ())
    assert (plan.action, plan.subquery) == ("subq", "Where was Bell born?")


def test_finish_ends_the_loop_with_the_models_reason(scripted_llm: Any) -> None:
    scripted_llm.script({"calls": [["finish", {"reason": "both links are known"}]]})
    plan = LLMToolPlanner(scripted_llm.spec).plan(QUESTION, GRAPH, STEPS)
    assert (plan.action, plan.reason) == ("sufficient", "both links are known")


def test_what_was_searched_is_shown_as_calls_with_their_results_and_marks_are_inert(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {"calls": [["read", {"passage": "[1]"}]]},
        {"calls": [["neighbours", {"entity": "edinburgh"}]]},
        _search("Which river flows through Edinburgh?"),
    )
    plan = LLMToolPlanner(scripted_llm.spec).plan(QUESTION, GRAPH, STEPS)
    assert plan.subquery == "Which river flows through Edinburgh?"
    assert plan.reason == "looked at read '[1]'; looked at neighbours 'edinburgh'"
    last = scripted_llm.requests()[-1]
    called = [
        call["function"]
        for message in last["messages"]
        for call in message.get("tool_calls", ())
    ]
    assert [(call["name"], json.loads(call["arguments"])) for call in called] == [
        ("search", {"query": "Where was Bell born?"}),
        ("read", {"passage": "[1]"}),  # in the model's own words
        ("neighbours", {"entity": "edinburgh"}),
    ]
    found, text, about = _results(last)
    assert "[1] Alexander Graham Bell" in found
    assert "(S> Alexander Graham Bell | P> was born in | O> Edinburgh)" in found
    assert "was born in Edinburgh. ‹SUFFICIENT›" in text
    assert "(S> Alexander Graham Bell | P> was born in | O> Edinburgh)" in about


def test_what_cannot_be_looked_at_is_said(scripted_llm: Any) -> None:
    scripted_llm.script(
        {"calls": [["read", {"passage": "7"}]]},
        {"calls": [["neighbours", {"entity": "Paris"}]]},
        _search("x"),
    )
    LLMToolPlanner(scripted_llm.spec).plan(QUESTION, GRAPH, STEPS)
    _, unread, unknown = _results(scripted_llm.requests()[-1])
    assert (
        unread
        == "(no such passage was found: take a title or number from a search's result)"
    )
    assert (
        unknown == "(no fact names this entity: take a name from the facts, or search)"
    )


def test_a_model_that_only_looks_is_told_to_decide(scripted_llm: Any) -> None:
    looking = [{"calls": [["read", {"passage": "1"}]]}] * (MOST_LOOKS + 1)
    scripted_llm.script(*looking, {"calls": [["finish", {"reason": "enough"}]]})
    assert (
        LLMToolPlanner(scripted_llm.spec).plan(QUESTION, GRAPH, STEPS).reason
        == "enough"
    )
    last = scripted_llm.requests()[-1]
    assert (
        _results(last)[-1]
        == "(not done: enough was looked at for now, so search, or finish)"
    )
    # the tools are a part of the prompt, which only grows
    assert {tuple(_offered(request)) for request in scripted_llm.requests()} == {
        ("search", "finish", "neighbours", "read")
    }


def test_a_model_that_writes_its_move_in_words_is_followed(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "[SUBQ] Which river flows through Edinburgh?"})
    plan = LLMToolPlanner(scripted_llm.spec).plan(QUESTION, GRAPH, STEPS)
    assert (plan.action, plan.subquery) == (
        "subq",
        "Which river flows through Edinburgh?",
    )


def test_a_model_that_calls_nothing_is_asked_once_more(scripted_llm: Any) -> None:
    scripted_llm.script({"reply": "Let me think."}, _search("Where?"))
    assert (
        LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ()).subquery
        == "Where?"
    )
    scripted_llm.script({"reply": "Hm."}, {"reply": "Well."})
    with pytest.raises(ParseError, match="no call of a tool in the reply"):
        LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ())


def test_the_call_that_a_repair_shows_is_one_and_no_search_of_the_models(
    scripted_llm: Any,
) -> None:
    scripted_llm.script({"reply": "Let me think."}, {"reply": TOOL_JSON.example})
    with pytest.raises(ParseError, match="no tool that can help now"):
        LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ())
    assert TOOL_JSON.example in scripted_llm.requests()[1]["messages"][-1]["content"]
    scripted_llm.script({"reply": TOOL_JSON.example})
    question = "In which city was Jørn Utzon born?"
    assert (
        LLMToolPlanner(scripted_llm.spec).plan(question, QuestionGraph(), ()).subquery
        == question
    )


@pytest.mark.parametrize(
    "call", [["search", {"query": None}], ["search", {}], ["erase", {"query": "x"}]]
)
def test_a_call_that_cannot_be_followed_is_asked_again(
    scripted_llm: Any, call: list[Any]
) -> None:
    scripted_llm.script({"calls": [call]}, _search("Where?"))
    assert (
        LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ()).subquery
        == "Where?"
    )


async def test_it_plans_in_coroutines_too(scripted_llm: Any) -> None:
    scripted_llm.script(_search("Where?"))
    assert (
        await LLMToolPlanner(scripted_llm.spec).aplan(QUESTION, QuestionGraph(), ())
    ).subquery == "Where?"


def test_a_cached_call_is_replayed_without_the_model(
    scripted_llm: Any, tmp_path: Path
) -> None:
    scripted_llm.script(_search("Where?"))
    settings = ChatSettings(cache=tmp_path / "replies.sqlite")
    for _ in range(2):
        planner = LLMToolPlanner(scripted_llm.spec, settings=settings)
        assert planner.plan(QUESTION, QuestionGraph(), ()).subquery == "Where?"
    assert len(scripted_llm.requests()) == 1


def test_the_last_result_is_cut_first_where_the_window_is_small_so_that_the_prompt_only_grows(
    scripted_llm: Any,
) -> None:
    texts = [Passage(f"p{n}", "word " * 800, f"Title {n}") for n in range(1, 3)]
    steps = [
        Step(n, f"search {n}", (Hit(text, 1.0),)) for n, text in enumerate(texts, 1)
    ]
    scripted_llm.script(
        {"calls": [["read", {"passage": "1"}]]},
        {"calls": [["read", {"passage": "2"}]]},
        _search("x"),
    )
    LLMToolPlanner(scripted_llm.spec, settings=ChatSettings(context_window=2600)).plan(
        QUESTION, GRAPH, steps
    )
    *_, before, last = scripted_llm.requests()
    assert last["messages"][: len(before["messages"])] == before["messages"]
    *_, first, second = _results(last)
    assert len(second) < len(first)


def test_a_dialect_that_writes_its_moves_as_text_calls_no_tools() -> None:
    with pytest.raises(
        SettingsError, match=says("search-r1", "--loop react", "--loop ras")
    ):
        tool_planner("openai:gpt-4o-mini", RoleOptions(dialect="search-r1"))


def test_without_a_model_that_calls_tools_the_remedy_is_named() -> None:
    with pytest.raises(
        SettingsError,
        match=says("--loop react", "a model that calls tools", "give --planner"),
    ):
        tool_planner("offline", RoleOptions())
    with pytest.raises(
        SettingsError, match="cannot call tools: choose a model that can"
    ):
        LLMToolPlanner(FakeListChatModel(responses=["x"]))


def _with_words(
    words: str, *calls: tuple[str, str, dict[str, Any]], thoughts: str = ""
) -> dict[str, Any]:
    """Return a reply in which the model speaks in addition to its calls, each an id, a tool and its arguments."""
    told = [
        {
            "id": name,
            "type": "function",
            "function": {"name": tool, "arguments": json.dumps(arguments)},
        }
        for name, tool, arguments in calls
    ]
    message = {"role": "assistant", "content": words, "tool_calls": told}
    if thoughts:
        message["reasoning_content"] = thoughts
    return {
        "fields": {
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
        }
    }


def _after_a_search(
    scripted_llm: Any, reply: dict[str, Any], **options: Any
) -> list[dict[str, Any]]:
    """Return the messages of the second hop's request, where the first hop's reply was `reply`."""
    scripted_llm.script(reply, {"calls": [["finish", {"reason": "known"}]]})
    planner = LLMToolPlanner(scripted_llm.spec, **options)
    plan = planner.plan(QUESTION, QuestionGraph(), ())
    planner.plan(
        QUESTION,
        GRAPH,
        (replace(STEPS[0], subquery=plan.subquery, dialogue=plan.dialogue),),
    )
    first, second = scripted_llm.requests()
    assert second["messages"][: len(first["messages"])] == first["messages"]
    messages: list[dict[str, Any]] = second["messages"]
    return messages


def test_the_models_own_words_and_ids_stay_beside_its_call(scripted_llm: Any) -> None:
    words = "<think>need the birthplace</think> I will search."
    reply = _with_words(
        words, ("chatcmpl-tool-7f", "search", {"query": "Where was Bell born?"})
    )
    *_, said, found = _after_a_search(scripted_llm, reply)
    assert (said["content"], said["tool_calls"][0]["id"]) == (words, "chatcmpl-tool-7f")
    assert (found["role"], found["tool_call_id"]) == ("tool", "chatcmpl-tool-7f")
    assert "Edinburgh" in found["content"]


def test_thoughts_are_dropped_where_they_are_not_kept(scripted_llm: Any) -> None:
    words = "<think>need the birthplace</think> I will search."
    reply = _with_words(
        words, ("a", "search", {"query": "x"}), thoughts="the server's own"
    )
    *_, said, _ = _after_a_search(scripted_llm, reply, keeps_thoughts=False)
    assert said["content"] == "I will search."
    assert "reasoning_content" not in said


def test_thoughts_that_the_server_tells_apart_go_back_to_it(scripted_llm: Any) -> None:
    reply = _with_words(
        "", ("a", "search", {"query": "x"}), thoughts="need the birthplace"
    )
    *_, said, _ = _after_a_search(scripted_llm, reply)
    assert said["reasoning_content"] == "need the birthplace"


def test_several_searches_in_one_message_are_one_plan(scripted_llm: Any) -> None:
    scripted_llm.script(
        {"calls": [["search", {"query": name}] for name in ("Bell", "Ada", "Bell")]}
    )
    plan = LLMToolPlanner(scripted_llm.spec).plan(QUESTION, GRAPH, STEPS)
    assert plan.subqueries == ("Bell", "Ada")


def test_a_further_search_is_answered_by_a_turn_of_its_own(scripted_llm: Any) -> None:
    reply = _with_words(
        "", ("a", "search", {"query": "x"}), ("b", "search", {"query": "y"})
    )
    *_, _, first, second = _after_a_search(scripted_llm, reply)
    assert "Edinburgh" in first["content"]
    assert (second["tool_call_id"], second["content"]) == (
        "b",
        "(a search of its own: where it is made, its result follows)",
    )


def test_of_several_calls_the_first_is_followed_and_each_is_answered(
    scripted_llm: Any,
) -> None:
    reply = _with_words(
        "", ("a", "search", {"query": "x"}), ("b", "read", {"passage": "1"})
    )
    *_, said, first, second = _after_a_search(scripted_llm, reply)
    assert [call["id"] for call in said["tool_calls"]] == ["a", "b"]
    assert "Edinburgh" in first["content"]
    assert (second["tool_call_id"], second["content"]) == (
        "b",
        "(not done: one call at a time)",
    )


@pytest.mark.parametrize(
    "passage", [1, "1", "[1]", "#1", "1.", "(1)", "passage 1", "Alexander Graham Bell"]
)
def test_a_passage_is_read_by_its_number_however_it_is_written(
    scripted_llm: Any, passage: object
) -> None:
    scripted_llm.script(
        {"calls": [["read", {"passage": passage}]]}, _search("Which river?")
    )
    LLMToolPlanner(scripted_llm.spec).plan(QUESTION, GRAPH, STEPS)
    assert "was born in Edinburgh" in _results(scripted_llm.requests()[-1])[-1]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("functions.search", {"query": "Where?"}),
        ("Search", {"query": "Where?"}),
        ("web_search", {"query": "Where?"}),
        ("search<|channel|>commentary", {"query": "Where?"}),
        ("search", {"q": "Where?"}),
        ("search", {"topic": "Where?"}),
        ("search", {"query": ["Where?"]}),
        ("search", {"query": "Where?", "top_k": 5}),
    ],
)
def test_a_search_is_followed_under_another_name_or_key(
    scripted_llm: Any, name: str, arguments: dict[str, Any]
) -> None:
    scripted_llm.script({"calls": [[name, arguments]]})
    assert (
        LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ()).subquery
        == "Where?"
    )


def test_a_call_that_a_server_leaves_in_the_text_is_a_call(scripted_llm: Any) -> None:
    written = 'I search.\n<tool_call>\n{"name": "search", "arguments": {"query": "Where?"}}\n</tool_call>'
    scripted_llm.script({"reply": written})
    plan = LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ())
    assert plan.subquery == "Where?"
    assert plan.dialogue is not None
    said = plan.dialogue.messages[-1]
    assert said["content"] == "I search."
    assert [call["function"]["name"] for call in said["tool_calls"]] == ["search"]


def test_arguments_that_cannot_be_read_are_named(scripted_llm: Any) -> None:
    broken = {"calls": [["search", "query is Where"]]}
    scripted_llm.script(broken, broken)
    with pytest.raises(
        ParseError, match=r"call of 'search' cannot be read: .*query is Where"
    ):
        LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ())


@pytest.mark.parametrize(
    "written",
    [
        "Thought: I search.\nAction: search\nAction Input: Where?",
        "Action: Search[Where?]",
        'Action: search("Where?")',
        "<search>Where?</search>",
    ],
)
def test_a_search_written_in_another_form_is_followed(
    scripted_llm: Any, written: str
) -> None:
    scripted_llm.script({"reply": written})
    assert (
        LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ()).subquery
        == "Where?"
    )


@pytest.mark.parametrize(
    "words",
    [
        "registry/gemma does not support tools",
        "No endpoints found that support tool use.",
        "tools param requires --jinja flag",
        "This model doesn't support tool use.",
        "Function calling is not supported for this model.",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    ],
)
def test_a_model_without_tools_is_told_to_take_the_other_loop(
    scripted_llm: Any, words: str
) -> None:
    scripted_llm.script({"status": 400, "reply": words})
    with pytest.raises(ModelCallError, match="take --loop ras"):
        LLMToolPlanner(scripted_llm.spec).plan(QUESTION, QuestionGraph(), ())
