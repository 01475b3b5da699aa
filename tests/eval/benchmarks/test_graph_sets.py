"""GraphQA, questions over Freebase subgraphs and PathQuestion in their official formats. The sentences are made up."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Triple
from ras_agent.eval.benchmarks import benchmark
from ras_agent.eval.benchmarks.pathquestion import of_part, part_of, read_knowledge_base
from ras_agent.eval.metrics.registry import Outcome
from ras_agent.eval.question import Question, TextualGraph
from tests.messages import says

EXPLAGRAPHS = (
    "arg1\targ2\tlabel\tgraph\n"
    "Mills should stay.\tOld mills draw visitors.\tsupport\t"
    "(mills; capable of; draw visitors)(draw visitors; causes; stay)\n"
    'Mills should go.\t"A ""working"" mill feeds a town."\tcounter\t'
    "(mills; used for; feeds town) (feeds town; not desires; go)\n"
    "Dams are bad.\tDams stop fish.\tsupport\t(dams; causes; stop fish)\n"
)
SCENES = {
    "71": {
        "width": 500,
        "height": 375,
        "objects": {
            "1001": {
                "name": "mill",
                "x": 1,
                "y": 2,
                "w": 30,
                "h": 40,
                "attributes": ["old", "white"],
                "relations": [
                    {"object": "1002", "name": "to the left of"},
                    {"object": "1002", "name": "near"},
                ],
            },
            "1002": {
                "name": "tree",
                "x": 5,
                "y": 6,
                "w": 7,
                "h": 8,
                "attributes": [],
                "relations": [],
            },
        },
    },
    "72": {"width": 10, "height": 10, "objects": {}},
}
GQA = {
    "9001": {
        "imageId": "71",
        "question": "What is near the tree?",
        "answer": "mill",
        "fullAnswer": "The mill is.",
    },
    "9002": {
        "imageId": "71",
        "question": "Is the mill old?",
        "answer": "yes",
        "fullAnswer": "Yes, it is.",
    },
    "9003": {
        "imageId": "72",
        "question": "Is it dark?",
        "answer": "no",
        "fullAnswer": "No.",
    },
}
ROG = [
    {
        "id": "Web-1",
        "question": "what river turns fell mill",
        "answer": ["Ardle", "Isla"],
        "q_entity": ["Fell Mill"],
        "a_entity": ["Ardle"],
        "graph": [
            ["Fell Mill", "mill.river", "Ardle"],
            ["fell mill", "mill.owner", "Tam Orr"],
        ],
        "choices": [],
    },
    {
        "id": "Web-2",
        "question": "who ran far mill",
        "answer": ["Ada Bell"],
        "q_entity": [],
        "a_entity": [],
        "graph": [],
    },
    {
        "id": "Web-3",
        "question": "q",
        "answer": [],
        "q_entity": ["m.1"],
        "a_entity": ["m.2"],
        "graph": [["m.1", "r", "m.2"]],
    },
]
PQ = (
    "what is the river of tam_orr 's mill ?\tardle(ardle/isla/)\ttam_orr#owned#fell_mill#river#ardle#<end>#ardle\n"
    "who wed tam_orr ?\tada_bell(ada_bell/)\ttam_orr#spouse#ada_bell#<end>#ada_bell\n"
    "the town of ada_bell 's husband 's birth ?\tblair\tada_bell#spouse#tam_orr#born#blair#in#perth\n"
)


def _write(path: Path, content: Any) -> Path:
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


def test_explagraphs_has_two_arguments_and_a_graph(tmp_path: Path) -> None:
    explagraphs = benchmark("explagraphs")
    questions = explagraphs.load(_write(tmp_path / "sample.tsv", EXPLAGRAPHS))
    assert [question.label for question in questions] == [
        "support",
        "counter",
        "support",
    ]
    assert 'Argument 2: A "working" mill feeds a town.' in questions[1].question
    graph = TextualGraph.from_dict(questions[0].metadata["graph"])
    assert graph.nodes == ("mills", "draw visitors", "stay")
    assert graph.edges == ((0, "capable of", 1), (1, "causes", 2))
    assert explagraphs.score(questions[1], Outcome("Counter.")) == {"accuracy": 1.0}
    assert explagraphs.score(questions[1], Outcome("It supports it")) == {
        "accuracy": 0.0
    }
    cited = Outcome(
        "counter\nNodes:\n- mills\n- town\nEdges:\n- (feeds town; not desires; go)"
    )
    assert explagraphs.score(questions[1], cited) == {
        "accuracy": 1.0,
        "valid_nodes": 0.5,
        "valid_edges": 1.0,
        "fully_valid": 0.0,
    }


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "a\tb\tagrees\t(x; y; z)",
            "line 5: 'label' should be support or counter, found 'agrees'",
        ),
        (
            "a\tb\tsupport\t(x; y; z)(x; y)",
            r"line 5: 'graph' should be \(head; relation; tail\)..., found '\(x; y\)'",
        ),
        ("a\tb\tsupport\t", r"line 5: no key 'graph'; found .*graph \(empty\)"),
        ("a\tb\tsupport", "line 5: expected 4 fields .*, found 3"),
    ],
)
def test_a_malformed_explanation_is_named(
    tmp_path: Path, row: str, message: str
) -> None:
    with pytest.raises(IngestError, match=message):
        benchmark("explagraphs").load(
            _write(tmp_path / "sample.tsv", EXPLAGRAPHS + row)
        )


def test_scene_graphs_are_read_from_beside_the_questions(tmp_path: Path) -> None:
    _write(tmp_path / "val_sceneGraphs.json", SCENES)
    questions = benchmark("scenegraphs").load(
        _write(tmp_path / "val_questions.json", GQA)
    )
    assert [(question.id, question.answers) for question in questions] == [
        ("9001", ("mill",)),
        ("9002", ("yes",)),
        ("9003", ("no",)),
    ]
    graph = TextualGraph.from_dict(questions[0].metadata["graph"])
    assert graph.nodes == (
        "name: mill; attribute: old, white; (x,y,w,h): (1, 2, 30, 40)",
        "name: tree; (x,y,w,h): (5, 6, 7, 8)",
    )
    assert graph.edges == ((0, "to the left of", 1), (0, "near", 1))


def test_graphqas_own_table_of_scene_questions_is_read(tmp_path: Path) -> None:
    _write(tmp_path / "train_sceneGraphs.json", SCENES)
    rows = (
        'q_id,image_id,question,answer,full_answer\n5,71,Is it old?,yes,"Yes, it is."\n'
    )
    (question,) = benchmark("scenegraphs").load(_write(tmp_path / "sample.csv", rows))
    assert (question.id, question.metadata["full_answer"]) == ("5", "Yes, it is.")


def test_missing_scenes_are_named(tmp_path: Path) -> None:
    file = _write(tmp_path / "questions.json", GQA)
    with pytest.raises(
        IngestError,
        match=says("has no file", "sceneGraphs.json", "get sceneGraphs.zip"),
    ):
        benchmark("scenegraphs").load(file)
    _write(tmp_path / "val_sceneGraphs.json", {"71": SCENES["71"]})
    with pytest.raises(IngestError, match="record 3: image '72' has no scene graph"):
        benchmark("scenegraphs").load(file)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            {"relations": [{"object": "9", "name": "on"}]},
            "object 1001, relations 1: 'object' is '9', which the scene does not have",
        ),
        ({"x": None}, "object 1001: no key 'x'"),
        ({"name": []}, "object 1001: 'name' should be text"),
    ],
)
def test_a_malformed_scene_is_named(
    tmp_path: Path, broken: dict[str, Any], message: str
) -> None:
    mill = {**SCENES["71"]["objects"]["1001"], **broken}  # type: ignore[index]
    _write(tmp_path / "sceneGraphs.json", {"71": {"objects": {"1001": mill}}})
    with pytest.raises(IngestError, match=f"record 1, .*{message}"):
        benchmark("scenegraphs").load(_write(tmp_path / "questions.json", GQA))


@pytest.mark.parametrize("name", ["webqsp", "cwq", "grailqa", "webquestions"])
def test_questions_over_freebase_share_one_record(tmp_path: Path, name: str) -> None:
    questions = benchmark(name).load(_write(tmp_path / "sample.jsonl", ROG))
    assert [question.answers for question in questions] == [
        ("Ardle", "Isla"),
        ("Ada Bell",),
        (),
    ]
    first = questions[0].metadata
    assert (first["question_entities"], first["answer_entities"]) == (
        ["Fell Mill"],
        ["Ardle"],
    )
    assert TextualGraph.from_dict(first["graph"]).nodes == (
        "Fell Mill",
        "Ardle",
        "fell mill",
        "Tam Orr",
    )


def test_a_retrieved_graph_is_scored_by_the_answers_that_it_holds(
    tmp_path: Path,
) -> None:
    webqsp = benchmark("webqsp")
    question = webqsp.load(_write(tmp_path / "sample.jsonl", ROG))[0]
    facts = {
        "t1": Triple("Fell Mill", "river", "Ardle"),
        "t2": Triple("Fell Mill", "owner", "Tam Orr"),
    }
    assert webqsp.score(
        question, Outcome("Isla\nthe Don\nTay\nArdle", facts=facts)
    ) == {
        "golden_match": 1.0,
        "contained_f1": pytest.approx(2 / 3),  # 2 of 4 listed
        "contained_recall": 1.0,
        "hr@1": 1.0,
        "answer_f1": pytest.approx(2 / 3),  # 2 of 4 listed, 2 of 2 gold
        "answer_precision": 0.5,
        "answer_recall": 1.0,
        "entity_recall": 1.0,
        "entity_f1": 0.5,  # 1 of 3 entities is the 1 gold entity
        "substring_hr@1": 1.0,
        "substring_f1": pytest.approx(2 / 3),
    }


def test_graphqas_webqsp_is_in_lower_case(tmp_path: Path) -> None:
    question = benchmark("graphqa-webqsp").load(_write(tmp_path / "sample.jsonl", ROG))[
        0
    ]
    assert question.answers == ("ardle", "isla")
    assert TextualGraph.from_dict(question.metadata["graph"]).nodes == (
        "fell mill",
        "ardle",
        "tam orr",
    )


def test_a_malformed_subgraph_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        IngestError,
        match=says("line 1", "'graph'", "[subject, predicate, object]", "['a', 'b']"),
    ):
        benchmark("cwq").load(
            _write(tmp_path / "sample.jsonl", [{**ROG[0], "graph": [["a", "b"]]}])
        )


def test_pathquestion_reads_answers_and_the_path(tmp_path: Path) -> None:
    questions = benchmark("pathquestion").load(_write(tmp_path / "sample.txt", PQ))
    assert questions[0].answers == ("ardle", "isla")
    assert questions[0].metadata["path"] == [
        ["tam_orr", "owned", "fell_mill"],
        ["fell_mill", "river", "ardle"],
    ]
    assert [question.hops for question in questions] == [2, 1, 3]
    assert (questions[2].answers, questions[2].type) == (("blair",), "3hop")


@pytest.mark.parametrize(
    "path", ["tam_orr", "tam_orr#owned", "tam_orr#owned#mill#river", "tam_orr##mill"]
)
def test_a_malformed_path_is_named(tmp_path: Path, path: str) -> None:
    with pytest.raises(
        IngestError, match="line 1: 'path' should be subject#relation#entity"
    ):
        benchmark("pathquestion").load(
            _write(tmp_path / "sample.txt", f"q\ta\t{path}\n")
        )


def test_a_knowledge_base_has_tabs_or_lists(tmp_path: Path) -> None:
    file = _write(
        tmp_path / "kb.txt",
        'tam\t\towned\tmill\nmill\triver\tardle\n["ada", "spouse", "tam"]\ntam\towned\tmill\n',
    )
    assert read_knowledge_base(file) == [
        ("tam", "owned", "mill"),
        ("mill", "river", "ardle"),
        ("ada", "spouse", "tam"),
    ]


@pytest.mark.parametrize("line", ["tam\towned", "[1, 2", '["a", "b"]'])
def test_a_malformed_fact_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(
        IngestError, match=r"kb.txt line 2: expected head, relation and tail"
    ):
        read_knowledge_base(_write(tmp_path / "kb.txt", f"a\tb\tc\n{line}\n"))


def _about(entity: str, text: str = "nationality of ann 's spouse bob") -> Question:
    return Question("1", text, ("x",), metadata={"question_entities": [entity]})


def test_an_entity_falls_into_one_part_and_parts_are_about_60_20_20() -> None:
    questions = [_about(f"entity {number}") for number in range(2000)]
    sizes = [len(of_part(questions, part)) for part in ("train", "dev", "test")]
    assert sum(sizes) == 2000
    assert [round(size / 2000, 1) for size in sizes] == [0.6, 0.2, 0.2]
    assert part_of(_about("Ann Lee")) == part_of(_about("ann  lee", "other words"))
    with pytest.raises(ValueError, match="unknown part"):
        of_part(questions, "all")
    with pytest.raises(ValueError, match="give it question_entities"):
        part_of(Question("1", "?", ("x",)))


@pytest.mark.parametrize("name", ["webqsp", "cwq", "graphqa-webqsp"])
def test_questions_over_freebase_show_the_papers_columns_first(name: str) -> None:
    # Hit@1 as published: a gold answer anywhere; then F1, and the accuracy of Align-GRAG
    published = ("golden_match", "contained_f1", "contained_recall")
    assert benchmark(name).metrics[:3] == published
