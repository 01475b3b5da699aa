"""The packaged ranker: its weights fit this version, and wrong ones are refused by name."""

from pathlib import Path

import numpy as np
import pytest

from ras_agent.errors import WeightsError
from ras_agent.question_graph import QuestionGraph
from ras_agent.records import Passage
from ras_agent.tools.offline.answerer.rank import INPUTS, Ranker, packaged_ranker
from ras_agent.tools.offline.answerer.weights import read_safetensors
from ras_agent.tools.offline.question import analyse
from ras_agent.tools.offline.reading import read
from tests.messages import says

PASSAGES = [
    Passage(
        "leith", "The Water of Leith is a river that flows through Edinburgh to the sea at Leith.", "Water of Leith"
    ),
    Passage("thames", "The Thames is a river in England.", "Thames"),
]


def test_the_packaged_weights_are_for_this_versions_features() -> None:
    ranked = packaged_ranker().rank(analyse("Which river flows through Edinburgh?"), QuestionGraph(), read(PASSAGES))
    assert ranked[0].text == "Water of Leith"
    assert sum(one.share for one in ranked) == pytest.approx(1.0)
    assert [one.share for one in ranked] == sorted((one.share for one in ranked), reverse=True)


def test_weights_for_another_number_of_features_are_refused() -> None:
    few = np.zeros(len(INPUTS) - 1, np.float32)
    with pytest.raises(WeightsError, match=says(f"{len(INPUTS) - 1} features", f"this version has {len(INPUTS)}")):
        Ranker({"mean": few})


def test_missing_weights_are_told(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot be read"):
        read_safetensors(tmp_path / "none.safetensors")


def test_nothing_to_read_ranks_nothing() -> None:
    assert packaged_ranker().rank(analyse("Who?"), QuestionGraph(), []) == []
