"""Figures of a report, by hand."""

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from ras_agent.contracts.errors import RunError
from ras_agent.eval.report.figures import (
    RecallPoint,
    Run,
    comparisons,
    figures_of,
    headline_metrics,
    load_runs,
    metric_names,
    verdict,
)
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.prices import Cost, Price, Prices, Tokens
from ras_agent.eval.run.result import Result
from ras_agent.eval.run.summarise import summarise
from ras_agent.eval.run.verdicts import deciding_metric

NO_PRICES = Prices()


def test_runs_of_one_name_are_told_apart(run_folders: list[Path]) -> None:
    assert [run.name for run in load_runs([run_folders[0]] * 3)] == [
        "run one",
        "run one (2)",
        "run one (3)",
    ]


def test_traces_can_be_left_out(run_folders: list[Path]) -> None:
    assert [one.trace for one in load_runs(run_folders, traces=False)[0].results] == [
        None
    ] * 5


def test_a_run_without_results_is_refused(tmp_path: Path) -> None:
    RunFolder.begin(tmp_path / "run", {"name": "new"})
    with pytest.raises(RunError, match="no question has ended yet"):
        load_runs([tmp_path / "run"])


def test_verdicts(runs: list[Run]) -> None:
    verdicts = {result.id: verdict(result, "em") for result in runs[0].results}
    assert verdicts == {
        "q1": "right",
        "q2": "wrong",
        "q3": "abstained",
        "q10": "right",
        "q11": "error",
    }


def test_half_a_score_is_right() -> None:
    assert verdict(Result("1", "?", ("a",), scores={"f1": 0.5}), "f1") == "right"
    assert verdict(Result("1", "?", ("a",), scores={"f1": 0.49}), "f1") == "wrong"


def test_an_answer_to_what_has_none_is_wrong() -> None:
    assert verdict(Result("1", "?", answer="Rex"), "em") == "wrong"


@pytest.mark.parametrize(
    ("names", "deciding", "heads"),
    [
        (["recall@5", "f1", "em"], "em", ["em", "f1"]),
        (["rouge", "recall@5"], "rouge", ["rouge", "recall@5"]),
        (
            ["recall@5", "all_recall@5", "mrr"],
            "all_recall@5",
            ["all_recall@5", "recall@5"],
        ),
        (["accuracy"], "accuracy", ["accuracy"]),
        ([], "", []),
    ],
)
def test_the_strictest_answer_metric_decides(
    names: list[str], deciding: str, heads: list[str]
) -> None:
    assert deciding_metric(names) == deciding
    assert headline_metrics(names, deciding) == heads


def test_means_are_those_of_the_results_file(run_folders: list[Path]) -> None:
    lines = [
        json.loads(line)
        for line in (run_folders[0] / "results.jsonl")
        .read_text("utf-8")
        .rstrip("\n")
        .split("\n")
    ]
    figures = figures_of(load_runs(run_folders)[0], "em", NO_PRICES)
    for metric in ("em", "f1", "recall@2"):
        own = [line["scores"][metric] for line in lines if metric in line["scores"]]
        assert figures.scores[metric].mean == pytest.approx(fmean(own))
        assert figures.scores[metric].n == len(own) == 4
    assert figures.scores["em"].mean == 0.25


def test_intervals_are_those_of_the_runs_summary(runs: list[Run]) -> None:
    summary = summarise(runs[0].results)
    figures = figures_of(runs[0], "em", NO_PRICES)
    for metric, told in summary["scores"].items():
        own = figures.scores[metric]
        assert {"mean": own.mean, "low": own.low, "high": own.high, "n": own.n} == told


def test_groups(runs: list[Run]) -> None:
    groups = figures_of(runs[0], "em", NO_PRICES).groups
    assert [(group.name, group.n) for group in groups["gold hops"]] == [
        ("2", 3),
        ("3", 1),
        ("not given", 1),
    ]
    assert [(group.name, group.n) for group in groups["hops taken"]] == [
        ("0", 1),
        ("2", 3),
        ("3", 1),
    ]
    bridge = groups["type"][0]
    assert (bridge.name, bridge.n, bridge.scores["em"].mean, bridge.scores["em"].n) == (
        "bridge",
        3,
        0.5,
        2,
    )
    assert bridge.verdicts == {"right": 2, "wrong": 0, "abstained": 0, "error": 1}


