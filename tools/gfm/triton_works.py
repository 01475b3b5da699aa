"""Can the Triton kernels be used on a device? Told by trying, as their first launch may miss something."""

from __future__ import annotations

import warnings
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from ras_agent.tools.gfm.device_hear import hear_messages
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.segments import Listeners, plan

if TYPE_CHECKING:
    from torch import device, dtype

__all__ = ["first_launch", "kernels_work"]


def kernels_work(on: device, kind: dtype) -> bool:
    """Can the kernels be used here, on states of this kind? Triton comes with CUDA builds of torch on Linux."""
    return on.type == "cuda" and find_spec("triton") is not None and first_launch(on, kind)


@lru_cache(maxsize=16)
def first_launch(on: device, kind: dtype) -> bool:
    """Do the kernels compile, run, and give what torch's own operations give? Warns, once, where they do not."""
    import torch
    from torch.nn.functional import layer_norm

    vectors = np.zeros((2, 1), dtype=np.float32)
    graph = GFMGraph.from_edges(4, np.array([[0, 0, 1], [0, 1, 2], [2, 0, 0]]), vectors, vectors)
    block = Listeners.of(plan(graph.indptr, 0, 4, 2), on)
    source, relation = (torch.from_numpy(array).to(on, torch.int32) for array in (graph.source, graph.relation))
    states, kinds = (torch.linspace(-1, 1, 4 * size, device=on).to(kind).view(4, -1, 8) for size in (16, 8))
    given, some = torch.linspace(-2, 5, 64, device=on).view(8, 8), torch.linspace(-1, 2, 8, device=on)
    expected, found = (torch.zeros(block.rows, 2, 8, device=on) for _ in range(2))
    hear_messages(block, states, kinds[:, 0], source, relation, expected)
    whole, parts = states.view(8, 8), torch.zeros(8, 24, device=on, dtype=torch.bfloat16)
    after = (layer_norm(given + some, (8,), some, some).relu_() + whole).to(kind)
    try:
        from ras_agent.tools.gfm.triton_kernels import hear_messages as hear
        from ras_agent.tools.gfm.triton_respond import respond
        from ras_agent.tools.gfm.triton_split import split

        hear(block, states, kinds[:, 0], source, relation, found)
        following = torch.empty_like(after)
        respond(given, some, some, some, whole, following)
        split(whole, parts)
        most, rest, again = parts.float().chunk(3, dim=1)
        same = torch.equal(most, again) and torch.allclose(most + rest, whole.float(), atol=1e-4)
        same &= torch.allclose(found, expected, atol=1e-4)
        same &= torch.allclose(following, after, atol=max(1e-4, 16 * torch.finfo(kind).eps))
        if same:
            return True
        reason = "their results are wrong"
    except Exception as error:  # whatever a compiler, a driver or a version that does not fit raises
        reason = f"{type(error).__name__}: {error}"
    warnings.warn(
        f"GFM on {on}: the Triton kernels are not used, torch's own operations are, which is slower ({reason}). "
        "Triton may need a C compiler at its first launch (gcc, or CC in the environment).",
        RuntimeWarning,
        stacklevel=2,
    )
    return False
