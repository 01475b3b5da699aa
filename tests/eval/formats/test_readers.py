"""Question sets and corpora of other libraries, found by their look."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.formats import load_passages, load_questions


def _lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def _beir(folder: Path, **splits: str) -> Path:
    _lines(
        folder / "queries.jsonl",
        [
            {"_id": "q1", "text": "Who was Bell?", "metadata": {}},
            {"_id": "q2", "text": "Which river?"},
        ],
    )
    (folder / "qrels").mkdir()
    for split, rows in splits.items():
        (folder / "qrels" / f"{split}.tsv").write_text(
            f"query-id\tcorpus-id\tscore\n{rows}", "utf-8"
        )
    return folder


# ---- FlashRAG


def test_a_question_of_flashrag_has_golden_answers(tmp_path: Path) -> None:
    row = {
        "id": "test_0",
        "question": "who got the first nobel prize in physics",
        "golden_answers": ["Röntgen"],
    }
    (question,) = benchmark("jsonl").load(_lines(tmp_path / "test.jsonl", [row]))
    assert (question.id, question.question, question.answers) == (
        "test_0",
        row["question"],
        ("Röntgen",),
    )
    assert question.supporting == ()


def test_flashrags_multi_hop_questions_bring_gold_titles_and_contexts_in_their_metadata(
    tmp_path: Path,
) -> None:
    metadata = {
        "type": "bridge",
        "supporting_facts": {
            "title": ["Bell", "Bell", "Edinburgh"],
            "sent_id": [0, 1, 0],
        },
        "context": {
            "title": ["Bell", "Paris"],
            "sentences": [["He was born ", "in Edinburgh."], ["A capital."]],
        },
    }
    row = {
        "id": "dev_0",
        "question": "Where?",
        "golden_answers": ["Edinburgh"],
        "metadata": metadata,
    }
    (question,) = load_questions(_lines(tmp_path / "dev.jsonl", [row]))
    assert (question.supporting, question.by_title, question.type) == (
        ("Bell", "Edinburgh"),
        True,
        "bridge",
    )
    assert [(one.title, one.text) for one in question.contexts] == [
        ("Bell", "He was born in Edinburgh."),
        ("Paris", "A capital."),
    ]


def test_flashrags_multiple_choice_names_the_place_of_the_right_one(
    tmp_path: Path,
) -> None:
    row = {
        "id": "a",
        "question": "Which is a river?",
        "golden_answers": [1],
        "choices": ["Paris", "Leith"],
    }
    (question,) = load_questions(_lines(tmp_path / "q.jsonl", [row]))
    assert question.question == "Which is a river?\nA. Paris\nB. Leith"
    assert (question.answers, question.label) == (("Leith",), "B")


def test_a_place_without_a_choice_is_an_error(tmp_path: Path) -> None:
    row = {
        "id": "a",
        "question": "Which?",
        "golden_answers": [2],
        "choices": ["Paris", "Leith"],
    }
    with pytest.raises(
        IngestError,
        match=r"q.jsonl line 1: the golden answer 2 should be the number of one of the 2 choices, from 0",
    ):
        load_questions(_lines(tmp_path / "q.jsonl", [row]))


def test_the_first_line_of_a_passage_of_flashrag_is_its_title(tmp_path: Path) -> None:
    rows = [
        {"id": "0", "contents": '"Bell"\nBorn in Edinburgh.\nDied in 1922.'},
        {"id": "1", "contents": "No title."},
    ]
    assert load_passages(_lines(tmp_path / "corpus.jsonl", rows)) == [
        Passage("0", "Born in Edinburgh.\nDied in 1922.", "Bell"),
        Passage("1", "No title."),
    ]


# ---- BEIR


def test_a_folder_of_beir_means_the_queries_that_its_test_split_judges(
    tmp_path: Path,
) -> None:
    folder = _beir(
        tmp_path / "scifact",
        dev="q2\tleith\t1\n",
        test="q1\ttelephone\t1\nq1\tbell\t2\nq1\tparis\t0\n",
    )
    (question,) = benchmark("jsonl").load(folder)
    assert (question.id, question.question, question.answers) == (
        "q1",
        "Who was Bell?",
        (),
    )
    assert (question.supporting, question.by_title) == (("bell", "telephone"), False)
    assert question.metadata["relevance"] == {"bell": 2, "telephone": 1}


def test_the_file_of_a_split_of_beir_means_its_queries(tmp_path: Path) -> None:
    folder = _beir(tmp_path / "scifact", dev="q2\tleith\t1\n", test="q1\tbell\t1\n")
    assert [
        one.id for one in benchmark("jsonl").load(folder / "qrels" / "dev.tsv")
    ] == ["q2"]


def test_a_split_of_beir_has_to_be_named_where_none_is_called_test(
    tmp_path: Path,
) -> None:
    folder = _beir(tmp_path / "x", dev="q2\tleith\t1\n", train="q1\tbell\t1\n")
    with pytest.raises(
        IngestError,
        match=r"qrels: holds dev.tsv, train.tsv; name the split's file with --data",
    ):
        benchmark("jsonl").load(folder)


def test_a_judged_query_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    folder = _beir(tmp_path / "x", test="q1\tbell\t1\nq9\tbell\t1\n")
    with pytest.raises(
        IngestError,
        match=r"test.tsv: query 'q9' is not in queries.jsonl; get both files from the same set",
    ):
        benchmark("jsonl").load(folder)


def test_a_grade_that_is_no_number_is_an_error_of_its_line(tmp_path: Path) -> None:
    folder = _beir(tmp_path / "x", test="q1\tbell\tgood\n")
    with pytest.raises(
        IngestError,
        match=r"test.tsv line 2: 'score' should be a whole number, found 'good'",
    ):
        benchmark("jsonl").load(folder)


@pytest.mark.parametrize(
    "row",
    [
        {"id": "bell", "title": "Bell", "text": "Born.", "contents": '"Bell"\nOther.'},
        {"_id": "5f", "id": "bell", "title": "Bell", "text": "Born."},
    ],
)
def test_a_passage_with_id_and_text_is_plain_whatever_else_it_has(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    assert load_passages(_lines(tmp_path / "corpus.jsonl", [row])) == [
        Passage("bell", "Born.", "Bell")
    ]


def test_a_passage_of_beir_has_an_id_a_title_and_a_text(tmp_path: Path) -> None:
    rows = [
        {"_id": "bell", "title": "Bell", "text": "Born.", "metadata": {"url": "u"}},
        {"_id": "x", "title": "", "text": "Y."},
    ]
    assert load_passages(_lines(tmp_path / "corpus.jsonl", rows)) == [
        Passage("bell", "Born.", "Bell", metadata={"url": "u"}),
        Passage("x", "Y."),
    ]


# ---- RAGAS


def test_a_generated_row_of_ragas_brings_its_gold_texts(tmp_path: Path) -> None:
    row = {
        "user_input": "Where was Bell born?",
        "reference_contexts": ["Bell was born in Edinburgh."],
        "reference": "In Edinburgh",
        "synthesizer_name": "single_hop",
    }
    (question,) = load_questions(_lines(tmp_path / "testset.jsonl", [row]))
    assert (question.id, question.question, question.answers) == (
        "1",
        "Where was Bell born?",
        ("In Edinburgh",),
    )
    assert [one.text for one in question.contexts] == ["Bell was born in Edinburgh."]
    assert question.supporting == (question.contexts[0].id,)
    assert question.type == "single_hop"


def test_a_conversation_of_ragas_is_no_question(tmp_path: Path) -> None:
    row = {"user_input": [{"content": "Hi", "type": "human"}], "reference": "x"}
    with pytest.raises(IngestError, match="line 1: 'user_input' is a conversation"):
        load_questions(_lines(tmp_path / "q.jsonl", [row]))


# ---- verl and Search-R1


def test_a_row_of_search_r1_has_its_question_and_its_targets(tmp_path: Path) -> None:
    row = {
        "id": "test_0",
        "question": "who got the first nobel prize in physics?",
        "golden_answers": ["Röntgen"],
        "data_source": "nq",
        "prompt": [
            {
                "role": "user",
                "content": "Answer the given question. ... Question: who got it?\n",
            }
        ],
        "ability": "fact-reasoning",
        "reward_model": {
            "style": "rule",
            "ground_truth": {"target": ["Wilhelm Röntgen", "Röntgen"]},
        },
        "extra_info": {"split": "test", "index": 0},
    }
    (question,) = load_questions(_lines(tmp_path / "test.jsonl", [row]))
    assert (question.id, question.question) == (
        "test_0",
        "who got the first nobel prize in physics?",
    )
    assert question.answers == ("Wilhelm Röntgen", "Röntgen")


def test_a_row_of_verl_may_have_its_question_in_the_prompt_alone(
    tmp_path: Path,
) -> None:
    row = {
        "data_source": "mine",
        "prompt": [
            {"role": "system", "content": "Search."},
            {"role": "user", "content": "Be brief.\nQuestion: Who?"},
        ],
        "reward_model": {"style": "rule", "ground_truth": "Bell"},
        "extra_info": {"index": 7},
    }
    (question,) = load_questions(_lines(tmp_path / "rows.jsonl", [row]))
    assert (question.id, question.question, question.answers) == (
        "7",
        "Who?",
        ("Bell",),
    )


# ---- any


def test_a_record_without_a_known_look_is_told_what_a_plain_one_has(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        IngestError,
        match="line 1: no key 'question', found Question, Answer; a question has question and answers",
    ):
        load_questions(_lines(tmp_path / "q.jsonl", [{"Question": "x", "Answer": "y"}]))


def test_other_benchmarks_read_the_formats_too(tmp_path: Path) -> None:
    row = {
        "id": "dev_0",
        "question": "Where?",
        "golden_answers": ["Edinburgh"],
        "metadata": {},
    }
    (question,) = benchmark("hotpotqa").load(_lines(tmp_path / "dev.jsonl", [row]))
    assert question.answers == ("Edinburgh",)


@pytest.mark.parametrize(
    ("files", "read", "message"),
    [
        (
            {"q.jsonl": '{"id": "1", "question": "Who?", "golden_answers": ["Bell"], '
             '"metadata": {"supporting_titles": {"a": 1}}}'},
            "q.jsonl",
            "'supporting_titles' should be a list of texts",
        ),
        (
            {"queries.jsonl": '{"_id": "q1", "text": "Who?", "metadata": ["x"]}',
             "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\tbell\t1\n"},
            "queries.jsonl",
            "metadata should be an object",
        ),
    ],
)  # fmt: skip
def test_metadata_of_another_form_are_named(
    tmp_path: Path, files: dict[str, str], read: str, message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(IngestError, match=message):
        load_questions(tmp_path / read)


def test_one_gold_title_of_flashrag_may_be_a_text(tmp_path: Path) -> None:
    row = {
        "id": "1",
        "question": "Who?",
        "golden_answers": ["Bell"],
        "metadata": {"supporting_titles": "Alan Turing"},
    }
    (tmp_path / "q.jsonl").write_text(json.dumps(row))
    (question,) = load_questions(tmp_path / "q.jsonl")
    assert question.supporting == ("Alan Turing",)
