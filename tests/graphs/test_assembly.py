"""Which extractor goes with which planner, and the demands of a preset on an answerer."""

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from ras_agent.config.registry import PLUGINS
from ras_agent.contracts.errors import UnknownName
from ras_agent.graphs.resolve import matching_extractor, needs_facts
from tests.messages import says


def test_the_extractor_follows_a_planner_that_is_a_model():
    model = FakeListChatModel(responses=[])
    assert matching_extractor(model) is model
    assert matching_extractor("openai:gpt-4o-mini") == "openai:gpt-4o-mini"


def test_the_extractor_follows_a_registered_name_that_extractors_have_too():
    assert matching_extractor("offline") == "offline"


def test_any_other_planner_goes_with_the_offline_extractor(fakes, monkeypatch):
    monkeypatch.setitem(PLUGINS["planner"], "planner-only", "somewhere:Planner")
    assert matching_extractor("planner-only:/path") == "offline"
    assert matching_extractor(fakes.ScriptedPlanner()) == "offline"


def test_an_answerer_without_a_model_needs_facts(fakes):
    class Offline(fakes.CountingAnswerer):
        name = "offline"

    assert needs_facts("offline")
    assert needs_facts(Offline())
    assert not needs_facts("openai:gpt-4o-mini")
    assert not needs_facts(FakeListChatModel(responses=[]))
    assert not needs_facts(fakes.CountingAnswerer())


def test_the_paper_preset_asks_for_an_answerer_that_reads_the_chain_and_always_answers(
    ras, fakes, monkeypatch
):
    asked = []

    def make(argument, options):
        asked.append((options.may_abstain, options.layout))
        return fakes.CountingAnswerer()

    monkeypatch.setitem(PLUGINS["answerer"], "ours", make)
    ras("q", answerer="ours")
    ras("q", answerer="ours", preset="paper")
    assert asked == [(True, None), (False, "chain")]


def test_an_unknown_name_is_reported_as_the_planners(ras):
    with pytest.raises(
        UnknownName,
        match=says(
            "unknown planner 'gpt-4o'", "known: <provider>:<model>, graphllm, offline"
        ),
    ):
        ras(planner="gpt-4o", extractor=None)


def test_the_shapes_of_input_and_output_are_there_as_json_schemas(ras):
    agent = ras("q")
    assert set(agent.get_input_jsonschema()["properties"]) == {
        *(
            "question",
            "messages",
            "seed_passages",
            "static_passages",
            "static_iterations",
            "filter",
            "as_of",
        ),
    }
    assert {"answer", "citations", "graph", "steps"} <= set(
        agent.get_output_jsonschema()["properties"]
    )
