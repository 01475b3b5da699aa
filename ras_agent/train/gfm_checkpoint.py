"""Save a GFM network's training, and go on with it: weights, AdamW's moments and the step, without pickle.

What a run goes on with is one file, training.safetensors, replaced in one move: a kill leaves it as it was or as it is
to be. config.json and model.safetensors are for whoever uses the network and are written first, so that once the last
step is saved, they are of the last step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.errors import WeightsError
from ras_agent.tools.encode.gfm.config import GFMConfig
from ras_agent.tools.encode.gfm.weights import save_gfm

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

__all__ = ["keep_lines", "resume", "save"]

_FILE = "training.safetensors"


def save(
    folder: Path, config: GFMConfig, weights: Mapping[str, Tensor], optimiser: Optimizer, progress: dict[str, Any]
) -> None:
    """Write weights, moments and `progress` (JSON) into `folder`."""
    from safetensors.torch import save_file

    save_gfm(folder, config, weights)
    tensors = {}
    for name, tensor in weights.items():
        for key, value in {"weight": tensor, **optimiser.state.get(tensor, {})}.items():
            tensors[f"{key}:{name}"] = value.detach().cpu().contiguous()
    told = {"config": json.dumps(config.to_dict()), "progress": json.dumps(progress)}
    save_file(tensors, folder / f"{_FILE}.new", told)
    (folder / f"{_FILE}.new").replace(folder / _FILE)


def resume(
    folder: Path, config: GFMConfig, weights: Mapping[str, Tensor], optimiser: Optimizer
) -> dict[str, Any] | None:
    """Load what `save` wrote into `weights` and `optimiser`; its progress, or None where nothing was saved.

    Raises WeightsError for a checkpoint of another network, of another version, or a damaged one.
    """
    import torch
    from safetensors import SafetensorError, safe_open

    path = folder / _FILE
    if not path.is_file():
        return None
    try:
        with safe_open(path, "pt") as stored:
            told = stored.metadata() or {}
            tensors = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
        known = GFMConfig.from_dict(json.loads(told["config"]), str(path))
        progress: dict[str, Any] = json.loads(told["progress"])
    except (SafetensorError, KeyError, ValueError) as error:
        raise WeightsError(
            f"{path}: no training of this version to go on with ({error!r}): choose another folder"
        ) from error
    if known != config:
        raise WeightsError(f"{folder} holds a training of {known}, not of {config}: choose another folder")
    with torch.no_grad():
        for key, value in tensors.items():
            kind, _, name = key.partition(":")
            if kind == "weight":
                weights[name].copy_(value)
            else:
                # AdamW counts its steps on the CPU
                optimiser.state[weights[name]][kind] = value if kind == "step" else value.to(weights[name].device)
    return progress


def keep_lines(file: Path, count: int) -> None:
    """Cut a file back to its first `count` lines: a run that was killed told steps that it had not saved."""
    if not file.is_file():
        return
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if len(lines) > count:
        new = file.with_name(f"{file.name}.new")
        new.write_text("".join(lines[:count]), encoding="utf-8")
        new.replace(file)
