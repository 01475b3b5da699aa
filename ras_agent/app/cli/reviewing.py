"""`ras-agent ask --review`: a person decides at the terminal what a run that waits is to do."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.text import Text

from ras_agent.app.cli.terminal import hang, inert, inert_lines, pack
from ras_agent.errors import SettingsError
from ras_agent.marks import ACTIONS
from ras_agent.records import JSON, Triple
from ras_agent.review import Review

_MARGIN = 7
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
    enter = "enter goes on" if review.at == "facts" else "enter approves"
    hang(console, Text(), pack([Text(key, "dim") for key in (enter, *keys)], console.width - _MARGIN, " · "), _MARGIN)
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
        titles, above = dict(review.passages), ("", "")
        for number, (fact, quote) in enumerate(review.facts, start=1):
            passage = fact.sources[0].passage_id
            if above != (passage, quote):  # several facts of one sentence follow each other
                read_in = f"{inert(titles.get(passage, passage))}: “{inert(quote, limit=_LONGEST_QUOTE)}”"
                hang(console, Text(), Text(read_in, "dim"), _MARGIN)
            above = passage, quote
            hang(
                console,
                Text(f"{' ' * _MARGIN}{number}"),
                Text(_words(fact.subject, fact.predicate, fact.object)),
                _MARGIN + 4,
            )
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
        _say(console, f"{inert(key, limit=60)!r} is none of the keys above")


def _changes(review: Review, console: Console) -> list[JSON]:
    """Return the decisions about facts; an empty line ends them. What cannot be done is said at once."""
    changes: list[JSON] = []
    while line := _line(console, ">"):
        key, *numbers = line.split()
        known = {str(number): fact for number, (fact, _) in enumerate(review.facts, start=1)}
        changed = {change.get("fact") for change in changes}
        if key in ("e", "r") and (wrong := next((one for one in numbers if one not in known), "")):
            _say(console, f"there is no fact {inert(wrong, limit=20)}")
        elif key in ("e", "r") and (wrong := next((one for one in numbers if known[one].id in changed), "")):
            _say(console, f"fact {wrong} is changed already")
        elif key == "e" and len(numbers) == 1:
            changes += _corrected(known[numbers[0]], console)
        elif key == "r" and numbers:
            for fact in dict.fromkeys(known[number] for number in numbers):
                changes.append({"action": "remove", "fact": fact.id})
                _say(console, f"removed {_words(fact.subject, fact.predicate, fact.object)}", "dim")
        elif key == "a" and not numbers:
            changes += _added(console)
        elif key == "n" and not numbers and "ask" in review.actions:
            changes += [{"action": "ask", "note": note} for note in [_line(console, "note:")] if note]
        else:
            _say(console, f"{inert(line, limit=60)!r} is none of the keys above")
    return changes or [{"action": "approve"}]


def _corrected(fact: Triple, console: Console) -> list[JSON]:
    """Return the correction of a fact, part by part; none where every line is empty, which leaves it as it is."""
    old = {name: getattr(fact, name) for name in _PARTS}
    new = {name: word for name in _PARTS if (word := _line(console, f"{name} [{inert(old[name])}]:"))}
    _say(console, f"corrected to {_words(*{**old, **new}.values())}" if new else "nothing is changed", "dim")
    return [{"action": "edit", "fact": fact.id, **new}] if new else []


def _added(console: Console) -> list[JSON]:
    """Return a fact in the person's words; none as soon as one of its parts is left blank."""
    new: dict[str, str] = {}
    for name in _PARTS:
        if not (word := _line(console, f"{name}:")):
            _say(console, "nothing is added: a fact has all three", "dim")
            return []
        new[name] = word
    _say(console, f"added {_words(*new.values())}", "dim")
    return [{"action": "add", **new}]


def _words(*parts: str) -> str:
    return f"({' | '.join(map(inert, parts))})"


def _say(console: Console, text: str, style: str = "yellow") -> None:
    hang(console, Text(), Text(text, style), _MARGIN)


def _line(console: Console, prompt: str) -> str:
    """Return a line that the person types, without spaces around it."""
    console.print(f"{' ' * _MARGIN}{prompt} ", end="", soft_wrap=True)
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    return line.strip()
