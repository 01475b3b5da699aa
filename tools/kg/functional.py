"""Finds the functional relations of a graph, in which a subject has only one object, by counting."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from ras_agent.contracts.errors import RasError
from ras_agent.contracts.schema import Schema
from ras_agent.question_graph.conflicts import frame_of, is_name, values_disagree
from ras_agent.question_graph.disputes import are_alike
from ras_agent.running.budget import current_ledger
from ras_agent.text.canonical import canonical_key
from ras_agent.text.values import value_of
from ras_agent.tools.index.store import PassageIndex
from ras_agent.tools.kg.index import KGIndex
from ras_agent.tools.kg.linked_graph import graph_of

LEAST_SUBJECTS = 20
"""The minimum number of subjects that several passages state, for a relation to be judged."""
LEAST_SHARE = 0.95
"""The minimum share of these subjects that have only one object, for a relation to be functional."""
_MOST_OBJECTS = 50  # a subject with more is taken to have several


class KnownRelations:
    """Tells which relations are functional: by a schema if it says so, else as counted in the graph of an index.

    The graph is counted when a relation is first asked for, and again after the index has changed.
    """

    def __init__(self, index: object, schema: Schema | None = None) -> None:
        self._index = index
        self._schema = schema
        self._commit = ""
        self._counted: dict[str, bool] = {}

    def __call__(self, predicate: str) -> bool | None:
        """Tell whether a subject has only one object for a predicate; None if that is not known."""
        stated = None
        if self._schema is not None:
            stated = self._schema.functional(predicate)
        if stated is not None:
            return stated
        if isinstance(self._index, PassageIndex):
            self._count(self._index)
        return self._counted.get(frame_of(canonical_key(predicate)))

    def _count(self, index: PassageIndex) -> None:
        if index.commit == self._commit or not KGIndex.exists(index):
            return
        self._commit = index.commit
        try:
            self._counted = functional_relations(graph_of(index))
        except RasError as error:
            self._counted = {}
            current_ledger().note(
                f"the relations of the graph were not counted, so grammar tells where names disagree: {error}",
                role="answerer",
            )


def functional_relations(graph: KGIndex) -> dict[str, bool]:
    """Return whether each relation of a graph is functional, by the relation's frame (see `frame_of`).

    Relations with fewer than LEAST_SUBJECTS subjects that are stated in different passages are left out.
    """
    counts: dict[str, list[bool]] = {}
    for frame, has_one in have_one_object(graph):
        counts.setdefault(frame, []).append(has_one)
    functional = {}
    for frame, subjects in counts.items():
        if len(subjects) >= LEAST_SUBJECTS:
            functional[frame] = sum(subjects) >= LEAST_SHARE * len(subjects)
    return functional


def have_one_object(graph: KGIndex) -> Iterator[tuple[str, bool]]:
    """Yield the frame of a relation, and whether a subject has only one object in it, for each subject and relation
    that several passages state.

    Objects count as one if they are alike, are values that agree, or are linked by a fact.
    """
    links = {frozenset(ends) for ends in graph.edges[:, [0, 2]].tolist()}
    for frame, objects in _readings(graph):
        has_one = len(objects) <= _MOST_OBJECTS
        for one, other in combinations(sorted(objects), 2):
            if not has_one:
                break
            is_linked = frozenset((one, other)) in links
            has_one = is_linked or _may_be_one(graph, one, other)
        yield frame, has_one


def _readings(graph: KGIndex) -> list[tuple[str, set[int]]]:
    """Return the frame of a relation and the objects of a subject, for each subject and relation that several passages
    state.
    """
    frames = [frame_of(key) for key in graph.arrays.relation_keys]
    names, frame_numbers = np.unique(frames, return_inverse=True)
    facts = graph.edges[: len(graph.facts)].astype(np.int64)
    group = frame_numbers[facts[:, 1]] * len(graph.entities) + facts[:, 0]
    # only facts have sources
    stating = group[graph.arrays.source_edges()]
    documents = graph.arrays.sources["document"]
    stated = np.unique(np.stack([stating, documents], axis=1), axis=0)
    groups, passages = np.unique(stated[:, 0], return_counts=True)
    several = groups[passages > 1]
    objects: dict[int, set[int]] = {}
    for edge in np.flatnonzero(np.isin(group, several)).tolist():
        objects.setdefault(int(group[edge]), set()).add(int(facts[edge, 2]))
    readings = []
    for number, ends in objects.items():
        frame, subject = divmod(number, len(graph.entities))
        if is_name(graph.entities[subject]):
            readings.append((str(names[frame]), ends))
    return readings


def _may_be_one(graph: KGIndex, one: int, other: int) -> bool:
    """Return whether two objects may be the same: one contains the other, or they are values that agree."""
    first = graph.entities[one]
    second = graph.entities[other]
    if value_of(first) is not None and value_of(second) is not None:
        return not values_disagree(first, second)
    return are_alike(first, second)
