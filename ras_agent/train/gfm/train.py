"""Train a GFM network (GFM-RAG, arXiv:2502.01113): knowledge graph completion first, then finding what supports.

    python -m ras_agent.train.gfm.train --sets SETS/hotpotqa,SETS/musique,SETS/2wiki --out RUN --width 64 --steps 4000
    torchrun --nproc-per-node 8 -m ras_agent.train.gfm.train --sets ... --out RUN --width 512 --text-width 768

A set is a folder that ras_agent.train.gfm.examples writes. Every step takes questions of one set and the part of its
graph that some of its documents state: those that support, those that name what the question names, and others. With
`--completion N` the first N steps complete facts instead: a fact is taken out of the graph, its relation is the
question, one of its ends the start and the other the target. Under torchrun each process takes steps of its own and
gradients are averaged. Started again with the same settings, it goes on where it was saved; the rate falls to its least
at the last of `--steps`, so that more of them are another training. A line a step goes to RUN/metrics.jsonl.
`--start-from FOLDER` begins with the weights of a network of the same shape, this package's or a published one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import MISSING, asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ras_agent.errors import SettingsError, WeightsError
from ras_agent.program import run_program
from ras_agent.tools.gfm.network import GraphTensors, plain_scores
from ras_agent.tools.gfm.weights import GFMConfig, initial_weights, load_gfm
from ras_agent.train.gfm.checkpoint import keep_lines, resume, save
from ras_agent.train.gfm.config import Config, contents_of, settings_of
from ras_agent.train.gfm.losses import document_loss, entity_loss, ranking_loss
from ras_agent.train.gfm.sets import Example, Set, completion, load_sets, retrieval, text_model_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Config", "losses", "train"]


def losses(weights: Mapping[str, Tensor], example: Example, config: Config, device: str = "cpu") -> dict[str, Tensor]:
    """The loss of one step's example, and its parts."""
    import torch

    graph = GraphTensors.of(example.graph, device)
    given = (torch.from_numpy(array).to(device) for array in (example.vectors, example.start, example.targets))
    vectors, start, targets = given
    kind = device.partition(":")[0]
    with torch.autocast(kind, torch.bfloat16) if config.bf16 else nullcontext():
        logits = plain_scores(weights, graph, vectors, start).float()
    if example.chosen is not None:
        chosen = torch.from_numpy(example.chosen).to(device)
        logits, targets = logits.gather(1, chosen), targets.gather(1, chosen)
        found = {"entity": entity_loss(logits, targets)}
        return {"loss": found["entity"], **found}
    found = {"entity": entity_loss(logits, targets), "ranking": ranking_loss(logits, targets)}
    total = config.alpha * found["entity"] + (1 - config.alpha) * found["ranking"]
    if config.document and example.shares is not None and example.wanted is not None:
        shares, wanted = example.shares.to(device), torch.from_numpy(example.wanted).to(device)
        found["document"] = document_loss(logits, shares, wanted)
        total = total + config.document * found["document"]
    return {"loss": total, **found}


def train(config: Config) -> dict[str, Any]:
    """Train until `steps` or `minutes` are over; returns the progress that was saved.

    Raises WeightsError where `start_from` or what is in `out` is another network, IndexMismatch where the sets' graphs
    hold other vectors, SettingsError where what is in `out` was trained by other settings, the loss stops being finite
    or there is nothing to draw, IngestError where a set's questions cannot be read.
    """
    import torch

    rank, world, device = _process()
    shape, weights = _begin(config)
    weights = {name: tensor.to(device).requires_grad_() for name, tensor in weights.items()}
    optimiser = torch.optim.AdamW(list(weights.values()), lr=config.rate, weight_decay=config.decay)
    config.out.mkdir(parents=True, exist_ok=True)
    settings = {**settings_of(config), **contents_of(config), "processes": world}
    progress = resume(config.out, shape, settings, weights, optimiser) or {"step": 0, "seconds": 0.0}
    sets = load_sets(config.sets, shape, config.share)
    began, before = time.monotonic(), progress["seconds"]
    used, used_before = time.process_time(), progress.get("processor_seconds", 0.0)
    if rank == 0:
        keep_lines(config.out / "metrics.jsonl", progress["step"])
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
                told = {name: round(float(value.detach()), 5) for name, value in found.items()}
                metrics.write(json.dumps({**progress, "set": example.name, **told, "norm": round(norm, 4)}) + "\n")
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


def _begin(config: Config) -> tuple[GFMConfig, dict[str, Tensor]]:
    """The network's shape and its first weights."""
    encoder = text_model_of(config.sets, config.text_width)
    shape = GFMConfig(config.text_width, config.width, config.layers, encoder, inverse=config.inverse)
    if config.start_from is None:
        return shape, initial_weights(shape, config.seed)
    known, weights = load_gfm(config.start_from)
    if known.text_width != config.text_width:
        raise WeightsError(
            f"{config.start_from} reads vectors of width {known.text_width}, the sets hold width {config.text_width}: "
            f"write the sets with its encoder, {known.text_model or 'which it does not name'}"
        )
    expected = replace(shape, toward=known.toward)
    if (kept := replace(known, text_model=encoder)) != expected:
        names = ("width", "layers", "inverse")
        options = [(name, getattr(kept, name)) for name in names if getattr(kept, name) != getattr(expected, name)]
        told = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options)
        raise WeightsError(f"{config.start_from} holds a network of another shape: train it with {told}")
    return expected, weights


def _example(sets: Sequence[Set], config: Config, step: int, rank: int) -> Example:
    """The example of a step: the same for the same seed, step and process, so that a resumed run takes none twice."""
    rng = np.random.default_rng((config.seed, step, rank))
    if step < config.completion:
        return completion(sets, config.batch, config.documents, config.negatives, rng)
    return retrieval(sets, config.batch, config.documents, config.labelled, config.dropout, rng)


def _rate(config: Config, step: int) -> float:
    """Linear warm-up at the start of either phase, then a cosine down to a twentieth."""
    done, total = (step, config.completion) if step < config.completion else (step - config.completion, config.steps)
    warm = min(1.0, (done + 1) / max(config.warmup, 1))
    return config.rate * warm * (0.05 + 0.475 * (1 + math.cos(math.pi * done / max(total, 1))))


def _process() -> tuple[int, int, str]:
    """This process's number, how many there are, and its device."""
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
    """Whether it holds in any process: all of them have to stop at one step."""
    import torch

    if world == 1:
        return here
    flag = torch.tensor(int(here), device=device)
    torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MAX)
    return bool(flag.item())


def main(arguments: Sequence[str] | None = None) -> None:
    """Train as the options say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(Config):
        name = f"--{field.name.replace('_', '-')}"
        if field.name == "sets":
            parser.add_argument(name, required=True, help="folders, parted by commas")
        elif field.type == "bool":
            parser.add_argument(name, action="store_true")
        else:
            kind = {"int": int, "float": float, "str": str}.get(str(field.type), Path)
            required = field.default is MISSING
            parser.add_argument(name, type=kind, required=required, default=None if required else field.default)
    given = vars(parser.parse_args(arguments))
    config = Config(**{**given, "sets": tuple(Path(one) for one in given["sets"].split(","))})
    progress = train(config)
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps({**asdict(config), **progress}, default=str))


if __name__ == "__main__":
    run_program(main)
