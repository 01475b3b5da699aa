"""BM25 scores as sparse columns."""

import math
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.index.bm25_matrix import (
    BM25Matrix,
    BM25Parameters,
    TermPart,
    build_matrix,
)
from ras_agent.tools.index.passages import row_of, terms_of
from ras_agent.tools.index.postings import Postings
from ras_agent.tools.index.segment import from_rows, load
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.store.passages import SearchedColumns
from ras_agent.tools.store.sqlite import SqliteDatabase
from tests.messages import says

TEXTS = ["red fish blue fish", "one fish", "blue sky", "nothing of it"]
PLAIN = Tokeniser(None)


def test_scores_follow_the_formula() -> None:
    scores = build_matrix(TEXTS, PLAIN, BM25Parameters(k1=1.5, b=0.75)).scores(
        ["fish", "sky"]
    )
    average = (4 + 2 + 2 + 3) / 4

    def part(count: int, length: int) -> float:
        return count / (count + 1.5 * (0.25 + 0.75 * length / average))

    fish, sky = (
        math.log(1 + (4 - 2 + 0.5) / (2 + 0.5)),
        math.log(1 + (4 - 1 + 0.5) / (1 + 0.5)),
    )
    assert scores.tolist() == pytest.approx(
        [fish * part(2, 4), fish * part(1, 2), sky * part(1, 2), 0]
    )


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire", "bm25l", "bm25+"])
def test_scores_are_those_of_bm25s(method: Any) -> None:
    model = bm25s.BM25(k1=1.2, b=0.6, delta=0.7, method=method)
    model.index([PLAIN.terms(text) for text in TEXTS], show_progress=False)
    matrix = build_matrix(
        TEXTS, PLAIN, BM25Parameters(k1=1.2, b=0.6, delta=0.7, method=method)
    )
    for terms in (["fish"], ["blue", "one"], ["fish", "fish", "it"]):
        theirs = model.get_scores(terms)
        # where a variant gives a score to passages without the terms, ours leaves it out
        np.testing.assert_allclose(
            matrix.scores(terms),
            theirs - (theirs[3] if "it" not in terms else theirs[2]),
            atol=1e-6,
        )


def test_unknown_terms_score_nothing() -> None:
    assert build_matrix(TEXTS, PLAIN).scores(["whale"]).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("texts", [[], ["", "..."]])
def test_a_corpus_without_terms_is_no_error(texts: list[str]) -> None:
    assert build_matrix(texts, PLAIN).scores(["fish"]).tolist() == [0.0] * len(texts)


@pytest.mark.parametrize("texts", [TEXTS, [], ["日本の川", "naïve café"]])
def test_saved_and_loaded_it_scores_the_same(tmp_path: Path, texts: list[str]) -> None:
    passages = [Passage(f"{number}", text) for number, text in enumerate(texts)]
    rows = [row_of(passage, cell, cell, PLAIN) for cell, passage in enumerate(passages)]
    cells = list(range(len(texts)))
    keys = [row.keys for row in rows]
    terms_of_rows = [row.terms for row in rows]
    columns = SearchedColumns(cells, cells, keys, terms_of_rows)
    saved = from_rows(0, len(texts), columns, SqliteDatabase())
    saved.save(tmp_path)
    loaded = load(tmp_path, 0, len(texts))
    assert loaded is not None
    matrix = BM25Matrix([TermPart(0, loaded.terms)], loaded.columns["length"], None)
    for terms in (["fish", "blue"], ["日本", "川"], ["café"]):
        assert (
            matrix.scores(terms).tolist()
            == build_matrix(texts, PLAIN).scores(terms).tolist()
        )
        assert matrix.having(terms[0]).tolist() == [
            row for row, text in enumerate(texts) if terms[0] in PLAIN.terms(text)
        ]
    assert not loaded.terms.slots.flags.owndata  # mapped, not read


def test_passages_in_parts_and_in_another_order_score_as_at_once() -> None:
    """Four slots in two segments, of which the second is no passage, and the last comes first."""
    rows = [terms_of(text, PLAIN) for text in TEXTS]
    parts = [
        TermPart(0, Postings.of_terms([blob for blob, _ in rows[:2]])),
        TermPart(2, Postings.of_terms([blob for blob, _ in rows[2:]])),
    ]
    matrix = BM25Matrix(
        parts, np.array([length for _, length in rows]), np.array([3, 0, 2])
    )
    expected = build_matrix([TEXTS[3], TEXTS[0], TEXTS[2]], PLAIN)
    for terms in (["fish"], ["blue", "it"], ["one"], ["fish", "fish", "sky"]):
        # float32
        assert matrix.scores(terms).tolist() == pytest.approx(
            expected.scores(terms).tolist(), abs=1e-6
        )
        assert matrix.having(terms[0]).tolist() == expected.having(terms[0]).tolist()
    part, whole = matrix.of_rows(np.array([0, 2])), expected.scores(["blue", "it"])
    assert part.scores(["blue", "it"]).tolist() == pytest.approx(
        whole[[0, 2]].tolist(), abs=1e-6
    )
    assert part.having("blue").tolist() == [1]
    assert part.of_rows(np.array([1])).having("blue").tolist() == [0]


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=says("'okapi'", "known: lucene, robertson, atire, bm25l, bm25"),
    ):
        BM25Parameters(method="okapi")  # type: ignore[arg-type]
