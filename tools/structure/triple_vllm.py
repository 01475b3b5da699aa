"""Extracts facts in bulk by text-to-triples models in vLLM, with the same prompts and parsing as other local models.

    ras-agent structure --extractor text2triple-vllm:/path --corpus TEXTS.jsonl --triple-cache FACTS --concurrency 512
    ras-agent structure --extractor text2triple-vllm:/path#gpu_memory_utilization=0.5,tensor_parallel_size=2 ...

Callers that wait while the engine is busy share one batch of `LLM.generate`, so the concurrency is the batch size. Only
causal models are supported, without beam search: vLLM does not run T5.

The tests use a stand-in on top of transformers for the used parts of vLLM (`LLM`, `LLM.get_tokenizer`, `LLM.generate`
with `prompt_token_ids`, `SamplingParams`, `RequestOutput`); `make engines` tests a real engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ras_agent.contracts.errors import (
    SettingsError,
    WeightsError,
    needs_extra,
)
from ras_agent.tools.chat.endings import kind_of
from ras_agent.tools.roles import RoleOptions
from ras_agent.tools.structure.triple_model import (
    Decoding,
    ModelReply,
    TripleModel,
    read_spec,
)
from ras_agent.tools.structure.triple_text import Piece, TripleText


class VLLMWriter:
    """Writes facts by a vLLM engine."""

    def __init__(
        self,
        name: str,
        decoding: Decoding,
        *,
        prompts_dir: str | Path | None = None,
        engine: Mapping[str, Any] | None = None,
    ) -> None:
        """Load a model into an engine.

        Raises SettingsError for a decoding or a model that vLLM does not support here, and for an unknown engine
        argument; WeightsError if the model cannot be loaded; and MissingExtra if vLLM is not installed.

        Args:
            name: a model's folder or hub name.
            engine: further arguments of vllm.LLM; by default it computes in the precision in which the weights are
                saved.
        """
        if decoding.beams > 1:
            raise SettingsError(
                f"text2triple-vllm has no beam search: use text2triple:{name}"
            )
        with needs_extra("bulk text-to-triples in vLLM", "vllm"):
            from transformers import AutoConfig
            from vllm import LLM, SamplingParams  # pyright: ignore[reportMissingImports]
        try:
            config: Any = AutoConfig.from_pretrained(name)
        except (OSError, ValueError) as error:
            why = str(error).strip().partition("\n")[0]
            raise WeightsError(
                f"cannot load the model {name!r}, a folder or a hub name: {why}"
            ) from error
        if config.is_encoder_decoder:
            raise SettingsError(
                f"vLLM does not run models with an encoder: use text2triple:{name}"
            )
        self._name = name
        self._commit = getattr(config, "_commit_hash", None)
        # otherwise vLLM would convert float32 to half precision
        saved = str(getattr(config, "dtype", None) or "auto").removeprefix("torch.")
        length = decoding.source_tokens + decoding.target_tokens
        arguments = {
            "max_model_len": length,
            "seed": 0,
            "dtype": saved,
            **(engine or {}),
        }
        self._numbers = arguments["dtype"]
        try:
            self._engine = LLM(model=name, **arguments)
        except TypeError as error:
            if "unexpected keyword" not in str(error):
                raise
            raise SettingsError(
                f"vLLM's engine does not know an option after '#' ({error}): correct it, or leave it out"
            ) from error
        self._sampling = SamplingParams(
            temperature=0.0, max_tokens=decoding.target_tokens
        )
        self.text = TripleText(
            self._engine.get_tokenizer(),
            seq2seq=False,
            prompts_dir=prompts_dir,
            source_tokens=decoding.source_tokens,
        )

    @property
    def fingerprint(self) -> str:
        """Return a hash that identifies the model and its number type.

        It is a hash of the weight files of a local folder, or of the name and the commit of a model on the hub.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256(f"vllm {self._numbers} {self._commit or ''}".encode())
        folder = Path(self._name)
        if not folder.is_dir():
            digest.update(self._name.encode())
            return digest.hexdigest()
        for file in sorted(folder.glob("*.safetensors")):
            with file.open("rb") as stream:
                while part := stream.read(1 << 24):
                    digest.update(part)
        return digest.hexdigest()

    def write(self, pieces: Sequence[Piece], decoding: Decoding) -> list[ModelReply]:
        """Return the model's reply for each piece, in order. The engine forms its own batches."""
        prompts = [{"prompt_token_ids": piece.tokens} for piece in pieces]
        results = self._engine.generate(prompts, self._sampling, use_tqdm=False)
        return [_output_of(result.outputs[0]) for result in results]


def _output_of(output: Any) -> ModelReply:
    # any other kind means that it reached its limit, or that the engine ended it early
    kind = kind_of(output.finish_reason or "")
    text = output.text.strip()
    return ModelReply(text, len(output.token_ids), kind != "whole")


def text2triple_vllm(argument: str, options: RoleOptions) -> TripleModel:
    """Build the extractor on a causal model in vLLM.

    Args:
        argument: a folder or a hub name, and after "#" options of the decoding (see `read_spec`) and of vLLM's
            engine, such as "/path#target_tokens=128,gpu_memory_utilization=0.5,tensor_parallel_size=2".
    """
    name, _, written = argument.partition("#")
    if not name:
        raise SettingsError(
            "no model is named: write text2triple-vllm:/path-or-hub-name (the public model has an encoder, "
            "which vLLM does not run)"
        )
    decoded: list[str] = []
    engine: dict[str, Any] = {}
    for option in filter(None, map(str.strip, written.split(","))):
        key, _, value = option.partition("=")
        if key in Decoding.__dataclass_fields__:
            decoded.append(option)
        else:
            engine[key] = _value(value)
    model, decoding = read_spec(f"{name}#{','.join(decoded)}")
    writer = VLLMWriter(model, decoding, prompts_dir=options.prompts_dir, engine=engine)
    return TripleModel(writer, name=f"text2triple-vllm:{argument}", decoding=decoding)


def _value(written: str) -> Any:
    """Return the value of an engine option: a number, a Boolean or a text; True if it is empty."""
    try:
        return json.loads(written.lower() or "true")
    except ValueError:
        return written
