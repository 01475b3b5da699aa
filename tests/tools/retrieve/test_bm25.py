"""BM25 retrieval, and its agreement with rank-bm25."""

from collections import Counter
from math import log
from typing import Any

import numpy as np
import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.index.bm25_matrix import BM25Parameters
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.index.tokenise import Tokeniser
from ras_agent.tools.retrieve.bm25 import BM25Retriever
from ras_agent.tools.retrieve.ranking import Ranking, top_k
from ras_agent.tools.retrieve.registered import retriever_over

PLAIN = Tokeniser(None)


def passages(*texts: str) -> list[Passage]:
    return [Passage(str(number), text) for number, text in enumerate(texts)]


def found(retriever: Any, query: str, k: int = 10) -> list[str]:
    return [hit.passage.id for hit in retriever.retrieve(query, k)]


def test_passages_that_share_no_term_are_no_hits() -> None:
    retriever = BM25Retriever.from_passages(passages("a red fish", "blue sky", "fish"))
    assert found(retriever, "fishes") == ["2", "0"]
    assert found(retriever, "whale") == []


def test_a_query_of_stop_words_has_no_hits() -> None:
    assert (
        found(BM25Retriever.from_passages(passages("to be or not to be")), "of the and")
        == []
    )


def test_titles_are_searched() -> None:
    corpus = [
        Passage("a", "He was born in 1847.", "Alexander Graham Bell"),
        Passage("b", "He was born in 1879."),
    ]
    assert found(BM25Retriever.from_passages(corpus), "When was Bell born?") == [
        "a",
        "b",
    ]


def test_a_term_asked_twice_counts_twice() -> None:
    retriever = BM25Retriever.from_passages(passages("fish", "sky", "it"))
    (once,), (twice,) = retriever.retrieve("fish"), retriever.retrieve("fish fish")
    assert twice.score == pytest.approx(2 * once.score)


def test_other_settings_than_the_index_has_are_indexed_in_memory() -> None:
    index = PassageIndex.in_memory(passages("fishes", "fish", "sky"))
    assert found(retriever_over(index, "bm25"), "fish") == ["0", "1"]
    assert found(retriever_over(index, "bm25", tokeniser=PLAIN), "fish") == ["1"]


def random_corpus(
    seed: int, *, size: int = 200, vocabulary: int = 60
) -> tuple[list[Passage], list[str]]:
    """Passages and queries of made-up words, frequent ones in more than half of the passages."""
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, vocabulary + 1)
    words = [f"w{number}" for number in range(vocabulary)]

    def text(length: int) -> str:
        return " ".join(rng.choice(words, length, p=chances / chances.sum()))

    return passages(*(text(int(rng.integers(0, 40))) for _ in range(size))), [
        text(4) for _ in range(10)
    ]


def by_rank_bm25(
    corpus: list[Passage], query: str, parameters: BM25Parameters
) -> Ranking:
    """Return rank-bm25's scores of the passages that share a term with the query."""
    rank_bm25 = pytest.importorskip("rank_bm25")
    texts, terms = [PLAIN.terms(passage.text) for passage in corpus], PLAIN.terms(query)
    k1, b = parameters.k1, parameters.b
    if parameters.method == "bm25+":
        model = rank_bm25.BM25Plus(texts, k1=k1, b=b, delta=parameters.delta)
    else:
        model = rank_bm25.BM25Okapi(texts, k1=k1, b=b, epsilon=0)
    if parameters.method == "lucene":
        holding = Counter(term for counts in model.doc_freqs for term in counts)
        model.idf = {
            term: log(1 + (len(texts) - count + 0.5) / (count + 0.5))
            for term, count in holding.items()
        }
    scores = model.get_scores(terms)
    scores[[set(terms).isdisjoint(counts) for counts in model.doc_freqs]] = 0
    return top_k(scores.astype(np.float32), len(corpus))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("parameters", "scale"),
    [
        (BM25Parameters(), 2.5),  # rank-bm25 keeps the factor k1 + 1
        (BM25Parameters(k1=0.9, b=0.4), 1.9),
        (BM25Parameters(method="robertson"), 2.5),
        (BM25Parameters(k1=1.2, b=0.9, method="robertson"), 2.2),
        (BM25Parameters(method="bm25+"), 1.0),
        (BM25Parameters(k1=2.0, b=0.3, method="bm25+", delta=1.0), 1.0),
    ],
)
def test_the_ranking_is_that_of_rank_bm25(
    seed: int, parameters: BM25Parameters, scale: float
) -> None:
    corpus, queries = random_corpus(seed)
    ours = BM25Retriever.from_passages(corpus, tokeniser=PLAIN, parameters=parameters)
    for query in queries:
        mine, theirs = (
            ours.rank(query, len(corpus)),
            by_rank_bm25(corpus, query, parameters),
        )
        assert sorted(mine.rows.tolist()) == sorted(theirs.rows.tolist())
        by_row, their_by_row = np.argsort(mine.rows), np.argsort(theirs.rows)
        gap = theirs.scores[their_by_row] - np.float32(scale) * mine.scores[by_row]
        # bm25+ gives every passage something for every term
        constant = gap[:1] if parameters.method == "bm25+" else 0
        np.testing.assert_allclose(gap, np.zeros_like(gap) + constant, atol=1e-4)
