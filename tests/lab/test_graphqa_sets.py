"""Made sets in the forms of SceneGraphs and WebQSP: the evidence of their answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.graphqa_sets import MadeSets, make
from ras_agent.eval.benchmarks import benchmark

COLOURS = {"red", "blue", "green", "yellow"}
JOBS = {"painter", "singer", "judge", "pilot"}


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("scenegraphs", "scenes/made.csv", COLOURS),
        ("graphqa-webqsp", "webqsp/train.jsonl", JOBS),
    ],
)
def test_the_graph_of_a_closed_question_names_one_answer(
    tmp_path: Path, name: str, file: str, words: set[str]
) -> None:
    make(MadeSets(out=tmp_path, scenes=12, people=12, closed=True))
    for question in benchmark(name).load(tmp_path / file):
        text = " ".join(question.graph.nodes).replace(";", "").split()
        assert words & set(text) == set(question.answers)


def test_a_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        make(MadeSets(out=tmp_path / folder, scenes=3, people=5, seed=7))
    files = (
        "scenes/made.csv",
        "scenes/sceneGraphs.json",
        "webqsp/train.jsonl",
        "webqsp/test.jsonl",
    )
    one, other = (
        [(tmp_path / folder / file).read_bytes() for file in files]
        for folder in ("one", "other")
    )
    assert one == other
