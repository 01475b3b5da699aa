"""Implements `ras-agent ask --review`: a person decides at the terminal how a waiting run continues."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.text import Text

from ras_agent.app.cli.terminal import MARGIN, fact_line, hang, inert, inert_lines, pack
from ras_agent.contracts.errors import SettingsError
from ras_agent.contracts.marks import ACTIONS
from ras_agent.contracts.records import JSON, Triple
from ras_agent.running.review import Review

_LONGEST_QUOTE = 160
_PARTS = ("subject", "predicate", "object")
_KEYS = {
    "plan": (
        ("e", "edit", "another sub-query"),
        ("s", "edit", "stop and answer"),
        ("n", "ask", "plan again with a note"),
    ),
    "facts": (
        ("e 1", "edit", "corrects fact 1"),
        ("r 1 2", "remove", "removes facts 1 and 2"),
        ("a", "add", "adds one"),
        ("n", "ask", "a note for the next plan"),
    ),
    "answer": (
        ("e", "edit", "another answer"),
        ("r", "remove", "withdraw it"),
        ("n", "ask", "answer again with a note"),
    ),
}


def needs_a_person() -> None:
    """Raise SettingsError if standard input is not a terminal, so that no person can be asked."""
    if not sys.stdin.isatty():
        raise SettingsError(
            "--review asks you at the terminal, but standard input is not a terminal: run it in a terminal, "
            "leave --review out (--review '' overrides ras-agent.toml), or decide in Python (create_ras_agent(review=...))"
        )


def decide(review: Review, console: Console) -> JSON | list[JSON]:
    """Show a review, and return the decision that the person types, in the form that `decisions_of` reads.

    Raises:
        Abort: if the input ends.
    """
    _show(review, console)
    keys = [
        f"{key} {what}"
        for key, action, what in _KEYS[review.at]
        if action in review.actions
    ]
    enter = "enter goes on" if review.at == "facts" else "enter approves"
    hang(
        console,
        Text(),
        pack(
            [Text(key, "dim") for key in (enter, *keys)], console.width - MARGIN, " · "
        ),
        MARGIN,
    )
    return (
        _decide_facts(review, console)
        if review.at == "facts"
        else _decide(review, console)
    )


def _show(review: Review, console: Console) -> None:
    label = Text("review ", "bold magenta")
    if review.error:
        hang(console, label, Text(inert(review.error), "yellow"), MARGIN)
    if review.plan is not None:
        mark = str(ACTIONS[review.plan.action])
        asked = "; ".join(review.plan.subqueries)
        end = (
            ""
            if review.stop_reason in ("", review.plan.action)
            else f" (the loop would end: {review.stop_reason})"
        )
        hang(
            console,
            label,
            Text(f"{mark} {inert(asked or review.plan.reason)}{end}"),
            MARGIN,
        )
    elif review.at == "facts":
        hang(
            console,
            label,
            Text(
                f"the facts of hop {review.hop}"
                if review.facts
                else "no facts were read"
            ),
            MARGIN,
        )
        titles = dict(review.passages)
        above = ("", "")
        for number, (fact, quote) in enumerate(review.facts, start=1):
            passage = fact.sources[0].passage_id
            # consecutive facts of the same sentence get only one quote
            if above != (passage, quote):
                read_in = f"{inert(titles.get(passage, passage))}: “{inert(quote, limit=_LONGEST_QUOTE)}”"
                hang(console, Text(), Text(read_in, "dim"), MARGIN)
            above = passage, quote
            hang(
                console,
                Text(f"{' ' * MARGIN}{number}"),
                fact_line(fact.subject, fact.predicate, fact.object),
                MARGIN + 4,
            )
    else:
        numbers = "".join(f"[{citation.number}]" for citation in review.citations)
        hang(
            console,
            label,
            Text(f"{inert_lines(review.answer)} {numbers}".rstrip()),
            MARGIN,
        )


def _decide(review: Review, console: Console) -> JSON:
    """Return the decision about a plan or an answer."""
    text = "subquery" if review.at == "plan" else "answer"
    while True:
        key = _line(console, ">")
        if not key:
            return {"action": "approve"}
        if key == "e":
            return {"action": "edit", text: _line(console, f"{text}:")}
        if key == "s" and review.at == "plan":
            return {"action": "edit", "stop": True}
        if key == "r" and review.at == "answer":
            return {"action": "remove"}
        if key == "n" and "ask" in review.actions:
            return {"action": "ask", "note": _line(console, "note:")}
        _warn(console, f"{inert(key, limit=60)!r} is none of the keys above")


def _decide_facts(review: Review, console: Console) -> list[JSON]:
    """Return the decisions about facts, which end with an empty line. An invalid line is refused at once."""
    changes: list[JSON] = []
    facts = {
        str(number): fact for number, (fact, _) in enumerate(review.facts, start=1)
    }
    while line := _line(console, ">"):
        key, *numbers = line.split()
        edits = {change.get("fact") for change in changes}
        if key in ("e", "r") and (
            wrong := next((number for number in numbers if number not in facts), "")
        ):
            _warn(console, f"there is no fact {inert(wrong, limit=20)}")
        elif key in ("e", "r") and (
            wrong := next(
                (number for number in numbers if facts[number].id in edits), ""
            )
        ):
            _warn(console, f"fact {wrong} is changed already")
        elif key == "e" and len(numbers) == 1:
            changes += _correct(facts[numbers[0]], console)
        elif key == "r" and numbers:
            for fact in dict.fromkeys(facts[number] for number in numbers):
                changes.append({"action": "remove", "fact": fact.id})
                _confirm(console, "removed", fact.subject, fact.predicate, fact.object)
        elif key == "a" and not numbers:
            changes += _add(console)
        elif key == "n" and not numbers and "ask" in review.actions:
            changes += [
                {"action": "ask", "note": note}
                for note in [_line(console, "note:")]
                if note
            ]
        else:
            _warn(console, f"{inert(line, limit=60)!r} is none of the keys above")
    return changes or [{"action": "approve"}]


def _correct(fact: Triple, console: Console) -> list[JSON]:
    """Ask for the correction of a fact, part by part, and return the decision in a list; [] if all lines are empty."""
    old = {name: getattr(fact, name) for name in _PARTS}
    new = {
        name: word
        for name in _PARTS
        if (word := _line(console, f"{name} [{inert(old[name])}]:"))
    }
    if not new:
        _confirm(console, "nothing is changed")
        return []
    _confirm(console, "corrected to", *{**old, **new}.values())
    return [{"action": "edit", "fact": fact.id, **new}]


def _add(console: Console) -> list[JSON]:
    """Ask for a new fact, and return the decision in a list; [] as soon as one of its parts is left blank."""
    new: dict[str, str] = {}
    for name in _PARTS:
        if not (word := _line(console, f"{name}:")):
            _confirm(console, "nothing is added: a fact has all three")
            return []
        new[name] = word
    _confirm(console, "added", *new.values())
    return [{"action": "add", **new}]


def _confirm(console: Console, text: str, *fact: str) -> None:
    """Print the decision, with the three parts of the fact if it concerns one."""
    line = Text(text, "dim")
    if fact:
        line.append(" ").append_text(fact_line(*fact))
    hang(console, Text(), line, MARGIN)


def _warn(console: Console, text: str) -> None:
    hang(console, Text(), Text(text, "yellow"), MARGIN)


def _line(console: Console, prompt: str) -> str:
    """Return a line that the person types, without surrounding spaces. Raises Abort if the input ends."""
    console.print(f"{' ' * MARGIN}{prompt} ", end="", soft_wrap=True)
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    return line.strip()
