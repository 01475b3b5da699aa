"""The table of `make bench`: bars, earlier runs, regressions; and that every part of it runs, small."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError, SettingsError
from ras_agent.eval.bench.__main__ import PARTS, main
from ras_agent.eval.bench.rows import BenchRow, append_rows, bench_table, earlier_ratios

SEARCH = BenchRow("bm25", "ms", 2.0, "a peer", 4.0, at_most=0.6)
ANSWERS = BenchRow("evaluation", "questions/s", 40.0, "a loop", 2.0, at_least=25)


def test_a_cost_is_held_to_at_most_and_a_rate_to_at_least() -> None:
    assert (SEARCH.ratio, SEARCH.bar, SEARCH.met) == (0.5, "at most 0.6", True)
    assert (ANSWERS.ratio, ANSWERS.bar, ANSWERS.met) == (20.0, "at least 25", False)


def test_a_cost_gets_worse_upwards_and_a_rate_downwards() -> None:
    assert SEARCH.worsening(0.4) == pytest.approx(0.25)
    assert ANSWERS.worsening(16.0) == pytest.approx(-0.2)


def test_rows_are_appended_with_the_commit_and_read_back_as_the_median_of_the_last_five(
    tmp_path: Path,
) -> None:
    path = tmp_path / "build" / "bench.jsonl"
    for ours in (90.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        append_rows(
            path,
            [BenchRow("bm25", "ms", ours, "a peer", 1.0, at_most=2)],
            "abc+",
            "2026-01-01",
        )
    first = json.loads(path.read_text().splitlines()[0])
    assert (first["name"], first["ratio"], first["met"], first["commit"]) == (
        "bm25",
        90.0,
        False,
        "abc+",
    )
    assert earlier_ratios(path) == {"bm25": 3.0}


def test_lines_of_other_programs_are_skipped_and_no_file_is_no_earlier_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "bench.jsonl").write_text('{"benchmark": "overhead", "ratio": 2}\n')
    assert (
        earlier_ratios(tmp_path / "bench.jsonl")
        == {}
        == earlier_ratios(tmp_path / "none.jsonl")
    )


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "bench.jsonl").write_text('{"benchmark": "x"}\n{"half\n')
    with pytest.raises(IngestError, match=r"bench\.jsonl line 2: "):
        earlier_ratios(tmp_path / "bench.jsonl")


def test_a_ratio_a_fifth_worse_than_before_is_marked_and_said() -> None:
    table = bench_table(
        [SEARCH, ANSWERS], {"bm25": 0.4, "evaluation": 21.0}
    ).splitlines()
    assert (
        table[2] == "| bm25 | ms | 2 | a peer | 4 | 0.5 | at most 0.6 | 0.4 | WORSE |"
    )
    assert table[3].endswith("| at least 25 | 21 | misses its bar |")
    assert table[5:] == [
        "bm25: 0.5 times a peer is 25% worse than the 0.4 of the last runs.",
        "evaluation: 20 times a loop misses the bar, at least 25.",
    ]


def test_the_table_says_that_all_is_well() -> None:
    assert bench_table([SEARCH], {"bm25": 0.45}).endswith(
        "Every bar is met, and no row is a fifth worse than before."
    )


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"--parts: unknown 'speed'; known: start, overhead"
    ):
        main(["--parts", "speed"])


def test_a_part_without_its_server_is_left_out_and_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAS_AGENT_BENCH_POSTGRES", raising=False)
    main(["--parts", "postgres"])
    captured = capsys.readouterr()
    said = "postgres is left out: no server to measure: set RAS_AGENT_BENCH_POSTGRES"
    assert said in captured.err
    assert captured.out.splitlines()[3].startswith(said)


@pytest.mark.parametrize(
    ("part", "peer", "said"),
    [
        (
            "retrieval",
            "bm25s",
            "retrieval is left out: peers of this benchmark are not installed: pip install bm25s",
        ),
        (
            "dense",
            "faiss",
            "dense is left out: FAISS, the peer of this benchmark, is not installed: pip install faiss-cpu",
        ),
        (
            "walk",
            "rustworkx",
            "walk is left out: the benchmark's peer needs an extra: pip install 'ras-agent[graph]'",
        ),
        (
            "gfm",
            "numba",
            "gfm is left out: the GFM network needs an extra: pip install 'ras-agent[gnn]'",
        ),
    ],
)
def test_a_part_without_its_peer_is_left_out_and_said_under_the_table(
    part: str,
    peer: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, peer, None)
    main(["--parts", part])
    assert capsys.readouterr().out.splitlines()[3:] == [said]


SMALL: dict[str, tuple[int, dict[str, Any]]] = {
    "start": (3, {"runs": 1}),
    "overhead": (3, {"runs": 2}),
    "retrieval": (3, {"sizes": (300,), "queries": 3}),
    "dense": (1, {"sizes": (300,), "queries": 3}),
    "walk": (1, {"entities": 200, "facts": 300}),
    "gfm": (2, {"entities": 200, "facts": 300}),
    "postgres": (1, {"size": 200, "queries": 3}),
    "graph": (3, {"runs": 2, "size": 20}),
    "neighbours": (2, {"runs": 1}),
    "throughput": (1, {"rounds": 1, "at_least": {4: 2.0}}),
}


def test_every_part_is_tried_small() -> None:
    assert sorted(SMALL) == sorted(PARTS)


@pytest.mark.slow("benchmarks")
@pytest.mark.parametrize("part", SMALL)
def test_a_part_gives_rows_of_their_own_names_with_one_bar_each(
    part: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rustworkx", reason="the peer, extra graph")
    pytest.importorskip("torch", reason="extra gnn")
    module = import_module(f"ras_agent.eval.bench.{part}")
    if part == "postgres":
        monkeypatch.setenv(module.SERVER, request.getfixturevalue("postgres"))
    count, sizes = SMALL[part]
    rows: list[BenchRow] = list(module.bench_rows(**sizes))
    assert len({row.name for row in rows}) == len(rows) == count
    for row in rows:
        assert row.ours > 0
        assert row.theirs > 0
        assert (row.at_most is None) != (row.at_least is None)
