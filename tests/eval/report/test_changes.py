"""The changes between two runs, and at which step of a question first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ras_agent.eval.report.changes import change_of, changes, changes_markdown
from ras_agent.eval.report.figures import Run
from ras_agent.eval.run.result import Result


def _hop(
    hop: int, subquery: str, hits: str, facts: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plan and the step of a hop. hits, facts: ids, a letter each."""
    step = {
        "hop": hop,
        "hits": [{"passage_id": one, "title": one.upper()} for one in hits],
        "triple_ids": list(facts),
    }
    return {"hop": hop, "action": "subq", "subquery": subquery}, step


def _result(
    *hops: tuple[dict[str, Any], dict[str, Any]],
    answer: str = "Visby",
    end: str = "",
    **more: Any,
) -> Result:
    plans = [plan for plan, _ in hops]
    if end:
        plans.append({"hop": len(hops) + 1, "action": end, "subquery": ""})
    facts = [
        {"id": name, "subject": name, "predicate": "is", "object": "x"}
        for name in "fghij"
    ]
    trace = {
        "steps": [step for _, step in hops],
        "plans": plans,
        "graph": {"facts": facts},
    }
    return Result("q", "Where?", answer=answer, trace=trace, **more)


FIRST = _hop(1, "Where?", "ab", "fg")
BASE = _result(FIRST, _hop(2, "Who?", "cd", "h"), end="sufficient")


@pytest.mark.parametrize(
    ("after", "step", "hop", "there", "here"),
    [
        (
            _result(FIRST, _hop(2, "When?", "xy", "i"), end="sufficient"),
            "plan",
            2,
            "Who?",
            "When?",
        ),
        (_result(FIRST, end="sufficient"), "plan", 2, "Who?", "sufficient"),
        (_result(FIRST), "plan", 2, "Who?", "nothing: it has ended"),
        (
            _result(FIRST, _hop(2, "Who?", "ce", "h"), end="sufficient"),
            "hits",
            2,
            "D",
            "E",
        ),
        (
            _result(FIRST, _hop(2, "Who?", "dc", "h"), end="sufficient"),
            *("hits", 2, "the same in another order", "the same in another order"),
        ),
        (
            _result(FIRST, _hop(2, "Who?", "c", "h"), end="sufficient"),
            "hits",
            2,
            "D",
            "only some of those",
        ),
        (
            _result(FIRST, _hop(2, "Who?", "cd", "i"), end="sufficient"),
            "facts",
            2,
            "(h | is | x)",
            "(i | is | x)",
        ),
        (
            _result(FIRST, _hop(2, "Who?", "cd", "h"), answer="Lund", end="sufficient"),
            "answer",
            2,
            "Visby",
            "Lund",
        ),
        (
            _result(
                FIRST,
                _hop(2, "Who?", "cd", "h"),
                answer="Visby",
                abstained=True,
                end="sufficient",
            ),
            *("answer", 2, "Visby", "abstained"),
        ),
        (
            _result(
                FIRST,
                _hop(2, "Who?", "cd", "h"),
                answer="",
                error={"message": "gone"},
                end="sufficient",
            ),
            *("answer", 2, "Visby", "error: gone"),
        ),
    ],
)
def test_a_question_parts_at_its_first_difference(
    after: Result, step: str, hop: int, there: str, here: str
) -> None:
    change = change_of(BASE, after)
    assert change is not None
    assert (change.step, change.hop, change.there, change.here) == (
        step,
        hop,
        there,
        here,
    )


def test_seconds_scores_and_the_order_of_facts_are_no_change() -> None:
    again = _result(
        _hop(1, "Where?", "ab", "gf"),
        _hop(2, "Who?", "cd", "h"),
        end="sufficient",
        seconds=9.0,
    )
    assert change_of(BASE, again) is None


