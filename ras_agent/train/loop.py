"""Train a network: cosine schedule, accumulation, early stopping, exact resume, several processes, one log.

    result = fit(model, batches, validate, FitConfig(epochs=2), Path("RUN"))

`model` is a torch module with `loss(batch) -> scalar`; the parameters that require a gradient are trained. It may have
`rate_factors`, {"encoder.": 0.1}: factors of the rate of the weights whose names begin so. In RUN:
metrics.jsonl (a line for each step, with the validation after it), training.safetensors (where to go on) and
best-STEP.safetensors (the trained weights of the best validation, which the model holds when `fit` returns).

Under torchrun each process takes batches of its own and gradients are averaged; all of them see RUN:

    torchrun --nproc-per-node 8 -m ras_agent.train.<weight>.train ...
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from numpy.random import SeedSequence

from ras_agent.errors import IngestError, SettingsError, WeightsError
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SEED, SHARE, Range, check_ranges

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

Batch = TypeVar("Batch")
BatchesOfEpoch = Callable[[int], Sequence[Batch]]
Validate = Callable[[], Mapping[str, float]]

_TRAINING, _METRICS = "training.safetensors", "metrics.jsonl"
_CIRCUMSTANCES = ("minutes", "save_every", "gradient_checkpointing")
_LEAST = 0.05  # of the rate, at the last step

FIT_RANGES: Mapping[str, Range] = {
    **dict.fromkeys(("epochs", "accumulate", "save_every"), COUNT),
    **dict.fromkeys(("steps", "validate_every", "patience"), NATURAL),
    **dict.fromkeys(("rate", "decay", "minutes"), AMOUNT),
    "warmup": SHARE,
    "clip": Range(0, sys.float_info.max, above=True),
    "seed": SEED,
}
"""The numbers that the options of a FitConfig take; a training's own configuration adds its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitConfig:
    """Says how to train. Raises SettingsError for a number out of its range.

    A training's own configuration may inherit from it, with the same arguments of `dataclass`; its `__post_init__`
    then begins with `FitConfig.__post_init__(self)` (slots leave no `super()`).

    epochs: how often all batches are seen. steps: the number of the optimiser's steps instead, if it is not 0.
    rate: the highest learning rate; it rises over the first `warmup` (a share of all steps) and falls as a cosine.
    accumulate: batches that make one step, of each process. decay: of weights, not of biases and norms.
    clip: the largest norm of a step's gradient.
    validate_every: steps between validations; 0 for once an epoch. patience: the number of validations in a row
        without a better one after which the training stops; 0 for never.
    bf16: compute in bfloat16 where that is safe; None for wherever the graphics processor has it.
    gradient_checkpointing: compute activations twice instead of storing them.
    minutes: stop and save after so long; 0 for never.
    """

    seed: int = 0
    epochs: int = 1
    steps: int = 0
    rate: float = 1e-4
    warmup: float = 0.05
    accumulate: int = 1
    decay: float = 0.01
    clip: float = 1.0
    validate_every: int = 0
    patience: int = 0
    bf16: bool | None = None
    gradient_checkpointing: bool = False
    minutes: float = 0.0
    save_every: int = 500

    def __post_init__(self) -> None:
        check_ranges(self, FIT_RANGES)


@dataclass(frozen=True, slots=True)
class FitResult:
    """Says how a training ended.

    stopped: "steps" when all were done, "patience", or "minutes" (call `fit` again to go on).
    best_step, best: of the lowest validated loss, and all that was validated there; 0 and {} without a validation.
    main: whether this process is the one that writes files.
    """

    steps: int
    seconds: float
    stopped: str
    best_step: int
    best: dict[str, float]
    main: bool


class Trainable(Protocol):
    """Is a torch module that knows its own loss."""

    def loss(self, batch: Any) -> Tensor:
        """Return the loss of a batch, a scalar with a gradient; it places the batch on the module's device."""
        ...


