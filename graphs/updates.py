"""Checks values that people write into a run: updates by `update_state`, and limits given as a run's `context`.

A wrong value would otherwise stop the run some nodes later, with an error that does not name it. So each value
is checked when it is given, and an error names its key and the expected form.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import GenericAlias
from typing import Any, Final, NotRequired, get_type_hints

from pydantic import TypeAdapter, ValidationError

from ras_agent.contracts.errors import SettingsError, StateError, UnknownName
from ras_agent.contracts.events import Planned
from ras_agent.contracts.records import (
    JSON,
    Citation,
    Failure,
    Hit,
    Passage,
    Source,
    Step,
    Triple,
    Usage,
)
from ras_agent.contracts.shape import json_shape
from ras_agent.graphs.state import State
from ras_agent.question_graph.graph import GraphJSON, ReadingJSON
from ras_agent.running.budget import Limits

_EMPTIED: Final = frozenset(("steps", "plans", "failures", "reviews"))
"""Keys that an update of None empties."""


def checked_update(values: Mapping[str, Any]) -> JSON:
    """Check a person's update of the state, and return it.

    An empty `subquery` ends the loop, with the same stop reason as when a person stops it in a review. A
    `subquery` replaces all sub-queries of a plan, unless `further` is given.

    Raises:
        UnknownName: for a key that the state does not have.
        StateError: for a value of the wrong form.
    """
    known = tuple(get_type_hints(State))
    for key, value in values.items():
        if key not in known:
            raise UnknownName("state key", key, known)
        if key in _forms() and not (value is None and key in _EMPTIED):
            _check(key, value)
    update = dict(values)
    if "subquery" in update:
        update.setdefault("further", [])
    if update.get("subquery") == "":
        update.setdefault("stop_reason", "sufficient")
    return update


def checked_limits(context: object) -> Limits | None:
    """Return the limits that are given as the context of a run; None without a context.

    Raises:
        UnknownName: for a limit that does not exist.
        SettingsError: for a value of the wrong form.
    """
    if context is None or isinstance(context, Limits):
        return context
    if not isinstance(context, Mapping):
        raise SettingsError(
            f"context: expected limits, Limits(max_hops=3) or {{'max_hops': 3}}, got {type(context).__name__}: "
            f"{context!r:.80}"
        )
    for name in context:
        if name not in Limits.names():
            raise UnknownName("limit", name, Limits.names())
    return Limits(**context)


def _check(key: str, value: object) -> None:
    form, shape = _forms()[key]
    try:
        shape.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (key, *first["loc"])))
        message = f"state key {place!r}: {first['msg']}, got {first['input']!r:.80}; {key!r} holds {form}"
        raise StateError(message) from error


@cache
def _forms() -> dict[str, tuple[str, TypeAdapter[Any]]]:
    """Return, for each key of the state, its form in words and a validator."""
    source = json_shape("_Source", Source)
    hit = json_shape("_Hit", Hit)
    passage = json_shape("_Passage", Passage, recalled=NotRequired[bool])
    readings = NotRequired[list[ReadingJSON]]
    triple = json_shape(
        "_Triple",
        Triple,
        id=NotRequired[str],
        sources=_list_of(source),
        readings=readings,
    )
    graph = json_shape("_Graph", GraphJSON, facts=_list_of(triple))
    forms: dict[str, tuple[str, Any]] = {
        **dict.fromkeys(
            (
                "question",
                "asked",
                "answer",
                "subquery",
                "stop_reason",
                "failed",
                "suggestion",
            ),
            ("a text", str),
        ),
        **dict.fromkeys(("abstained", "grounded"), ("true or false", bool)),
        "triples": ("a list of Triple(...).to_dict()", _list_of(triple)),
        "graph": ("a QuestionGraph(...).to_dict()", graph),
        "passages": (
            "Passage(...).to_dict() by id",
            GenericAlias(dict, (str, passage)),
        ),
        "hits": ("a list of Hit(...).to_dict()", _list_of(hit)),
        "steps": (
            "a list of Step(...).to_dict()",
            _list_of(json_shape("_Step", Step, hits=_list_of(hit))),
        ),
        "plans": (
            "a list of Plan(...).to_dict() with its 'hop'",
            _list_of(json_shape("_Plan", Planned)),
        ),
        "citations": (
            "a list of Citation(...).to_dict()",
            _list_of(json_shape("_Citation", Citation)),
        ),
        "failures": (
            "a list of Failure(...).to_dict()",
            _list_of(json_shape("_Failure", Failure)),
        ),
        "usage": ("a Usage(...).to_dict()", json_shape("_Usage", Usage)),
        "read": ("a list of ids of passages", list[str]),
        "further": ("a list of sub-queries", list[str]),
    }
    return {key: (form, TypeAdapter(kind)) for key, (form, kind) in forms.items()}


def _list_of(item: Any) -> Any:
    return GenericAlias(list, (item,))
