"""Trains a network, with a schedule of the learning rate, gradient accumulation, early stopping, exact resume,
several processes and a log.

    result = fit(model, batches, validate, FitConfig(epochs=2), Path("RUN"))

`model` is a torch module with `loss(batch)`; the parameters that require a gradient are trained. It may have
`rate_factors`, {"encoder.": 0.1}: factors of the learning rate, by the beginning of the weights' names. The
folder RUN gets metrics.jsonl (a line for each step, with the validation after it), training.safetensors (the
state to resume from) and best-STEP.safetensors (trained weights and buffers of the best validation, which the
model has when `fit` returns).

Under torchrun each process takes different batches, and gradients are averaged. All processes must have access
to the folder RUN:

    torchrun --nproc-per-node 8 -m ras_agent.train.<weight>.train ...

The configuration class of a training inherits from FitConfig. Its fields become the options of the command
(ras_agent.train.options), and those that affect the weights are compared when a training is resumed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from numpy.random import SeedSequence

from ras_agent.contracts.errors import IngestError, SettingsError
from ras_agent.tools.store.durable import replace_file
from ras_agent.train.checkpoint import Checkpoint, Progress
from ras_agent.train.processes import Processes
from ras_agent.train.ranges import (
    AMOUNT,
    COUNT,
    NATURAL,
    SEED,
    SHARE,
    Range,
    check_choices,
    check_ranges,
)

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

Batch = TypeVar("Batch")
Batch_co = TypeVar("Batch_co", covariant=True)

_METRICS = "metrics.jsonl"
TRAINING = "training.json"
"""The card of a training, in its folder."""
SCHEDULES = ("cosine", "linear")

FIT_RANGES: Mapping[str, Range] = {
    **dict.fromkeys(("epochs", "accumulate", "save_every"), COUNT),
    **dict.fromkeys(("steps", "validate_every", "patience"), NATURAL),
    **dict.fromkeys(("rate", "decay", "clip", "minutes"), AMOUNT),
    **dict.fromkeys(("warmup", "beta2", "lowest_rate"), SHARE),
    "seed": SEED,
}
"""The allowed numbers of FitConfig's options. The configuration class of a training adds the ranges of its options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitConfig:
    """Holds the options of a training. Raises SettingsError for a number out of its range.

    The configuration class of a training inherits from it, with the same arguments of `dataclass`. Its `__post_init__`
    begins with `FitConfig.__post_init__(self)`, as `super()` does not work with slots. A field that it does not need
    is declared again with `field(default=..., init=False)` and is then not an option. The sentence under a field is
    the help text of its option, also in subclasses.
    """

    CIRCUMSTANCES: ClassVar[tuple[str, ...]] = (
        "minutes",
        "save_every",
        "gradient_checkpointing",
    )
    """The options that do not affect the weights, in addition to those that name files."""

    seed: int = 0
    """The number that all random draws follow from."""
    epochs: int = 1
    """How many times all batches are seen."""
    steps: int = 0
    """Steps of the optimiser, instead of epochs; 0 to train for the epochs."""
    rate: float = 1e-4
    """The highest learning rate."""
    warmup: float = 0.05
    """The share of all steps in which the rate rises."""
    schedule: str = "cosine"
    """How the rate falls after it has risen: cosine or linear."""
    lowest_rate: float = 0.05
    """The rate of the last step, as a share of the highest."""
    accumulate: int = 1
    """Batches of each process that make up one step."""
    decay: float = 0.01
    """The weight decay of AdamW."""
    decay_biases: bool = False
    """Apply the weight decay to biases and norms, too."""
    beta2: float = 0.999
    """AdamW's second beta."""
    clip: float = 1.0
    """The maximum norm of a step's gradient; 0 for no limit."""
    validate_every: int = 0
    """Steps between validations; 0 for one after each epoch."""
    validate_first: bool = False
    """Validate before the first step, so that the weights with which the training begins may be the best."""
    patience: int = 0
    """The number of consecutive validations without improvement after which the training stops; 0 for never."""
    bf16: bool | None = None
    """Compute in bfloat16; if not set, wherever the graphics processor has it."""
    gradient_checkpointing: bool = False
    """Compute activations twice instead of storing them."""
    minutes: float = 0.0
    """The minutes after which the training saves and stops; 0 for never."""
    save_every: int = 500
    """Steps between two saves, from which a killed training can be resumed."""

    def __post_init__(self) -> None:
        check_ranges(self, FIT_RANGES)
        check_choices(self, {"schedule": SCHEDULES})

    def rate_at(self, step: int, total: int) -> float:
        """Return the learning rate of a step, counted from 0: a linear warm-up, then the decay that `schedule` names."""
        warm = round(self.warmup * total)
        if step < warm:
            return self.rate * (step + 1) / warm
        part = (step - warm) / max(total - 1 - warm, 1)
        if self.schedule == "linear":
            left = 1 - part
        else:
            left = 0.5 * (1 + math.cos(math.pi * part))
        return self.rate * (self.lowest_rate + (1 - self.lowest_rate) * left)

    def settings(self) -> dict[str, Any]:
        """Return the options that affect the weights. Paths are left out, because only a file's content affects
        the weights.
        """
        names = [
            option.name for option in fields(self) if "Path" not in str(option.type)
        ]
        return {
            name: getattr(self, name)
            for name in names
            if name not in self.CIRCUMSTANCES
        }