def fit(
    model: Any,
    batches: BatchesOfEpoch[Any],
    validate: Validate | None,
    config: FitConfig,
    folder: Path,
    settings: Mapping[str, Any] | None = None,
) -> FitResult:
    """Train `model` (a Trainable torch module), and leave the weights of the best validation in it.

    Started again with the same arguments, a training goes on where it was saved, and ends with the weights that it
    would have had uninterrupted: random numbers are drawn by seed and step.

    batches: returns the batches of an epoch, the same ones for the same number. validate: returns what it measured,
        with "loss"; it runs in the main process, in evaluation mode and without gradients. settings: what else
        decides the weights, as JSON: a training with other settings is not resumed.
    Raises SettingsError where `folder` holds a training by other settings, there is nothing to train or the loss stops
    being finite; WeightsError where what is in `folder` cannot be read or is of another network.
    """
    import torch

    process = _Process.begin()
    model.to(process.device)
    if config.gradient_checkpointing:
        _checkpoint_gradients(model)
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    size = config.accumulate * process.world
    epoch_steps = len(batches(0)) / size
    total = config.steps or math.ceil(config.epochs * epoch_steps)
    if not trained or not epoch_steps:
        raise SettingsError("nothing to train: no batches, or no parameter requires a gradient")
    optimiser = _optimiser(trained, config, getattr(model, "rate_factors", {}))
    own = {one.name: getattr(config, one.name) for one in fields(FitConfig) if one.name not in _CIRCUMSTANCES}
    known = {**own, **(settings or {}), "processes": process.world, "total": total}
    folder.mkdir(parents=True, exist_ok=True)
    progress: dict[str, Any] = {"step": 0, "seconds": 0.0, "best_step": 0, "best": {}, "waited": 0, "stopped": ""}
    progress = _resume(folder, known, model, trained, optimiser) or progress
    process.wait()
    if process.main:
        cut_metrics(folder / _METRICS, progress["step"])
    began, before = time.monotonic(), progress["seconds"]
    loss_of = process.shared(model)
    every = config.validate_every or math.ceil(epoch_steps)
    stream = _stream(batches, size, progress["step"])
    with (folder / _METRICS).open("a", encoding="utf-8") if process.main else nullcontext() as metrics:
        while progress["stopped"] in ("", "minutes") and progress["step"] < total:
            step = progress["step"]
            torch.manual_seed(int(SeedSequence((config.seed, step, process.rank)).generate_state(1, "u8")[0]))
            rate = _rate(config, step, total)
            for group in optimiser.param_groups:
                group["lr"] = rate * group["factor"]
            epoch, mine = next(stream)
            model.train()
            loss = _gradients(loss_of, mine[process.rank :: process.world], config, process)
            norm = float(torch.nn.utils.clip_grad_norm_(trained.values(), config.clip))
            if not math.isfinite(norm):
                raise SettingsError(f"step {step + 1}: the gradient is not finite: train with a smaller --rate")
            optimiser.step()
            optimiser.zero_grad()
            progress = {**progress, "step": step + 1, "seconds": before + time.monotonic() - began}
            line = {"step": step + 1, "epoch": epoch, "loss": round(loss, 5), "rate": rate, "norm": round(norm, 4)}
            validated = validate is not None and ((step + 1) % every == 0 or step + 1 == total)
            if validate is not None and validated:
                found = _validated(model, validate, process)
                line["validation"] = found
                progress |= _judged(progress, found, config.patience)
                if process.main and progress["best_step"] == step + 1:
                    _write(_best(folder, step + 1), trained)
            late = bool(config.minutes) and process.any(time.monotonic() - began > 60 * config.minutes)
            if step + 1 == total:
                progress["stopped"] = "steps"
            elif not progress["stopped"] or progress["stopped"] == "minutes":
                progress["stopped"] = "minutes" if late else ""
            if metrics is not None:
                metrics.write(json.dumps({**line, "seconds": round(progress["seconds"], 2)}) + "\n")
                if validated or progress["stopped"] or (step + 1) % config.save_every == 0:
                    metrics.flush()
                    _save(folder, known, model, trained, optimiser, progress)
                    for older in set(folder.glob(_best(folder, "*").name)) - {_best(folder, progress["best_step"])}:
                        older.unlink()
            if progress["stopped"]:
                break
    process.wait()
    if progress["best_step"]:
        best = _best(folder, progress["best_step"])
        _copy(best, _load(best)[0], trained)
    # what averages gradients goes before the group of processes: whatever goes last waits for the group's threads, and
    # it would wait for ever, in their way
    del loss_of
    process.end()
    kept = {name: progress[name] for name in ("seconds", "stopped", "best_step", "best")}
    return FitResult(steps=progress["step"], main=process.main, **kept)


def cut_metrics(file: Path, last: int) -> None:
    """Cut metrics back to the lines up to step `last`: a run that was killed had listed steps that it did not save.

    Raises IngestError for a line before these that has no step.
    """
    if not file.is_file():
        return
    data, lines, step = file.read_bytes(), list[bytes](), 0
    for number, line in enumerate(data.splitlines(), 1):
        if step >= last:
            break
        try:
            step = int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError) as error:
            raise IngestError(
                f"{file} line {number}: has no step: {line.decode('utf-8', 'replace')!r:.80}; take the line out, "
                "or move the file away"
            ) from error
        if step <= last:
            lines.append(line + b"\n")
    if b"".join(lines) != data:
        new = file.with_name(f"{file.name}.new")
        new.write_bytes(b"".join(lines))
        new.replace(file)


