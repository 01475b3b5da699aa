"""HotpotQA, 2WikiMultihopQA and MuSiQue in their official formats. The sentences are made up for the test."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.metrics.registry import Outcome
from ras_agent.eval.question import Question

HOTPOT: dict[str, Any] = {
    "_id": "h1",
    "answer": "Ardle",
    "question": "Which river runs past the mill where Tam Orr worked?",
    "supporting_facts": [["Tam Orr", 1], ["Fell Mill", 0], ["Tam Orr", 0]],
    "context": [
        ["Tam Orr", ["Tam Orr was a miller.", " He worked at Fell Mill."]],
        ["Fell Mill", ["Fell Mill stands on the Ardle."]],
        ["Far Mill", ["Far Mill stands on the Isla."]],
    ],
    "type": "bridge",
    "level": "hard",
}
TWO_WIKI: dict[str, Any] = {
    "_id": "w1",
    "type": "comparison",
    "question": "Which mill is older, Fell Mill or Far Mill?",
    "context": [
        ["Fell Mill", ["Built in 1710."]],
        ["Far Mill", ["Built in 1820.", "It still turns."]],
    ],
    "supporting_facts": [["Fell Mill", 0], ["Far Mill", 0]],
    "evidences": [
        ["Fell Mill", "inception", "1710"],
        ["Far Mill", "inception", "1820"],
    ],
    "answer": "Fell Mill",
}
MUSIQUE: dict[str, Any] = {
    "id": "2hop__11_22",
    "paragraphs": [
        {
            "idx": 0,
            "title": "Fell Mill",
            "paragraph_text": "Tam Orr owned Fell Mill.",
            "is_supporting": True,
        },
        {
            "idx": 1,
            "title": "Fell Mill",
            "paragraph_text": "Fell Mill has two wheels.",
            "is_supporting": False,
        },
        {
            "idx": 2,
            "title": "Tam Orr",
            "paragraph_text": "Orr was born in Blair.",
            "is_supporting": True,
        },
    ],
    "question": "Where was the owner of Fell Mill born?",
    "question_decomposition": [
        {
            "id": 11,
            "question": "Fell Mill >> owned by",
            "answer": "Tam Orr",
            "paragraph_support_idx": 0,
        },
        {
            "id": 22,
            "question": "Where was #1 born?",
            "answer": "Blair",
            "paragraph_support_idx": 2,
        },
    ],
    "answer": "Blair",
    "answer_aliases": ["Blairgowrie", "Blair"],
    "answerable": True,
}


def _write(path: Path, *records: Any) -> Path:
    lines = path.suffix == ".jsonl"
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in records)
        if lines
        else json.dumps(records),
        "utf-8",
    )
    return path


def test_hotpotqa_names_gold_passages_by_title(tmp_path: Path) -> None:
    (question,) = benchmark("hotpotqa").load(_write(tmp_path / "hotpot.json", HOTPOT))
    assert (question.id, question.answers, question.type, question.hops) == (
        "h1",
        ("Ardle",),
        "bridge",
        2,
    )
    assert (question.supporting, question.by_title) == (("Tam Orr", "Fell Mill"), True)
    assert question.metadata["supporting_facts"] == [
        ["Tam Orr", 1],
        ["Fell Mill", 0],
        ["Tam Orr", 0],
    ]
    assert question.contexts[0].text == "Tam Orr was a miller. He worked at Fell Mill."


def test_hotpotqa_of_a_data_set_hub_has_columns(tmp_path: Path) -> None:
    columns = {
        **HOTPOT,
        "supporting_facts": {"title": ["Tam Orr", "Fell Mill"], "sent_id": [1, 0]},
        "context": {
            "title": ["Fell Mill"],
            "sentences": [["Fell Mill stands on the Ardle."]],
        },
    }
    (question,) = benchmark("hotpotqa").load(_write(tmp_path / "hub.jsonl", columns))
    assert question.supporting == ("Tam Orr", "Fell Mill")
    assert [passage.title for passage in question.contexts] == ["Fell Mill"]


def test_a_test_set_has_neither_answers_nor_gold(tmp_path: Path) -> None:
    blind = {key: HOTPOT[key] for key in ("_id", "question", "context")}
    (question,) = benchmark("hotpotqa").load(_write(tmp_path / "test.json", blind))
    assert (question.answers, question.supporting, question.hops) == ((), (), None)


def test_two_wiki_keeps_its_evidence_triples(tmp_path: Path) -> None:
    (question,) = benchmark("2wikimultihopqa").load(
        _write(tmp_path / "2wiki.json", TWO_WIKI)
    )
    assert question.metadata["triples"] == [
        ["Fell Mill", "inception", "1710"],
        ["Far Mill", "inception", "1820"],
    ]
    assert question.contexts[1].text == "Built in 1820. It still turns."


def test_two_wiki_is_scored_by_the_f1_of_ras_beside_that_of_hotpotqa() -> None:
    asked = Question("q", "Are both mills old?", ("yes",))
    scores = benchmark("2wikimultihopqa").score(asked, Outcome("yes, both"))
    assert (scores["f1"], scores["squad_f1"]) == (0.0, pytest.approx(2 / 3))


def test_musique_tells_paragraphs_of_one_title_apart(tmp_path: Path) -> None:
    (question,) = benchmark("musique").load(_write(tmp_path / "musique.jsonl", MUSIQUE))
    assert question.answers == ("Blair", "Blairgowrie")
    assert question.supporting == (question.contexts[0].id, question.contexts[2].id)
    assert len({passage.id for passage in question.contexts}) == 3
    assert (question.by_title, question.type, question.hops) == (False, "2hop", 2)
    assert question.decomposition[1] == {
        "question": "Where was #1 born?",
        "answer": "Blair",
        "supporting_id": question.contexts[2].id,
    }


def test_musiques_unanswerable_twin_has_an_id_of_its_own(tmp_path: Path) -> None:
    twin = {**MUSIQUE, "answerable": False, "paragraphs": MUSIQUE["paragraphs"][:2]}
    questions = benchmark("musique").load(
        _write(tmp_path / "full.jsonl", MUSIQUE, twin)
    )
    assert [
        (question.id, question.metadata["answerable"]) for question in questions
    ] == [
        ("2hop__11_22", True),
        ("2hop__11_22#2", False),
    ]


def test_the_corpus_of_a_closed_set_holds_each_paragraph_once(tmp_path: Path) -> None:
    hotpotqa = benchmark("hotpotqa")
    file = _write(tmp_path / "hotpot.json", HOTPOT, {**HOTPOT, "_id": "h2"})
    assert [passage.title for passage in hotpotqa.corpus(file)] == [
        "Tam Orr",
        "Fell Mill",
        "Far Mill",
    ]
    assert hotpotqa.corpus(hotpotqa.load(file)) == hotpotqa.corpus(file)


def test_the_corpus_may_be_a_file_of_passages(tmp_path: Path) -> None:
    file = _write(
        tmp_path / "corpus.jsonl",
        {"id": "p1", "title": "Fell Mill", "text": "Built in 1710."},
    )
    assert [passage.id for passage in benchmark("hotpotqa").corpus(file)] == ["p1"]


def test_questions_without_passages_need_a_corpus(tmp_path: Path) -> None:
    file = _write(tmp_path / "q.jsonl", {"id": 1, "question": "?", "answers": ["a"]})
    with pytest.raises(
        IngestError, match="come without passages: give a file of passages, --corpus"
    ):
        benchmark("hotpotqa").corpus(file)


@pytest.mark.parametrize(
    ("name", "record", "message"),
    [
        ("hotpotqa", {**HOTPOT, "question": None}, "record 2: no key 'question'"),
        (
            "hotpotqa",
            {**HOTPOT, "context": [["Tam Orr"]]},
            r"record 2: 'context' should hold \[title, sentences\] pairs",
        ),
        (
            "hotpotqa",
            {**HOTPOT, "context": [["T", "x"]]},
            "record 2: context 'T' should have a list of sentences",
        ),
        (
            "2wikimultihopqa",
            {**TWO_WIKI, "evidences": [["a", "b"]]},
            "record 2: 'evidences' should hold",
        ),
        (
            "musique",
            {**MUSIQUE, "paragraphs": [{"title": "x"}]},
            "record 2, paragraphs 1: no key 'paragraph_text'",
        ),
    ],
)
def test_a_malformed_record_is_named(
    tmp_path: Path, name: str, record: Any, message: str
) -> None:
    good = {"hotpotqa": HOTPOT, "2wikimultihopqa": TWO_WIKI, "musique": MUSIQUE}[name]
    with pytest.raises(IngestError, match=message):
        benchmark(name).load(_write(tmp_path / "q.json", good, record))


def test_gfm_rag_s_questions_name_their_documents_and_where_they_start(
    tmp_path: Path,
) -> None:
    path = tmp_path / "test.json"
    asked = {"question": "Where?", "answer": "Ohio", "answer_aliases": ["Ohio", "OH"]}
    nodes = {"entity": ["ohio state"], "document": ["Knowlton Hall"]}
    path.write_text(
        json.dumps(
            [
                {**asked, "id": "a", "supporting_documents": ["Knowlton Hall", "Ohio"]},
                {
                    **asked,
                    "id": "b",
                    "start_nodes": nodes,
                    "target_nodes": {"document": ["Ohio"]},
                },
                {"id": "c", "question": "Who?"},
            ]
        )
    )
    first, second, third = benchmark("gfm-rag").load(path)
    assert (first.answers, first.supporting, first.by_title) == (
        ("Ohio", "OH"),
        ("Knowlton Hall", "Ohio"),
        False,
    )
    assert (second.supporting, second.metadata["start_nodes"]) == (("Ohio",), nodes)
    assert (third.answers, third.supporting) == ((), ())
