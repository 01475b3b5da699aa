"""The ranker's training: from files of questions to weights that the answerer loads."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ras_agent.tools.offline.answerer.coverage import BUCKETS
from ras_agent.tools.offline.answerer.features import Candidates
from ras_agent.tools.offline.answerer.rank import INPUTS, Ranker
from ras_agent.tools.offline.answerer.weights import read_safetensors
from ras_agent.tools.offline.question import analyse
from ras_agent.train.ranker.config import SETS, RankerConfig
from ras_agent.train.ranker.examples import RankerExample, _as_question, questions_in
from ras_agent.train.ranker.fit import train_ranker
from ras_agent.train.ranker.train import train

pytestmark = pytest.mark.slow("trainings")


@pytest.fixture
def config(data: Path, hash_embedder: Any) -> RankerConfig:
    small = {"questions": 6, "steps": 30, "batch": 4, "spans": 20, "folds": 2, "members": 1, "type_epochs": 1}
    return RankerConfig(data, data / "ranker.safetensors", embedder=hash_embedder, type_batch=4, **small)  # type: ignore[arg-type]


def test_training_writes_weights_that_rank_and_a_card_that_says_how(config: RankerConfig) -> None:
    pytest.importorskip("torch")
    card = train(config)
    ranker = Ranker(read_safetensors(config.out))
    assert ranker.score(np.zeros((3, len(INPUTS)), np.float32)).shape == (3,)
    assert json.loads(config.out.with_suffix(".json").read_text()) == card
    assert set(card["cross_validated_f1"]) == {", ".join(name) for name in SETS}
    assert card["cross_validated_f1"]["squad, bm25"] > 50  # a town in a sentence of two towns' worth of names


def test_the_same_training_writes_the_same_bytes(config: RankerConfig) -> None:
    pytest.importorskip("torch")
    again = replace(config, out=config.out.with_name("again.safetensors"))
    train(config)
    train(again)
    assert config.out.read_bytes() == again.out.read_bytes()


def test_earlier_weights_leave_their_rarity_and_their_types(config: RankerConfig) -> None:
    pytest.importorskip("torch")
    train(config)
    later = replace(config, out=config.out.with_name("later.safetensors"), earlier=config.out, seed=5)
    train(later)
    first, second = read_safetensors(config.out), read_safetensors(later.out)
    assert np.array_equal(first["type.answers"], second["type.answers"])
    assert np.array_equal(first["rarity"], second["rarity"])
    assert not np.array_equal(first["linear"], second["linear"])


def test_a_hop_of_a_question_has_its_bridge_filled_in(data: Path) -> None:
    _, asked = questions_in("steps", data)
    assert [one.question for one in asked[:2]] == ["What is the author of Red Ulm?", "Where was Ann Ulmson born?"]
    assert [one.answers for one in asked[:2]] == [("Ann Ulmson",), ("Ulm",)]
    assert {one.group for one in asked[:2]} == {0}


def test_a_hop_written_as_a_relation_becomes_a_question() -> None:
    assert _as_question("The Voice >> record label") == "What is the record label of The Voice?"
    assert _as_question("When was Bath founded?") == "When was Bath founded?"


def test_questions_without_capitals_get_those_of_their_words(data: Path) -> None:
    _, asked = questions_in("nq", data)
    assert asked[0].question.startswith("Where was")
    assert asked[0].question.endswith("?")


def _example(seed: int) -> RankerExample:
    inputs = np.random.default_rng(seed).normal(size=(12, len(INPUTS))).astype(np.float32)
    gain = (inputs[:, 0] == inputs[:, 0].max()).astype(np.float32)
    nothing = Candidates([], [], [], [], np.zeros((0, 0), np.float32))
    return RankerExample(seed, ("x",), nothing, analyse("Who?"), inputs, gain, np.ones(12, bool))


def _ranker(net: dict[str, np.ndarray]) -> Ranker:
    blank = {
        "rarity": np.zeros(BUCKETS, np.uint8),
        "type.questions": np.zeros((1, 1)),
        "type.answers": np.zeros((1, 1)),
    }
    return Ranker({**blank, **net})


def test_an_ensemble_is_one_network_that_scores_as_its_members_do_on_average(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    sets = {("nq", "bm25"): [_example(seed) for seed in range(6)]}
    small = RankerConfig(tmp_path, tmp_path, steps=5, batch=4, spans=12, members=1)
    both = _ranker(train_ranker(sets, replace(small, members=2)))
    alone = [_ranker(train_ranker(sets, replace(small, seed=seed))) for seed in (0, 1)]
    inputs = _example(9).inputs
    # the mean of two scores and the score of the mean are added up in another order
    assert np.allclose(both.score(inputs), np.mean([one.score(inputs) for one in alone], axis=0), atol=1e-5)
    assert not np.allclose(alone[0].score(inputs), alone[1].score(inputs), atol=1e-3)
