"""Train a GFM network (GFM-RAG, arXiv:2502.01113): knowledge graph completion first, then retrieval.

    python -m ras_agent.train.gfm.train --sets SETS/hotpotqa,SETS/musique,SETS/2wiki --out RUN --width 64 --steps 4000
    torchrun --nproc-per-node 8 -m ras_agent.train.gfm.train --sets ... --out RUN --width 512 --text-width 768

A set is a folder that ras_agent.train.gfm.examples writes. Every step takes questions of one set and the part of its
graph that some of its documents state: those that support the questions, those that name an entity of theirs, and
others. The losses are the paper's eq. 11 to 13, and one for documents.

With `--completion N` the first N steps complete facts instead: a fact is taken out of the graph, its relation is the
question, one of its ends the start and the other the target. `--start-from` begins with the weights of a network: a
folder, an id on the Hugging Face hub, or `packaged`; its shape is then the default.

Under torchrun each process takes steps of its own, and gradients are averaged. Started again with the same settings, a
training goes on where it was saved; the rate falls to its least at the last of `--steps`, so more steps make another
training. Each step writes a line to RUN/metrics.jsonl.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.errors import SettingsError, WeightsError
from ras_agent.eval.run.manifest import file_sha256
from ras_agent.program import run_program
from ras_agent.tools.gfm.network import GraphTensors, plain_scores
from ras_agent.tools.gfm.weights import (
    PACKAGED_NAME,
    GFMConfig,
    initial_weights,
    load_gfm,
    same_encoder,
    weights_folder,
)
from ras_agent.tools.kg.disk import read_kg_manifest
from ras_agent.tools.retrieve.document_ranker import PACKAGED
from ras_agent.train.gfm.batches import GFMExample, completion_example, retrieval_example
from ras_agent.train.gfm.checkpoint import resume, save
from ras_agent.train.gfm.sets import GFMSet, load_sets, text_model_of
from ras_agent.train.loop import cut_metrics
from ras_agent.train.ranges import AMOUNT, COUNT, NATURAL, SEED, SHARE, Range, check_ranges

if TYPE_CHECKING:
    from torch import Tensor

_LEAST = 1e-9  # keeps the logarithm of a document's score finite

_RANGES = {
    **dict.fromkeys(("width", "layers", "text_width", "batch", "documents", "negatives", "save_every"), COUNT),
    **dict.fromkeys(("completion", "steps", "warmup"), NATURAL),
    **dict.fromkeys(("rate", "decay", "document", "minutes", "adversarial"), AMOUNT),
    **dict.fromkeys(("alpha", "labelled", "dropout"), SHARE),
    "seed": SEED,
    "clip": Range(0, sys.float_info.max, above=True),
    "share": Range(0, 1, above=True),
}


@dataclass(frozen=True, slots=True)
class GFMTrainingConfig:
    """Holds everything that decides what comes out. Raises SettingsError for a number out of range, or nothing to do.

    sets: folders. out: the folder of the run.
    width, layers, text_width, inverse: see GFMConfig; None for those of `start_from`, else 64, 6, the width of the
        sets' vectors and "negated".
    alpha: the share of eq. 11 in the loss of retrieval (it is 1 in completion).
    adversarial: the temperature at which eq. 11 weighs negatives by a softmax of their logits, 0.2 in the published
        code; 0 to weigh them alike, as the paper does.
    document: the weight of the loss for documents, 0 in the paper.
    documents: the number of documents whose facts make a step's graph.
    negatives: the entities, next to the target, that the loss of completion reads.
    labelled: how often a step takes labelled questions where a set has them.
    share: of each set's questions that is used; a smaller share's questions are among a larger one's.
    dropout: the share of a question's entities that is left out, except the last.
    bf16: compute products in bfloat16. minutes: stop and save after so long.
    start_from: the weights to begin with.
    """

    sets: tuple[Path, ...]
    out: Path
    width: int | None = None
    layers: int | None = None
    text_width: int | None = None
    inverse: str | None = None
    seed: int = 0
    completion: int = 0
    steps: int = 4000
    batch: int = 8
    documents: int = 300
    rate: float = 5e-4
    decay: float = 0.01
    warmup: int = 200
    clip: float = 1.0
    alpha: float = 0.3
    adversarial: float = 0.0
    document: float = 0.0
    negatives: int = 128
    labelled: float = 0.5
    share: float = 1.0
    dropout: float = 0.0
    bf16: bool = False
    minutes: float = 0.0
    save_every: int = 500
    start_from: Path | None = None

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        if not self.completion + self.steps:
            raise SettingsError("nothing to train: --steps and --completion are both 0")


def settings_of(config: GFMTrainingConfig) -> dict[str, Any]:
    """Return what decides the weights, as JSON: all but where they go, how often they are saved and when to stop."""
    left = ("sets", "out", "minutes", "save_every")
    plain = {name: value for name, value in asdict(config).items() if name not in left}
    start = None if config.start_from is None else str(config.start_from)
    return {**plain, "sets": [folder.name for folder in config.sets], "start_from": start}


def contents_of(config: GFMTrainingConfig) -> dict[str, Any]:
    """Return short digests of what `sets` and `start_from` hold, to replace the paths of `settings_of`.

    Raises OSError for a file that cannot be read.
    """
    digests: dict[str, Any] = {"sets": {}, "start_from": None}
    for number, folder in enumerate(config.sets, 1):
        parts = [read_kg_manifest(folder / "graph").fingerprint]
        parts += [file_sha256(folder / name) for name in ("questions.jsonl", "questions.npz")]
        digests["sets"][f"{number} {folder.name}"] = hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]
    if config.start_from is not None:
        folder = weights_folder(str(config.start_from))
        files = (folder / name for name in ("model.safetensors", "model.pth"))
        digests["start_from"] = file_sha256(next(file for file in files if file.is_file()))[:12]
    return digests


def train(config: GFMTrainingConfig) -> dict[str, Any]:
    """Train until `steps` or `minutes` are over, and return the progress that was saved.

    Raises WeightsError where `start_from` or what is in `out` is another network, IndexMismatch where the sets' graphs
    hold other vectors, SettingsError where what is in `out` was trained by other settings, the loss stops being finite
    or there is nothing to draw, IngestError where a set's questions cannot be read.
    """
    import torch

    rank, world, device = _process()
    config, shape, weights = _begin(config)
    weights = {name: tensor.to(device).requires_grad_() for name, tensor in weights.items()}
    optimiser = torch.optim.AdamW(list(weights.values()), lr=config.rate, weight_decay=config.decay)
    config.out.mkdir(parents=True, exist_ok=True)
    settings = {**settings_of(config), **contents_of(config), "processes": world}
    progress = resume(config.out, shape, settings, weights, optimiser) or {"step": 0, "seconds": 0.0}
    sets = load_sets(config.sets, shape, config.share)
    began, before = time.monotonic(), progress["seconds"]
    used, used_before = time.process_time(), progress.get("processor_seconds", 0.0)
    if rank == 0:
        cut_metrics(config.out / "metrics.jsonl", progress["step"])
    metrics = (config.out / "metrics.jsonl").open("a", encoding="utf-8") if rank == 0 else None
    with metrics or nullcontext():
        while progress["step"] < config.completion + config.steps:
            step = progress["step"]
            for group in optimiser.param_groups:
                group["lr"] = _rate(config, step)
            example = _example(sets, config, step, rank)
            found = losses(weights, example, config, device)
            optimiser.zero_grad()
            found["loss"].backward()  # type: ignore[no-untyped-call]
            _average(list(weights.values()), world)
            norm = float(torch.nn.utils.clip_grad_norm_(list(weights.values()), config.clip))
            if not math.isfinite(norm):
                raise SettingsError(f"step {step + 1}: the gradient is not finite: train with a smaller --rate")
            optimiser.step()
            progress = {
                "step": step + 1,
                "seconds": before + time.monotonic() - began,
                "processor_seconds": used_before + time.process_time() - used,
            }
            late = bool(config.minutes) and _anywhere(time.monotonic() - began > 60 * config.minutes, world, device)
            if metrics:
                parts = {name: round(float(value.detach()), 5) for name, value in found.items()}
                metrics.write(json.dumps({**progress, "set": example.name, **parts, "norm": round(norm, 4)}) + "\n")
                if late or (step + 1) % config.save_every == 0 or step + 1 == config.completion + config.steps:
                    metrics.flush()
                    save(config.out, shape, settings, weights, optimiser, progress)
            if late:
                break
    if world > 1:
        torch.distributed.destroy_process_group()
    if rank == 0:
        done: dict[str, Any] = {"sets": [folder.name for folder in config.sets], "processes": world, **progress}
        plain = {name: value for name, value in asdict(config).items() if name not in ("sets", "out", "start_from")}
        if config.start_from:
            done["start_from"] = config.start_from.name
        (config.out / "training.json").write_text(json.dumps({**plain, **done}, indent=1) + "\n", encoding="utf-8")
    return progress


def losses(
    weights: Mapping[str, Tensor], example: GFMExample, config: GFMTrainingConfig, device: str = "cpu"
) -> dict[str, Tensor]:
    """Return the loss of one step's example, and its parts."""
    import torch

    graph = GraphTensors.of(example.graph, device)
    arrays = (example.vectors, example.start, example.targets)
    vectors, start, targets = (torch.from_numpy(array).to(device) for array in arrays)
    with torch.autocast(device.partition(":")[0], torch.bfloat16) if config.bf16 else nullcontext():
        logits = plain_scores(weights, graph, vectors, start).float()
    if example.chosen is not None:
        chosen = torch.from_numpy(example.chosen).to(device)
        logits, targets = logits.gather(1, chosen), targets.gather(1, chosen)
        found = {"entity": entity_loss(logits, targets, config.adversarial)}
        return {"loss": found["entity"], **found}
    found = {"entity": entity_loss(logits, targets, config.adversarial), "ranking": ranking_loss(logits, targets)}
    total = config.alpha * found["entity"] + (1 - config.alpha) * found["ranking"]
    if config.document and example.shares is not None and example.wanted is not None:
        shares, wanted = example.shares.to(device), torch.from_numpy(example.wanted).to(device)
        found["document"] = document_loss(logits, shares, wanted)
        total = total + config.document * found["document"]
    return {"loss": total, **found}


