"""An agent's parts come from settings and from its graph's spec."""

import re
from dataclasses import replace
from inspect import getsource, signature
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from ras_agent import (
    Limits,
    create_ircot_agent,
    create_ras_agent,
    create_single_shot_agent,
)
from ras_agent.config import registry
from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import PromptError, SettingsError
from ras_agent.contracts.records import Passage
from ras_agent.graphs.parts import AgentArguments, AgentParts
from ras_agent.graphs.registry import GraphSpec, graph_spec
from ras_agent.graphs.resolve import (
    agent_from_settings,
    create_agent,
    resolve_parts,
    role_specs,
)
from ras_agent.graphs.single_shot import assemble_single_shot
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.roles import RoleOptions, resolve_answerer, resolve_extractor
from tests.messages import says

CORPUS = [Passage("bell", "Bell was born in Edinburgh.")]
MODEL = "openai:gpt-4o-mini"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Any:
    """registered(...): a GraphSpec under the name "mine", only for this test."""
    monkeypatch.setitem(registry.PLUGINS, "loop", dict(registry.PLUGINS["loop"]))
    return lambda *args, **options: registry.register(
        "loop", "mine", GraphSpec(*args, **options)
    )


@pytest.mark.parametrize(
    ("spec", "given", "roles"),
    [
        (
            {},
            {"planner": MODEL},
            {"planner": MODEL, "answerer": "offline", "extractor": MODEL},
        ),
        (
            {"planner": None},
            {"answerer": MODEL},
            {"answerer": MODEL, "extractor": MODEL},
        ),
        (
            {"facts": "if needed"},
            {"planner": MODEL},
            {"planner": MODEL, "answerer": "offline", "extractor": "offline"},
        ),
        ({"facts": "if needed"}, {"llm": MODEL}, {"planner": MODEL, "answerer": MODEL}),
        (
            {"facts": "never"},
            {"extractor": MODEL},
            {"planner": "offline", "answerer": "offline"},
        ),
    ],
)
def test_a_graph_has_the_roles_that_its_spec_names(
    registered: Any, spec: dict[str, Any], given: dict[str, Any], roles: dict[str, str]
) -> None:
    registered(assemble_single_shot, **spec)
    assert role_specs(Settings(loop="mine", **given)) == roles


def test_few_shot_and_task_reach_the_roles_of_ircot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "none")
    model = "vllm:http://127.0.0.1:9/v1#m"
    roles = resolve_parts(
        "ircot",
        settings=Settings(llm=model, few_shot=True),
        index=CORPUS,
        task="Name a river.",
    )
    for role, prompt in (
        (roles.planner, "next-sentence-few-shot"),
        (roles.answerer, "reader-few-shot"),
    ):
        asked = role._by_need.plain if role is roles.answerer else role._prompt
        assert asked.name == prompt
        assert role._task == "Name a river."


def test_window_and_length_of_the_answer_reach_the_roles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "none")
    settings = Settings(
        llm="vllm:http://127.0.0.1:9/v1#m", context_window=4096, answer_tokens=50
    )
    roles = resolve_parts("ras", settings=settings, index=CORPUS)
    assert {
        role._chat.sizes.window
        for role in (roles.planner, roles.extractor, roles.answerer)
    } == {4096}
    assert roles.answerer._max_tokens == 82  # the answer, "Answer:" and its numbers


def test_a_graphs_own_kind_of_planner_is_made_of_what_the_user_writes(
    registered: Any,
) -> None:
    made: list[object] = []

    def resolve(spec: object, options: RoleOptions) -> object:
        made.append((spec, options.few_shot))
        return made

    def assemble(parts: AgentParts, checkpointer: Any) -> Any:
        assert parts.planner is made
        return assemble_single_shot(
            replace(parts, extractor=resolve_extractor("offline")), checkpointer
        )

    registered(assemble, planner=resolve, facts="never")
    agent = agent_from_settings(
        Settings(loop="mine", planner="my:words", few_shot=True), CORPUS
    )
    assert made == [("my:words", True)]
    assert agent.invoke({"question": "Where was Bell born?"})["answer"] == "Edinburgh"


def test_a_preset_is_refused_by_a_graph_that_takes_none() -> None:
    with pytest.raises(SettingsError, match="loop 'ircot' has no presets, got 'paper'"):
        agent_from_settings(Settings(loop="ircot", preset="paper"), CORPUS)


