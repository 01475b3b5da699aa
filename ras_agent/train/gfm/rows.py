"""The states that a batch of questions has at each layer: a state that questions share is there once.

After l layers a question has changed the states of the entities within l messages of its own. All others have the state
that they have for every question, so the questions that do not reach an entity share one row of numbers. Where entities
begin alike, as GFM-RAG's do, those that nothing tells apart share row 0: all of them before the second layer, and those
without messages after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ras_agent.arrays import Floats, Ints
from ras_agent.tools.gfm.cpu_kernels import compile_loop
from ras_agent.tools.gfm.graph import GFMGraph

Places = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class LayerRows:
    """R rows of states after a layer, for N entities and B questions. Rows of one entity are neighbours.

    place: (N, B), the row of each entity's state for each question.
    entity, question: (R,), whose state a row is; -1 as the entity of row 0. A row that questions share names one.
    before, origin: (R,), the row of that state one layer earlier, and before the first layer.
    """

    place: Places
    entity: Ints
    question: Ints
    before: Ints
    origin: Ints

    def __len__(self) -> int:
        return len(self.entity)


def batch_rows(graph: GFMGraph, start: Floats, layers: int, *, alike: bool = True) -> list[LayerRows]:
    """Return the rows before the first layer and after each of them. Needs numba.

    start: (B, N), 0 where a question does not start. alike: whether all other entities begin with the same state.
    """
    reached = np.ascontiguousarray(start.T != 0)
    nobody, silent = np.zeros(graph.entities, dtype=bool), np.diff(graph.indptr) == 0
    spread, place_rows, fill_rows = _loops()
    rows: list[LayerRows] = []
    for layer in range(layers + 1):
        # before the second layer nothing tells them apart, then their messages do
        sharing = nobody if not alike else ~nobody if layer < 2 else silent
        place = np.empty(reached.shape, dtype=np.int32)
        entity, question, before, origin = np.zeros((4, place_rows(reached, sharing, place)), dtype=np.int64)
        entity[0] = -1
        earlier = (rows[-1].place, rows[0].place) if rows else (place, place)
        fill_rows(place, *earlier, entity, question, before, origin)
        rows.append(LayerRows(place, entity, question, before, origin))
        if layer < layers:
            following = reached.copy()
            spread(graph.indptr, graph.source, reached, following)
            reached = following
    return rows


@lru_cache(maxsize=1)
def _loops() -> tuple[Any, Any, Any]:
    def spread(indptr: Any, source: Any, reached: Any, following: Any) -> None:
        for entity in range(len(indptr) - 1):
            for message in range(indptr[entity], indptr[entity + 1]):
                for question in range(reached.shape[1]):
                    following[entity, question] |= reached[source[message], question]

    def place_rows(reached: Any, sharing: Any, place: Any) -> int:
        row = 1
        for entity in range(len(reached)):
            shared = 0
            for question in range(reached.shape[1]):
                if not reached[entity, question] and not sharing[entity] and shared == 0:
                    shared = row
                    row += 1
            for question in range(reached.shape[1]):
                place[entity, question] = shared
                if reached[entity, question]:
                    place[entity, question] = row
                    row += 1
        return row

    def fill_rows(
        place: Any, earlier: Any, earliest: Any, entities: Any, questions: Any, before: Any, origin: Any
    ) -> None:
        for entity in range(len(place)):
            for question in range(place.shape[1]):
                row = place[entity, question]
                if row:
                    entities[row], questions[row] = entity, question
                    before[row], origin[row] = earlier[entity, question], earliest[entity, question]

    return compile_loop(spread), compile_loop(place_rows), compile_loop(fill_rows)
