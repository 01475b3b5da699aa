"""A model's judgement of a run: its prompt, how its replies are read, and the files that it writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from ras_agent.contracts.errors import RunError, UnknownName
from ras_agent.eval.judge import judge_run, letter_in, verdicts_in
from ras_agent.eval.run.folder import RunFolder
from ras_agent.eval.run.result import Result


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Three answers: one to judge, one abstention, one without a gold answer."""
    folder = RunFolder.begin(tmp_path / "run", {"name": "run"})
    folder.append(
        Result(
            "q1",
            "Where was Bell born?",
            ("Edinburgh",),
            answer="In Edinburgh, Scotland",
            type="place",
        )
    )
    folder.append(
        Result(
            "q2", "Who?", ("Orr",), answer="No answer", abstained=True, type="person"
        )
    )
    folder.append(Result("q3", "Why?", (), answer="So"))
    return folder


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("It names the city and its country.\nB", 1.0),
        ("<think>A? F?</think>C", 1.0),
        ("A fine answer.\n(A)", 0.0),
        ("D", 0.0),
        ("C\n\nA brief note: no more than that.", 1.0),
        ("It is the same, not A.\nAnswer: C", 1.0),
    ],
)
def test_an_answer_that_agrees_and_says_more_is_right(
    run: RunFolder, scripted_llm: Any, reply: str, score: float
) -> None:
    scripted_llm.script({"reply": reply})
    judged = judge_run(run, scripted_llm.spec)
    assert (judged.scores, judged.by_type) == (
        {"q1": score, "q2": 0.0},
        {"place": score, "person": 0.0},
    )
    (request,) = scripted_llm.requests()
    prompt = request["messages"][-1]["content"]
    assert prompt.startswith(
        "Question: Where was Bell born?\nReference: Edinburgh\nAnswer: In Edinburgh, Scotland\n\nHow does the answer"
    )
    assert request["temperature"] == 0


FORMS = (
    "C", "c", "C.", "(C)", "**C**", "[[C]]", "`C`", "- C", '"C"', "# C", "C!", "Same.\nC",
    "C: it says the same as the reference", "C) it says the same", "C - it says the same", "C (same)",
    "it says the same as the reference", "Final answer: C", "### Final Answer\nC", "The answer is C.", "Answer: C",
    "**Answer:** C", "Verdict: C", "Letter: c", "Relation: (C)", "Option C", "Answer is option C.",
    "The correct option is C", "The final verdict is: **C**.", "The answer relates to the reference as C.",
    "They agree, so C", "I choose C.", "A\nB\nC is right", "Not A, since it says all. Final answer: C.",
    "\\boxed{C}", "$\\boxed{\\text{C}}$", "<answer>C</answer>", '{"answer": "C"}', '```json\n{"verdict": "C"}\n```',
    "My choice: C\n\nReason: the same", "Ｃ", "Decision: C", "Antwort: C", "答案：C", "Answer is c.", "__C__",
    "It falls under C.", "This is C. Both say it.", "I'd go with C", "C, not D", "C rather than B", "not B but C",
    "Plan B is in both. C", "The answer is C because both say so.", '{"letter": "c", "why": "A part"}',
    "D. H. Lawrence is in both. So C", "Grade: A+\nC", "| relation | C |",
)  # fmt: skip


@pytest.mark.parametrize("reply", FORMS)
def test_a_letter_is_read_however_it_is_written(reply: str) -> None:
    assert letter_in(reply) == "C"


@pytest.mark.parametrize(
    "reply",
    [
        "A partial answer.",
        "The answer is a part of it.",
        "Answer: A part of it",
        "F. Scott Fitzgerald wrote it.",
        "E.g. the year is missing",
        "The answer is B or C",
        "",
        "I?",
    ],
)
def test_an_article_is_no_letter(reply: str) -> None:
    assert letter_in(reply) is None


