"""The ranker's training: members of an ensemble become one network, and hops become questions."""

import numpy as np
import pytest

from ras_agent.tools.offline.answerer.features import Candidates
from ras_agent.tools.offline.answerer.question_words import BUCKETS
from ras_agent.tools.offline.answerer.rank import INPUTS, Ranker
from ras_agent.tools.offline.question import analyse
from ras_agent.train.ranker.config import SETS, Config
from ras_agent.train.ranker.examples import _as_question
from ras_agent.train.ranker.network import train_ranker
from ras_agent.train.ranker.spans import Example


def _example(seed: int) -> Example:
    inputs = np.random.default_rng(seed).normal(size=(12, len(INPUTS))).astype(np.float32)
    gain = (inputs[:, 0] == inputs[:, 0].max()).astype(np.float32)
    nothing = Candidates([], [], [], [], np.zeros((0, 0), np.float32))
    return Example(seed, ("x",), nothing, analyse("Who?"), inputs, gain, np.ones(12, bool))


def _ranker(net: dict[str, np.ndarray]) -> Ranker:
    blank = {
        "rarity": np.zeros(BUCKETS, np.uint8),
        "type.questions": np.zeros((1, 1)),
        "type.answers": np.zeros((1, 1)),
    }
    return Ranker({**blank, **net})


def test_an_ensemble_is_one_network_that_scores_as_its_members_do_on_average(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("torch")
    sets = [[_example(seed) for seed in range(6)], *([[]] * (len(SETS) - 1))]
    config = {"steps": 5, "batch": 4, "spans": 12}
    both = _ranker(train_ranker(sets, Config(tmp_path, tmp_path, members=2, **config)))
    alone = [_ranker(train_ranker(sets, Config(tmp_path, tmp_path, members=1, seed=seed, **config))) for seed in (0, 1)]
    inputs = _example(9).inputs
    assert np.allclose(both.score(inputs), np.mean([one.score(inputs) for one in alone], axis=0), atol=1e-5)
    assert not np.allclose(alone[0].score(inputs), alone[1].score(inputs), atol=1e-3)


def test_a_hop_told_as_a_relation_becomes_a_question() -> None:
    assert _as_question("The Voice >> record label") == "What is the record label of The Voice?"
    assert _as_question("When was Bath founded?") == "When was Bath founded?"
