"""A GraphLLM behind vLLM writes the same as here: the wire, the server's rules, and the words of refusals."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ras_agent.contracts.errors import ModelRefused, PromptTooLong, SettingsError
from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat, ChatSettings
from ras_agent.tools.chat.http import BrokenReply
from ras_agent.tools.chat.retry import RetryPolicy
from ras_agent.tools.roles import (
    RoleOptions,
    resolve_answerer,
    resolve_planner,
    role_name,
)

torch = pytest.importorskip("torch")
pytest.importorskip("langchain_openai", reason="needs the extra 'openai'")

from tests.loopback_vllm import serving
from tests.messages import says
from tests.tools.graph_tokens.conftest import BELL, LEITH
from tests.vllm_protocol import SCHEMAS, misfits

WHERE = Request(
    (Turn("system", "You plan."), Turn("user", "Question: Where was Bell born?")),
    max_tokens=12,
)


def _served(folder: Path, server: Any, name: str, **options: Any) -> Chat:
    from ras_agent.tools.graph_tokens.served import ServedGraphLLM

    return Chat(ServedGraphLLM.at(folder, server.url, name, **options))


def _local(folder: Path, **options: Any) -> Chat:
    from ras_agent.tools.graph_tokens.chat import GraphLLMChat

    return Chat(GraphLLMChat.in_folder(folder, **options))


def test_the_client_holds_only_the_word_vectors_of_its_language_model(
    trained: Callable[[str], Path],
) -> None:
    from ras_agent.tools.graph_tokens.served import ServedGraphLLM

    chat = ServedGraphLLM.at(trained("full"), "http://127.0.0.1:9/v1", "model")
    [words] = chat.graph_llm.language_model.parameters()
    assert words.shape == (400, 64)


@pytest.mark.parametrize("tuning", ["frozen", "lora", "full"])
def test_a_server_writes_what_the_model_writes_here(
    tuning: str, trained: Callable[[str], Path], tiny_llm: Path
) -> None:
    folder = trained(tuning)
    base = folder / "language_model" if tuning == "full" else tiny_llm
    adapters = {"tuned": folder / "adapter"} if tuning == "lora" else {}
    graphs: tuple[Any, ...] = (None, (), ((BELL,),), ((BELL,), (LEITH, BELL)))
    with serving(base, adapters) as server:
        texts = []
        for graph in graphs:
            asked = Request(WHERE.turns, max_tokens=12, graph=graph or ())
            options = {"reads_graphs": graph is not None}
            there = _served(
                folder, server, "tuned" if adapters else str(base), **options
            ).complete(asked)
            here = _local(folder, **options).complete(asked)
            assert there.text == here.text
            assert (there.input_tokens, there.output_tokens) == (
                here.input_tokens,
                here.output_tokens,
            )
            assert there.truncated == here.truncated
            texts.append(there.text)
        if adapters:
            assert _served(folder, server, str(base)).complete(asked).text != texts[-1]
    assert len(set(texts)) > 1
    sent = [server.decoded(body["prompt_embeds"]) for body in server.requests]
    assert [len(vectors) - len(sent[0]) for vectors in sent[1:4]] == [1, 1, 1]
    assert not any(torch.equal(sent[1], other) for other in sent[2:4])
    for version in SCHEMAS:
        assert not [
            wrong
            for body in server.requests
            for wrong in misfits("CompletionRequest", body, version)
        ]


def test_many_at_once_write_what_a_batch_writes_here(
    trained: Callable[[str], Path], tiny_llm: Path
) -> None:
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

    folder = trained("frozen")
    graphs = [((BELL,),), ((LEITH, BELL),), (), ((BELL,), (LEITH,))]
    asked = [Request(WHERE.turns, max_tokens=12, graph=graph) for graph in graphs]
    with serving(tiny_llm) as server:
        chat = _served(folder, server, str(tiny_llm))

        async def all_of_them() -> list[str]:
            return [
                reply.text
                for reply in await asyncio.gather(*map(chat.acomplete, asked))
            ]

        at_once = asyncio.run(all_of_them())
        with ThreadPoolExecutor(4) as pool:
            assert [reply.text for reply in pool.map(chat.complete, asked)] == at_once
    here = GraphLLM.load(folder)
    facts = [
        [[(one.subject, one.predicate, one.object) for one in step] for step in graph]
        for graph in graphs
    ]
    batch = here.generate(
        [WHERE.turns] * 4, list(map(here.vectors.of_steps, facts)), 12
    )
    assert at_once == [made.text for made in batch]


def test_a_streamed_reply_is_the_whole_one_in_pieces(
    trained: Callable[[str], Path], tiny_llm: Path
) -> None:
    folder, shown = trained("frozen"), list[str]()
    with serving(tiny_llm) as server:
        chat = _served(folder, server, str(tiny_llm))
        whole = chat.complete(WHERE)
        streamed = chat.complete(replace(WHERE, on_text=shown.append))
        assert replace(streamed, seconds=0.0) == replace(whole, seconds=0.0)
        assert len(shown) > 3
        assert shown[-1] == whole.text
        shown.clear()
        assert (
            asyncio.run(chat.acomplete(replace(WHERE, on_text=shown.append))).text
            == shown[-1]
            == whole.text
        )
        assert server.requests[1]["stream_options"] == {"include_usage": True}
        assert not any(misfits("CompletionRequest", body) for body in server.requests)


def test_the_stand_in_replies_in_the_form_of_vllms_own_classes(
    trained: Callable[[str], Path], tiny_llm: Path
) -> None:
    with serving(tiny_llm) as server:
        _served(trained("frozen"), server, str(tiny_llm)).complete(WHERE)
        reply = server.complete(server.requests[0])
    for version in SCHEMAS:
        known = {
            name: value
            for name, value in reply.items()
            if name not in ("id", "created")
        }
        assert misfits("CompletionResponse", known, version) == []
        assert (
            misfits(
                "CompletionResponse",
                {**known, "choices": [{"index": 0, "text": None}]},
                version,
            )
            != []
        )
        assert misfits("CompletionRequest", {"prompt_embeds": 3}, version) == [
            "prompt_embeds: 3 fits no type"
        ]


def test_planner_and_answerer_are_named_with_the_servers_address(
    trained: Callable[[str], Path], tiny_llm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trained("frozen")
    monkeypatch.setenv("VLLM_API_KEY", "key-of-a-server")
    with serving(tiny_llm, key="key-of-a-server") as server:
        spec = f"graphllm:{folder}@{server.url}#{tiny_llm}"
        settings = ChatSettings(temperature=0.0)
        for role in (
            resolve_planner(spec, RoleOptions(chat=settings)),
            resolve_answerer(spec),
        ):
            model = role._chat.complete(WHERE) and role._chat.model  # type: ignore[attr-defined]
            assert "key-of-a-server" not in repr(model)
            assert role._chat.endpoint == f"{server.url}#{tiny_llm}"  # type: ignore[attr-defined]
            assert role._chat.name == f"graphllm:{folder}"  # type: ignore[attr-defined]
        assert [
            (body["max_tokens"], body["temperature"]) for body in server.requests
        ] == [(12, 0.0)] * 2
    assert role_name(spec) == spec
    with pytest.raises(
        SettingsError,
        match=says(
            "'graphllm:/m@http",
            "write it as 'graphllm:/m@http://host:port/v1#model'",
        ),
    ):
        resolve_planner("graphllm:/m@http://host:8000/v1")


def test_replies_of_other_graph_tokens_are_cached_apart(
    trained: Callable[[str], Path], tiny_llm: Path, tmp_path: Path
) -> None:
    from ras_agent.tools.graph_tokens.served import ServedGraphLLM

    folder = trained("frozen")
    twin = Path(shutil.copytree(folder, tmp_path / "twin"))
    cached, asked = (
        ChatSettings(cache=tmp_path / "replies"),
        replace(WHERE, graph=((BELL,),)),
    )
    with serving(tiny_llm) as server:
        chats = [
            Chat(ServedGraphLLM.at(one, server.url, str(tiny_llm)), settings=cached)
            for one in (folder, twin)
        ]
        assert [chat.complete(asked).replayed for chat in (*chats, *chats)] == [
            False,
            False,
            True,
            True,
        ]
        assert not chats[0].complete(replace(asked, graph=((LEITH,),))).replayed


def test_a_server_without_the_flag_is_reported_with_the_flag(
    trained: Callable[[str], Path], tiny_llm: Path
) -> None:
    with serving(tiny_llm, flag=False) as server:
        chat = _served(trained("frozen"), server, str(tiny_llm))
        for request in (WHERE, replace(WHERE, on_text=print)):
            with pytest.raises(
                ModelRefused,
                match=says(
                    "does not accept prompt embeddings",
                    "vllm serve MODEL --enable-prompt-embeds",
                ),
            ):
                chat.complete(request)
        assert len(server.requests) == 2


def test_a_server_of_another_model_is_refused(
    trained: Callable[[str], Path], tiny_llm: Path, tmp_path: Path
) -> None:
    from tests.tiny_llm import write_tiny_llm

    other = write_tiny_llm(tmp_path / "other", width=32)
    with serving(other) as server:
        with pytest.raises(
            ModelRefused,
            match=says("hidden_size 64", "hidden_size 32", f"let it serve {tiny_llm}"),
        ):
            _served(trained("frozen"), server, str(other)).complete(WHERE)
        with pytest.raises(
            ModelRefused,
            match=says("`nobody` does not exist", "check the model's name"),
        ):
            _served(trained("frozen"), server, "nobody").complete(WHERE)


def test_what_fails_otherwise_fails_as_with_other_models(
    trained: Callable[[str], Path], tiny_llm: Path
) -> None:
    folder = trained("frozen")
    with serving(tiny_llm, window=600) as server:
        long = Request((Turn("user", "word " * 700),), max_tokens=8)
        chat = _served(folder, server, str(tiny_llm))
        with pytest.raises(PromptTooLong):
            chat.complete(long)
        assert chat.sizes.window == 600
    with (
        serving(tiny_llm, key="another") as server,
        pytest.raises(ModelRefused, match="check the API key"),
    ):
        _served(folder, server, str(tiny_llm), key="wrong-key-of-mine").complete(WHERE)
    from ras_agent.tools.graph_tokens.served import ServedGraphLLM

    nobody = Chat(
        ServedGraphLLM.at(folder, "http://127.0.0.1:1/v1", "m"),
        settings=ChatSettings(retry=RetryPolicy(1)),
    )
    with pytest.raises(
        ModelRefused,
        match=says("nothing listens", "http://127.0.0.1:1", "start the server"),
    ):
        nobody.complete(WHERE)


def test_a_reply_that_an_engine_has_ended_early_is_none() -> None:
    from ras_agent.tools.graph_tokens import batches
    from ras_agent.tools.structure import triple_vllm

    output = SimpleNamespace(text="Water of", token_ids=[1, 2], finish_reason="abort")
    with pytest.raises(BrokenReply, match=r"ended the reply early \(abort\)"):
        batches._generated(output, 9)
    assert triple_vllm._output_of(output).cut_off
