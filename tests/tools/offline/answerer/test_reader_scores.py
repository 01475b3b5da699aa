"""Reader spans turned into scores of candidates."""

import numpy as np
import pytest

from ras_agent.records import Span
from ras_agent.tools.offline.answerer.rank import expected_overlap


def test_a_span_that_is_a_candidate_gives_it_all_its_weight() -> None:
    assert expected_overlap([[Span(4, 10, 3.0)]], [(0, 4, 10)]).tolist() == [1.0]


def test_half_a_span_is_worth_its_character_f1() -> None:
    # 3 shared characters of 6 and 3: 2 * 3 / 9
    assert expected_overlap([[Span(4, 10, 3.0)]], [(0, 4, 7)]) == pytest.approx([2 / 3])


def test_a_candidate_elsewhere_is_worth_nothing() -> None:
    assert expected_overlap([[Span(4, 10, 3.0)], []], [(0, 20, 25), (1, 4, 10)]).tolist() == [0.0, 0.0]


def test_spans_of_one_passage_share_its_weight_by_their_logits() -> None:
    spans = [[Span(0, 4, float(np.log(3))), Span(6, 9, 0.0)]]
    assert expected_overlap(spans, [(0, 0, 4), (0, 6, 9)]) == pytest.approx([0.75, 0.25])


def test_passages_share_by_their_best_span_at_a_temperature_of_four() -> None:
    spans = [[Span(0, 4, 4 * float(np.log(3)))], [Span(0, 4, 0.0)]]
    assert expected_overlap(spans, [(0, 0, 4), (1, 0, 4)]) == pytest.approx([0.75, 0.25])


def test_without_any_span_nothing_is_worth_anything() -> None:
    assert expected_overlap([[], []], [(0, 0, 4)]).tolist() == [0.0]
