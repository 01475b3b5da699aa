"""Bulk text-to-triples through vLLM's offline engine, against a stand-in with the interface that is used of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

pytest.importorskip("transformers", reason="needs the extra 'llm'")
import torch

from ras_agent.contracts.errors import MissingExtra, SettingsError, WeightsError
from ras_agent.testing.extractors import PASSAGES
from ras_agent.tools.roles import resolve_extractor
from ras_agent.tools.structure.triple_model import load_text_model
from tests.messages import says


class SamplingParams:
    """As vllm.SamplingParams, the fields that are used."""

    def __init__(self, *, temperature: float, max_tokens: int) -> None:
        self.temperature, self.max_tokens = temperature, max_tokens


class LLM:
    """As vllm.LLM: greedy decoding of one prompt after the other with transformers."""

    made: ClassVar[list[Any]] = []

    def __init__(
        self,
        model: str,
        *,
        max_model_len: int,
        seed: int,
        dtype: str,
        gpu_memory_utilization: float = 0.9,
        enforce_eager: bool = False,
    ) -> None:
        self.model, self.tokenizer = load_text_model(model)
        self.options = (dtype, gpu_memory_utilization, enforce_eager)
        self.max_model_len, self.batches = max_model_len, list[int]()
        LLM.made.append(self)

    def get_tokenizer(self) -> Any:
        return self.tokenizer

    def generate(
        self,
        prompts: Sequence[dict[str, list[int]]],
        sampling_params: SamplingParams,
        *,
        use_tqdm: bool,
    ) -> list[Any]:
        assert sampling_params.temperature == 0
        self.batches.append(len(prompts))
        return [
            self._one(prompt["prompt_token_ids"], sampling_params.max_tokens)
            for prompt in prompts
        ]

    def _one(self, tokens: list[int], most: int) -> Any:
        assert len(tokens) + most <= self.max_model_len
        made = self.model.generate(
            torch.tensor([tokens]), max_new_tokens=most, do_sample=False
        )[0, len(tokens) :]
        written = made.tolist()
        output = SimpleNamespace(
            text=self.tokenizer.decode(written, skip_special_tokens=True),
            token_ids=written,
            finish_reason="stop"
            if written[-1] == self.tokenizer.eos_token_id
            else "length",
        )
        return SimpleNamespace(outputs=[output])


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams = LLM, SamplingParams  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)
    LLM.made = []
    return LLM.made


@pytest.fixture
def folder(memorising_model: Callable[[str], Path]) -> Path:
    return memorising_model("llama")


def test_the_facts_and_failures_are_those_of_the_local_path(
    folder: Path, vllm: list[Any]
) -> None:
    bulk = resolve_extractor(f"text2triple-vllm:{folder}")
    local = resolve_extractor(f"text2triple:{folder}")
    found, expected = bulk.extract(PASSAGES), local.extract(PASSAGES)
    assert [str(triple) for triple in found.triples] == [
        str(triple) for triple in expected.triples
    ]
    assert [
        [one.start, one.end] for triple in found.triples for one in triple.sources
    ] == [[one.start, one.end] for triple in expected.triples for one in triple.sources]
    assert found.failures == expected.failures
    assert vllm[0].max_model_len == 512 + 256


def test_callers_at_the_same_time_make_batches_of_the_engine(
    folder: Path, vllm: list[Any]
) -> None:
    extractor: Any = resolve_extractor(f"text2triple-vllm:{folder}#target_tokens=8")

    async def ask() -> None:
        await asyncio.gather(
            *(extractor.aextract([PASSAGES[number % 3]]) for number in range(20))
        )

    asyncio.run(ask())
    assert sum(vllm[0].batches) == 20
    assert len(vllm[0].batches) < 20


def test_options_that_are_not_the_decodings_are_the_engines(
    folder: Path, vllm: list[Any]
) -> None:
    resolve_extractor(
        f"text2triple-vllm:{folder}#gpu_memory_utilization=0.5,target_tokens=8,enforce_eager"
    )
    resolve_extractor(f"text2triple-vllm:{folder}#dtype=bfloat16,enforce_eager=False")
    assert [(engine.options, engine.max_model_len) for engine in vllm] == [
        (("float32", 0.5, True), 520),
        (("bfloat16", 0.9, False), 768),
    ]
    with pytest.raises(SettingsError, match=says("engine", "gpu_memory")):
        resolve_extractor(f"text2triple-vllm:{folder}#gpu_memory=0.5")


def test_what_vllm_has_not_is_an_error_that_names_what_has(
    folder: Path,
    vllm: list[Any],
    memorising_model: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    with pytest.raises(
        SettingsError, match=says("beam search", f"use text2triple:{folder}")
    ):
        resolve_extractor(f"text2triple-vllm:{folder}#beams=4")
    encoder = memorising_model("t5")
    with pytest.raises(
        SettingsError,
        match=says("models with an encoder", f"use text2triple:{encoder}"),
    ):
        resolve_extractor(f"text2triple-vllm:{encoder}")
    with pytest.raises(WeightsError, match="cannot load the model"):
        resolve_extractor(f"text2triple-vllm:{tmp_path}")
    with pytest.raises(SettingsError, match="no model is named"):
        resolve_extractor("text2triple-vllm")
    assert vllm == []


def test_without_vllm_the_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtra, match=r"ras-agent\[vllm\]"):
        resolve_extractor(f"text2triple-vllm:{folder}")


def test_the_fingerprint_is_that_of_the_weights(
    folder: Path, vllm: list[Any], tmp_path: Path
) -> None:
    first: Any = resolve_extractor(f"text2triple-vllm:{folder}")
    again: Any = resolve_extractor(f"text2triple-vllm:{folder}")
    assert first.fingerprint == again.fingerprint
    model, tokenizer = load_text_model(str(folder))
    with torch.no_grad():
        next(model.parameters()).add_(1)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    other: Any = resolve_extractor(f"text2triple-vllm:{tmp_path}")
    assert first.fingerprint != other.fingerprint
