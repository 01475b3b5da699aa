"""Runs side by side and crossed, and their pictures."""

from xml.etree import ElementTree

import pytest

from ras_agent.eval.report.markdown import markdown_table
from ras_agent.eval.run.result import Result
from ras_agent.eval.study.tables import (
    compared,
    heat_map,
    lines,
    markdown_matrix,
    markdown_rows,
    matrix,
)


def _results(*scores: float, error: bool = False) -> list[Result]:
    return [
        Result(f"q{number}", "?", scores={"f1": score}, hops=2, abstained=score == 0,
               error={"type": "OSError", "message": "gone"} if error else None)
        for number, score in enumerate(scores)
    ]  # fmt: skip


RUNS = {"full": _results(1, 1, 0, 1), "less": _results(1, 0, 0, 0)}


def test_runs_are_held_against_the_base_question_by_question() -> None:
    full, less = compared(RUNS, ["f1"], "f1", "full")
    assert (full.name, full.n, full.scores["f1"].mean, full.abstained, full.hops) == (
        "full",
        4,
        0.75,
        1,
        2.0,
    )
    assert full.difference is None
    assert less.difference is not None
    assert (
        less.difference.n,
        less.difference.difference.mean,
        less.difference.difference.low,
    ) == (4, -0.5, pytest.approx(-0.981, abs=0.001))
    # of the four ways to swap the two questions that differ, two are as far apart
    assert less.difference.permutation_p == 0.5


def test_the_order_in_which_questions_ended_changes_nothing() -> None:
    turned = {name: list(reversed(results)) for name, results in RUNS.items()}
    assert compared(turned, ["f1"], "f1", "full") == compared(
        RUNS, ["f1"], "f1", "full"
    )


def test_only_questions_kept_count() -> None:
    rows = compared(RUNS, ["f1"], "f1", "full", keep=lambda one: one.id in ("q0", "q3"))
    assert [(row.n, row.scores["f1"].mean) for row in rows] == [(2, 1.0), (2, 0.5)]


def test_rows_as_markdown() -> None:
    text = markdown_rows(
        compared(
            {"full": _results(1, 1), "less": _results(0, 0)}, ["f1"], "f1", "full"
        ),
        ["f1"],
        "f1",
        "full",
    )
    assert text.splitlines() == [
        "| run | n | f1 | hops | abstained | f1 − full | p |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| full | 2 | 100.0 (34.2 to 100.0) | 2.0 | 0 |  |  |",
        "| less | 2 | 0.0 (0.0 to 65.8) | 2.0 | 2 | -100.0 (-100.0 to +17.7) | 0.5000 |",
    ]


def test_errors_have_a_column_where_there_are_any() -> None:
    rows = compared({"full": _results(0, error=True)}, ["f1"], "f1")
    assert (
        markdown_rows(rows, ["f1"], "f1").splitlines()[2]
        == "| full | 1 | 0.0 (0.0 to 79.3) | 2.0 | 1 | 1 |"
    )


def test_names_cannot_break_out_of_a_cell() -> None:
    assert (
        markdown_table(["a|b"], [["<i>\nx\\"]])
        == "| a\\|b |\n| --- |\n| &lt;i> x\\\\ |"
    )


def test_two_choices_crossed() -> None:
    cells = {("p1", "a1"): "full", ("p1", "a2"): "less", ("p2", "a1"): "absent"}
    found = matrix(RUNS, cells, "f1", "planner", "answerer")
    assert (found.rows, found.columns) == (("p1", "p2"), ("a1", "a2"))
    assert [[cell.mean if cell else None for cell in row] for row in found.cells] == [
        [0.75, 0.25],
        [None, None],
    ]
    assert markdown_matrix(found).splitlines()[0] == "| planner / answerer | a1 | a2 |"
    assert markdown_matrix(found).splitlines()[3] == "| p2 | – | – |"


def test_a_heat_map_is_an_svg_with_its_figures_as_text_and_the_same_each_time() -> None:
    cells = {("p1", "a1"): "full", ("$p$", "a1"): "less", ("p3", "a1"): "absent"}
    found = matrix(RUNS, cells, "f1", "planner", "answerer")
    svg = heat_map(found)
    text = " ".join(ElementTree.fromstring(svg).itertext())
    for shown in ("75.0", "25.0", "p1", "$p$", "a1", "planner", "answerer", "f1, %"):
        assert shown in text
    assert heat_map(found) == svg


def test_lines_have_a_legend_where_there_are_several() -> None:
    svg = lines(
        {
            "em": [(10, 0.1, 0.05, 0.2), (20, 0.3, 0.3, 0.3)],
            "f1": [(10, 0.2, 0.2, 0.2)],
        },
        "triples",
        "%",
        "Kept",
    )
    text = " ".join(ElementTree.fromstring(svg).itertext())
    for shown in ("em", "f1", "triples", "Kept"):
        assert shown in text


def test_no_scores_at_all_are_no_reason_to_fail() -> None:
    found = matrix({}, {("p", "a"): "absent"}, "f1")
    assert ElementTree.fromstring(heat_map(found)).tag.endswith("svg")
    assert compared({"full": []}, ["f1"], "f1", "full")[0].n == 0


def test_a_row_without_a_score_shows_a_dash() -> None:
    rows = compared({"full": [Result("q", "?", scores={})]}, ["f1"], "f1")
    assert (
        markdown_rows(rows, ["f1"], "f1", loop=False).splitlines()[2]
        == "| full | 1 | – |"
    )
    assert rows[0].scores == pytest.approx({})
