"""An agent asked within a filter: which passages it may find, which filter binds it, and who is refused."""

import asyncio
import re

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from ras_agent import (
    PassageIndex,
    Settings,
    create_ircot_agent,
    create_ras_agent,
    create_single_shot_agent,
)
from ras_agent.config.settings import load_settings
from ras_agent.contracts.errors import FilterError, SettingsError
from ras_agent.contracts.records import Hit, Passage

PASSAGES = [
    Passage(
        f"{team}-{number}",
        f"The depot of team {team} is in {town}.",
        f"Depot {number}",
        metadata={"team": team},
    )
    for team, towns in {
        "x": ("Ostrell", "Velmora"),
        "y": ("Quenne", "Dorve"),
        "z": ("Mitten", "Harrow"),
    }.items()
    for number, town in enumerate(towns, 1)
]
QUESTION = {"question": "Where is the depot of the team?"}
FACTORIES = [create_ras_agent, create_ircot_agent, create_single_shot_agent]


def found(out):
    return {name.partition("-")[0] for name in out["passages"]}


@pytest.mark.parametrize("create", FACTORIES)
def test_a_question_s_filter_decides_what_is_found(create):
    agent = create(index=PASSAGES)
    assert found(agent.invoke(QUESTION)) == {"x", "y", "z"}
    assert found(agent.invoke({**QUESTION, "filter": {"team": "y"}})) == {"y"}
    assert found(
        asyncio.run(agent.ainvoke({**QUESTION, "filter": {"team": ["y", "z"]}}))
    ) == {"y", "z"}
    assert found(agent.invoke(QUESTION)) == {"x", "y", "z"}


@pytest.mark.parametrize("create", FACTORIES)
def test_the_agent_s_own_filter_binds_every_question_and_none_widens_it(create):
    agent = create(index=PASSAGES, settings=Settings(filter={"team": ["x", "y"]}))
    assert found(agent.invoke(QUESTION)) == {"x", "y"}
    assert found(agent.invoke({**QUESTION, "filter": {"team": "y"}})) == {"y"}
    for wider in ({"team": "z"}, {"team": ["z"]}, [{"team": "z"}]):
        out = agent.invoke({**QUESTION, "filter": wider})
        assert (found(out), out["abstained"]) == (set(), True)
    assert found(agent.invoke({**QUESTION, "filter": {"team": ["y", "z"]}})) == {"y"}
    assert found(agent.invoke({**QUESTION, "filter": {}})) == {"x", "y"}


def test_a_filter_is_of_its_question_alone():
    agent = create_ras_agent(index=PASSAGES, checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    assert found(agent.invoke({**QUESTION, "filter": {"team": "y"}}, thread)) == {"y"}
    assert found(agent.invoke(QUESTION, thread)) == {"x", "y", "z"}


def test_a_wrong_filter_is_raised_before_anything_is_asked():
    agent = create_ras_agent(index=PASSAGES)
    with pytest.raises(FilterError, match="filter key 'team' has no value"):
        agent.invoke({**QUESTION, "filter": {"team": []}})


class Plain:
    """Knows no filters."""

    name = "plain"

    def retrieve(self, query, k=5):
        return [Hit(passage, 1.0) for passage in PASSAGES[:k]]


class Filtering(Plain):
    def retrieve(self, query, k=5, *, filter=None):
        return [
            Hit(passage, 1.0)
            for passage in PASSAGES
            if filter is None or filter.matches(passage)
        ][:k]


class Careless(Plain):
    def retrieve(self, query, k=5, filter=None):
        return super().retrieve(query, k)


def test_a_retriever_of_one_s_own_is_given_the_filter():
    agent = create_ras_agent(retriever=Filtering())
    assert found(agent.invoke({**QUESTION, "filter": {"team": "z"}})) == {"z"}
    assert found(asyncio.run(agent.ainvoke({**QUESTION, "filter": {"team": "z"}}))) == {
        "z"
    }
    assert found(agent.invoke(QUESTION)) == {"x", "y", "z"}


def test_a_retriever_that_takes_no_filter_is_refused_with_a_remedy():
    agent = create_ras_agent(retriever=Plain())
    assert found(agent.invoke(QUESTION)) == {"x", "y", "z"}
    remedy = re.escape(
        "'plain' cannot apply a filter (team = y): give its method the parameter `filter`, retrieve("
    )
    with pytest.raises(FilterError, match=remedy):
        agent.invoke({**QUESTION, "filter": {"team": "y"}})
    filtered = create_ras_agent(
        retriever=Plain(), settings=Settings(filter={"team": "y"})
    )
    with pytest.raises(FilterError, match=remedy):
        filtered.invoke(QUESTION)


def test_a_passage_outside_that_a_retriever_finds_all_the_same_ends_the_run():
    agent = create_ras_agent(retriever=Careless())
    with pytest.raises(
        FilterError, match="'plain' returned a passage that the filter"
    ) as raised:
        agent.invoke({**QUESTION, "filter": {"team": "y"}})
    assert "x-1" not in str(raised.value)


@pytest.mark.parametrize("key", ["seed_passages", "static_passages"])
def test_passages_that_are_given_have_to_be_within_the_filter_too(key):
    agent = create_ras_agent(index=PASSAGES, settings=Settings(filter={"team": "y"}))
    assert found(agent.invoke({**QUESTION, key: PASSAGES[2:4]})) == {"y"}
    for outside in (PASSAGES[:1], ["A text of nobody's."]):
        with pytest.raises(
            FilterError, match=r"given passage .* is outside the filter"
        ):
            agent.invoke({**QUESTION, key: outside})


def test_settings_read_a_filter_from_flags_variables_and_files(tmp_path):
    config = tmp_path / "ras-agent.toml"
    config.write_text('filter = {team = ["x", "y"], year = 2019}')
    assert load_settings(config, {}).filter == {"team": ["x", "y"], "year": 2019}
    assert load_settings(None, {}, {"filter": ["team=x", "team=y"]}).filter == {
        "team": ["x", "y"]
    }
    assert load_settings(None, {"RAS_AGENT_FILTER": "team=x"}).filter == {"team": ["x"]}
    assert load_settings(None, {"RAS_AGENT_FILTER": '{"year": 2019}'}).filter == {
        "year": 2019
    }
    for environment, message in (
        (
            {"RAS_AGENT_FILTER": "team"},
            "environment: RAS_AGENT_FILTER: expected key=value, such as team=x",
        ),
        ({"RAS_AGENT_FILTER": "{team"}, "environment: RAS_AGENT_FILTER: "),
    ):
        with pytest.raises(SettingsError, match=message):
            load_settings(None, environment)


def test_an_index_by_its_path_and_by_itself_are_filtered_alike(tmp_path):
    PassageIndex.create(tmp_path / "i").add(PASSAGES)
    for index in (tmp_path / "i", PassageIndex.open(tmp_path / "i")):
        out = create_ras_agent(index=index).invoke(
            {**QUESTION, "filter": {"id": "x-*"}}
        )
        assert list(out["passages"]) == ["x-1", "x-2"]
