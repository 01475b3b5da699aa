"""The training of the confidence: from files of questions to weights that the answerer loads."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ras_agent.errors import SettingsError
from ras_agent.records import Passage
from ras_agent.tools.offline.answerer.confidence import SIGNS, Confidence
from ras_agent.tools.offline.answerer.weights import read_safetensors
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.train.confidence.train import SETS, ConfidenceConfig, find_without_support, fit_confidence, main, train
from ras_agent.train.ranker.examples import RankerQuestion

pytestmark = pytest.mark.slow("trainings")


def test_training_writes_weights_that_judge_and_a_card_that_says_how(data: Path) -> None:
    pytest.importorskip("torch")
    config = ConfidenceConfig(data, data / "confidence.safetensors", questions=6, folds=2, members=1, steps=20)
    card = train(config)
    assert 0 < Confidence(read_safetensors(config.out))(np.zeros(len(SIGNS))) < 1
    assert json.loads(config.out.with_suffix(".json").read_text()) == card
    assert set(card["data_licences"]) == set(SETS)
    assert set(card["signs"]) == set(SIGNS)


def test_the_same_training_writes_the_same_bytes(data: Path) -> None:
    pytest.importorskip("torch")
    for name in ("one", "two"):
        train(ConfidenceConfig(data, data / f"{name}.safetensors", questions=4, folds=2, members=1, steps=5))
    assert (data / "one.safetensors").read_bytes() == (data / "two.safetensors").read_bytes()


def test_passages_that_support_a_question_are_not_found_for_it() -> None:
    corpus = [Passage("bath", "Ann was born in Bath.", "Ann"), Passage("york", "Bo was born in York.", "Bo")]
    asked = [
        RankerQuestion("Where was Ann born?", ("Bath",), frozenset({"bath"})),
        RankerQuestion("Where was Bo born?", ("York",), frozenset({"york"})),
    ]
    found = list(find_without_support(BM25Retriever.from_passages(corpus), asked))
    assert [[passage.id for passage in one.passages] for one in found] == [["york"], ["bath"]]


def test_a_sign_of_good_answers_raises_the_confidence() -> None:
    signs = np.zeros((40, len(SIGNS)))
    signs[:20, 0] = 1.0
    f1 = np.array([1.0] * 16 + [0.0] * 4 + [1.0] * 4 + [0.0] * 16)
    confidence = Confidence(fit_confidence(signs, f1, np.ones(40), ridge=1e-3))
    # what was right in 16 of 20 cases may be trusted so far
    assert confidence(signs[0]) == pytest.approx(0.8, abs=0.01)
    assert confidence(signs[-1]) == pytest.approx(0.2, abs=0.01)


def test_answers_that_count_less_move_the_confidence_less() -> None:
    signs, f1 = np.zeros((2, len(SIGNS))), np.array([1.0, 0.0])
    confidence = Confidence(fit_confidence(signs, f1, np.array([3.0, 1.0]), ridge=1.0))
    assert confidence(signs[0]) == pytest.approx(0.75, abs=0.01)


def test_a_number_out_of_its_range_is_named_as_an_option() -> None:
    with pytest.raises(SettingsError, match="--folds has to be at least 2, got 1"):
        ConfidenceConfig(Path(), Path(), folds=1)


def test_the_command_needs_data_and_a_place_alone(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = data / "confidence.safetensors"
    monkeypatch.setattr(sys, "argv", ["train", "--data", str(data), "--out", str(out)])
    monkeypatch.setattr("ras_agent.train.confidence.train.train", lambda config: {"ridge": config.ridge})
    main()
    assert json.loads(capsys.readouterr().out) == {"ridge": 30.0}
