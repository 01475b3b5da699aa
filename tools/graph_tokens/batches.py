"""Generates replies of a GraphLLM in bulk, with its language model in a vLLM engine of this process.

The tests use a stand-in on top of transformers for the used parts of vLLM (`LLM` with `enable_prompt_embeds`,
`LLM.generate` with `EmbedsPrompt` and `lora_request`, `SamplingParams`, `LoRARequest`, `RequestOutput`); `make engines`
tests a real engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import SettingsError, needs_extra
from ras_agent.contracts.graph_batch import GraphFeatures
from ras_agent.prompts import Turn
from ras_agent.tools.chat.endings import kind_of, shortfall
from ras_agent.tools.chat.http import BrokenReply
from ras_agent.tools.graph_tokens.graph_llm import (
    ADAPTER,
    MERGE,
    Generated,
    GraphLLM,
    base_model,
    served_layers,
)

_RANKS = (16, 32, 64, 128, 256, 320, 512)  # the adapter ranks that vLLM supports


class GraphLLMBatches:
    """Generates a GraphLLM's replies to any number of prompts at once.

    batches = GraphLLMBatches("/path", gpu_memory_utilization=0.8)
    batches.generate(prompts, [batches.vectors.of_steps(facts) for facts in ...], max_new_tokens=100)
    """

    def __init__(self, folder: str | Path, **engine: Any) -> None:
        """Load a GraphLLM, with its language model in a vLLM engine.

        Args:
            folder: the folder of the GraphLLM.
            engine: further arguments of vllm.LLM.

        Raises:
            WeightsError: for a folder without a GraphLLM.
            SettingsError: for an adapter with which vLLM's engine would fail.
            MissingExtra: without the packages of the extras `llm` and `vllm`.
        """
        with needs_extra("a GraphLLM's replies in bulk", "vllm"):
            from vllm import LLM  # pyright: ignore[reportMissingImports]
            from vllm.lora.request import LoRARequest  # pyright: ignore[reportMissingImports]
        folder = Path(folder).expanduser().resolve()
        self._reader = GraphLLM.load(folder, words_only=True)
        self.vectors = self._reader.vectors
        config = self._reader.config
        self._adapter = None
        if config.tuning == "lora":
            self._adapter = LoRARequest("graphllm", 1, str(folder / ADAPTER))
            rank = next(
                (room for room in _RANKS if room >= config.lora.rank), config.lora.rank
            )
            layers = list(served_layers(folder / ADAPTER))
            engine = {
                "enable_lora": True,
                "max_lora_rank": rank,
                "lora_target_modules": layers,
                **engine,
            }
        try:
            self._engine = LLM(
                model=base_model(folder, config), enable_prompt_embeds=True, **engine
            )
        except TypeError as error:
            if "lora_target_modules" not in str(error):
                raise
            raise SettingsError(
                "this version of vLLM cannot leave word vectors out of an adapter (lora_target_modules), so its engine "
                f"would stop: install a newer vLLM, or merge the adapter: {MERGE} {folder} OUT"
            ) from error

    def generate(
        self,
        prompts: Sequence[Sequence[Turn]],
        graphs: Sequence[GraphFeatures | None],
        max_new_tokens: int = 100,
        temperature: float = 0.0,
    ) -> list[Generated]:
        """Return a reply to each prompt. If a graph is None, the prompt has no graph tokens.

        The engine forms its own batches. All prompts are held in memory as vectors: width x bytes per number for
        each token.

        Args:
            prompts: the turns of each prompt.
            graphs: the features of each prompt's graph.
            temperature: 0 for the likeliest token each time.
        """
        from vllm import SamplingParams  # pyright: ignore[reportMissingImports]

        if not prompts:
            return []
        vectors = [
            self._reader.prompt_embeddings(*pair)
            for pair in zip(prompts, graphs, strict=True)
        ]
        outputs = self._engine.generate(
            [{"prompt_embeds": rows} for rows in vectors],
            SamplingParams(temperature=temperature, max_tokens=max_new_tokens),
            use_tqdm=False,
            lora_request=self._adapter,
        )
        return [
            _generated(output.outputs[0], len(rows))
            for output, rows in zip(outputs, vectors, strict=True)
        ]


def _generated(output: Any, input_tokens: int) -> Generated:
    """Return an engine's output as a reply. Raises BrokenReply if the engine ended it early."""
    ending = output.finish_reason or ""
    if kind_of(ending) == "broken off":
        raise BrokenReply(shortfall(ending))
    return Generated(
        output.text.strip(), input_tokens, len(output.token_ids), ending == "length"
    )
