"""Vectors as vLLM decodes them, and the word vectors of a model without the model."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import WeightsError
from tests.messages import says

torch = pytest.importorskip("torch")


def _decoded(text: str) -> Any:
    return torch.load(
        io.BytesIO(base64.b64decode(text, validate=True)), weights_only=True
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_vectors_arrive_as_they_are(dtype: Any) -> None:
    from ras_agent.tools.graph_tokens.served import encoded

    vectors = torch.randn(3, 8).to(dtype)
    arrived = _decoded(encoded(vectors))
    assert arrived.dtype == dtype
    assert torch.equal(arrived, vectors)


def test_a_part_of_a_tensor_is_sent_without_the_rest() -> None:
    from ras_agent.tools.graph_tokens.served import encoded

    whole = torch.randn(1000, 64, requires_grad=True)
    part = encoded(whole[:1])
    assert len(part) < 4000  # 256 bytes of numbers, and the container
    assert _decoded(part).untyped_storage().nbytes() == 256
    assert torch.equal(_decoded(encoded(whole.t()[:2])), whole.t()[:2])


def test_a_token_takes_its_width_times_the_bytes_of_a_number_times_four_thirds() -> (
    None
):
    from ras_agent.tools.graph_tokens.served import encoded

    sizes = [
        len(encoded(torch.zeros(count, 4096, dtype=torch.bfloat16)))
        for count in (100, 200)
    ]
    assert sizes[1] - sizes[0] == pytest.approx(100 * 4096 * 2 * 4 / 3, rel=1e-3)


def test_numbers_that_vllm_does_not_take_are_sent_as_float32() -> None:
    from ras_agent.tools.graph_tokens.served import encoded

    assert (
        _decoded(encoded(torch.ones(2, 8, dtype=torch.float64))).dtype == torch.float32
    )


def _models() -> dict[str, Callable[[], Any]]:
    from transformers import (
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
    )
    from transformers import LlamaForCausalLM as Llama

    small: dict[str, Any] = {
        "vocab_size": 50,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
    }
    small |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    return {
        "llama": lambda: Llama(LlamaConfig(**small)),
        "gpt2": lambda: GPT2LMHeadModel(
            GPT2Config(vocab_size=50, n_embd=32, n_layer=1, n_head=2)
        ),
        # scales its word vectors
        "gemma3": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**small)),
    }


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
@pytest.mark.parametrize("shards", [1, 4])
def test_the_word_vectors_are_those_of_the_model(
    kind: str, shards: int, tiny_llm: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    from ras_agent.tools.graph_tokens.word_vectors import load_word_vectors

    model = _models()[kind]().to(torch.bfloat16)
    model.save_pretrained(tmp_path, max_shard_size="5GB" if shards == 1 else "12KB")
    AutoTokenizer.from_pretrained(tiny_llm).save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors.index.json").exists() is (shards > 1)
    words, tokenizer = load_word_vectors(str(tmp_path))
    ids = torch.arange(50)
    assert torch.equal(
        words.get_input_embeddings()(ids), model.get_input_embeddings()(ids)
    )
    assert sum(weight.numel() for weight in words.parameters()) == 50 * 32
    assert tokenizer.eos_token == "</s>"


def test_a_prompt_is_the_same_with_the_word_vectors_alone(
    trained: Callable[[str], Path],
) -> None:
    from ras_agent.prompts import Turn
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

    for tuning in ("frozen", "lora", "full"):
        whole, words = (
            GraphLLM.load(trained(tuning), words_only=alone) for alone in (False, True)
        )
        graph = whole.vectors.of_facts([("Bell", "was born in", "Edinburgh")])
        turns = (Turn("user", "Where?"),)
        assert torch.equal(
            words.prompt_embeddings(turns, graph), whole.prompt_embeddings(turns, graph)
        )
        assert words.window == whole.window
        assert (
            sum(weight.numel() for weight in words.language_model.parameters())
            == 400 * 64
        )


def test_an_adapter_that_changes_word_vectors_is_not_served(
    graph_llm: Callable[..., Any], tmp_path: Path
) -> None:
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM, Lora

    graph_llm(tuning="lora", lora=Lora(targets=("q_proj", "embed_tokens"))).save(
        tmp_path
    )
    with pytest.raises(
        WeightsError,
        match=says(
            "changes the word vectors", "lora.targets", "leave out 'embed_tokens'"
        ),
    ):
        GraphLLM.load(tmp_path, words_only=True)


def test_a_folder_without_word_vectors_is_reported(
    tiny_llm: Path, tmp_path: Path
) -> None:
    import shutil

    from ras_agent.tools.graph_tokens.word_vectors import load_word_vectors

    with pytest.raises(WeightsError, match="cannot load the word vectors of"):
        load_word_vectors(str(tmp_path / "nothing"))
    shutil.copytree(tiny_llm, tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    with pytest.raises(
        WeightsError, match=says("no model.safetensors", "model.embed_tokens.weight")
    ):
        load_word_vectors(str(tmp_path / "model"))
