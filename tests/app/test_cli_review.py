"""`ras-agent ask --review` at a real terminal: a pseudo-terminal on which a person types."""

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.messages import says

Cli = Callable[..., Any]
COMMAND = [sys.executable, "-P", "-c", "from ras_agent.app.cli import main; main()"]
ANSWERED = ("there is", "'e' is", "nothing", "removed", "fact 2", "added", "corrected")
QUESTION = "Where was the inventor of the telephone born?"


def typed(arguments: list[object], lines: list[str], folder: Path) -> tuple[int, str]:
    """Run the command at a terminal; each line is typed when the program asks (`: ` or `> ` ends what it shows)."""
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "XDG_CONFIG_HOME": str(folder),
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    run = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
    )
    os.close(theirs)
    shown, seen, waiting = "", 0, list(lines)
    while select.select([ours], [], [], 120)[0]:
        try:
            shown += os.read(ours, 65536).decode("utf-8", "replace")
        except OSError:  # the program has closed its end
            break
        if waiting and shown[seen:].endswith(("> ", ": ")):
            seen = len(shown)
            os.write(ours, waiting.pop(0).encode() + b"\n")
    os.close(ours)
    return run.wait(120), shown.replace("\r\n", "\n")


@pytest.mark.slow("processes")
def test_plan_facts_and_answer_are_decided_at_the_terminal(
    bell_index: Path, tmp_path: Path
) -> None:
    save = tmp_path / "run.json"
    question = "Where was Alexander Graham Bell born?"
    code, shown = typed(
        [
            "ask",
            QUESTION,
            "--index",
            bell_index,
            "--review",
            "plan,facts,answer",
            "--max-hops",
            1,
            "--save",
            save,
        ],
        [
            *("x", "e", question),  # the first is no key
            *(
                "e 1",
                "",
                "",
                "Edinburgh, Scotland",
                "a",
                "Bell",
                "lived in",
                "Boston",
                "",
            ),
            *("e", "In Edinburgh."),
        ],
        tmp_path,
    )
    assert code == 0, shown
    assert "'x' is none of the keys above" in shown
    assert "review the facts of hop 1" in shown
    trace = json.loads(save.read_text("utf-8"))
    assert trace["plans"][0] | {"reason": ""} == {
        **{
            "hop": 1,
            "action": "subq",
            "subquery": question,
            "reason": "",
            "by": "person",
        }
    }
    assert trace["steps"][0]["subquery"] == question
    facts = [
        (fact["object"], fact["sources"][0]["extractor"])
        for fact in trace["graph"]["facts"]
    ]
    assert ("Edinburgh, Scotland", "person") in facts
    assert ("Boston", "person") in facts
    assert trace["answer"] == "In Edinburgh."
    assert [review["action"] for review in trace["reviews"]] == [
        "edit",
        "edit",
        "add",
        "edit",
    ]
    assert " · 4 reviews" in shown


@pytest.mark.slow("processes")
def test_what_is_typed_about_facts_is_answered_at_once(
    bell_index: Path, tmp_path: Path
) -> None:
    code, shown = typed(
        [
            "ask",
            QUESTION,
            "--index",
            bell_index,
            "--review",
            "facts",
            "--max-hops",
            1,
            "--least-confidence",
            0,
        ],
        [
            *("r 9", "e", "e 1", "", "", ""),
            *(
                "r 2",
                "e 2",
                "r 2 2",
                "a",
                "Bell",
                "",
                "a",
                "Bell",
                "lived in",
                "Boston",
                "e 1",
                "",
                "",
                "Leith",
                "",
            ),
        ],
        tmp_path,
    )
    assert code == 0, shown
    assert "answer Leith [1]" in shown
    lines = [line.strip() for line in shown.splitlines()]
    first = lines.index("1   (Alexander Graham Bell | was born in | Edinburgh)")
    assert (
        lines[first - 1]
        == "Alexander Graham Bell: “Alexander Graham Bell was born in Edinburgh.”"
    )
    assert [line for line in lines if line.startswith(ANSWERED)] == [
        "there is no fact 9",
        "'e' is none of the keys above",
        "nothing is changed",
        "removed (Telephone | was patented by | Alexander Graham Bell)",
        "fact 2 is changed already",
        "fact 2 is changed already",
        "nothing is added: a fact has all three",
        "added (Bell | lived in | Boston)",
        "corrected to (Alexander Graham Bell | was born in | Leith)",
    ]


@pytest.mark.slow("processes")
def test_a_wrong_decision_is_asked_again_and_the_end_of_input_interrupts(
    bell_index: Path, tmp_path: Path
) -> None:
    arguments = [
        "ask",
        QUESTION,
        "--index",
        bell_index,
        "--review",
        "plan",
        "--quiet",
        "--max-hops",
        1,
    ]
    code, shown = typed(arguments, ["e", "", "s"], tmp_path)
    assert code == 4
    assert says(
        "review decision",
        "edit at plan",
        "a subquery that is not blank",
        '"stop": true',
    ).search(shown)
    assert (
        "No answer: the run ended before its first search: a person stopped it."
        in shown
    )
    code, shown = typed(arguments, ["\x04"], tmp_path)
    assert (code, shown.splitlines()[-1]) == (130, "ras-agent: interrupted")


def test_without_a_terminal_nobody_can_be_asked(cli: Cli, bell_index: Path) -> None:
    result = cli("ask", QUESTION, "--index", bell_index, "--review", "plan")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "ras-agent: --review asks you at the terminal, but standard input is not a terminal: run it"
    )
    result = cli("ask", QUESTION, "--index", bell_index, "--review", "hits")
    assert (result.exit_code, result.stderr) == (
        2,
        "ras-agent: --review: unknown place for a review 'hits'; known: plan, facts, answer\n",
    )


def test_an_evaluation_waits_for_nobody(
    cli: Cli, bell_index: Path, tmp_path: Path
) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id": "1", "question": "Who?", "answers": ["Bell"]}\n')
    run = [
        "eval",
        "jsonl",
        "--data",
        questions,
        "--index",
        bell_index,
        "--out",
        tmp_path / "run",
        "--quiet",
    ]
    assert cli(*run, "--review", "plan").exit_code == 2
    Path("ras-agent.toml").write_text('review = "plan"\n')  # for `ask`
    assert cli(*run).exit_code == 0
