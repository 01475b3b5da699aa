"""Replies in bulk by vLLM's offline engine are those of the model here, batched or one by one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from ras_agent.contracts.errors import MissingExtra, SettingsError
from ras_agent.prompts import Turn
from tests.messages import says
from tests.tools.graph_tokens.conftest import BELL, LEITH

torch = pytest.importorskip("torch")

PROMPT = (Turn("user", "Question: Where was Bell born?"),)
FACTS = [
    [(fact.subject, fact.predicate, fact.object) for fact in facts]
    for facts in ([BELL], [LEITH, BELL])
]


@dataclass
class SamplingParams:
    """As vllm.SamplingParams, the fields that are used."""

    temperature: float
    max_tokens: int


class LLM:
    """As vllm.LLM: takes EmbedsPrompts and an adapter, with the server's stand-in below."""

    made: ClassVar[list[dict[str, Any]]] = []

    def __init__(
        self,
        *,
        model: str,
        enable_prompt_embeds: bool = False,
        enable_lora: bool = False,
        max_lora_rank: int = 16,
        lora_target_modules: Sequence[str] | None = None,
        gpu_memory_utilization: float = 0.9,
    ) -> None:
        made = {
            "model": model,
            "lora": enable_lora,
            "rank": max_lora_rank,
            "gpu": gpu_memory_utilization,
        }
        self.made.append(made | {"layers": lora_target_modules})
        self._model, self._embeds = Path(model), enable_prompt_embeds

    def generate(
        self,
        prompts: Any,
        sampling_params: Any,
        *,
        use_tqdm: bool = True,
        lora_request: Any = None,
    ) -> list[Any]:
        from tests.loopback_vllm import serving

        assert self._embeds
        assert not use_tqdm
        limits = {
            "max_tokens": sampling_params.max_tokens,
            "temperature": sampling_params.temperature,
        }
        with serving(
            self._model,
            {lora_request.name: Path(lora_request.path)} if lora_request else {},
        ) as server:
            name = lora_request.name if lora_request else server.name
            replies = [
                server.generated(prompt["prompt_embeds"], limits | {"model": name})
                for prompt in prompts
            ]
        outputs = (
            SimpleNamespace(text=text, token_ids=[0] * n, finish_reason=end)
            for text, n, end in replies
        )
        return [SimpleNamespace(outputs=[output]) for output in outputs]


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Put the stand-in in vLLM's place; return the engines that were made."""

    def request(name: str, number: int, path: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, number=number, path=path)

    top, lora = ModuleType("vllm"), ModuleType("vllm.lora.request")
    vars(top).update(LLM=LLM, SamplingParams=SamplingParams)
    vars(lora).update(LoRARequest=request)
    for name, module in (
        ("vllm", top),
        ("vllm.lora", ModuleType("vllm.lora")),
        ("vllm.lora.request", lora),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(LLM, "made", [])
    return LLM.made


@pytest.mark.parametrize("tuning", ["frozen", "lora", "full"])
def test_batches_are_the_replies_of_the_model_here(
    tuning: str,
    trained: Callable[[str], Path],
    tiny_llm: Path,
    vllm: list[dict[str, Any]],
) -> None:
    from ras_agent.tools.graph_tokens.batches import GraphLLMBatches
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM

    folder = trained(tuning)
    batches, here = (
        GraphLLMBatches(folder, gpu_memory_utilization=0.5),
        GraphLLM.load(folder),
    )
    graphs = [None, *(batches.vectors.of_steps(FACTS[:count]) for count in (0, 1, 2))]
    made = batches.generate([PROMPT] * 4, graphs, max_new_tokens=12)
    assert made == [here.generate([PROMPT], [graph], 12)[0] for graph in graphs]
    assert made == here.generate([PROMPT] * 4, graphs, 12)
    assert len({one.text for one in made}) > 1
    assert batches.generate([], []) == []
    base = str(folder / "language_model") if tuning == "full" else str(tiny_llm)
    # vLLM's engine ends where word vectors are adapted
    layers = ["q_proj", "v_proj"] if tuning == "lora" else None
    assert LLM.made == [
        {
            "model": base,
            "lora": tuning == "lora",
            "rank": 16,
            "gpu": 0.5,
            "layers": layers,
        }
    ]


def test_an_adapter_of_word_vectors_is_refused_before_it_ends_the_engine(
    trained: Callable[[str], Path], vllm: list[dict[str, Any]]
) -> None:
    from ras_agent.tools.graph_tokens.batches import GraphLLMBatches

    file = trained("lora") / "adapter" / "adapter_config.json"
    written = json.loads(file.read_text())
    file.write_text(
        json.dumps(written | {"target_modules": ["model.embed_tokens", "q_proj"]})
    )
    with pytest.raises(
        SettingsError, match=says("adapter", "embed_tokens", "graphllm.merge")
    ):
        GraphLLMBatches(file.parents[1])
    assert vllm == []


def test_a_vllm_that_cannot_leave_word_vectors_out_is_refused(
    trained: Callable[[str], Path],
    vllm: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ras_agent.tools.graph_tokens.batches import GraphLLMBatches

    def older(
        *, model: str, enable_prompt_embeds: bool, enable_lora: bool, max_lora_rank: int
    ) -> None:
        """As an older vllm.LLM."""

    monkeypatch.setattr(sys.modules["vllm"], "LLM", older)
    with pytest.raises(
        SettingsError, match=says("word vectors", "newer", "graphllm.merge")
    ):
        GraphLLMBatches(trained("lora"))


def test_a_merged_adapter_writes_the_same_without_one(
    trained: Callable[[str], Path], tmp_path: Path
) -> None:
    from ras_agent.tools.graph_tokens.graph_llm import GraphLLM
    from ras_agent.train.graphllm.merge import merge

    folder = trained("lora")
    merge(folder, tmp_path / "merged")
    before, after = GraphLLM.load(folder), GraphLLM.load(tmp_path / "merged")
    graphs = [None, before.vectors.of_steps(FACTS)]
    assert after.config.tuning == "full"
    assert after.generate([PROMPT] * 2, graphs, 12) == before.generate(
        [PROMPT] * 2, graphs, 12
    )
    with pytest.raises(SettingsError, match=says("no adapter", "full")):
        after.merged()


def test_without_vllm_the_extra_is_named(
    trained: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ras_agent.tools.graph_tokens.batches import GraphLLMBatches

    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingExtra, match=r"ras-agent\[vllm\]"):
        GraphLLMBatches(trained("frozen"))
