"""Save a GFM network's training, and resume it: weights, AdamW's moments and the step, without pickle.

A run resumes from one file, training.safetensors, which is replaced in one move: a kill leaves the old file or the new
one. config.json and model.safetensors are for users of the network and are written first, so that once the last step is
saved, they are of the last step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ras_agent.errors import SettingsError, WeightsError
from ras_agent.eval.run.manifest import differences
from ras_agent.tools.gfm.weights import GFMConfig, save_gfm

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

_FILE = "training.safetensors"


def save(
    folder: Path,
    config: GFMConfig,
    settings: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    optimiser: Optimizer,
    progress: dict[str, Any],
) -> None:
    """Write weights, moments, `progress` and the settings of the training (both JSON) into `folder`."""
    from safetensors.torch import save_file

    save_gfm(folder, config, weights)
    tensors = {}
    for name, tensor in weights.items():
        for key, value in {"weight": tensor, **optimiser.state.get(tensor, {})}.items():
            tensors[f"{key}:{name}"] = value.detach().cpu().contiguous()
    metadata = {"config": config.to_dict(), "settings": settings, "progress": progress}
    save_file(tensors, folder / f"{_FILE}.new", {name: json.dumps(value) for name, value in metadata.items()})
    (folder / f"{_FILE}.new").replace(folder / _FILE)


def resume(
    folder: Path,
    config: GFMConfig,
    settings: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    optimiser: Optimizer,
) -> dict[str, Any] | None:
    """Load what `save` wrote into `weights` and `optimiser`; return its progress, or None where nothing was saved.

    Raises WeightsError for a checkpoint of another network, of another version, or a damaged one; SettingsError for a
    training with other settings, which it lists.
    """
    import torch
    from safetensors import SafetensorError, safe_open

    path = folder / _FILE
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
        known = GFMConfig.from_dict(json.loads(metadata["config"]), str(path))
        begun, progress = (json.loads(metadata[name]) for name in ("settings", "progress"))
    except (SafetensorError, KeyError, ValueError) as error:
        raise WeightsError(
            f"{path}: no training of this version to go on with ({error!r}): choose another folder"
        ) from error
    if known != config:
        raise WeightsError(f"{folder} holds a training of {known}, not of {config}: choose another folder")
    if found := differences(begun, settings):
        raise SettingsError(
            f"{folder} holds a training with other settings ({'; '.join(found)}): go on with those, or choose another "
            f"folder; --start-from {folder} begins with its weights"
        )
    with torch.no_grad():
        for key, value in tensors.items():
            part, _, name = key.partition(":")
            if part == "weight":
                weights[name].copy_(value)
            else:
                # AdamW counts its steps on the CPU
                optimiser.state[weights[name]][part] = value if part == "step" else value.to(weights[name].device)
    return cast(dict[str, Any], progress)
