"""Candidates whose shares a language model learns, and the scorer that it becomes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")

from ras_agent.contracts.errors import SettingsError
from ras_agent.tools.subgraph.graph import Graph
from ras_agent.tools.subgraph.scorers.llm import read_shares
from ras_agent.tools.subgraph.scorers.resolve import ScorerModels, Scorers
from ras_agent.train.paths.scorer import (
    ScorerTrainingConfig,
    ShareExample,
    main,
    share_examples,
    train,
)
from ras_agent.train.paths.train import examples_of_parts, path_examples
from tests.messages import says
from tests.train.paths.test_train import ASKED, KB

pytestmark = pytest.mark.slow("trainings")


def test_gold_facts_share_the_score_among_other_facts_and_the_gold_path_has_all_of_it() -> (
    None
):
    paths, facts = share_examples(
        path_examples(Graph.from_triples(KB), [ASKED], negatives=20)
    )
    assert [paths.candidates[place] for place in paths.right] == [
        "ann → spouse → bob → nationality → france"
    ]
    assert len(paths.candidates) == 5
    assert {facts.candidates[place] for place in facts.right} == {
        "ann spouse bob",
        "bob nationality france",
    }
    shares = dict(
        zip(
            facts.candidates,
            (line.split(": ")[1] for line in facts.reply.splitlines()),
            strict=True,
        )
    )
    assert shares == {
        "ann spouse bob": "0.5",
        "bob nationality france": "0.5",
        "bob gender male": "0",
        "ann gender female": "0",
        "ann parents carl": "0",
    }
    shown = [line for line in facts.turns[-1].text.splitlines() if line[:1].isdigit()]
    assert shown == [
        f"{number}. {text}" for number, text in enumerate(facts.candidates, 1)
    ]
    assert facts.turns[-1].text.endswith(
        "Question: what nation is ann 's husband from ?"
    )


def test_the_reply_to_learn_is_what_the_scorer_reads() -> None:
    example = ShareExample("?", ("a", "b", "c", "d"), frozenset((1, 2, 3)), turns=())
    assert example.reply == "1: 0\n2: 0.33\n3: 0.33\n4: 0.33"
    assert read_shares(example.reply, 4) == {1: 0.0, 2: 0.33, 3: 0.33, 4: 0.33}
    assert example.scores(example.reply) == {"read": 1.0, "best": 1.0}
    assert example.scores("1: 1\n2: 0\n3: 0\n4: 0") == {"read": 1.0, "best": 0.0}
    assert example.scores("No idea.") == {"read": 0.0, "best": 0.0}


@pytest.fixture
def config(tmp_path: Path, tiny_llm: Path) -> ScorerTrainingConfig:
    """Return a training on families: the nation of the spouse is asked for."""
    people = [(f"p{n}", f"s{n}", f"c{n}") for n in range(12)]
    facts = [
        fact
        for person, spouse, nation in people
        for fact in (
            (person, "spouse", spouse),
            (spouse, "nationality", nation),
            (person, "gender", "x"),
        )
    ]
    (tmp_path / "kb.jsonl").write_text(
        "".join(json.dumps(fact) + "\n" for fact in facts)
    )
    rows = [
        f"nation of {a} 's spouse ?\t{c}({c}/)\t{a}#spouse#{b}#nationality#{c}#<end>#{c}"
        for a, b, c in people
    ]
    (tmp_path / "q.txt").write_text("\n".join(rows) + "\n")
    return ScorerTrainingConfig(
        kb=(tmp_path / "kb.jsonl",),
        questions=(tmp_path / "q.txt",),
        out=tmp_path / "scorer",
        language_model=str(tiny_llm),
        tuning="full",
        negatives=2,
        steps=2,
        rate=1e-3,
        warmup=0.0,
        validation_replies=0,
    )


def test_a_trained_model_scores_candidates_as_any_chat_model_does(
    config: ScorerTrainingConfig,
) -> None:
    from ras_agent.tools.graph_tokens.chat import GraphLLMChat

    train(config)
    card = json.loads((config.out / "training.json").read_text())
    assert card["examples"]["train"] >= 2
    model = GraphLLMChat.in_folder(config.out, max_tokens=8)
    scorer = Scorers(ScorerModels(tuned_llm=model))["llm-ft"]
    found = scorer.score("nation of p1 's spouse ?", ("p1 spouse s1", "p1 gender x"))
    assert found.values.shape == (2,)
    # two steps of random weights teach no form: that is said, and no share is made up
    assert [failure.role for failure in found.failures] == ["scorer"]


def test_the_loss_of_the_right_shares_falls(config: ScorerTrainingConfig) -> None:
    train(replace(config, steps=30, rate=3e-3, epochs=40))
    lines = [
        json.loads(line)
        for line in (config.out / "training" / "metrics.jsonl").read_text().splitlines()
    ]
    losses = [
        line["loss"] for line in lines if "loss" in line and "validation" not in line
    ]
    assert losses[-1] < losses[0] / 2


def test_a_set_whose_questions_bring_graphs_teaches_without_a_knowledge_base(
    tmp_path: Path,
) -> None:
    row = {
        "id": "q1",
        "question": "where was ann born?",
        "answer": ["kent"],
        "q_entity": ["ann"],
        "a_entity": ["kent"],
        "graph": [["ann", "place of birth", "kent"], ["ann", "gender", "female"]],
    }
    file = tmp_path / "webqsp_train.jsonl"
    file.write_text(json.dumps(row))
    config = ScorerTrainingConfig(
        benchmark="webqsp",
        questions=(file,),
        shares=(0.0, 0.0),
        out=tmp_path / "scorer",
        language_model="llama",
        learn="facts",
    )
    parts = examples_of_parts(config, ["facts"])
    [facts] = share_examples(parts["train"])
    assert {facts.candidates[place] for place in facts.right} == {
        "ann place of birth kent"
    }
    assert len(facts.candidates) == 2


def test_questions_without_a_gold_path_teach_nothing(
    config: ScorerTrainingConfig,
) -> None:
    config.questions[0].write_text("who ?\tz(z/)\tp1#unknown#z#<end>#z\n")
    with pytest.raises(
        SettingsError, match=says("q.txt", "has a gold path in its knowledge base")
    ):
        train(config)


def test_the_command_line_says_what_is_wrong(config: ScorerTrainingConfig) -> None:
    with pytest.raises(SettingsError, match="give --kb once for each --questions"):
        main(
            [
                "--kb",
                "a",
                "--questions",
                "b",
                "--questions",
                "c",
                "--language-model",
                "x",
                "--out",
                str(config.out),
            ]
        )


def test_a_scorer_reads_no_graph_tokens(config: ScorerTrainingConfig) -> None:
    with pytest.raises(
        SettingsError, match=says("reads only text", "--encoder", "--graph-tokens")
    ):
        replace(config, graph_tokens=4)