def test_a_graph_that_takes_other_arguments_is_told_which_it_is_given(
    registered: Any,
) -> None:
    def by_name(*, answerer: object, retriever: object, limits: object) -> Any: ...

    registered(by_name)
    with pytest.raises(
        TypeError,
        match=says(
            "loop 'mine'", "called as (parts, checkpointer)", "by_name", "does not"
        ),
    ):
        graph_spec("mine")
    registered(assemble_single_shot, planner=lambda spec: spec)
    with pytest.raises(
        TypeError, match=says("planner of loop 'mine'", "called as (spec, options)")
    ):
        create_agent("mine", index=CORPUS)


def test_a_plug_in_that_is_no_spec_is_a_type_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(registry.PLUGINS, "loop", {"mine": create_single_shot_agent})
    with pytest.raises(
        TypeError,
        match=says(
            "loop 'mine'", "must be", "ras_agent.graphs.registry.GraphSpec", "got"
        ),
    ):
        graph_spec("mine")


# ---- the factories and settings

FACTORIES = (create_ras_agent, create_ircot_agent, create_single_shot_agent)


def test_the_factories_take_the_same_arguments() -> None:
    for create in FACTORIES:
        (arguments,) = signature(create).parameters.values()
        assert arguments.annotation == "Unpack[AgentArguments]"


@pytest.mark.parametrize("create", FACTORIES)
def test_an_argument_that_there_is_not_is_a_type_error(create: Any) -> None:
    with pytest.raises(
        TypeError,
        match=says(
            "agent",
            "no argument 'planer'",
            "known: index, llm",
            "did you mean planner?",
        ),
    ):
        create(index=CORPUS, planer="offline")


def test_every_argument_is_documented_where_it_stands() -> None:
    source = getsource(AgentArguments)
    assert [
        name
        for name in AgentArguments.__annotations__
        if not re.search(rf'\n    {name}: .*\n    """', source)
    ] == []


@pytest.mark.parametrize("create", FACTORIES)
def test_settings_name_what_no_argument_names(
    create: Any, tmp_path: Path, scripted_llm: Any
) -> None:
    (tmp_path / "may-abstain.txt").write_text("Ask the parrot.")
    scripted_llm.script({"when": "Ask the parrot.", "reply": "Answer: Edinburgh [1]"})
    settings = Settings(
        answerer=scripted_llm.spec,
        extractor="offline",
        prompts=tmp_path,
        temperature=0.5,
        max_hops=1,
    )
    agent = create(index=CORPUS, settings=settings, task="Name a city.")
    out = agent.invoke({"question": "Where was Bell born?"})
    assert (out["answer"], len(out["steps"]), out["failures"]) == ("Edinburgh", 1, [])
    assert "Name a city." in scripted_llm.requests()[0]["messages"][-1]["content"]
    assert [request["temperature"] for request in scripted_llm.requests()] == [0.5]


def test_an_argument_wins_over_settings() -> None:
    settings = Settings(
        planner="nobody:model",
        retriever="dense",
        index=Path("nowhere"),
        max_hops=1,
        loop="ircot",
    )
    agent = create_ras_agent(
        planner="offline",
        retriever="bm25",
        index=CORPUS,
        limits=Limits(max_hops=2),
        settings=settings,
    )
    assert agent.name == "ras"
    assert agent.invoke({"question": "Where was Bell born?"})["answer"] == "Edinburgh"


def test_the_least_confidence_is_the_offline_answerers(scripted_llm: Any) -> None:
    question = {"question": "Where was Bell born?"}
    sure = create_ras_agent(
        index=CORPUS, settings=Settings(least_confidence=0.0)
    ).invoke(question)
    assert (sure["answer"], sure["abstained"]) == ("Edinburgh", False)
    unsure = create_ras_agent(
        index=CORPUS, settings=Settings(least_confidence=0.999)
    ).invoke(question)
    assert unsure["abstained"]
    scripted_llm.script(
        {"when": "You answer questions", "reply": "Answer: Edinburgh [1]"}
    )
    settings = Settings(
        answerer=scripted_llm.spec, extractor="offline", least_confidence=0.999
    )
    assert (
        create_single_shot_agent(index=CORPUS, settings=settings).invoke(question)[
            "answer"
        ]
        == "Edinburgh"
    )


def test_an_answerer_of_a_plug_in_takes_the_least_confidence_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[tuple[float | None, str]] = []

    def careful(argument: str, options: RoleOptions) -> object:
        given.append((options.least_confidence, options.language))
        return resolve_answerer("offline")

    monkeypatch.setitem(
        registry.PLUGINS, "answerer", dict(registry.PLUGINS["answerer"])
    )
    registry.register("answerer", "careful", careful)
    for settings in (
        Settings(answerer="careful", least_confidence=0.9),
        Settings(answerer="careful"),
    ):
        create_ras_agent(index=CORPUS, settings=settings)
    assert given == [(0.9, "english"), (None, "english")]


