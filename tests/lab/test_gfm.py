"""The GFM benchmark's graphs, and that it runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from lab import gfm as bench_gfm
from lab.gfm_cases import GFMCase, real_case, zipf_case
from lab.gfm_systems import SYSTEMS, OnDevice, measure
from ras_agent.errors import SettingsError
from ras_agent.eval.bench.gfm import widened
from ras_agent.records import Triple
from ras_agent.tools.gfm.graph import GFMGraph
from ras_agent.tools.gfm.network import GraphTensors, plain_scores
from ras_agent.tools.gfm.weights import GFMConfig
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.passage_facts import PassageFacts
from ras_agent.tools.retrieve.gfm import weights_of

pytestmark = pytest.mark.slow("benchmarks")


def test_degrees_of_the_synthetic_graph_follow_zipfs_law() -> None:
    case = zipf_case(2000, 500, 20_000, 3, 2)
    degrees = np.sort(np.bincount(case["edges"][:, [0, 2]].ravel(), minlength=2000))[::-1]
    slope = np.polyfit(np.log(np.arange(1, 501)), np.log(degrees[:500]), 1)[0]
    assert slope == pytest.approx(-0.8, abs=0.05)
    assert np.diff(case["indptr"])[-2:].tolist() == [1, 1]
    assert all(degrees_of >= np.quantile(degrees, 0.99) for degrees_of in _degrees(case)[-2:])


def _degrees(case: GFMCase) -> np.ndarray:
    return np.bincount(case["edges"][:, [0, 2]].ravel(), minlength=2000)[case["starts"]]


def test_a_widened_network_computes_the_same() -> None:
    import torch

    rng = np.random.default_rng(0)
    config, weights = weights_of()
    facts = np.column_stack((rng.integers(0, 30, 60), rng.integers(0, 4, 60), rng.integers(0, 30, 60)))
    vectors = rng.normal(size=(4, config.text_width)).astype(np.float32) / 20
    graph = GraphTensors.of(GFMGraph.from_edges(30, facts, vectors, -vectors, config.message_target))
    asked, start = torch.from_numpy(vectors[:1]), torch.zeros(1, 30)
    start[0, 3] = 1
    wide = widened(weights, 3)
    assert {name: tuple(tensor.shape) for name, tensor in wide.items()} == replace(config, width=96).shapes()
    expected, found = (plain_scores(one, graph, asked, start) for one in (weights, wide))
    assert float(expected.max() - expected.min()) > 1
    assert float((expected - found).abs().max()) < 1e-4


def test_a_real_case_has_the_texts_own_vectors_and_the_linkers_starts(tmp_path: Path, hash_embedder: Any) -> None:
    facts = (Triple("Alexander Graham Bell", "was born in", "Edinburgh"),)
    kg = KGIndex.in_memory([PassageFacts(one, facts) for one in ("a", "b")], hash_embedder)
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question": "Where was Alexander Graham Bell born?"}\n')
    case = real_case(kg, questions, 5, 1, True)
    assert case["starts"].tolist()[0] == kg.entity_id("Alexander Graham Bell")
    assert case["weights"].tolist() == [0.5, 0.5]  # two documents name each
    assert case["questions"].shape == (2, 64)
    assert np.array_equal(case["questions"][1], hash_embedder.embed(["Where was Alexander Graham Bell born?"])[0])
    assert np.array_equal(case["vectors"], kg.relation_vectors)
    assert "questions" not in real_case(kg, questions, 5, 1, False)
    with pytest.raises(SettingsError, match="--embedder minilm"):
        real_case(KGIndex.in_memory([PassageFacts("a", facts)]), questions, 5, 1, True)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small synthetic graph and network, measured in this process."""
    config = GFMConfig(text_width=24, width=16, layers=3)

    def here(system: str, folder: str, on: OnDevice) -> dict[str, Any]:
        return measure(system, Path(folder), config, on)

    monkeypatch.setattr(bench_gfm, "_in_process", here)
    for name, value in (("ENTITIES", 400), ("RELATIONS", 30), ("FACTS", 900)):
        monkeypatch.setattr(bench_gfm, name, value)


@pytest.mark.usefixtures("small")
def test_it_prints_a_table_and_writes_a_record_a_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench_gfm.main(
        ["--zipf", "--count", "40", "--connected", "2", "--slow", "1", "--json", str(tmp_path / "out.jsonl")]
    )
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [record["system"] for record in records] == [one for one in SYSTEMS if one != "autograd"]
    assert all(record["difference"] < 1e-4 for record in records[:2])
    assert all(record["probability"] < 1e-3 for record in records[:4])
    assert records[2]["cached_mb"] > records[3]["cached_mb"] > 0
    plain, with_cache, fast = records[:3]
    assert fast["cpu_ratio"] == plain["cpu_ms"] / fast["cpu_ms"]
    assert fast["cached_cpu_ratio"] == with_cache["cpu_ms"] / fast["cpu_ms"]
    assert fast["connected_ratio"] == plain["connected_ms"] / fast["connected_ms"]
    assert [record["answered"] for record in records] == [2, 2, 6, 6, 6]
    assert len(capsys.readouterr().out.splitlines()) == 8


@pytest.mark.usefixtures("small")
def test_systems_of_a_device_answer_in_batches_and_show_what_bounds_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = "plain;device;device, float32;device, half"
    options = ["--zipf", "--count", "40", "--slow", "1", "--systems", systems, "--device", "cpu", "--batch", "3"]
    bench_gfm.main([*options, "--json", str(tmp_path / "out.jsonl")])
    plain, *records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [record["answered"] for record in (plain, *records)] == [2, 6, 6, 6]
    assert [record["difference"] < 1e-4 for record in records] == [True, True, False]
    assert records[2]["difference"] < 0.01 * records[2]["range"]
    # 400 entities, 2 layers after the first of two products of 16 by 16, and one of 16 by 32
    assert records[0]["gflop"] == pytest.approx(400 * (2 * 4 + 4) * 256 / 1e9)
    # messages read a state each and a third of a relation state; a layer reads and writes states, the score reads them
    gathered = 1800 * 16 * 4 * (1 + 1 / 3)
    assert records[0]["moved_mb"] == pytest.approx((2 * (gathered + 2 * 400 * 64) + 400 * 132) / 1e6)
    assert records[2]["moved_mb"] < 0.52 * records[0]["moved_mb"]
    shown = capsys.readouterr().out
    assert shown.count("cpu, 3 at once, float32 products, torch's own operations") == 2
    assert shown.count("cpu, 3 at once, bfloat16 products, torch's own operations") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--systems", "device"], "need --device"),
        (["--systems", "quick"], "unknown 'quick'"),
        (["--batch", "0"], "0 is less than 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        bench_gfm.main(["--zipf", *arguments])
    assert message in capsys.readouterr().err
