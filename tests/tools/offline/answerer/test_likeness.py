"""A proof in other words is like the question, a proof of something else is not."""

import pytest

from ras_agent.contracts.errors import MissingExtra
from ras_agent.text.words import stem_set
from ras_agent.tools.offline.answerer import likeness
from ras_agent.tools.offline.answerer.likeness import UNKNOWN, least_likeness

PROOF = "An S-band antenna was used for communication on the lunar flights."


def test_another_relation_is_less_like_than_the_same_one_in_other_words() -> None:
    words = "Which antenna was {} for communication on the lunar flights?"
    same = least_likeness(words.format("used"), PROOF, frozenset())
    alike = least_likeness(words.format("employed"), PROOF, frozenset())
    other = least_likeness(words.format("exported"), PROOF, frozenset())
    assert same == 1.0
    assert other < alike < same


def test_names_figures_and_words_that_need_not_be_said_do_not_count() -> None:
    question = "Which river did Ada Crane visit in 1911?"
    assert least_likeness(question, "It was visited.", stem_set("river")) == 1.0


def test_without_the_network_the_likeness_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(text: str) -> None:
        raise MissingExtra("the packaged MiniLM", "offline")

    monkeypatch.setattr(likeness, "_pieces", missing)
    assert least_likeness("Who exported it?", PROOF, frozenset()) == UNKNOWN
