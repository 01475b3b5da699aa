"""From results to a run's figures."""

from ras_agent.eval.run.result import Result
from ras_agent.eval.run.summarise import summarise


def _result(name: str, f1: float, **more: object) -> Result:
    return Result(name, "?", scores={"f1": f1}, **more)  # type: ignore[arg-type]


def test_means_counts_and_groups() -> None:
    call = {
        "calls": 2,
        "replayed": 1,
        "input_tokens": 10,
        "output_tokens": 4,
        "cached_tokens": 0,
    }
    usage = {**call, "by_role": {"planner": call}, "by_model": {"m": call}}
    summary = summarise(
        [
            _result(
                "a",
                1.0,
                type="bridge",
                gold_hops=2,
                hops=2,
                seconds=1.0,
                stop_reason="sufficient",
                usage=usage,
            ),
            _result(
                "b",
                0.5,
                type="bridge",
                gold_hops=3,
                hops=4,
                seconds=3.0,
                stop_reason="sufficient",
                usage=usage,
            ),
            _result(
                "c",
                0.0,
                hops=0,
                seconds=2.0,
                stop_reason="error",
                error={"type": "X", "message": ""},
            ),
        ]
    )
    assert summary["scores"]["f1"]["mean"] == 0.5
    assert summary["scores"]["f1"]["n"] == 3
    assert summary["by_type"] == {
        "bridge": {
            "n": 2,
            "scores": {"f1": summary["by_type"]["bridge"]["scores"]["f1"]},
        }
    }
    assert summary["by_type"]["bridge"]["scores"]["f1"]["mean"] == 0.75
    assert list(summary["by_hops"]) == ["2", "3"]
    assert summary["stop_reasons"] == {"sufficient": 2, "error": 1}
    assert (summary["errors"], summary["hops"], summary["seconds"]["p50"]) == (
        1,
        2.0,
        2.0,
    )
    assert (
        summary["tokens"]["calls"],
        summary["tokens"]["by_model"]["m"]["input_tokens"],
    ) == (4, 20)


def test_the_order_in_which_questions_ended_changes_nothing() -> None:
    results = [_result(str(number), number / 7) for number in range(8)]
    assert summarise(results)["scores"] == summarise(results[::-1])["scores"]


def test_no_results_give_a_summary_without_scores() -> None:
    summary = summarise([])
    assert (summary["scores"], summary["questions"], summary["seconds"]["p95"]) == (
        {},
        0,
        0.0,
    )


def test_closed_questions_are_told_apart_from_open_ones() -> None:
    summary = summarise(
        [
            _result("a", 1.0, answers=("yes",)),
            _result("b", 0.0, answers=("No.",)),
            _result("c", 0.25, answers=("Hull",)),
        ]
    )
    means = {
        kind: (part["n"], part["scores"]["f1"]["mean"])
        for kind, part in summary["by_answer"].items()
    }
    assert means == {"yes or no": (2, 0.5), "open": (1, 0.25)}


def test_failures_inside_runs_are_counted_by_what_they_say() -> None:
    refused = {"role": "extractor", "hop": 1, "message": "m failed after 1 try: 401"}
    results = [
        _result(
            "a",
            0.0,
            failures=({**refused, "message": f"{refused['message']} (passage p1)"},),
        ),
        _result(
            "b",
            0.0,
            failures=(refused, {"role": "planner", "hop": 2, "message": "no plan"}),
        ),
    ]
    failures = {"extractor: m failed after 1 try: 401": 2, "planner: no plan": 1}
    assert summarise(results)["failures"] == failures


def test_the_surest_answers_are_scored_by_themselves() -> None:
    results = [
        _result("a", 0.0, confidence=0.1),
        _result("b", 1.0, confidence=0.9),
        _result("c", 0.5, confidence=0.5),
        # left unsaid, so it comes last
        _result("d", 0.0, confidence=0.7, abstained=True),
        _result("e", 0.5, confidence=0.4),
    ]
    assert summarise(results)["at_coverage"] == {
        "50%": {"f1": 0.75},
        "80%": {"f1": 0.5},
    }


def test_answers_without_confidence_have_no_surest_half() -> None:
    assert summarise([_result("a", 1.0)])["at_coverage"] == {}


def test_a_summary_has_the_scores_that_no_ranking_can_pass() -> None:
    results = [
        Result("a", "?", supporting=("x", "y"), scores={"recall@1": 0.5, "f1": 1.0}),
        Result("b", "?", supporting=("x",), scores={"recall@1": 0.0, "f1": 1.0}),
    ]
    assert summarise(results)["ceilings"] == {"recall@1": 0.75}
