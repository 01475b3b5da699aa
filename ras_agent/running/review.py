"""Defines reviews: the places where a run waits for a person, the request that it shows, and the person's
decision.

An agent made with `review=("plan", "facts", "answer")` stops there with LangGraph's interrupt, whose value is
`Review.to_dict()`. `Command(resume=DECISION)` continues the run. A decision is plain JSON, which `decisions_of`
checks:

    at plan     {"action": "approve"}
                {"action": "edit", "subquery": "..."}            another sub-query
                {"action": "edit", "stop": true}                 no more searches: answer from the evidence so far
                {"action": "ask", "note": "..."}                 plan again, with this note
    at facts    {"action": "approve"}
                {"action": "edit", "fact": ID, "subject" and/or "predicate" and/or "object": "..."}
                {"action": "remove", "fact": ID}
                {"action": "add", "subject": "...", "predicate": "...", "object": "...", "passage_id"?, "quote"?}
                {"action": "ask", "note": "..."}                 go on; planner and answerer read this note
                a list of these, which are applied in order
    at answer   {"action": "approve"}
                {"action": "edit", "answer": "...", "citations"?: [numbers to keep; all unless given]}
                {"action": "remove"}                             withdraw it: the run ends without an answer
                {"action": "ask", "note": "...", "to"?: "answerer" or "planner"}    answer, or search, again

A decision may name the person, `"by": "Ada"`, and the review that it is meant for, `"at": "plan", "hop": 2`, so
that a decision that is sent twice is not applied to the next review. An invalid decision changes nothing: the
run waits again, and the `error` of the new review names the problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, cast, get_args

from ras_agent.contracts.errors import ReviewError, SettingsError
from ras_agent.contracts.records import JSON, Citation, Plan, Triple, person
from ras_agent.contracts.shape import Record
from ras_agent.running.budget import current_ledger
from ras_agent.text.normal_form import encodable

Place = Literal["plan", "facts", "answer"]
Action = Literal["approve", "edit", "remove", "add", "ask"]

PLACES: tuple[Place, ...] = get_args(Place)

_LONGEST_NAME = 80
_LONGEST_TEXT = 20_000
# the fields of a decision, besides its action, person and review; "quote?" may be left out
_SAYS: dict[tuple[Place, Action], tuple[str, ...]] = {
    ("plan", "approve"): (),
    ("plan", "edit"): ("subquery?", "stop?"),
    ("plan", "ask"): ("note",),
    ("facts", "approve"): (),
    ("facts", "edit"): ("fact", "subject?", "predicate?", "object?"),
    ("facts", "remove"): ("fact",),
    ("facts", "add"): ("subject", "predicate", "object", "passage_id?", "quote?"),
    ("facts", "ask"): ("note",),
    ("answer", "approve"): (),
    ("answer", "edit"): ("answer", "citations?"),
    ("answer", "remove"): (),
    ("answer", "ask"): ("note", "to?"),
}
_ALWAYS = ("action", "by", "at", "hop")


def places(wanted: str | Iterable[str] | None) -> tuple[Place, ...]:
    """Return the review places that `wanted` names ("plan,facts" or a list), each once, in the order of a run.

    Raises:
        SettingsError: for an unknown place.
    """
    if isinstance(wanted, str):
        wanted = wanted.split(",")
    named = [name.strip() for name in wanted or () if name.strip()]
    for name in named:
        if name not in PLACES:
            raise SettingsError(
                f"unknown place for a review {name!r}; known: {', '.join(PLACES)}"
            )
    return tuple(place for place in PLACES if place in named)


@dataclass(frozen=True, slots=True)
class Review:
    """Asks a person for a decision. The place `at` determines which fields are filled."""

    at: Place
    hop: int
    """the hop that the review is about"""
    question: str
    actions: tuple[Action, ...]
    """the actions that can be taken at this place"""
    error: str = ""
    """the problem with the last decision; "" at first"""
    plan: Plan | None = None
    """at plan: the next plan"""
    stop_reason: str = ""
    """at plan and answer: why the loop would end"""
    subquery: str = ""
    """at facts: the sub-query of the hop"""
    facts: tuple[tuple[Triple, str], ...] = ()
    """at facts: the facts read at this hop, each with the text in which it was read"""
    passages: tuple[tuple[str, str], ...] = ()
    """at facts: id and title of each passage of the hop"""
    answer: str = ""
    """at answer: the text of the answer"""
    citations: tuple[Citation, ...] = ()
    abstained: bool = False
    suggestion: str = ""
    """at answer: the answer that the citations suggest (see `Answer.suggestion`)"""

    def to_dict(self) -> JSON:
        """Return the value of the interrupt: plain JSON with the keys that belong to the place."""
        data: JSON = {
            "type": "review",
            "at": self.at,
            "hop": self.hop,
            "question": self.question,
            "actions": list(self.actions),
            "error": self.error,
        }
        if self.at == "plan":
            data["plan"] = self.plan and self.plan.to_dict()
            data["stop_reason"] = self.stop_reason
        elif self.at == "facts":
            data["subquery"] = self.subquery
            data["facts"] = [
                {"id": fact.id, **fact.to_dict(), "quote": quote}
                for fact, quote in self.facts
            ]
            data["passages"] = [
                {"id": name, "title": title} for name, title in self.passages
            ]
        else:
            data["answer"] = self.answer
            data["citations"] = [citation.to_dict() for citation in self.citations]
            data["abstained"] = self.abstained
            if self.suggestion:
                data["suggestion"] = self.suggestion
            data["stop_reason"] = self.stop_reason
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the review that `to_dict` wrote."""
        values: dict[str, Any] = {
            name: data[name] for name in cls.__dataclass_fields__ if name in data
        }
        if values.get("plan"):
            values["plan"] = Plan.from_dict(values["plan"])
        facts = [
            (Triple.from_dict(fact), fact["quote"]) for fact in data.get("facts", ())
        ]
        passages = [
            (passage["id"], passage["title"]) for passage in data.get("passages", ())
        ]
        citations = map(Citation.from_dict, data.get("citations", ()))
        values |= {
            "actions": tuple(data["actions"]),
            "facts": tuple(facts),
            "passages": tuple(passages),
            "citations": tuple(citations),
        }
        return cls(**values)