def _mean_over(values: Tensor, chosen: Tensor) -> Tensor:
    """Return the mean (B,) of `values` (B, N) where `chosen` (B, N) is 1, not 0; 0 for a row without any."""
    return (values * chosen).sum(-1) / chosen.sum(-1).clamp(min=1)


def entity_loss(logits: Tensor, targets: Tensor, adversarial: float = 0.0) -> Tensor:
    """Return eq. 11 of logits and targets (0 or 1), both (B, N): a scalar. All that is no target is negative.

    adversarial: the temperature at which the published code weighs negatives by a softmax of their logits, through
    which no gradient goes; 0 for the mean over them.
    """
    from torch.nn.functional import logsigmoid

    positive = _mean_over(-logsigmoid(logits), targets)
    if not adversarial:
        negative = _mean_over(-logsigmoid(-logits), 1 - targets)
    else:
        scaled = (logits.detach() / adversarial).masked_fill(targets > 0, -math.inf)
        # a row of targets alone has no negative
        shares = scaled.softmax(-1).nan_to_num(0)
        negative = (-logsigmoid(-logits) * shares).sum(-1)
    return (positive + negative).mean()


def ranking_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return eq. 12 of logits and targets (B, N): a scalar.

    The equation is printed without a logarithm, which would leave it without a bound; as in the published code, this is
    the cross entropy of the targets under the entities' probabilities scaled to sum to 1.
    """
    from torch.nn.functional import logsigmoid

    logs = logsigmoid(logits)
    return _mean_over(logs.logsumexp(-1, keepdim=True) - logs, targets).mean()


def document_loss(logits: Tensor, shares: Tensor, targets: Tensor) -> Tensor:
    """Return the ranking loss for documents, whose scores are sums of their entities' probabilities.

    logits: (B, N). shares: sparse (D, N), the factor of each entity in each document. targets: (B, D), 0 or 1.
    """
    import torch

    scores = torch.sparse.mm(shares, logits.sigmoid().t()).t()  # (B, D)
    logs = (scores + _LEAST).log()
    return _mean_over(logs.logsumexp(-1, keepdim=True) - logs, targets).mean()


def _begin(config: GFMTrainingConfig) -> tuple[GFMTrainingConfig, GFMConfig, dict[str, Tensor]]:
    """Return the training with its network's shape filled in, that network's configuration and its first weights."""
    encoder, dimension = text_model_of(config.sets, config.text_width)
    if config.start_from is None:
        shape = GFMConfig(
            text_width=dimension or 384,
            width=config.width or 64,
            layers=config.layers or 6,
            text_model=encoder,
            inverse=config.inverse or "negated",
            ranker=asdict(PACKAGED),
        )
        return _filled(config, shape), shape, initial_weights(shape, config.seed)
    known, weights = load_gfm(weights_folder(str(config.start_from)))
    its_encoder = known.text_model or "which it does not name"
    if dimension is not None and known.text_width != dimension:
        raise WeightsError(
            f"{config.start_from} reads vectors of width {known.text_width}, the sets hold width {dimension}: "
            f"write the sets with its encoder, {its_encoder}"
        )
    if encoder and known.text_model and not same_encoder(known.text_model, encoder):
        raise WeightsError(
            f"{config.start_from} reads vectors of {known.text_model}, the sets hold those of {encoder}: "
            "write the sets with its encoder"
        )
    if known.question_prefix or known.relation_prefix:
        raise WeightsError(
            f"{config.start_from} reads texts with an instruction in front of them, and sets are written without: "
            "start from other weights"
        )
    chosen = (("width", config.width), ("layers", config.layers), ("inverse", config.inverse))
    if wrong := [name for name, value in chosen if value not in (None, getattr(known, name))]:
        flags = " ".join(f"--{name.replace('_', '-')} {getattr(known, name)}" for name in wrong)
        raise WeightsError(f"{config.start_from} holds a network of another shape: train it with {flags}")
    ranker = asdict(PACKAGED) if str(config.start_from) == PACKAGED_NAME else known.ranker
    shape = replace(known, text_model=encoder or known.text_model, ranker=ranker)
    return _filled(config, shape), shape, weights


def _filled(config: GFMTrainingConfig, shape: GFMConfig) -> GFMTrainingConfig:
    return replace(config, width=shape.width, layers=shape.layers, text_width=shape.text_width, inverse=shape.inverse)


def _example(sets: Sequence[GFMSet], config: GFMTrainingConfig, step: int, rank: int) -> GFMExample:
    """Return a step's example, the same for the same seed, step and process: a resumed run takes none twice."""
    rng = np.random.default_rng((config.seed, step, rank))
    if step < config.completion:
        return completion_example(sets, config.batch, config.documents, config.negatives, rng)
    return retrieval_example(sets, config.batch, config.documents, config.labelled, config.dropout, rng)


