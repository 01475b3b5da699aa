"""Writes prompt embeddings in vLLM's form: vectors in place of a prompt's tokens, in a request or offline.

vLLM (`vllm serve ... --enable-prompt-embeds`) reads them in the field `prompt_embeds` of its Completions API. Each
is a base64 string of a tensor of shape (tokens, width) that `torch.save` wrote, and that vLLM loads with
`weights_only=True`. tests/tools/graph_tokens/vllm_requests.json lists the versions of vLLM that were checked.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

# vLLM before 0.22 accepts no others
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def encoded(vectors: Tensor) -> str:
    """Return a prompt's vectors, shape (tokens, width), as the base64 string for a request.

    The string has width x bytes per number x 4/3 characters for each token. Raises ValueError for other shapes and for
    no tokens.
    """
    buffer = io.BytesIO()
    # cloned, as torch.save would write the whole storage of a view
    torch.save(
        _check_vectors(vectors)
        .detach()
        .cpu()
        .clone(memory_format=torch.contiguous_format),
        buffer,
    )
    return b64encode(buffer.getvalue()).decode("ascii")


def completion_request(
    model: str,
    vectors: Tensor,
    *,
    max_tokens: int,
    temperature: float | None = 0.0,
    stop: Sequence[str] = (),
    stream: bool = False,
) -> dict[str, Any]:
    """Return the body of a request to /v1/completions for a reply to one prompt; vLLM batches requests itself.

    Args:
        model: the name under which the server serves the language model, or its adapter.
        vectors: the prompt's vectors, shape (tokens, width). There is no field `prompt`, since some versions of
            vLLM would complete an empty one as a second prompt.
    """
    request: dict[str, Any] = {
        "model": model,
        "prompt_embeds": encoded(vectors),
        "max_tokens": max_tokens,  # vLLM's own default is 16
    }
    if temperature is not None:
        request["temperature"] = temperature
    if stop:
        request["stop"] = list(stop)
    if stream:
        request |= {"stream": True, "stream_options": {"include_usage": True}}
    return request


def _check_vectors(vectors: Tensor) -> Tensor:
    if vectors.ndim != 2 or not len(vectors):
        raise ValueError(
            f"a prompt's vectors need the shape (tokens, width), with tokens from 1 on, got {tuple(vectors.shape)}"
        )
    if vectors.dtype in _DTYPES:
        return vectors
    return vectors.float()