def _judged(progress: Mapping[str, Any], found: Mapping[str, float], patience: int) -> dict[str, Any]:
    """Return what a validation changes in the progress."""
    if not progress["best_step"] or found["loss"] < progress["best"]["loss"]:
        return {"best_step": progress["step"], "best": dict(found), "waited": 0}
    waited = progress["waited"] + 1
    return {"waited": waited, "stopped": "patience" if patience and waited >= patience else ""}


def _gradients(loss_of: Any, batches: Sequence[Any], config: FitConfig, process: _Process) -> float:
    """Add the gradients of the mean loss of some batches, and return that loss."""
    import torch

    kind = torch.device(process.device).type
    bf16 = config.bf16
    if bf16 is None:
        bf16 = kind == "cuda" and torch.cuda.is_bf16_supported()
    total = 0.0
    for number, batch in enumerate(batches, 1):
        # gradients travel between processes once a step, with the last batch
        quiet = loss_of.no_sync() if process.world > 1 and number < len(batches) else nullcontext()
        with quiet:
            with torch.autocast(kind, torch.bfloat16) if bf16 else nullcontext():
                loss = loss_of(batch) / len(batches)
            loss.backward()
        total += float(loss.detach())
    return total


def _validated(model: Any, validate: Validate, process: _Process) -> dict[str, float]:
    """Return what `validate` measures; processes other than the main one get the loss alone."""
    import torch

    found: dict[str, float] = {}
    if process.main:
        model.eval()
        with torch.no_grad():
            found = {name: float(value) for name, value in validate().items()}
    return process.from_main(found)


def _rate(config: FitConfig, step: int, total: int) -> float:
    """Return the learning rate: a linear warm-up, then a cosine down to a twentieth."""
    warm = round(config.warmup * total)
    if step < warm:
        return config.rate * (step + 1) / warm
    done = (step - warm) / max(total - 1 - warm, 1)
    return config.rate * (_LEAST + (1 - _LEAST) * 0.5 * (1 + math.cos(math.pi * done)))


def _stream(batches: BatchesOfEpoch[Any], size: int, skipped: int) -> Iterator[tuple[int, list[Any]]]:
    """Yield, for each step from number `skipped` on, its epoch and its `size` batches, epoch after epoch.

    What is left of an epoch joins the next one's first batches; an epoch that was done is counted, not made.
    """
    left, taken, epoch = skipped * size, list[Any](), 0
    while True:
        found = batches(epoch)
        if not len(found):
            raise SettingsError(f"epoch {epoch} has no batches")
        for place in range(min(left, len(found)), len(found)):
            taken.append(found[place])
            if len(taken) == size:
                yield epoch, taken
                taken = []
        left, epoch = max(0, left - len(found)), epoch + 1


def _optimiser(trained: Mapping[str, Tensor], config: FitConfig, factors: Mapping[str, float]) -> Optimizer:
    from torch.optim import AdamW

    groups: dict[tuple[float, float], list[Tensor]] = {}
    for name, weight in trained.items():
        factor = next((factor for start, factor in factors.items() if name.startswith(start)), 1.0)
        groups.setdefault((factor, config.decay if weight.dim() > 1 else 0.0), []).append(weight)
    described = [
        {"params": weights, "factor": factor, "weight_decay": decay} for (factor, decay), weights in groups.items()
    ]
    return AdamW(described, lr=config.rate)


def _checkpoint_gradients(model: nn.Module) -> None:
    """Switch gradient checkpointing on in the Hugging Face models inside `model`."""
    from transformers import PreTrainedModel

    found = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    able = [module for module in found if module.supports_gradient_checkpointing]
    if not able:
        raise SettingsError("this model has no layers to checkpoint: train without --gradient-checkpointing")
    first: Any = able[0]  # it holds the others
    switch = getattr(first, "activation_checkpointing_enable", None) or first.gradient_checkpointing_enable  # older
    switch({"use_reentrant": False})
    first.config.use_cache = False


def _save(
    folder: Path,
    settings: Mapping[str, Any],
    model: nn.Module,
    trained: Mapping[str, Tensor],
    optimiser: Optimizer,
    progress: Mapping[str, Any],
) -> None:
    """Write trained weights, buffers, AdamW's moments and the progress in one file, which is replaced in one move."""
    tensors = {f"buffer:{name}": value for name, value in _buffers(model).items()}
    for name, weight in trained.items():
        for key, value in {"weight": weight, **optimiser.state.get(weight, {})}.items():
            tensors[f"{key}:{name}"] = value
    _write(folder / _TRAINING, tensors, {"settings": json.dumps(settings), "progress": json.dumps(progress)})


