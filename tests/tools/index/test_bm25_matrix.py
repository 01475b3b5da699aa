"""BM25 scores as sparse columns."""

import math
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest

from ras_agent.tools.index.bm25_matrix import BM25Matrix, BM25Parameters, build_matrix
from ras_agent.tools.index.tokenise import Tokeniser
from tests.messages import says

TEXTS = ["red fish blue fish", "one fish", "blue sky", "nothing of it"]
PLAIN = Tokeniser(None)


def test_scores_follow_the_formula() -> None:
    scores = build_matrix(TEXTS, PLAIN, BM25Parameters(k1=1.5, b=0.75)).scores(["fish", "sky"])
    average = (4 + 2 + 2 + 3) / 4

    def part(count: int, length: int) -> float:
        return count / (count + 1.5 * (0.25 + 0.75 * length / average))

    fish, sky = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5)), math.log(1 + (4 - 1 + 0.5) / (1 + 0.5))
    assert scores.tolist() == pytest.approx([fish * part(2, 4), fish * part(1, 2), sky * part(1, 2), 0])


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire", "bm25l", "bm25+"])
def test_scores_are_those_of_bm25s(method: Any) -> None:
    model = bm25s.BM25(k1=1.2, b=0.6, delta=0.7, method=method)
    model.index([PLAIN.terms(text) for text in TEXTS], show_progress=False)
    matrix = build_matrix(TEXTS, PLAIN, BM25Parameters(k1=1.2, b=0.6, delta=0.7, method=method))
    for terms in (["fish"], ["blue", "one"], ["fish", "fish", "it"]):
        theirs = model.get_scores(terms)
        # where a variant gives a score to passages without the terms, ours leaves it out
        np.testing.assert_allclose(
            matrix.scores(terms), theirs - (theirs[3] if "it" not in terms else theirs[2]), atol=1e-6
        )


def test_unknown_terms_score_nothing() -> None:
    assert build_matrix(TEXTS, PLAIN).scores(["whale"]).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("texts", [[], ["", "..."]])
def test_a_corpus_without_terms_is_no_error(texts: list[str]) -> None:
    assert build_matrix(texts, PLAIN).scores(["fish"]).tolist() == [0.0] * len(texts)


@pytest.mark.parametrize("texts", [TEXTS, [], ["日本の川", "naïve café"]])
def test_saved_and_loaded_it_scores_the_same(tmp_path: Path, texts: list[str]) -> None:
    matrix = build_matrix(texts, PLAIN)
    matrix.save(tmp_path / "bm25")
    loaded = BM25Matrix.load(tmp_path / "bm25")
    terms = ["fish", "blue", "日本", "café"]
    assert loaded.scores(terms).tolist() == matrix.scores(terms).tolist()
    assert not loaded.weights.flags.owndata  # mapped, not read


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(ValueError, match=says("'okapi'", "known: lucene, robertson, atire, bm25l, bm25")):
        BM25Parameters(method="okapi")  # type: ignore[arg-type]
