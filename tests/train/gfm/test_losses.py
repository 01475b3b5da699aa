"""The losses of GFM training against their formulas."""

import math

import pytest

torch = pytest.importorskip("torch")

from ras_agent.train.gfm.losses import document_loss, entity_loss, ranking_loss  # noqa: E402

LOGITS = torch.tensor([[2.0, -1.0, 0.0, -3.0]])
TARGETS = torch.tensor([[1.0, 0.0, 1.0, 0.0]])
P = [1 / (1 + math.exp(-one)) for one in (2.0, -1.0, 0.0, -3.0)]


def test_the_entity_loss_averages_targets_and_negatives_apart() -> None:
    expected = -(math.log(P[0]) + math.log(P[2])) / 2 - (math.log(1 - P[1]) + math.log(1 - P[3])) / 2
    assert float(entity_loss(LOGITS, TARGETS)) == pytest.approx(expected)


def test_the_ranking_loss_is_the_cross_entropy_of_scaled_probabilities() -> None:
    expected = -(math.log(P[0] / sum(P)) + math.log(P[2] / sum(P))) / 2
    assert float(ranking_loss(LOGITS, TARGETS)) == pytest.approx(expected)


def test_the_document_loss_ranks_what_entities_add_up_to() -> None:
    shares = torch.tensor([[0.5, 0.0, 0.0, 1.0], [0.5, 1.0, 1.0, 0.0]]).to_sparse()
    scores = [0.5 * P[0] + P[3], 0.5 * P[0] + P[1] + P[2]]
    expected = -math.log(scores[1] / sum(scores))
    assert float(document_loss(LOGITS, shares, torch.tensor([[0.0, 1.0]]))) == pytest.approx(expected, rel=1e-5)


def test_losses_stay_finite_for_extreme_logits() -> None:
    extreme = torch.tensor([[200.0, -200.0, 200.0, -200.0]], requires_grad=True)
    for loss in (entity_loss, ranking_loss):
        value = loss(extreme, 1 - TARGETS)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(extreme.grad).all()