@pytest.mark.parametrize(
    "reply",
    ["1: yes\n2: no", "Statement 1: yes\nStatement 2: no", "1: Y\n2: N", "1) True\n2) False", "**1**: yes\n**2**: no",
     "1 - yes, it does\n2 - no", "yes\nno", "- Yes\n- No", "1: yes, 2: no", "Yes, no", "[true, false]",
     '{"1": "yes", "2": "no"}', '[{"statement": 1, "verdict": "yes"},\n {"statement": 2, "verdict": "no"}]',
     "1: Leith is a port of 1847: yes\n2. It is old. No", "Statement 1 is made: yes\nStatement 2 is made: no"],
)  # fmt: skip
def test_verdicts_are_read_however_they_are_written(reply: str) -> None:
    assert verdicts_in(reply, 2) == [True, False]


def test_a_reply_that_cannot_be_read_is_asked_for_once_more(
    run: RunFolder, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "I cannot say."}, {"reply": "C"})
    assert judge_run(run, scripted_llm.spec).scores == {"q1": 1.0, "q2": 0.0}
    assert (
        "one of the letters A to F alone"
        in scripted_llm.requests()[1]["messages"][-1]["content"]
    )


def test_the_share_of_the_reference_that_an_answer_covers_is_asked_in_two_steps(
    run: RunFolder, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"reply": "1. Bell was born in Edinburgh.\n- It was in 1847."},
        {"reply": "1: yes\n2: No."},
    )
    assert judge_run(run, scripted_llm.spec, "coverage").scores == {
        "q1": 0.5,
        "q2": 0.0,
    }
    second = scripted_llm.requests()[1]["messages"][-1]["content"]
    assert "1. Bell was born in Edinburgh.\n2. It was in 1847.\n" in second


def test_a_share_without_a_verdict_on_each_statement_is_none(
    run: RunFolder, scripted_llm: Any
) -> None:
    scripted_llm.script(
        {"reply": "Bell was born in Edinburgh.\nIt was in 1847."},
        {"reply": "1: yes"},
        {"reply": "2."},
    )
    judged = judge_run(run, scripted_llm.spec, "coverage")
    assert (judged.scores, judged.unread) == ({"q2": 0.0}, ["q1"])


def test_a_reply_without_a_verdict_counts_in_no_mean(
    run: RunFolder, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "I cannot say."}, {"reply": "Nor now."})
    judged = judge_run(run, scripted_llm.spec)
    assert (judged.scores, judged.unread, judged.n) == ({"q2": 0.0}, ["q1"], 1)


def test_a_judgement_is_written_beside_the_run_and_asked_for_once(
    run: RunFolder, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "C"})
    judged = judge_run(run, scripted_llm.spec)
    assert json.loads((run.path / "judged-agreement.json").read_text())["scores"] == {
        "q1": 1.0,
        "q2": 0.0,
    }
    assert judge_run(run, scripted_llm.spec) == judged
    assert len(scripted_llm.requests()) == 1
    assert not run.summary_path.exists()


def test_what_cannot_be_judged_is_told(
    run: RunFolder, tmp_path: Path, scripted_llm: Any
) -> None:
    with pytest.raises(UnknownName, match="known: agreement, coverage"):
        judge_run(run, scripted_llm.spec, "taste")
    bare = RunFolder.begin(tmp_path / "bare", {"name": "bare"})
    bare.append(Result("q", "Why?", (), answer="So"))
    with pytest.raises(RunError, match="no question has a gold answer"):
        judge_run(bare, scripted_llm.spec)


def test_the_command_prints_the_mean_and_the_types(
    cli: Any, run: RunFolder, scripted_llm: Any
) -> None:
    scripted_llm.script({"reply": "C"})
    done = cli("judge", run.path, "--judge", scripted_llm.spec)
    assert done.exit_code == 0, done.output
    assert "50.0" in done.stdout
    assert "place: 100.0" in done.stdout


def test_the_judge_is_called_as_flags_and_its_own_settings_say(
    cli: Any, run: RunFolder, scripted_llm: Any, tmp_path: Path
) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(
        'temperature = 0.9\n[roles.judge]\nheaders = {x-team = "a"}\n', encoding="utf-8"
    )
    scripted_llm.script({"reply": "C"})
    shown = (
        "judge",
        str(run.path),
        "--judge",
        scripted_llm.spec,
        "--config",
        str(config),
        "--extra-body",
        "top_k=20",
    )
    assert cli(*shown).exit_code == 0
    (request,) = scripted_llm.requests()
    assert (request["temperature"], request["top_k"]) == (0, 20)
