"""FanOutQA, MultiHop-RAG and GraphRAG-Bench: their records, and their scores without a judge."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.formats import load_passages
from ras_agent.eval.metrics import Outcome
from ras_agent.eval.question import Question

FANOUT = {
    "id": "f1",
    "question": "How high is each of the two mills' hills?",
    "answer": {"Fell Mill": 1210, "Far Mill": "the lowest"},
    "categories": ["Geography"],
    "decomposition": [
        {
            "question": "Which mills are there?",
            "answer": ["Fell Mill", "Far Mill"],
            "evidence": {"title": "Mills", "pageid": 1},
            "decomposition": [],
        },
        {
            "question": "How high are the hills?",
            "answer": None,
            "evidence": None,
            "decomposition": [
                {
                    "question": "How high is Fell Mill's hill?",
                    "answer": 1210,
                    "evidence": {"title": "Fell Mill"},
                    "decomposition": [],
                }
            ],
        },
    ],
}
NEWS: dict[str, Any] = {
    "query": "Which firm do both papers name?",
    "question_type": "inference_query",
    "answer": "Orr and Sons",
    "evidence_list": [
        {
            "title": "Mill sold",
            "fact": "Orr and Sons bought\nthe mill.",
            "source": "Post",
            "published_at": "2023-10-06",
        },
        {
            "title": "New wheel",
            "fact": "Orr and Sons built a wheel.",
            "source": "Herald",
            "author": None,
        },
    ],
}
NOTHING = {
    "query": "Who?",
    "question_type": "null_query",
    "answer": "Insufficient information.",
    "evidence_list": [],
}
MEDICAL = {
    "id": "Medical-1", "source": "Medical", "question": "What is it?", "answer": "It is a common cancer.",
    "question_type": "Fact Retrieval",
}  # fmt: skip


def _loaded(name: str, folder: Path, *records: Any) -> list[Question]:
    (folder / "q.json").write_text(json.dumps(records), "utf-8")
    return benchmark(name).load(folder / "q.json")


def _score(name: str, question: Question, outcome: Outcome) -> dict[str, float]:
    return benchmark(name).score(question, outcome)


# ---- FanOutQA


def test_fanoutqa_needs_the_pages_of_all_leaves_of_its_tree(tmp_path: Path) -> None:
    (question,) = _loaded("fanoutqa", tmp_path, FANOUT)
    assert (question.supporting, question.by_title, question.type) == (
        ("Mills", "Fell Mill"),
        True,
        "Geography",
    )
    assert question.decomposition == (
        {"question": "Which mills are there?", "answer": "Fell Mill\nFar Mill"},
        {"question": "How high is Fell Mill's hill?", "answer": "1210"},
    )
    assert question.answers == ("Fell Mill - 1210\nFar Mill - the lowest",)


@pytest.mark.parametrize(
    ("answer", "loose", "strict"),
    [
        ("Fell Mill is on 1,210 feet. Far Mill: The lowest!", 1.0, 1.0),
        ("Fell Mill has 1210 feet", 0.5, 0.0),
        ("Fell Mills and Far Mills", 0.5, 0.0),  # inflections count as the same word
        ("fellmill 12100", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_fanoutqa_counts_the_keys_and_values_that_an_answer_holds(
    tmp_path: Path, answer: str, loose: float, strict: float
) -> None:
    (question,) = _loaded("fanoutqa", tmp_path, FANOUT)
    scores = _score("fanoutqa", question, Outcome(answer))
    assert (scores["fanout_loose"], scores["fanout_strict"]) == (loose, strict)


def test_a_truth_value_of_fanoutqa_is_yes_or_no(tmp_path: Path) -> None:
    (question,) = _loaded(
        "fanoutqa", tmp_path, {**FANOUT, "answer": {"Fell Mill": True}}
    )
    assert (
        _score("fanoutqa", question, Outcome("Fell Mill: yes"))["fanout_strict"] == 1.0
    )


# ---- MultiHop-RAG


def test_multihop_rag_names_articles_by_title_and_brings_its_facts(
    tmp_path: Path,
) -> None:
    (question,) = _loaded("multihop-rag", tmp_path, NEWS)
    assert (question.id, question.answers, question.type) == (
        "1",
        ("Orr and Sons",),
        "inference_query",
    )
    assert (question.supporting, question.hops) == (("Mill sold", "New wheel"), 2)
    first, second = question.contexts
    assert (first.text, first.metadata) == (
        "Orr and Sons bought\nthe mill.",
        {"source": "Post", "published_at": "2023-10-06"},
    )
    assert second.metadata == {"source": "Herald"}


def test_multihop_rag_counts_facts_in_the_texts_whatever_their_spaces(
    tmp_path: Path,
) -> None:
    (question,) = _loaded("multihop-rag", tmp_path, NEWS)
    texts = (
        "Other.",
        "News: Orr and Sons bought the mill. More.",
        "More of it.",
        "Orr and Sons built a wheel.",
        "X.",
    )
    scores = _score(
        "multihop-rag", question, Outcome("", passages=tuple(map(_passage, texts)))
    )
    assert (scores["fact_hit@4"], scores["fact_hit@10"], scores["fact_mrr@10"]) == (
        1.0,
        1.0,
        0.5,
    )
    assert scores["fact_map@10"] == (1 / 2 + 1 / 4) / 2
    scores = _score(
        "multihop-rag",
        question,
        Outcome("", passages=tuple(map(_passage, ["x"] * 4 + [texts[1]]))),
    )
    assert (scores["fact_hit@4"], scores["fact_hit@10"]) == (0.0, 1.0)


def _passage(text: str) -> Passage:
    return Passage(text, text)


def test_multihop_rag_takes_a_word_in_common_for_right(tmp_path: Path) -> None:
    (question,) = _loaded("multihop-rag", tmp_path, NEWS)
    assert (
        _score("multihop-rag", question, Outcome("The firm is orr & co"))[
            "multihop_accuracy"
        ]
        == 1.0
    )
    assert (
        _score("multihop-rag", question, Outcome("Smith"))["multihop_accuracy"] == 0.0
    )


def test_an_abstention_is_right_where_multihop_rag_has_no_answer(
    tmp_path: Path,
) -> None:
    known, unknown = _loaded("multihop-rag", tmp_path, NEWS, NOTHING)
    assert (
        _score("multihop-rag", unknown, Outcome("", abstained=True))[
            "multihop_accuracy"
        ]
        == 1.0
    )
    assert (
        _score("multihop-rag", known, Outcome("", abstained=True))["multihop_accuracy"]
        == 0.0
    )
    assert "fact_hit@4" not in _score("multihop-rag", unknown, Outcome("Orr"))


def test_the_articles_of_multihop_rag_are_cut_into_passages(tmp_path: Path) -> None:
    article = {
        "title": "Mill sold",
        "body": "It was sold. " * 150,
        "url": "https://a",
        "source": "Post",
        "author": "B",
    }
    (tmp_path / "corpus.json").write_text(json.dumps([article]), "utf-8")
    passages = benchmark("multihop-rag").corpus(tmp_path / "corpus.json")
    assert len(passages) == 3
    assert {(one.title, one.metadata["source"]) for one in passages} == {
        ("Mill sold", "Post")
    }


# ---- GraphRAG-Bench


def test_graphrag_bench_is_scored_by_rouge_l_without_a_judge(tmp_path: Path) -> None:
    pytest.importorskip("rouge_score")
    (question,) = _loaded("graphrag-bench", tmp_path, MEDICAL)
    assert (question.type, question.answers) == (
        "Fact Retrieval",
        ("It is a common cancer.",),
    )
    assert (
        _score("graphrag-bench", question, Outcome("It is a common cancer"))["rouge_l"]
        == 1.0
    )
    assert _score("graphrag-bench", question, Outcome("common cancers"))[
        "rouge_l"
    ] == pytest.approx(4 / 7)
    assert _score("graphrag-bench", question, Outcome(" "))["rouge_l"] == 0.0


def test_the_text_of_graphrag_bench_is_cut_into_passages(tmp_path: Path) -> None:
    benchmark("graphrag-bench")  # whose module knows the form
    (tmp_path / "medical.json").write_text(
        json.dumps({"corpus_name": "Medical", "context": "It is so. " * 250})
    )
    passages = load_passages(tmp_path / "medical.json")
    assert len(passages) == 3
    assert {one.title for one in passages} == {"Medical"}
