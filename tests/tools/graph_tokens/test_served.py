"""A GraphLLM behind vLLM writes what it writes here: the wire, the server's rules, and what is said of refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.errors import ModelRefused
from ras_agent.prompts import Turn
from ras_agent.tools.chat.call import Request
from ras_agent.tools.chat.client import Chat

torch = pytest.importorskip("torch")
pytest.importorskip("langchain_openai", reason="needs the extra 'openai'")

from tests.loopback_vllm import SCHEMAS, misfits, serving  # noqa: E402
from tests.tools.graph_tokens.conftest import BELL, LEITH  # noqa: E402

WHERE = Request((Turn("system", "You plan."), Turn("user", "Question: Where was Bell born?")), most=12)


def _served(folder: Path, server: Any, name: str, **options: Any) -> Chat:
    from ras_agent.tools.graph_tokens.served import ServedGraphLLM

    return Chat(ServedGraphLLM.at(folder, server.url, name, **options))


def _local(folder: Path, **options: Any) -> Chat:
    from ras_agent.tools.graph_tokens.chat import GraphLLMChat

    return Chat(GraphLLMChat.in_folder(folder, **options))


@pytest.fixture
def trained(graph_llm: Callable[..., Any], tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that saves a GraphLLM of a tuning, whose weights are as far from new ones as trained ones."""

    def make(tuning: str) -> Path:
        model = graph_llm(tuning=tuning)
        parts = {"frozen": "graph_tokens.projector", "lora": "lora_B", "full": "mlp"}
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name.startswith("graph_tokens.projector") or parts[tuning] in name:
                    weight += torch.randn_like(weight)
        model.save(tmp_path / tuning)
        return tmp_path / tuning

    return make


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
            asked = Request(WHERE.turns, most=12, graph=graph or ())
            options = {"reads_graphs": graph is not None}
            there = _served(folder, server, "tuned" if adapters else str(base), **options).complete(asked)
            here = _local(folder, **options).complete(asked)
            assert there.text == here.text
            assert (there.input_tokens, there.output_tokens) == (here.input_tokens, here.output_tokens)
            assert there.truncated == here.truncated
            texts.append(there.text)
        if adapters:
            assert _served(folder, server, str(base)).complete(asked).text != texts[-1]
    assert len(set(texts)) > 1
    sent = [server.decoded(body["prompt_embeds"][0]) for body in server.requests]
    assert [len(vectors) - len(sent[0]) for vectors in sent[1:4]] == [1, 1, 1]
    assert not any(torch.equal(sent[1], other) for other in sent[2:4])
    for version in SCHEMAS:
        assert not [wrong for body in server.requests for wrong in misfits("CompletionRequest", body, version)]


def test_a_server_without_the_flag_is_reported_with_the_flag(
    graph_llm: Callable[..., Any], tiny_llm: Path, tmp_path: Path
) -> None:
    graph_llm().save(tmp_path / "model")
    with serving(tiny_llm, flag=False) as server:
        chat = _served(tmp_path / "model", server, str(tiny_llm))
        with pytest.raises(ModelRefused, match="takes no prompt embeddings; start it with `vllm serve MODEL --enable-"):
            chat.complete(WHERE)
        assert len(server.requests) == 1
