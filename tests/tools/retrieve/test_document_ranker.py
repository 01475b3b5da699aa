"""Documents ranked by the entities they name."""

import numpy as np
import pytest

from ras_agent.tools.kg.arrays import SparseRows
from ras_agent.tools.retrieve.document_ranker import DocumentRanker, document_scores

# entity 0 in documents 0, 1; entity 1 in 1 (twice); entity 2 in none; entity 3 in 0, 1, 2, 3
MENTIONS = SparseRows.counted(
    np.array([0, 0, 1, 1, 3, 3, 3, 3]), np.array([0, 1, 1, 1, 0, 1, 2, 3]), (4, 5)
)
PROBABILITIES = np.array([0.5, 0.25, 0.9, 0.125], dtype=np.float32)


@pytest.mark.parametrize(
    ("ranker", "expected"),
    [
        (DocumentRanker(), [0.75, 1.75, 0.25, 0.25, 0]),
        (DocumentRanker(top=3), [0.5, 1.5, 0, 0, 0]),
        (DocumentRanker(top=2), [0.5, 0.5, 0, 0, 0]),
        (DocumentRanker(top=0, weight="one"), [2, 3, 1, 1, 0]),
        (DocumentRanker(top=0, weight="score"), [0.625, 0.875, 0.125, 0.125, 0]),
        (DocumentRanker(top=3, weight="score-rarity"), [0.25, 0.5, 0, 0, 0]),
        (DocumentRanker(power=2), [0.3125, 1.3125, 0.0625, 0.0625, 0]),
        (DocumentRanker(top=0, weight="one", length=1), [1, 1, 1, 1, 0]),
        (
            DocumentRanker(top=0, weight="one", length=2),
            [0.5, pytest.approx(1 / 3), 1, 1, 0],
        ),
    ],
)
def test_documents_add_up_what_their_entities_weigh(
    ranker: DocumentRanker, expected: list[float]
) -> None:
    assert document_scores(PROBABILITIES, MENTIONS, ranker).tolist() == expected


def test_twenty_entities_count_by_default() -> None:
    # entity n is only in document n, and is less likely than the one before it
    each = np.arange(25)
    scores = document_scores(1 / (2.0 + each), SparseRows.counted(each, each, (25, 25)))
    assert scores.tolist() == [1] * 20 + [0] * 5


def test_what_no_document_names_takes_a_place_among_the_best_and_adds_nothing() -> None:
    assert document_scores(PROBABILITIES, MENTIONS, DocumentRanker(top=1)).tolist() == [
        0,
        0,
        0,
        0,
        0,
    ]
    others = np.array([0.3, 0.3], dtype=np.float32)  # of nodes that are no entities
    two, five = DocumentRanker(top=2), DocumentRanker(top=5)
    assert document_scores(PROBABILITIES, MENTIONS, two, others).tolist() == [
        0.5,
        0.5,
        0,
        0,
        0,
    ]
    assert document_scores(PROBABILITIES, MENTIONS, five, others).tolist() == [
        0.5,
        1.5,
        0,
        0,
        0,
    ]


def test_entities_that_are_all_but_certain_keep_their_order() -> None:
    # probabilities that differ by less than 2e-8
    logits = np.array([18.0, 20.0, 0.0, 19.0])
    probabilities = 1 / (1 + np.exp(-logits))
    assert document_scores(
        probabilities, MENTIONS, DocumentRanker(top=1, weight="one")
    ).tolist() == [0, 1, 0, 0, 0]
    certain = np.ones(4)
    assert document_scores(
        certain, MENTIONS, DocumentRanker(top=1, weight="one")
    ).tolist() == [1, 1, 0, 0, 0]


def test_equal_entities_are_taken_in_their_order() -> None:
    equal = np.full(4, 0.5, dtype=np.float32)
    assert document_scores(
        equal, MENTIONS, DocumentRanker(top=1, weight="one")
    ).tolist() == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("ranker", [{"top": -1}, {"weight": "idf"}, {"length": -0.5}])
def test_an_unknown_way_to_rank_is_refused(ranker: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="a document ranker needs"):
        DocumentRanker(**ranker)  # type: ignore[arg-type]
