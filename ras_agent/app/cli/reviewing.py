"""`ras-agent ask --review`: a person decides at the terminal what a run that waits is to do."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.text import Text

from ras_agent.app.cli.terminal import hang, inert, inert_lines
from ras_agent.errors import SettingsError
from ras_agent.marks import ACTIONS
from ras_agent.records import JSON, Triple
from ras_agent.review import Review

_MARGIN = 7
_LONGEST_QUOTE = 160
_KEYS = {
    "plan": (
        ("e", "edit", "another sub-query"),
        ("s", "edit", "stop and answer"),
        ("n", "ask", "a note, and plan again"),
    ),
    "facts": (
        ("e 1", "edit", "correct"),
        ("r 1 2", "remove", "remove"),
        ("a", "add", "add"),
        ("n", "ask", "a note for the next plan"),
    ),
    "answer": (
        ("e", "edit", "another answer"),
        ("r", "remove", "withdraw it"),
        ("n", "ask", "a note, and answer again"),
    ),
}


def needs_a_person() -> None:
    """Raise SettingsError if nobody can be asked: standard input is no terminal."""
    if not sys.stdin.isatty():
        raise SettingsError(
            "--review asks you at the terminal, and standard input is none: run it in a terminal, leave --review out "
            "(--review '' overrides ras-agent.toml), or decide in Python (create_ras_agent(review=...))"
        )


def decided(review: Review, console: Console) -> JSON | list[JSON]:
    """Show a review, and return what the person at the terminal decides. Raises Abort where the input ends."""
    _show(review, console)
    keys = [f"{key} {what}" for key, action, what in _KEYS[review.at] if action in review.actions]
    hang(console, Text(), Text(f"enter approves · {' · '.join(keys)}", "dim"), _MARGIN)
    return _changes(review, console) if review.at == "facts" else _one(review, console)


def _show(review: Review, console: Console) -> None:
    label = Text("review ", "bold magenta")
    if review.error:
        hang(console, label, Text(inert(review.error), "yellow"), _MARGIN)
    if review.plan is not None:
        mark = str(ACTIONS[review.plan.action])
        end = "" if review.stop_reason in ("", review.plan.action) else f" (the loop would end: {review.stop_reason})"
        hang(console, label, Text(f"{mark} {inert(review.plan.subquery or review.plan.reason)}{end}"), _MARGIN)
    elif review.at == "facts":
        hang(console, label, Text(f"the facts of hop {review.hop}" if review.facts else "no facts were read"), _MARGIN)
        for number, (fact, quote) in enumerate(review.facts, start=1):
            words = " | ".join(map(inert, (fact.subject, fact.predicate, fact.object)))
            shown = Text.assemble(f"({words})", (f" “{inert(quote, limit=_LONGEST_QUOTE)}”", "dim"))
            hang(console, Text(f"{' ' * _MARGIN}{number}"), shown, _MARGIN + 4)
    else:
        numbers = "".join(f"[{citation.number}]" for citation in review.citations)
        hang(console, label, Text(f"{inert_lines(review.answer)} {numbers}".rstrip()), _MARGIN)


def _one(review: Review, console: Console) -> JSON:
    """Return the decision about a plan or an answer."""
    changed = "subquery" if review.at == "plan" else "answer"
    while True:
        key = _line(console, ">")
        if not key:
            return {"action": "approve"}
        if key == "e":
            return {"action": "edit", changed: _line(console, f"{changed}:")}
        if key == "s" and review.at == "plan":
            return {"action": "edit", "stop": True}
        if key == "r" and review.at == "answer":
            return {"action": "remove"}
        if key == "n" and "ask" in review.actions:
            return {"action": "ask", "note": _line(console, "note:")}
        _unknown(console, key)


def _changes(review: Review, console: Console) -> list[JSON]:
    """Return the decisions about facts; an empty line ends them."""
    changes: list[JSON] = []
    while line := _line(console, ">"):
        key, *numbers = line.split()
        facts = _numbered(numbers, review)
        if key == "e" and len(facts) == 1:
            fact = facts[0]
            words = {name: getattr(fact, name) for name in ("subject", "predicate", "object")}
            new = {name: _line(console, f"{name} [{inert(old)}]:") for name, old in words.items()}
            changes.append({"action": "edit", "fact": fact.id, **{name: word for name, word in new.items() if word}})
        elif key == "r" and facts and len(facts) == len(numbers):
            changes += [{"action": "remove", "fact": fact.id} for fact in facts]
        elif key == "a" and not numbers:
            new = {name: _line(console, f"{name}:") for name in ("subject", "predicate", "object")}
            changes.append({"action": "add", **new})
        elif key == "n" and not numbers and "ask" in review.actions:
            changes.append({"action": "ask", "note": _line(console, "note:")})
        else:
            _unknown(console, line)
    return changes or [{"action": "approve"}]


def _numbered(numbers: Sequence[str], review: Review) -> list[Triple]:
    known = {str(number): fact for number, (fact, _) in enumerate(review.facts, start=1)}
    return [known[number] for number in numbers if number in known]


def _unknown(console: Console, line: str) -> None:
    hang(console, Text(), Text(f"{inert(line, limit=60)!r} is none of the keys above", "yellow"), _MARGIN)


def _line(console: Console, prompt: str) -> str:
    """Return a line that the person types, without spaces around it."""
    console.print(f"{' ' * _MARGIN}{prompt} ", end="", soft_wrap=True)
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    return line.strip()
