"""Features that only some engines have: forms of replies, windows that are set, vectors of texts, prompts as vectors, bulk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("aiohttp", reason="needs the extra 'openai'")

from ras_agent import Settings, create_single_shot_agent
from ras_agent.app.sample import sample_passages
from ras_agent.contracts.errors import ModelRefused
from ras_agent.prompts import Turn
from ras_agent.question_graph import QuestionGraph
from ras_agent.tools.answer.forms import FORMS
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings, as_chat
from ras_agent.tools.chat.form import ReplyForm
from ras_agent.tools.plan.grammar import REPLY_FORM, parse_plan
from ras_agent.tools.plan.llm import LLMPlanner
from ras_agent.tools.structure.parse_triples import REPLY_FORM as FACTS
from tests.engines.servers import Engine, Server, serving
from tests.engines.train import FOLDER
from tests.messages import says
from tests.tools.graph_tokens.conftest import BELL, LEITH, move_weights

pytestmark = [pytest.mark.slow("engines"), pytest.mark.timeout(1800)]

GRAPHS: tuple[tuple[tuple[Any, ...], ...], ...] = (
    (),
    ((BELL,),),
    ((BELL,), (LEITH, BELL)),
)
ADAPTED = "adapted"
SHORT_ANSWER = FORMS["short"].reply_form(may_abstain=True)


@pytest.mark.needs("forms")
def test_a_reply_of_any_words_has_the_form_that_was_asked_for(server: Server) -> None:
    chat = as_chat(server.spec, ChatSettings(temperature=2.0, timeout=300.0))
    requests = [
        Request((Turn("user", f"Word {number}"),), max_tokens=200, form=REPLY_FORM)
        for number in range(64)
    ]
    with ThreadPoolExecutor(64) as pool:
        texts = [reply.text for reply in pool.map(chat.complete, requests)]
    assert len([parse_plan(text) for text in texts]) == 64
    assert len(set(texts)) > 3


@pytest.mark.needs("forms")
@pytest.mark.parametrize("form", [FACTS, SHORT_ANSWER], ids=["facts", "answer"])
def test_facts_and_answers_of_any_words_have_their_form(
    form: ReplyForm, server: Server
) -> None:
    chat = as_chat(server.spec, ChatSettings(temperature=2.0, timeout=300.0))
    requests = [
        Request((Turn("user", f"Word {number}"),), max_tokens=400, form=form)
        for number in range(16)
    ]
    with ThreadPoolExecutor(16) as pool:
        whole = [
            reply.text
            for reply in pool.map(chat.complete, requests)
            if not reply.truncated
        ]
    assert len(whole) > 3
    assert [text for text in whole if not re.fullmatch(form.pattern, text)] == []


@pytest.mark.needs("forms")
def test_a_planner_on_a_model_that_has_not_learnt_to_plan_states_a_plan(
    server: Server,
) -> None:
    planner = LLMPlanner(
        server.spec, settings=ChatSettings(temperature=2.0, timeout=300.0)
    )
    questions = [
        f"Who was the {number}th emperor of a place without emperors?"
        for number in range(32)
    ]
    with ThreadPoolExecutor(32) as pool:
        plans = list(
            pool.map(
                lambda question: planner.plan(question, QuestionGraph(), ()), questions
            )
        )
    assert {plan.action for plan in plans} <= {"subq", "sufficient", "no_retrieval"}
    assert len(plans) == 32


@pytest.mark.needs("windows")
@pytest.mark.parametrize("window", [1024, 2048])
def test_a_window_that_prompts_do_not_fit_into_is_learnt_and_kept_to(
    window: int, engine: Engine
) -> None:
    with serving(engine, FOLDER, *engine.window(window)) as server:
        settings = Settings(k=60, timeout=300.0)
        agent = create_single_shot_agent(
            index=sample_passages(), settings=settings, answerer=server.spec
        )
        out = agent.invoke(
            {"question": "In which city was the inventor of dynamite born?"}
        )
        tokens = [
            call["input_tokens"] + call["output_tokens"]
            for call in out["usage"]["calls"]
        ]
    assert tokens, out["failures"]
    assert max(tokens) <= window
    assert any("did not fit" in failure["message"] for failure in out["failures"])


@pytest.mark.needs("embeddings")
def test_texts_are_embedded_and_found(engine: Engine, tmp_path: Path) -> None:
    from ras_agent.tools.embed.embedders import resolve_embedder
    from ras_agent.tools.index.store import PassageIndex

    passages = sample_passages()
    with serving(engine, FOLDER, *engine.embeds) as server:
        index = PassageIndex.create(tmp_path / "index", server.spec)
        index.add(passages)
        embedder = resolve_embedder(server.spec)
        alone = np.concatenate(
            [embedder.embed([passage.text]) for passage in passages[:8]]
        )
        together = embedder.embed([passage.text for passage in passages[:8]])
    # batches are added up in another order
    np.testing.assert_allclose(alone, together, atol=1e-4)


@pytest.fixture(scope="module")
def graph_llms(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a GraphLLM of a tuning on the model that was learnt, with weights that are far from new ones."""
    from ras_agent.tools.graph_tokens.encoders import EncoderConfig
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM, GraphLLMConfig

    made = tmp_path_factory.mktemp("graph_llms")

    def make(tuning: Any) -> Path:
        folder = made / tuning
        if not folder.exists():
            encoder = EncoderConfig(layers=2, heads=2, width=32)
            config = GraphLLMConfig(
                str(FOLDER), encoder=encoder, projector=64, tuning=tuning
            )
            model = GraphLLM.new(config)
            move_weights(model)
            model.save(folder)
        return folder

    return make


