"""A model that was trained to read one graph answers in an agent as it did in its training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch_geometric")
pytest.importorskip("pcst_fast")

from ras_agent.contracts.errors import WeightsError
from ras_agent.question_graph import QuestionGraph
from ras_agent.testing import check_answerer
from ras_agent.testing.answerers import GRAPH, PASSAGES, QUESTION, STEPS
from ras_agent.tools.graph_tokens.graph_reader import (
    GraphPrompts,
    GraphReader,
    GraphView,
)
from ras_agent.tools.roles import resolve_answerer, resolve_planner
from ras_agent.tools.subgraph.graph import Graph
from tests.messages import says


@pytest.fixture
def folder(graph_llm: Callable[..., Any], tmp_path: Path) -> Path:
    model = graph_llm()
    view = GraphView(top_nodes=2, top_edges=1, reply_tokens=4, task="One name.")
    prompts = GraphPrompts(view, model.vectors, model.count_tokens)
    GraphReader(model, prompts).save(tmp_path / "reader")
    return tmp_path / "reader"


def test_it_replies_as_the_trained_reader_does_and_cites_the_shown_facts(
    folder: Path,
) -> None:
    answerer = resolve_answerer(f"graphqa:{folder}")
    reader = GraphReader.load(folder)
    graph = Graph.from_triples(GRAPH.facts)
    (reply,) = reader.replies([(QUESTION, graph)])
    answer = answerer.answer(QUESTION, GRAPH, PASSAGES, STEPS)
    assert answer.text == reply.text.strip() or answer.text in reply.text
    shown = reader.prompts.input(QUESTION, graph)
    assert 0 < len(shown.edges) < len(GRAPH.facts)
    cited = {fact for citation in answer.citations for fact in citation.triple_ids}
    texts = {(GRAPH.by_id[fact].subject, GRAPH.by_id[fact].object) for fact in cited}
    ends = {(shown.nodes[start], shown.nodes[end]) for start, _, end in shown.edges}
    assert texts
    assert texts <= ends


def test_its_model_is_asked_what_the_trained_reader_is_shown(folder: Path) -> None:
    answerer = resolve_answerer(f"graphqa:{folder}")
    prompts = GraphReader.load(folder).prompts
    shown = prompts.input(QUESTION, Graph.from_triples(GRAPH.facts))
    request = next(answerer.dialogue(QUESTION, GRAPH, PASSAGES))
    assert request.turns == shown.turns
    assert request.max_tokens == 4
    (facts,) = request.graph
    # the part of the graph that the Steiner tree selects, not all of it
    assert {(fact.subject, fact.predicate, fact.object) for fact in facts} == {
        (shown.nodes[start], relation, shown.nodes[end])
        for start, relation, end in shown.edges
    }
    assert len(facts) < len(GRAPH.facts)


def test_it_keeps_the_contract_of_answerers_and_abstains_without_facts(
    folder: Path,
) -> None:
    answerer = resolve_answerer(f"graphqa:{folder}")
    check_answerer(answerer, abstains=True)
    assert answerer.answer(QUESTION, QuestionGraph(), PASSAGES, ()).abstained


def test_a_model_with_a_view_of_its_own_is_not_asked_with_the_loops_prompt(
    folder: Path,
) -> None:
    for resolve in (resolve_answerer, resolve_planner):
        with pytest.raises(WeightsError, match=says(f"use graphqa:{folder}")):
            resolve(f"graphllm:{folder}")
    (folder / "view.json").unlink()
    no_reader = says("there is no graph view in this folder")
    with pytest.raises(WeightsError, match=no_reader):
        resolve_answerer(f"graphqa:{folder}")
