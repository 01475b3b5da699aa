"""Does the graph pay: rows of retrievers, their costs, and the verdict in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RunError
from ras_agent.contracts.records import Passage
from ras_agent.eval.run.prices import Price, Prices
from ras_agent.eval.run.result import Result
from ras_agent.eval.study.graph_pays import (
    index_with_graph,
    rows_of,
    verdict,
)
from ras_agent.eval.study.tables import Spent, spent_by
from ras_agent.tools.index.store import PassageIndex

WALKING = ("ppr", "gfm")


def _results(
    scores: Sequence[float], tokens: int = 0, seconds: float = 1.0, at_once: int = 1
) -> list[Result]:
    used = {"calls": 1, "input_tokens": tokens, "output_tokens": 0, "cached_tokens": 0}
    usage = {**used, "by_model": {"openai:m": used}} if tokens else {}
    return [
        Result(
            f"q{n}",
            "?",
            scores={"f1": score},
            seconds=seconds,
            at_once=at_once,
            usage=usage,
        )
        for n, score in enumerate(scores)
    ]


RIGHT, HALF = [1.0] * 30, [1.0, 0.0] * 15


def test_those_with_a_graph_are_held_against_the_best_one_without() -> None:
    runs = {
        "dense": _results([0.0] * 30),
        "hybrid": _results(HALF),
        "ppr": _results(HALF),
        "gfm": _results(RIGHT),
    }
    dense, hybrid, ppr, gfm = rows_of(runs, ["f1"], "f1", WALKING)
    assert (dense.difference, hybrid.difference, dense.p) == (None, None, None)
    assert [(row.name, row.graph, row.n) for row in (hybrid, ppr)] == [
        ("hybrid", False, 30),
        ("ppr", True, 30),
    ]
    assert ppr.difference is not None
    assert gfm.difference is not None
    assert (ppr.difference.difference.mean, gfm.difference.difference.mean) == (
        0.0,
        0.5,
    )
    # two were tried, so that a p value counts twice
    assert gfm.p == pytest.approx(2 * gfm.difference.permutation_p)
    assert ppr.p == 1.0


def test_yes_is_said_with_the_gain_and_the_price_of_a_point() -> None:
    runs = {"bm25": _results(HALF, tokens=1000), "gfm": _results(RIGHT, tokens=1500)}
    said = verdict(rows_of(runs, ["f1"], "f1", WALKING), "f1")
    assert said.startswith(
        "Yes: over 30 questions gfm is better by +50.0 points of f1 (+"
    )
    assert said.endswith(
        "1 tried) to bm25, the best without, for 500 tokens more a question, 10 tokens a point."
    )


def test_no_is_said_where_the_graph_costs_points() -> None:
    runs = {"bm25": _results(RIGHT), "ppr": _results(HALF, seconds=3.0)}
    said = verdict(rows_of(runs, ["f1"], "f1", WALKING), "f1")
    assert said.startswith(
        "No: over 30 questions ppr, the best with a graph, is worse: -50.0 points of f1 ("
    )
    assert said.endswith("to bm25, the best without, for 2.00 s more a question.")


def test_no_is_said_where_too_few_questions_could_show_a_gain() -> None:
    runs = {"dense": _results([1, 0, 0, 1]), "ppr": _results([1, 1, 0, 1], seconds=0.5)}
    said = verdict(rows_of(runs, ["f1"], "f1", WALKING), "f1")
    assert said == (
        "No, not over these 4 questions: ppr, the best with a graph, has +25.0 points of f1 (-32.6 to +72.6, "
        "p = 1.000, 1 tried) to dense, the best without, for 0.50 s less a question; a difference of less than about "
        "53 points would not show here."
    )


def test_equal_scores_say_how_large_a_gain_would_have_had_to_be() -> None:
    few = {"dense": _results([1, 0]), "ppr": _results([1, 0])}
    assert verdict(rows_of(few, ["f1"], "f1", WALKING), "f1").endswith(
        "for 0.00 s less a question; none would show over so few, it takes 6."
    )
    more = {"dense": _results(HALF), "ppr": _results(HALF)}
    assert verdict(rows_of(more, ["f1"], "f1", WALKING), "f1").endswith(
        "; a gain on fewer than 6 questions, 20 points, would not show here."
    )


def test_seconds_that_were_measured_beside_other_questions_are_in_no_verdict() -> None:
    runs = {
        "bm25": _results(RIGHT, at_once=32),
        "ppr": _results(HALF, seconds=3.0, at_once=32),
    }
    assert verdict(rows_of(runs, ["f1"], "f1", WALKING), "f1").endswith(
        "to bm25, the best without."
    )


def test_questions_that_ended_in_an_error_leave_no_verdict() -> None:
    failed = [
        replace(result, error={"type": "ServerFailed", "message": "500"})
        for result in _results(HALF)
    ]
    runs = {"bm25": _results(HALF), "ppr": failed}
    assert verdict(rows_of(runs, ["f1"], "f1", WALKING), "f1") == (
        "No verdict: questions ended in an error, 30 of 30 with ppr, which says nothing of a retriever; --retry-errors "
        "asks them again."
    )


def test_the_best_of_several_has_to_pass_for_all_that_were_tried() -> None:
    plain, better = [0.0] * 40, [1.0] * 6 + [0.0] * 34  # p = 1 / 32 alone
    alone = verdict(
        rows_of(
            {"bm25": _results(plain), "gfm": _results(better)}, ["f1"], "f1", WALKING
        ),
        "f1",
    )
    assert alone.startswith("Yes")
    both = {"bm25": _results(plain), "ppr": _results(plain), "gfm": _results(better)}
    assert verdict(rows_of(both, ["f1"], "f1", WALKING), "f1").startswith(
        "No, not over these 40 questions"
    )


def test_without_both_kinds_there_is_no_verdict() -> None:
    for runs in ({"bm25": _results(HALF)}, {"ppr": _results(HALF)}):
        said = verdict(rows_of(runs, ["f1"], "f1", WALKING), "f1")
        assert said == "No verdict: it takes a retriever with a graph and one without."


def test_a_run_costs_money_where_all_its_models_have_a_price() -> None:
    results = _results([1.0, 0.0], tokens=1000, seconds=2.0)
    assert spent_by(results) == Spent(2.0, 1000.0, None, alone=True)
    assert spent_by(results, Prices({"m": Price(5.0, 0.0, 5.0)})) == Spent(
        2.0, 1000.0, 0.005, alone=True
    )
    assert spent_by(_results([1.0], seconds=0.25)) == Spent(0.25, 0.0, None, alone=True)


def test_an_index_of_another_corpus_is_left_as_it_is(tmp_path: Path) -> None:
    place, bell = tmp_path / "index", Passage("bell", "Bell was born in Edinburgh.")
    PassageIndex.create(place).add([bell])
    with pytest.raises(
        RunError,
        match="the index of another corpus: give the study its own folder with --out",
    ):
        index_with_graph(
            place,
            [Passage("leith", "The Leith flows through Edinburgh.")],
            "hash",
            Settings(),
        )
    assert list(PassageIndex.open(place).passages) == [bell]