def test_a_kind_that_all_questions_share_is_no_group() -> None:
    run = Run(
        "r",
        {},
        (
            Result("1", "?", type="bridge", hops=1),
            Result("2", "?", type="bridge", hops=1),
        ),
    )
    assert figures_of(run, "em", NO_PRICES).groups == {}


def test_time_tokens_and_stops(runs: list[Run]) -> None:
    figures = figures_of(runs[0], "em", NO_PRICES)
    assert (
        figures.seconds.p50,
        figures.seconds.p95,
        figures.seconds.mean,
    ) == pytest.approx((1.0, 3.6, 1.8))
    assert (figures.tokens.p50, figures.tokens.mean) == (1150.0, 920.0)
    assert figures.stop_reasons == {"sufficient": 3, "no_new_facts": 1, "error": 1}
    assert figures.models == {
        "openai:small": Tokens(4, 3200, 400, 1600),
        "big": Tokens(4, 800, 200, 0),
    }
    assert figures.replayed == 4


def test_the_cost_of_what_has_a_price(runs: list[Run]) -> None:
    prices = Prices({"small": Price(1.0, 2.0, 0.5)})
    # 1,600 fresh, 1,600 cached at half the price, 400 out at twice
    assert figures_of(runs[0], "em", prices).cost == Cost(
        pytest.approx(0.0032), ("big",)
    )


def test_the_recall_curve_is_over_questions_with_gold_passages(runs: list[Run]) -> None:
    figures = figures_of(runs[0], "em", NO_PRICES)
    # q1 and q3 miss leith until k = 3, q2 has its one passage at once, q11 retrieved nothing; q10 has no gold
    assert figures.with_gold == 4
    assert figures.recall == (
        RecallPoint(1, 0.5, 0.25),
        RecallPoint(2, 0.5, 0.25),
        RecallPoint(3, 0.75, 0.75),
    )


def test_differences_are_paired_by_question(runs: list[Run]) -> None:
    found = comparisons(runs, metric_names(runs))
    assert [(one.name, one.base, one.metric, one.comparison.n) for one in found] == [
        ("run two", "run one", "em", 4), ("run two", "run one", "f1", 4), ("run two", "run one", "recall@2", 4),
    ]  # fmt: skip
    difference = found[0].comparison.difference
    assert (difference.mean, difference.low) == (0.25, pytest.approx(-0.326, abs=0.001))
    # one question of four differs: swapped or not, its difference is as large
    assert (found[0].comparison.permutation_p, found[2].comparison.difference.mean) == (
        1.0,
        0.0,
    )


def test_runs_without_a_common_question_have_no_difference(runs: list[Run]) -> None:
    other = Run("other", {}, (Result("z", "?", scores={"em": 1.0}),))
    assert comparisons([runs[0], other], ["em"]) == []


def test_questions_of_one_id_and_other_texts_are_no_pair() -> None:
    one, other = (
        Run(name, {}, (Result("1", text, scores={"em": 1.0}),))
        for name, text in (("a", "Who?"), ("b", "Why?"))
    )
    assert comparisons([one, other], ["em"]) == []
    assert len(comparisons([one, one], ["em"])) == 1


@pytest.mark.parametrize(
    ("gold", "pairs"),
    [
        ({"answers": ("Leith", "Lei")}, 0),
        ({"answers": ("Leith",), "supporting": ("a",)}, 0),
        ({"answers": ("Leith", "Leith")}, 1),
    ],
)
def test_questions_of_other_gold_are_no_pair(gold: dict[str, Any], pairs: int) -> None:
    first = Result("1", "Who?", answers=("Leith",), scores={"em": 1.0})
    second = Result("1", "Who?", scores={"em": 0.0}, **gold)
    runs = [Run("a", {}, (first,)), Run("b", {}, (second,))]
    assert len(comparisons(runs, ["em"])) == pairs
