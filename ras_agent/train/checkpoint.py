"""The files from which a training resumes: its weights and how far it is, without pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ras_agent.errors import SettingsError, WeightsError

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

_FILE = "training.safetensors"
_NUMBERS = {  # as safetensors files name them
    **{"torch.float64": "F64", "torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16"},
    **{"torch.int64": "I64", "torch.int32": "I32", "torch.uint8": "U8", "torch.bool": "BOOL"},
}


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a training after a step.

    step: the number of steps so far. seconds: how long they took, over all starts of the training.
    best_step, best: the step of the best validation and what was measured there; 0 and {} before any validation.
    worse: the number of validations since then. stopped: the reason why no step follows, "" while one does.
    """

    step: int = 0
    seconds: float = 0.0
    best_step: int = 0
    best: Mapping[str, float] = field(default_factory=dict)
    worse: int = 0
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Files of a training: training.safetensors, from which it resumes, and the best validation's weights.

    Each file is replaced in one move: a kill leaves the old one or the new one.
    settings: the JSON of what decides the weights. weights: the trained parameters of `model`, by name.
    """

    folder: Path
    settings: Mapping[str, Any]
    model: nn.Module
    weights: Mapping[str, Tensor]
    optimiser: Optimizer

    def save(self, progress: Progress) -> None:
        """Write weights, buffers, the optimiser's moments and the progress; remove the weights of earlier bests."""
        tensors = {f"buffer:{name}": value for name, value in _buffers(self.model).items()}
        for name, weight in self.weights.items():
            for key, value in {"weight": weight, **self.optimiser.state.get(weight, {})}.items():
                tensors[f"{key}:{name}"] = value
        metadata = {"settings": json.dumps(self.settings), "progress": json.dumps(asdict(progress))}
        _write(self.folder / _FILE, tensors, metadata)
        self._remove_earlier(progress)

    def _remove_earlier(self, progress: Progress) -> None:
        for file in set(self.folder.glob("best-*.safetensors")) - {self._best_file(progress.best_step)}:
            file.unlink()

    def resume(self) -> Progress | None:
        """Load what `save` wrote and return its progress, or None where nothing was saved.

        Raises SettingsError where the folder holds a training by other settings, WeightsError where its file cannot be
        read or is of another network.
        """
        file = self.folder / _FILE
        if not file.is_file():
            return None
        tensors, metadata = _read_file(file)
        try:
            settings, progress = json.loads(metadata["settings"]), Progress(**json.loads(metadata["progress"]))
        except (KeyError, TypeError, ValueError) as error:
            raise WeightsError(f"{file}: is no training of this version: choose another folder") from error
        if differences := _differences(settings, json.loads(json.dumps(self.settings))):
            raise SettingsError(
                f"{self.folder} holds a training with other settings ({'; '.join(differences)}): go on with those, or "
                "choose another folder"
            )
        _copy(file, {name[7:]: value for name, value in tensors.items() if name[:7] == "weight:"}, self.weights)
        self._load_state({name: value for name, value in tensors.items() if name[:7] != "weight:"})
        self._remove_earlier(progress)  # a kill may have come between a save and this
        return progress

    def save_best(self, step: int) -> None:
        """Write weights and buffers as those of the best validation, the one after `step`."""
        _write(self._best_file(step), {**self.weights, **_buffers(self.model)})

    def load_best(self, step: int) -> None:
        """Copy the best validation's weights and buffers into the model."""
        file = self._best_file(step)
        _copy(file, _read_file(file)[0], {**self.weights, **_buffers(self.model)})

    def _best_file(self, step: int) -> Path:
        """Return the path of the best weights, with the step in it: a kill may come between this file and `save`."""
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
                else:
                    weight = self.weights[name]
                    # AdamW counts its steps on the CPU
                    self.optimiser.state[weight][kind] = value if kind == "step" else value.to(weight.device)


def _differences(saved: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """List the settings that differ, each as "name: there, here"."""

    def text(settings: Mapping[str, Any], name: str) -> str:
        value = settings.get(name, "absent")
        return value if isinstance(value, str) else json.dumps(value)

    names = [name for name in sorted({*saved, *current}) if text(saved, name) != text(current, name)]
    return [f"{name}: {text(saved, name)} there, {text(current, name)} here" for name in names]


def _write(file: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file, one tensor at a time: the library's own writer takes the memory of all, twice.

    In front are the size of the header in eight bytes, and the header: what the file holds where, and the metadata.
    """
    import torch

    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    # as the library orders them, so that every number lies where its type wants it
    order, end = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name)), 0
    for name in order:
        tensor, start = tensors[name], end
        end += tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NUMBERS[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    new = file.with_name(f"{file.name}.new")
    with new.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            numbers = tensors[name].detach().cpu().contiguous().reshape(-1)
            out.write(numbers.view(torch.uint8).numpy().data)
    new.replace(file)


def _read_file(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return a file's tensors and metadata. Raises WeightsError."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as tensors:
            return {key: tensors.get_tensor(key) for key in tensors.keys()}, tensors.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{file}: cannot be read ({error}): choose another folder, or move it away") from error


def _copy(file: Path, tensors: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """Copy the tensors of a file into weights. Raises WeightsError where their names or shapes differ."""
    import torch

    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    if shapes != {name: tuple(weight.shape) for name, weight in weights.items()}:
        raise WeightsError(f"{file}: holds the training of another network: choose another folder")
    with torch.no_grad():
        for name, value in tensors.items():
            weights[name].copy_(value)


def _buffers(model: nn.Module) -> dict[str, Tensor]:
    """Return the buffers that the module itself would save, such as the running means of a batch norm."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return {name: value for name, value in model.state_dict().items() if name not in parameters}