def _write(file: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    from safetensors.torch import save_file

    new = file.with_name(f"{file.name}.new")
    save_file({name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}, new, metadata)
    new.replace(file)


def _resume(
    folder: Path,
    settings: Mapping[str, Any],
    model: nn.Module,
    trained: Mapping[str, Tensor],
    optimiser: Optimizer,
) -> dict[str, Any] | None:
    """Load what `_save` wrote and return its progress, or None where nothing was saved."""
    import torch

    if not (folder / _TRAINING).is_file():
        return None
    tensors, metadata = _load(folder / _TRAINING)
    try:
        begun, progress = (json.loads(metadata[name]) for name in ("settings", "progress"))
    except (KeyError, ValueError) as error:
        raise WeightsError(f"{folder / _TRAINING}: is no training of this version: choose another folder") from error
    now = json.loads(json.dumps(settings))
    names = [name for name in sorted({*begun, *now}) if begun.get(name) != now.get(name)]
    if found := [f"{name}: {begun.get(name)} there, {now.get(name)} here" for name in names]:
        raise SettingsError(
            f"{folder} holds a training with other settings ({'; '.join(found)}): go on with those, or choose another "
            "folder"
        )
    _copy(folder / _TRAINING, {name[7:]: value for name, value in tensors.items() if name[:7] == "weight:"}, trained)
    buffers = _buffers(model)
    with torch.no_grad():
        for key, value in tensors.items():
            part, _, name = key.partition(":")
            if part == "buffer":
                buffers[name].copy_(value)
            elif part != "weight":
                # AdamW counts its steps on the CPU
                optimiser.state[trained[name]][part] = value if part == "step" else value.to(trained[name].device)
    return dict(progress)


def _best(folder: Path, step: int | str) -> Path:
    """Return the file of the best validation's weights: named by step, for a kill may come before the next save."""
    return folder / f"best-{step}.safetensors"


def _load(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "pt") as stored:
            return {key: stored.get_tensor(key) for key in stored.keys()}, stored.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{file}: cannot be read ({error}): choose another folder, or move it away") from error


def _copy(file: Path, tensors: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> None:
    import torch

    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    if shapes != {name: tuple(weight.shape) for name, weight in trained.items()}:
        raise WeightsError(f"{file}: holds the training of another network: choose another folder")
    with torch.no_grad():
        for name, value in tensors.items():
            trained[name].copy_(value)


def _buffers(model: nn.Module) -> dict[str, Tensor]:
    """Return the buffers that the module itself would save, such as the running means of a batch norm."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return {name: value for name, value in model.state_dict().items() if name not in parameters}


@dataclass(frozen=True, slots=True)
class _Process:
    """Is this process among those that torchrun started, or the only one."""

    rank: int
    world: int
    device: str
    began: bool

    @classmethod
    def begin(cls) -> _Process:
        import torch

        rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        device = "cpu"
        if torch.cuda.is_available():
            device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
            torch.cuda.set_device(device)
        began = world > 1 and not torch.distributed.is_initialized()
        if began:
            torch.distributed.init_process_group("nccl" if device != "cpu" else "gloo")
        return cls(rank, world, device, began)

    @property
    def main(self) -> bool:
        return self.rank == 0

    def end(self) -> None:
        if self.began:
            _distributed().destroy_process_group()

    def wait(self) -> None:
        """Wait until all processes have come so far."""
        if self.world > 1:
            _distributed().barrier()

    def any(self, here: bool) -> bool:
        """Tell whether `here` holds in any process: all of them have to stop at the same step."""
        import torch

        if self.world == 1:
            return here
        flag = torch.tensor(int(here), device=self.device)
        _distributed().all_reduce(flag, _distributed().ReduceOp.MAX)
        return bool(flag.item())

    def from_main(self, found: dict[str, float]) -> dict[str, float]:
        """Return what the main process found: all of it there, its loss elsewhere."""
        import torch

        if self.world == 1:
            return found
        loss = torch.tensor(found.get("loss", 0.0), dtype=torch.float64, device=self.device)
        _distributed().broadcast(loss, 0)
        return {**found, "loss": float(loss)}

    def shared(self, model: Any) -> Any:
        """Return what computes the model's loss and, with several processes, averages gradients."""
        if self.world == 1:
            return model.loss
        from torch import nn

        class Loss(nn.Module):
            """Makes the loss a forward pass, which is all that DistributedDataParallel watches."""

            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, batch: Any) -> Tensor:
                found: Tensor = self.model.loss(batch)
                return found

        # a graph without edges leaves an encoder's weights without a gradient in some step
        return nn.parallel.DistributedDataParallel(Loss(), find_unused_parameters=True)


def _distributed() -> Any:
    import torch

    return torch.distributed
