"""GraphLLM in its roles: the inputs of planner and answerer, as text and as graph, and the settings of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import ParseError, WeightsError
from ras_agent.contracts.records import Hit, Passage, Source, Step, Triple
from ras_agent.prompts import Turn
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import ChatSettings
from ras_agent.tools.roles import (
    RoleOptions,
    resolve_answerer,
    resolve_planner,
    role_name,
)

BELL = Triple(
    "Alexander Graham Bell", "was born in", "Edinburgh", (Source("p1", 0, 10),)
)
LEITH = Triple("Water of Leith", "flows through", "Edinburgh", (Source("p2", 0, 10),))
GIVEN = Triple("Edinburgh", "lies in", "Scotland")
PASSAGES = (
    Passage("p1", "Alexander Graham Bell was born in Edinburgh."),
    Passage("p2", "The Water of Leith."),
)
GRAPH = QuestionGraph((GIVEN, BELL, LEITH))
STEPS = (
    Step(1, "Where was Bell born?", (Hit(PASSAGES[0], 1.0),), (BELL.id,), (BELL.id,)),
    Step(
        2,
        "Which river is there?",
        (Hit(PASSAGES[1], 1.0),),
        (LEITH.id, BELL.id),
        (LEITH.id,),
    ),
)
QUESTION = "Which river flows through the city where Bell was born?"


@pytest.fixture
def folder(graph_llm: Callable[..., Any], tmp_path: Path) -> Path:
    graph_llm(layout="chain").save(tmp_path / "model")
    return tmp_path / "model"


def _asked(role: Any, *given: Any) -> Request:
    return next(role.dialogue(QUESTION, *given))


def test_the_graph_of_a_request_has_the_facts_of_each_search_behind_the_given_ones() -> (
    None
):
    assert GRAPH.by_subquery(STEPS) == ((GIVEN,), (BELL,), (LEITH, BELL))
    assert GRAPH.by_subquery(()) == ((GIVEN, BELL, LEITH),)
    assert QuestionGraph().by_subquery(STEPS) == ()


def test_planner_and_answerer_hand_over_text_and_graph(folder: Path) -> None:
    planner, answerer = (
        resolve_planner(f"graphllm:{folder}"),
        resolve_answerer(f"graphllm:{folder}"),
    )
    for request in (
        _asked(planner, GRAPH, STEPS),
        _asked(answerer, GRAPH, PASSAGES, STEPS),
    ):
        assert request.graph == GRAPH.by_subquery(STEPS)
        # in the layout of its training, at each search
        assert request.turns[-1].text.count(str(BELL)) == 2
        assert "<passage>" not in request.turns[-1].text
    assert role_name(planner) == role_name(answerer) == f"graphllm:{folder}"


def test_the_layout_searches_leaves_the_facts_to_the_graph_tokens(folder: Path) -> None:
    planner = resolve_planner(f"graphllm:{folder}", RoleOptions(layout="searches"))
    answerer = resolve_answerer(f"graphllm:{folder}", RoleOptions(layout="searches"))
    for request in (
        _asked(planner, GRAPH, STEPS),
        _asked(answerer, GRAPH, PASSAGES, STEPS),
    ):
        shown = "\n".join(turn.text for turn in request.turns)
        assert "[SUBQ] Which river is there?" in shown
        assert str(BELL) not in shown
        assert request.graph == GRAPH.by_subquery(STEPS)


def test_without_text_an_answer_cites_the_facts_that_share_most_with_it(
    scripted_model: Any,
) -> None:
    from ras_agent.tools.answer.llm import LLMAnswerer

    answerer = LLMAnswerer(
        scripted_model("Answer: Water of Leith [1]"), layout="searches"
    )
    answer = answerer.answer(QUESTION, GRAPH, PASSAGES, STEPS)
    assert answer.text == "Water of Leith"
    assert answer.citations[0].passage_id == "p2"
    assert [failure.message for failure in answer.failures] == [
        "cited [1], which is no evidence shown"
    ]


def test_the_prompts_of_the_training_are_used_unless_the_caller_has_others(
    folder: Path, tmp_path: Path
) -> None:
    for place, text in (
        (folder / "prompts", "trained {{history}}"),
        (tmp_path / "own", "mine {{history}}"),
    ):
        place.mkdir()
        (place / "plan.txt").write_text(f"{text}\n{{{{task}}}}\n{{{{question}}}}\n")
    planner = resolve_planner(f"graphllm:{folder}")
    assert _asked(planner, GRAPH, STEPS).turns[0].text.startswith("trained")
    planner = resolve_planner(
        f"graphllm:{folder}", RoleOptions(prompts_dir=tmp_path / "own")
    )
    assert _asked(planner, GRAPH, STEPS).turns[0].text.startswith("mine")


def test_without_graph_tokens_the_model_reads_the_text_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ras_agent.tools.graph_tokens.graph_llm import Generated, GraphLLM

    read: list[Any] = []

    def generate(self: Any, prompts: Any, graphs: Any, *limits: Any) -> list[Generated]:
        read.append(graphs[0])
        return [Generated("[SUBQ] Where? Answer: Leith", 1, 1, False)]

    monkeypatch.setattr(GraphLLM, "generate", generate)
    planner, answerer = (
        resolve_planner(f"graphllm:{folder}"),
        resolve_answerer(f"graphllm:{folder}"),
    )
    planner.plan(QUESTION, GRAPH, STEPS)
    answerer.answer(QUESTION, GRAPH, PASSAGES, STEPS)
    assert [graph.groups for graph in read] == [3, 3]
    read.clear()
    planner.without_graph_tokens().plan(QUESTION, GRAPH, STEPS)  # type: ignore[attr-defined]
    answerer.without_graph_tokens().answer(QUESTION, GRAPH, PASSAGES, STEPS)  # type: ignore[attr-defined]
    assert read == [None, None]


@pytest.mark.slow("large examples")
def test_a_model_with_random_weights_is_a_planner_whose_reply_cannot_be_read(
    folder: Path,
) -> None:
    with pytest.raises(ParseError, match="no action in the reply"):
        resolve_planner(f"graphllm:{folder}").plan(QUESTION, GRAPH, STEPS)


def test_equal_texts_with_other_graphs_have_replies_of_their_own_in_the_cache(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ras_agent.tools.chat.client import Chat
    from ras_agent.tools.graph_tokens.chat import GraphLLMChat

    model = GraphLLMChat.in_folder(folder)
    chat = Chat(model, settings=ChatSettings(cache=tmp_path / "replies"))
    asked = Request((Turn("user", "Where?"),), graph=((BELL,),))
    replies = [
        chat.complete(Request(asked.turns, max_tokens=8, graph=graph))
        for graph in (((BELL,),), ((LEITH,),), ())
    ]
    assert [reply.replayed for reply in replies] == [False, False, False]
    assert chat.complete(Request(asked.turns, max_tokens=8, graph=((LEITH,),))).replayed
    assert replies[0].output_tokens == 8
    assert replies[0].truncated


def test_weights_that_were_trained_anew_in_a_folder_have_replies_of_their_own(
    graph_llm: Callable[..., Any], folder: Path
) -> None:
    from ras_agent.tools.chat.names import sampling_parameters
    from ras_agent.tools.graph_tokens.chat import GraphLLMChat

    model = type(graph_llm())
    before = GraphLLMChat(model.load(folder), str(folder))
    assert sampling_parameters(before) == sampling_parameters(
        GraphLLMChat(model.load(folder), str(folder))
    )
    graph_llm(seed=1).save(folder)
    assert sampling_parameters(before) != sampling_parameters(
        GraphLLMChat(model.load(folder), str(folder))
    )


def test_a_model_that_reads_text_alone_gets_no_graph(scripted_model: Any) -> None:
    from ras_agent.tools.plan.llm import LLMPlanner

    model = scripted_model("[SUFFICIENT]")
    assert LLMPlanner(model).plan(QUESTION, GRAPH, STEPS).action == "sufficient"


def test_the_chat_model_takes_messages_of_langchain_and_facts(folder: Path) -> None:
    from langchain_core.messages import HumanMessage, SystemMessage

    from ras_agent.tools.graph_tokens.chat import GraphLLMChat

    chat = GraphLLMChat.in_folder(folder, max_tokens=6)
    message = chat.invoke(
        [SystemMessage("You plan."), HumanMessage("Where?")], graph=[[BELL]]
    )
    turns = [Turn("system", "You plan."), Turn("user", "Where?")]
    graph = chat.graph_llm.vectors.of_steps(
        [[("Alexander Graham Bell", "was born in", "Edinburgh")]]
    )
    (made,) = chat.graph_llm.generate([turns], [graph], 6)
    assert message.text == made.text
    assert message.usage_metadata == {
        "input_tokens": made.input_tokens, "output_tokens": 6, "total_tokens": made.input_tokens + 6,
    }  # fmt: skip
    assert message.response_metadata["finish_reason"] == "length"
    assert chat.profile == {"max_input_tokens": 2501}


def test_a_folder_is_loaded_once_for_both_roles(folder: Path) -> None:
    from ras_agent.tools.graph_tokens.chat import GraphLLMChat

    assert (
        GraphLLMChat.in_folder(folder).graph_llm
        is GraphLLMChat.in_folder(str(folder)).graph_llm
    )


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="there is no GraphLLM in this folder"):
        resolve_planner(f"graphllm:{tmp_path}")