def test_runs_without_traces_are_compared_by_what_was_found_and_answered() -> None:
    old, new = (
        Result("q", "?", answer="x", retrieved=("a", "b")),
        Result("q", "?", answer="x", retrieved=("a", "c")),
    )
    change = change_of(old, new)
    assert change is not None
    assert (change.step, change.hop, change.there, change.here) == ("hits", 0, "b", "c")


def test_with_one_trace_alone_questions_are_compared_by_what_was_found_and_answered() -> (
    None
):
    with_trace, without = (
        replace(BASE, retrieved=("a", "b")),
        Result("q", "Where?", answer="Visby"),
    )
    assert change_of(with_trace, replace(without, retrieved=("a", "b"))) is None
    change = change_of(replace(without, retrieved=("a", "c")), with_trace)
    assert change is not None
    assert (change.step, change.hop, change.there, change.here) == ("hits", 0, "c", "b")


def test_questions_of_one_id_and_another_text_are_counted_apart() -> None:
    old, new = _run("old", a="right", b="wrong"), _run("new", a="right", b="right")
    new = replace(
        new, results=(new.results[0], replace(new.results[1], question="Whom?"))
    )
    found = changes(old, new, ["em"])
    assert (found.changed, found.equal, found.only_there, found.only_here) == (
        (),
        1,
        1,
        1,
    )
    assert [one.comparison.n for one in found.differences] == [1]


def _run(name: str, **answers: str) -> Run:
    scores = {
        question: {"em": float(answer == "right")}
        for question, answer in answers.items()
    }
    return Run(
        name,
        {},
        tuple(
            Result(one, "?", answer=answers[one], scores=scores[one]) for one in answers
        ),
    )


def test_changes_are_counted_listed_and_compared_in_pairs() -> None:
    found = changes(
        _run("old", a="right", b="wrong", c="x"),
        _run("new", a="right", b="right", d="y"),
        ["em"],
    )
    assert (found.equal, found.only_there, found.only_here, found.any) == (
        1,
        1,
        1,
        True,
    )
    assert changes_markdown(found).splitlines() == [
        "1 of 2 questions changed from old to new; 1 only in old; 1 only in new; "
        "0 turned wrong and 1 right, by em",
        "",
        "| first change | questions |",
        "| --- | ---: |",
        "| plan | 0 |",
        "| hits | 0 |",
        "| facts | 0 |",
        "| answer | 1 |",
        "",
        "| metric | new − old | p | p of 1, Holm | n |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| em | +50.0 (-51.0 to +100.0) | 1.0000 | 1.0000 | 2 |",
        "",
        "b: turned right; answer",
        "    old: wrong",
        "    new: right",
    ]


def test_answers_that_turned_wrong_or_right_stand_first() -> None:
    old = _run("old", same="x", gain="x", loss="right", held="right", kept="right")
    new = _run("new", same="y", gain="right", loss="y", held="right", kept="right")
    later = replace(new.results[-1], retrieved=("z",))
    found = changes(old, replace(new, results=(*new.results[:-1], later)), ["em"])
    assert [(one.id, one.turned) for one in found.changed] == [
        ("loss", "wrong"),
        ("gain", "right"),
        ("same", ""),
        ("kept", ""),
    ]
    early = replace(new.results[2], retrieved=("z",))
    (change,) = changes(old, replace(new, results=(early,)), ["em"]).changed
    assert change.answers == ("right", "y")
    assert "    answers: right → y" in changes_markdown(
        changes(old, replace(new, results=(early,)), ["em"])
    )
    # no metric, no verdict
    assert {one.turned for one in changes(old, new, []).changed} == {""}


def test_equal_runs_have_no_changes_and_a_list_is_cut_short() -> None:
    assert not changes(_run("old", a="x"), _run("new", a="x"), []).any
    many = {f"q{n}": "x" for n in range(5)}
    found = changes(_run("old", **many), _run("new", **dict.fromkeys(many, "y")), [])
    assert changes_markdown(found, most=2).splitlines()[-1] == "3 more"
