"""The training of the aligner: the loss falls, validations measure the kept share, a resumed training ends the same."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from safetensors.torch import load_file

from ras_agent.contracts.errors import SettingsError
from ras_agent.tools.graph_tokens.aligner import GraphAligner
from ras_agent.train.aligner.measure import Kept, cosines_of, measure_kept
from ras_agent.train.aligner.samples import AlignerSample, write_samples
from ras_agent.train.aligner.train import (
    AlignerTrainingConfig,
    aligned_graphs,
    new_aligner,
    train,
    with_random_labels,
)
from ras_agent.train.options import config_from

pytestmark = pytest.mark.slow("trainings")


def sample(number: int, part: str) -> AlignerSample:
    """A question about the middle of three persons, whose graph holds a stranger too."""
    first, second, third = (f"{name}{number}" for name in ("Ann", "Bob", "Cid"))
    facts = (
        (first, "knows", second),
        (second, "likes", third),
        ("Zoe", "meets", first),
    )
    path = f"{first} knows {second}. {second} likes {third}."
    return AlignerSample(
        str(number), part, f"Who likes the friend of {first}?", (third,), facts, path
    )  # type: ignore[arg-type]


@pytest.fixture
def config(tmp_path: Path) -> AlignerTrainingConfig:
    samples = [
        sample(number, "dev" if number % 4 == 0 else "train") for number in range(16)
    ]
    write_samples(tmp_path / "samples.jsonl", samples)
    return AlignerTrainingConfig(
        samples=tmp_path / "samples.jsonl", out=tmp_path / "out", layers=1, heads=2, projected=16, batch=4,
        steps=40, rate=3e-3, validate_every=10, n_seeds=(1, 2), dropout=0.1,
    )  # fmt: skip


def lines(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()
    ]


def test_the_losses_fall_on_graphs_that_were_not_learned(
    config: AlignerTrainingConfig, hash_embedder: Any
) -> None:
    _, result = train(config, hash_embedder)
    validations = [
        line["validation"] for line in lines(config.out) if "validation" in line
    ]
    assert len(validations) == 4
    assert set(validations[0]) == {
        *("loss", "nodes", "representations"),
        *("answers@1", "facts@1", "answers@2", "facts@2"),
    }
    assert validations[-1]["nodes"] < validations[0]["nodes"]
    assert lines(config.out)[-1]["loss"] < lines(config.out)[0]["loss"] / 2
    about = json.loads((config.out / "config.json").read_text())["about"]
    assert about["result"] == asdict(result)
    assert about["settings"]["seed"] == 0


def test_the_folder_holds_an_aligner(
    config: AlignerTrainingConfig, hash_embedder: Any
) -> None:
    aligner, _ = train(replace(config, steps=2), hash_embedder)
    graph = aligner.vectors.of_facts(sample(3, "dev").facts)
    again = GraphAligner.load(config.out, hash_embedder)
    (nodes, edges), same = (of.prune(graph, "Bob3", 1) for of in (again, aligner))
    assert [nodes.tolist(), edges.tolist()] == [kept.tolist() for kept in same]
    assert len(edges)


def test_random_labels_are_unit_vectors_that_a_seed_fixes(
    config: AlignerTrainingConfig, hash_embedder: Any
) -> None:
    aligner = new_aligner(config, hash_embedder)
    examples = aligned_graphs(aligner, [sample(1, "train"), sample(2, "train")])
    one, again, other = (
        [row.reasoning for row in with_random_labels(examples, seed)]
        for seed in (0, 0, 1)
    )
    assert [row.tolist() for row in one] == [row.tolist() for row in again]
    assert one[0].tolist() != other[0].tolist()
    assert [float((row**2).sum()) for row in one] == pytest.approx([1.0, 1.0])


def test_cosines_are_those_of_graphs_with_question_reasoning_and_text(
    config: AlignerTrainingConfig, hash_embedder: Any
) -> None:
    aligner = new_aligner(config, hash_embedder)
    samples = [sample(1, "dev"), sample(2, "dev")]
    examples = aligned_graphs(aligner, samples)
    csv = [
        f"node_id,node_attr\n0,Ann{n}\n1,Bob{n}\n2,Cid{n}\n3,Zoe\n\nsrc,edge_attr,dst\n0,knows,1\n1,likes,2\n3,meets,0\n"
        for n in (1, 2)
    ]
    texts = {
        "question": [one.question for one in samples],
        "reasoning": [one.reasoning for one in samples],
        "text": csv,
    }
    expected = {}
    with torch.no_grad():
        for name, some in texts.items():
            cosines = []
            for example, text in zip(examples, some, strict=True):
                nodes, _ = aligner([example.graph])
                state, wanted = (
                    aligner.shared(nodes.mean(0)),
                    aligner.shared(torch.tensor(hash_embedder.embed([text])[0])),
                )
                cosines.append(float(state @ wanted / state.norm() / wanted.norm()))
            expected[f"cosine_{name}"] = sum(cosines) / 2
    assert cosines_of(aligner, samples, examples) == pytest.approx(expected, abs=1e-5)
    assert len({round(value, 4) for value in expected.values()}) == 3


def test_a_resumed_training_ends_with_the_weights_of_one_that_was_not_interrupted(
    config: AlignerTrainingConfig, hash_embedder: Any, tmp_path: Path
) -> None:
    config = replace(config, steps=6, validate_every=2)
    train(config, hash_embedder)
    stopped = replace(config, out=tmp_path / "stopped", save_every=1, minutes=1e-9)
    for _ in range(6):
        _, result = train(stopped, hash_embedder)
    assert result.stopped == "steps"
    whole, parts = (
        load_file(folder / "aligner.safetensors")
        for folder in (config.out, stopped.out)
    )
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_a_training_without_the_part_train_says_so(
    config: AlignerTrainingConfig, hash_embedder: Any
) -> None:
    write_samples(config.samples, [sample(1, "dev")])
    with pytest.raises(SettingsError, match="no samples of the part 'train'"):
        train(config, hash_embedder)


def test_answers_are_kept_where_they_are_an_end_of_a_fact_that_is_left() -> None:
    samples = [sample(1, "dev"), sample(2, "dev")]
    assert measure_kept(samples, [[0], [1, 2]]) == Kept(answers=0.5, facts=1.5)
    assert measure_kept([], []) == Kept(0.0, 0.0)


def test_every_option_is_a_flag() -> None:
    config = config_from(
        AlignerTrainingConfig,
        None,
        ["--samples", "s.jsonl", "--out", "o", "--no-likeness"],
    )
    assert (config.likeness, config.samples, config.encoder) == (
        False,
        Path("s.jsonl"),
        "graph-transformer",
    )
