"""A task that is asked several times: its folder, its figures, its place in reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ras_agent.config.settings import Settings
from ras_agent.contracts.errors import RunError, SettingsError
from ras_agent.eval.question import Question
from ras_agent.eval.report.figures import comparisons, figures_of, load_runs
from ras_agent.eval.report.html_page import make_report, report_html
from ras_agent.eval.report.markdown import report_markdown
from ras_agent.eval.run import EvalAgent, Task, load_task
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.prices import Price, Prices
from ras_agent.eval.run.repeats import all_right, ask_repeatedly

RIGHT = {"q0": 3, "q1": 1, "q2": 0}
"""How many of the first repeats answer a question right"""
CALL = {
    "role": "planner",
    "hop": 1,
    "model": "m",
    "input_tokens": 60,
    "output_tokens": 40,
    "cached_tokens": 0,
}
PRICES = Prices({"m": Price(1000.0, 1000.0, 1000.0)})


@pytest.fixture
def task(tmp_path: Path) -> Task:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"id": "p", "text": "A passage."}) + "\n")
    rows = [
        {"id": name, "question": f"Which is {name}?", "answers": ["right"]}
        for name in RIGHT
    ]
    return load_task("jsonl", rows, Settings(), corpus=corpus, metrics=["em"])


def _agent() -> EvalAgent:
    asked: dict[str, int] = {}

    async def answer(question: Question) -> Mapping[str, Any]:
        asked[question.id] = asked.get(question.id, 0) + 1
        said = "right" if asked[question.id] <= RIGHT[question.id] else "wrong"
        return {
            "answer": said,
            "passages": {},
            "steps": [{}],
            "stop_reason": "sufficient",
            "usage": {"calls": [CALL]},
        }

    return EvalAgent.of("mine", answer)


def test_the_summary_has_mean_spread_pass_k_and_the_cost_of_a_right_answer(
    task: Task, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    summary = ask_repeatedly(task, _agent(), out, 3, prices=PRICES, concurrency=1)
    assert json.loads((out / "summary.json").read_text())["repeats"]["count"] == 3
    assert [
        len(list(RunFolder(out / f"repeat-{number}").results())) for number in (1, 2, 3)
    ] == [3, 3, 3]
    # two of three right, then one, then one
    repeats = summary["repeats"]
    assert repeats["scores"]["em"]["mean"] == pytest.approx(4 / 9)
    assert repeats["scores"]["em"]["deviation"] == pytest.approx((1 / 27) ** 0.5)
    assert (
        repeats["scores"]["em"]["least"],
        repeats["scores"]["em"]["most"],
    ) == pytest.approx((1 / 3, 2 / 3))
    # q0 is right in all three, q1 in one of three
    assert repeats["all_right"] == pytest.approx({1: 4 / 9, 2: 1 / 3, 3: 1 / 3})
    assert (summary["questions"], summary["scores"]["em"]["n"]) == (3, 3)
    assert summary["tokens"]["calls"] == 9
    assert summary["right"] == {
        "by": "em",
        "count": 4,
        "tokens": 900 / 4,
        "cost": pytest.approx(0.9 / 4),
    }


@pytest.mark.parametrize(
    ("right", "times", "chances"),
    [
        ([2], 4, {1: 0.5, 2: 1 / 6, 3: 0.0, 4: 0.0}),
        ([3, 3], 3, {1: 1.0, 2: 1.0, 3: 1.0}),
        ([0], 1, {1: 0.0}),
        ([], 3, {}),
    ],
)
def test_pass_k_is_the_share_of_draws_that_are_all_right(
    right: list[int], times: int, chances: dict[int, float]
) -> None:
    assert all_right(right, times) == pytest.approx(chances)


def test_more_repeats_are_asked_later_and_none_twice(
    task: Task, tmp_path: Path
) -> None:
    agent = _agent()
    ask_repeatedly(task, agent, tmp_path / "out", 2, concurrency=1)
    summary = ask_repeatedly(task, agent, tmp_path / "out", 3, concurrency=1)
    assert summary["repeats"]["all_right"][3] == pytest.approx(1 / 3)
    with pytest.raises(RunError, match="already holds 3 repeats"):
        ask_repeatedly(task, agent, tmp_path / "out", 2)


def test_what_would_be_no_repeats_is_refused(task: Task, tmp_path: Path) -> None:
    cached = EvalAgent("mine", Settings(cache=tmp_path / "replies.sqlite"))
    with pytest.raises(SettingsError, match="leave --cache out"):
        ask_repeatedly(task, cached, tmp_path / "out", 2)
    ask_repeatedly(task, _agent(), tmp_path / "out", 2)
    with pytest.raises(RunError, match=r"name the folder of one, such as .*repeat-1"):
        RunFolder(tmp_path / "out").manifest()
    with pytest.raises(RunError, match="continue them with --repeat"):
        RunFolder.begin(tmp_path / "out", {})
    with pytest.raises(RunError, match="one run without repeats"):
        ask_repeatedly(task, _agent(), tmp_path / "out" / "repeat-1", 2)


def test_reports_show_repeats_as_one_run(task: Task, tmp_path: Path) -> None:
    ask_repeatedly(task, _agent(), tmp_path / "several", 3, concurrency=1)
    ask_repeatedly(task, _agent(), tmp_path / "others", 2, concurrency=1)
    runs = load_runs([tmp_path / "several", tmp_path / "others"])
    assert [(run.name, len(run.results), len(run.asked)) for run in runs] == [
        ("several", 3, 9),
        ("others", 3, 6),
    ]
    figures = [figures_of(run, "em", PRICES) for run in runs]
    (gap,) = comparisons(runs, ["em"])
    assert gap.comparison.difference.mean == pytest.approx(
        (1 + 1 / 2) / 3 - (1 + 1 / 3) / 3
    )
    text = report_markdown(figures, [gap], ["em"], "em")
    assert "| several | 3 | 44.4 ± 19.2 (33.3 to 66.7) |" in text
    assert "| several | em | 44.4 | 33.3 | 33.3 |" in text
    assert "| others | em | 50.0 | 33.3 | – |" in text
    assert "| 9 | 100 / 100 | 0.9000 | 225 tokens, 0.2250 |" in text
    page = report_html(make_report(runs, PRICES, plots=False))
    assert "pass^3" in page
    assert "44.4 ± 19.2 (33.3 to 66.7)" in page
