"""Caches records by the JSON value in the state from which they were parsed, so that nodes do not parse it
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from ras_agent.contracts.records import JSON, Call, Hit, Passage, Step, Triple
from ras_agent.graphs.validate import to_json_value
from ras_agent.question_graph import QuestionGraph
from ras_agent.question_graph.graph import dump_fact

_Data = TypeVar("_Data")
_Record = TypeVar("_Record")


class Records:
    """Caches the record of each JSON value in the state, by the value's identity (`id`).

    State values keep their identity from node to node, so each is parsed once in a process. A value that was
    loaded from a checkpoint is a new object and is parsed again. State values must therefore never be changed
    in place. Thread safe; at worst two threads parse the same value.
    """

    def __init__(self, size: int = 2048) -> None:
        """Set the maximum number of values in the cache."""
        self._size = size
        self._loaded: dict[int, tuple[object, Any]] = {}

    def dump(self, record: Passage | Step) -> JSON:
        """Return the record as plain JSON, for the state."""
        data: JSON = record.to_dict()
        if data.get(
            "metadata"
        ):  # the only part of a record with values that users choose
            data["metadata"] = to_json_value(data["metadata"])
        self._remember(data, record)
        return data

    def dump_graph(
        self,
        graph: QuestionGraph,
        earlier: JSON | None = None,
        triples: tuple[Triple, ...] = (),
    ) -> JSON:
        """Return a graph as JSON, reusing the JSON of facts that have not changed.

        Args:
            earlier: the JSON of the graph before it grew; its facts usually come first in the new graph.
            triples: the facts that were merged into it.
        """
        entries = list(graph.entries.values())
        dumped = dict(
            zip(map(id, triples), self._record_of(triples) or (), strict=False)
        )
        known = None
        if earlier:
            known = self._record_of(earlier["facts"])
        same = 0
        if known is not None and entries[: len(known)] == known:
            same = len(known)
        facts = earlier["facts"][:same] if earlier else []
        facts += [
            data
            if len(readings) == 1 and (data := dumped.get(id(fact)))
            else dump_fact(name, fact, readings)
            for name, (fact, readings) in islice(graph.entries.items(), same, None)
        ]
        self._remember(facts, entries)
        dumped_graph = graph.to_dict(facts)
        self._remember(dumped_graph, graph)
        return dumped_graph

    def dump_triples(self, triples: tuple[Triple, ...]) -> list[JSON]:
        """Return the JSON of facts that a hop read, in the form of a graph's facts. Facts of one sentence share the
        JSON of their sources.
        """
        shared: dict[int, list[JSON]] = {}
        data = []
        for triple in triples:
            if (sources := shared.get(id(triple.sources))) is None:
                sources = shared[id(triple.sources)] = [
                    source.to_dict() for source in triple.sources
                ]
            data.append(dump_fact(triple.id, triple, sources=sources))
        self._remember(data, triples)
        self._remember(triples, data)
        return data

    def dump_hits(self, hits: tuple[Hit, ...]) -> list[JSON]:
        """Return hits in the JSON form of a Step, with the passage's id instead of its text."""
        data = [hit.to_dict() for hit in hits]
        self._remember(data, hits)
        return data

    def graph(self, data: JSON) -> QuestionGraph:
        """Return the graph in a JSON value."""
        return self._load(data, QuestionGraph.from_dict)

    def passage(self, data: JSON) -> Passage:
        """Return the passage in a JSON value."""
        return self._load(data, Passage.from_dict)

    def triples(self, data: list[JSON]) -> tuple[Triple, ...]:
        """Return the facts in a JSON value."""
        return self._load(data, lambda triples: tuple(map(Triple.from_dict, triples)))

    def call(self, data: JSON) -> Call:
        """Return the model call in a JSON value."""
        return self._load(data, Call.from_dict)

    def hits(self, data: list[JSON], passages: Mapping[str, JSON]) -> tuple[Hit, ...]:
        """Return the hits in a JSON value, given the JSON of the passages by id."""

        def parse(hits: list[JSON]) -> tuple[Hit, ...]:
            names = {hit["passage_id"] for hit in hits}
            known = {name: self.passage(passages[name]) for name in names}
            return tuple(Hit.of_dict(hit, known) for hit in hits)

        return self._load(data, parse)

    def step(self, data: JSON, passages: Mapping[str, JSON]) -> Step:
        """Return the step in a JSON value, given the JSON of the passages by id."""
        return self._load(
            data,
            lambda step: Step.from_dict(
                {**step, "hits": self.hits(step["hits"], passages)}
            ),
        )

    def _load(self, data: _Data, parse: Callable[[_Data], _Record]) -> _Record:
        record: _Record | None = self._record_of(data)
        if record is None:
            record = parse(data)
            self._remember(data, record)
        return record

    def _record_of(self, data: object) -> Any:
        entry = self._loaded.get(id(data))
        if entry is not None and entry[0] is data:
            return entry[1]
        return None

    def _remember(self, data: object, record: object) -> None:
        if len(self._loaded) >= self._size:
            self._loaded = {}
        # keeps `data` alive, because Python may reuse the id of a dead value
        self._loaded[id(data)] = (data, record)
