"""Save a GFM network's training, and go on with it: weights, AdamW's moments and the step, without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.errors import WeightsError
from ras_agent.tools.encode.gfm.config import GFMConfig
from ras_agent.tools.encode.gfm.weights import load_gfm, save_gfm

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

__all__ = ["resume", "save"]

_FILE = "training.safetensors"


def save(
    folder: Path, config: GFMConfig, weights: Mapping[str, Tensor], optimiser: Optimizer, progress: dict[str, Any]
) -> None:
    """Write weights, moments and `progress` (JSON) into `folder`, each file in one move, progress last."""
    from safetensors.torch import save_file

    save_gfm(folder / "new", config, weights)
    moments = {}
    for name, tensor in weights.items():
        for key, value in optimiser.state.get(tensor, {}).items():
            moments[f"{key}:{name}"] = value.detach().cpu().contiguous()
    save_file(moments, folder / "new" / _FILE)
    (folder / "new" / "progress.json").write_text(json.dumps(progress) + "\n", encoding="utf-8")
    for name in ("config.json", "model.safetensors", _FILE, "progress.json"):
        (folder / "new" / name).replace(folder / name)
    (folder / "new").rmdir()


def resume(
    folder: Path, config: GFMConfig, weights: Mapping[str, Tensor], optimiser: Optimizer
) -> dict[str, Any] | None:
    """Load what `save` wrote into `weights` and `optimiser`; its progress, or None where nothing was saved.

    Raises WeightsError for a checkpoint of another network.
    """
    import torch
    from safetensors.torch import load_file

    if not (folder / "progress.json").is_file():
        return None
    known, loaded = load_gfm(folder)
    if known != config:
        raise WeightsError(f"{folder} holds a training of {known}, not of {config}: choose another folder")
    moments = load_file(folder / _FILE)
    with torch.no_grad():
        for name, tensor in weights.items():
            tensor.copy_(loaded[name])
            keys = {key.partition(":")[0] for key in moments if key.partition(":")[2] == name}
            if keys:
                optimiser.state[tensor] = {key: moments[f"{key}:{name}"].to(_device(key, tensor)) for key in keys}
    progress: dict[str, Any] = json.loads((folder / "progress.json").read_text(encoding="utf-8"))
    return progress


def _device(key: str, tensor: Tensor) -> Any:
    return "cpu" if key == "step" else tensor.device