def _turns(number: int = 0) -> tuple[Turn, ...]:
    return Turn("system", "You plan."), Turn(
        "user", f"Question {number}: Which river flows through the city?"
    )


def _compare(folder: Path, server: Server, name: str, *, at_once: int = 64) -> None:
    """Hold the replies of a server, one by one, streamed, and many at once, to those of the GraphLLM here."""
    from ras_agent.tools.graph_tokens.chat import GraphLLMChat
    from ras_agent.tools.graph_tokens.served import ServedGraphLLM

    here = Chat(GraphLLMChat.in_folder(folder))
    there = Chat(ServedGraphLLM.at(folder, f"{server.url}/v1", name))
    requests = [
        Request(_turns(number), None, 16, GRAPHS[number % 3])
        for number in range(at_once)
    ]
    expected = [here.complete(request) for request in requests[:12]]
    with ThreadPoolExecutor(at_once) as pool:
        replies = list(pool.map(there.complete, requests))
    assert len(replies) == at_once
    same = [
        reply.text == wanted.text
        for reply, wanted in zip(replies, expected, strict=False)
    ]
    # a near tie may fall differently where a batch adds up in another order, or the limit cuts a character in two
    assert same.count(False) <= 1
    for request, wanted in zip(requests[:3], expected, strict=False):
        streamed = there.complete(
            Request(request.turns, lambda text: None, 16, request.graph)
        )
        assert (streamed.input_tokens, streamed.output_tokens) == (
            wanted.input_tokens,
            wanted.output_tokens,
        )


@pytest.fixture(scope="module")
def frozen_and_adapted(
    engine: Engine, graph_llms: Callable[[str], Path]
) -> Iterator[Server]:
    """A server of the language model that takes prompts as vectors, with an adapter next to it."""
    options = [
        "--enable-prompt-embeds",
        "--enable-lora",
        "--lora-target-modules",
        "q_proj",
        "v_proj",
    ]
    adapter = f"{ADAPTED}={graph_llms('lora') / 'adapter'}"
    with serving(engine, FOLDER, *options, "--lora-modules", adapter) as server:
        yield server


@pytest.mark.needs("vectors")
@pytest.mark.parametrize("tuning", ["frozen", "lora"])
def test_a_graph_llm_writes_behind_the_engine_what_it_writes_here(
    tuning: str, frozen_and_adapted: Server, graph_llms: Callable[[str], Path]
) -> None:
    name = ADAPTED if tuning == "lora" else frozen_and_adapted.model
    _compare(graph_llms(tuning), frozen_and_adapted, name)


def _asked(folder: Path, server: Server, name: str) -> str:
    from ras_agent.tools.graph_tokens.served import ServedGraphLLM

    chat = Chat(ServedGraphLLM.at(folder, f"{server.url}/v1", name))
    return chat.complete(Request(_turns(), max_tokens=4)).text


@pytest.mark.needs("vectors")
def test_a_name_that_is_not_served_and_a_server_that_takes_no_vectors_are_told(
    frozen_and_adapted: Server, server: Server, graph_llms: Callable[[str], Path]
) -> None:
    folder = graph_llms("frozen")
    with pytest.raises(
        ModelRefused, match=says("`nobody` does not exist", "check the model's name")
    ):
        _asked(folder, frozen_and_adapted, "nobody")
    with pytest.raises(
        ModelRefused,
        match=says(
            "does not accept prompt embeddings",
            "vllm serve MODEL --enable-prompt-embeds",
        ),
    ):
        _asked(folder, server, server.model)


@pytest.mark.needs("vectors")
def test_a_graph_llm_that_was_trained_whole_does_too(
    engine: Engine, graph_llms: Callable[[str], Path]
) -> None:
    folder = graph_llms("full")
    with serving(engine, folder / "language_model", "--enable-prompt-embeds") as server:
        _compare(folder, server, server.model)


@pytest.mark.needs("vectors")
@pytest.mark.parametrize("tuning", ["frozen", "lora"])
def test_replies_in_bulk_are_those_of_the_graph_llm_here(
    tuning: str, graph_llms: Callable[[str], Path]
) -> None:
    from ras_agent.tools.graph_tokens.batches import GraphLLMBatches
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

    folder = graph_llms(tuning)
    batches = GraphLLMBatches(
        folder, dtype="float32", enforce_eager=True, max_model_len=1024
    )
    here = GraphLLM.load(folder)
    facts = [
        [
            [(fact.subject, fact.predicate, fact.object) for fact in step]
            for step in graph
        ]
        for graph in GRAPHS
    ]
    prompts = [_turns(number) for number in range(32)]
    graphs = [
        batches.vectors.of_steps(facts[number % 3]) if number % 4 else None
        for number in range(32)
    ]
    made = batches.generate(prompts, graphs, max_new_tokens=16)
    wanted = here.generate(prompts, graphs, max_new_tokens=16)
    assert [one.input_tokens for one in made] == [one.input_tokens for one in wanted]
    same = [one.text == other.text for one, other in zip(made, wanted, strict=True)]
    # near ties, and characters that the limit cuts in two
    assert same.count(False) <= 3


@pytest.mark.needs("vectors")
def test_facts_in_bulk_are_those_of_the_model_here() -> None:
    from ras_agent.tools.roles import resolve_extractor

    options = "source_tokens=300,target_tokens=32"
    bulk = resolve_extractor(f"text2triple-vllm:{FOLDER}#{options},enforce_eager")
    here = resolve_extractor(f"text2triple:{FOLDER}#{options}")
    passages = sample_passages()[:24]
    made, wanted = bulk.extract(passages), here.extract(passages)
    assert list(map(str, made.triples)) == list(map(str, wanted.triples))
    assert len(made.failures) == len(wanted.failures)
