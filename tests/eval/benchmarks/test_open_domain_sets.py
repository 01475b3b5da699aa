"""Sets of open-domain, closed and reading questions in their official formats. The sentences are made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.benchmarks.ragbench import RAGBENCH
from ras_agent.eval.metrics.registry import Outcome
from tests.messages import says

TRIVIA = [
    {
        "Answer": {
            "Aliases": ["Ardle", "River Ardle"],
            "NormalizedAliases": ["ardle", "river ardle"],
            "Type": "WikipediaEntity",
            "Value": "Ardle",
        },
        "Question": "Which river turns Fell Mill?",
        "QuestionId": "tc_1",
        "QuestionSource": "http://quiz.example/",
        "SearchResults": [],
        "EntityPages": [],
    },
    {
        "Answer": {"Aliases": [], "Value": "Two"},
        "Question": "How many wheels has Fell Mill?",
        "QuestionId": "tc_2",
    },
    {
        "Answer": {"Aliases": ["Orr"], "Value": "Tam Orr"},
        "Question": "Who ran Fell Mill?",
        "QuestionId": "tc_3",
    },
]
POPQA = (
    "id\tsubj\tprop\tobj\tsubj_id\tprop_id\tobj_id\ts_pop\to_pop\tquestion\tpossible_answers\n"
    '11\tTam Orr\toccupation\tmiller\t1\t2\t3\t42\t900\tWhat does Tam Orr do?\t"[""miller"", ""mill owner""]"\n'
    '12\tAda Orr\toccupation\tpoet\t1\t2\t3\t7\t900\tWhat is Ada Orr\'s occupation?\t"[""poet""]"\n'
    '13\tBlair\tcountry\tScotland\t1\t2\t3\t99\t900\tIn what country is Blair?\t"[""Scotland"", ""Alba""]"\n'
)
PUBHEALTH = (
    "\tclaim_id\tclaim\tdate_published\texplanation\tfact_checkers\tmain_text\tsources\tlabel\tsubjects\n"
    "0\t501\tStone-ground flour cures colds.\tMay 1, 2010\tNo study shows it.\tA\ttext\thttp://a\tfalse\tHealth\n"
    "1\t502\tMillers' lungs suffer from dust.\tMay 2, 2010\tStudies show it.\tB\ttext\thttp://b\ttrue\tHealth\n"
    "2\t503\tBran helps some people.\tMay 3, 2010\tSome.\tC\ttext\thttp://c\tmixture\tHealth\n"
    "3\t504\tA row cut short.\tMay 3, 2010\n"
)
ARC = [
    {
        "id": "Exam_1",
        "question": {
            "stem": "What turns a water mill?",
            "choices": [
                {"text": "wind", "label": "A"},
                {"text": "a stream", "label": "B"},
                {"text": "steam", "label": "C"},
                {"text": "a horse", "label": "D"},
            ],
        },
        "answerKey": "B",
    },
    {
        "id": "Exam_2",
        "question": {
            "stem": "What is flour made of?",
            "choices": [
                {"text": "sand", "label": "1"},
                {"text": "chalk", "label": "2"},
                {"text": "grain", "label": "3"},
            ],
        },
        "answerKey": "3",
    },
    {
        "id": "Exam_3",
        "question": "Which is hardest?",
        "choices": {"text": ["granite", "flour"], "label": ["A", "B"]},
        "answerKey": "A",
    },
]
ASQA = [
    {
        "question": "Who ran the mill?",
        "sample_id": "s1",
        "qa_pairs": [
            {
                "context": "",
                "question": "Who ran Fell Mill?",
                "short_answers": ["Tam Orr", "Orr"],
                "wikipage": "Fell Mill",
            },
            {
                "context": "",
                "question": "Who ran Far Mill?",
                "short_answers": ["Ada Bell"],
                "wikipage": None,
            },
        ],
        "annotations": [
            {
                "knowledge": [],
                "long_answer": "Tam Orr ran Fell Mill. Ada Bell ran Far Mill.",
            },
            {"knowledge": [], "long_answer": "It was Tam Orr or Ada Bell."},
        ],
        "answer": "It was Tam Orr or Ada Bell.",
        "docs": [
            {"id": "9", "title": "Fell Mill", "text": "Tam Orr ran it.", "score": 1.5}
        ]
        * 2,
    },
    {
        "question": "When?",
        "sample_id": "s2",
        "qa_pairs": [],
        "annotations": [{"long_answer": "In 1710."}],
        "docs": [],
    },
    {
        "question": "Where?",
        "sample_id": "s3",
        "qa_pairs": None,
        "annotations": None,
        "answer": "In Blair.",
        "docs": [],
    },
]
ELI5 = [
    {
        "question": "Why do mill stones wear out?",
        "question_ctx": "[removed]",
        "answer": "Grain is hard. It rubs the stone.",
        "claims": ["Grain is hard.", "Grain rubs the stone.", "Stones wear."],
        "docs": [
            {"title": f"Mill {n}", "text": f"Stone {n} wears.", "url": "u"}
            for n in range(7)
        ],
    },
    {
        "question": "Why is flour white?",
        "answer": "The bran is gone.",
        "claims": None,
        "docs": [],
    },
    {
        "id": "x",
        "question": "Why a wheel ? --T-- ",
        "document": "It turns . <P> It is round . <P> ",
        "answer": "It turns .",
    },
]


def _file(path: Path, content: Any) -> Path:
    lines = path.suffix == ".jsonl"
    text = (
        content
        if isinstance(content, str)
        else "\n".join(map(json.dumps, content))
        if lines
        else json.dumps(content)
    )
    path.write_text(text, "utf-8")
    return path


def test_triviaqa_takes_every_alias(tmp_path: Path) -> None:
    questions = benchmark("triviaqa").load(
        _file(tmp_path / "dev.json", {"Data": TRIVIA, "Version": 1.0})
    )
    assert [question.id for question in questions] == ["tc_1", "tc_2", "tc_3"]
    assert [question.answers for question in questions] == [
        ("Ardle", "River Ardle"),
        ("Two",),
        ("Tam Orr", "Orr"),
    ]


def test_triviaqa_with_passages_starts_from_them(tmp_path: Path) -> None:
    record = {
        "question": "Who ran Fell Mill?",
        "answers": ["Tam Orr"],
        "ctxs": [
            {"id": 7, "title": "Fell Mill", "text": f"Part {n}."} for n in range(9)
        ],
    }
    triviaqa = benchmark("triviaqa")
    (question,) = triviaqa.load(_file(tmp_path / "t.jsonl", [record]))
    assert len(question.contexts) == 9
    given = triviaqa.inputs(question)
    assert given["question"] == "Who ran Fell Mill?"
    assert [passage["text"] for passage in given["seed_passages"]] == [
        "Part 0.",
        "Part 1.",
        "Part 2.",
        "Part 3.",
        "Part 4.",
    ]


def test_popqa_reads_its_list_of_answers_out_of_a_cell(tmp_path: Path) -> None:
    questions = benchmark("popqa").load(_file(tmp_path / "PopQA.tsv", POPQA))
    assert [question.answers for question in questions] == [
        ("miller", "mill owner"),
        ("poet",),
        ("Scotland", "Alba"),
    ]
    assert (
        questions[0].id,
        questions[0].type,
        questions[0].metadata["popularity"],
    ) == ("11", "occupation", 42)


def test_popqa_names_a_cell_that_is_no_list(tmp_path: Path) -> None:
    with pytest.raises(
        IngestError, match=says("line 3", "'possible_answers'", "JSON list", "'poet'")
    ):
        benchmark("popqa").load(
            _file(tmp_path / "PopQA.tsv", POPQA.replace('"[""poet""]"', "poet"))
        )


def test_pubhealth_keeps_what_is_true_or_false(tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match=says("2 records", "pubhealth", "sample.tsv line 4")
    ):
        questions = benchmark("pubhealth").load(
            _file(tmp_path / "sample.tsv", PUBHEALTH)
        )
    assert [(question.id, question.label) for question in questions] == [
        ("501", "false"),
        ("502", "true"),
    ]
    assert questions[0].question == "Stone-ground flour cures colds."


@pytest.mark.parametrize(
    ("told", "label"),
    [
        ({"output": ["true"]}, "true"),
        ({"answers": ["REFUTES"]}, "false"),
        ({"label": 2}, "true"),
    ],
)
def test_pubhealth_has_other_forms_of_verdict(
    tmp_path: Path, told: dict[str, Any], label: str
) -> None:
    (question,) = benchmark("pubhealth").load(
        _file(tmp_path / "q.jsonl", [{"question": "Bran helps.", **told}])
    )
    assert question.label == label


def test_a_statement_without_a_verdict_is_named(tmp_path: Path) -> None:
    records = [{"question": "Bran helps.", "output": ["perhaps"]}]
    with pytest.raises(
        IngestError, match=says("line 1", "label", "true", "false", "perhaps")
    ):
        benchmark("pubhealth").load(_file(tmp_path / "q.jsonl", records))


def test_arc_puts_the_options_into_the_question(tmp_path: Path) -> None:
    questions = benchmark("arc-challenge").load(_file(tmp_path / "arc.jsonl", ARC))
    assert (
        questions[0].question
        == "What turns a water mill?\nA. wind\nB. a stream\nC. steam\nD. a horse"
    )
    assert [(question.label, question.answers) for question in questions] == [
        ("B", ("a stream",)),
        ("C", ("grain",)),
        ("A", ("granite",)),
    ]
    assert questions[1].choices == {"A": "sand", "B": "chalk", "C": "grain"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"answerKey": "E"},
            "line 1: the answer 'E' is not one of the options A, B, C, D",
        ),
        (
            {"question": {"stem": "?"}},
            "line 1, question: choices should be an object, found None",
        ),
        (
            {"question": {"stem": "?", "choices": [{"label": "A"}]}},
            "line 1, question, choices 1: no key 'text'",
        ),
    ],
)
def test_a_malformed_exam_question_is_named(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(IngestError, match=message):
        benchmark("arc-challenge").load(
            _file(tmp_path / "arc.jsonl", [{**ARC[0], **change}])
        )


def test_asqa_has_its_annotators_answers_and_the_readings(tmp_path: Path) -> None:
    asqa = benchmark("asqa")
    questions = asqa.load(_file(tmp_path / "asqa.json", ASQA))
    assert questions[0].answers == (
        "Tam Orr ran Fell Mill. Ada Bell ran Far Mill.",
        "It was Tam Orr or Ada Bell.",
    )
    assert questions[0].metadata["short_answers"] == [["Tam Orr", "Orr"], ["Ada Bell"]]
    assert [passage.title for passage in questions[0].contexts] == ["Fell Mill"]
    assert (questions[2].id, questions[2].answers) == ("s3", ("In Blair.",))
    scores = asqa.score(
        questions[0], Outcome("Tam Orr ran Fell Mill.", passages=(Passage("p", "x"),))
    )
    assert scores["answer_coverage"] == 0.5
    # 5 words of 5 and of 10: P 1, R 1/2
    assert scores["rouge_lsum"] == pytest.approx(2 / 3)


def test_eli5_answers_from_five_fixed_passages(tmp_path: Path) -> None:
    eli5 = benchmark("eli5")
    questions = eli5.load(_file(tmp_path / "eli5.json", ELI5))
    assert [question.id for question in questions] == ["1", "2", "x"]
    assert questions[0].metadata["claims"] == [
        "Grain is hard.",
        "Grain rubs the stone.",
        "Stones wear.",
    ]
    assert [
        passage["title"] for passage in eli5.inputs(questions[0])["static_passages"]
    ] == [f"Mill {number}" for number in range(5)]
    assert eli5.inputs(questions[1]) == {"question": "Why is flour white?"}
    assert (
        questions[2].question,
        [passage.text for passage in questions[2].contexts],
    ) == (
        "Why a wheel ?",
        ["It turns .", "It is round ."],
    )


@pytest.mark.parametrize(
    ("name", "form", "style"),
    [
        ("arc-challenge", "multiple_choice", "choice"),
        ("pubhealth", "true_false", "boolean"),
        ("asqa", "long", "long"),
        ("eli5", "long", "long"),
    ],
)
def test_what_is_not_short_has_an_instruction_beside_a_graph_and_one_without(
    name: str, form: str, style: str
) -> None:
    found = benchmark(name)
    assert (found.answer_form, found.style) == (form, style)
    assert set(found.instructions) == {"answer", "answer_baseline"}


@pytest.mark.parametrize("name", ["triviaqa", "popqa", "2wikimultihopqa"])
def test_short_answers_are_asked_for_by_the_question_alone(name: str) -> None:
    assert benchmark(name).instructions == {}


SQUAD_ARTICLE = {
    "title": "Fell Mill",
    "paragraphs": [
        {
            "context": "Tam Orr ran Fell Mill. Orr was from Blair.",
            "qas": [
                {
                    "id": "s1",
                    "question": "Who ran it?",
                    "answers": [{"text": "Tam Orr", "answer_start": 0}],
                },
                {
                    "id": "s2",
                    "question": "Where was he from?",
                    "answers": [
                        {"text": "Blair", "answer_start": 36},
                        {"text": "from Blair", "answer_start": 31},
                    ],
                },
            ],
        }
    ],
}


def test_squad_has_a_question_for_each_of_an_articles_with_the_places_of_its_answers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"version": "1.1", "data": [SQUAD_ARTICLE]}))
    first, second = benchmark("squad").load(path)
    assert (first.id, first.answers, first.metadata["spans"]) == (
        "s1",
        ("Tam Orr",),
        [(0, 7)],
    )
    assert second.metadata["spans"] == [(31, 41), (36, 41)]
    assert second.contexts == first.contexts
    assert second.supporting == (first.contexts[0].id,)


def test_squad_reads_flat_records_and_locates_a_wrong_place(tmp_path: Path) -> None:
    path = tmp_path / "squad.jsonl"
    columns = {"text": ["Orr"], "answer_start": [4]}
    rows = [
        {"id": "a", "question": "?", "context": "Tam Orr", "answers": columns},
        {
            "id": "b",
            "question": "?",
            "context": "Tam Orr",
            "answers": [{"text": "Orr", "answer_start": 3}],
        },
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (read,) = benchmark("squad").load(path, limit=1)
    assert read.metadata["spans"] == [(4, 7)]
    with pytest.raises(
        IngestError, match=says("squad.jsonl line 2", "'Orr'", "character 3")
    ):
        benchmark("squad").load(path)


def test_natural_questions_name_the_passage_marked_as_gold(tmp_path: Path) -> None:
    path = tmp_path / "nq.jsonl"
    contexts = [
        {
            "title": "Far Mill",
            "text": "Far Mill is far.",
            "hasanswer": False,
            "isgold": False,
        },
        {
            "title": "Fell Mill",
            "text": "Tam Orr ran it.",
            "hasanswer": True,
            "isgold": True,
        },
    ]
    path.write_text(
        json.dumps(
            {"question": "who ran fell mill", "answers": ["Tam Orr"], "ctxs": contexts}
        )
    )
    (read,) = benchmark("natural-questions").load(path)
    assert (read.id, read.answers, read.hops) == ("1", ("Tam Orr",), 1)
    assert read.supporting == (read.contexts[1].id,)


def test_ragbench_names_the_documents_with_a_relevant_sentence(tmp_path: Path) -> None:
    path = tmp_path / "emanual.jsonl"
    row = {
        "id": "e1",
        "question": "How is the set switched off?",
        "documents": [
            "Press the green key.",
            "Hold the red key.",
            "Press the green key.",
        ],
        "all_relevant_sentence_keys": ["1a", "1b"],
        "response": "By the red key.",
    }
    path.write_text(json.dumps(row))
    (read,) = benchmark("ragbench-emanual").load(path)
    assert [passage.text for passage in read.contexts] == [
        "Press the green key.",
        "Hold the red key.",
    ]
    assert read.supporting == (read.contexts[1].id,)
    assert read.answers == ()


def test_the_seven_domain_sets_of_gfm_rag_are_known() -> None:
    names = (
        "pubmedqa",
        "delucionqa",
        "techqa",
        "expertqa",
        "emanual",
        "msmarco",
        "hagrid",
    )
    assert [one.name for one in RAGBENCH] == [f"ragbench-{name}" for name in names]


@pytest.mark.parametrize("key", ["3a", "a", ""])
def test_a_sentence_of_no_document_is_named(key: str, tmp_path: Path) -> None:
    path = tmp_path / "hagrid.jsonl"
    path.write_text(
        json.dumps(
            {
                "question": "?",
                "documents": ["One."],
                "all_relevant_sentence_keys": [key],
            }
        )
    )
    with pytest.raises(
        IngestError, match=says(f"'{key}'", "number of one of the 1 documents")
    ):
        benchmark("ragbench-hagrid").load(path)
