"""The numbers that a training's options take, and the error for others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.weights.reader.train import ReaderTrainingConfig
from ras_agent.contracts.errors import SettingsError
from ras_agent.train.gfm.train import GFMTrainingConfig
from ras_agent.train.paths.train import PathTrainingConfig
from tests.messages import says

HERE = Path("out")
NETWORK: dict[str, Any] = {"sets": (), "out": HERE}
FILES = {"data": HERE, "out": HERE}
PATHS = {"kb": (), "questions": (), "out": HERE}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("batch", 0, "--batch must be at least 1, got 0"),
        ("save_every", 0, "--save-every must be at least 1, got 0"),
        ("documents", -5, "--documents must be at least 0, got -5"),
        ("steps", -1, "--steps must be at least 0, got -1"),
        ("rate", -1e-3, "--rate must be at least 0 and finite, got -0.001"),
        ("rate", float("inf"), "--rate must be at least 0 and finite, got inf"),
        ("rate", float("nan"), "--rate must be at least 0 and finite, got nan"),
        ("dropout", 2.0, "--dropout must be at least 0 and at most 1, got 2.0"),
        ("dropout", -1.0, "--dropout must be at least 0 and at most 1, got -1.0"),
        ("labelled", 2.0, "--labelled must be at least 0 and at most 1, got 2.0"),
        ("alpha", 5.0, "--alpha must be at least 0 and at most 1, got 5.0"),
        ("share", 0.0, "--share must be above 0 and at most 1, got 0.0"),
        ("clip", -1.0, "--clip must be at least 0 and finite, got -1.0"),
        (
            "seed",
            -1,
            "--seed must be at least 0 and at most 9223372036854775807, got -1",
        ),
    ],
)
def test_a_number_out_of_its_range_raises_with_its_option(
    option: str, value: float, message: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        GFMTrainingConfig(**{**NETWORK, option: value})
    assert str(raised.value) == message


def test_the_ends_of_a_range_are_in_it() -> None:
    GFMTrainingConfig(
        **NETWORK,
        dropout=1.0,
        alpha=0.0,
        rate=0.0,
        share=1.0,
        batch=1,
        clip=0.0,
        seed=2**63 - 1,
    )


def test_a_training_of_no_step_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=says("nothing to train", "--steps", "--completion", "0")
    ):
        GFMTrainingConfig(**NETWORK, steps=0)
    assert GFMTrainingConfig(**NETWORK, steps=0, completion=1).steps == 0


def test_a_set_that_a_reader_is_to_learn_without_is_one_of_those_there_are() -> None:
    with pytest.raises(
        SettingsError, match=says("--without names no set", "moon", "squad")
    ):
        ReaderTrainingConfig(data=HERE, out=HERE, without="qamr,moon")


def test_a_path_encoders_options_name_what_they_take() -> None:
    with pytest.raises(
        SettingsError,
        match=says("--wording names", "unknown", "known: facts, relations, both"),
    ):
        PathTrainingConfig(**PATHS, wording="names")
    with pytest.raises(SettingsError, match="--kb once for each --questions"):
        PathTrainingConfig(**{**PATHS, "kb": (HERE,)})


@pytest.mark.parametrize(
    ("config", "given", "message"),
    [
        (
            PathTrainingConfig,
            {**PATHS, "epochs": 0},
            "--epochs must be at least 1, got 0",
        ),
        (
            PathTrainingConfig,
            {**PATHS, "batch": 0},
            "--batch must be at least 1, got 0",
        ),
        (
            ReaderTrainingConfig,
            {**FILES, "tokens": 64},
            "--tokens must be at least 68 and at most 512, got 64",
        ),
        (
            ReaderTrainingConfig,
            {**FILES, "held_out": 1.5},
            "--held-out must be at least 0 and at most 1, got 1.5",
        ),
    ],
)
def test_the_other_trainings_check_theirs(
    config: Callable[..., object], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        config(**given)
    assert str(raised.value) == message
