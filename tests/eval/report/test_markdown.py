"""The Markdown tables of a report."""

from ras_agent.eval.report.figures import Run, comparisons, figures_of, metric_names
from ras_agent.eval.report.markdown import cost_text, report_markdown
from ras_agent.eval.run.prices import Cost, Price, Prices
from ras_agent.eval.run.result import Result, token_use

CALLS = [
    {"role": "planner", "model": "small", "input_tokens": 900, "output_tokens": 100}
]


def _run(name: str, *scores: float) -> Run:
    results = [
        Result(
            f"q{number}", "?", ("a",), type="bridge" if number else "yes|no", scores={"em": score}, seconds=0.5, hops=2,
            stop_reason="sufficient", usage=token_use(CALLS),
        )
        for number, score in enumerate(scores)
    ]  # fmt: skip
    return Run(name, {}, tuple(results))


def _markdown(*runs: Run, prices: Prices) -> str:
    metrics = metric_names(runs)
    return report_markdown(
        [figures_of(run, "em", prices) for run in runs],
        comparisons(runs, metrics),
        metrics,
        "em",
    )


def test_one_run() -> None:
    assert (
        _markdown(_run("mine", 1.0, 1.0), prices=Prices())
        == """\
| run | n | em | errors |
| --- | ---: | ---: | ---: |
| mine | 2 | 100.0 (34.2 to 100.0) | 0 |

| run | hops | seconds p50 / p95 | LLM calls | tokens per question p50 / p95 | cost | per right answer |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| mine | 2.00 | 0.50 / 0.50 | 2 | 1000 / 1000 | unknown: no price for small | 1,000 tokens |

| type | run | n | em |
| --- | --- | ---: | ---: |
| bridge | mine | 1 | 100.0 (20.7 to 100.0) |
| yes\\|no | mine | 1 | 100.0 (20.7 to 100.0) |

| stopped | mine |
| --- | ---: |
| sufficient | 2 |
"""
    )


def test_two_runs() -> None:
    tables = _markdown(
        _run("a", 0.0, 0.0),
        _run("b\n| <b>", 1.0, 1.0),
        prices=Prices({"small": Price(1000, 1000, 0)}),
    )
    assert tables.split("\n\n")[:3] == [
        """\
| run | n | em | errors |
| --- | ---: | ---: | ---: |
| a | 2 | 0.0 (0.0 to 65.8) | 0 |
| b \\| &lt;b> | 2 | 100.0 (34.2 to 100.0) | 0 |""",
        """\
| paired difference | metric | n | difference | p | p of 1, Holm |
| --- | --- | ---: | ---: | ---: | ---: |
| b \\| &lt;b> − a | em | 2 | +100.0 (-17.7 to +100.0) | 0.5000 | 0.5000 |""",
        """\
| run | hops | seconds p50 / p95 | LLM calls | tokens per question p50 / p95 | cost | per right answer |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| a | 2.00 | 0.50 / 0.50 | 2 | 1000 / 1000 | 2.00 | – |
| b \\| &lt;b> | 2.00 | 0.50 / 0.50 | 2 | 1000 / 1000 | 2.00 | 1,000 tokens, 1.00 |""",
    ]


def test_a_score_that_not_all_questions_have_says_how_many_do() -> None:
    run = Run("r", {}, (Result("1", "?", ("a",), scores={"em": 1.0}), Result("2", "?")))
    assert "| r | 2 | 100.0 (20.7 to 100.0), n = 1 | 0 |" in _markdown(
        run, prices=Prices()
    )


def test_seconds_say_how_many_questions_were_under_way() -> None:
    run = Run(
        "r",
        {},
        (
            Result("1", "?", seconds=0.5, queued=1.0, at_once=8),
            Result("2", "?", seconds=0.5, queued=3.0, at_once=8),
        ),
    )
    assert "| r | 0.00 | 0.50 / 0.50, 8 at once, 2.00 s queued apart |" in _markdown(
        run, prices=Prices()
    )


def test_costs_in_words() -> None:
    assert cost_text(Cost(), 0) == "no model calls"
    assert cost_text(Cost(12.345), 9) == "12.35"
    assert cost_text(Cost(0.01234), 9) == "0.0123"
    assert (
        cost_text(Cost(1.5, ("big", "other")), 9)
        == "1.50 and unknown: no price for big, other"
    )
    assert cost_text(Cost(0.0, ("big",)), 9) == "unknown: no price for big"