@dataclass(frozen=True)
class Decision(Record):
    """Holds a person's decision. The module's docstring lists the fields of each action. The JSON has no empty
    fields.
    """

    json_keys = ("action", "*?")

    action: Action
    by: str = ""
    """the person's name, if given"""
    note: str = ""
    to: str = ""
    """the role that is asked again, "answerer" or "planner\""""
    subquery: str = ""
    stop: bool = False
    fact: str = ""
    subject: str = ""
    predicate: str = ""
    object: str = ""
    passage_id: str = ""
    quote: str = ""
    answer: str = ""
    citations: tuple[int, ...] | None = None
    """the numbers of the citations to keep; None keeps all"""

    @property
    def person(self) -> str:
        """Return the name by which sources refer to the person who decided: "person", or "person:Ada"."""
        return person(self.by)


@dataclass(frozen=True)
class Reviewed(Record):
    """Records one decision of a person in the run's `reviews`."""

    json_keys = ("at", "hop", "decision.*", "before?")

    at: Place
    hop: int
    decision: Decision
    before: JSON | None = None
    """the JSON of the plan, fact or answer before the change"""


def decisions_of(given: object, review: Review) -> tuple[Decision, ...]:
    """Parse a person's reply to a review: one decision, or a list of decisions at a review of facts.

    Raises:
        ReviewError: for a decision that is not possible at this review; the message names the key.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        return (_decision(given, review, "decision"),)
    if review.at != "facts":
        raise ReviewError(
            f"decision: only a review of facts takes a list of decisions, and this review is at {review.at}: give one decision"
        )
    if not given:
        raise ReviewError(
            'decision: the list is empty: give at least one decision, such as {"action": "approve"}'
        )
    taken: list[Decision] = []
    changed: set[str] = set()
    for number, one in enumerate(given, start=1):
        decision = _decision(one, review, f"decision {number}")
        if decision.fact in changed:
            raise ReviewError(
                f"decision {number}.fact: another decision has already changed {decision.fact!r}: "
                "give one decision for each fact"
            )
        if decision.fact:
            changed.add(decision.fact)
        taken.append(decision)
    return tuple(taken)


def _decision(given: object, review: Review, where: str) -> Decision:
    if not isinstance(given, Mapping) or not isinstance(given.get("action"), str):
        raise ReviewError(
            f'{where}: expected an object such as {{"action": "approve"}}, got {given!r:.80}'
        )
    if given["action"] not in review.actions:
        known = ", ".join(review.actions)
        raise ReviewError(
            f"{where}.action: {given['action']!r:.80} is not possible at {review.at}; choose from: {known}"
        )
    action = cast(Action, given["action"])
    said = _SAYS[review.at, action]
    allowed = tuple(key.removesuffix("?") for key in said)
    for key in given:
        if key not in (*_ALWAYS, *allowed):
            able = ", ".join(allowed) or "no fields"
            raise ReviewError(
                f"{where}.{key!s:.80}: {action} at {review.at} has no such field; it takes {able}"
            )
    for key in ("at", "hop"):
        if key in given and given[key] != getattr(review, key):
            raise ReviewError(
                f"{where}.{key}: the decision has {key} = {given[key]!r:.80}, but the run waits at {review.at} of hop "
                f"{review.hop}"
            )
    read: dict[str, Any] = {}
    for key in ("by", *allowed):
        if given.get(key) is not None:
            read[key] = _read(key, given[key], f"{where}.{key}")
    for key in said:
        if not key.endswith("?") and not read.get(key):
            raise ReviewError(
                f"{where}.{key}: it is missing or blank, but {action} at {review.at} needs it"
            )
    decision = Decision(action, **read)
    _check(decision, review, where)
    return decision


def _read(key: str, value: object, where: str) -> Any:
    """Return the value of a key, converted to the type of the Decision's field.

    Raises:
        ReviewError: for a value of another type.
    """
    if key == "stop":
        if not isinstance(value, bool):
            raise ReviewError(f"{where}: expected true or false, got {value!r:.80}")
        return value
    if key == "citations":
        if not isinstance(value, list | tuple) or not all(
            type(number) is int for number in value
        ):
            raise ReviewError(f"{where}: expected a list of numbers, got {value!r:.80}")
        return tuple(value)
    if not isinstance(value, str):
        raise ReviewError(f"{where}: expected a text, got {value!r:.80}")
    most = _LONGEST_NAME if key == "by" else _LONGEST_TEXT
    if len(value) > most:
        raise ReviewError(
            f"{where}: the text has {len(value):,} characters: shorten it to at most {most:,}"
        )
    text = encodable(value)
    if key in ("by", "subject", "predicate", "object"):
        return " ".join(text.split())
    return text.strip()


def _check(decision: Decision, review: Review, where: str) -> None:
    """Raise ReviewError if the fields of a decision contradict each other, or name things that are not part of
    the review.
    """
    if (
        review.at == "plan"
        and decision.action == "edit"
        and decision.stop == bool(decision.subquery)
    ):
        raise ReviewError(
            f'{where}: edit at plan takes a subquery that is not blank, or "stop": true'
        )
    if decision.fact and decision.fact not in {fact.id for fact, _ in review.facts}:
        known = ", ".join(fact.id for fact, _ in review.facts) or "none were read"
        raise ReviewError(
            f"{where}.fact: unknown fact {decision.fact!r:.80}; known: {known}"
        )
    corrects = review.at == "facts" and decision.action == "edit"
    if corrects and not (decision.subject or decision.predicate or decision.object):
        raise ReviewError(
            f"{where}: edit at facts takes a subject, predicate or object that is not blank"
        )
    if decision.passage_id and decision.passage_id not in {
        name for name, _ in review.passages
    }:
        known = ", ".join(name for name, _ in review.passages) or "none were found"
        raise ReviewError(
            f"{where}.passage_id: unknown passage {decision.passage_id!r:.80}; known: {known}"
        )
    if decision.quote and not decision.passage_id:
        raise ReviewError(
            f"{where}.quote: a quote needs the passage_id of the passage that it is from"
        )
    if decision.to not in ("", "planner", "answerer"):
        raise ReviewError(
            f"{where}.to: expected answerer or planner, got {decision.to!r:.80}"
        )
    numbers = {citation.number for citation in review.citations}
    for number in decision.citations or ():
        if number not in numbers:
            raise ReviewError(
                f"{where}.citations: there is no citation {number}; known: {sorted(numbers)}"
            )


# ---- notes of reviewers to the roles


def notes() -> tuple[str, ...]:
    """Return the notes that a person has written in reviews of the running question, the oldest first; usually
    ().

    A custom planner, reasoner or answerer that shows the notes to its model has the attribute `accepts_feedback
    = True`. Only then can a person send the run back to it.
    """
    return tuple(
        review["note"]
        for review in current_ledger().reviews
        if review["action"] == "ask"
    )


def overruled() -> tuple[Triple, ...]:
    """Return the facts that a person has removed or corrected in the running question, in their earlier form.

    They are no longer in the graph, but a role that also reads the passages still finds them there.
    """
    reviews = current_ledger().reviews
    changed = [
        review["before"]
        for review in reviews
        if review["at"] == "facts" and review.get("before")
    ]
    return tuple(map(Triple.from_dict, changed))
