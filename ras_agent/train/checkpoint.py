"""Saves the state of a training, that is weights and progress, so that it can be resumed. Nothing is pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.contracts.errors import SettingsError, WeightsError

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

_FILE = "training.safetensors"


@dataclass(frozen=True, slots=True)
class Progress:
    """Holds how far a training has come."""

    step: int = 0
    """The number of steps so far."""
    seconds: float = 0.0
    """The seconds of these steps, over all starts of the training."""
    best_step: int = 0
    """The step of the best validation; 0 before any validation."""
    best: Mapping[str, float] = field(default_factory=dict)
    """The measurements of the best validation; {} before any validation."""
    worse: int = 0
    """The number of validations since the best one."""
    stopped: str = ""
    """Why no further step follows; "" if one does."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Saves a training in a folder: training.safetensors, from which it resumes, and the weights of the best
    validation.

    Files are replaced atomically: if the training is killed, the old file or the new one is there.
    """

    folder: Path
    settings: Mapping[str, Any]
    """All options that affect the weights, as JSON."""
    model: nn.Module
    weights: Mapping[str, Tensor]
    """The trained parameters of `model`, by name."""
    optimiser: Optimizer

    def save(self, progress: Progress) -> None:
        """Write weights, buffers, the optimiser's moments and the progress. Delete the weights of earlier best
        validations.
        """
        tensors = {}
        for name, value in _buffers(self.model).items():
            tensors[f"buffer:{name}"] = value
        for name, weight in self.weights.items():
            tensors[f"weight:{name}"] = weight
            for moment, value in self.optimiser.state.get(weight, {}).items():
                tensors[f"{moment}:{name}"] = value
        metadata = {
            "settings": json.dumps(self.settings),
            "progress": json.dumps(asdict(progress)),
        }
        _write(self.folder / _FILE, tensors, metadata)
        self._remove_earlier(progress)

    def _remove_earlier(self, progress: Progress) -> None:
        best = self._best_file(progress.best_step)
        for file in self.folder.glob("best-*.safetensors"):
            if file != best:
                file.unlink()

    def resume(self) -> Progress | None:
        """Load the state that `save` wrote into model and optimiser, and return the progress; None if there is no such
        state.

        Raises:
            SettingsError: If the folder holds a training with other settings.
            WeightsError: If the file cannot be read or is of another network.
        """
        file = self.folder / _FILE
        if not file.is_file():
            return None
        tensors, metadata = _read_file(file)
        try:
            settings = json.loads(metadata["settings"])
            progress = Progress(**json.loads(metadata["progress"]))
        except (KeyError, TypeError, ValueError) as error:
            raise WeightsError(
                f"{file}: a training of another version of ras-agent cannot be continued: choose another --out"
            ) from error
        differences = _differences(settings, json.loads(json.dumps(self.settings)))
        if differences:
            raise SettingsError(
                f"{self.folder} holds a training with other settings ({'; '.join(differences)}): use those settings, or "
                "choose another --out"
            )
        weights = {}
        for key in list(tensors):
            kind, _, name = key.partition(":")
            if kind == "weight":
                weights[name] = tensors.pop(key)
        _copy(file, weights, self.weights)
        self._load_state(tensors)
        self._remove_earlier(progress)  # a kill may have come before the removal
        return progress

    def save_best(self, step: int) -> None:
        """Write weights and buffers as those of the best validation so far, the one after step `step`."""
        _write(self._best_file(step), {**self.weights, **_buffers(self.model)})

    def load_best(self, step: int) -> None:
        """Copy the weights and buffers that `save_best` wrote after step `step` into the model."""
        file = self._best_file(step)
        tensors, _ = _read_file(file)
        _copy(file, tensors, {**self.weights, **_buffers(self.model)})

    def _best_file(self, step: int) -> Path:
        """Return the path of the best weights. Its name has the step, because a kill may come between writing
        this file and `save`.
        """
        return self.folder / f"best-{step}.safetensors"

    def _load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy the buffers into the model, and the moments into the optimiser."""
        import torch

        buffers = _buffers(self.model)
        with torch.no_grad():
            for key, value in tensors.items():
                kind, _, name = key.partition(":")
                if kind == "buffer":
                    buffers[name].copy_(value)
                    continue
                weight = self.weights[name]
                if kind != "step":  # AdamW counts its steps on the CPU
                    value = value.to(weight.device)
                self.optimiser.state[weight][kind] = value


def _differences(saved: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Return the settings that differ, each as "name: ... there, ... here"."""
    differences = []
    for name in sorted({*saved, *current}):
        there = saved.get(name, "absent")
        here = current.get(name, "absent")
        if there != here:
            differences.append(f"{name}: {_shown(there)} there, {_shown(here)} here")
    return differences


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _write(
    file: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file atomically: a kill leaves the old file or the new one."""
    from safetensors.torch import save_file

    written = {}
    places = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().contiguous()
        place = tensor.untyped_storage().data_ptr()
        if place in places:
            tensor = tensor.clone()  # the library refuses tensors that share memory
        places.add(place)
        written[name] = tensor
    new = file.with_name(f"{file.name}.new")
    save_file(written, new, metadata)
    new.replace(file)


def _read_file(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return a file's tensors and metadata.

    Raises:
        WeightsError: the file cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as tensors:
            names = tensors.keys()  # a file of tensors is not a mapping
            metadata = tensors.metadata() or {}
            return {name: tensors.get_tensor(name) for name in names}, metadata
    except (SafetensorError, OSError) as error:
        raise WeightsError(
            f"{file}: the training cannot be read ({error}): move the file away, or choose another --out"
        ) from error


def _copy(
    file: Path, tensors: Mapping[str, Tensor], weights: Mapping[str, Tensor]
) -> None:
    """Copy the tensors of a file into weights.

    Raises:
        WeightsError: their names or shapes differ.
    """
    import torch

    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    if shapes != {name: tuple(weight.shape) for name, weight in weights.items()}:
        raise WeightsError(
            f"{file}: the training is of another network, so it cannot be continued: choose another --out"
        )
    with torch.no_grad():
        for name, value in tensors.items():
            weights[name].copy_(value)


def _buffers(model: nn.Module) -> dict[str, Tensor]:
    """Return the buffers that the module itself would save, such as the running means of a batch norm."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return {
        name: value
        for name, value in model.state_dict().items()
        if name not in parameters
    }
