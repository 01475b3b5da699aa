"""The second stage: passages that complete those before them move up."""

from math import log
from pathlib import Path

import numpy as np
import pytest

from ras_agent.contracts.records import Passage
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.retrieve.completeness import Completeness
from ras_agent.tools.retrieve.ranking import Ranking

QUESTION = "Which river flows through the city where Alexander Graham Bell was born?"
BELL = Passage(
    "bell", "Bell, an inventor, was born in Edinburgh.", "Alexander Graham Bell"
)
MUSEUM = Passage(
    "museum",
    "A museum about Alexander Graham Bell, who was born elsewhere.",
    "Bell Museum",
)
LEITH = Passage(
    "leith", "The river flows through its capital to the sea.", "Water of Leith"
)
EDINBURGH = Passage("edinburgh", "The capital of Scotland.", "Edinburgh (Scotland)")
PARIS = Passage("paris", "The capital of France.", "Paris")


def reranked(
    *scored: tuple[Passage, float], query: str = QUESTION, k: int = 9
) -> list[str]:
    """Return the ids after a first ranking by these scores; the passages' order is that of the corpus."""
    passages = [passage for passage, _ in scored]
    scores = np.array([score for _, score in scored], dtype=np.float32)
    rows = np.argsort(-scores, kind="stable")
    found = Completeness(PassageIndex.in_memory(passages)).rank(
        query, Ranking(rows, scores[rows]), k
    )
    assert found.scores.tolist() == sorted(found.scores.tolist(), reverse=True)
    return [passages[row].id for row in found.rows.tolist()]


def wanted(
    question: set[str], scored: list[tuple[set[str], set[str], str, float]]
) -> list[tuple[int, float]]:
    """Rank passages, the best first, by the formula: all words, those of the text, the title's, the first score."""
    size = len(scored)

    def rarity(word: str) -> float:
        holding = sum(word in words for words, *_ in scored)
        return log(1 + (size - holding + 0.5) / (holding + 0.5)) if holding else 0.0

    whole = sum(map(rarity, question))
    ranked = [(0, scored[0][3] + 0.9)]
    while len(ranked) < size:
        before = [scored[place] for place, _ in ranked]
        held = set.union(*(words for words, *_ in before))
        gained = {
            place: score
            + 0.6 * sum(rarity(word) for word in question & words - held) / whole
            + 0.3
            * (
                bool(title)
                and any(set(title.split()) <= text for _, text, *_ in before)
            )
            for place, (words, _, title, score) in enumerate(scored)
            if place not in dict(ranked)
        }
        best = max(gained, key=lambda place: gained[place])
        ranked.append((best, min(gained[best], ranked[-1][1])))
    return ranked


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_each_next_passage_is_that_of_the_formula(size: int) -> None:
    # one word a letter, so that no stemming changes it; a title is a part of its passage's words
    question, texts = "k q x z", ["k m n", "q n", "q x", "m w", "x q z m", "n v"]
    titles, scores = ["m", "n", "q", "k m", "", "w"], [0.9, 0.8, 0.7, 0.5, 0.4, 0.1]
    passages = [Passage(str(n), texts[n], titles[n]) for n in range(size)]
    first = np.array(scores[:size], dtype=np.float32)
    found = Completeness(PassageIndex.in_memory(passages)).rank(
        question, Ranking(np.arange(size), first), size
    )
    if size == 1:
        assert (found.rows.tolist(), found.scores.tolist()) == (
            [0],
            pytest.approx([0.9]),
        )
        return
    words = [
        ({*texts[n].split(), *titles[n].split()}, set(texts[n].split()))
        for n in range(size)
    ]
    ranked = wanted(
        set(question.split()), [(*words[n], titles[n], scores[n]) for n in range(size)]
    )
    assert found.rows.tolist() == [row for row, _ in ranked]
    assert found.scores.tolist() == pytest.approx(
        [score for _, score in ranked], abs=1e-4
    )


def test_forty_passages_are_ranked_again() -> None:
    others = [
        (Passage(f"o{number}", "Nothing.", f"Other {number}"), 0.6 - number / 200)
        for number in range(38)
    ]
    assert reranked((BELL, 1), *others, (LEITH, 0.4), k=50)[1] == "leith"
    more = Passage("more", "Nothing.", "Another")
    assert reranked((BELL, 1), *others, (more, 0.41), (LEITH, 0.4), k=50)[-1] == "leith"


