"""Building over the bundled sample: killed and resumed, deleted and added again, it is the same graph."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lab.kg import main
from ras_agent.app.sample import sample_passages
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.structure.build_graph import build_graph

pytestmark = pytest.mark.slow("benchmarks")

SAME = {"entities": 0, "relations": 0, "documents": 0, "facts": 0, "mentions": 0, "equivalences": 0}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(asdict(passage)) + "\n" for passage in sample_passages()))
    return path


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_build_and_a_changed_one_end_as_the_unbroken_one(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = len(sample_passages())
    sizes = ["--sizes", "40", str(count), "--embedder", "", "--work", str(tmp_path / "work")]
    main([str(corpus), *sizes, "--kills", "reading:0.3", "reading:0.7", "writing:0", "--delete", "12"])
    small, large, killed, deleted = map(json.loads, capsys.readouterr().out.splitlines())
    assert (small["built"]["passages"], large["built"]["passages"]) == (40, count)
    assert large["built"]["facts"] > 2 * small["built"]["facts"] / 40 * 20
    first, second, third, last = killed["killed"]["calls of the extractor so far"]
    assert 0 < first < second < third == last == killed["killed"]["passages read"] == count
    assert killed["killed"]["passages read twice"] == 0
    assert deleted["deleted"]["entities gone in between"] > 12
    assert deleted["deleted"]["their names searched for in all files"] > 5
    assert deleted["deleted"]["of these found"] == 0
    for told in (killed, deleted):
        assert told["compared"]["same fingerprint"]
        assert told["compared"]["differences"] == SAME
        assert told["compared"]["largest difference of PPR scores"] < 1e-6


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_by_default_it_is_killed_where_it_passes(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(corpus), "--sizes", "20", "--embedder", "", "--delete", "0", "--work", str(tmp_path / "work")])
    _, killed = map(json.loads, capsys.readouterr().out.splitlines())
    assert killed["killed"]["at"] == ["reading:0.33", "reading:0.67", "writing:0"]


def test_an_index_with_a_graph_is_looked_at_and_not_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PassageIndex.create(tmp_path / "i").add([replace(one, document_id=one.id) for one in sample_passages()[:30]])
    before = build_graph(tmp_path / "i").graph
    main(["--index", str(tmp_path / "i"), "--kills", "--delete", "5", "--work", str(tmp_path / "work")])
    (told,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (told["deleted"]["documents"], told["compared"]["differences"]) == (5, SAME)
    assert KGIndex.open(tmp_path / "i").manifest == before.manifest


def test_an_index_that_would_be_overwritten_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "changed.index"
    PassageIndex.create(folder).add(sample_passages()[:5])
    build_graph(folder)
    with pytest.raises(SystemExit):
        main(["--index", str(folder), "--work", str(tmp_path)])
    assert "give another folder to work in" in capsys.readouterr().err
    assert len(PassageIndex.open(folder)) == 5


def test_a_build_that_ends_before_its_kill_is_reported(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not killed at embedding"):
        main(
            [
                str(corpus),
                "--sizes",
                "5",
                "--embedder",
                "",
                "--kills",
                "embedding:0.5",
                "--work",
                str(tmp_path / "work"),
            ]
        )
