"""The study of the aligner: a training for each seed, and what each order of facts keeps."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch_geometric")
pytest.importorskip("scipy")
pytest.importorskip("pcst_fast")

from lab.aligner_study import AlignerStudyConfig, study
from ras_agent.train.aligner.samples import AlignerSample, write_samples


def _sample(number: int, part: Any) -> AlignerSample:
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
    )


@pytest.mark.slow("trainings")
def test_the_study_trains_for_each_seed_and_measures_the_last_part(
    hash_embedder: Any, tmp_path: Path
) -> None:
    parts = ("train", "train", "dev", "test")
    write_samples(
        tmp_path / "samples.jsonl",
        [_sample(number, parts[number % 4]) for number in range(16)],
    )
    config = AlignerStudyConfig(
        samples=tmp_path / "samples.jsonl", out=tmp_path / "out", layers=1, heads=2, projected=16, batch=4,
        steps=4, validate_every=2, n_seeds=(1, 2), n_facts=(1, 3), seeds=(0, 1),
    )  # fmt: skip
    figures = study(config, hash_embedder)
    assert figures["questions"] == {"train": 8, "dev": 4, "test": 4}
    assert list(figures["by_step"]) == ["0", "2", "4"]
    # the reasoning names the person in the middle, who has both facts of the path
    assert figures["by_seeds"]["cosine with the reasoning"]["1"] == {
        "answers": [1.0, 0.0],
        "facts": [2.0, 0.0],
    }
    assert figures["by_facts"]["aligner"]["3"]["answers"] == [1.0, 0.0]
    assert set(figures["pcst"]) == {"paper's WebQSP", "K = 10"}
    text = (config.out / "tables.md").read_text()
    assert "| cosine with the reasoning | 100.0 (2) |" in text
    assert study(config, hash_embedder) == figures
