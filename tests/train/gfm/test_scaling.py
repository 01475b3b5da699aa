"""The scaling study: shares of the questions, points that are scored once, and their table."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from ras_agent.errors import IngestError, SettingsError
from ras_agent.eval.bench.graph_table import Gold
from ras_agent.records import Passage, Source, Triple
from ras_agent.tools.gfm.cpu import FastGFM
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.disk import write_generation
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.train.gfm.batches import Asked
from ras_agent.train.gfm.linked import Question, write_linked
from ras_agent.train.gfm.scaling import Judge, grid, main, study, table
from ras_agent.train.gfm.sets import share_of
from ras_agent.train.gfm.train import Config

PEOPLE = 8


@pytest.fixture
def graph(hash_embedder: Any) -> KGIndex:
    """Person n was born in town n."""
    people = [(f"p{n}", Triple(f"Person {n}", "was born in", f"Town {n}", (Source(f"p{n}"),))) for n in range(PEOPLE)]
    return KGIndex.in_memory([PassageFacts(name, (triple,)) for name, triple in people], hash_embedder)


@pytest.fixture
def base(tmp_path: Path, graph: KGIndex, hash_embedder: Any) -> Config:
    folder = tmp_path / "people"
    (folder / "graph").mkdir(parents=True)
    write_generation(folder / "graph", graph.arrays, graph.manifest)
    write_linked(folder, graph, [Question(f"Where was Person {n} born?", (f"p{n}",)) for n in range(PEOPLE)])
    return Config(
        (folder,), tmp_path / "study", text_width=hash_embedder.dimension, layers=2, batch=2, documents=4, steps=2
    )


@pytest.fixture
def judge(tmp_path: Path, graph: KGIndex, hash_embedder: Any) -> Judge:
    index = PassageIndex.create(tmp_path / "index", hash_embedder)
    index.add([Passage(f"p{n}", f"Person {n} was born in Town {n}.", f"Person {n}") for n in range(PEOPLE)])
    golds = [Gold(f"Where was Person {n} born?", frozenset({f"p{n}"}), True) for n in range(3)]
    return Judge(index, graph, [*golds, Gold("Where was Person 4 born?", frozenset({"nowhere"}), True)])


def _numbered(count: int) -> list[Asked]:
    numbers, none = np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int64)
    return [Asked(numbers, none, numbers, np.array([n])) for n in range(count)]


def test_a_smaller_share_of_the_questions_is_part_of_a_larger_one() -> None:
    shares = [[int(one.supporting[0]) for one in share_of(_numbered(10), share)] for share in (0.01, 0.25, 0.5, 1.0)]
    assert [len(share) for share in shares] == [1, 3, 5, 10]
    assert all(set(small) < set(large) for small, large in pairwise(shares))
    assert shares[-1] == list(range(10))


def test_a_network_is_scored_on_all_questions(
    judge: Judge, gfm_folder: Callable[[int], Path], hash_embedder: Any
) -> None:
    # the weights pass on what is heard; three of four questions name their passage's person, no passage fits the fourth
    scores = judge.scores(gfm_folder(hash_embedder.dimension))
    assert scores == {"R@2": 75.0, "R@5": 75.0, "all@5": 75.0, "MRR": 75.0}


def test_a_network_that_was_scored_is_let_go(
    judge: Judge, gfm_folder: Callable[[int], Path], hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def network(*given: Any) -> FastGFM:
        made.append(weakref.ref(one := FastGFM(*given)))
        return one

    monkeypatch.setattr("ras_agent.train.gfm.scaling.FastGFM", network)
    gc.disable()  # a study is not to wait for the collector
    try:
        judge.scores(gfm_folder(hash_embedder.dimension))
        assert [one() for one in made] == [None]
    finally:
        gc.enable()


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        share_of(_numbered(3), share)


def test_points_that_are_there_are_skipped(base: Config, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    configs = list(grid(base, [4], [0.5, 1.0]))
    first = study(configs, judge, base.out, "people")
    assert [point["questions"] for point in first] == [4, 8]
    trained: list[Config] = []
    monkeypatch.setattr("ras_agent.train.gfm.scaling.train", trained.append)
    assert study(configs, judge, base.out, "people") == first
    assert not trained
    assert len((base.out / "points.jsonl").read_text().splitlines()) == 2


def test_a_point_of_other_settings_or_cut_short_is_made_anew(base: Config, judge: Judge) -> None:
    file = base.out / "points.jsonl"
    [config] = grid(base, [4], [1.0])
    [point] = study([config], judge, base.out, "people")
    file.write_text(json.dumps(point)[:40])
    assert study([config], judge, base.out, "people") == [{**point, "score_seconds": pytest.approx(0, abs=60)}]
    [other] = grid(replace(base, steps=3), [4], [1.0])
    assert other.out != config.out
    assert study([other], judge, base.out, "people")[0]["steps"] == 3
    assert len(file.read_text().splitlines()) == 3  # the torn line, and one a point


def test_the_table_tells_parameters_shares_and_scores() -> None:
    scores = {"R@2": 69.0, "R@5": 89.04, "all@5": 82.0, "MRR": 81.26}
    point = {"width": 32, "parameters": 54401, "questions": 871, "share": 0.25, "completion": 0, "steps": 200}
    shown = table([{**point, **scores, "train_seconds": 40.4, "score_seconds": 9.6}]).splitlines()
    assert shown[0].startswith("| width | parameters | questions | completion | steps | R@2 |")
    assert shown[2] == "| 32 | 54,401 | 871 (25 %) | 0 | 200 | 69.0 | 89.0 | 82.0 | 81.3 | 40 | 10 |"


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        (["--first", "0"], SettingsError, "--first has to be at least 1, got 0"),
        (["--widths", "8,wide"], SettingsError, "--widths takes numbers, parted by commas, got '8,wide'"),
        (["--shares", ""], SettingsError, "--shares takes numbers, parted by commas, got ''"),
        ([], IngestError, r"asked\.jsonl line 2: not JSON: Unterminated string"),
        (["--first", "3"], IngestError, r"asked\.jsonl line 3: not a question with supporting_ids"),
    ],
)
def test_what_cannot_be_studied_is_told(tmp_path: Path, options: list[str], error: type[Exception], told: str) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text('{"question": "Who?", "supporting_ids": ["a"]}\n{"ques\n{}\n')
    common = ["--sets", "people", "--index", "index", "--questions", str(file), "--out", str(tmp_path / "out")]
    with pytest.raises(error, match=told):
        main([*common, *options])
