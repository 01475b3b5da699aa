"""A question graph as plain JSON: what state, traces and files hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ras_agent.records import JSON, Source, Triple

__all__ = ["dump_fact", "dump_reading", "load_fact", "load_reading"]

# The order of a source's values in a short form; the names are those of the record's fields.
_SOURCE = ("passage_id", "start", "end", "hop", "subquery", "extractor")


def dump_fact(name: str, fact: Triple, readings: tuple[Triple, ...]) -> JSON:
    """A fact with `name`, its id; one that was read under several forms tells which sources have which.

    `readings` in the result: [subject, predicate, object, [indexes into the fact's sources]].
    """
    data = {"id": name, **fact.to_dict()}
    if len(readings) > 1:
        place = {source: index for index, source in enumerate(fact.sources)}
        data["readings"] = [
            [reading.subject, reading.predicate, reading.object, [place[source] for source in reading.sources]]
            for reading in readings
        ]
    return data


def load_fact(data: Mapping[str, Any]) -> Iterable[Triple]:
    """The readings of a fact."""
    fact = Triple.from_dict(data)
    if "readings" not in data:
        return (fact,)
    return [
        Triple(subject, predicate, object_, tuple(fact.sources[index] for index in indexes))
        for subject, predicate, object_, indexes in data["readings"]
    ]


def dump_reading(reading: Triple) -> list[Any]:
    """The short form: [subject, predicate, object, [[passage_id, start, end, hop, subquery, extractor], ...]]."""
    sources = [[getattr(source, name) for name in _SOURCE] for source in reading.sources]
    return [reading.subject, reading.predicate, reading.object, sources]


def load_reading(data: list[Any]) -> Triple:
    """The inverse of `dump_reading`."""
    subject, predicate, object_, sources = data
    return Triple(subject, predicate, object_, tuple(Source(*source) for source in sources))