def test_the_index_may_be_a_setting(tmp_path: Path) -> None:
    PassageIndex.create(tmp_path / "index").add(CORPUS)
    agent = create_ras_agent(settings=Settings(index=tmp_path / "index"))
    assert agent.invoke({"question": "Where was Bell born?"})["answer"] == "Edinburgh"


def test_models_made_of_strings_decide_and_read_at_temperature_0_and_answer_at_their_own(
    scripted_llm: Any,
) -> None:
    scripted_llm.script(
        {"when": "You steer", "reply": "[SUBQ] Where was Bell born?"},
        {"when": "[1]", "reply": "(S> Bell | P> was born in | O> Edinburgh)"},
        {"when": "You answer questions", "reply": "Answer: Edinburgh [1]"},
    )
    settings = Settings(llm=scripted_llm.spec, max_hops=1)
    create_ras_agent(index=CORPUS, settings=settings).invoke(
        {"question": "Where was Bell born?"}
    )
    assert [request.get("temperature") for request in scripted_llm.requests()] == [
        0.0,
        0.0,
        None,
    ]


# ---- the first things that a caller writes


def test_one_model_for_all_roles_plays_them_all_unless_another_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "none")
    one, other = "vllm:http://127.0.0.1:9/v1#one", "vllm:http://127.0.0.1:9/v1#other"
    roles = resolve_parts("ras", llm=one, index=CORPUS).role_names
    assert roles == {"planner": one, "extractor": one, "answerer": one}
    roles = resolve_parts(
        "ras", llm=one, answerer=other, index=CORPUS, settings=Settings(llm=other)
    ).role_names
    assert roles == {"planner": one, "extractor": one, "answerer": other}


@pytest.mark.parametrize(
    "texts",
    [
        ["Bell was born in Edinburgh."],
        ({"text": text} for text in ["Bell was born in Edinburgh."]),
        [Document("Bell was born in Edinburgh.")],
    ],
    ids=["texts", "dictionaries", "documents"],
)
def test_an_agent_answers_from_texts_as_they_are(texts: Any) -> None:
    out = create_ras_agent(index=texts).invoke({"question": "Where was Bell born?"})
    assert out["answer"] == "Edinburgh"


@pytest.fixture
def store() -> InMemoryVectorStore:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_texts(["Bell was born in Edinburgh."], [{"source": "notes/bell.txt"}])
    return store


@pytest.mark.parametrize("argument", ["index", "retriever"])
def test_a_vector_store_is_searched_as_it_is_and_cited_by_its_files(
    argument: str, store: InMemoryVectorStore
) -> None:
    given: Any = {argument: store}
    out = create_ras_agent(**given).invoke({"question": "Where was Bell born?"})
    assert out["answer"] == "Edinburgh"
    assert [citation["file"] for citation in out["citations"]] == ["notes/bell.txt"]


@pytest.mark.parametrize(
    "given", [{"retriever": "bm25"}, {"settings": Settings(retriever="bm25")}]
)
def test_a_vector_store_as_the_index_leaves_no_choice_of_a_retriever(
    given: Any, store: InMemoryVectorStore
) -> None:
    with pytest.raises(
        SettingsError,
        match=says("InMemoryVectorStore", "'bm25'", "leave one of them out"),
    ):
        create_ras_agent(index=store, **given)


def test_texts_are_embedded_where_the_settings_name_an_embedder() -> None:
    settings = Settings(embedder="minilm", retriever="dense")
    agent = create_ras_agent(index=["Bell was born in Edinburgh."], settings=settings)
    assert agent.invoke({"question": "Where was Bell born?"})["answer"] == "Edinburgh"


def test_a_text_in_place_of_the_path_of_an_index_is_told_to_be_in_a_list() -> None:
    with pytest.raises(SettingsError, match=says("no index at", "index=['...']")):
        create_ras_agent(index="Bell was born in Edinburgh.")


def test_a_folder_of_prompts_that_is_not_there_is_named_also_where_nobody_reads_prompts(
    tmp_path: Path,
) -> None:
    with pytest.raises(PromptError, match=says("gone", "does not exist")):
        create_ras_agent(index=CORPUS, settings=Settings(prompts=tmp_path / "gone"))
