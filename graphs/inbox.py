"""Translates reviews to and from the forms of LangChain's pages: Agent Inbox, Agent Chat UI, human-in-the-loop
middleware.

An interrupt's value holds the keys that these pages expect, in addition to this package's own. Their replies
become decisions as in ras_agent.running.review.

    Agent Inbox     {"type": "accept" | "edit" | "response" | "ignore", "args": ...}, or a list of one
    middleware      {"decisions": [{"type": "approve" | "edit" | "reject" | "respond", ...}]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ras_agent.contracts.errors import ReviewError
from ras_agent.contracts.records import JSON
from ras_agent.running.review import Review

_APPROVES = ("accept", "approve")
_EDITS = ("edit",)
_NOTES = ("response", "respond")
_REJECTS = ("ignore", "reject")
_TYPES = (*_APPROVES, *_EDITS, *_NOTES, *_REJECTS)
_FACT = ("subject", "predicate", "object")


def inbox_form(review: Review) -> JSON:
    """Return the keys that LangChain's pages need to show a review; they are added to those of
    `Review.to_dict`.
    """
    name = f"review_{review.at}"
    args = _shown(review)
    can_note = "ask" in review.actions
    decisions = ["approve", "edit", "reject", *(["respond"] if can_note else [])]
    description = f"{review.question}\n\n{review.error}".strip()
    return {
        "action_request": {"action": name, "args": args},
        "config": {
            "allow_accept": True,
            "allow_edit": True,
            "allow_respond": can_note,
            "allow_ignore": True,
        },
        "description": description,
        "action_requests": [{"name": name, "args": args, "description": description}],
        "review_configs": [{"action_name": name, "allowed_decisions": decisions}],
    }


def own_form(given: object, review: Review) -> object:
    """Convert a decision of LangChain's pages to the form of ras_agent.running.review; return anything else unchanged.

    Raises:
        ReviewError: if such a decision lacks the content that its type needs.
    """
    decision = given
    if isinstance(given, Mapping) and isinstance(given.get("decisions"), Sequence):
        decision = given["decisions"]
    if (
        isinstance(decision, Sequence)
        and not isinstance(decision, str)
        and len(decision) == 1
    ):
        decision = decision[0]
    if (
        not isinstance(decision, Mapping)
        or decision.get("type") not in _TYPES
        or "action" in decision
    ):
        return given
    kind = decision["type"]
    if kind in _APPROVES:
        return {"action": "approve"}
    if kind in _NOTES:
        return {
            "action": "ask",
            "note": decision.get("args") or decision.get("message"),
        }
    if kind in _REJECTS:
        return _rejection(decision, review)
    return _edit(decision, review)


def _shown(review: Review) -> JSON:
    """Return the fields that a page lets a person edit."""
    if review.at == "plan":
        return {"subquery": review.plan.subquery if review.plan else ""}
    if review.at == "answer":
        return {"answer": review.answer}
    return {
        fact.id: " | ".join((fact.subject, fact.predicate, fact.object))
        for fact, _ in review.facts
    }


def _rejection(decision: Mapping[str, Any], review: Review) -> object:
    note = decision.get("message")
    if note and "ask" in review.actions:
        return {"action": "ask", "note": note}
    if review.at == "plan":
        return {"action": "edit", "stop": True}
    if review.at == "answer":
        return {"action": "remove"}
    removals = [{"action": "remove", "fact": fact.id} for fact, _ in review.facts]
    return removals or {"action": "approve"}


def _edit(decision: Mapping[str, Any], review: Review) -> object:
    request = decision.get("edited_action") or decision.get("args") or {}
    args = None
    if isinstance(request, Mapping):
        args = request.get("args")
    if not isinstance(args, Mapping):
        raise ReviewError(
            f"decision: an edit needs the edited values under args, got {request!r:.80}"
        )
    if review.at != "facts":
        return {"action": "edit", **args}
    edits = [
        _edited_fact(name, text)
        for name, text in args.items()
        if text != _shown(review).get(name)
    ]
    return edits or {"action": "approve"}


def _edited_fact(name: str, text: object) -> JSON:
    if not text:
        return {"action": "remove", "fact": name}
    fields = [field.strip() for field in str(text).split(" | ")]
    if len(fields) != len(_FACT):
        raise ReviewError(
            f"decision: expected 'subject | predicate | object' for fact {name}, got {text!r:.80}"
        )
    return {"action": "edit", "fact": name, **dict(zip(_FACT, fields, strict=True))}