def _rate(config: GFMTrainingConfig, step: int) -> float:
    """Return the learning rate: a linear warm-up at the start of either phase, then a cosine down to a twentieth."""
    done, total = (step, config.completion) if step < config.completion else (step - config.completion, config.steps)
    warm = min(1.0, (done + 1) / max(config.warmup, 1))
    return config.rate * warm * (0.05 + 0.475 * (1 + math.cos(math.pi * done / max(total, 1))))


def _process() -> tuple[int, int, str]:
    """Return this process's number, the number of processes, and its device."""
    import torch

    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = "cpu"
    if torch.cuda.is_available():
        device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
        torch.cuda.set_device(device)
    if world > 1:
        torch.distributed.init_process_group("nccl" if device != "cpu" else "gloo")
    return rank, world, device


def _average(weights: Sequence[Tensor], world: int) -> None:
    """Average the gradients over all processes, in one exchange."""
    import torch

    if world == 1:
        return
    grads = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in weights]
    flat = torch.cat([grad.flatten() for grad in grads])
    torch.distributed.all_reduce(flat)
    flat /= world
    for weight, part in zip(weights, flat.split([grad.numel() for grad in grads]), strict=True):  # type: ignore[no-untyped-call]
        weight.grad = part.view_as(weight)


def _anywhere(here: bool, world: int, device: str) -> bool:
    """Tell whether `here` holds in any process: all of them have to stop at the same step."""
    import torch

    if world == 1:
        return here
    flag = torch.tensor(int(here), device=device)
    torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MAX)
    return bool(flag.item())


def main(arguments: Sequence[str] | None = None) -> None:
    """Train as the options say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(GFMTrainingConfig):
        name = f"--{field.name.replace('_', '-')}"
        if field.name == "sets":
            parser.add_argument(name, required=True, help="folders, parted by commas")
        elif field.type == "bool":
            parser.add_argument(name, action="store_true")
        else:
            parse = {"int": int, "float": float, "str": str}.get(str(field.type).removesuffix(" | None"), Path)
            required = field.default is MISSING
            parser.add_argument(name, type=parse, required=required, default=None if required else field.default)
    given = vars(parser.parse_args(arguments))
    config = GFMTrainingConfig(**{**given, "sets": tuple(Path(one) for one in given["sets"].split(","))})
    progress = train(config)
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps({**asdict(config), **progress}, default=str))


if __name__ == "__main__":
    run_program(main)
