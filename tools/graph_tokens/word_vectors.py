"""Loads only the word vectors of a language model, for a client of a server that runs the rest of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ras_agent.contracts.errors import WeightsError, needs_extra

_WHOLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_ADAPTER = "adapter_model.safetensors"


class WordVectors(nn.Module):
    """Replaces a causal language model of which only the input embeddings are loaded. It cannot generate."""

    def __init__(self, embeddings: nn.Module, config: Any) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.config = config

    def get_input_embeddings(self) -> nn.Module:
        """Return the module that turns token ids into vectors."""
        return self.embeddings


def load_word_vectors(
    name: str, adapter: Path | None = None
) -> tuple[WordVectors, Any]:
    """Load the word vectors and the tokenizer of a language model, given by a folder or a hub name.

    Only one tensor of the model's safetensors is read. Raises WeightsError if it is missing, or if a low-rank
    adapter changes it, and MissingExtra if a package is not installed.

    Args:
        adapter: the folder of a low-rank adapter of the model.
    """
    with needs_extra("reading a language model's word vectors", "llm"):
        from accelerate import init_empty_weights
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    try:
        config = AutoConfig.from_pretrained(name)
        tokenizer = AutoTokenizer.from_pretrained(name)
        # the model's own class, as some models scale the vectors; its weights take no memory, only its buffers do
        with init_empty_weights():
            model: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
        embeddings = model.get_input_embeddings()
        place = next(
            path for path, module in model.named_modules() if module is embeddings
        )
        weight = _tensor(name, f"{place}.weight", model.base_model_prefix)
    except (OSError, ValueError, SafetensorError) as error:
        why = str(error).strip().partition("\n")[0]
        raise WeightsError(
            f"cannot load the word vectors of {name!r}, a folder or a hub name: {why}"
        ) from error
    if weight.shape != embeddings.weight.shape:
        expected_shape = tuple(embeddings.weight.shape)
        shape = tuple(weight.shape)
        raise WeightsError(
            f"{name}: the word vectors have the shape {shape}, and the model's configuration states {expected_shape}: "
            "download the model again"
        )
    if adapter is not None:
        _check(adapter, place)
    embeddings.weight = nn.Parameter(
        weight.to(config.dtype or weight.dtype), requires_grad=False
    )
    return WordVectors(embeddings, config), tokenizer


def _check(adapter: Path, place: str) -> None:
    """Raise WeightsError for an adapter that changes the word vectors, since clients use the unchanged ones."""
    try:
        with safe_open(adapter / _ADAPTER, framework="pt") as tensors:
            keys = list(tensors.keys())
    except (OSError, SafetensorError) as error:
        raise WeightsError(
            f"{adapter / _ADAPTER}: no weights of an adapter ({error}): train it again"
        ) from error
    if any(f"{place}." in key for key in keys):
        layer = place.rpartition(".")[2]
        raise WeightsError(
            f"{adapter}: this adapter changes the word vectors, which a server's client cannot follow; train it with "
            f"lora.targets that leave out {layer!r}"
        )


def _tensor(name: str, key: str, prefix: str) -> Tensor:
    """Return one tensor of a model's safetensors; the key may be stored with or without the model's prefix."""
    keys = (key, key.removeprefix(f"{prefix}."), f"{prefix}.{key}")
    if (index := _file(name, _INDEX)) is not None:
        files = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        path = next((_file(name, files[key]) for key in keys if key in files), None)
    else:
        path = _file(name, _WHOLE)
    if path is None:
        raise WeightsError(
            f"{name}: there is no {_WHOLE} with the tensor {key}; save the model as safetensors"
        )
    with safe_open(path, framework="pt") as tensors:
        names = set(tensors.keys())
        stored_name = next((key for key in keys if key in names), None)
        if stored_name is None:
            raise WeightsError(
                f"{path}: there is no tensor {key}, the word vectors, in this file: download the model again"
            )
        tensor: Tensor = tensors.get_tensor(stored_name)
        return tensor


def _file(name: str, file: str) -> Path | None:
    """Return the path of a model's file, downloaded from the hub if necessary; None if the model has no such file."""
    from transformers.utils.hub import cached_file

    path = cached_file(name, file, _raise_exceptions_for_missing_entries=False)
    if path is None:
        return None
    return Path(path)
