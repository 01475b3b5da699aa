"""The table of retrievers over one graph."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.graph_table import Gold, gold_of, main, recalls
from ras_agent.errors import IngestError
from ras_agent.records import Hit, Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.extract import read_each
from ras_agent.tools.kg.writer import open_writer
from ras_agent.tools.offline.roles import offline_extractor
from tests.messages import says

HITS = [Hit(Passage(f"p{n}", "x", f"T{n}"), 1.0) for n in range(5)]


def test_recall_counts_ids_or_titles() -> None:
    assert recalls(HITS, Gold("q", frozenset({"p0", "p4"}), True)) == (0.5, 1.0, 1.0)
    assert recalls(HITS, Gold("q", frozenset({"T1", "T9"}), False)) == (0.5, 0.5, 0.0)
    assert recalls([], Gold("q", frozenset({"T1"}), False)) == (0.0, 0.0, 0.0)


def test_ids_count_before_titles() -> None:
    row = {"question": "q", "supporting_ids": ["a"], "supporting_titles": ["T"]}
    assert gold_of(row) == Gold("q", frozenset({"a"}), True)


@pytest.mark.parametrize("row", [{}, {"question": "q"}, {"question": "q", "supporting_titles": []}])
def test_a_question_without_support_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(IngestError, match=says("not a question", "supporting_ids", "supporting_titles")):
        gold_of(row)


@pytest.fixture
def files(tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """An index with a graph, and three questions."""
    index = PassageIndex.create(tmp_path / "i", hash_embedder)
    index.add([Passage("bell", "Alexander Graham Bell was born in Edinburgh.", "Bell"), Passage("x", "Nothing.", "X")])
    with open_writer(tmp_path / "i", hash_embedder) as writer:
        writer.read(index.passages, read_each(offline_extractor()), "offline", whole=True)
        writer.write()
    rows = [{"question": "Where was Alexander Graham Bell born?", "supporting_ids": ["bell"]}] * 3
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setattr("ras_agent.tools.index.store.remembered_embedder", lambda manifest, index: hash_embedder)
    monkeypatch.setattr("ras_agent.tools.kg.index.resolve_embedder", lambda spec: hash_embedder)
    return str(tmp_path / "i"), str(tmp_path / "q.jsonl")


def test_it_prints_a_table_and_paired_differences(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.graph_table.PAIRS", (("ppr", "bm25"),))
    main([*files, "--retrievers", "bm25,ppr", "--first", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 questions, 2 passages")
    assert lines[2].split()[:4] == ["bm25", "100.0", "100.0", "100.0"]
    assert lines[3].split()[:4] == ["ppr", "100.0", "100.0", "100.0"]
    assert lines[4].startswith("R@2  ppr - bm25: +0.0 (+0.0 to +0.0, p ")


def test_other_seeds_are_shown_with_their_mean_and_spread(
    files: tuple[str, str], hash_embedder: Any, gfm_folder: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    folder = str(gfm_folder(hash_embedder.dimension))
    main([*files, "--retrievers", "gfm,gfm+dense,graph", "--weights", folder, "--seeds", f"{folder},{folder}"])
    shown = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    first = {line[0]: line[1].split()[1:] for line in shown if len(line) > 1 and line[1].startswith(" 1")}
    assert set(first) == {"gfm", "gfm+dense", "graph"}
    for name, means in first.items():
        seeds = [line[1].split()[1:] for line in shown if line[0] == name and line[1].strip()[0].isdigit()]
        assert seeds == [means] * 3
        told = next(line[1] for line in shown if line[0] == name and "spread" not in line[1] and "mean" in line[1])
        assert told.endswith(f"{means[0]} ± 0.0  {means[1]:>5} ± 0.0  {means[2]:>5} ± 0.0")


def test_seeds_keep_their_numbers_where_the_first_was_not_asked_for_all(
    files: tuple[str, str], hash_embedder: Any, gfm_folder: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    folder = str(gfm_folder(hash_embedder.dimension))
    main([*files, "--retrievers", "gfm", "--weights", folder, "--seeds", folder])
    numbered = re.findall(r"^(\S+), (\d)", capsys.readouterr().out, re.MULTILINE)
    assert numbered == [("gfm", "1"), ("gfm", "2"), ("gfm+dense", "2"), ("graph", "2")]


def test_questions_that_the_index_cannot_answer_are_counted(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.jsonl").write_text(
        "\n".join(
            json.dumps({"question": "Where was Bell born?", "supporting_titles": titles})
            for titles in (["Bell"], ["Bell", "Elsewhere"])
        )
    )
    main([*files, "--retrievers", "bm25"])
    assert "1 questions are supported by passages that the index does not hold" in capsys.readouterr().out