@dataclass(frozen=True, slots=True)
class FitResult:
    """Holds the outcome of a training."""

    steps: int
    """The number of steps, over all starts of the training."""
    seconds: float
    """The seconds of these steps."""
    stopped: str
    """"steps" if all steps were done, "patience", or "minutes" (call `fit` again to continue)."""
    best_step: int
    """The step of the best validation; 0 without a validation."""
    best: Mapping[str, float]
    """The measures of the best validation; {} without a validation."""
    main: bool
    """Whether this process is the one that writes files."""


class Batches(Protocol[Batch_co]):
    """Describes a sequence of an epoch's batches, which may be built when they are accessed."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int, /) -> Batch_co: ...


BatchesOfEpoch = Callable[[int], Batches[Batch]]
Validate = Callable[[], Mapping[str, float]]
Goodness = Callable[[Mapping[str, float]], tuple[float, ...]]


def low_loss(measured: Mapping[str, float]) -> tuple[float, ...]:
    """Return (-loss,), for `fit` to choose the validation with the lowest loss."""
    return (-measured["loss"],)


def fit(
    model: Any,
    batches: BatchesOfEpoch[Any],
    validate: Validate | None,
    config: FitConfig,
    folder: Path,
    settings: Mapping[str, Any] | None = None,
    goodness: Goodness = low_loss,
) -> FitResult:
    """Train `model`, and leave the weights of the best validation in it.

    Started again with the same arguments, a training continues from the last save, and ends with the same weights as
    without the interruption, since random numbers depend only on seed and step.

    Args:
        model: A torch module with `loss(batch)`, which moves the batch to its own device and returns a scalar with a
            gradient, or a mapping with it under "loss" and its parts to log.
        batches: Returns the batches of an epoch, always the same for the same number.
        validate: Returns measures, including "loss". It runs in the main process, in evaluation mode, without
            gradients, and in the precision of the training (`bf16`).
        config: The options of the training.
        folder: The folder of the training's files.
        settings: What affects the weights in addition to the options, as JSON, such as digests of files. A training
            with other settings is not resumed.
        goodness: Maps the measures of a validation to a tuple, which is greater for a better validation.

    Raises:
        SettingsError: `folder` holds a training with other settings, there is nothing to train, or the loss is not
            finite.
        WeightsError: The training in `folder` cannot be read or is of another network.
    """
    processes = Processes.begin()
    training = _Training(model, batches, validate, config, processes, goodness)
    folder.mkdir(parents=True, exist_ok=True)
    decisive = {
        **config.settings(),
        **(settings or {}),
        "processes": processes.count,
        "total": training.total,
    }
    checkpoint = Checkpoint(
        folder, decisive, model, training.weights, training.optimiser
    )
    progress = checkpoint.resume() or Progress()
    processes.wait()
    if processes.main:
        _cut_metrics(folder / _METRICS, progress.step)
    progress = _run(training, checkpoint, progress)
    processes.wait()
    if progress.best:
        checkpoint.load_best(progress.best_step)
    processes.end()
    end = {
        name: getattr(progress, name)
        for name in ("seconds", "stopped", "best_step", "best")
    }
    return FitResult(steps=progress.step, main=processes.main, **end)


def print_result(result: FitResult) -> None:
    """Print the outcome of a training as JSON, in the main process only."""
    if result.main:
        print(json.dumps(asdict(result)))


def validations(folder: Path) -> list[dict[str, float]]:
    """Return the measures of each validation of the training in `folder`, each with its "step"."""
    lines = map(
        json.loads, (folder / _METRICS).read_text(encoding="utf-8").splitlines()
    )
    return [
        {"step": line["step"], **line["validation"]}
        for line in lines
        if "validation" in line
    ]


def _cut_metrics(file: Path, last: int) -> None:
    """Truncate metrics.jsonl after the line of step `last`, because a killed run may have logged steps that it
    did not save.

    Raises:
        IngestError: if an earlier line has no step.
    """
    if not file.is_file():
        return
    data = file.read_bytes()
    lines = list[bytes]()
    step = 0
    for number, line in enumerate(data.splitlines(), 1):
        if step >= last:
            break
        try:
            step = int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError) as error:
            raise IngestError(
                f"{file} line {number}: has no step: {line.decode('utf-8', 'replace')!r:.80}; remove the line, "
                "or move the file away"
            ) from error
        if step <= last:
            lines.append(line + b"\n")
    if b"".join(lines) != data:
        replace_file(file, b"".join(lines))


def _run(training: _Training, checkpoint: Checkpoint, progress: Progress) -> Progress:
    """Do the remaining steps, log and save them, and return the progress at the end."""
    config = training.config
    processes = training.processes
    start = time.monotonic()
    seconds_before = progress.seconds
    # released at the end of this function: processes cannot leave the group while gradients are averaged over it
    loss_of = processes.averaged(training.model)
    if progress.stopped == "minutes":
        progress = replace(progress, stopped="")
    if config.validate_first and not progress.step and training.is_validated(0):
        progress, measured = training.validation(progress)
        if processes.main:
            checkpoint.save_best(0)
            _append(checkpoint.folder, {"step": 0, "validation": measured})
    batches = training.own_batches(progress.step)
    while not progress.stopped and progress.step < training.total:
        line: dict[str, Any] = training.step(loss_of, progress.step, *next(batches))
        seconds = time.monotonic() - start
        progress = replace(
            progress, step=progress.step + 1, seconds=seconds_before + seconds
        )
        if validated := training.is_validated(progress.step):
            progress, line["validation"] = training.validation(progress)
        late = bool(config.minutes) and processes.any(
            time.monotonic() - start > 60 * config.minutes
        )
        progress = replace(progress, stopped=training.reason_to_stop(progress, late))
        if processes.main:
            if validated and progress.best_step == progress.step:
                checkpoint.save_best(progress.step)
            _append(checkpoint.folder, {**line, "seconds": round(progress.seconds, 2)})
            if validated or progress.stopped or progress.step % config.save_every == 0:
                checkpoint.save(progress)
    return progress


class _Training:
    """Holds the parts of a training that stay the same from its first step to its last.

    `weights` are the weights by name, `total` is the number of steps, and `period` the number of steps between
    validations.
    """

    def __init__(
        self,
        model: Any,
        batches: BatchesOfEpoch[Any],
        validate: Validate | None,
        config: FitConfig,
        processes: Processes,
        goodness: Goodness,
    ) -> None:
        """Place the model on the process's device, and count the steps.

        Raises:
            SettingsError: there is nothing to train.
        """
        self.model = model.to(processes.device)
        self.batches = batches
        self.validate = validate
        self.config = config
        self.processes = processes
        self.goodness = goodness
        if config.gradient_checkpointing:
            _checkpoint_gradients(model)
        self.weights = {
            name: weight
            for name, weight in model.named_parameters()
            if weight.requires_grad
        }
        size = config.accumulate * processes.count
        epoch_steps = len(batches(0)) / size
        if not self.weights or not epoch_steps:
            raise SettingsError(
                "there is nothing to train: the samples fill no batch, or the model has no weights to train; give more "
                "samples, or another model"
            )
        self.total = config.steps or math.ceil(
            sum(len(batches(epoch)) for epoch in range(config.epochs)) / size
        )
        self.period = config.validate_every or math.ceil(epoch_steps)
        self.optimiser = _optimiser(
            self.weights, config, getattr(model, "rate_factors", {})
        )

    def step(
        self, loss_of: Any, number: int, epoch: int, batches: Sequence[Any]
    ) -> dict[str, Any]:
        """Do step `number`, counted from 0, and return its line of metrics.

        Raises:
            SettingsError: the loss is not finite.
        """
        import torch

        config = self.config
        torch.manual_seed(
            int(
                SeedSequence((config.seed, number, self.processes.rank)).generate_state(
                    1, "u8"
                )[0]
            )
        )
        rate = config.rate_at(number, self.total)
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["factor"]
        self.model.train()
        losses = self._gradients(loss_of, batches)
        norm = float(
            torch.nn.utils.clip_grad_norm_(
                self.weights.values(), config.clip or math.inf
            )
        )
        if not math.isfinite(norm):
            raise SettingsError(
                f"step {number + 1}: the gradient is not finite: train with a smaller --rate"
            )
        self.optimiser.step()
        self.optimiser.zero_grad()
        rounded = {name: round(loss, 5) for name, loss in losses.items()}
        return {
            "step": number + 1,
            "epoch": epoch,
            **rounded,
            "rate": rate,
            "norm": round(norm, 4),
        }

    def is_validated(self, step: int) -> bool:
        """Tell whether a validation follows a step."""
        return self.validate is not None and (
            step % self.period == 0 or step == self.total
        )

    def validation(self, progress: Progress) -> tuple[Progress, dict[str, float]]:
        """Validate. Return the updated progress and the measures."""
        import torch

        measured: dict[str, float] = {}
        if self.processes.main and self.validate is not None:
            self.model.eval()
            with torch.no_grad(), self._autocast():
                measured = {
                    name: float(value) for name, value in self.validate().items()
                }
        measured = self.processes.from_main(measured)
        if not progress.best or self.goodness(measured) > self.goodness(progress.best):
            return replace(
                progress, best_step=progress.step, best=measured, worse=0
            ), measured
        return replace(progress, worse=progress.worse + 1), measured

    def reason_to_stop(self, progress: Progress, late: bool) -> str:
        """Return why no further step follows; "" if one does. `late` tells whether the time is over."""
        if progress.step == self.total:
            return "steps"
        if self.config.patience and progress.worse >= self.config.patience:
            return "patience"
        if late:
            return "minutes"
        return ""

    def own_batches(self, first: int) -> Iterator[tuple[int, list[Any]]]:
        """Yield for each step, from number `first` on, its epoch and the batches of this process, epoch after epoch.

        Batches left at the end of an epoch are combined with the first batches of the next. Batches of other processes
        and of earlier steps are counted but not accessed.
        """
        count = self.processes.count
        rank = self.processes.rank
        size = self.config.accumulate * count
        number = 0
        step_batches = list[Any]()
        epoch = 0
        while True:
            batches = self.batches(epoch)
            if not len(batches):
                raise SettingsError(
                    f"epoch {epoch} has no batches: give more samples, or a smaller --batch"
                )
            for place in range(len(batches)):
                if number >= first * size and number % count == rank:
                    step_batches.append(batches[place])
                number += 1
                if step_batches and number % size == 0:
                    yield epoch, step_batches
                    step_batches = []
            epoch += 1

    def _gradients(self, loss_of: Any, batches: Sequence[Any]) -> dict[str, float]:
        """Add the gradients of the mean loss of some batches. Return this loss and its parts."""
        means: dict[str, float] = {}
        for number, batch in enumerate(batches, 1):
            # gradients are exchanged between processes once a step, with the last batch
            waits = self.processes.count > 1 and number < len(batches)
            with loss_of.no_sync() if waits else nullcontext():
                with self._autocast():
                    loss = loss_of(batch)
                if isinstance(loss, Mapping):
                    parts = loss
                else:
                    parts = {"loss": loss}
                (parts["loss"] / len(batches)).backward()
            for name, part in parts.items():
                means[name] = means.get(name, 0.0) + float(part.detach()) / len(batches)
        return means

    def _autocast(self) -> AbstractContextManager[Any]:
        """Return the context manager for computing losses, in bfloat16 if the configuration says so."""
        import torch

        kind = torch.device(self.processes.device).type
        bf16 = self.config.bf16
        if bf16 is None:
            bf16 = kind == "cuda" and torch.cuda.is_bf16_supported()
        if bf16:
            return torch.autocast(kind, torch.bfloat16)
        return nullcontext()


def _append(folder: Path, line: Mapping[str, Any]) -> None:
    """Append a line to metrics.jsonl."""
    with (folder / _METRICS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _optimiser(
    weights: Mapping[str, Tensor], config: FitConfig, factors: Mapping[str, float]
) -> Optimizer:
    """Return AdamW with the weights grouped by factor of the learning rate and by decay."""
    from torch.optim import AdamW

    groups: dict[tuple[float, float], list[Tensor]] = {}
    for name, weight in weights.items():
        factor = next(
            (factor for start, factor in factors.items() if name.startswith(start)), 1.0
        )
        decays = weight.dim() > 1 or config.decay_biases
        groups.setdefault((factor, config.decay if decays else 0.0), []).append(weight)
    options = [
        {"params": tensors, "factor": factor, "weight_decay": decay}
        for (factor, decay), tensors in groups.items()
    ]
    return AdamW(options, lr=config.rate, betas=(0.9, config.beta2))


def _checkpoint_gradients(model: nn.Module) -> None:
    """Switch gradient checkpointing on in the Hugging Face models inside `model`."""
    from transformers import PreTrainedModel

    models = [
        module for module in model.modules() if isinstance(module, PreTrainedModel)
    ]
    able = [module for module in models if module.supports_gradient_checkpointing]
    if not able:
        raise SettingsError(
            "this model has no layers to checkpoint: train without --gradient-checkpointing"
        )
    outermost: Any = able[0]  # it contains the others
    older = outermost.gradient_checkpointing_enable
    switch = getattr(outermost, "activation_checkpointing_enable", None) or older
    switch({"use_reentrant": False})
    outermost.config.use_cache = False
