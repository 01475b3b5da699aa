"""Ranking scores against literals, and against pytrec_eval's through ir-measures on generated rankings."""

import json
import random
from pathlib import Path

import pytest

from ras_agent.contracts.errors import IngestError
from ras_agent.contracts.records import Passage
from ras_agent.eval.formats import load_questions
from ras_agent.eval.metrics import Outcome, find_metric
from ras_agent.eval.metrics.ranking import (
    all_recalled_at,
    ceilings,
    hit_at,
    recall_at,
    reciprocal_rank,
)
from ras_agent.eval.question import Question


def test_recall_counts_distinct_gold_ids_in_the_first_k() -> None:
    assert recall_at(2, ["a", "b", "c"], ["a", "c"]) == 0.5
    assert recall_at(3, ["a", "b", "c"], ["a", "c", "c"]) == 1.0
    assert recall_at(5, ["a"], []) == 0.0


def test_the_ceiling_is_the_mean_score_of_perfect_rankings() -> None:
    golds = [("a", "b"), ("a", "b", "c", "d")]
    names = ("recall@2", "all_recall@2", "recall@5", "recall", "mrr", "recall@x")
    assert ceilings(names, golds) == {"recall@2": 0.75, "all_recall@2": 0.5}
    # a name that is listed twice is found once
    assert ceilings(["recall@1"], [("a", "a")]) == {}
    assert ceilings(["recall@1"], []) == {}


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
        golds[f"q{number}"] = set(
            generator.sample([*ids, "x", "y"], generator.randint(1, min(4, len(ids))))
        )
    qrels = [
        measures.Qrel(query, name, 1)
        for query, gold in golds.items()
        for name in sorted(gold)
    ]
    run = [
        measures.ScoredDoc(query, name, -float(place))
        for query, names in rankings.items()
        for place, name in enumerate(names)
    ]
    wanted = [
        measures.R @ 2,
        measures.R @ 5,
        measures.RR,
        measures.Success @ 1,
        measures.Success @ 3,
    ]
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
        assert ours[found.measure](rankings[query], golds[query]) == pytest.approx(
            found.value
        ), (query, found.measure)


@pytest.mark.parametrize("grade", ["NaN", "-Infinity", "1" + 400 * "0"])
def test_a_grade_that_is_not_finite_is_an_error_where_it_is_read(
    grade: str, tmp_path: Path
) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(
        f'{{"id": "q", "question": "?", "answers": [], "relevance": {{"bell": {grade}}}}}\n'
    )
    with pytest.raises(
        IngestError,
        match=r"q.jsonl line 1: the grade of 'bell' should be a finite number, found ",
    ):
        load_questions(file)
    question = Question(
        "q", "?", (), metadata={"relevance": {"bell": json.loads(grade)}}
    )
    with pytest.raises(
        IngestError,
        match="question 'q': the grade of 'bell' should be a finite number, found ",
    ):
        _ = question.relevance


def test_a_users_own_word_under_relevance_is_no_grade() -> None:
    question = Question(
        "q",
        "?",
        (),
        supporting=("bell",),
        by_title=False,
        metadata={"relevance": "high"},
    )
    outcome = Outcome("", passages=(Passage("bell", "Bell was born."),))
    assert find_metric("ndcg@5").score(question, outcome) == 1.0