def test_no_first_hits_change_where_more_are_asked_for() -> None:
    scored = [(BELL, 1), (MUSEUM, 0.6), (LEITH, 0.5), (EDINBURGH, 0.4), (PARIS, 0.3)]
    assert [reranked(*scored, k=k) for k in (1, 2, 3, 4)] == [
        reranked(*scored)[:k] for k in (1, 2, 3, 4)
    ]


def test_a_passage_that_the_second_one_names_moves_up() -> None:
    second = Passage("second", "It flows by Paris through the city.", "Flow")
    other = Passage("other", "The capital of Spain.", "Madrid")
    assert reranked((BELL, 1), (second, 0.6), (other, 0.5), (PARIS, 0.3)) == [
        "bell",
        "second",
        "paris",
        "other",
    ]


def test_what_the_second_passage_says_counts_no_more_for_the_third() -> None:
    again = Passage("again", "The river flows through another city.", "Danube")
    assert reranked((BELL, 1), (LEITH, 0.6), (PARIS, 0.5), (again, 0.3))[2] == "paris"
    assert reranked((BELL, 1), (PARIS, 0.5), (again, 0.3))[1] == "again"


def test_what_the_question_asks_and_the_first_passage_does_not_say_comes_next() -> None:
    found = reranked((BELL, 1), (MUSEUM, 0.6), (PARIS, 0.5), (LEITH, 0.4))
    assert found == ["bell", "leith", "museum", "paris"]


def test_what_the_first_passage_names_comes_before_what_it_does_not() -> None:
    assert reranked((BELL, 1), (PARIS, 0.5), (EDINBURGH, 0.4)) == [
        "bell",
        "edinburgh",
        "paris",
    ]
    assert reranked((BELL, 1), (PARIS, 0.5), (EDINBURGH, 0.1)) == [
        "bell",
        "paris",
        "edinburgh",
    ]


def test_another_piece_of_the_first_passages_document_is_not_named_by_it() -> None:
    first = Passage("1", "Edinburgh is old.", "Edinburgh")
    piece = Passage("2", "It has a castle.", "Edinburgh")
    assert reranked((first, 1), (PARIS, 0.5), (piece, 0.4)) == ["1", "paris", "2"]


def test_a_passage_without_a_title_is_named_by_none() -> None:
    bare = Passage("bare", "The capital of Scotland.", "")
    assert reranked((BELL, 1), (PARIS, 0.5), (bare, 0.4)) == ["bell", "paris", "bare"]


def test_the_first_passage_stays_first() -> None:
    assert reranked((BELL, 0.51), (LEITH, 0.5), (EDINBURGH, 0.5))[0] == "bell"


def test_rare_words_count_more_than_common_ones() -> None:
    common = [
        (Passage(f"c{number}", "A river.", f"Number {number}"), 0.31)
        for number in range(5)
    ]
    rare = Passage("rare", "It flows through.", "Rare")
    assert reranked((BELL, 1), *common, (rare, 0.3))[:2] == ["bell", "rare"]


def test_words_that_no_passage_holds_change_nothing() -> None:
    assert reranked((PARIS, 1), (MUSEUM, 0.6), (LEITH, 0.5), query="Xylophones?") == [
        "paris",
        "museum",
        "leith",
    ]
    scored = (BELL, 1), (MUSEUM, 0.6), (LEITH, 0.05)
    assert reranked(*scored, query="A river with xylophones and marimbas") == [
        "bell",
        "leith",
        "museum",
    ]


def test_equal_scores_are_in_corpus_order_and_no_more_than_k_come_back() -> None:
    twins = [
        (Passage(f"t{number}", "Nothing.", f"Twin {number}"), 0.5)
        for number in range(4)
    ]
    assert reranked(*twins[:2], (BELL, 1), *twins[2:], k=3) == ["bell", "t0", "t1"]


@pytest.mark.parametrize("scored", [[], [(BELL, 0.7)]])
def test_fewer_than_two_passages_are_left_as_they_are(
    scored: list[tuple[Passage, float]],
) -> None:
    assert reranked(*scored) == [passage.id for passage, _ in scored]


def test_a_passage_that_was_deleted_after_the_first_ranking_keeps_its_place_and_names_nothing(
    tmp_path: Path,
) -> None:
    index = PassageIndex.create(tmp_path / "i")
    index.add([Passage("bell", BELL.text, BELL.title, "bell.txt"), PARIS, EDINBURGH])
    reranker = Completeness(index)
    PassageIndex.open(tmp_path / "i").delete_document("bell.txt")
    scores = np.array([1, 0.5, 0.4], dtype=np.float32)
    assert reranker.rank("Bell", Ranking(np.arange(3), scores), 3).rows.tolist() == [
        0,
        1,
        2,
    ]
