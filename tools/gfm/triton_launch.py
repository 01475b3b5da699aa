"""Triton itself, with an error that names the remedy where it is missing, and where a kernel starts.

With TRITON_INTERPRET=1 in the environment before Triton is imported, kernels run on the CPU, for tests.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

try:
    import triton
    import triton.language as tl
except ImportError as error:
    raise ImportError("the GFM network's kernels need Triton, which comes with torch for CUDA on Linux") from error

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["beside", "tl", "triton"]


def beside(tensor: Tensor) -> AbstractContextManager[object]:
    """Kernels start where `tensor` is: Triton starts them on the current device, which need not be the tensor's."""
    import torch

    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()
