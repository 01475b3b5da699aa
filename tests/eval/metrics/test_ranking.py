"""Ranking scores against literals, and against pytrec_eval's through ir-measures on generated rankings."""

import random

import pytest

from ras_agent.eval.metrics import Outcome, find_metric
from ras_agent.eval.metrics.ranking import all_recalled_at, hit_at, recall_at, reciprocal_rank
from ras_agent.eval.question import Question
from ras_agent.records import Passage


def test_recall_counts_distinct_gold_ids_in_the_first_k() -> None:
    assert recall_at(2, ["a", "b", "c"], ["a", "c"]) == 0.5
    assert recall_at(3, ["a", "b", "c"], ["a", "c", "c"]) == 1.0
    assert recall_at(5, ["a"], []) == 0.0


def test_all_recalled_needs_every_gold_id() -> None:
    assert all_recalled_at(2, ["a", "b", "c"], ["a", "c"]) == 0.0
    assert all_recalled_at(3, ["a", "b", "c"], ["a", "c"]) == 1.0


def test_a_repeated_id_takes_one_place() -> None:
    assert recall_at(2, ["a", "a", "b"], ["b"]) == 1.0
    assert reciprocal_rank(["a", "a", "b"], ["b"]) == 0.5


def test_a_hit_is_any_gold_id() -> None:
    assert hit_at(2, ["a", "b", "c"], ["b", "x"]) == 1.0
    assert hit_at(1, ["a", "b", "c"], ["b", "x"]) == 0.0
    assert hit_at(1, [], []) == 0.0


def test_reciprocal_rank_counts_from_one() -> None:
    assert reciprocal_rank(["a", "b", "c"], ["c", "b"]) == 0.5
    assert reciprocal_rank(["a"], ["x"]) == 0.0


def test_200_rankings_score_as_ir_measures_scores_them() -> None:
    measures = pytest.importorskip("ir_measures")
    generator = random.Random(7)
    rankings: dict[str, list[str]] = {}
    golds: dict[str, set[str]] = {}
    for number in range(200):
        ids = [f"p{place}" for place in range(generator.randint(1, 12))]
        rankings[f"q{number}"] = generator.sample(ids, len(ids))
        golds[f"q{number}"] = set(generator.sample([*ids, "x", "y"], generator.randint(1, min(4, len(ids)))))
    qrels = [measures.Qrel(query, name, 1) for query, gold in golds.items() for name in sorted(gold)]
    run = [
        measures.ScoredDoc(query, name, -float(place))
        for query, names in rankings.items()
        for place, name in enumerate(names)
    ]
    wanted = [measures.R @ 2, measures.R @ 5, measures.RR, measures.Success @ 1, measures.Success @ 3]
    ours = {
        measures.R @ 2: lambda names, gold: recall_at(2, names, gold),
        measures.R @ 5: lambda names, gold: recall_at(5, names, gold),
        measures.RR: reciprocal_rank,
        measures.Success @ 1: lambda names, gold: hit_at(1, names, gold),
        measures.Success @ 3: lambda names, gold: hit_at(3, names, gold),
    }
    scored = list(measures.iter_calc(wanted, qrels, run))
    assert len(scored) == 200 * len(wanted)
    for found in scored:
        query = found.query_id
        assert ours[found.measure](rankings[query], golds[query]) == pytest.approx(found.value), (query, found.measure)


def test_a_users_own_word_under_relevance_is_no_grade() -> None:
    question = Question("q", "?", (), supporting=("bell",), by_title=False, metadata={"relevance": "high"})
    outcome = Outcome("", passages=(Passage("bell", "Bell was born."),))
    assert find_metric("ndcg@5").score(question, outcome) == 1.0
